"""Binlogs of statements have them as their sessions said, and rows wherever these said nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from binlane.capture.source_facts import SourceFacts
from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.event import Event
from binlane.codec.format import MAGIC, Format
from binlane.codec.query import QueryEvent
from binlane.codec.rows import RowsEvent, TableMapEvent
from binlane.codec.types import EventType, Flavor, HeaderFlag
from binlane.errors import StoreError
from binlane.grouping.event_group import EventGroup, group_events
from binlane.grouping.placing import place, place_group
from binlane.grouping.walk import walk
from binlane.kernels.load import is_compiled
from binlane.names import TableName
from binlane.port.attributions import Attributions, AttributionSettings
from binlane.port.lane_groups import Reason
from binlane.port.lanes import SERVER_ID_FIRST
from binlane.port.settings import Bypass
from binlane.positions import AnyGtid, Gtid, GtidPosition
from binlane.routing.plan import EncodedEvent, Generated, GroupPlan, RowsPiece, Text, basis_of
from binlane.routing.planned import MARKS, CutGroup, cut_group
from binlane.routing.planned_spans import RawGroup
from binlane.service.outputs import Output
from binlane.service.router import Router
from binlane.service.substitution import PAST_THE_PORT, Substitution
from binlane.store.live import LiveBinlog
from binlane.store.reading import read_groups
from binlane.store.settings import StoreSettings
from binlane.store.store import Store
from tests.fixture_sets import fixture_set
from tests.groups import source_format
from tests.routed_files import definitions
from tests.unit.service.test_runs import after, items_of, never

_SCOPES = (
    "LOG ALL, FORMAT='STATEMENT'",
    "LOG ALL, FORMAT='MIXED'",
    "LOG ALL, FORMAT='ROW'",
    "LOG(shop), FORMAT='STATEMENT'",
)
_LANE = SERVER_ID_FIRST + 256  # of a source with server id 1
_PATIENCE_S = 0.2

pytestmark = pytest.mark.skipif(
    not is_compiled(("route", "scan")), reason="the kernels are not compiled here"
)


def facts() -> SourceFacts:
    variables = {"version": "10.11.19-MariaDB-log", "server_id": "1"}
    return SourceFacts.of(variables)


@dataclass
class Source:
    """A log whose groups come on lanes.

    Attributes:
        path: The file.
        format: Of it.
        groups: In it.
    """

    path: Path
    format: Format
    groups: list[EventGroup]

    @classmethod
    def of(cls, name: str, directory: Path, *, lanes: int, marks: Sequence[int] = ()) -> Source:
        """The log of a fixture set, with each group on one of some lanes; 0 leaves them alone.

        Args:
            name: Of the set.
            directory: For the file.
            lanes: How many.
            marks: Groups whose rows become those of marks, by number.
        """
        first: Event | None = None
        made: list[EventGroup] = []
        for file, data in fixture_set(name).binlogs:
            for group in group_events(walk([data], file=file), file=file):
                if isinstance(group.events[0].body, FormatDescriptionEvent):
                    first = first or group.events[0]
                elif not group.is_control and group.is_complete:
                    made.append(_on_lane(group, len(made), lanes, is_mark=len(made) in marks))
        assert first is not None
        assert isinstance(first.body, FormatDescriptionEvent)
        written = bytearray(MAGIC) + place(first, len(MAGIC), first.body.format)
        for group in made:
            written += place_group(group.events, len(written), first.body.format)
        path = directory / "binlog.000001"
        path.write_bytes(written)
        return cls(path, first.body.format, made)


def _on_lane(group: EventGroup, number: int, lanes: int, *, is_mark: bool) -> EventGroup:
    events = group.events
    if lanes:
        server_id = _LANE + number % lanes
        events = tuple(
            replace(one, header=replace(one.header, server_id=server_id)) for one in events
        )
    if is_mark:
        events = tuple(
            replace(one, body=replace(one.body, database=MARKS.database, table=MARKS.table))
            if isinstance(one.body, TableMapEvent)
            else one
            for one in events
        )
    assert isinstance(group.gtid, Gtid)
    return replace(
        group, events=events, gtid=replace(group.gtid, server_id=events[0].header.server_id)
    )


def text(tables: Sequence[TableName]) -> Text:
    """A statement on some tables."""
    names = ", ".join(map(str, tables))
    body = QueryEvent(
        thread_id=7,
        execution_time=0,
        error_code=0,
        status_vars=b"",
        database=b"shop",
        query=f"UPDATE {names} SET a = 1".encode(),
    )
    encoded = EncodedEvent(EventType.QUERY, body.encode(source_format().format))
    return Text((encoded,), 0)


def plan_of(group: EventGroup, format_: Format, outputs: Sequence[Output]) -> GroupPlan | None:
    """A plan by which binlogs of statements have one text for each piece of rows of a group."""
    cut = cut_group(group, format_)
    if not isinstance(cut, CutGroup) or not cut.pieces:
        return None
    sections = tuple((RowsPiece(tuple(one.mapped), ()),) for one in cut.pieces)
    texts = tuple(
        text(sorted(one.changed))._replace(section=number) for number, one in enumerate(cut.pieces)
    )
    named = [one for one in outputs if one.binlog.definition.logging_mode.value != "ROW"]
    return GroupPlan(
        sections=sections,
        binlogs={one.name: texts for one in named},
        bases={one.name: basis_of(one.binlog.definition) for one in named},
    )


@dataclass
class Run:
    """Binlogs that are fed from a source whose sessions say what they do."""

    store: Store
    outputs: list[Output]
    attributions: Attributions
    substitution: Substitution
    router: Router
    faults: list[tuple[str, str]] = field(default_factory=list)

    def take(self, source: Source, window_bytes: int = 1 << 20, held_max: int = 1 << 26) -> None:
        for item in items_of((str(source.path),), window_bytes, held_max):
            assert self.router.position is not None
            fed = [one for one in self.outputs if not one.failure]
            self.router.take(item, after(item, self.router.position), fed, self.fault)

    def fault(self, output: Output, error: Exception) -> None:
        if not isinstance(error, StoreError):
            never(output, error)
        output.failure = str(error)

    def wait(self) -> None:
        deadline_s = time.monotonic() + 10
        while self.router.is_holding and time.monotonic() < deadline_s:
            time.sleep(0.005)
            self.router.work_off(self.outputs, self.fault)
        assert not self.router.is_holding

    def groups(self, number: int) -> list[EventGroup]:
        self.store.sync_all()
        binlog = self.outputs[number].binlog
        paths = [file.path for file in binlog.files()]
        return [group for group in read_groups(paths) if not group.is_control]

    def intend(self, group: EventGroup, number: int, plan: GroupPlan | None) -> None:
        assert isinstance(group.gtid, Gtid)
        self.attributions.intend(group.gtid.server_id - _LANE, number, [plan] if plan else ())

    def done(self, group: EventGroup, number: int) -> None:
        assert isinstance(group.gtid, Gtid)
        self.attributions.done(group.gtid.server_id - _LANE, number, str(group.gtid))


@contextmanager
def running(
    directory: Path, *scopes: str, bypass: Bypass = Bypass.ROWS, file_bytes: int = 1 << 30
) -> Iterator[Run]:
    settings = StoreSettings(max_binlog_size_bytes=file_bytes)
    with Store.open(directory, settings) as store:
        for definition in definitions(*(scopes or _SCOPES)):
            store.create_binlog(
                definition,
                start=GtidPosition(),
                format_description=source_format(),
                server_id=1,
                timestamp=0,
            )
        outputs = [Output(LiveBinlog(binlog)) for binlog in store.binlogs.values()]
        patience = AttributionSettings(wait_s=_PATIENCE_S)
        attributions = Attributions(None, Flavor.MARIADB, patience)
        substitution = Substitution(attributions, bypass)
        substitution.connected(facts(), GtidPosition(), is_new=True)
        router = Router(GtidPosition(), substitution)
        yield Run(store, outputs, attributions, substitution, router)


def gtids(groups: Sequence[EventGroup]) -> list[object]:
    return [group.gtid for group in groups]


def has_rows(group: EventGroup) -> bool:
    return any(isinstance(event.body, RowsEvent) for event in group.events)


def shape(group: EventGroup) -> list[tuple[str, bytes]]:
    return [
        (event.header.type_name, event.body.query if isinstance(event.body, QueryEvent) else b"")
        for event in group.events
    ]


@pytest.mark.parametrize("window_bytes", [512, 1 << 20])
@pytest.mark.parametrize("name", ["md1011_txn", "md1011_rotation", "md118_txn", "md1011_xa"])
def test_statements_stand_in_the_places_of_their_rows(
    name: str, window_bytes: int, tmp_path: Path
) -> None:
    source = Source.of(name, tmp_path, lanes=3)
    with running(tmp_path / "data", file_bytes=4096) as run:
        plans = [plan_of(group, source.format, run.outputs) for group in source.groups]
        for number, (group, plan) in enumerate(zip(source.groups, plans, strict=True)):
            run.intend(group, number, plan or GroupPlan())
            run.done(group, number)
        run.take(source, window_bytes)
        statements, _, rows, _ = (run.groups(number) for number in range(4))
        assert gtids(statements) == gtids(rows) == gtids(source.groups)
        for group, plan, made, as_rows in zip(source.groups, plans, statements, rows, strict=True):
            assert shape(as_rows) == shape(group)
            assert has_rows(made) == (has_rows(group) and plan is None)
            if plan is not None:
                assert sum(query.startswith(b"UPDATE") for _, query in shape(made)) == len(
                    plan.sections
                )
        assert not run.outputs[0].counts.rows_instead
        assert not run.outputs[2].counts.rows_instead


class ByReference(Substitution):
    """Makes every group by the reference."""

    def append_raw(self, output: Output, plan: GroupPlan, group: RawGroup, gtid: AnyGtid) -> bool:
        del output, plan, group, gtid
        return False


@pytest.mark.parametrize("name", ["md1011_txn", "md1011_rotation", "md118_txn", "md1011_fk"])
@pytest.mark.parametrize("has_ids", [False, True])
def test_what_is_made_of_bytes_is_what_the_reference_makes(
    name: str, *, has_ids: bool, tmp_path: Path
) -> None:
    source = Source.of(name, tmp_path, lanes=3)
    files: list[list[bytes]] = []
    counts = []
    for kind in (Substitution, ByReference):
        with running(tmp_path / kind.__name__, file_bytes=4096) as run:
            run.substitution = kind(run.attributions)
            run.substitution.connected(facts(), GtidPosition(), is_new=True)
            run.router = Router(GtidPosition(), run.substitution)
            for number, group in enumerate(source.groups):
                plan = plan_of(group, source.format, run.outputs)
                if plan is not None and has_ids:
                    plan = _with_ids(plan)
                run.intend(group, number, plan or GroupPlan())
                run.done(group, number)
            run.take(source)
            run.wait()
            run.store.sync_all()
            files.append(
                [file.path.read_bytes() for one in run.outputs for file in one.binlog.files()]
            )
            counts.append([one.counts for one in run.outputs])
    assert files[0] == files[1]
    assert counts[0] == counts[1]


def _with_ids(plan: GroupPlan) -> GroupPlan:
    """With statements that have the server choose the values of their table's first column."""
    intvar = EncodedEvent(EventType.INTVAR, b"\x02" + bytes(8))
    binlogs = {}
    for name, parts in plan.binlogs.items():
        made = []
        for part in parts:
            assert isinstance(part, Text)
            assert part.section is not None
            for table in plan.sections[part.section][0].tables[:1]:
                events = (intvar, *part.events)
                part = part._replace(events=events, generated=Generated(table, 0))  # noqa: PLW2901
            made.append(part)
        binlogs[name] = tuple(made)
    return replace(plan, binlogs=binlogs)


