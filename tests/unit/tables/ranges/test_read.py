"""A range gives by kernels what it gives by the reference, and all ranges together what the file gives."""

from __future__ import annotations

import gzip
import lzma
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard

from binlane.binlogs.store.log_chunks import is_plain
from binlane.errors import BinlaneError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import group_events
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.log_notes import Statement, Trouble
from binlane.tables.columnar.table_schema import CHANGE_TYPES, ReadOptions
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.read import read_range
from tests.fixture_sets import fixture_names, fixture_set, server_sets
from tests.kernel_reading import assert_same, told

ALL = ReadOptions(has_statements=True)
WIDE = ReadOptions(has_statements=True, change_columns=tuple(CHANGE_TYPES))
# Of these the first bytes cannot be read, or a row cannot.
UNREADABLE = {"md1011_encrypted", "my97_encrypted", "md1011_types_temporal_hires53"}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
SLOW = {"md1011_wide", "my97_wide", "md1011_bigrow", "my97_bigrow"}
READABLE = [name for name in server_sets() if name not in UNREADABLE]


def files_of(name: str, folder: Path) -> list[LogRange]:
    """The files of a set, each as a range that knows those before it."""
    pieces: list[LogRange] = []
    for file, data in fixture_set(name).binlogs:
        path = folder / file
        path.write_bytes(data)
        earlier = tuple(piece.uri for piece in reversed(pieces))
        number = int(file.rpartition(".")[2]) if file.rpartition(".")[2].isdigit() else 0
        pieces.append(
            LogRange(
                uri=str(path),
                name=file,
                number=number,
                is_plain=is_plain(path),
                earlier=earlier,
            )
        )
    return pieces


def cut(piece: LogRange, every: int) -> list[LogRange]:
    """A file in ranges of so many groups."""
    data = Path(piece.uri).read_bytes()
    events = list(walk([data], file=piece.uri))
    groups = [group for group in group_events(events, file=piece.name) if not group.is_control]
    starts = [4, *(group.position for group in groups[every::every])]
    stops = [*starts[1:], len(data)]
    return [
        replace(piece, start=start, stop=stop) for start, stop in zip(starts, stops, strict=True)
    ]


def read(pieces: list[LogRange], want: ReadOptions, *, by_kernels: bool) -> Any:
    """What ranges give, one after the other."""
    return told(
        lambda: (
            item for piece in pieces for item in read_range(piece, want, by_kernels=by_kernels)
        )
    )


@pytest.mark.parametrize("name", fixture_names())
def test_kernels_give_what_the_reference_gives(name: str, tmp_path: Path) -> None:
    for piece in files_of(name, tmp_path):
        kernels = read([piece], WIDE, by_kernels=True)
        assert_same(kernels, read([piece], WIDE, by_kernels=False))


@pytest.mark.parametrize("name", [name for name in READABLE if name not in SLOW])
def test_ranges_cut_at_every_group_are_the_file(name: str, tmp_path: Path) -> None:
    for piece in files_of(name, tmp_path):
        whole = read([piece], WIDE, by_kernels=True)
        parts = read(cut(piece, 1), WIDE, by_kernels=True)
        assert_same(parts, whole)
        assert_same(read(cut(piece, 3), WIDE, by_kernels=False), whole)


@pytest.mark.parametrize("name", READABLE)
def test_rows_and_statements_come_in_log_order(name: str, tmp_path: Path) -> None:
    for piece in files_of(name, tmp_path):
        passed: int = 0
        since: list[Any] = []
        try:
            for item in read_range(piece, replace(WIDE, rows_max=5), by_kernels=True):
                if isinstance(item, pa.RecordBatch):
                    since += item.column("_pos").to_pylist()
                    assert min(since) >= passed
                else:
                    assert isinstance(item, Statement | Trouble)
                    assert item.position >= max([passed, *since])
                    passed, since = item.position, []
        except BinlaneError:
            assert name == "md1011_crash_inuse"


