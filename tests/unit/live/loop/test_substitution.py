"""Binlogs of statements have them as their sessions said, and rows wherever these said nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from binlane.binlogs.routing.cut_group import MARKS, CutGroup, cut_group
from binlane.binlogs.routing.makers import thread_of_raw
from binlane.binlogs.routing.planned_spans import RunPlans
from binlane.binlogs.routing.row_images import ImageCutter
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import read_groups
from binlane.errors import StoreError
from binlane.live.loop.outputs import Output
from binlane.live.loop.port_settings import Bypass
from binlane.live.loop.router import Router
from binlane.live.loop.substitution import PAST_THE_PORT, OwnedGroups, Substitution
from binlane.live.port.attribution_settings import AttributionSettings
from binlane.live.port.attribution_state import ReadGroup
from binlane.live.port.attributions import Attributions
from binlane.live.port.session_groups import RowsReason
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC, Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType, Flavor, HeaderFlag
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.placing import place, place_group
from binlane.log.grouping.raw import RawRun
from binlane.log.grouping.sections import RowsPiece
from binlane.log.grouping.walk import walk
from binlane.log.kernels.load import is_compiled
from binlane.names import TableName
from binlane.positions import AnyGtid, GtidPosition, GtidSet, MysqlGtid, Position, nothing_done
from binlane.statements.session.group_plan import (
    EncodedEvent,
    Generated,
    GroupPlan,
    RowsPart,
    TextPart,
    basis_of,
)
from binlane.statements.session.plan_bytes import EncodedPlan
from binlane.statements.sql.servers import RowImage
from tests.fixture_sets import fixture_set
from tests.groups import (
    source_format,
    sync_all,
)
from tests.routed_files import definitions, written
from tests.unit.live.service.test_runs import after, items_of, never

_SCOPES = (
    "LOG ALL, FORMAT='STATEMENT'",
    "LOG ALL, FORMAT='MIXED'",
    "LOG ALL, FORMAT='ROW'",
    "LOG(shop), FORMAT='STATEMENT'",
)
_THREAD = 7
"""Of the first session."""
_PATIENCE_S = 0.2

pytestmark = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)


@dataclass
class Source:
    """A log whose groups are of some sessions.

    Attributes:
        path: The file.
        head: Its FORMAT_DESCRIPTION.
        groups: In it.
        sessions: How many there are: the groups are theirs by turns; none where it is 0.
    """

    path: Path
    head: FormatDescriptionEvent
    groups: list[EventGroup]
    sessions: int

    @classmethod
    def of(
        cls,
        name: str,
        directory: Path,
        *,
        sessions: int,
        marks: Sequence[int] = (),
        is_started: bool = False,
    ) -> Source:
        """The log of a fixture set, where it names threads with those of some sessions.

        Args:
            name: Of the set.
            directory: For the file.
            sessions: How many.
            marks: Groups whose rows become those of marks, by number.
            is_started: Whether the file is the first of a server that was just started.
        """
        first: Event | None = None
        made: list[EventGroup] = []
        for file, data in fixture_set(name).binlogs:
            for group in group_events(walk([data], file=file), file=file):
                if isinstance(group.events[0].body, FormatDescriptionEvent):
                    first = first or group.events[0]
                elif not group.is_control and group.is_complete:
                    thread_id = _THREAD + len(made) % sessions if sessions else 0
                    made.append(_of_session(group, thread_id, is_mark=len(made) in marks))
        assert first is not None
        assert isinstance(first.body, FormatDescriptionEvent)
        if not is_started:
            first = replace(first, body=replace(first.body, created=0))
        assert isinstance(first.body, FormatDescriptionEvent)
        written = bytearray(MAGIC) + place(first, len(MAGIC), first.body.format)
        for group in made:
            written += place_group(group.events, len(written), first.body.format)
        path = directory / "binlog.000001"
        path.write_bytes(written)
        return cls(path, first.body, made, sessions)

    @property
    def format(self) -> Format:
        """Of the file."""
        return self.head.format

    def thread_of(self, group: EventGroup) -> int:
        """The thread of the session that made a group; the log need not name it."""
        return _THREAD + self.groups.index(group) % self.sessions


def _of_session(group: EventGroup, thread_id: int, *, is_mark: bool) -> EventGroup:
    """A group as it is; of a session, where it names one."""
    return replace(
        group, events=tuple(_event(one, thread_id, is_mark=is_mark) for one in group.events)
    )


def _event(event: Event, thread_id: int, *, is_mark: bool) -> Event:
    body = event.body
    if (isinstance(body, QueryEvent) and thread_id) or (
        isinstance(body, GtidEvent) and thread_id and body.thread_id is not None
    ):
        body = replace(body, thread_id=thread_id)
    elif isinstance(body, TableMapEvent) and is_mark:
        columns = {"column_types": b"\x01\x08\x08", "metadata": b"", "null_bits": b"\x00"}
        body = replace(body, database=MARKS.database, table=MARKS.table, **columns)  # type: ignore[arg-type]  # bytes
    elif isinstance(body, RowsEvent) and is_mark:
        row = b"\xf8\x01" + thread_id.to_bytes(8, "little") + (1).to_bytes(8, "little")
        is_update = body.columns_present_after is not None
        body = replace(
            body,
            column_count=3,
            columns_present=b"\x07",
            columns_present_after=b"\x07" if is_update else None,
            images=row + row if is_update else row,
        )
    return replace(event, body=body)


def text(tables: Sequence[TableName]) -> TextPart:
    """A statement on some tables."""
    names = ", ".join(map(str, tables))
    body = QueryEvent(
        thread_id=_THREAD,
        execution_time=0,
        error_code=0,
        status_vars=b"",
        database=b"shop",
        query=f"UPDATE {names} SET a = 1".encode(),
    )
    encoded = EncodedEvent(EventType.QUERY, body.encode(source_format().format))
    return TextPart((encoded,), 0)


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
        sync_all(self.store)
        binlog = self.outputs[number].binlog
        paths = [file.path for file in binlog.files()]
        return [group for group in read_groups(paths) if not group.is_control]

    def intend(
        self, source: Source, group: EventGroup, number: int, plan: GroupPlan | None
    ) -> None:
        thread_id = source.thread_of(group)
        self.attributions.intend(thread_id, number, [plan] if plan else ())

    def done(self, source: Source, group: EventGroup, number: int) -> None:
        self.attributions.done(source.thread_of(group), number, str(group.gtid))


@contextmanager
def running(
    directory: Path,
    *scopes: str,
    bypass: Bypass = Bypass.ROWS,
    file_bytes: int = 1 << 30,
    start: Position = GtidPosition(),  # noqa: B008  # nothing was done
    head: FormatDescriptionEvent | None = None,
) -> Iterator[Run]:
    settings = StoreSettings(max_binlog_size_bytes=file_bytes)
    with Store.open(directory, settings) as store:
        for definition in definitions(*(scopes or _SCOPES)):
            store.create_binlog(
                definition,
                start=start,
                format_description=head or source_format(),
                server_id=1,
                timestamp=0,
            )
        outputs = [Output(LiveBinlog(binlog)) for binlog in store.binlogs.values()]
        patience = AttributionSettings(wait_s=_PATIENCE_S)
        attributions = Attributions(directory / "port", Flavor(start.flavor), patience)
        substitution = Substitution(attributions, bypass)
        substitution.connected(start, is_new=True)
        router = Router(start, substitution)
        yield Run(store, outputs, attributions, substitution, router)


def gtids(groups: Sequence[EventGroup]) -> list[object]:
    return [group.gtid for group in groups]


@pytest.mark.parametrize("window_bytes", [512, 1 << 20])
@pytest.mark.parametrize("held_max", [1, 1 << 26])
def test_rows_are_cut_as_their_session_wants(
    window_bytes: int, held_max: int, tmp_path: Path
) -> None:
    source = Source.of("md1011_metadata_full", tmp_path, sessions=2)
    clauses = ("LOG ALL", "LOG ALL ROW_IMAGE='NOBLOB'")
    with running(tmp_path / "data", *clauses) as run:
        for number, group in enumerate(source.groups):
            cut = cut_group(group, source.format)
            pieces = cut.pieces if isinstance(cut, CutGroup) else ()
            sections = tuple((RowsPiece(tuple(one.mapped), ()),) for one in pieces)
            rows = tuple(map(RowsPart, range(len(sections))))
            image = RowImage.MINIMAL if number % 2 else RowImage.FULL
            names = [one.name for one in run.outputs] if image is RowImage.MINIMAL else []
            binlogs = dict.fromkeys(names, rows)
            plan = GroupPlan(sections=sections, binlogs=binlogs, image=image)
            run.intend(source, group, number, plan)
            run.done(source, group, number)
        run.take(source, window_bytes, held_max)
        for output, own in enumerate((RowImage.FULL, RowImage.NOBLOB)):
            found = run.groups(output)
            assert gtids(found) == gtids(source.groups)
            for number, (made, group) in enumerate(zip(found, source.groups, strict=True)):
                image = RowImage.MINIMAL if number % 2 else own
                events = group.events
                if image is not RowImage.FULL:
                    events = ImageCutter(image).events(events, source.format)
                assert [one.body for one in made.events if isinstance(one.body, RowsEvent)] == [
                    one.body for one in events if isinstance(one.body, RowsEvent)
                ]


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
    source = Source.of(name, tmp_path, sessions=3)
    with running(tmp_path / "data", file_bytes=4096) as run:
        plans = [plan_of(group, source.format, run.outputs) for group in source.groups]
        for number, (group, plan) in enumerate(zip(source.groups, plans, strict=True)):
            run.intend(source, group, number, plan or GroupPlan())
            run.done(source, group, number)
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

    def read_run(self, groups: RunGroups, after: Position | None) -> OwnedGroups:
        return replace(super().read_run(groups, after), plans=RunPlans())

    def plans_now(self, gtids: Sequence[AnyGtid | None]) -> list[EncodedPlan | None]:
        return [None] * len(gtids)


@pytest.mark.parametrize(
    "name",
    [
        *("md1011_txn", "md1011_rotation", "md118_txn", "md1011_fk"),
        *("my97_txn", "my97_rotation", "my97_rows_query", "my97_fk"),
    ],
)
@pytest.mark.parametrize("has_ids", [False, True])
def test_what_is_made_of_bytes_is_what_the_reference_makes(
    name: str, *, has_ids: bool, tmp_path: Path
) -> None:
    source = Source.of(name, tmp_path, sessions=3)
    start = nothing_done(source.format.flavor.value)
    files: list[list[bytes]] = []
    counts, marks = [], []
    for kind in (Substitution, ByReference):
        out = tmp_path / kind.__name__
        with running(out, file_bytes=4096, start=start, head=source.head) as run:
            run.substitution = kind(run.attributions)
            run.substitution.connected(start, is_new=True)
            run.router = Router(start, run.substitution)
            for number, group in enumerate(source.groups):
                plan = plan_of(group, source.format, run.outputs)
                if plan is not None and has_ids:
                    plan = _with_ids(plan)
                run.intend(source, group, number, plan or GroupPlan())
                run.done(source, group, number)
            run.take(source)
            run.wait()
            sync_all(run.store)
            files.append(
                [file.path.read_bytes() for one in run.outputs for file in one.binlog.files()]
            )
            counts.append([one.counts for one in run.outputs])
            marks.append([one.binlog.mark for one in run.outputs])
    assert files[0] == files[1]
    assert counts[0] == counts[1]
    assert marks[0] == marks[1]


def _with_ids(plan: GroupPlan) -> GroupPlan:
    """With statements that have the server choose the values of their table's first column."""
    intvar = EncodedEvent(EventType.INTVAR, b"\x02" + bytes(8))
    binlogs = {}
    for name, parts in plan.binlogs.items():
        made = []
        for part in parts:
            assert isinstance(part, TextPart)
            assert part.section is not None
            for table in plan.sections[part.section][0].tables[:1]:
                events = (intvar, *part.events)
                part = part._replace(events=events, generated=Generated(table, 0))  # noqa: PLW2901
            made.append(part)
        binlogs[name] = tuple(made)
    return replace(plan, binlogs=binlogs)


