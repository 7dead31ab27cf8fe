from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.log.codec.body import Body
from binlane.log.codec.control import IncidentEvent, RotateEvent, StopEvent
from binlane.log.codec.event import Event
from binlane.log.codec.mysql_transaction import AnonymousGtidEvent, MysqlGtidEvent, TaggedGtidEvent
from binlane.log.codec.payload import LargeTransactionHeaderEvent, TransactionPayloadEvent
from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent
from binlane.log.codec.registry import OpaqueEvent
from binlane.log.codec.transaction import (
    GtidEvent,
    GtidListEvent,
    TransactionXid,
    XaPrepareEvent,
    XidEvent,
)
from binlane.log.codec.types import EventType, GtidFlag
from binlane.log.codec.variables import IntvarEvent
from binlane.log.grouping.event_group import EventGroup, Grouper, GroupTracker, group_events
from binlane.log.grouping.walk import walk
from binlane.positions import Gtid, MysqlGtid
from tests.build import event, format_description, log, rows, table_map


def query(text: bytes) -> QueryEvent:
    return QueryEvent(
        thread_id=1, execution_time=0, error_code=0, status_vars=b"", database=b"", query=text
    )


def gtid(sequence: int, flags: int = GtidFlag.TRANSACTIONAL) -> GtidEvent:
    return GtidEvent(sequence=sequence, domain_id=0, flags=flags, flags_extra=0, padding=bytes(5))


DDL = query(b"CREATE TABLE t (a INT)")
INSERT = query(b"INSERT INTO t VALUES (1)")
ROWS = (AnnotateRowsEvent(query=b"INSERT"), table_map(EventType.STOP), rows(1, b"\xff"))
XID = XidEvent(xid=1)
COMMIT = query(b"COMMIT")
XA_PREPARE = XaPrepareEvent(
    one_phase=0, xid=TransactionXid(format_id=1, global_id=b"a", branch=b"")
)
SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
ANONYMOUS = AnonymousGtidEvent(
    flags=1, source_id="00000000-0000-0000-0000-000000000000", sequence=0
)


def groups(*items: Event | Body) -> list[EventGroup]:
    """The groups after the FORMAT_DESCRIPTION, which is MySQL's where they have its GTIDs."""
    is_mysql = any(isinstance(item, MysqlGtidEvent) for item in items)
    head = format_description(server_version="8.4.1") if is_mysql else None
    return list(group_events(walk([log(*items, head=head)], file="f"), file="f"))[1:]


def sizes(*items: Event | Body) -> list[int]:
    return [len(group.events) for group in groups(*items)]


@pytest.mark.parametrize("end", [XID, COMMIT, query(b"ROLLBACK"), XA_PREPARE])
def test_a_transaction_runs_from_its_gtid_to_its_end(end: Event | Body) -> None:
    first, second = groups(gtid(5), *ROWS, end, gtid(6, GtidFlag.STANDALONE), DDL)
    assert (first.gtid, len(first.events)) == (Gtid(0, 1, 5), 5)
    assert (second.gtid, len(second.events)) == (Gtid(0, 1, 6), 2)
    assert first.next_position == second.position
    assert first.size_bytes == second.position - first.position
    assert all(group.is_complete and not group.is_control for group in (first, second))


def test_events_of_the_log_itself_are_groups_of_their_own() -> None:
    found = groups(GtidListEvent(gtids=()), gtid(1), INSERT, XID, RotateEvent(position=4, file="g"))
    assert [(group.is_control, group.gtid) for group in found] == [
        (True, None),
        (False, Gtid(0, 1, 1)),
        (True, None),
    ]


def test_a_crash_leaves_a_group_that_is_not_complete() -> None:
    (group,) = groups(gtid(1), *ROWS)
    assert not group.is_complete
    cut, stop = groups(gtid(1), *ROWS, StopEvent())
    assert (cut.is_complete, stop.is_complete) == (False, True)
    cut, whole = groups(gtid(1), *ROWS, gtid(1), *ROWS, XID)
    assert (len(cut.events), cut.is_complete) == (4, False)
    assert (len(whole.events), whole.is_complete) == (5, True)