@pytest.mark.parametrize("name", ["md1011_ddl", "my97_ddl", "md1011_format_mixed", "my97_accounts"])
def test_statements_are_those_of_the_log(name: str, tmp_path: Path) -> None:
    for piece in files_of(name, tmp_path):
        events = list(walk([Path(piece.uri).read_bytes()], file=piece.uri))
        format_ = next(e.body.format for e in events if isinstance(e.body, FormatDescriptionEvent))
        logged = [
            (event.position, event.body.query)
            for event in expanded_all(events, file=piece.uri, format_=format_)
            if isinstance(event.body, QueryEvent)
        ]
        found = [
            item
            for item in read_range(piece, ALL, by_kernels=True)
            if not isinstance(item, pa.RecordBatch)
        ]
        places = {item.position for item in found}
        for position, query in logged:
            is_ddl = query.upper().startswith((b"CREATE TABLE", b"ALTER TABLE", b"DROP DATABASE"))
            is_beside = query.startswith((b"BEGIN", b"COMMIT", b"GRANT", b"SET PASSWORD", b"XA "))
            assert position in places or not is_ddl, query
            assert position not in places or not is_beside, query


def test_a_reader_without_statements_gets_none(tmp_path: Path) -> None:
    for piece in files_of("md1011_ddl", tmp_path):
        items = list(read_range(piece, ReadOptions(), by_kernels=True))
        assert all(isinstance(item, pa.RecordBatch) for item in items)


def test_images_are_numbered_through_their_transaction(tmp_path: Path) -> None:
    (piece,) = files_of("md118_bigcommit", tmp_path)[:1]
    want = ReadOptions(change_columns=("_gtid", "_pos", "_row", "_op", "_txn_order"), rows_max=7)
    found: dict[str, list[tuple[Any, ...]]] = {}
    for batch in read_range(piece, want, by_kernels=True):
        assert isinstance(batch, pa.RecordBatch)
        for gtid, position, row, op, order in zip(
            *(batch.column(index).to_pylist() for index in range(5)), strict=True
        ):
            found.setdefault(gtid, []).append((position, row, op == "update_after", order))
    assert found
    for images in found.values():
        assert [image[3] for image in sorted(images)] == list(range(len(images)))


def test_times_are_those_of_the_commit_in_microseconds(tmp_path: Path) -> None:
    (piece,) = files_of("my97_metadata_full", tmp_path)[:1]
    want = ReadOptions(change_columns=("_ts", "_timestamp", "_server_id", "_seq", "_pos"))
    rows = 0
    for batch in read_range(piece, want, by_kernels=True):
        assert isinstance(batch, pa.RecordBatch)
        columns: list[list[Any]] = [batch.column(index).to_pylist() for index in range(5)]
        exact, seconds, servers, sequences, positions = columns
        rows += batch.num_rows
        assert any(moment.microsecond for moment in exact)
        assert all(abs((a - b).total_seconds()) < 60 for a, b in zip(exact, seconds, strict=True))
        assert set(servers) == {fixture_set("my97_metadata_full").events()[0]["server_id"]}
        assert sequences == [(piece.number << 40) + position for position in positions]
    assert rows


def test_what_was_read_is_counted(tmp_path: Path) -> None:
    (piece,) = files_of("md1011_txn", tmp_path)[:1]
    events = list(walk([Path(piece.uri).read_bytes()], file=piece.uri))
    groups = [g for g in group_events(events, file="") if not g.is_control and g.is_complete]
    for by_kernels in (True, False):
        counters = ReadCounters()
        list(read_range(piece, ReadOptions(), counters=counters, by_kernels=by_kernels))
        assert counters.groups == len(groups)
        assert counters.bytes == sum(group.size_bytes for group in groups)
        assert counters.groups_by_reference == (0 if by_kernels else counters.groups)


def test_what_kernels_refuse_is_counted(tmp_path: Path) -> None:
    for piece in files_of("my97_json_partial", tmp_path):
        partial = [
            event
            for event in walk([Path(piece.uri).read_bytes()], file=piece.uri)
            if event.header.type_code == EventType.PARTIAL_UPDATE_ROWS
            and isinstance(event.body, RowsEvent)
        ]
        counters = ReadCounters()
        list(read_range(piece, ReadOptions(), counters=counters, by_kernels=True))
        assert counters.groups_by_reference > 0
        assert counters.bytes_by_reference >= sum(event.header.length for event in partial) > 0


