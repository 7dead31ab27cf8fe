"""The journal's files: cut off, damaged, on a full disk, written by a process that is killed."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from binlane.binlogs.store.disk import DiskFile, LocalDisk
from binlane.live.port.attribution_settings import AttributionSettings
from binlane.live.port.attribution_state import ReadGroup
from binlane.live.port.attributions import Attributions
from binlane.live.port.journal import record_log, statement_journal
from binlane.live.port.session_groups import RowsReason, Unattributed
from binlane.log.codec.types import Flavor
from binlane.positions import Gtid, GtidPosition
from binlane.statements.session.group_plan import EncodedEvent, GroupPlan, TextPart

SETTINGS = AttributionSettings(wait_s=0.0)
THREAD = 4


def plan(text: str) -> GroupPlan:
    return GroupPlan(binlogs={"a": (TextPart((EncodedEvent(2, text.encode()),)),)})


def gtid(sequence: int) -> Gtid:
    return Gtid(0, 1, sequence)


def group(sequence: int) -> ReadGroup:
    return ReadGroup(gtid(sequence), THREAD, True)


def at(sequence: int) -> GtidPosition:
    return GtidPosition((Gtid(0, 1, sequence),))


class FullDisk(LocalDisk):
    """Has no room while it is full."""

    is_full = False

    def create(self, path: Path) -> DiskFile:  # type: ignore[override]  # a file that may fail
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return _File(self, super().create(path))


class _File:
    def __init__(self, disk: FullDisk, file: DiskFile) -> None:
        self._disk = disk
        self._file = file
        self.sync, self.close, self.truncate = file.sync, file.close, file.truncate
        self.mapped = file.mapped

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        if self._disk.is_full and position:
            self._file.write_at(data[: len(data) // 2], position)
            raise OSError(errno.ENOSPC, "No space left on device")
        self._file.write_at(data, position)


def test_files_that_begin_with_much_that_is_under_way_are_few(tmp_path: Path) -> None:
    count = 400
    settings = AttributionSettings(wait_s=0.0, file_bytes=4096)
    attributions = Attributions(tmp_path / "port", Flavor.MARIADB, settings)
    attributions.begin(at(0))
    attributions.taken(THREAD)
    for number in range(1, count + 1):
        attributions.intend(THREAD, number, [plan(f"{number}")])
        attributions.done(THREAD, number, str(gtid(number)))
    # All is under way, so each file says all again: each is about twice as long as the one before.
    numbers = [int(path.stem) for path in (tmp_path / "port").glob("*.statements")]
    assert 2 < max(numbers) < 10
    attributions.close()
    again = Attributions(tmp_path / "port", Flavor.MARIADB, settings)
    again.begin(at(0))
    again.read([group(number) for number in range(1, count + 1)], at(count))
    assert [again.find(group(number)) for number in range(1, count + 1)] == [
        plan(f"{number}") for number in range(1, count + 1)
    ]
    again.close()


def test_a_journal_cut_off_anywhere_tells_nothing_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "port"
    attributions = Attributions(folder, Flavor.MARIADB, SETTINGS)
    attributions.begin(at(0))
    attributions.taken(THREAD)
    for number in (1, 2, 3):
        attributions.intend(THREAD, number, [plan(f"{number}")])
        attributions.done(THREAD, number, str(gtid(number)), [plan(f"{number}!")])
    attributions.intend(THREAD, 4, [plan("4")])
    attributions.close()
    (path,) = folder.glob("*.statements")
    (groups,) = folder.glob("*.groups")
    data, read = path.read_bytes(), groups.read_bytes()
    most = 0
    for length in range(len(data) + 1):
        for other in folder.iterdir():
            other.unlink()
        path.write_bytes(data[:length])
        groups.write_bytes(read)
        again = Attributions(folder, Flavor.MARIADB, SETTINGS)
        again.begin(at(0))
        again.read([group(number) for number in (1, 2, 3)], at(3))
        found = [again.find(group(number)) for number in (1, 2, 3)]
        known = [each for each in found if isinstance(each, GroupPlan)]
        # The last one may be what was intended: its reply is cut off, and it was committed.
        for number, each in enumerate(known, 1):
            is_last = number == len(known)
            assert each == plan(f"{number}!") or (is_last and each == plan(f"{number}"))
        most = max(most, len(known))
        again.close()
    assert most == 3


def test_groups_that_came_before_a_kill_are_of_their_session_still(tmp_path: Path) -> None:
    before = Attributions(tmp_path / "port", Flavor.MARIADB, SETTINGS)
    before.begin(at(0))
    before.taken(THREAD, at(0))
    before.intend(THREAD, 1, [plan("one")])
    before.read([group(1)], at(1))
    before.done(THREAD, 1, str(gtid(2)))  # it made two groups, where one was foreseen
    before.close()
    after = Attributions(tmp_path / "port", Flavor.MARIADB, SETTINGS)
    after.begin(at(1))
    after.read([group(2)], at(2))
    assert isinstance(after.find(group(2)), Unattributed)
    after.close()


def test_what_a_failed_machine_left_is_doubted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left(name: str) -> Attributions:
        attributions = Attributions(tmp_path / name, Flavor.MARIADB, SETTINGS)
        attributions.begin(at(0))
        attributions.taken(THREAD)
        attributions.intend(THREAD, 1, [plan("1")])
        attributions.close()
        return attributions

    def found(name: str) -> GroupPlan | Unattributed:
        again = Attributions(tmp_path / name, Flavor.MARIADB, SETTINGS)
        again.begin(at(0))
        again.read([group(1)], at(1))
        return again.find(group(1))

    left("killed")
    assert found("killed") == plan("1")
    left("failed")
    other = statement_journal._MACHINE[:-8] + b"otherrun"
    monkeypatch.setattr(statement_journal, "_MACHINE", other)
    assert isinstance(found("failed"), Unattributed)


def test_on_a_full_disk_statements_go_as_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(statement_journal, "_RETRY_S", 0.0)
    monkeypatch.setattr(record_log, "_ROOM_BYTES", 0)
    disk = FullDisk()
    attributions = Attributions(tmp_path / "port", Flavor.MARIADB, SETTINGS, disk=disk)
    attributions.begin(at(0))
    attributions.taken(THREAD)
    attributions.intend(THREAD, 1, [plan("1")])
    disk.is_full = True
    attributions.done(THREAD, 1, str(gtid(1)))
    attributions.intend(THREAD, 2, [plan("2")])
    attributions.done(THREAD, 2, str(gtid(2)))
    assert "no room" in attributions.failure
    attributions.read([group(1), group(2)], at(2))
    assert attributions.find(group(1)) == plan("1")
    assert attributions.find(group(2)) == Unattributed(RowsReason.NOT_WRITTEN, frozenset((THREAD,)))

    disk.is_full = False
    attributions.intend(THREAD, 3, [plan("3")])
    attributions.done(THREAD, 3, str(gtid(3)))
    attributions.intend(THREAD, 4, [plan("4")])
    attributions.read((), at(2))
    assert not attributions.failure
    assert any("no room" in record.message for record in caplog.records)

    again = Attributions(tmp_path / "port", Flavor.MARIADB, SETTINGS)
    again.begin(at(2))
    again.read([group(3), group(4)], at(4))
    assert again.find(group(3)) == plan("3")
    assert again.find(group(4)) == plan("4")


def test_a_kill_while_the_disk_is_full_leaves_doubts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_log, "_ROOM_BYTES", 0)
    disk = FullDisk()
    attributions = Attributions(tmp_path / "port", Flavor.MARIADB, SETTINGS, disk=disk)
    attributions.begin(at(0))
    attributions.taken(THREAD)
    attributions.intend(THREAD, 1, [plan("1")])
    disk.is_full = True
    attributions.done(THREAD, 1, None)
    attributions.intend(THREAD, 2, [plan("2")])

    again = Attributions(tmp_path / "port", Flavor.MARIADB, SETTINGS)
    again.begin(at(0))
    again.read([group(1)], at(1))
    assert isinstance(again.find(group(1)), Unattributed)


def test_files_go_once_all_binlogs_have_their_groups(tmp_path: Path) -> None:
    settings = AttributionSettings(wait_s=0.0, file_bytes=2000)
    folder = tmp_path / "port"
    attributions = Attributions(folder, Flavor.MARIADB, settings)
    attributions.begin(at(0))
    for number in range(1, 201):
        attributions.intend(THREAD, number, [plan(f"{number}")])
        attributions.done(THREAD, number, str(gtid(number)))
        attributions.read([group(number)], at(number))
    files = sorted(path.name for path in folder.iterdir())
    assert len(files) > 10
    attributions.passed(at(100))
    fewer = sorted(path.name for path in folder.iterdir())
    assert set(fewer) < set(files)
    again = Attributions(folder, Flavor.MARIADB, settings)
    again.begin(at(100))
    for number in range(101, 201):
        assert again.find(group(number)) == plan(f"{number}")
    again.passed(at(200))
    again.intend(THREAD, 1, [plan("x")])
    again.passed(at(200))
    assert len(list(folder.iterdir())) <= 2


@pytest.mark.parametrize(
    "is_restarted",
    [
        False,
        True,
    ],
)
def test_the_journal_has_no_more_bytes_than_it_may(tmp_path: Path, *, is_restarted: bool) -> None:
    settings = AttributionSettings(wait_s=0.0, file_bytes=2000, journal_max_bytes=8000)
    folder = tmp_path / "port"
    attributions = Attributions(folder, Flavor.MARIADB, settings)
    attributions.begin(at(0))
    for number in range(1, 401):
        attributions.intend(THREAD, number, [plan(f"{number}")])
        attributions.done(THREAD, number, str(gtid(number)))
        attributions.read([group(number)], at(number))
        attributions.passed(at(0))
    assert sum(path.stat().st_size for path in folder.iterdir()) < 8000 + 2 * 2000
    if is_restarted:
        attributions.close()
        attributions = Attributions(folder, Flavor.MARIADB, settings)
        attributions.begin(at(0))
    else:
        attributions._state.findings.clear()
    found = [attributions.find(group(number)) for number in range(1, 401)]
    forgotten = Unattributed(RowsReason.FORGOTTEN, frozenset((THREAD,)))
    assert found[-1] == plan("400")
    assert found[0] == forgotten
    for number, each in enumerate(found, 1):
        assert each in (plan(f"{number}"), forgotten)


def test_long_texts_are_read_from_the_journal(tmp_path: Path) -> None:
    texts = {number: f"{number}".ljust(4 << 20) for number in range(1, 31)}
    tracemalloc.start()
    try:
        attributions = Attributions(tmp_path / "port", Flavor.MARIADB, SETTINGS)
        attributions.begin(at(0))
        held = tracemalloc.get_traced_memory()[0]
        for number, text in texts.items():
            attributions.intend(THREAD, number, [plan(text)])
            attributions.done(THREAD, number, str(gtid(number)))
            attributions.read([group(number)], at(number))
            assert attributions.find(group(number)) == plan(text)
        assert tracemalloc.get_traced_memory()[0] - held < 50 << 20
    finally:
        tracemalloc.stop()
    assert all(attributions.find(group(number)) == plan(text) for number, text in texts.items())


WRITER = """
import sys
from pathlib import Path
from binlane.log.codec.types import Flavor
from binlane.live.port.attribution_state import ReadGroup
from binlane.live.port.attribution_settings import AttributionSettings
from binlane.live.port.attributions import Attributions
from tests.unit.live.port.test_journal import THREAD, at, group, gtid, plan

