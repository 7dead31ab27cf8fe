"""Row images of real files against their server's tool with `-vv`, and replayed against the tables.

What `-vv` prints is compared for every value of every set, but for: values that the fixtures cut,
beyond their ends; values over 1 MiB; the encrypted sets; tables of MySQL with a GEOMETRY, of which
its tool drops rows. It prints MariaDB's compressed columns as stored and knows neither character sets nor members of ENUM and SET: `test_replayed_rows_are_the_table` compares
those with what SELECT gave at the end.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from ipaddress import ip_address
from itertools import zip_longest
from struct import unpack
from typing import Any

import pytest

from binlane.errors import UnsupportedError
from binlane.log.codec.charsets import BINARY_COLLATION, charset_of
from binlane.log.codec.columns import ABSENT, Column, RowChange, RowImage, Value, decode_rows
from binlane.log.codec.json_binary import JsonDocument
from binlane.log.codec.json_diff import JsonDiffs, JsonOperation, apply_diffs
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.table_metadata import primary_key, table_columns
from binlane.log.codec.types import ColumnType, Flavor
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.table_maps import TableMaps, rows_with_tables
from binlane.log.grouping.walk import walk
from tests.fixture_sets import FinalTable, FixtureSet, fixture_set, server_sets

PRINTED = [
    name
    for name in server_sets()
    if "rows.jsonl" in fixture_set(name)
    and not name.endswith(("_encrypted", "_types_temporal_hires53"))
]
NOT_REPLAYED = {
    # Statements change their tables, which rows alone do not show.
    **dict.fromkeys(
        (
            "charset_clients",
            "compressed",
            "ddl_statement",
            "engines_mixed",
            "engines_statement",
            "format_mixed",
            "format_statement",
            "load_data_statement",
            "temp_mixed",
            "temp_statement",
            "temp_switch",
        ),
        "statements",
    ),
    **dict.fromkeys(("alter_two_phase", "ddl", "versioned"), "DDL changes what is in the tables"),
    "partitions": "ALTER TABLE … TRUNCATE PARTITION",
    "sequences": "a sequence's row is not told by its description",
    **dict.fromkeys(
        ("md1011_rowimage_minimal", "md1011_rowimage_noblob", "md1011_compressed_minimal"),
        "MariaDB logs a REPLACE as an UPDATE that lacks the columns which became their defaults",
    ),
    "xa": "a transaction that is rolled back after it was prepared",
    "incident": "the log has lost a transaction, and says so",
    "txn": "a row was written with sql_log_bin=0",
    "engines_row": "BLACKHOLE keeps nothing, and ROLLBACK TO takes rows back",
    "md1011_fk": "MariaDB does not log what foreign keys cascade",
    "md118_fk": "the same",
    "encrypted": "keys: tests/golden/test_encryption.py",
    "types_temporal_hires53": "rows that cannot be decoded",
}
REPLAYED = [
    name
    for name in server_sets()
    if fixture_set(name).final_tables() and not {name, name.partition("_")[2]} & NOT_REPLAYED.keys()
]
LONG = 1 << 20
Renderers = dict[ColumnType, Callable[[Column, Any], str]]


def row_events(fixture: FixtureSet) -> Iterator[tuple[str, RowsEvent, TableMapEvent]]:
    """Every rows event of a set with its file and table."""
    for file, data in fixture.binlogs:
        for _, body, table_map in rows_with_tables(walk([data], file=file), file=file):
            yield file, body, table_map


def flavor_of(name: str) -> Flavor:
    return Flavor.MYSQL if name.startswith("my") else Flavor.MARIADB


@pytest.mark.parametrize("name", PRINTED)
def test_every_value_is_what_the_servers_tool_prints(name: str) -> None:
    fixture = fixture_set(name)
    changes = [
        (file, table_map, columns, change)
        for file, body, table_map in row_events(fixture)
        for columns in [raw(table_columns(table_map, flavor=flavor_of(name)))]
        for change in decode_rows(body, columns, applies_diffs=False)
    ]
    left_out = {
        (table_map.database, table_map.table)
        for _, table_map, columns, _ in changes
        if name in GEOMETRY_LOST and any(c.type is ColumnType.GEOMETRY for c in columns)
    }
    assert bool(left_out) == (name in GEOMETRY_LOST)
    ours = (mine for mine in changes if (mine[1].database, mine[1].table) not in left_out)
    renderers = RENDER | (MYSQL_RENDER if flavor_of(name) is Flavor.MYSQL else {})
    printed = (row for row in fixture.rows() if (row["db"], row["table"]) not in left_out)
    for mine, row in zip_longest(ours, printed):
        assert mine is not None
        assert row is not None
        file, table_map, columns, change = mine
        assert (file, table_map.database, table_map.table) == (row["file"], row["db"], row["table"])
        assert op(change) == row["op"]
        for image, texts in zip(change, (row["before"], row["after"]), strict=True):
            check_image(columns, image, texts, renderers)


# mysqlbinlog cannot print a GEOMETRY, and drops what follows of the rows event.
GEOMETRY_LOST = {"my97_metadata_full", "my97_metadata_minimal", "my97_types_geometry"}


def raw(columns: Sequence[Column]) -> list[Column]:
    """Columns without what `-vv` does not know either."""
    return [replace(c, is_unsigned=None, collation_id=None, members=None) for c in columns]


def op(change: RowChange) -> str:
    before, after = change
    return "I" if before is None else "D" if after is None else "U"


def check_image(
    columns: Sequence[Column],
    image: RowImage | None,
    printed: Mapping[str, str] | None,
    renderers: Renderers,
) -> None:
    """One row image against its printed values, by column number from "1"."""
    assert (image is None) == (printed is None)
    if image is None or printed is None:
        return
    present = [
        (column, value) for column, value in zip(columns, image, strict=True) if value is not ABSENT
    ]
    assert [str(column.index + 1) for column, _ in present] == list(printed)
    for (column, value), text in zip(present, printed.values(), strict=True):
        check_value(column, value, text, renderers)


def check_value(column: Column, value: Value, printed: str, renderers: Renderers) -> None:
    match = _TYPED.fullmatch(printed)
    assert match, printed
    text, type_name, metadata, is_nullable, is_null = match.groups()
    assert int(metadata) == column.metadata
    assert bool(int(is_nullable)) == column.is_nullable
    assert bool(int(is_null)) == (value is None)
    if value is None:
        assert text == "NULL"
    elif "COMPRESSED" not in type_name and not (
        isinstance(value, str | bytes) and len(value) > LONG
    ):
        assert_same_text(renderers[column.type](column, value), text.rstrip(" "))


def assert_same_text(ours: str, printed: str) -> None:
    """Equal; of a text that the fixtures cut, both ends and the length."""
    if match := _CUT.fullmatch(printed):
        head, length, tail = match[1], int(match[2]), match[3]
        assert len(ours) - len(head) - len(tail) <= length
        assert ours.startswith(head)
        assert ours.endswith(tail)
    else:
        assert ours == printed


_TYPED = re.compile(r"(.*) /\* (.*?) meta=(\d+) nullable=(\d) is_null=(\d) \*/", re.DOTALL)
_CUT = re.compile(r"(.*)\.\.\.\[(\d+) chars\]\.\.\.(.*)", re.DOTALL)
_CONTROL = re.compile(rb"[\0-\x1f]")
_MYSQL_SPECIAL = re.compile(rb"[\0-\x1f'\\]")


def _integer(column: Column, value: Any) -> str:
    bits = {
        ColumnType.TINY: 8,
        ColumnType.SHORT: 16,
        ColumnType.INT24: 24,
        ColumnType.LONG: 32,
        ColumnType.LONGLONG: 64,
    }[column.type]
    return str(value) if value >= 0 else f"{value} ({value + (1 << bits)})"


def _quoted(column: Column, value: Any) -> str:
    data = value.encode() if isinstance(value, str) else value
    escaped = _CONTROL.sub(lambda match: b"\\x%02x" % ord(match[0]), data)
    return f"'{escaped.decode('utf-8', 'surrogateescape')}'"


def _timestamp(column: Column, value: Any) -> str:
    whole, _, fraction = value.partition(".")
    seconds = (
        0
        if whole == "0000-00-00 00:00:00"
        else int(datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp())
    )
    return f"{seconds}.{fraction}" if fraction else str(seconds)


def _set(column: Column, value: Any) -> str:
    """Bytes in the order stored, each with its highest bit first."""
    data = value.to_bytes(column.pack_length, "little")
    return f"b'{''.join(f'{byte:08b}' for byte in data)}'"


def _enum(column: Column, value: Any) -> str:
    return "0" if value == "" else str(value)


def _json(column: Column, value: Any) -> str:
    """A document, or the diffs of one around the old value."""
    if isinstance(value, JsonDocument):
        return _json_quoted(value)
    text = f"@{column.index + 1}"
    for diff in value.diffs:
        name = JSON_FUNCTIONS[diff.operation, diff.path.endswith("]")]
        new = "" if diff.value is None else f", {_json_literal(diff.value)}"
        text = f"{name}({text}, {_json_quoted(JsonDocument(diff.path))}{new})"
    return text


def _json_quoted(document: JsonDocument) -> str:
    text = document.value if isinstance(document.value, str) else str(document)
    return _mysql_quoted(text)


def _mysql_quoted(value: Any) -> str:
    """As MySQL's tool quotes."""
    data = value.encode() if isinstance(value, str) else value
    escaped = _MYSQL_SPECIAL.sub(lambda match: MYSQL_ESCAPES[match[0]], data)
    return f"'{escaped.decode('utf-8', 'surrogateescape')}'"