def test_a_binlog_that_waits_keeps_no_other_back(tmp_path: Path) -> None:
    source = Source.of("md1011_txn", tmp_path, sessions=2)
    with running(tmp_path / "data") as run:
        plans = [plan_of(group, source.format, run.outputs) for group in source.groups]
        late = next(number for number, plan in enumerate(plans) if plan is not None)
        for number, (group, plan) in enumerate(zip(source.groups, plans, strict=True)):
            run.intend(source, group, number, plan or GroupPlan())
            if number < late or number % 2 != late % 2:
                run.done(source, group, number)
        run.take(source, 512)
        assert run.router.is_holding
        assert not run.router.holds(run.outputs[2])
        assert gtids(run.groups(2)) == gtids(source.groups)
        assert gtids(run.groups(0)) == gtids(source.groups[:late])
        for number, group in enumerate(source.groups):
            if number >= late and number % 2 == late % 2:
                run.done(source, group, number)
        run.wait()
        assert gtids(run.groups(0)) == gtids(source.groups)
        assert [
            plan is None and has_rows(group)
            for plan, group in zip(plans, source.groups, strict=True)
        ] == [has_rows(group) for group in run.groups(0)]
        assert not run.outputs[0].counts.rows_instead


def test_what_no_session_says_in_time_is_rows(tmp_path: Path) -> None:
    source = Source.of("md1011_txn", tmp_path, sessions=1)
    with running(tmp_path / "data") as run:
        group = source.groups[0]
        run.intend(source, group, 0, None)
        started_s = time.monotonic()
        run.take(source)
        run.wait()
        assert time.monotonic() - started_s >= _PATIENCE_S
        assert [shape(group) for group in run.groups(0)] == [
            shape(group) for group in source.groups
        ]
        counts = run.outputs[0].counts.rows_instead
        assert set(counts) <= {reason.value for reason in RowsReason}
        assert sum(counts.values()) == sum(map(has_rows, source.groups))
        assert not run.outputs[2].counts.rows_instead


