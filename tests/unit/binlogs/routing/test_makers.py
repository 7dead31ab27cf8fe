"""Who made the groups of real logs: by the bytes of a run as by the decoded events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from binlane.binlogs.routing.cut_group import MARKS, CutGroup, annotated, cut_group
from binlane.binlogs.routing.makers import (
    could_be,
    could_be_raw,
    marked,
    thread_of,
    thread_of_raw,
)
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.binlogs.store.byte_source import FileBytes
from binlane.log.codec.compression import compress_record
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent, XaPrepareEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.placing import place_group
from binlane.log.grouping.raw import RawRun, raw_groups
from binlane.log.grouping.sections import RowsPiece
from binlane.log.grouping.walk import walk
from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.load import is_compiled
from binlane.names import TableName
from binlane.positions import GtidPosition, GtidSet, Position
from binlane.statements.session.group_plan import EncodedEvent, GroupPlan, TextPart
from tests.fixture_sets import fixture_set, server_sets
from tests.routed_files import written

pytestmark = pytest.mark.skipif(not is_compiled(("scan",)), reason="the kernels are not built")

_ENCRYPTED = {"md1011_encrypted", "my97_encrypted"}
# Their QUERY events are compressed, too.
_COMPRESSED = {"md1011_compressed", "md1011_compressed_minimal"}
_SAMPLED = {
    *("md1011_txn", "md1011_ddl", "md1011_engines_row", "md1011_xa", "md1011_gtid", "md118_gtid"),
    *("md118_compressed", "md118_format_statement", "my97_txn", "my97_compressed", "my97_xa"),
    *("my97_gtid_tagged", "my97_incident", "my97_engines_mixed", "md1011_alter_two_phase"),
    *("md118_alter_two_phase", "md1011_checksum_toggle"),
}
SETS = [
    *sorted(_SAMPLED),
    *sorted(_COMPRESSED),
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in server_sets()
        if name not in _ENCRYPTED | _COMPRESSED | _SAMPLED
    ),
]


def runs_of(paths: Sequence[str], window_bytes: int = 1 << 20) -> Iterator[RawRun]:
    for path in paths:
        with closing(FileBytes(path)) as source:
            for item in raw_groups(
                source, file=path, name=Path(path).name, window_bytes=window_bytes
            ):
                if isinstance(item, RawRun):
                    yield item


def threads_of_run(run: RawRun) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = RunGroups(run).facts[lay.FACT_THREAD]
    return found


def groups_of(run: RawRun) -> list[EventGroup]:
    return [run.group(number) for number in range(run.count)]


@pytest.mark.parametrize("window_bytes", [900, 1 << 20])
@pytest.mark.parametrize("name", SETS)
def test_bytes_tell_the_thread_that_events_tell(
    name: str, window_bytes: int, tmp_path: Path
) -> None:
    for run in runs_of(written(name, tmp_path), window_bytes):
        expected = [thread_of(group, run.format) for group in groups_of(run)]
        looked_at = RunGroups(run)
        assert [thread_of_raw(looked_at, number) for number in range(run.count)] == expected
        found = threads_of_run(run)
        assert found.shape == (run.count,)
        for thread_id, each in zip(found.tolist(), expected, strict=True):
            # What is not seen at a glance has to be asked.
            assert thread_id in (-1, each)


@pytest.mark.parametrize("name", ["md1011_txn", "md1011_format_mixed", "md118_txn", "my97_txn"])
def test_groups_of_part_of_a_run(name: str, tmp_path: Path) -> None:
    """A run may be cut: its events then go on behind its groups, or begin before them."""
    for run in runs_of(written(name, tmp_path)):
        expected = [thread_of(group, run.format) for group in groups_of(run)]
        for count in (1, run.count // 2, run.count - 1):
            if not 0 < count < run.count:
                continue
            for part, own in (
                (run.head(count), expected[:count]),
                (run.kept(count), expected[count:]),
            ):
                looked_at = RunGroups(part)
                assert [thread_of_raw(looked_at, number) for number in range(part.count)] == own
                found = threads_of_run(part)
                assert all(one in (-1, each) for one, each in zip(found, own, strict=True))


def named(name: str, tmp_path: Path) -> Iterator[tuple[EventGroup, int, int]]:
    """The groups of a set with GTIDs, their threads, and what is seen of these at a glance."""
    for run in runs_of(written(name, tmp_path)):
        found = threads_of_run(run)
        for number, group in enumerate(groups_of(run)):
            if group.gtid is not None:
                yield group, thread_of(group, run.format), int(found[number])


def test_an_older_mariadb_names_no_thread_where_a_group_has_rows_alone(tmp_path: Path) -> None:
    seen = set()
    for group, thread_id, at_once in named("md1011_engines_row", tmp_path):
        has_query = any(isinstance(event.body, QueryEvent) for event in group.events)
        is_commit = group.events[-1].header.type_code == EventType.XID
        assert bool(thread_id) == has_query
        assert has_query or is_commit
        assert at_once == thread_id or not has_query
        seen.add((has_query, is_commit))
    # It is seen at a glance in the middle of a group, too.
    assert seen == {(True, False), (False, True), (True, True)}


@pytest.mark.parametrize("name", ["md118_txn", "md118_compressed", "md118_gtid"])
def test_a_newer_mariadb_names_the_thread_in_each_gtid(name: str, tmp_path: Path) -> None:
    for group, thread_id, at_once in named(name, tmp_path):
        gtid = group.events[0].body
        assert isinstance(gtid, GtidEvent)
        assert thread_id == at_once == gtid.thread_id
        assert thread_id


@pytest.mark.parametrize("name", ["my97_txn", "my97_ddl", "my97_gtid_tagged", "my97_xa"])
def test_mysql_names_the_thread_in_each_group(name: str, tmp_path: Path) -> None:
    count = 0
    for group, thread_id, at_once in named(name, tmp_path):
        first = next(event.body for event in group.events if isinstance(event.body, QueryEvent))
        assert thread_id == at_once == first.thread_id
        assert thread_id
        count += 1
    assert count


def test_mysql_names_the_thread_in_compressed_groups(tmp_path: Path) -> None:
    """That has to be asked: it costs to look into them."""
    found = list(named("my97_compressed", tmp_path))
    inside = [
        (thread_id, at_once)
        for group, thread_id, at_once in found
        if group.events[-1].header.type_code == EventType.TRANSACTION_PAYLOAD
    ]
    assert inside
    # One session made them all.
    assert {thread_id for _, thread_id, _ in found} == {inside[0][0]}
    assert {at_once for _, at_once in inside} == {-1}


@pytest.mark.parametrize("name", ["md1011_xa", "my97_xa"])
def test_threads_of_distributed_transactions(name: str, tmp_path: Path) -> None:
    is_prepared = []
    for group, thread_id, _ in named(name, tmp_path):
        last = group.events[-1].body
        is_prepared.append(isinstance(last, XaPrepareEvent) and not last.one_phase)
        is_alone = len(group.events) == 2
        if is_alone or any(isinstance(event.body, QueryEvent) for event in group.events):
            assert thread_id
    assert any(is_prepared)
    assert not all(is_prepared)


# Marks.


def with_marks(name: str, directory: Path, marks: Sequence[int], thread_id: int) -> tuple[str, int]:
    """The first file of a set, where the rows of some groups are marks for a session."""
    file, data = fixture_set(name).binlogs[0]
    groups = [
        group
        for group in group_events(walk([data], file=file), file=file)
        if not group.is_control and group.is_complete
    ]
    first = next(walk([data], file=file))
    assert isinstance(first.body, FormatDescriptionEvent)
    format_ = first.body.format
    made = bytearray(data[: first.header.next_position])
    for number, group in enumerate(groups):
        events = group.events
        if number in marks:
            events = tuple(_marking(event, thread_id) for event in events)
        made += place_group(events, len(made), format_)
    path = directory / file
    path.write_bytes(made)
    return str(path), len(groups)


def _marking(event: Event, thread_id: int) -> Event:
    body = event.body
    if isinstance(body, TableMapEvent):
        columns = {"column_types": b"\x01\x08\x08", "metadata": b"", "null_bits": b"\x00"}
        body = replace(body, database=MARKS.database, table=MARKS.table, **columns)  # type: ignore[arg-type]  # bytes
    elif isinstance(body, RowsEvent):
        row = b"\x00\x01" + thread_id.to_bytes(8, "little") + (7).to_bytes(8, "little")
        before = b"\x00\x01" + (99).to_bytes(8, "little") + (6).to_bytes(8, "little")
        images = before + row if body.columns_present_after is not None else row
        after = None if body.columns_present_after is None else b"\x07"
        body = replace(
            body,
            column_count=3,
            columns_present=b"\x07",
            columns_present_after=after,
            images=compress_record(images) if body.is_compressed else images,
        )
    return replace(event, body=body)


def _with_rows(name: str) -> list[int]:
    """Groups of the first file that hold rows, by number, without those of other kinds between."""
    file, data = fixture_set(name).binlogs[0]
    groups = [
        group
        for group in group_events(walk([data], file=file), file=file)
        if not group.is_control and group.is_complete
    ]
    return [
        number
        for number, group in enumerate(groups)
        if any(isinstance(event.body, RowsEvent) for event in group.events)
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("md1011_txn", "md1011_rotation", "md118_txn", "my97_txn", "md1011_checksum_none"),
        "md1011_compressed_minimal",
        *("md1011_annotate_off", "my97_rows_query"),
    ],
)
def test_a_mark_is_of_the_session_that_it_names(name: str, tmp_path: Path) -> None:
    session = 0x1_0203
    marks = _with_rows(name)[:7:2]
    assert marks
    path, count = with_marks(name, tmp_path, marks, session)
    place_ = 0
    for run in runs_of([path]):
        numbers = [mark - place_ for mark in marks if 0 <= mark - place_ < run.count]
        assert marked(RunGroups(run)) == numbers
        found = threads_of_run(run)
        for number, group in enumerate(groups_of(run)):
            thread_id = thread_of(group, run.format)
            assert (thread_id == session) == (number in numbers)
            if number in numbers:
                assert thread_of_raw(RunGroups(run), number) == session
        # Who made it is binlane's own connection, which is nobody's here.
        assert (found[numbers] == -1).all()
        place_ += run.count
    assert place_ == count


# What a group could be.


def plan_of(group: EventGroup, format_: Format, *, is_as_sent: bool = True) -> GroupPlan | None:
    """A plan with a text for each statement of a group; None where it is no group of rows."""
    cut = cut_group(group, format_)
    if not isinstance(cut, CutGroup) or not cut.pieces:
        return None
    texts = []
    for number, piece in enumerate(cut.pieces):
        query = annotated(piece.events) or b"UPDATE a SET b = 1"
        texts.append(text(query, number, format_, is_as_sent=is_as_sent))
    sections = tuple((RowsPiece(tuple(piece.mapped), ()),) for piece in cut.pieces)
    return GroupPlan(sections=sections, binlogs={"a": tuple(texts)})


def text(
    query: bytes, section: int | None, format_: Format, *, is_as_sent: bool = True
) -> TextPart:
    body = QueryEvent(
        thread_id=7,
        execution_time=0,
        error_code=0,
        status_vars=b"",
        database=b"shop",
        query=query,
    )
    event = EncodedEvent(EventType.QUERY, body.encode(format_))
    return TextPart((event,), section, is_as_sent=is_as_sent)


@pytest.mark.parametrize(
    "name",
    [
        *("md1011_txn", "md1011_fk", "md1011_annotate_off", "md1011_format_mixed"),
        *("md1011_checksum_none", "md1011_compressed", "md118_txn", "my97_txn"),
        *("my97_compressed", "my97_rows_query", "md1011_xa", "md1011_ddl"),
    ],
)
def test_bytes_tell_what_a_group_could_be_as_events_do(name: str, tmp_path: Path) -> None:
    could = 0
    for run in runs_of(written(name, tmp_path)):
        groups = groups_of(run)
        plans = [plan_of(group, run.format) for group in groups]
        for number, group in enumerate(groups):
            for other, plan in enumerate(plans):
                if plan is None:
                    continue
                found = could_be_raw(RunGroups(run), number, plan)
                assert found == could_be(group, run.format, plan)
                assert found or number != other
                could += found
    assert could


def groups_with_texts(name: str, tmp_path: Path) -> Iterator[tuple[RawRun, int, GroupPlan]]:
    for run in runs_of(written(name, tmp_path)):
        for number, group in enumerate(groups_of(run)):
            plan = plan_of(group, run.format)
            if plan is not None:
                yield run, number, plan


def has_texts(run: RawRun, number: int) -> bool:
    return annotated(run.group(number).events) is not None


def is_possible(run: RawRun, number: int, plan: GroupPlan) -> bool:
    found = could_be_raw(RunGroups(run), number, plan)
    assert could_be(run.group(number), run.format, plan) == found
    return found


@pytest.mark.parametrize("name", ["md1011_txn", "md1011_annotate_off", "my97_txn"])
def test_a_group_is_none_of_other_tables(name: str, tmp_path: Path) -> None:
    other = (RowsPiece((TableName("no", "table"),), ()),)
    count = 0
    for run, number, plan in groups_with_texts(name, tmp_path):
        assert is_possible(run, number, plan)
        assert not is_possible(run, number, replace(plan, sections=(other, *plan.sections[1:])))
        assert not is_possible(run, number, replace(plan, sections=(*plan.sections, other)))
        assert not is_possible(run, number, GroupPlan())
        count += 1
    assert count


def test_a_group_is_none_of_another_text(tmp_path: Path) -> None:
    """MariaDB writes the text of each statement before its rows."""
    count = 0
    for run, number, plan in groups_with_texts("md1011_txn", tmp_path):
        if not has_texts(run, number):
            continue
        *rest, last = plan.binlogs["a"]
        assert isinstance(last, TextPart)
        other = text(b"UPDATE another SET b = 1", last.section, run.format)
        assert not is_possible(run, number, replace(plan, binlogs={"a": (*rest, other)}))
        # Of a text that the source got in other words, or that is of no rows, that says nothing.
        for text_ in (other._replace(is_as_sent=False), other._replace(section=None)):
            assert is_possible(run, number, replace(plan, binlogs={"a": (*rest, text_)}))
        # Each binlog's are looked at.
        assert not is_possible(
            run, number, replace(plan, binlogs={**plan.binlogs, "b": (*rest, other)})
        )
        count += 1
    assert count


@pytest.mark.parametrize("name", ["md1011_annotate_off", "my97_txn", "my97_compressed"])
def test_a_group_without_texts_could_be_any_of_its_tables(name: str, tmp_path: Path) -> None:
    count = 0
    for run, number, plan in groups_with_texts(name, tmp_path):
        if has_texts(run, number):
            continue
        *rest, last = plan.binlogs["a"]
        assert isinstance(last, TextPart)
        other = text(b"UPDATE another SET b = 1", last.section, run.format)
        assert is_possible(run, number, replace(plan, binlogs={"a": (*rest, other)}))
        count += 1
    assert count


def test_a_group_that_cannot_be_cut_could_be_anything(tmp_path: Path) -> None:
    other = (RowsPiece((TableName("no", "table"),), ()),)
    count = 0
    for run in runs_of(written("md1011_format_mixed", tmp_path)):
        for number, group in enumerate(groups_of(run)):
            if not isinstance(cut_group(group, run.format), CutGroup):
                assert is_possible(run, number, GroupPlan(sections=(other,)))
                count += 1
    assert count


def test_sequences_are_those_of_gtids(tmp_path: Path) -> None:
    for name in ("md1011_gtid", "md118_gtid", "my97_gtid", "my97_gtid_tagged", "my97_gtid_off"):
        for run in runs_of(written(name, tmp_path / name)):
            expected = []
            for number in range(run.count):
                gtid = run.gtid(number)
                is_told = gtid is not None and not getattr(gtid, "tag", "")
                expected.append(gtid.sequence if gtid is not None and is_told else -1)
            assert np.array_equal(run.sequences(), expected)


def test_positions_behind_runs_are_those_behind_their_groups(tmp_path: Path) -> None:
    for name in ("md1011_gtid", "my97_gtid", "my97_gtid_tagged", "my97_gtid_off"):
        for run in runs_of(written(name, tmp_path / name)):
            gtids = [gtid for number in range(run.count) if (gtid := run.gtid(number)) is not None]
            empty: Position = GtidPosition() if name.startswith("md") else GtidSet()
            behind = empty
            for gtid in gtids:
                behind = behind.advance(gtid)
            assert run.position_after(empty) == behind
            assert run.follow(empty) == (behind, run.count)
            if gtids:
                assert run.follow(empty.advance(gtids[-1]))[1] < run.count
