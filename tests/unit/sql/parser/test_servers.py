"""What only one of the servers has: the other answers 1064, and a log of either may hold it."""

from __future__ import annotations

import pytest

from binlane.sql.parser import Stopped, parse
from binlane.sql.servers import ANY, Dialect
from binlane.sql.tokens import SqlSyntaxError

_OF_MARIADB = (
    "SET DEFAULT ROLE NONE",
    "SET DEFAULT ROLE r FOR u@localhost",
    "ANALYZE TABLE t PERSISTENT FOR COLUMNS (n) INDEXES ()",
    "OPTIMIZE TABLE t NOWAIT",
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


def test_return_gives_a_value_but_in_mode_oracle() -> None:
    sql = "CREATE PROCEDURE p{} BEGIN RETURN; END"
    for flavor in ("mariadb", "mysql"):
        with pytest.raises((Stopped, SqlSyntaxError)):
            parse(sql.format("()"), Dialect(flavor=flavor))
    oracle = sql.format(" AS")
    assert parse(oracle, Dialect(flavor="mariadb", is_oracle=True)).end == len(oracle)