@pytest.mark.parametrize("name", ["md1011_encrypted", "my97_encrypted"])
def test_encrypted_files_are_read_by_kernels(name: str, tmp_path: Path) -> None:
    fixture = fixture_set(name)
    keys = tmp_path / "keys"
    keys.write_bytes(fixture.files["keys.txt" if "keys.txt" in fixture else "keyring"])
    for piece in files_of(name, tmp_path):
        opened = replace(piece, keys=str(keys))
        counters = ReadCounters()
        rows = sum(
            item.num_rows
            for item in read_range(opened, ALL, counters=counters, by_kernels=True)
            if isinstance(item, pa.RecordBatch)
        )
        assert rows
        assert counters.groups
        assert not counters.groups_by_reference
        assert_same(read([opened], ALL, by_kernels=True), read([opened], ALL, by_kernels=False))


@pytest.mark.parametrize("suffix", PACKED)
def test_compressed_files_are_read_by_kernels(suffix: str, tmp_path: Path) -> None:
    (piece,) = files_of("md1011_txn", tmp_path)[:1]
    packed = Path(f"{piece.uri}{suffix}")
    packed.write_bytes(PACKED[suffix](Path(piece.uri).read_bytes()))
    other = replace(piece, uri=str(packed), is_plain=False)
    assert_same(read([other], WIDE, by_kernels=True), read([piece], WIDE, by_kernels=True))


CATALOGUED = [
    "md1011_types_flavour",
    "md1011_types_enum_set",
    "md1011_metadata_minimal",
    "md1011_metadata_no_log",
    "md118_types_flavour",
    "my97_metadata_minimal",
    "my97_types_enum_set",
]


@pytest.mark.parametrize("name", CATALOGUED)
def test_logged_ddl_tells_names_and_types(name: str, tmp_path: Path) -> None:
    for piece in files_of(name, tmp_path):
        known = replace(piece, catalog=LoggedObjects())
        kernels = read([known], WIDE, by_kernels=True)
        assert kernels[0]
        assert_same(kernels, read([known], WIDE, by_kernels=False))
        own = {column for _, _, table in kernels[0] for column in table.column_names}
        assert not any(column.startswith("@") for column in own)
        assert known.catalog is not None
        assert not known.catalog.tables  # a range is read again with what it began with


def test_a_range_goes_on_with_what_is_known_at_its_start(tmp_path: Path) -> None:
    (piece,) = files_of("md1011_types_flavour", tmp_path)[:1]
    catalog = LoggedObjects()
    parts = []
    for part in cut(piece, 1):
        parts.append(replace(part, catalog=pickle.loads(pickle.dumps(catalog))))
        for event in walk([Path(piece.uri).read_bytes()], file=piece.uri):
            if part.start <= event.position < (part.stop or 0):
                catalog.feed(event)
    whole = read([replace(piece, catalog=LoggedObjects())], WIDE, by_kernels=True)
    assert_same(read(parts, WIDE, by_kernels=True), whole)


def test_uuids_and_addresses_are_text(tmp_path: Path) -> None:
    fixture = fixture_set("md1011_types_flavour")
    found: dict[str, list[Any]] = {"UUID": [], "INET4": [], "INET6": []}
    for piece in files_of("md1011_types_flavour", tmp_path):
        catalog = LoggedObjects()
        for item in read_range(
            replace(piece, catalog=catalog), ReadOptions(change_columns=("_op",))
        ):
            if not isinstance(item, pa.RecordBatch):
                continue
            name = item.schema.metadata[b"table"].decode()
            if name not in fixture.final_tables():
                continue
            for column in fixture.final(name).columns:
                kind = str(column["type"]).upper()
                if kind in found and column["name"] in item.schema.names:
                    assert item.schema.field(column["name"]).type == pa.string()
                    found[kind] += filter(None, item.column(column["name"]).to_pylist())
    for kind, values in found.items():
        texts = {
            value
            for name in fixture.final_tables()
            for row in fixture.final(name).rows
            for column, value in zip(fixture.final(name).columns, row, strict=True)
            if str(column["type"]).upper() == kind and value is not None
        }
        assert texts
        assert {text if isinstance(text, str) else text["s"] for text in texts} <= set(values)
