from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.catalog import Catalog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.verify import verify
from binlane.errors import CorruptStoreError, StoreFullError
from binlane.log.grouping.xa import prepared_by
from binlane.positions import Gtid, GtidPosition
from tests.faulty_disk import Failure, FaultyDisk, no_room
from tests.groups import TIMESTAMP, add, create, kill, real_groups, sequences, stored, transaction

RARE_MARKS = StoreSettings(max_binlog_size_bytes=4096, watermark_interval_s=3600)
GROUPS = [transaction(n, size=400) for n in range(1, 13)]


def killed(data_dir: Path, groups: int = len(GROUPS)) -> Binlog:
    """A binlog whose process ended without closing anything."""
    store = Store.open(data_dir, RARE_MARKS)
    add(binlog := create(store), GROUPS[:groups])
    kill(store)
    return binlog


def reopened(data_dir: Path) -> list[int]:
    """What a binlog holds after recovery, and after all groups were given again."""
    with Store.open(data_dir, RARE_MARKS) as store:
        binlog = store.binlogs["orders"]
        found = sequences(stored(binlog))
        add(binlog, GROUPS)
        assert sequences(stored(binlog)) == list(range(1, len(GROUPS) + 1))
    assert not list(verify([data_dir]))
    return found


def test_nothing_is_lost_without_a_clean_close(tmp_path: Path) -> None:
    binlog = killed(tmp_path)
    assert len(binlog.files()) > 1
    with Store.open(tmp_path, RARE_MARKS) as store:
        assert store.binlogs["orders"].published == binlog.published


@pytest.mark.parametrize("cut", [1, 4, 19, 30, 100, 400])
def test_a_torn_tail_is_cut_at_the_last_whole_group(tmp_path: Path, cut: int) -> None:
    path = killed(tmp_path, groups=3).files()[-1].path
    path.write_bytes(path.read_bytes()[:-cut])
    assert reopened(tmp_path) == [1, 2]


@pytest.mark.parametrize("tail", [b"\0" * 500, b"\xff" * 500, b"abc"])
def test_a_tail_of_garbage_is_cut(tmp_path: Path, tail: bytes) -> None:
    path = killed(tmp_path, groups=3).files()[-1].path
    path.write_bytes(path.read_bytes() + tail)
    assert reopened(tmp_path) == [1, 2, 3]


def test_a_rotation_that_did_not_get_to_the_index_is_undone(tmp_path: Path) -> None:
    *_, last = killed(tmp_path).files()
    index = last.path.with_name("orders.index")
    names = index.read_text().splitlines(keepends=True)
    held = sequences(stored([last.path]))
    last.path.write_bytes(last.path.read_bytes()[:300])
    index.write_text("".join(names[:-1]))
    assert reopened(tmp_path) == list(range(1, held[0]))


def test_drafts_and_files_that_a_purge_left_are_removed(tmp_path: Path) -> None:
    store = Store.open(tmp_path, RARE_MARKS)
    add(binlog := create(store), GROUPS)
    first, second, *_ = binlog.files()
    data = first.path.read_bytes()
    binlog.purge(second.name)
    kill(store)
    draft = first.path.with_name("orders.index.tmp")
    draft.write_bytes(b"./orders.0")
    first.path.write_bytes(data)
    with Store.open(tmp_path) as store:
        assert store.binlogs["orders"].files()[0].name == second.name
    assert not first.path.exists()
    assert not draft.exists()


def remove_file(directory: Path) -> None:
    (directory / "orders.000002").unlink()


def cut_what_was_synced(directory: Path) -> None:
    path = directory / "orders.000001"
    path.write_bytes(path.read_bytes()[:100])


def remove_index(directory: Path) -> None:
    (directory / "orders.index").unlink()


def turn_index_round(directory: Path) -> None:
    (directory / "orders.index").write_text("./orders.000002\n./orders.000001\n")


def empty_index(directory: Path) -> None:
    (directory / "orders.index").write_text("")


