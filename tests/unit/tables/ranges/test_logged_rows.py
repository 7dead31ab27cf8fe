"""The row images of a range, counted beside the readers: as many as readers find, and official tools print."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from binlane.errors import BinlaneError
from binlane.names import TableName
from binlane.tables.columnar.log_notes import Trouble, TroubleKind
from binlane.tables.columnar.table_schema import table_of
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.logged_rows import LoggedRowCounts, logged_rows
from binlane.tables.ranges.read import read_range
from tests.fixture_sets import fixture_names, fixture_set
from tests.unit.tables.ranges.test_read import ALL, READABLE, cut, files_of


def counted(pieces: list[LogRange], *, by_kernels: bool) -> LoggedRowCounts:
    """What ranges hold together."""
    found = LoggedRowCounts()
    for piece in pieces:
        one = logged_rows(piece, by_kernels=by_kernels)
        found.images.update(one.images)
        found.uncertain.update(one.uncertain)
        found.uncounted.update(one.uncounted)
    return found


def read(pieces: list[LogRange]) -> Counter[TableName]:
    """What a reader finds in ranges."""
    found: Counter[TableName] = Counter()
    for piece in pieces:
        for item in read_range(piece, ALL):
            if isinstance(item, pa.RecordBatch):
                found[table_of(item.schema)] += item.num_rows
    return found


@pytest.mark.parametrize("by_kernels", [True, False])
@pytest.mark.parametrize("name", READABLE)
def test_as_many_as_a_reader_finds(name: str, by_kernels: bool, tmp_path: Path) -> None:  # noqa: FBT001
    for piece in files_of(name, tmp_path):
        try:
            expected = read([piece])
        except BinlaneError:
            assert name == "md1011_crash_inuse"
            return
        found = logged_rows(piece, by_kernels=by_kernels)
        assert +found.images == expected
        assert not found.uncounted


@pytest.mark.parametrize("name", [name for name in READABLE if "xa" in name or "comp" in name])
def test_ranges_cut_at_every_group_hold_what_the_file_holds(name: str, tmp_path: Path) -> None:
    pieces = files_of(name, tmp_path)
    parts = [part for piece in pieces for part in cut(piece, 1)]
    assert +counted(parts, by_kernels=True).images == read(pieces)


@pytest.mark.parametrize("name", fixture_names())
def test_kernels_count_what_decoding_counts(name: str, tmp_path: Path) -> None:
    for piece in files_of(name, tmp_path):
        outcomes: list[object] = []
        for by_kernels in (True, False):
            try:
                found = logged_rows(piece, by_kernels=by_kernels)
                outcomes.append((+found.images, +found.uncertain, found.uncounted))
            except BinlaneError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


# Rows of XA transactions that are rolled back; rows with a NULL geometry, which mysqlbinlog does
# not print to their end.
PRINTED_OTHERWISE = {"md1011_xa", "my97_xa"} | {
    f"my97_{each}" for each in ("metadata_full", "metadata_minimal", "types_geometry")
}


def test_official_tools_print_as_many(tmp_path: Path) -> None:
    for name in READABLE:
        if "rows.jsonl" not in fixture_set(name) or name in PRINTED_OTHERWISE:
            continue
        printed: Counter[TableName] = Counter()
        for row in fixture_set(name).rows():
            printed[TableName(row["db"], row["table"])] += 2 if row["op"] == "U" else 1
        folder = tmp_path / name
        folder.mkdir()
        found = counted(files_of(name, folder), by_kernels=True)
        assert +(found.images + found.uncertain) == printed, name


def test_what_is_rolled_back_in_part_is_uncertain(tmp_path: Path) -> None:
    uncertain: Counter[TableName] = Counter()
    for name in READABLE:
        folder = tmp_path / name
        folder.mkdir()
        pieces = files_of(name, folder)
        found = counted(pieces, by_kernels=True).uncertain
        troubles = {
            table
            for piece in pieces
            if name != "md1011_crash_inuse"
            for item in read_range(piece, ALL)
            if isinstance(item, Trouble) and item.kind is TroubleKind.ROLLED_BACK
            for table in item.tables
        }
        assert set(+found) == troubles, name
        uncertain.update(found)
    assert uncertain
