"""TABLE_MAPs made of columns are those that real servers wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from binlane.log.codec.columns import Column
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.table_map_making import make_table_map, string_metadata
from binlane.log.codec.table_metadata import primary_key, table_columns
from binlane.log.codec.types import Flavor
from binlane.log.grouping.walk import walk
from tests.fixture_sets import fixture_set

_KINDS = ("numeric", "string", "temporal", "enum_set", "geometry", "flavour")
_SETS = (
    *(("md1011_types_" + kind, Flavor.MARIADB) for kind in (*_KINDS, "json_mariadb")),
    *(("my97_types_" + kind, Flavor.MYSQL) for kind in (*_KINDS, "json")),
    ("md1011_metadata_full", Flavor.MARIADB),
    ("md1011_metadata_minimal", Flavor.MARIADB),
    ("md1011_compressed_minimal", Flavor.MARIADB),
    ("my97_metadata_full", Flavor.MYSQL),
    ("my97_metadata_minimal", Flavor.MYSQL),
    ("md1011_wide", Flavor.MARIADB),
    ("my97_wide", Flavor.MYSQL),
    ("md1011_engines_row", Flavor.MARIADB),
)


def _table_maps(name: str) -> Iterator[TableMapEvent]:
    for file, data in fixture_set(name).binlogs:
        for event in walk(iter([data]), file=file):
            if isinstance(event.body, TableMapEvent):
                yield event.body


def _row_metadata(table_map: TableMapEvent, columns: Sequence[Column]) -> str:
    if not table_map.optional_metadata:
        return "NO_LOG"
    return "MINIMAL" if columns[0].name is None else "FULL"


@pytest.mark.parametrize(("name", "flavor"), _SETS)
def test_a_table_map_of_its_own_columns_is_the_same(name: str, flavor: Flavor) -> None:
    count = 0
    for table_map in _table_maps(name):
        columns = table_columns(table_map, flavor=flavor)
        made = make_table_map(
            table_map.name,
            columns,
            primary_key(table_map),
            table_id=table_map.table_id,
            flavor=flavor,
            row_metadata=_row_metadata(table_map, columns),
        )
        assert replace(made, flags=table_map.flags) == table_map
        count += 1
    assert count


def test_the_length_of_a_long_char_stands_in_its_type() -> None:
    for length in (0, 5, 255, 256, 765, 1020):
        metadata = string_metadata(length)
        assert ((metadata >> 4) & 0x300 ^ 0x300) + (metadata & 0xFF) == length
