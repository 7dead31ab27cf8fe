"""Scripts of definitions for binlogs that are made from files."""

from __future__ import annotations

import pytest

from binlane.errors import ConfigError
from binlane.statements.check.definitions import read_definitions


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE BINLOG 'a' LOG(shop.a) WITH ROWS",
        "CREATE BINLOG 'a' LOG(shop.b); ALTER BINLOG 'a' ADD LOG(shop.a) WITH ROWS",
    ],
)
def test_they_cannot_begin_with_rows(statement: str) -> None:
    with pytest.raises(ConfigError, match="from files a binlog has changes alone") as raised:
        read_definitions(statement, name="defs.sql", are_for_files=True)
    assert raised.value.key == "defs.sql:1"
    assert read_definitions(statement, name="defs.sql")


def test_a_name_is_no_clause() -> None:
    (found,) = read_definitions(
        "CREATE BINLOG 'rows' LOG(shop.`rows`)", name="defs.sql", are_for_files=True
    )
    assert found.name == "rows"