settings = AttributionSettings(wait_s=0.0, file_bytes=3000)
attributions = Attributions(Path(sys.argv[1]), Flavor.MARIADB, settings)
attributions.begin(at(0))
attributions.taken(THREAD)
number = 0
while True:
    number += 1
    attributions.intend(THREAD, number, [plan(f"{number}")])
    print("intended", number, flush=True)
    attributions.done(THREAD, number, str(gtid(number)))
    print("done", number, flush=True)
    if number > 2:
        attributions.read([group(number - 2)], at(number - 2))
        attributions.passed(at(max(0, number - 60)))
        print("read", number - 2, flush=True)
"""


@pytest.mark.parametrize("delay_s", [0.01, 0.03, 0.05, 0.08])
def test_a_process_that_is_killed_leaves_all_that_it_said(tmp_path: Path, delay_s: float) -> None:
    folder = tmp_path / "port"
    out = tmp_path / "out"
    with out.open("wb") as told:
        process = subprocess.Popen([sys.executable, "-c", WRITER, folder], stdout=told)
        deadline_s = time.monotonic() + 30
        while not out.stat().st_size and time.monotonic() < deadline_s:
            time.sleep(0.005)
        time.sleep(delay_s)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=30)
    last = {"intended": 0, "done": 0, "read": 0}
    for line in out.read_text().splitlines()[:-1]:
        word, count = line.split()
        last[word] = int(count)
    assert last["done"] > 2
    again = Attributions(folder, Flavor.MARIADB, SETTINGS)
    first = max(1, last["read"] - 20)
    again.begin(at(first - 1))
    end = last["intended"]
    again.read([group(number) for number in range(first, end + 1)], at(end))
    for number in range(first, end + 1):
        assert again.find(group(number)) == plan(f"{number}")