MYSQL_ESCAPES = {
    **{bytes((code,)): b"\\x%02x" % code for code in range(32)},
    **{character: b"\\" + character for character in (b"'", b"\\")},
    b"\b": b"\\b",
    b"\t": b"\\t",
    b"\n": b"\\n",
    b"\f": b"\\f",
    b"\r": b"\\r",
}


def _json_literal(document: JsonDocument) -> str:
    if isinstance(document.value, dict | list):
        return f"CAST({_json_quoted(document)} AS JSON)"
    return _json_quoted(document) if isinstance(document.value, str) else str(document)


JSON_FUNCTIONS = {
    **{(JsonOperation.REPLACE, is_cell): "JSON_REPLACE" for is_cell in (False, True)},
    **{(JsonOperation.REMOVE, is_cell): "JSON_REMOVE" for is_cell in (False, True)},
    (JsonOperation.INSERT, False): "JSON_INSERT",
    (JsonOperation.INSERT, True): "JSON_ARRAY_INSERT",
}


def _vector(column: Column, value: Any) -> str:
    numbers = unpack(f"<{len(value) // 4}f", value)
    return f"[{','.join(f'{number:.5e}' for number in numbers)}]"


RENDER: Renderers = {
    **dict.fromkeys(
        (
            ColumnType.TINY,
            ColumnType.SHORT,
            ColumnType.INT24,
            ColumnType.LONG,
            ColumnType.LONGLONG,
        ),
        _integer,
    ),
    **dict.fromkeys(
        (ColumnType.STRING, ColumnType.VARCHAR, ColumnType.BLOB, ColumnType.GEOMETRY), _quoted
    ),
    **dict.fromkeys((ColumnType.TIMESTAMP, ColumnType.TIMESTAMP2), _timestamp),
    **dict.fromkeys(
        (ColumnType.TIME, ColumnType.TIME2, ColumnType.DATETIME, ColumnType.DATETIME2),
        lambda _, value: f"'{value}'",
    ),
    ColumnType.DATE: lambda _, value: f"'{value.replace('-', ':')}'",
    # The tool prints 1900 for the year 0000.
    ColumnType.YEAR: lambda _, value: str(value or 1900),
    ColumnType.NEWDECIMAL: lambda _, value: f"{value:f}",
    ColumnType.FLOAT: lambda _, value: f"{value:g}",
    ColumnType.DOUBLE: lambda _, value: f"{value:.20g}",
    ColumnType.BIT: lambda column, value: f"b'{value:0{column.bits}b}'",
    ColumnType.ENUM: _enum,
    ColumnType.SET: _set,
}
MYSQL_RENDER: Renderers = {
    **dict.fromkeys(
        (ColumnType.STRING, ColumnType.VARCHAR, ColumnType.BLOB),
        lambda _, value: _mysql_quoted(value),
    ),
    ColumnType.JSON: _json,
    ColumnType.VECTOR: _vector,
}


