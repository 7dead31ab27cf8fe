"""Columns by the DDL of real logs, against what the logs with full metadata say themselves.

The catalog is given TABLE_MAPs without their optional metadata, and must find the same again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from binlane.binlogs.cat.event_json_lines import JsonLines
from binlane.log.codec.charsets import charset_of
from binlane.log.codec.columns import Column
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import ColumnType, Flavor
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.statements.sql.logged_objects import LoggedObjects
from tests.fixture_sets import fixture_names, fixture_set

# Encrypted, damaged on purpose, or not made of whole files.
SETS = [
    name
    for name in (*fixture_names("md"), *fixture_names("my"))
    if not name.endswith(("_encrypted", "_netstream"))
]
# CREATE TABLE … SELECT as a statement, and tables like temporary ones: their texts tell nothing.
UNKNOWN = {
    name: {"shop.ctas_i", "shop.ctas_m"}
    for flavor in ("md1011", "my97")
    for name in (f"{flavor}_engines_mixed", f"{flavor}_engines_statement")
} | {
    name: {"shop.fromtmp", "shop.fromtmp2"}
    for name in ("md1011_temp_mixed", "md1011_temp_statement", "my97_temp_statement")
}


def events(name: str) -> Iterator[Event]:
    for file, data in fixture_set(name).binlogs:
        yield from walk([data], file=file)


def maps(name: str, catalog: LoggedObjects) -> Iterator[tuple[TableMapEvent, Flavor]]:
    """The table maps of a set, each when the catalog has followed the log up to it."""
    flavor = Flavor.MARIADB
    for event in events(name):
        catalog.feed(event)
        if isinstance(event.body, FormatDescriptionEvent):
            flavor = event.body.format.flavor
        if isinstance(event.body, TableMapEvent):
            yield event.body, flavor


def final_columns(table: Any) -> list[str]:
    """Names; of a sequence the list is made of them."""
    return [column if isinstance(column, str) else column["name"] for column in table.columns]


@pytest.mark.parametrize("name", SETS)
def test_ddl_tells_what_the_log_would(name: str) -> None:
    catalog = LoggedObjects()
    for table_map, flavor in maps(name, catalog):
        told = table_columns(table_map, flavor=flavor)
        found = catalog.columns(replace(table_map, optional_metadata=b""), flavor=flavor)
        assert all(column.name is not None for column in found), table_map.table
        for expected, column in zip(told, found, strict=True):
            assert_same(column, expected)
    assert catalog.misfits == {}


def assert_same(column: Column, expected: Column) -> None:
    """Whatever the log tells is what the catalog says."""
    where = f"{column.name} = column {expected.index + 1}"
    if expected.name is not None:
        assert column.name == expected.name, where
    # The servers call every YEAR unsigned.
    if expected.is_unsigned is not None and expected.type is not ColumnType.YEAR:
        assert column.is_unsigned == expected.is_unsigned, where
    # MariaDB gives GEOMETRY a character set.
    if expected.collation_id is not None and expected.type is not ColumnType.GEOMETRY:
        assert column.collation_id is not None, where
        assert charset_of(column.collation_id) == charset_of(expected.collation_id), where
    if expected.members is not None:
        assert column.members == expected.members, where
    if not expected.is_visible:
        assert not column.is_visible, where


@pytest.mark.parametrize("name", SETS)
def test_at_the_end_tables_have_the_columns_that_the_server_shows(name: str) -> None:
    catalog = LoggedObjects()
    for event in events(name):
        catalog.feed(event)
    fixture = fixture_set(name)
    unknown = set()
    for table in fixture.final_tables():
        database, _, plain = table.partition(".")
        definition = next((t for t in catalog.tables if t.plain == table), None)
        if definition is None:
            unknown.add(table)
            continue
        known = catalog.definition(definition)
        assert known is not None, (database, plain)
        assert [column.name for column in known.columns] == final_columns(fixture.final(table))
    assert unknown == UNKNOWN.get(name, set())


@pytest.mark.parametrize("name", ["md1011_ddl", "my97_ddl", "md1011_versioned", "my97_types_json"])
def test_a_schema_of_the_logs_end_is_never_used_for_other_columns(name: str) -> None:
    catalog = LoggedObjects()
    for event in events(name):
        catalog.feed(event)
    expected = LoggedObjects()
    for (table_map, flavor), (_, _) in zip(maps(name, catalog), maps(name, expected), strict=True):
        bare = replace(table_map, optional_metadata=b"")
        names = [column.name for column in expected.columns(bare, flavor=flavor)]
        found = [column.name for column in catalog.columns(bare, flavor=flavor)]
        assert found in (names, [None] * len(names)), table_map.table


def test_addresses_and_uuids_are_text_where_the_schema_says_so() -> None:
    rendered = rows("md1011_types_flavour", LoggedObjects())
    final = fixture_set("md1011_types_flavour").final("shop.net")
    last: dict[Any, Any] = {}
    for row in rendered:
        if row["table"] == "net":
            image = row.get("after") or row["before"]
            last[str(image["id"])] = image if "after" in row else None
    shown = {key: image for key, image in last.items() if image is not None}
    assert len(shown) == len(final.rows) >= 3
    for expected in final.rows:
        image = shown[str(expected[0])]
        assert [image[name] for name in ("i4", "i6", "u")] == expected[1:]


def test_without_a_schema_they_are_bytes() -> None:
    row = next(row for row in rows("md1011_types_flavour", None) if row["table"] == "net")
    assert any(isinstance(value, dict) and "base64" in value for value in row["after"].values())


def rows(name: str, catalog: LoggedObjects | None) -> list[dict[str, Any]]:
    renderer = JsonLines(with_rows=True, catalog=catalog)
    lines = [
        json.loads(line)
        for file, data in fixture_set(name).binlogs
        for event in walk([data], file=file)
        for line in renderer.lines(event, file=file)
    ]
    return [line for line in lines if line["type"] in {"insert", "update", "delete"}]


def test_names_and_members_in_json_come_from_the_schema() -> None:
    # MariaDB's default log has no metadata at all.
    catalog = LoggedObjects()
    names = {
        frozenset(row.get("after") or row["before"])
        for row in rows("md1011_metadata_no_log", catalog)
    }
    known = {
        frozenset(final_columns(fixture_set("md1011_metadata_no_log").final(table)))
        for table in fixture_set("md1011_metadata_no_log").final_tables()
    }
    assert names <= known
    assert TableName("shop", "m1") in catalog.tables
    assert not any(name.startswith("@") for found in names for name in found)
