"""A spool is whole whatever its process was doing when it ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from binlane.binlogs.seeds.spool import SeedSpool
from binlane.client.rows.logged_table import LoggedTable
from binlane.client.rows.source_table import source_table
from binlane.client.rows.table_rows import RowBatch
from binlane.errors import StoreError
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.positions import GtidPosition

_NAME = TableName("shop", "odd `name`")
_CREATE = (
    "CREATE TABLE `odd ``name``` (`id` int NOT NULL, `note` varchar(20) DEFAULT NULL,"
    " PRIMARY KEY (`id`)) ENGINE=InnoDB AUTO_INCREMENT=9 DEFAULT CHARSET=utf8mb4"
)
_LOW = GtidPosition.parse("0-1-7")


def _table() -> LoggedTable:
    return LoggedTable.of(
        source_table(_NAME, _CREATE, flavor=Flavor.MARIADB),
        ((3, 63, 11, 0x4003, 0), (253, 45, 80, 0, 0)),
        flavor=Flavor.MARIADB,
        row_metadata="FULL",
    )


def _batch(*rows: tuple[bytes, bytes]) -> RowBatch:
    keys, images = [key for key, _ in rows], [image for _, image in rows]
    return RowBatch(
        keys=b"".join(keys),
        key_ends=np.cumsum([len(key) for key in keys], dtype=np.int64),
        images=b"".join(images),
        image_ends=np.cumsum([len(image) for image in images], dtype=np.int64),
    )


def _rows(spool: SeedSpool) -> Iterator[tuple[bytes, bytes]]:
    for batch in spool.blocks(spool.states[0]):
        yield from batch


@pytest.fixture
def spool(tmp_path: Path) -> SeedSpool:
    """A spool with two ranges of one table, and rows of a third one that is not done."""
    made = SeedSpool.create(tmp_path / "spool", [_NAME])
    state = made.states[0]
    made.begin(state, _table(), _LOW, 10)
    writer = made.writer(state)
    writer.add(_batch((b"1", b"one"), (b"2", b"two")))
    writer.end_range(("2",))
    writer.add(_batch((b"3", b"three")))
    writer.end_range(("3",))
    writer.add(_batch((b"4", b"four")))
    writer.close()
    return made


def test_ranges_that_are_done_are_there_again(spool: SeedSpool) -> None:
    again = SeedSpool.open(spool.folder)
    state = again.states[0]
    assert (state.table, state.low, state.rows) == (_table(), _LOW, 3)
    assert state.bounds == [("2",), ("3",)]
    assert list(_rows(again)) == [(b"1", b"one"), (b"2", b"two"), (b"3", b"three")]
    assert not again.is_read
    assert again.high is None


def test_what_is_behind_the_last_range_is_cut_off(spool: SeedSpool) -> None:
    ranges = next(spool.folder.glob("*.ranges"))
    whole = ranges.read_bytes()
    for length in range(len(whole) + 1):
        ranges.write_bytes(whole[:length])
        again = SeedSpool.open(spool.folder)
        state = again.states[0]
        assert len(state.bounds) == whole[:length].count(b"\n")
        before = list(_rows(again))
        assert len(before) == state.rows
    again = SeedSpool.open(spool.folder)
    writer = again.writer(again.states[0])
    writer.add(_batch((b"5", b"five")))
    writer.end_range(None)
    writer.close()
    again = SeedSpool.open(spool.folder)
    assert again.states[0].bounds == [("2",), ("3",), None]
    assert list(_rows(again))[-1] == (b"5", b"five")


def test_damage_is_told(spool: SeedSpool) -> None:
    rows = next(spool.folder.glob("*.rows"))
    whole = rows.read_bytes()
    size = spool.states[0].size_bytes
    for place in range(0, size, 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        rows.write_bytes(damaged)
        with pytest.raises(StoreError, match="damaged"):
            list(_rows(spool))
    rows.write_bytes(whole[: size - 1])
    with pytest.raises(StoreError, match="damaged"):
        list(_rows(spool))
    with pytest.raises(StoreError, match="fewer bytes than were written"):
        spool.writer(spool.states[0])


def test_a_table_that_starts_over_three_times_is_refused(spool: SeedSpool) -> None:
    spool.note_high(_LOW)
    for attempt in (2, 3):
        spool.start_over(_NAME, "it changed")
        state = SeedSpool.open(spool.folder).states[0]
        assert (state.attempt, state.table, state.rows, state.refusal) == (attempt, None, 0, "")
        assert not list(spool.folder.glob("*.rows"))
    spool.start_over(_NAME, "it changed")
    again = SeedSpool.open(spool.folder)
    assert again.refusals == {_NAME: "it was begun 3 times: it changed"}
    assert again.high is None
    assert again.definitions == {}


def test_a_folder_is_made_once_and_removed(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    made = SeedSpool.create(folder, [_NAME])
    with pytest.raises(StoreError, match="cannot be used"):
        SeedSpool.create(folder, [_NAME])
    (folder / "spool.json").write_text("{")
    with pytest.raises(StoreError, match="it is damaged"):
        SeedSpool.open(folder)
    made.remove()
    with pytest.raises(StoreError, match="No such file"):
        SeedSpool.open(folder)