@pytest.mark.parametrize("name", REPLAYED)
def test_replayed_rows_are_the_table(name: str) -> None:
    fixture = fixture_set(name)
    tables: dict[str, list[RowImage]] = {}
    maps = TableMaps()
    for file, data in fixture.binlogs:
        for event in expanded_all(walk([data], file=file), file=file):
            table_map = maps.feed(event, file=file)
            if isinstance(event.body, RowsEvent) and table_map is not None:
                replay(tables, event.body, table_map, fixture)
            if isinstance(event.body, QueryEvent) and (
                match := _TRUNCATE.match(event.body.query.decode("utf-8", "replace"))
            ):
                tables[f"shop.{match[1]}"].clear()
    assert tables
    for table, rows in tables.items():
        check_table(rows, fixture.final(table))


_TRUNCATE = re.compile(r"TRUNCATE (?:TABLE )?(?:`?shop`?\.)?`?(\w+)")


def replay(
    tables: dict[str, list[RowImage]],
    body: RowsEvent,
    table_map: TableMapEvent,
    fixture: FixtureSet,
) -> None:
    """Apply one rows event to its table, if that is still there at the end."""
    table = f"{table_map.database}.{table_map.table}"
    if table in fixture.final_tables():
        final = fixture.final(table)
        columns = described(table_map, final, flavor_of(fixture.name))
        generated = [info["generated"] for info in final.columns]
        for change in decode_rows(body, columns):
            apply(tables.setdefault(table, []), change, generated)