def test_a_session_without_a_log_is_in_no_binlog_that_it_says(tmp_path: Path) -> None:
    source = Source.of("md1011_txn", tmp_path, sessions=1)
    with running(tmp_path / "data") as run:
        silent = run.outputs[2]
        base = basis_of(silent.binlog.definition)
        hidden = 0
        for number, group in enumerate(source.groups):
            plan = plan_of(group, source.format, ()) if number % 2 else None
            hidden += plan is not None
            if plan is not None:
                plan = replace(plan, binlogs={silent.name: ()}, bases={silent.name: base})
            run.intend(source, group, number, plan or GroupPlan())
            run.done(source, group, number)
        run.take(source, 512)
        run.wait()
        assert hidden
        assert len(run.groups(2)) == len(source.groups) - hidden
        assert gtids(run.groups(0)) == gtids(source.groups)
        assert silent.binlog.position == run.outputs[0].binlog.position


def test_what_does_not_come_through_the_port_is_rows(tmp_path: Path) -> None:
    source = Source.of("md1011_txn", tmp_path, sessions=0)
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
    source = Source.of("md1011_txn", tmp_path, sessions=0)
    first = next(number for number, group in enumerate(source.groups) if has_rows(group))
    with running(tmp_path / "stop", bypass=Bypass.STOP) as run:
        run.take(source, 512)
        assert gtids(run.groups(0)) == gtids(source.groups[:first])
        assert str(source.groups[first].gtid) in run.outputs[0].failure
        assert gtids(run.groups(2)) == gtids(source.groups)
        run.outputs[0].go_on(run.router.position, forgets_source=False)
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
    source = Source.of("md1011_txn", tmp_path, sessions=1, marks=marks)
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
            run.intend(source, group, number, plan)
            run.done(source, group, number)
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


