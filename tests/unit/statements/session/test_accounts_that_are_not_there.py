"""GRANT to and REVOKE from accounts that are not there; measured on MariaDB 10.11.19 and MySQL 9.7.4."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.errors import PredictedErrors
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog


def _errno(flavor: str, statement: str) -> int | None:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load(
        "CREATE DATABASE d; USE d; CREATE TABLE t (a INT); CREATE USER x;"
        "CREATE PROCEDURE p() SELECT 1;"
    )
    session = Session(
        server=Server.parse(flavor), objects=objects, database="d", errors=PredictedErrors()
    )
    error = session.execute(statement).error
    return None if error is None else error.errno


@pytest.mark.parametrize(
    ("statement", "mariadb", "mysql"),
    [
        ("REVOKE SELECT ON d.* FROM nobody", 1141, 1141),
        ("REVOKE SELECT ON *.* FROM x@localhost", 1141, 1141),
        ("REVOKE SELECT (a) ON t FROM nobody", 1141, 1147),
        ("REVOKE EXECUTE ON PROCEDURE p FROM nobody", 1141, 1403),
        ("REVOKE SELECT ON *.* FROM x", None, None),
    ],
)
def test_nothing_can_be_revoked(statement: str, mariadb: int | None, mysql: int | None) -> None:
    assert _errno("mariadb", statement) == mariadb
    assert _errno("mysql", statement) == mysql


def test_mysql_may_be_told_to_ignore_it() -> None:
    assert _errno("mysql", "REVOKE SELECT ON d.* FROM nobody IGNORE UNKNOWN USER") is None


def test_grant_with_a_password_makes_the_account_on_mariadb() -> None:
    """Measured on MariaDB 10.11.19, whose sql_mode has NO_AUTO_CREATE_USER."""
    objects = SchemaCatalog(Flavor.MARIADB)
    objects.load("CREATE DATABASE d; CREATE USER x;")
    session = Session(
        server=Server.parse("mariadb"), objects=objects, database="d", errors=PredictedErrors()
    )
    answers = [
        session.execute(statement).error
        for statement in (
            "GRANT ALL ON d.* TO y@localhost",
            "GRANT ALL ON d.* TO y@localhost IDENTIFIED BY 'a word'",
            "GRANT SELECT ON *.* TO y@localhost",
            "CREATE USER y@localhost",
            "DROP USER y@localhost",
        )
    ]
    assert [error and error.errno for error in answers] == [1133, None, None, 1396, None]