def described(table_map: TableMapEvent, final: FinalTable, flavor: Flavor) -> list[Column]:
    """The columns; what the log does not tell is taken from the table's description."""
    columns = table_columns(table_map, flavor=flavor)
    assert len(columns) <= len(final.columns)
    full = []
    for column, info in zip(columns, final.columns, strict=False):
        facts = {
            "name": info["name"],
            "is_unsigned": "unsigned" in info["type"] or column.type is ColumnType.YEAR,
            "collation_id": collation(info),
            "members": members(info["type"]),
        }
        told = {key: value for key in facts if (value := getattr(column, key)) is not None}
        if "name" in told:
            check_facts(column, info)
        full.append(replace(column, **{**facts, **told}))
    return full


def check_facts(column: Column, info: Mapping[str, Any]) -> None:
    """What full metadata tells of a column, against its description."""
    assert column.name == info["name"]
    assert column.is_nullable == info["nullable"]
    assert column.in_primary_key == (info["key"] == "PRI")
    # The description is in utf8mb3.
    told = column.members and tuple(_FOUR_BYTES.sub("?", member) for member in column.members)
    assert told == members(info["type"])
    if column.is_unsigned is not None and column.type is not ColumnType.YEAR:
        assert column.is_unsigned == ("unsigned" in info["type"])
    if column.collation_id is not None:
        assert charset_of(column.collation_id) == (info["charset"] or "binary")
    if column.type is ColumnType.GEOMETRY:
        kind = info["type"].replace("geomcollection", "geometrycollection")
        assert column.geometry_type == GEOMETRIES.index(kind)


def collation(info: Mapping[str, Any]) -> int:
    """Some collation of a column's character set."""
    ids = (number for number in range(1, 256) if charset_of(number) == info["charset"])
    return next(ids, BINARY_COLLATION)


def members(column_type: str) -> tuple[str, ...] | None:
    if not column_type.startswith(("enum(", "set(")):
        return None
    return tuple(text.replace("''", "'") for text in _MEMBER.findall(column_type))


GEOMETRIES = [
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
]
_FOUR_BYTES = re.compile("[\U00010000-\U0010ffff]")
_MEMBER = re.compile(r"'((?:[^']|'')*)'")