@pytest.mark.parametrize("is_passed", [False, True])
def test_texts_of_a_mark_stand_behind_no_later_group(*, is_passed: bool, tmp_path: Path) -> None:
    source = Source.of("my97_gtid", tmp_path, sessions=1)
    number = next(n for n, group in enumerate(source.groups) if has_rows(group))
    source = Source.of("my97_gtid", tmp_path, sessions=1, marks=[number])
    mark = source.groups[number]
    assert isinstance(mark.gtid, MysqlGtid)
    with running(tmp_path / "data", _SCOPES[0], start=GtidSet(), head=source.head) as run:
        output = run.outputs[0]
        lone = text([TableName("shop", "tmp")])._replace(section=None, timestamp=5)
        base = basis_of(output.binlog.definition)
        plan = GroupPlan(
            binlogs={output.name: (lone,)}, bases={output.name: base}, ends={output.name: None}
        )
        run.intend(source, mark, 0, plan)
        run.done(source, mark, 0)
        if is_passed:  # as behind a kill: what was left out is in no file
            later = (one.gtid for one in source.groups if one is not mark)
            for gtid in later:
                assert gtid is not None
                output.binlog.advance(gtid)
        run.take(source)
        run.wait()
        texts = [group.gtid for group in run.groups(0) if b"tmp" in shape(group)[-1][1]]
        assert texts == ([] if is_passed else [mark.gtid])
        assert output.binlog.reached.covers(mark.gtid)
        assert output.counts.rows_instead[RowsReason.PASSED] == is_passed
        assert not is_passed or _THREAD in output.temporary.threads.lost


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
    source = Source.of("md1011_txn", tmp_path, sessions=1)
    changing = [number for number, group in enumerate(source.groups) if has_rows(group)]
    numbers = [changing[one] for one in marks]
    source = Source.of("md1011_txn", tmp_path, sessions=1, marks=numbers)
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
            run.intend(source, group, number, plan if query or number not in numbers else None)
            run.done(source, group, number)
        run.take(source, 512)
        run.wait()
        made = [
            query.decode()
            for group in run.groups(0)
            for _, query in shape(group)
            if b"shop.o" in query or b"shop.two" in query
        ]
        assert made == ([queries[0]] if is_met else [])
        assert run.outputs[0].temporary.threads.lost == {_THREAD}