def test_a_binlog_that_waits_keeps_no_other_back(tmp_path: Path) -> None:
    source = Source.of("md1011_txn", tmp_path, lanes=2)
    with running(tmp_path / "data") as run:
        plans = [plan_of(group, source.format, run.outputs) for group in source.groups]
        late = next(number for number, plan in enumerate(plans) if plan is not None)
        for number, (group, plan) in enumerate(zip(source.groups, plans, strict=True)):
            run.intend(group, number, plan or GroupPlan())
            if number < late or number % 2 != late % 2:
                run.done(group, number)
        run.take(source, 512)
        assert run.router.is_holding
        assert not run.router.holds(run.outputs[2])
        assert gtids(run.groups(2)) == gtids(source.groups)
        assert gtids(run.groups(0)) == gtids(source.groups[:late])
        for number, group in enumerate(source.groups):
            if number >= late and number % 2 == late % 2:
                run.done(group, number)
        run.wait()
        assert gtids(run.groups(0)) == gtids(source.groups)
        assert [
            plan is None and has_rows(group)
            for plan, group in zip(plans, source.groups, strict=True)
        ] == [has_rows(group) for group in run.groups(0)]
        assert not run.outputs[0].counts.rows_instead


def test_what_no_session_says_in_time_is_rows(tmp_path: Path) -> None:
    source = Source.of("md1011_txn", tmp_path, lanes=1)
    with running(tmp_path / "data") as run:
        group = source.groups[0]
        run.intend(group, 0, None)
        started_s = time.monotonic()
        run.take(source)
        run.wait()
        assert time.monotonic() - started_s >= _PATIENCE_S
        assert [shape(group) for group in run.groups(0)] == [
            shape(group) for group in source.groups
        ]
        counts = run.outputs[0].counts.rows_instead
        assert set(counts) <= {reason.value for reason in Reason}
        assert sum(counts.values()) == sum(map(has_rows, source.groups))
        assert not run.outputs[2].counts.rows_instead