def apply(rows: list[RowImage], change: RowChange, generated: Sequence[bool]) -> None:
    """Replay one change; a column that an after image lacks keeps its value.

    Where a generated column is lacking, its new value is unknown: MariaDB 11.8 leaves them out.
    """
    before, after = change
    if before is not None:
        row = next(row for row in rows if agrees(row, before))
        rows.remove(row)
        if after is not None:
            after = tuple(
                new if new is ABSENT and is_generated else updated(old, new)
                for old, new, is_generated in zip(row, after, generated, strict=False)
            )
    if after is not None:
        rows.append(after)


def updated(old: Value, new: Value) -> Value:
    if isinstance(new, JsonDiffs):
        assert isinstance(old, JsonDocument)
        return apply_diffs(old, new.diffs)
    return old if new is ABSENT else new


def agrees(row: RowImage, image: RowImage) -> bool:
    """Whether a row has the values that an image of it holds; either may lack columns."""
    return all(a == b or a is ABSENT or b is ABSENT for a, b in zip(row, image, strict=True))


def check_table(rows: list[RowImage], final: FinalTable) -> None:
    """The replayed rows against the selected ones, in any order."""
    left = list(rows)
    for selected in final.rows:
        match = next((row for row in left if is_selected(row, final, selected)), None)
        assert match is not None, selected
        left.remove(match)
    assert not left


def is_selected(row: RowImage, final: FinalTable, selected: Sequence[Any]) -> bool:
    return all(
        value is ABSENT or as_selected(value, info, cell) == cell
        for value, info, cell in zip(row, final.columns, selected, strict=False)
    )


def as_selected(value: Value, info: Mapping[str, Any], cell: Any) -> object:
    """A decoded value in the form in which the fixtures have selected ones."""
    kind = info["type"].split("(")[0].split(" ")[0]
    if value is None or cell is None or kind in {"bit", "float", "double"}:
        return value
    if isinstance(value, Decimal):
        return f"{value:f}"
    if kind in {"inet4", "inet6", "uuid"}:
        assert isinstance(value, bytes)
        is_equal = (uuid.UUID if kind == "uuid" else ip_address)(cell) == (
            uuid.UUID(bytes=value) if kind == "uuid" else ip_address(value)
        )
        return cell if is_equal else value
    if kind == "year":
        assert isinstance(value, int)
        return f"{value:04d}"
    if kind in {"enum", "set"}:
        return {"s": ",".join(value) if isinstance(value, tuple) else value, "n": cell["n"]}
    if "zerofill" in info["type"]:
        return str(value).zfill(len(cell))
    if not isinstance(cell, dict):
        return str(value)
    data = value if isinstance(value, bytes) else bytes.fromhex(cell.get("hex", ""))
    if "len" in cell:
        data = value.encode() if isinstance(value, str) else data
        return {"len": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return {"hex": data.hex().upper()} | ({"s": value} if isinstance(value, str) else {})


def test_a_primary_key_is_known_with_its_prefixes() -> None:
    maps = {
        table_map.table: table_map
        for _, _, table_map in row_events(fixture_set("md1011_metadata_full"))
    }
    key = {
        name: [(part.index, part.prefix_length) for part in primary_key(table_map)]
        for name, table_map in maps.items()
    }
    # PRIMARY KEY (a(10), d); m3 has none.
    assert key == {"m1": [(0, 0)], "m2": [(0, 10), (3, 0)], "m3": [], "m4": [(0, 0)]}


def test_high_resolution_types_of_mariadb_5_3_are_refused() -> None:
    fixture = fixture_set("md1011_types_temporal_hires53")
    refused, rows = 0, 0
    for _, body, table_map in row_events(fixture):
        columns = table_columns(table_map, flavor=Flavor.MARIADB)
        if table_map.table == "oldfs":
            with pytest.raises(UnsupportedError) as caught:
                next(decode_rows(body, columns))
            assert "mysql56_temporal_format" in caught.value.hint
            refused += 1
        else:
            rows += sum(1 for _ in decode_rows(body, columns))
    assert (refused, rows) == (2, 2)
