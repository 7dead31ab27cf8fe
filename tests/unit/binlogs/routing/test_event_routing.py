"""Routing over real logs: what is in scope is all there, in order, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from binlane.binlogs.routing.event_routing import route
from binlane.binlogs.routing.moves import CREATED_MAX
from binlane.binlogs.routing.password_hashing import with_hashes
from binlane.binlogs.routing.routed_group import OmissionKind, Routing
from binlane.binlogs.routing.routing_memory import NOTHING, Memory
from binlane.log.codec.body import Body
from binlane.log.codec.control import FormatDescriptionEvent, IncidentEvent
from binlane.log.codec.event import Event, decode_event, encode_event
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.status_vars import is_undone
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import ALTER_PHASES
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import CreateBinlog, create
from tests.fixture_sets import fixture_names, fixture_set

# Encrypted, incomplete or synthetic on purpose, or far too large for so many runs.
_NOT_ROUTED = ("encrypted", "bigrow", "md1011_incident", "netstream", "bigcommit")
SETS = [
    name
    for name in (*fixture_names("md"), *fixture_names("my97"))
    if not name.endswith(_NOT_ROUTED)
]


def definition(clauses: str) -> Definition:
    statement = parse_binlog_statement(f"CREATE BINLOG 'b' {clauses}")
    assert isinstance(statement, CreateBinlog)
    return create(statement, 1)


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


def changes(events: tuple[Event, ...], format_: Format) -> Iterator[tuple[TableName, bytes, type]]:
    for _, body, table_map in rows_with_tables(events, file="x", format_=format_):
        yield TableName(table_map.database, table_map.table), body.images, type(body)


def tables_of(name: str) -> list[TableName]:
    format_, found = groups(name)
    return sorted({table for group in found for table, _, _ in changes(group.events, format_)})


@pytest.mark.parametrize("name", SETS)
@pytest.mark.rule("000:logged-by-all")
def test_a_scope_gets_its_rows_in_order_and_no_others(name: str) -> None:
    format_, found = groups(name)
    for table in tables_of(name)[:4]:
        wanted = definition(f"LOG({table})")
        for group in found:
            routing = route(group, wanted, format_)
            if routing.incident is not None:
                continue
            kept = () if routing.group is None else routing.group.events
            expected = [change for change in changes(group.events, format_) if change[0] == table]
            assert list(changes(kept, format_)) == expected
            assert routing.group is not None or not expected


@pytest.mark.parametrize("name", SETS)
def test_no_name_of_an_ignored_table_passes(name: str) -> None:
    format_, found = groups(name)
    for table in tables_of(name)[:3]:
        others = {t.table for t in tables_of(name)} - {table.table}
        # A name that is part of another one or of a word of SQL proves nothing.
        distinct = len(table.table) > 4 and not any(table.table in other for other in others)
        if not distinct:
            continue
        for group in found:
            routing = route(group, definition(f"IGNORE({table})"), format_)
            kept = () if routing.group is None else routing.group.events
            for event in expanded_all(kept, file="x", format_=format_):
                assert table.table.encode() not in encode_event(event, format_)


@pytest.mark.parametrize("name", SETS)
def test_what_is_routed_can_be_written_and_read(name: str) -> None:
    format_, found = groups(name)
    for table in tables_of(name)[:2]:
        for group in found:
            routing = route(group, definition(f"LOG({table})"), format_)
            if routing.group is None:
                continue
            assert routing.group.gtid == group.gtid
            assert isinstance(routing.group.events[0].body, GtidEvent | MysqlGtidEvent)
            for event in routing.group.events:
                data = encode_event(event, format_)
                assert encode_event(decode_event(data, format_), format_) == data
            statements = [e.body for e in routing.group.events if isinstance(e.body, RowsEvent)]
            assert not statements or statements[-1].ends_statement


@pytest.mark.parametrize("name", SETS)
def test_an_unscoped_binlog_gets_everything_as_it_is(name: str) -> None:
    format_, found = groups(name)
    for group in found:
        routing = route(group, definition("LOG ALL"), format_)
        assert routing.group is not None
        assert routing.group.events == with_hashes(group, format_).events


@pytest.mark.parametrize("name", SETS)
def test_an_empty_scope_gets_nothing(name: str) -> None:
    format_, found = groups(name)
    for group in found:
        routing = route(group, definition("IGNORE ALL"), format_)
        # XA transactions keep their skeleton; what the source lost stops replicas.
        if routing.group is not None and routing.incident is None:
            assert not list(changes(routing.group.events, format_))
            assert any(
                event.header.type_name in {"XA_PREPARE_LOG", "INCIDENT"} or _is_xa(event)
                for event in group.events
            )


def _is_xa(event: Event) -> bool:
    return isinstance(event.body, QueryEvent) and event.body.query.startswith(b"XA ")


def find(name: str, clauses: str, *, annotate: bytes) -> tuple[EventGroup, Routing]:
    format_, found = groups(name)
    for group in found:
        if any(
            isinstance(e.body, AnnotateRowsEvent) and annotate in e.body.query for e in group.events
        ):
            return group, route(group, definition(clauses), format_)
    raise AssertionError(f"no group with {annotate!r}")


def annotate_texts(routing: Routing) -> list[bytes]:
    assert routing.group is not None
    return [e.body.query for e in routing.group.events if isinstance(e.body, AnnotateRowsEvent)]


def with_annotation(group: EventGroup, query: bytes) -> EventGroup:
    events = tuple(
        replace(e, body=AnnotateRowsEvent(query=query))
        if isinstance(e.body, AnnotateRowsEvent)
        else e
        for e in group.events
    )
    return replace(group, events=events)


@pytest.mark.parametrize(
    ("query", "stays"),
    [
        (b"INSERT INTO a(v) VALUES(1)", True),
        (b"INSERT INTO shop.a(v) VALUES('it''s')", True),
        (b"INSERT INTO a(v) SELECT 1 FROM crm.person", False),
        (b"INSERT INTO a(v) SELECT v FROM b", False),
        (b"INSERT INTO a(v) VALUES(crm.secret())", False),
        (b"INSERT INTO a(v) VALUES(1) /* from crm.person */", False),
        (b'INSERT INTO a(v) VALUES("x")', True),
        (b'INSERT INTO a(v) SELECT "v" FROM "crm"."person"', False),
        (b"INSERT INTO a(v) VALUES(", False),
    ],
)
def test_annotate_text_stays_only_if_all_it_names_is_in_scope(query: bytes, *, stays: bool) -> None:
    group, _ = find("md1011_txn", "LOG(shop.a)", annotate=b"INSERT INTO a(v) VALUES(1)")
    routing = route(
        with_annotation(group, query), definition("LOG(shop.a)"), groups("md1011_txn")[0]
    )
    assert annotate_texts(routing) == ([query] if stays else [])
    kinds = [omission.kind for omission in routing.omissions]
    assert kinds == ([] if stays else [OmissionKind.ANNOTATE])
    assert routing.group is not None
    assert any(isinstance(e.body, RowsEvent) for e in routing.group.events)


def test_an_incident_takes_the_place_of_a_group_with_its_gtid() -> None:
    format_, found = groups("md1011_ddl")
    incidents = [
        (group, routing)
        for group in found
        if (routing := route(group, definition("LOG(shop.t1), IGNORE(shop.t2)"), format_)).incident
    ]
    for group, routing in incidents:
        assert routing.group is not None
        assert routing.group.gtid == group.gtid
        gtid, incident = (event.body for event in routing.group.events)
        assert isinstance(gtid, GtidEvent)
        assert gtid.is_standalone
        assert isinstance(incident, IncidentEvent)
        assert str(group.gtid).encode() in incident.message
    assert incidents


def test_default_databases_are_in_scope_or_gone() -> None:
    for name in SETS:
        format_, found = groups(name)
        for group in found:
            routing = route(group, definition("IGNORE(shop)"), format_)
            for event in () if routing.group is None else routing.group.events:
                if isinstance(event.body, QueryEvent):
                    assert event.body.database != b"shop"
                assert not isinstance(event.body, TableMapEvent) or event.body.database != "shop"


@pytest.mark.parametrize("name", ["md1011_xa", "my97_xa"])
def test_an_xa_transaction_is_finished_where_it_was_prepared(name: str) -> None:
    format_, found = groups(name)
    for clauses, is_there in (("LOG(shop.x)", True), ("IGNORE(shop.x)", False)):
        prepared: frozenset[str] = frozenset()
        memory, finished = NOTHING, 0
        for group in found:
            routing = route(group, definition(clauses), format_, prepared, memory)
            routed, memory = routing.group, routing.memory or memory
            if routed is None:
                continue
            assert is_there or not any(_is_xa(event) for event in routed.events)
            prepared |= {routed.prepares} if routed.prepares else set()
            if routed.finishes:
                assert routed.finishes in prepared
                prepared -= {routed.finishes}
                finished += 1
        assert (finished > 3) == is_there


def test_what_may_have_been_left_out_is_dropped_only_if_it_is_there() -> None:
    format_, found = groups("md1011_format_row")
    texts = [
        event.body.query
        for group in found
        if (routed := route(group, definition("LOG(shop)"), format_).group)
        for event in routed.events
        if isinstance(event.body, QueryEvent)
    ]
    drops = [text for text in texts if text.startswith((b"DROP TRIGGER", b"DROP PROC"))]
    assert len(drops) > 1
    assert all(b" IF EXISTS " in text for text in drops)


def test_a_function_outside_of_the_scope_is_an_incident() -> None:
    format_, found = groups("md1011_format_statement")
    reasons = [route(group, definition("LOG(shop.ai2)"), format_).incident for group in found]
    assert "a statement calls a function that is not in the scope" in reasons
    reasons = [route(group, definition("LOG(shop)"), format_).incident for group in found]
    assert "a statement calls a function that is not in the scope" not in reasons


def altered(body: Body, text: str) -> QueryEvent:
    assert isinstance(body, QueryEvent)
    return replace(body, query=text.encode(), database=b"shop")


def test_of_tables_that_may_come_in_the_newest_are_known() -> None:
    format_, found = groups("md1011_ddl")
    shop = definition("LOG(shop)")
    alone = next(
        group
        for group in found
        if len(group.events) == 2 and isinstance(group.events[1].body, QueryEvent)
    )

    def routed(text: str, memory: Memory) -> Routing:
        first, statement = alone.events
        event = replace(statement, body=altered(statement.body, text))
        return route(replace(alone, events=(first, event)), shop, format_, memory=memory)

    memory, names = NOTHING, range(2 * CREATED_MAX)
    for name in names:
        memory = (
            routed(f"CREATE TABLE crm.t{name} (a INT) DEFAULT CHARSET=utf8mb4", memory).memory
            or memory
        )
    assert len(memory.created) == CREATED_MAX
    incidents = [routed(f"RENAME TABLE crm.t{name} TO shop.t", memory).incident for name in names]
    assert all(incidents[:CREATED_MAX])
    assert not any(incidents[CREATED_MAX:])


def phases(text: str, clauses: str) -> list[tuple[list[str], int]]:
    """What a binlog gets of ALTERs in two phases: of each phase its texts, and the GTID's flags."""
    format_, found = groups("md1011_alter_two_phase")
    memory, kept = NOTHING, list[tuple[list[str], int]]()
    for group in found:
        first, *rest = group.events
        assert isinstance(first.body, GtidEvent)
        if not (first.body.flags_extra or 0) & ALTER_PHASES:
            continue
        events = [replace(each, body=altered(each.body, text)) for each in rest]
        routed = route(
            replace(group, events=(first, *events)), definition(clauses), format_, memory=memory
        )
        memory = routed.memory or memory
        if routed.group is None:
            continue
        gtid, *statements = routed.group.events
        data = encode_event(gtid, format_)
        assert decode_event(data, format_).body == gtid.body
        assert isinstance(gtid.body, GtidEvent)
        assert len(data) >= 19 + 19 + format_.checksum_length
        texts = [
            event.body.query.decode() if isinstance(event.body, QueryEvent) else "INCIDENT"
            for event in statements
        ]
        has_phases = [is_undone(e.body) for e in statements if isinstance(e.body, QueryEvent)]
        assert not any(has_phases) or gtid.body.is_undone
        kept.append((texts, int(gtid.body.flags_extra or 0) & ALTER_PHASES))
    return kept


@pytest.mark.parametrize("clauses", ["LOG(shop.orders)", "LOG(shop)", "IGNORE(crm)"])
def test_an_alter_in_scope_keeps_its_phases(clauses: str) -> None:
    text = "ALTER TABLE orders ADD COLUMN w INT"
    found = phases(text, clauses)
    assert {flags for _, flags in found} == {2, 4, 8}
    assert all(texts == [text] for texts, _ in found)


@pytest.mark.parametrize(
    ("text", "clauses", "made"),
    [
        # The table goes, which a replica must not do before the source has done it.
        (
            "ALTER TABLE orders RENAME TO bought",
            "LOG(shop.orders)",
            "DROP TABLE IF EXISTS `shop`.`orders`",
        ),
        # It comes with its rows.
        ("ALTER TABLE bought RENAME TO orders", "LOG(shop.orders)", "INCIDENT"),
    ],
)
def test_what_stands_for_an_alter_in_two_phases_stands_for_its_commit(
    text: str, clauses: str, made: str
) -> None:
    commits = sum(flags == 4 for _, flags in phases("ALTER TABLE orders COMMENT ''", "LOG(shop)"))
    found = phases(text, clauses)
    assert commits > 1
    assert found == [([made], 0)] * commits
