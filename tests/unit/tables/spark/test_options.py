from __future__ import annotations

import pytest

from binlane.errors import ConfigError
from binlane.names import TableName
from binlane.tables.ranges.scopes import read_scope
from binlane.tables.spark.source_options import Include, Layout, SourceOptions


def test_defaults() -> None:
    options = SourceOptions.parse({"path": "data#orders"})
    assert options.paths == ("data#orders",)
    assert options.layout is Layout.CHANGES
    assert options.include == {Include.ROWS, Include.DDL}
    assert options.selection.scope.is_unscoped
    assert options.max_bytes_per_trigger is None


def test_names_in_any_case() -> None:
    options = SourceOptions.parse({"PATH": "x", "maxbytespertrigger": "5", "RowsPerBatch": "7"})
    assert (options.max_bytes_per_trigger, options.rows_per_batch) == (5, 7)


def test_several_paths() -> None:
    options = SourceOptions.parse({"paths": '["a.000001", "a.000002"]'})
    assert options.paths == ("a.000001", "a.000002")
    with pytest.raises(ConfigError, match="no JSON list"):
        SourceOptions.parse({"paths": "a, b"})


def test_a_table_decides_layout_and_scope() -> None:
    options = SourceOptions.parse({"path": "x", "table": "shop.`or.ders`"})
    table = TableName("shop", "or.ders")
    assert (options.layout, options.table) == (Layout.TABLE, table)
    assert options.selection.scope.includes(table)
    assert not options.selection.scope.includes(TableName("shop", "items"))


@pytest.mark.parametrize(
    "options, key",
    [
        ({}, "path"),
        ({"path": "x", "layout": "table"}, "table"),
        ({"path": "x", "maxRowsPerTrigger": "many"}, "maxRowsPerTrigger"),
        ({"path": "x", "pathes": "y"}, "pathes"),
    ],
)
def test_what_cannot_be_used_names_the_option(options: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SourceOptions.parse(options)
    assert caught.value.key == key


@pytest.mark.parametrize(
    "text", ["shop.orders, crm", "LOG(shop.orders, crm)", "log (`crm`, shop.orders)"]
)
def test_lists_of_tables(text: str) -> None:
    scope = read_scope(text)
    assert scope.includes(TableName("shop", "orders"))
    assert scope.includes(TableName("crm", "person"))
    assert not scope.includes(TableName("shop", "items"))


def test_ignore_lists() -> None:
    scope = read_scope("IGNORE(crm)")
    assert scope.includes(TableName("shop", "orders"))
    assert not scope.includes(TableName("crm", "person"))


def test_a_server_and_its_account() -> None:
    options = SourceOptions.parse(
        {
            "server": "mariadb://db.example:3307#binlog.000003",
            "user": "me@home",
            "passwordFile": "/run/se cret",
            "sslMode": "required",
        }
    )
    (place,) = options.paths
    address, _, given = place.partition("?")
    assert address == "mariadb://me%40home@db.example:3307"
    assert given == "password-file=/run/se%20cret&ssl-mode=required#binlog.000003"
    assert SourceOptions.parse({"server": "mysql://me@db"}).paths == ("mysql://me@db",)


@pytest.mark.parametrize(
    "options",
    [
        {"server": "db.example"},
        {"server": "mysql://me@db", "user": "me"},
        {"path": "x", "passwordFile": "y"},
        {"path": "x", "shape": "changes"},
        {"path": "x", "changeColumns": "_when"},
        {"path": "x", "ops": "upsert"},
        {"path": "x", "table": "a.b", "schemaChange": "guess"},
    ],
)
def test_what_does_not_fit_together_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        SourceOptions.parse(options)
