"""A group and its plan: statements stand for their rows, once each, or the group stays as it came."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.binlogs.routing.cut_group import CutGroup, Mismatch, Piece, cut_group
from binlane.binlogs.routing.event_routing import route
from binlane.binlogs.routing.planned import PlannedGroup, planned
from binlane.binlogs.routing.planned_route import (
    CHANGED_DEFINITION,
    PlannedRouting,
    Threads,
    route_planned,
    without_marks,
)
from binlane.binlogs.routing.query_events import with_ddl_xid
from binlane.binlogs.routing.routing_memory import NOTHING, Memory, StoredObject, StoredObjectKind
from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import EventType, GtidFlag, HeaderFlag
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.sections import RowsPiece
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.statements.scope.definition import Definition
from binlane.statements.session.group_plan import (
    EncodedEvent,
    GroupPlan,
    Part,
    RowsPart,
    TextPart,
    basis_of,
)
from tests.fixture_sets import fixture_set
from tests.routed_files import definitions

SETS = (
    "md1011_txn",
    "md1011_compressed",
    "md118_txn",
    "my97_txn",
    "my97_compressed",
    "md1011_stored",
)
ALL, SHOP = definitions("LOG ALL, FORMAT='STATEMENT'", "LOG(shop), FORMAT='STATEMENT'")


@cache
def groups(name: str) -> tuple[Format, list[EventGroup]]:
    found = [
        group
        for file, data in fixture_set(name).binlogs
        for group in group_events(walk([data], file=file), file=file)
    ]
    first = found[0].events[0].body
    assert isinstance(first, FormatDescriptionEvent)
    return first.format, [g for g in found if not g.is_control and g.is_complete]


def cut_groups(name: str) -> Iterator[tuple[EventGroup, CutGroup]]:
    format_, found = groups(name)
    for group in found:
        cut = cut_group(group, format_)
        if isinstance(cut, CutGroup) and cut.pieces and cut.end:
            yield group, cut


def text(
    format_: Format,
    section: int | None,
    query: str = "UPDATE shop.a SET a = 1",
    *,
    thread_id: int = 7,
    flags: int = 0,
) -> TextPart:
    body = QueryEvent(
        thread_id=thread_id,
        execution_time=0,
        error_code=0,
        status_vars=b"",
        database=b"shop",
        query=query.encode(),
    )
    return TextPart((EncodedEvent(EventType.QUERY, body.encode(format_), flags),), section, None, 9)


def plan(pieces: Sequence[Piece], parts: Sequence[Part], definition: Definition = ALL) -> GroupPlan:
    return GroupPlan(
        sections=tuple((RowsPiece(tuple(piece.mapped), ()),) for piece in pieces),
        binlogs={definition.name: tuple(parts)},
        bases={definition.name: basis_of(definition)},
    )


def outcome(
    group: EventGroup,
    made: GroupPlan,
    format_: Format,
    definition: Definition = ALL,
    *,
    memory: Memory = NOTHING,
    threads: Threads | None = None,
) -> PlannedRouting:
    return route_planned(
        group, made, definition, format_, memory=memory, threads=threads or Threads()
    )


def queries(events: Sequence[Event]) -> list[bytes]:
    return [event.body.query for event in events if isinstance(event.body, QueryEvent)]


def images(events: Sequence[Event], format_: Format) -> list[bytes]:
    whole = expanded_all(events, file="x", format_=format_)
    return [event.body.images for event in whole if isinstance(event.body, RowsEvent)]


@pytest.mark.parametrize("name", SETS)
@given(data=st.data())
def test_each_section_is_there_once_as_it_was_planned(name: str, data: st.DataObject) -> None:
    format_, _ = groups(name)
    for group, cut in cut_groups(name):
        kinds = data.draw(
            st.lists(st.sampled_from("trn"), min_size=len(cut.pieces), max_size=len(cut.pieces))
        )
        parts: list[Part] = []
        expected: list[bytes] = []
        for number, (kind, piece) in enumerate(zip(kinds, cut.pieces, strict=True)):
            if kind == "t":
                parts.append(text(format_, number, f"UPDATE shop.a SET a = {number}"))
                expected.append(f"UPDATE shop.a SET a = {number}".encode())
            elif kind == "r":
                parts.append(RowsPart(number))
                expected += images(piece.events, format_)
        found = planned(group, plan(cut.pieces, parts), ALL.name, format_)
        if isinstance(found, Mismatch):
            assert any(not isinstance(one, Piece) for one in cut.items), found
            continue
        made = found.group
        assert bool(made.events) == bool(expected)
        if not expected:
            continue
        assert made.events[0].header == replace(
            group.events[0].header, type_code=made.events[0].header.type_code
        )
        middle = made.events[len(cut.head) : len(made.events) - len(cut.end)]
        actual = [
            body.query if isinstance(body, QueryEvent) else body.images
            for body in (event.body for event in middle)
            if isinstance(body, RowsEvent)
            or (isinstance(body, QueryEvent) and body.query.startswith(b"UPDATE"))
        ]
        assert actual == expected
        assert made.events[-len(cut.end) :] == cut.end


@pytest.mark.parametrize("name", SETS)
def test_what_was_not_planned_so_goes_as_rows(name: str) -> None:
    format_, _ = groups(name)
    other = TableName("shop", "no such table")
    for group, cut in cut_groups(name):
        texts = [text(format_, number) for number in range(len(cut.pieces))]
        good = plan(cut.pieces, texts)
        wrong = (
            replace(good, sections=good.sections[:-1]),
            replace(good, sections=(*good.sections, good.sections[0])),
            replace(good, sections=((RowsPiece((other,), ()),), *good.sections[1:])),
            replace(good, binlogs={ALL.name: (*texts, texts[-1])}),
            replace(good, binlogs={ALL.name: (TextPart((), 0), *texts[1:])}),
            replace(good, binlogs={ALL.name: (TextPart((EncodedEvent(2, b"?"),), 0), *texts[1:])}),
            replace(good, binlogs={ALL.name: (text(format_, 99), *texts[1:])}),
        )
        as_rows = route(group, ALL, format_).group
        for each in wrong:
            found = outcome(group, each, format_)
            assert found.routing.group == as_rows
            assert len(found.reasons) == 1
        assert outcome(group, replace(good, bases={}), format_).reasons == (CHANGED_DEFINITION,)
        assert outcome(group, replace(good, binlogs={}), format_) == PlannedRouting(
            routing=route(group, ALL, format_)
        )


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(20))
def test_whatever_a_group_and_a_plan_are_nothing_else_is_raised(name: str, seed: int) -> None:
    chance = random.Random(seed)
    format_, found = groups(name)
    everything = [event for group in found for event in group.events]
    for group, cut in cut_groups(name):
        events = list(group.events)
        for _ in range(chance.randrange(1, 4)):
            place = chance.randrange(len(events))
            deed = chance.randrange(3)
            if deed == 0 and len(events) > 1:
                del events[place]
            elif deed == 1:
                events.insert(place, chance.choice(everything))
            else:
                other = chance.randrange(len(events))
                events[place], events[other] = events[other], events[place]
        damaged = replace(group, events=tuple(events))
        parts: list[Part] = [
            chance.choice((RowsPart(number), text(format_, number)))
            for number in range(len(cut.pieces))
        ]
        for definition in (ALL, SHOP):
            made = plan(cut.pieces, parts, definition)
            with suppress(CodecError):
                route_planned(damaged, made, definition, format_)
            with suppress(CodecError):
                without_marks(damaged, format_)


def one_group(name: str = "md1011_txn") -> tuple[Format, EventGroup, CutGroup]:
    format_, _ = groups(name)
    for group, cut in cut_groups(name):
        is_plain = len(cut.items) == 1 and cut.pieces[0].changed == {TableName("shop", "a")}
        if is_plain and cut.end[-1].header.type_code == EventType.XID:
            return format_, group, cut
    raise AssertionError


def test_a_text_stays_out_of_a_scope_that_it_names_others_than() -> None:
    format_, group, cut = one_group()
    good = plan(cut.pieces, [text(format_, 0)], SHOP)
    assert queries(_events(outcome(group, good, format_, SHOP)))[-1].startswith(b"UPDATE")
    for query in (
        "UPDATE shop.a SET a = (SELECT max(a) FROM crm.x)",
        "INSERT INTO shop.a SELECT * FROM crm.x",
        "UPDATE shop.a SET a = crm.f(1)",
        "UPDATE shop.a, crm.x SET a.a = 1",
        "UPDATE shop.a SET a = ???",
        "UPDATE crm.a SET a = 1",
    ):
        found = outcome(group, plan(cut.pieces, [text(format_, 0, query)], SHOP), format_, SHOP)
        assert len(found.reasons) == 1, query
        assert images(_events(found), format_) == images(group.events, format_)
        assert not any(b"crm" in each for each in queries(_events(found)))
        assert not found.routing.omissions


def test_a_text_that_changes_outside_of_a_scope_goes_as_rows() -> None:
    format_, group, _ = one_group()
    (table_map,) = (one for one in group.events if isinstance(one.body, TableMapEvent))
    assert isinstance(table_map.body, TableMapEvent)
    outside = replace(table_map, body=replace(table_map.body, database="crm", table_id=999))
    (rows,) = (one for one in group.events if isinstance(one.body, RowsEvent))
    assert isinstance(rows.body, RowsEvent)
    first = replace(rows, body=replace(rows.body, table_id=999, flags=0))
    at = group.events.index(rows)
    both = replace(group, events=(*group.events[:at], outside, first, *group.events[at:]))
    both_cut = cut_group(both, format_)
    assert isinstance(both_cut, CutGroup)
    assert len(both_cut.pieces) == 1
    found = outcome(both, plan(both_cut.pieces, [text(format_, 0)], SHOP), format_, SHOP)
    assert "outside of the scope" in found.reasons[0]
    assert images(_events(found), format_) == images(group.events, format_)


def test_a_trigger_that_a_binlog_lacks_may_have_changed_the_rows() -> None:
    format_, group, cut = one_group()
    memory = Memory().with_left_out(StoredObject(StoredObjectKind.TRIGGER, TableName("shop", "x")))
    for definition in (ALL, SHOP):
        made = plan(cut.pieces, [text(format_, 0)], definition)
        found = outcome(group, made, format_, definition, memory=memory)
        assert "trigger" in found.reasons[0]
        assert images(_events(found), format_) == images(group.events, format_)


def test_a_binlog_that_has_nothing_of_a_group_has_nothing() -> None:
    format_, group, cut = one_group()
    for definition in (ALL, SHOP):
        found = outcome(group, plan(cut.pieces, [], definition), format_, definition)
        assert found.routing.group is None
        assert not found.reasons


def test_temporary_tables_are_used_where_they_were_made() -> None:
    format_, group, cut = one_group()
    specific = int(HeaderFlag.THREAD_SPECIFIC)
    making = text(format_, None, "CREATE TEMPORARY TABLE shop.tmp (a INT)", flags=specific)
    using = text(format_, 0, "INSERT INTO shop.a SELECT a FROM shop.tmp", flags=specific)
    for definition in (ALL, SHOP):
        found = outcome(group, plan(cut.pieces, [using], definition), format_, definition)
        assert found.reasons
        assert found.lost == {7}
        assert images(_events(found), format_) == images(group.events, format_)
        found = outcome(group, plan(cut.pieces, [making, using], definition), format_, definition)
        assert not found.reasons
        assert found.made == {7}
        assert len(queries(_events(found))) == 2
        first = _events(found)[0].body
        assert isinstance(first, GtidEvent)
        assert not first.flags & GtidFlag.TRANSACTIONAL
        after = Threads(made=found.made)
        found = outcome(
            group, plan(cut.pieces, [using], definition), format_, definition, threads=after
        )
        assert not found.reasons
        lost = Threads(made=frozenset({7}), lost=frozenset({7}))
        found = outcome(
            group, plan(cut.pieces, [making, using], definition), format_, definition, threads=lost
        )
        assert len(found.reasons) == 2
        assert images(_events(found), format_) == images(group.events, format_)
    wrong = replace(plan(cut.pieces, [making, using]), sections=())
    assert outcome(group, wrong, format_).lost == {7}


def test_a_delete_of_several_tables_uses_temporary_ones_where_the_plan_says_so() -> None:
    format_, group, cut = one_group()
    specific = int(HeaderFlag.THREAD_SPECIFIC)
    query = "DELETE x FROM shop.a x JOIN shop.b y ON x.a = y.a"
    for definition in (ALL, SHOP):
        deleting = text(format_, 0, query, flags=specific)
        found = outcome(group, plan(cut.pieces, [deleting], definition), format_, definition)
        assert not found.reasons
        on_temporary = plan(cut.pieces, [deleting._replace(uses_temporary=True)], definition)
        found = outcome(group, on_temporary, format_, definition)
        assert len(found.reasons) == 1
        assert found.lost == {7}
        assert images(_events(found), format_) == images(group.events, format_)
        made = Threads(made=frozenset({7}))
        found = outcome(group, on_temporary, format_, definition, threads=made)
        assert not found.reasons


def test_temporary_tables_are_dropped_whatever_the_scope_is_by_then() -> None:
    format_, group, _ = one_group()
    (crm,) = definitions("LOG(crm), FORMAT='STATEMENT'")
    dropping = text(format_, None, "DROP TEMPORARY TABLE `tmp`", flags=4)
    empty = replace(group, events=(group.events[0], group.events[-1]))
    made = plan((), [dropping], crm)
    found = outcome(empty, made, format_, crm, threads=Threads(made=frozenset({7})))
    assert queries(_events(found)) == [b"DROP TEMPORARY TABLE `tmp`"]
    found = outcome(empty, made, format_, crm)
    assert found.routing.group is None


def test_a_statement_of_the_source_itself_stays_without_the_temporary_tables_it_names() -> None:
    format_, found = groups("md1011_txn")
    lone = next(
        group
        for group in found
        if isinstance(cut := cut_group(group, format_), CutGroup) and not cut.end
    )
    like = text(format_, None, "CREATE TABLE shop.n LIKE shop.tmp", flags=4)
    for definition in (ALL, SHOP):
        made, lost = plan((), [like], definition), Threads(lost=frozenset({7}))
        got = outcome(lone, made, format_, definition, threads=lost)
        assert got.reasons
        assert got.lost == {7}
        assert got.routing == route(lone, definition, format_)


def test_what_is_of_a_connection_for_another_reason_needs_no_temporary_table() -> None:
    format_, group, cut = one_group()
    for query in ("DELETE x, y FROM a x JOIN b y", "UPDATE shop.a SET a = CONNECTION_ID()"):
        using = text(format_, 0, query, flags=4)
        assert not outcome(group, plan(cut.pieces, [using]), format_).reasons
        lost = Threads(lost=frozenset({7}))
        assert outcome(group, plan(cut.pieces, [using]), format_, threads=lost).reasons


def test_a_statement_that_stands_alone_has_no_end() -> None:
    format_, group, cut = one_group()
    made = plan(cut.pieces, [text(format_, 0, "UPDATE shop.a SET a = 1")])
    found = _events(outcome(group, replace(made, ends={ALL.name: None}), format_))
    assert len(found) == 2
    assert isinstance(found[0].body, GtidEvent)
    assert found[0].body.is_standalone
    (end,) = text(format_, 0, "ROLLBACK").events
    rolled_back = TextPart((end._replace(flags=8),))
    found = _events(outcome(group, replace(made, ends={ALL.name: rolled_back}), format_))
    assert queries(found)[-1] == b"ROLLBACK"
    assert not any(event.header.type_code == EventType.XID for event in found)
    empty = replace(group, events=(group.events[0], group.events[-1]))
    for query, count in (
        ("CREATE TEMPORARY TABLE tmp (a INT)", 2),
        ("CREATE TEMPORARY TABLE tmp SELECT 1 AS a", 3),
        ("DROP TEMPORARY TABLE IF EXISTS tmp", 2),
        ("ALTER TABLE tmp ADD b INT", 2),
        ("INSERT INTO tmp VALUES (1)", 3),
    ):
        alone = plan((), [text(format_, None, query)])
        known = Threads(made=frozenset({7}))
        assert len(_events(outcome(empty, alone, format_, threads=known))) == count
    two = replace(made, binlogs={ALL.name: (*made.binlogs[ALL.name], text(format_, None))})
    assert outcome(group, replace(two, ends={ALL.name: None}), format_).reasons


def savepoints(format_: Format, group: EventGroup, cut: CutGroup) -> EventGroup:
    """The group's rows twice, the second time rolled back to a savepoint."""
    (piece,) = cut.pieces

    def control(query: str) -> Event:
        body = QueryEvent.decode(Reader(text(format_, None, query).events[0].body), format_)
        header = replace(group.events[0].header, type_code=EventType.QUERY)
        return Event(header, body)

    return replace(
        group,
        events=(
            *(*cut.head, *piece.events, control("SAVEPOINT `a`"), *piece.events),
            *(control("ROLLBACK TO `a`"), *cut.end),
        ),
    )


