"""What replicas stop at is known until somebody has dealt with it, whatever happens to the process."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from binlane.binlogs.store.catalog import Catalog
from binlane.binlogs.store.incidents import KEPT_MAX, StoredIncident
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import incidents_in, read_groups
from binlane.errors import StoreFullError
from binlane.positions import FilePosition
from tests.faulty_disk import Failure, FaultyDisk, no_room
from tests.groups import TIMESTAMP, add, create, incident, kill, replaced, transaction
from tests.old_stores import without_incidents

SMALL = StoreSettings(max_binlog_size_bytes=4096)
RARE_MARKS = StoreSettings(max_binlog_size_bytes=4096, watermark_interval_s=3600)
GROUPS = [
    transaction(1),
    replaced(2),
    incident(),
    *(transaction(n, size=900) for n in range(3, 10)),
    replaced(10),
    transaction(11),
]


def stands(paths: list[Path]) -> list[tuple[str, int]]:
    """Where INCIDENTs stand, by the reference."""
    return [
        (group.file, event.position)
        for group in read_groups(paths)
        for event in group.events
        if event.header.type_name == "INCIDENT"
    ]


def places(incidents: tuple[StoredIncident, ...]) -> list[tuple[str, int]]:
    return [(each.file, each.position) for each in incidents]


def test_each_is_told_with_its_place_gtid_time_and_reason(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        add(binlog := create(store), GROUPS)
        assert len(binlog.files()) > 1
        assert places(binlog.incidents) == stands([file.path for file in binlog.files()])
        told = [(each.gtid, each.reason, each.timestamp) for each in binlog.incidents]
        assert told == [
            ("0-1-2", "rows from outside", TIMESTAMP),
            ("", "the source lost events", TIMESTAMP),
            ("0-1-10", "rows from outside", TIMESTAMP),
        ]


@pytest.mark.parametrize("settings", [SMALL, RARE_MARKS])
def test_they_are_there_after_a_crash(tmp_path: Path, settings: StoreSettings) -> None:
    store = Store.open(tmp_path, settings)
    add(binlog := create(store), GROUPS)
    known = binlog.incidents
    kill(store)
    for _ in range(2):
        with Store.open(tmp_path, settings) as store:
            assert store.binlogs["orders"].incidents == known
            assert store.binlogs["orders"].unsearched is None


def test_one_that_was_cut_off_is_not_told(tmp_path: Path) -> None:
    store = Store.open(tmp_path, RARE_MARKS)
    add(binlog := create(store), GROUPS[:2])
    kill(store)
    path = binlog.files()[-1].path
    path.write_bytes(path.read_bytes()[:-1])
    with Store.open(tmp_path, RARE_MARKS) as store:
        assert store.binlogs["orders"].incidents == ()


def test_where_the_disk_was_full_each_is_told_once(tmp_path: Path) -> None:
    disk = FaultyDisk()
    with Store.open(tmp_path, SMALL, disk=disk) as store:
        add(binlog := create(store), GROUPS[:1])
        disk.arm(Failure(at=0, error=no_room(errno.ENOSPC), only="write_at"))
        with pytest.raises(StoreFullError):
            add(binlog, GROUPS[:2])
        assert not binlog.incidents
        disk.arm(None)
        add(binlog, GROUPS[:2])
        assert [each.gtid for each in binlog.incidents] == ["0-1-2"]


def test_whoever_has_dealt_with_one_has_so_for_good(tmp_path: Path) -> None:
    store = Store.open(tmp_path, SMALL)
    add(binlog := create(store), GROUPS)
    first, second, third = binlog.incidents
    binlog.acknowledge(second)
    kill(store)
    with Store.open(tmp_path, SMALL) as store:
        binlog = store.binlogs["orders"]
        assert binlog.incidents == (third,)
        binlog.acknowledge(first)
        assert binlog.incidents == (third,)
        binlog.acknowledge(third)
    with Store.open(tmp_path, SMALL) as store:
        assert store.binlogs["orders"].incidents == ()


def test_they_go_with_their_files_and_with_their_binlog(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        add(binlog := create(store), GROUPS)
        binlog.purge(binlog.files()[1].name)
        assert [each.gtid for each in binlog.incidents] == ["0-1-10"]
    with Store.open(tmp_path, SMALL) as store:
        assert [each.gtid for each in store.binlogs["orders"].incidents] == ["0-1-10"]
        store.drop_binlog("orders")
        assert create(store).incidents == ()


def test_thousands_are_counted(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        add(binlog := create(store), [replaced(n) for n in range(1, 3 * KEPT_MAX + 1)])
        assert len(binlog.incidents) == KEPT_MAX
        assert sum(each.count for each in binlog.incidents) == 3 * KEPT_MAX
        assert binlog.incidents[-1].gtid == f"0-1-{3 * KEPT_MAX}"
        binlog.acknowledge(binlog.incidents[-2])
        assert [each.count for each in binlog.incidents] == [2 * KEPT_MAX + 1]


def test_those_of_an_older_binlane_are_found_in_its_files(tmp_path: Path) -> None:
    store = Store.open(tmp_path, SMALL)
    add(binlog := create(store), GROUPS)
    known, end = binlog.incidents, binlog.end
    store.close()
    connection = sqlite3.connect(Catalog.path_in(tmp_path))
    with connection:
        without_incidents(connection)
        connection.execute("PRAGMA user_version = 6")
    connection.close()
    with Store.open(tmp_path, SMALL) as store:
        binlog = store.binlogs["orders"]
        assert (binlog.incidents, binlog.unsearched) == ((), end)
        add(binlog, [replaced(12)])
        (later,) = binlog.incidents
        files = [file for file in binlog.files() if file.name <= end.file]
        for number, file in reversed(list(enumerate(files))):
            size = end.position if file.name == end.file else file.size_bytes
            found = incidents_in(file.path, size)
            assert found == tuple(each for each in known if each.file == file.name)
            before = files[number - 1] if number else None
            left = None if before is None else FilePosition(before.name, before.size_bytes)
            binlog.found(found, left)
        assert binlog.incidents == (*known, later)
    with Store.open(tmp_path, SMALL) as store:
        assert store.binlogs["orders"].incidents == (*known, later)
        assert store.binlogs["orders"].unsearched is None