def test_a_standalone_statement_may_have_context() -> None:
    assert sizes(gtid(1, GtidFlag.STANDALONE), IntvarEvent(kind=2, value=7), INSERT) == [3]
    assert sizes(gtid(1, GtidFlag.STANDALONE), *ROWS) == [4]


def test_logs_without_mariadb_gtids_are_cut_at_begin_and_commit() -> None:
    begin = query(b"BEGIN")
    assert sizes(begin, INSERT, INSERT, XID, DDL, IntvarEvent(kind=2, value=1), INSERT) == [4, 1, 2]
    assert sizes(ANONYMOUS, begin, *ROWS, XID, ANONYMOUS, DDL) == [6, 2]
    assert {group.gtid for group in groups(ANONYMOUS, begin, *ROWS, XID)} == {None}
    assert sizes(query(b"XA START X'61',X'',1"), INSERT, query(b"XA END"), XA_PREPARE) == [4]


def test_transactions_of_mysql_have_its_gtids() -> None:
    begin = query(b"BEGIN")
    plain = MysqlGtidEvent(flags=0, source_id=SOURCE, sequence=7)
    tagged = TaggedGtidEvent(flags=0, source_id=SOURCE, sequence=8, tag="shop")
    carrier = TransactionPayloadEvent(compression=255, uncompressed_size=0, payload=b"")
    found = groups(plain, begin, *ROWS, XID, tagged, DDL, plain, carrier)
    assert [len(group.events) for group in found] == [6, 2, 2]
    assert [str(group.gtid) for group in found] == [
        f"{SOURCE}:7",
        f"{SOURCE}:shop:8",
        f"{SOURCE}:7",
    ]
    assert {group.mariadb_gtid for group in found} == {None}
    assert all(group.is_complete for group in found)


def test_what_is_inside_a_carrier_belongs_to_its_group() -> None:
    tracker = GroupTracker()
    gtid_event = event(MysqlGtidEvent(flags=0, source_id=SOURCE, sequence=7))
    carrier = event(TransactionPayloadEvent(compression=255, uncompressed_size=0, payload=b""))
    assert tracker.feed(gtid_event).begins
    assert tracker.feed(carrier).ends
    inside: tuple[Body, ...] = (query(b"BEGIN"), XID)
    for number, body in enumerate(inside, start=1):
        place = tracker.feed(replace(event(body), inner=number))
        assert (place.gtid, place.begins, place.ends) == (MysqlGtid(SOURCE, 7), False, False)
    assert tracker.feed(gtid_event).begins


def test_the_header_of_a_large_transaction_belongs_to_it() -> None:
    large = event(LargeTransactionHeaderEvent(version=1, end_offset=99, end_type=16), flags=0x80)
    ignorable = event(OpaqueEvent(data=b""), type_code=200, flags=0x80)
    plain = MysqlGtidEvent(flags=0, source_id=SOURCE, sequence=7)
    assert sizes(plain, large, ignorable, query(b"BEGIN"), INSERT, XID) == [6]
    assert [group.is_control for group in groups(large, plain, DDL)] == [True, False]


def test_incidents_and_unknown_events_stand_alone() -> None:
    incident = IncidentEvent(number=1, message=b"lost")
    unknown = event(OpaqueEvent(data=b""), type_code=200)
    assert [group.is_control for group in groups(incident, unknown)] == [True, True]
    assert sizes(gtid(1), unknown, INSERT, XID) == [4]


def test_a_grouper_tells_whether_a_group_is_open() -> None:
    grouper = Grouper(file="f")
    _, begin, insert, xid = walk([log(gtid(1), INSERT, XID)], file="f")
    assert not grouper.is_open
    assert list(grouper.feed(begin)) == []
    assert list(grouper.feed(insert)) == []
    assert grouper.is_open
    (group,) = grouper.feed(xid)
    assert group.events == (begin, insert, xid)
    assert not grouper.is_open
    assert list(grouper.finish()) == []
