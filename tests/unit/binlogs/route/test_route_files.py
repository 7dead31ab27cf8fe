"""Runs of `route`: what they make, what they refuse, and how the next one goes on."""

from __future__ import annotations

import gzip
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from binlane.binlogs.route.job import route_files
from binlane.binlogs.route.route_record import RECORD_FILE, Record
from binlane.binlogs.route.route_request import RouteRequest
from binlane.binlogs.route.schedule import Schedule, ScheduledChange
from binlane.binlogs.routing.password_hashing import with_hashes
from binlane.binlogs.store.disk import DirectoryLock
from binlane.binlogs.store.stored_groups import read_groups
from binlane.binlogs.store.verify import verify
from binlane.errors import (
    CodecError,
    ConfigError,
    CorruptStoreError,
    StoreError,
    StoreLockedError,
    UnsupportedError,
)
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.event import Event, checksum
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent, PreviousGtidsEvent
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.walk import walk
from binlane.positions import Gtid
from tests.encryption import keys_of
from tests.fixture_sets import fixture_names
from tests.routed_files import definitions, outputs, request, routed, written

SETS = [
    name
    for name in (*fixture_names("md"), *fixture_names("my97"))
    if not name.endswith(("encrypted", "netstream", "bigrow", "bigcommit"))
]


def groups(paths: list[Path]) -> list[EventGroup]:
    return [group for group in read_groups(paths) if not group.is_control and group.is_complete]


def source_format(path: str | Path) -> Format:
    body = next(walk([Path(path).read_bytes()], file="b")).body
    assert isinstance(body, FormatDescriptionEvent)
    return body.format


def files(out: Path, name: str = "b1") -> list[Path]:
    return sorted(path for path in (out / name).iterdir() if path.suffix != ".index")


def bodies(found: list[EventGroup]) -> list[list[object]]:
    """What event groups say, but for what holds in one file only."""
    return [[_timeless(event) for event in group.events] for group in found]


def _timeless(event: Event) -> object:
    if isinstance(event.body, MysqlGtidEvent):
        return replace(event.body, last_committed=0, sequence_number=0, transaction_length=0)
    return event.body


@pytest.mark.parametrize("name", SETS)
def test_an_unscoped_binlog_holds_all_event_groups(name: str, tmp_path: Path) -> None:
    paths = written(name, tmp_path / "in")
    report = routed(paths, tmp_path / "out", "LOG ALL")
    assert report.fault is None
    format_ = source_format(paths[0])
    expected = [with_hashes(group, format_) for group in groups([Path(path) for path in paths])]
    found = groups(files(tmp_path / "out"))
    assert [group.gtid for group in found] == [group.gtid for group in expected]
    assert bodies(found) == bodies(expected)
    assert list(verify(files(tmp_path / "out"))) == [
        fault for fault in verify(files(tmp_path / "out")) if "is not after" in fault.what
    ]


@pytest.mark.parametrize("name", ["md1011_rotation", "my97_rotation"])
def test_files_rotate_and_say_what_was_done_before(name: str, tmp_path: Path) -> None:
    paths = written(name, tmp_path / "in")
    routed(paths, tmp_path / "out", "LOG ALL", max_binlog_size=8192)
    made = files(tmp_path / "out")
    assert len(made) > 2
    assert list(verify([tmp_path / "out/b1"])) == []
    for path, following in zip(made, [*made[1:], None], strict=True):
        events = list(walk([path.read_bytes()], file=path.name))
        assert isinstance(events[0].body, FormatDescriptionEvent)
        assert isinstance(events[1].body, GtidListEvent | PreviousGtidsEvent)
        assert not events[0].header.flags & 1
        if following is not None:
            assert isinstance(events[-1].body, RotateEvent)
            assert events[-1].body.file == following.name


def test_the_clock_of_mysql_grows_over_files(tmp_path: Path) -> None:
    paths = written("my97_rotation", tmp_path / "in")
    routed(paths, tmp_path / "out", "LOG ALL")
    counted = 0
    for path in files(tmp_path / "out"):
        clocks = [
            (event.body.last_committed or 0, event.body.sequence_number or 0)
            for event in walk([path.read_bytes()], file="x")
            if isinstance(event.body, MysqlGtidEvent)
        ]
        assert all(before[1] < after[1] for before, after in pairwise(clocks))
        assert all(committed < sequence for committed, sequence in clocks)
        counted += len(clocks)
    assert counted > 40