def test_what_is_rolled_back_to_a_savepoint_is_so_in_the_binlog() -> None:
    format_, group, cut = one_group()
    twice = savepoints(format_, group, cut)
    pieces = cut.pieces * 2
    point, back = text(format_, None, "SAVEPOINT a"), text(format_, None, "ROLLBACK TO a")
    first, second = text(format_, 0), text(format_, 1)
    kept: list[list[Part]] = [
        [first, point, second, back],
        [first, point, RowsPart(1), back],
        [first],
        [RowsPart(0), point],
    ]
    for parts in kept:
        found = outcome(twice, plan(pieces, parts), format_)
        assert not found.reasons, parts
    others: list[list[Part]] = [
        [first, second],
        [first, point, second],
        [point, first, second, back],
        [point, first, back],
        [first, second, point, back],
    ]
    for parts in others:
        found = outcome(twice, plan(pieces, parts), format_)
        assert found.reasons == ("a savepoint is rolled back otherwise than planned",), parts


def _events(found: PlannedRouting) -> tuple[Event, ...]:
    assert found.routing.incident is None
    assert found.routing.group is not None
    return found.routing.group.events


def test_a_planned_group_is_a_value() -> None:
    format_, group, cut = one_group()
    found = planned(group, plan(cut.pieces, [text(format_, 0)]), ALL.name, format_)
    assert isinstance(found, PlannedGroup)
    assert found.has_text
    assert [event.header.timestamp for event in found.group.events[1:-1]] == [9]


def test_ddl_of_mysql_has_the_number_of_its_transaction() -> None:
    _, group, _ = one_group()
    number = next(one.body.xid for one in group.events if isinstance(one.body, XidEvent))
    flags, collation = b"\0" + bytes(4), b"\x12" + bytes(2)
    for planned_number, found in ((0, number), (77, 77)):
        variables = [b"\x11" + one.to_bytes(8, "little") for one in (planned_number, found)]
        statement = QueryEvent(
            thread_id=1,
            execution_time=0,
            error_code=0,
            database=b"shop",
            query=b"CREATE TABLE b SELECT 1",
            status_vars=flags + variables[0] + collation,
        )
        wanted = flags + variables[1] + collation
        assert with_ddl_xid(statement, group.events).status_vars == wanted
    unknown = replace(statement, status_vars=flags + b"\x11" + bytes(8) + collation)
    assert with_ddl_xid(unknown, group.events[:1]).status_vars == flags + collation
