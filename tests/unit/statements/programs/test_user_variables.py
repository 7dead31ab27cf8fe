"""User variables as SHOW BINLOG EVENTS prints them, measured on MariaDB 10.11 and MySQL 9.7."""

from __future__ import annotations

from decimal import Decimal

import pytest

from binlane.statements.policy.server import Server
from binlane.statements.programs.host import LoggedVariable, printed_variable
from binlane.statements.sql.evaluation.values import Text, Value

MARIADB = Server("mariadb", (10, 11, 19))
MYSQL = Server("mysql", (9, 7, 4))


@pytest.mark.parametrize(
    "value, server, shown",
    [
        (Text("", "utf8mb4_general_ci"), MARIADB, '_utf8mb4 "" COLLATE utf8mb4_general_ci'),
        (Text("", "binary"), MYSQL, '_binary "" COLLATE binary'),
        (Text("q", "utf8mb4_general_ci"), MARIADB, "_utf8mb4 X'71' COLLATE utf8mb4_general_ci"),
        (Text("é", "utf8mb4_0900_ai_ci"), MYSQL, "_utf8mb4 0xC3A9 COLLATE utf8mb4_0900_ai_ci"),
        (None, MARIADB, "NULL"),
        (-1, MYSQL, "-1"),
        (Decimal("1.50"), MARIADB, "1.50"),
        (1.0, MARIADB, "1"),
    ],
)
def test_values_as_the_servers_print_them(value: Value, server: Server, shown: str) -> None:
    assert printed_variable(LoggedVariable("j`k", value), server) == f"@`j``k`={shown}"
