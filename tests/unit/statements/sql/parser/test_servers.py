"""What only one of the servers has: the other answers 1064, and a log of either may hold it."""

from __future__ import annotations

import pytest

from binlane.statements.sql.parser import Stopped, parse
from binlane.statements.sql.servers import ANY, Dialect
from binlane.statements.sql.tokens import SqlSyntaxError

_OF_MARIADB = (
    "SET DEFAULT ROLE NONE",
    "SET DEFAULT ROLE r FOR u@localhost",
    "ANALYZE TABLE t PERSISTENT FOR COLUMNS (n) INDEXES ()",
    "OPTIMIZE TABLE t NOWAIT",
    "SELECT 1 BETWEEN 2 BETWEEN 3 AND 4 AND 5",
    "SELECT 1 BETWEEN 2 LIKE 3 AND 5",
    "CREATE TABLE t (a TEXT COMPRESSED CHARACTER SET ucs2, b VARCHAR(9) COMPRESSED=zlib BINARY)",
    "CREATE TABLE t (a TEXT CHARACTER SET ucs2 COMPRESSED, b NVARCHAR(9) COMPRESSED BINARY)",
)
_OF_MYSQL = (
    "SET PERSIST sort_buffer_size = 1",
    "SET PERSIST_ONLY sort_buffer_size = 1",
    "SET DEFAULT ROLE NONE TO u@localhost",
    "ANALYZE TABLE t UPDATE HISTOGRAM ON n WITH 4 BUCKETS",
)
_CASES = [(sql, "mariadb") for sql in _OF_MARIADB] + [(sql, "mysql") for sql in _OF_MYSQL]


@pytest.mark.parametrize(("sql", "flavor"), _CASES)
def test_one_server_takes_it(sql: str, flavor: str) -> None:
    """Measured on MariaDB 10.11.19 and MySQL 9.7.4."""
    other = "mysql" if flavor == "mariadb" else "mariadb"
    assert parse(sql, Dialect(flavor=flavor)).end == len(sql)
    assert parse(sql, ANY).end == len(sql)
    with pytest.raises((Stopped, SqlSyntaxError)):
        parse(sql, Dialect(flavor=other))


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_an_alias_of_a_column_may_be_empty(flavor: str) -> None:
    """Measured on both."""
    for sql in ("SELECT 1 AS ``, 2 ``", "SELECT 1 AS '', 2 ''"):
        assert parse(sql, Dialect(flavor=flavor)).end == len(sql)
    with pytest.raises(Stopped):
        parse("SELECT t.a FROM t AS ``", Dialect(flavor=flavor))


def test_return_gives_a_value_but_in_mode_oracle() -> None:
    sql = "CREATE PROCEDURE p{} BEGIN RETURN; END"
    for flavor in ("mariadb", "mysql"):
        with pytest.raises((Stopped, SqlSyntaxError)):
            parse(sql.format("()"), Dialect(flavor=flavor))
    oracle = sql.format(" AS")
    assert parse(oracle, Dialect(flavor="mariadb", is_oracle=True)).end == len(oracle)