def test_a_session_without_a_log_is_in_no_binlog_that_it_says(tmp_path: Path) -> None:
    source = Source.of("md1011_txn", tmp_path, lanes=1)
    with running(tmp_path / "data") as run:
        silent = run.outputs[2]
        base = basis_of(silent.binlog.definition)
        hidden = 0
        for number, group in enumerate(source.groups):
            plan = plan_of(group, source.format, ()) if number % 2 else None
            hidden += plan is not None
            if plan is not None:
                plan = replace(plan, binlogs={silent.name: ()}, bases={silent.name: base})
            run.intend(group, number, plan or GroupPlan())
            run.done(group, number)
        run.take(source, 512)
        run.wait()
        assert hidden
        assert len(run.groups(2)) == len(source.groups) - hidden
        assert gtids(run.groups(0)) == gtids(source.groups)
        assert silent.binlog.position == run.outputs[0].binlog.position


def test_what_does_not_come_through_the_port_is_rows(tmp_path: Path) -> None:
    source = Source.of("md1011_txn", tmp_path, lanes=0)
    with running(tmp_path / "data") as run:
        run.take(source)
        assert [shape(group) for group in run.groups(0)] == [
            shape(group) for group in source.groups
        ]
        changing = sum(map(has_rows, source.groups))
        for number in (0, 1):
            assert run.outputs[number].counts.rows_instead == {PAST_THE_PORT: changing}
        assert not run.outputs[2].counts.rows_instead
        scoped = sum(map(has_rows, run.groups(3)))
        assert run.outputs[3].counts.rows_instead[PAST_THE_PORT] == scoped