def shorten_index(directory: Path) -> None:
    index = directory / "orders.index"
    index.write_text("".join(index.read_text().splitlines(keepends=True)[:-1]))


def add_stranger(directory: Path) -> None:
    (directory / "notes.txt").write_text("hello")


def break_head(directory: Path) -> None:
    last = max(directory.glob("orders.0*"))
    data = bytearray(last.read_bytes())
    data[60] ^= 1
    last.write_bytes(data)


@pytest.mark.parametrize(
    "damage, text",
    [
        (remove_file, "the file is missing"),
        (cut_what_was_synced, "the file ends at 100; it was on disk up to 285"),
        (remove_index, "the index of binlog orders cannot be read"),
        (turn_index_round, "the index names orders.000002, orders.000001"),
        (empty_index, "the index names no file"),
        (shorten_index, "the index of binlog orders does not name this file"),
        (add_stranger, "the index of binlog orders does not name this file"),
        (break_head, "GTID_LIST or PREVIOUS_GTIDS: checksum is"),
    ],
)
def test_what_no_crash_can_do_is_an_error(
    tmp_path: Path, damage: Callable[[Path], None], text: str
) -> None:
    directory = killed(tmp_path).files()[0].path.parent
    damage(directory)
    with pytest.raises(CorruptStoreError, match=text) as caught:
        Store.open(tmp_path)
    assert caught.value.hint
    assert caught.value.path.startswith(str(directory))
    assert any(verify([tmp_path]))


def test_a_store_that_does_not_open_lets_go_of_its_lock(tmp_path: Path) -> None:
    directory = killed(tmp_path).files()[0].path.parent
    add_stranger(directory)
    with pytest.raises(CorruptStoreError):
        Store.open(tmp_path)
    (directory / "notes.txt").unlink()
    assert reopened(tmp_path) == list(range(1, 13))


def test_binlogs_without_a_definition_are_an_error(tmp_path: Path) -> None:
    killed(tmp_path)
    Catalog.path_in(tmp_path).unlink()
    with pytest.raises(CorruptStoreError, match="no definition is stored"):
        Store.open(tmp_path)


def test_a_watermark_ahead_of_the_files_survives(tmp_path: Path) -> None:
    store = Store.open(tmp_path, RARE_MARKS)
    binlog = create(store)
    binlog.append(transaction(1))
    binlog.advance(Gtid(0, 1, 7))
    binlog.sync(force=True)
    position = binlog.position
    kill(store)
    with Store.open(tmp_path) as store:
        assert store.binlogs["orders"].position == position == GtidPosition.parse("0-1-7")


def test_what_was_prepared_in_a_file_before_the_last_is_known(tmp_path: Path) -> None:
    prepared, *_ = (g for g in real_groups("md1011_xa") if prepared_by(g.events[-1]))
    xid = prepared_by(prepared.events[-1])
    store = Store.open(tmp_path, RARE_MARKS)
    binlog = create(store)
    add(binlog, [replace(prepared, prepares=xid)])
    binlog.rotate(TIMESTAMP)
    kill(store)
    with Store.open(tmp_path, RARE_MARKS) as store:
        assert len(store.binlogs["orders"].files()) == 2
        assert store.binlogs["orders"].prepared == binlog.prepared == {xid}


def test_what_was_prepared_is_known_where_no_file_can_be_begun(tmp_path: Path) -> None:
    groups = [g for g in real_groups("md1011_xa") if prepared_by(g.events[-1])]
    xid = prepared_by(groups[0].events[-1])
    disk = FaultyDisk()
    with Store.open(tmp_path, RARE_MARKS, disk=disk) as store:
        binlog = create(store)
        add(binlog, [replace(groups[0], prepares=xid)])
        binlog.append(replace(transaction(9), finishes=xid))
        disk.arm(Failure(at=0, error=no_room(errno.ENOSPC), only="create"))
        with pytest.raises(StoreFullError):
            binlog.rotate(TIMESTAMP)
        # What finished it was rolled back, and is given again.
        assert binlog.prepared == {xid}
