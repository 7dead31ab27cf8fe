"""Names of databases, tables and columns that DuckDB does not take as they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import binlane
from binlane.names import TableName
from binlane.tables.query.log_connection import quoted, shown_names
from binlane.tables.query.log_tables import LogTable
from tests.shop_log import ShopLog, Table


def schema(**types: pa.DataType) -> pa.Schema:
    """A schema of columns by their names."""
    return pa.schema(types)


def shown(*names: tuple[str, str]) -> dict[str, str]:
    found = shown_names([TableName(*name) for name in names])
    return {name.plain: ".".join(put) for name, put in found.items()}


def test_names_stay_as_they_are() -> None:
    names = [("shop", "orders"), ("shop", "events"), ('a"b', "c.d"), ("ä", "SELECT")]
    assert shown(*names) == {".".join(name): ".".join(name) for name in names}


@pytest.mark.parametrize("name", ["main", "temp", "System", "memory", "information_schema"])
def test_a_database_with_a_name_of_duckdbs_own_gets_another(name: str) -> None:
    assert shown((name, "t")) == {f"{name}.t": f"{name}_.t"}


def test_names_that_differ_in_case_only_are_told_apart() -> None:
    assert shown(("Shop", "T"), ("shop", "T"), ("shop", "t"), ("shop", "t_")) == {
        "Shop.T": "Shop.T",
        "shop.T": "shop_.T",
        "shop.t": "shop_.t_",
        "shop.t_": "shop_.t__",
    }


def test_a_name_is_quoted_with_all_that_is_in_it() -> None:
    assert quoted('a"; DROP TABLE x; --') == '"a""; DROP TABLE x; --"'


def test_columns_with_names_of_added_ones_get_others() -> None:
    own = schema(id=pa.int32(), _OP=pa.string(), _op_=pa.string())
    table = LogTable.of(TableName("shop", "t"), [own])
    assert table.shown == ("id", "_OP_", "_op__")
    assert table.renamed == {"_OP": "_OP_", "_op_": "_op__"}
    names = [name.lower() for name in table.schema.names]
    assert len(names) == len(set(names))


def test_a_column_that_was_spelled_otherwise_is_one() -> None:
    first = schema(ID=pa.int32(), price=pa.int32())
    last = schema(id=pa.int64(), note=pa.string())
    table = LogTable.of(TableName("shop", "t"), [first, last])
    assert table.own.names == ["id", "note", "price"]
    assert table.own.field("id").type == pa.int64()
    assert table.spellings[0] == {"ID", "id"}


def test_tables_of_any_name_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names = ['we"ird.name', "events", "statements; DROP VIEW groups", "Ünïcode", "a'b"]
    log = ShopLog()
    for number, name in enumerate(names):
        log.insert(Table(name, ("id", "_op", "state")), (number, "mine", "new"))
    file, data = log.file()
    path = tmp_path / file
    path.write_bytes(data)
    with pytest.warns(UserWarning, match="_op is _op_ here"):
        connection = binlane.connect(path)
    for number, name in enumerate(names):
        rows = connection.execute(f"SELECT id, _op, _op_ FROM shop.{quoted(name)}").fetchall()
        assert rows == [(number, "insert", "mine")]
    counted = connection.execute("SELECT count(*) FROM groups").fetchone()
    assert counted == (len(names),)