def test_a_binlog_may_stop_at_what_does_not_come_through_the_port(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source.of("md1011_txn", tmp_path, lanes=0)
    first = next(number for number, group in enumerate(source.groups) if has_rows(group))
    with running(tmp_path / "stop", bypass=Bypass.STOP) as run:
        run.take(source, 512)
        assert gtids(run.groups(0)) == gtids(source.groups[:first])
        assert str(source.groups[first].gtid) in run.outputs[0].failure
        assert gtids(run.groups(2)) == gtids(source.groups)
        run.outputs[0].accept(run.router.position)
        run.outputs[0].failure = ""
        run.router = Router(run.outputs[0].binlog.reached, run.substitution)
        run.take(source, 512)
        assert gtids(run.groups(0)) == gtids(source.groups)
        assert not run.outputs[0].failure
    with running(tmp_path / "mark", bypass=Bypass.MARK) as run:
        caplog.clear()
        run.take(source, 512)
        assert gtids(run.groups(0)) == gtids(source.groups)
        told = [line for line in caplog.messages if "as rows" in line and "b1" in line]
        assert len(told) == sum(map(has_rows, source.groups))


def test_marks_are_in_no_binlog_and_give_their_gtid_to_texts(tmp_path: Path) -> None:
    marks = range(2, 1000, 3)
    source = Source.of("md1011_txn", tmp_path, lanes=1, marks=marks)
    with running(tmp_path / "data") as run:
        spoken = 0
        for number, group in enumerate(source.groups):
            plan = GroupPlan()
            is_mark = number in marks and has_rows(group)
            if is_mark and number % 2:
                spoken += 1
                name = run.outputs[0].name
                lone = text([TableName("shop", "tmp")])._replace(section=None, timestamp=5)
                base = basis_of(run.outputs[0].binlog.definition)
                plan = GroupPlan(binlogs={name: (lone,)}, bases={name: base}, ends={name: None})
            run.intend(group, number, plan)
            run.done(group, number)
        run.take(source, 512)
        run.wait()
        assert spoken
        for number in range(4):
            for group in run.groups(number):
                for event in group.events:
                    body = event.body
                    assert not isinstance(body, TableMapEvent) or body.database != "binlane"
        lone_groups = [group for group in run.groups(0) if b"tmp" in shape(group)[-1][1]]
        assert len(lone_groups) == spoken
        assert all(len(group.events) == 2 for group in lone_groups)
        assert all(group.timestamp == 5 for group in lone_groups)


@pytest.mark.parametrize("is_met", [False, True])
def test_temporary_tables_of_a_session_of_which_something_is_not_known_are_in_no_text(
    *, is_met: bool, tmp_path: Path
) -> None:
    marks = (3, 4, 5, 6)
    queries = (
        "CREATE TEMPORARY TABLE shop.one (a INT)",
        "",
        "CREATE TEMPORARY TABLE shop.two (a INT)",
        "INSERT INTO shop.one VALUES (1)",
    )
    source = Source.of("md1011_txn", tmp_path, lanes=1)
    changing = [number for number, group in enumerate(source.groups) if has_rows(group)]
    numbers = [changing[one] for one in marks]
    source = Source.of("md1011_txn", tmp_path, lanes=1, marks=numbers)
    with running(tmp_path / "data", _SCOPES[0]) as run:
        name = run.outputs[0].name
        base = basis_of(run.outputs[0].binlog.definition)
        for number, group in enumerate(source.groups):
            query = queries[numbers.index(number)] if number in numbers else ""
            if not is_met and query == queries[0]:
                query = ""
            plan = GroupPlan()
            if query:
                lone = text([TableName("shop", "x")])._replace(section=None, timestamp=5)
                (encoded,) = lone.events
                body = encoded.body[: encoded.body.index(b"UPDATE")] + query.encode()
                flags = HeaderFlag.THREAD_SPECIFIC
                lone = lone._replace(events=(EncodedEvent(EventType.QUERY, body, flags),))
                plan = GroupPlan(binlogs={name: (lone,)}, bases={name: base})
            # Of what is not said, nobody knows what it was.
            run.intend(group, number, plan if query or number not in numbers else None)
            run.done(group, number)
        run.take(source, 512)
        run.wait()
        made = [
            query.decode()
            for group in run.groups(0)
            for _, query in shape(group)
            if b"shop.o" in query or b"shop.two" in query
        ]
        assert made == ([queries[0]] if is_met else [])
        assert run.outputs[0].threads.lost == {7}


def test_a_group_that_is_not_held_is_rows(tmp_path: Path) -> None:
    source = Source.of("md1011_txn", tmp_path, lanes=1)
    with running(tmp_path / "data", *_SCOPES[:3]) as run:
        silent = run.outputs[1]
        for number, group in enumerate(source.groups):
            plan = plan_of(group, source.format, run.outputs)
            if plan is not None:
                plan = replace(plan, binlogs={**plan.binlogs, silent.name: ()})
            run.intend(group, number, plan or GroupPlan())
            run.done(group, number)
        run.take(source, 512, held_max=300)
        run.wait()
        assert gtids(run.groups(0)) == gtids(run.groups(2)) == gtids(source.groups)
        assert any(map(has_rows, run.groups(0)))
        assert not any(map(has_rows, run.groups(1)))


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_said_when_nothing_is_lost_or_doubled(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    source = Source.of("md1011_rotation", tmp_path, lanes=4)
    with running(tmp_path / "data", file_bytes=4096) as run:
        waiting: list[tuple[EventGroup, int]] = []
        for number, group in enumerate(source.groups):
            plan = plan_of(group, source.format, run.outputs)
            if chance.random() < 0.1:
                continue
            run.intend(group, number, plan or GroupPlan())
            if chance.random() < 0.8 and not waiting:
                run.done(group, number)
            else:
                waiting.append((group, number))
        run.take(source, 512)
        for group, number in waiting:
            run.done(group, number)
            if chance.random() < 0.3:
                run.router.work_off(run.outputs, run.fault)
        run.wait()
        for number in (0, 1, 2):
            assert gtids(run.groups(number)) == gtids(source.groups)
        for made, group in zip(run.groups(0), source.groups, strict=True):
            assert shape(made) == shape(group) or not has_rows(made)