def test_a_run_of_the_same_files_adds_nothing(tmp_path: Path) -> None:
    paths = written("md1011_rotation", tmp_path / "in")
    routed(paths, tmp_path / "out", "LOG(shop.t)")
    before = outputs(tmp_path / "out")
    report = routed(paths, tmp_path / "out", "LOG(shop.t)")
    assert report.counts["b1"].event_groups == 0
    assert outputs(tmp_path / "out") == before


@pytest.mark.parametrize("name", ["md1011_rotation", "my97_rotation"])
@pytest.mark.parametrize("again", ["all", "new"])
def test_a_run_goes_on_with_files_that_came_since(name: str, again: str, tmp_path: Path) -> None:
    paths = written(name, tmp_path / "in")
    routed(paths[:3], tmp_path / "out", "LOG ALL")
    report = routed(paths if again == "all" else paths[3:], tmp_path / "out", "LOG ALL")
    assert not [note for note in report.notes if "was done before" in note]
    expected = groups([Path(path) for path in paths])
    assert [group.gtid for group in groups(files(tmp_path / "out"))] == [g.gtid for g in expected]


def test_a_file_that_grew_is_read_on(tmp_path: Path) -> None:
    (path,) = written("md1011_txn", tmp_path / "in")
    whole = Path(path).read_bytes()
    expected = groups([Path(path)])
    Path(path).write_bytes(whole[: expected[4].next_position])
    routed((path,), tmp_path / "out", "LOG ALL")
    Path(path).write_bytes(whole)
    routed((path,), tmp_path / "out", "LOG ALL")
    assert bodies(groups(files(tmp_path / "out"))) == bodies(expected)


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn"])
def test_damage_ends_a_run_behind_whole_groups_and_the_next_goes_on(
    name: str, tmp_path: Path, *, fast: bool
) -> None:
    (path,) = written(name, tmp_path / "in")
    whole = Path(path).read_bytes()
    expected = groups([Path(path)])
    broken = bytearray(whole)
    at = expected[5].events[-1].position + 10
    broken[at] ^= 0xFF
    Path(path).write_bytes(broken)
    report = routed((path,), tmp_path / "out", "LOG ALL", uses_kernels=fast)
    assert report.fault is not None
    assert (report.fault.file, report.fault.position) == (path, expected[5].events[-1].position)
    assert bodies(groups(files(tmp_path / "out"))) == bodies(expected[:5])
    assert list(verify(files(tmp_path / "out"))) == []
    Path(path).write_bytes(whole)
    assert routed((path,), tmp_path / "out", "LOG ALL", uses_kernels=fast).fault is None
    assert bodies(groups(files(tmp_path / "out"))) == bodies(expected)


def test_a_run_goes_on_behind_damage_that_stays(tmp_path: Path) -> None:
    (path,) = written("md1011_txn", tmp_path / "in")
    expected = groups([Path(path)])
    broken = bytearray(Path(path).read_bytes())
    broken[expected[5].position + 30] ^= 0xFF
    Path(path).write_bytes(broken)
    assert routed((path,), tmp_path / "out", "LOG ALL").fault is not None
    behind = request((path,), tmp_path / "out", "LOG ALL", start_position=expected[6].position)
    assert route_files(behind).fault is None
    found = groups(files(tmp_path / "out"))
    assert bodies(found) == bodies([*expected[:5], *expected[6:]])


def test_a_group_without_an_end_is_left_out_and_told(tmp_path: Path) -> None:
    paths = written("md1011_crash_inuse", tmp_path / "in")
    expected = groups([Path(path) for path in paths])
    (last,) = [group for group in read_groups(paths[-1:]) if group.events][-1:]
    data = Path(paths[-1]).read_bytes()
    Path(paths[-1]).write_bytes(data[: last.events[-1].position])
    report = routed(paths, tmp_path / "out", "LOG ALL")
    assert f"{paths[-1]}:{last.position}: an event group has no end" in report.notes[-1]
    assert bodies(groups(files(tmp_path / "out"))) == bodies(expected[:-1])