def test_a_group_that_is_not_held_is_rows(tmp_path: Path) -> None:
    source = Source.of("md1011_txn", tmp_path, sessions=1)
    with running(tmp_path / "data", *_SCOPES[:3]) as run:
        silent = run.outputs[1]
        for number, group in enumerate(source.groups):
            plan = plan_of(group, source.format, run.outputs)
            if plan is not None:
                plan = replace(plan, binlogs={**plan.binlogs, silent.name: ()})
            run.intend(source, group, number, plan or GroupPlan())
            run.done(source, group, number)
        run.take(source, 512, held_max=300)
        run.wait()
        assert gtids(run.groups(0)) == gtids(run.groups(2)) == gtids(source.groups)
        assert any(map(has_rows, run.groups(0)))
        assert not any(map(has_rows, run.groups(1)))


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_said_when_nothing_is_lost_or_doubled(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    source = Source.of("md1011_rotation", tmp_path, sessions=4)
    with running(tmp_path / "data", file_bytes=4096) as run:
        waiting: list[tuple[EventGroup, int]] = []
        for number, group in enumerate(source.groups):
            plan = plan_of(group, source.format, run.outputs)
            if chance.random() < 0.1:
                continue
            run.intend(source, group, number, plan or GroupPlan())
            if chance.random() < 0.8 and not waiting:
                run.done(source, group, number)
            else:
                waiting.append((group, number))
        run.take(source, 512)
        for group, number in waiting:
            run.done(source, group, number)
            if chance.random() < 0.3:
                run.router.work_off(run.outputs, run.fault)
        run.wait()
        for number in (0, 1, 2):
            assert gtids(run.groups(number)) == gtids(source.groups)
        for made, group in zip(run.groups(0), source.groups, strict=True):
            assert shape(made) == shape(group) or not has_rows(made)


# Groups in which the log names no thread.


def as_sent(plan: GroupPlan, query: bytes) -> GroupPlan:
    """A plan whose texts are all one that the source got in the same words."""
    binlogs = {}
    for name, parts in plan.binlogs.items():
        made = []
        for part in parts:
            assert isinstance(part, TextPart)
            (event,) = part.events
            body = event.body[: event.body.index(b"\0UPDATE") + 1] + query
            made.append(part._replace(events=(event._replace(body=body),), is_as_sent=True))
        binlogs[name] = tuple(made)
    return replace(plan, binlogs=binlogs)


def plan_without_rows(plan: GroupPlan) -> GroupPlan:
    """A plan of the same binlogs for a group of another table."""
    section = (RowsPiece((TableName("no", "table"),), ()),)
    return replace(plan, sections=(section,) * len(plan.sections))


@pytest.mark.parametrize("hung", ["another table", "another text", "the same"])
def test_a_session_that_hangs_holds_only_groups_that_could_be_its_own(
    hung: str, tmp_path: Path
) -> None:
    source = Source.of("md1011_txn", tmp_path, sessions=1)
    with running(tmp_path / "data") as run:
        one = next(
            plan
            for group in source.groups
            if has_rows(group)
            and group.events[-1].header.type_code == EventType.XID
            and (plan := plan_of(group, source.format, run.outputs)) is not None
        )
        plans = {
            "another table": plan_without_rows(one),
            "another text": as_sent(one, b"INSERT INTO another VALUES (1)"),
            "the same": one,
        }
        run.attributions.intend(_THREAD + 1, 1, [plans[hung]])
        # Nobody else's statements are known; so these groups came past the port, or are the hung one's.
        run.take(source)
        assert run.router.is_holding == (hung == "the same")
        run.wait()
        assert gtids(run.groups(0)) == gtids(source.groups)
        reasons = set(run.outputs[0].counts.rows_instead)
        if hung == "the same":
            assert reasons == {PAST_THE_PORT, RowsReason.NOT_ANSWERED.value}
        else:
            assert reasons == {PAST_THE_PORT}


@pytest.mark.parametrize("kind", [Substitution, ByReference])
def test_a_text_that_the_source_did_not_run_is_in_no_binlog(
    kind: type[Substitution], tmp_path: Path
) -> None:
    source = Source.of("md118_txn", tmp_path, sessions=1)
    with running(tmp_path / "data") as run:
        run.substitution = kind(run.attributions)
        run.substitution.connected(GtidPosition(), is_new=True)
        run.router = Router(GtidPosition(), run.substitution)
        for number, group in enumerate(source.groups):
            plan = plan_of(group, source.format, run.outputs)
            if plan is not None and has_rows(group):
                plan = as_sent(plan, b"INSERT INTO another VALUES (1)")
            run.intend(source, group, number, plan or GroupPlan())
            run.done(source, group, number)
        run.take(source)
        run.wait()
        assert [has_rows(group) for group in run.groups(0)] == list(map(has_rows, source.groups))
        reason = (
            "what was planned cannot stand there: the source ran another text than the session sent"
        )
        assert run.outputs[0].counts.rows_instead == {reason: sum(map(has_rows, source.groups))}


def test_what_was_under_way_when_the_source_was_started_anew_is_rows(tmp_path: Path) -> None:
    """The threads of what comes behind that are others, which may have the same numbers."""
    source = Source.of("md118_txn", tmp_path, sessions=2, is_started=True)
    with running(tmp_path / "data") as run:
        for number, group in enumerate(source.groups):
            plan = plan_of(group, source.format, run.outputs) or GroupPlan()
            run.intend(source, group, number, plan)
            if number % 2:
                run.done(source, group, number)
        run.take(source)
        run.wait()
        made = zip(source.groups, run.groups(0), strict=True)
        for number, (group, one) in enumerate(made):
            assert has_rows(one) == (has_rows(group) and not number % 2)
        assert set(run.outputs[0].counts.rows_instead) == {RowsReason.LOST.value}


@pytest.mark.parametrize(
    ("name", "is_any_open"),
    [
        ("md1011_engines_row", False),
        *(("md1011_engines_row", True), ("md1011_rotation", False), ("md1011_rotation", True)),
        *(("md118_fk", False), ("my97_fk", False), ("my97_fk", True)),
    ],
)
def test_a_long_run_is_looked_at_as_each_of_its_groups_is(
    name: str, *, is_any_open: bool, tmp_path: Path
) -> None:
    for path in written(name, tmp_path / "source"):
        for run in items_of((path,), 1 << 20, 1 << 26):
            if not isinstance(run, RawRun) or run.count <= 8:
                continue
            flavor = run.format.flavor
            attributions = Attributions(tmp_path / f"port{Path(path).suffix}", flavor)
            substitution = Substitution(attributions)
            substitution.connected(nothing_done(flavor.value), is_new=True)
            groups = {
                number: ReadGroup(gtid, thread_of_raw(RunGroups(run), number))
                for number in range(run.count)
                if (gtid := run.gtid(number)) is not None
            }
            threads = sorted({group.thread_id for group in groups.values()} - {0})
            attributions.taken(threads[0])
            told = groups[run.count // 2]
            tells = str(told.gtid) if flavor is Flavor.MARIADB else str(GtidSet.of([told.gtid]))  # type: ignore[list-item]  # MySQL's
            attributions.intend(99, 1, [GroupPlan()])
            attributions.done(99, 1, tells)
            if is_any_open:
                attributions.intend(98, 1, [GroupPlan()])
            watch = attributions.watch()
            wanted = [number for number, one in groups.items() if attributions.wants(one, watch)]
            assert wanted
            assert list(substitution.read_run(RunGroups(run), None).numbers) == wanted
            attributions.close()
