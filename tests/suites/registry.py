"""All suites of drivers and frameworks."""

from __future__ import annotations

from typing import Final

from tests.suites.aiomysql_suite import AIOMYSQL
from tests.suites.c_client_suite import C_CLIENT
from tests.suites.connector_j_suite import CONNECTOR_J
from tests.suites.django_suite import DJANGO
from tests.suites.go_driver_suite import GO_DRIVER
from tests.suites.go_mysql_suite import GO_MYSQL
from tests.suites.mysql2_suite import MYSQL2
from tests.suites.pymysql_suite import PYMYSQL
from tests.suites.sqlalchemy_suite import SQLALCHEMY
from tests.suites.sqlobject_suite import SQLOBJECT
from tests.suites.suites import Suite
from tests.suites.xorm_suite import XORM

SUITES: Final[tuple[Suite, ...]] = (
    PYMYSQL,
    AIOMYSQL,
    GO_DRIVER,
    GO_MYSQL,
    XORM,
    SQLALCHEMY,
    SQLOBJECT,
    MYSQL2,
    CONNECTOR_J,
    DJANGO,
    C_CLIENT,
)