def test_what_is_missing_between_files_is_told(tmp_path: Path) -> None:
    paths = written("md1011_rotation", tmp_path / "in")
    routed(paths[:2], tmp_path / "out", "LOG ALL")
    report = routed(paths[4:5], tmp_path / "out", "LOG ALL")
    assert "was done before this file and is in no file before it" in report.notes[-1]


def test_scopes_change_behind_a_gtid(tmp_path: Path) -> None:
    paths = written("md1011_txn", tmp_path / "in")
    expected = groups([Path(path) for path in paths])
    after = expected[6].gtid
    assert isinstance(after, Gtid)
    schedule = Schedule(
        definitions("LOG ALL"), (ScheduledChange(after, definitions("IGNORE ALL", "LOG ALL")),)
    )
    asked = RouteRequest(paths=paths, schedule=schedule, out=tmp_path / "out")
    route_files(asked)
    assert bodies(groups(files(tmp_path / "out"))) == bodies(expected[:7])
    assert bodies(groups(files(tmp_path / "out", "b2"))) == bodies(expected[7:])
    assert route_files(asked).counts["b2"].event_groups == 0


def test_nothing_is_written_if_a_file_is_no_binlog(tmp_path: Path) -> None:
    paths = written("md1011_txn", tmp_path / "in")
    other = tmp_path / "in/other"
    other.write_bytes(b"no binlog")
    with pytest.raises(CodecError, match="no binlog file"):
        routed((*paths, str(other)), tmp_path / "out", "LOG ALL")
    with pytest.raises(StoreError, match="cannot be read"):
        routed((*paths, str(tmp_path / "none")), tmp_path / "out", "LOG ALL")
    with pytest.raises(ConfigError, match="standard input"):
        routed(("-",), tmp_path / "out", "LOG ALL")
    mysql = written("my97_txn", tmp_path / "mysql")
    with pytest.raises(ConfigError, match="so they are not one log"):
        routed((*paths, *mysql), tmp_path / "out", "LOG ALL")
    with pytest.raises(ConfigError, match=r"\.000001 is given twice"):
        routed((*paths, paths[0]), tmp_path / "out", "LOG ALL")
    copy = tmp_path / "copy" / Path(paths[0]).name
    copy.parent.mkdir()
    copy.write_bytes(Path(paths[0]).read_bytes())
    with pytest.raises(ConfigError, match="is the same file as"):
        routed((*paths, str(copy)), tmp_path / "out", "LOG ALL")
    assert not (tmp_path / "out").exists()


def test_cascades_that_are_not_followed_are_told(tmp_path: Path) -> None:
    report = routed(
        written("md1011_txn", tmp_path / "in"), tmp_path / "out", "LOG(shop.a), FOLLOW CASCADES"
    )
    (note,) = report.notes
    assert note.startswith("binlog b1: FOLLOW CASCADES does nothing here")


def test_a_directory_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    paths = written("md1011_txn", tmp_path / "in")
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious").write_text("mine")
    with pytest.raises(ConfigError, match="holds something else: precious"):
        routed(paths, out, "LOG ALL")
    assert [path.name for path in out.iterdir()] == ["precious"]
    (out / "precious").unlink()
    (out / "b1").mkdir()
    (out / "b1/b1.000001").write_text("mine")
    with pytest.raises(ConfigError, match="holds something else: b1"):
        routed(paths, out, "LOG ALL")
    assert (out / "b1/b1.000001").read_text() == "mine"


def test_other_definitions_are_refused(tmp_path: Path) -> None:
    paths = written("md1011_txn", tmp_path / "in")
    routed(paths, tmp_path / "out", "LOG(shop.a)")
    before = outputs(tmp_path / "out")
    for clauses in (("LOG(shop.b)",), ("LOG(shop.a)", "LOG ALL")):
        with pytest.raises(ConfigError, match=r"b\d is .* now"):
            routed(paths, tmp_path / "out", *clauses)
    assert outputs(tmp_path / "out") == before


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    paths = written("md1011_txn", tmp_path / "in")
    routed(paths, tmp_path / "out", "LOG ALL")
    lock = DirectoryLock(tmp_path / "out")
    with pytest.raises(StoreLockedError):
        routed(paths, tmp_path / "out", "LOG ALL")
    lock.release()


