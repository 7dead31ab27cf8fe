"""Scoped binlogs are held against the full log: what is lost, doubled or moved is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from binlane.binlogs.routing.event_routing import route
from binlane.binlogs.routing.routed_group import RoutedGroup
from binlane.binlogs.routing.row_images import ImageCutter
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.verify import verify_against
from binlane.errors import ConfigError
from binlane.log.codec.compression import compress_record
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.rows import RowsEvent, UpdateRowsEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.positions import nothing_done
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import CreateBinlog, create
from binlane.statements.sql.servers import RowImage
from tests.fixture_sets import fixture_names, fixture_set

_NOT_ROUTED = ("encrypted", "bigrow", "md1011_incident", "netstream", "bigcommit", "live_copy")
SETS = [
    name
    for name in (*fixture_names("md"), *fixture_names("my97"))
    if not name.endswith(_NOT_ROUTED)
]
# What no scope can hold: it is told, and is all that is told.
LEFT_OUT = ("TRIGGER", "VIEW", "GRANT")

Parts = list[tuple[str, RoutedGroup]]


def slow(name: str) -> ParameterSet:
    return pytest.param(name, marks=pytest.mark.slow)


class Split:
    """A log of a fixture, and its groups as two scoped binlogs get them."""

    def __init__(self, name: str, folder: Path, *clauses: str) -> None:
        self.paths = []
        groups: list[EventGroup] = []
        for file, data in fixture_set(name).binlogs:
            self.paths.append(folder / file)
            self.paths[-1].write_bytes(data)
            groups += group_events(walk([data], file=file), file=file)
        head = groups[0].events[0].body
        assert isinstance(head, FormatDescriptionEvent)
        self.head = head
        self.groups = [group for group in groups if not group.is_control and group.is_complete]
        self.folder = folder
        table = min(self.tables(), default=TableName("no", "table"))
        self.definitions = [
            definition(f"b{number}", clause.format(table), number)
            for number, clause in enumerate(clauses or ("LOG({})", "IGNORE({})"), start=1)
        ]

    def tables(self) -> set[TableName]:
        found = set()
        for group in self.groups:
            for _, _, table_map in rows_with_tables(
                group.events, file="", format_=self.head.format
            ):
                found.add(TableName(table_map.database, table_map.table))
        return found

    def parts(self) -> Parts:
        return [
            (wanted.name, routed)
            for group in self.groups
            for wanted in self.definitions
            if (routed := route(group, wanted, self.head.format).group)
        ]

    def differences(
        self, parts: Iterable[tuple[str, RoutedGroup]], *, has_scopes: bool = False
    ) -> list[str]:
        """What there is to tell of binlogs with these groups, scopes given or not."""
        settings = StoreSettings(max_binlog_size_bytes=8192, sync_binlog=0)
        with Store.open(self.folder / "data", settings) as store:
            binlogs = {
                wanted.name: store.create_binlog(
                    wanted,
                    start=nothing_done(self.head.format.flavor.value),
                    format_description=self.head,
                    server_id=1,
                    timestamp=1_700_000_000,
                )
                for wanted in self.definitions
            }
            for name, group in parts:
                binlogs[name].append(group)
            for binlog in binlogs.values():
                binlog.sync()
        definitions = self.definitions if has_scopes else None
        found = verify_against([self.folder / "data"], self.paths, definitions=definitions)
        return [str(fault).removeprefix(f"{self.folder}/") for fault in found]


def definition(name: str, clauses: str, log_id: int) -> Definition:
    statement = parse_binlog_statement(f"CREATE BINLOG '{name}' {clauses}")
    assert isinstance(statement, CreateBinlog)
    return create(statement, log_id)


@pytest.mark.parametrize("name", [*SETS[::6], *map(slow, sorted(set(SETS) - {*SETS[::6]}))])
def test_a_scope_and_the_rest_are_the_full_log(tmp_path: Path, name: str) -> None:
    split = Split(name, tmp_path)
    parts = split.parts()
    found = split.differences(parts)
    has_incident = any(event.header.type_code == 26 for _, part in parts for event in part.events)
    for difference in found:
        assert has_incident or any(what in difference for what in LEFT_OUT), difference


@pytest.mark.parametrize("name", [*SETS[::6], *map(slow, sorted(set(SETS) - {*SETS[::6]}))])
def test_scopes_may_leave_things_out(tmp_path: Path, name: str) -> None:
    split = Split(name, tmp_path, "LOG({})")
    assert split.differences(split.parts(), has_scopes=True) == []


@pytest.mark.parametrize("fixture", ["md1011_txn", "my97_txn", "md118_txn"])
def test_what_a_scope_holds_and_the_binlog_does_not_is_told(tmp_path: Path, fixture: str) -> None:
    lost, more = "is not in binlog b1, in whose scope it is", "is not in the full log, or not here"
    for number, damage in enumerate((lose, lose_rows, double_rows, change_rows)):
        (tmp_path / str(number)).mkdir()
        split = Split(fixture, tmp_path / str(number), "LOG({})")
        parts = split.parts()
        changing = with_rows(parts)
        damaged = damage(parts, changing[len(changing) // 2])
        found = split.differences(damaged, has_scopes=True)
        assert found
        assert all(lost in line or more in line for line in found), found


def test_what_is_out_of_a_scope_and_in_the_binlog_is_told(tmp_path: Path) -> None:
    split = Split("md1011_txn", tmp_path, "LOG({})")
    whole = definition("b1", "LOG ALL", 1)
    parts = [
        (whole.name, routed)
        for group in split.groups
        if (routed := route(group, whole, split.head.format).group)
    ]
    found = split.differences(parts, has_scopes=True)
    assert found
    assert all(line.endswith("is in binlog b1, out of its scope") for line in found)


def test_a_binlog_without_a_definition_is_an_error(tmp_path: Path) -> None:
    split = Split("md1011_txn", tmp_path)
    split.differences(split.parts())
    with pytest.raises(ConfigError, match="no definition of the binlog b2"):
        list(verify_against([tmp_path / "data"], split.paths, definitions=split.definitions[:1]))


def test_scopes_may_overlap(tmp_path: Path) -> None:
    split = Split("md1011_txn", tmp_path, "LOG ALL", "LOG({})", "IGNORE({})")
    assert split.differences(split.parts()) == []


IMAGES = ("MINIMAL", "NOBLOB", "FULL_NODUP")


WITH_KEYS = ["md1011_metadata_full", "my97_metadata_full", "md118_metadata_full"]
"""Logs that tell the keys of their tables."""


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("fixture", WITH_KEYS)
@pytest.mark.parametrize("has_scopes", [False, True])
def test_smaller_row_images_are_what_they_leave_of_the_full_log(
    tmp_path: Path, fixture: str, image: str, *, has_scopes: bool
) -> None:
    split = Split(fixture, tmp_path, f"LOG({{}}), ROW_IMAGE='{image}'", "IGNORE({})")
    parts = split.parts()
    assert [one for name, one in parts if name == "b1" and cut(one, image, split) != one]
    # The second has them by the choice of sessions.
    parts = [(name, replace(one, image=RowImage(image))) for name, one in parts]
    assert split.differences(parts, has_scopes=has_scopes) == []


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("fixture", WITH_KEYS)
def test_rows_of_large_groups_are_cut_as_they_are_read(
    tmp_path: Path, fixture: str, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("binlane.binlogs.store.verify.contents._KEPT_BYTES_MAX", 0)
    split = Split(fixture, tmp_path, f"LOG({{}}), ROW_IMAGE='{image}'", "IGNORE({})")
    assert split.differences(split.parts()) == []


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("fixture", WITH_KEYS)
def test_smaller_row_images_that_are_others_are_told(
    tmp_path: Path, fixture: str, image: str
) -> None:
    for number, change in enumerate((change_value, claim_another_column, leave_out_a_column)):
        (tmp_path / str(number)).mkdir()
        split = Split(fixture, tmp_path / str(number), "LOG ALL")
        found, is_changed = [], False
        for name, part in split.parts():
            events = cut(part, image, split).events
            changed = events if is_changed else tuple(change(one) for one in events)
            is_changed |= changed != events
            found.append((name, replace(part, events=changed)))
        assert is_changed
        more, lost = split.differences(found)
        assert "is not in the full log, or not here" in more
        assert "is in no binlog" in lost


def cut(part: RoutedGroup, image: str, split: Split) -> RoutedGroup:
    cutter = ImageCutter(RowImage(image), uses_kernels=False)
    return replace(part, events=cutter.events(part.events, split.head.format))


def change_value(event: Event) -> Event:
    if not isinstance(event.body, UpdateRowsEvent):
        return event
    images = event.body.images
    return replace(event, body=replace(event.body, images=images[:-1] + bytes((images[-1] ^ 1,))))


def claim_another_column(event: Event) -> Event:
    if not isinstance(event.body, UpdateRowsEvent):
        return event
    present = bytearray(event.body.columns_present)
    present[0] ^= 0b11
    return replace(event, body=replace(event.body, columns_present=bytes(present)))


def leave_out_a_column(event: Event) -> Event:
    body = event.body
    if not isinstance(body, UpdateRowsEvent) or body.columns_present_after is None:
        return event
    after = body.columns_present_after
    return replace(event, body=replace(body, columns_present_after=bytes(len(after)), images=b""))


def with_rows(parts: Parts) -> list[int]:
    """Which of the parts change rows."""
    return [
        index
        for index, (_, part) in enumerate(parts)
        if any(isinstance(event.body, RowsEvent) for event in part.events)
    ]


def without_first_rows(part: RoutedGroup) -> RoutedGroup:
    first = next(event for event in part.events if isinstance(event.body, RowsEvent))
    return replace(part, events=tuple(event for event in part.events if event is not first))


def lose(parts: Parts, index: int) -> Parts:
    return parts[:index] + parts[index + 1 :]


def lose_rows(parts: Parts, index: int) -> Parts:
    name, part = parts[index]
    return [*parts[:index], (name, without_first_rows(part)), *parts[index + 1 :]]


def double_rows(parts: Parts, index: int) -> Parts:
    name, part = parts[index]
    events: list[Event] = []
    for event in part.events:
        events += [event, event] if isinstance(event.body, RowsEvent) else [event]
        if isinstance(event.body, RowsEvent):
            unended = replace(event.body, flags=event.body.flags & ~1)
            events[-2] = replace(event, body=unended)
    doubled = replace(part, events=tuple(events))
    return [*parts[:index], (name, doubled), *parts[index + 1 :]]


def _changed(body: RowsEvent) -> bytes:
    images = body.plain_images[::-1]
    return compress_record(images) if body.is_compressed else images


def change_rows(parts: Parts, index: int) -> Parts:
    name, part = parts[index]
    events = tuple(
        replace(event, body=replace(event.body, images=_changed(event.body)))
        if isinstance(event.body, RowsEvent)
        else event
        for event in part.events
    )
    return [*parts[:index], (name, replace(part, events=events)), *parts[index + 1 :]]


@pytest.mark.parametrize(
    "fixture", ["md1011_txn", "my97_txn", "my97_compressed", "md1011_compressed"]
)
@pytest.mark.parametrize("damage", [lose, lose_rows, double_rows, change_rows])
def test_what_is_not_as_in_the_full_log_is_told(
    tmp_path: Path, fixture: str, damage: Callable[[Parts, int], Parts]
) -> None:
    split = Split(fixture, tmp_path)
    parts = split.parts()
    changing = with_rows(parts)
    damaged = damage(parts, changing[len(changing) // 2])
    found = split.differences(damaged)
    lost, more = "is in no binlog", "is not in the full log, or not here"
    assert found
    assert all(lost in line or more in line for line in found), found
    assert any(lost in line for line in found) or damage is double_rows
    assert any(more in line for line in found) == (damage in {double_rows, change_rows})


def test_a_loss_that_another_binlog_makes_up_for_is_told(tmp_path: Path) -> None:
    split = Split("md1011_txn", tmp_path, "LOG ALL", "LOG({})")
    parts = split.parts()
    scoped = [index for index in with_rows(parts) if parts[index][0] == "b2"]
    (difference,) = split.differences(lose(parts, scoped[-1]))
    assert difference.startswith("binlog.00000")
    assert difference.endswith("is not in binlog b2, which has those before it")


def test_changes_that_stray_into_another_binlog_are_told(tmp_path: Path) -> None:
    split = Split("md1011_txn", tmp_path)
    parts = split.parts()
    own = [index for index in with_rows(parts) if parts[index][0] == "b1"]
    _, stray = parts[own[-1]]
    (difference,) = split.differences([*parts[: own[-1] + 1], ("b2", stray), *parts[own[-1] + 1 :]])
    assert "is in binlog b2, which lacks those of" in difference


def test_a_group_that_the_full_log_does_not_have_is_told(tmp_path: Path) -> None:
    split = Split("md1011_txn", tmp_path)
    parts = split.parts()
    name, last = parts[-1]
    gtid_event, *rest = last.events
    assert isinstance(gtid_event.body, GtidEvent)
    assert last.gtid is not None
    body = replace(gtid_event.body, sequence=10_000)
    foreign = RoutedGroup(
        gtid=replace(last.gtid, sequence=10_000),
        events=(replace(gtid_event, body=body), *rest),
    )
    (difference,) = split.differences([*parts, (name, foreign)])
    assert "GTID 0-1-10000 is not in the full log" in difference


def test_logs_without_gtids_go_by_what_groups_do(tmp_path: Path) -> None:
    split = Split("my97_format_row", tmp_path)
    assert all(group.gtid is None for group in split.groups)
    parts = split.parts()
    changing = with_rows(parts)
    name, part = parts[changing[3]]
    found = split.differences([*lose(parts, changing[-2]), (name, part)])
    assert any("is in no binlog" in line for line in found)
    assert any("the event group with" in line for line in found)


def test_damage_ends_the_comparison(tmp_path: Path) -> None:
    split = Split("md1011_txn", tmp_path)
    path = split.paths[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    *_, fault = split.differences(split.parts())
    assert "cannot be compared: checksum is" in fault