@pytest.mark.parametrize("text", ["", "{", '{"version": 2}', "[]", '{"version": 1}'])
def test_a_record_that_cannot_be_read_is_an_error(text: str, tmp_path: Path) -> None:
    paths = written("md1011_txn", tmp_path / "in")
    routed(paths, tmp_path / "out", "LOG ALL")
    (tmp_path / "out" / RECORD_FILE).write_text(text)
    with pytest.raises(CorruptStoreError, match="record of what was routed"):
        routed(paths, tmp_path / "out", "LOG ALL")
    assert Record.read(tmp_path) is None


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    paths = written("md1011_txn", tmp_path / "in")
    routed(paths, tmp_path / "out", "LOG ALL", max_binlog_size=4096)
    (tmp_path / "out/b1/b1.000001").unlink()
    with pytest.raises(CorruptStoreError, match="the file is missing"):
        routed(paths, tmp_path / "out", "LOG ALL", max_binlog_size=4096)


@pytest.mark.parametrize("name", ["md1011_encrypted", "my97_encrypted"])
def test_encrypted_files_come_out_plain(name: str, tmp_path: Path) -> None:
    paths = written(name, tmp_path / "in")
    keys = keys_of(name)
    with pytest.raises(UnsupportedError):
        routed(paths, tmp_path / "out", "LOG ALL")
    assert not (tmp_path / "out").exists()
    asked = request(paths, tmp_path / "out", "LOG ALL", "LOG(shop.t)", keys=keys)
    assert route_files(asked).fault is None
    expected = [
        group
        for group in read_groups(paths, keys=keys)
        if not group.is_control and group.is_complete
    ]
    assert len(expected) > 4
    assert bodies(groups(files(tmp_path / "out"))) == bodies(expected)
    assert groups(files(tmp_path / "out", "b2"))
    assert route_files(asked).counts["b1"].event_groups == 0


@pytest.mark.parametrize("name", ["md1011_rotation", "my97_rotation"])
def test_compressed_files_are_read_as_they_are(name: str, tmp_path: Path) -> None:
    paths = written(name, tmp_path / "in")
    packed = []
    for path in paths:
        Path(f"{path}.gz").write_bytes(gzip.compress(Path(path).read_bytes()))
        packed.append(f"{path}.gz")
    routed(tuple(packed), tmp_path / "packed", "LOG ALL")
    routed(paths, tmp_path / "plain", "LOG ALL")
    assert outputs(tmp_path / "packed") == outputs(tmp_path / "plain")
    # The names are those of the plain files, so that one form may follow the other.
    assert routed(paths, tmp_path / "packed", "LOG ALL").counts["b1"].event_groups == 0


@pytest.mark.parametrize("fast", [True, False])
def test_damage_that_one_scope_finds_leaves_the_group_out_of_all(
    tmp_path: Path, *, fast: bool
) -> None:
    (path,) = written("my97_format_row", tmp_path / "in")
    data = bytearray(Path(path).read_bytes())
    events = list(walk([bytes(data)], file="x"))
    damaged = [event for event in events if getattr(event.body, "query", b"") == b"BEGIN"][6]
    # The time zone or character set of its context says that it is longer than all there is.
    start = damaged.position + 19 + 13
    context = data[start : start + 20].index(b"\x06\x03std")
    data[start + context + 1] = 0xFF
    end = damaged.next_position - 4
    data[end : end + 4] = checksum(bytes(data[damaged.position : end])).to_bytes(4, "little")
    Path(path).write_bytes(data)
    scopes = ("LOG ALL", "LOG(shop.ai)")
    report = routed((path,), tmp_path / "out", *scopes, uses_kernels=fast)
    assert report.fault is not None
    assert (report.fault.file, report.fault.position) == (path, damaged.position)
    before = [group for group in groups_before(events, damaged.position) if not group.is_control]
    assert bodies(groups(files(tmp_path / "out"))) == bodies(before)
    again = routed((path,), tmp_path / "out", *scopes, uses_kernels=fast)
    assert again.fault is not None
    assert bodies(groups(files(tmp_path / "out"))) == bodies(before)


def groups_before(events: list[Event], position: int) -> list[EventGroup]:
    """The whole groups that end before a position."""
    return [
        group
        for group in group_events(events, file="x")
        if group.is_complete and group.next_position <= position
    ]
