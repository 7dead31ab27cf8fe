"""Hypothesis strategies for what the codec reads and writes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from binlane.log.codec.body import Body
from binlane.log.codec.control import (
    BinlogCheckpointEvent,
    IgnorableEvent,
    IncidentEvent,
    RotateEvent,
    StopEvent,
)
from binlane.log.codec.encryption import StartEncryptionEvent
from binlane.log.codec.fragments import PartialRowDataEvent
from binlane.log.codec.group_replication import TransactionContextEvent, ViewChangeEvent
from binlane.log.codec.heartbeat import HeartbeatEvent, HeartbeatV2Event
from binlane.log.codec.load_data import (
    AppendBlockEvent,
    BeginLoadQueryEvent,
    DeleteFileEvent,
    ExecuteLoadQueryEvent,
)
from binlane.log.codec.mysql_transaction import (
    AnonymousGtidEvent,
    MysqlGtidEvent,
    PreviousGtidsEvent,
    TaggedGtidEvent,
)
from binlane.log.codec.old_load import CreateFileEvent, ExecLoadEvent, LoadEvent, NewLoadEvent
from binlane.log.codec.payload import LargeTransactionHeaderEvent, TransactionPayloadEvent
from binlane.log.codec.query import (
    AnnotateRowsEvent,
    QueryCompressedEvent,
    QueryEvent,
    RowsQueryEvent,
)
from binlane.log.codec.registry import BODIES, OpaqueEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.status_vars import StatusVar
from binlane.log.codec.transaction import (
    GtidEvent,
    GtidListEvent,
    TransactionXid,
    XaPrepareEvent,
    XidEvent,
)
from binlane.log.codec.types import GtidExtraFlag, GtidFlag
from binlane.log.codec.variables import IntvarEvent, RandEvent, UserVarEvent
from binlane.positions import Gtid, GtidRun

u8 = st.integers(0, 2**8 - 1)
u16 = st.integers(0, 2**16 - 1)
u32 = st.integers(0, 2**32 - 1)
u48 = st.integers(0, 2**48 - 1)
u64 = st.integers(0, 2**64 - 1)
data = st.binary(max_size=40)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
gtids = st.builds(Gtid, u32, u32, u64)


def packed(length: int) -> st.SearchStrategy[bytes]:
    """Exactly so many bytes."""
    return st.binary(min_size=length, max_size=length)


def queries(kind: type[QueryEvent]) -> st.SearchStrategy[Body]:
    return st.builds(
        kind,
        thread_id=u32,
        execution_time=u32,
        error_code=u16,
        status_vars=data,
        database=data,
        query=data,
    )


@st.composite
def table_maps(draw: st.DrawFn) -> TableMapEvent:
    count = draw(st.integers(0, 20))
    return TableMapEvent(
        table_id=draw(u48),
        flags=draw(u16),
        database=draw(names),
        table=draw(names),
        column_types=draw(packed(count)),
        metadata=draw(data),
        null_bits=draw(packed((count + 7) // 8)),
        optional_metadata=draw(data),
    )


@st.composite
def rows_events(draw: st.DrawFn, kind: type[RowsEvent]) -> RowsEvent:
    count = draw(st.integers(0, 300))
    bitmap = packed((count + 7) // 8)
    return kind(
        table_id=draw(u48),
        flags=draw(u16),
        extra=draw(data) if kind.has_extra else None,
        column_count=count,
        columns_present=draw(bitmap),
        columns_present_after=draw(bitmap) if kind.has_after_bitmap else None,
        images=draw(data),
    )


@st.composite
def gtid_events(draw: st.DrawFn) -> GtidEvent:
    flags = draw(u8)
    extra = draw(st.none() | u8)
    bits = extra or 0
    has_xid = flags & (GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA)
    xid = st.builds(TransactionXid, format_id=u32, global_id=data, branch=data)
    is_alter_end = bits & (GtidExtraFlag.COMMIT_ALTER | GtidExtraFlag.ROLLBACK_ALTER)
    return GtidEvent(
        sequence=draw(u64),
        domain_id=draw(u32),
        flags=flags,
        commit_id=draw(u64) if flags & GtidFlag.GROUP_COMMIT_ID else None,
        xid=draw(xid) if has_xid else None,
        flags_extra=extra,
        extra_engines=draw(u8) if bits & GtidExtraFlag.MULTI_ENGINE else None,
        alter_sequence=draw(u64) if is_alter_end else None,
        thread_id=draw(u32) if bits & GtidExtraFlag.THREAD_ID else None,
        padding=b"" if extra is None else draw(data),
    )


@st.composite
def user_vars(draw: st.DrawFn) -> UserVarEvent:
    if draw(st.booleans()):
        return UserVarEvent(name=draw(data), is_null=1)
    return UserVarEvent(
        name=draw(data),
        is_null=0,
        type_code=draw(st.integers(0, 4)),
        collation_id=draw(u32),
        value=draw(data),
        flags=draw(st.none() | u8),
    )


sources = st.uuids().map(str)
signed = st.integers(-(2**63), 2**63 - 1)
u31 = st.integers(0, 2**31 - 1)
timestamps = st.integers(0, 2**55 - 1)
tags = st.from_regex(r"[a-z_][a-z0-9_]{0,31}", fullmatch=True)


@st.composite
def gtid_runs(draw: st.DrawFn, *, tagged: bool) -> GtidRun:
    edges = sorted(draw(st.sets(st.integers(1, 2**62), max_size=6)))
    intervals = tuple(zip(edges[::2], (edge - 1 for edge in edges[1::2]), strict=False))
    grown = tuple((first, max(first, last)) for first, last in intervals)
    return GtidRun(draw(sources), draw(tags) if tagged else "", grown)


@st.composite
def previous_gtids(draw: st.DrawFn) -> PreviousGtidsEvent:
    tagged = draw(st.booleans())
    runs = draw(st.lists(gtid_runs(tagged=tagged), max_size=4))
    return PreviousGtidsEvent(runs=tuple(runs), has_tags=tagged)


@st.composite
def mysql_gtids(draw: st.DrawFn, kind: type[MysqlGtidEvent]) -> MysqlGtidEvent:
    """With as many of the parts that may be missing at the end as a writer of some age has."""
    parts = draw(st.integers(0, 5))
    facts: dict[str, Any] = {}
    if parts > 0:
        facts |= {"timestamp_type": 2}
        facts |= {"last_committed": draw(signed), "sequence_number": draw(signed)}
    if parts > 1:
        facts["immediate_commit_timestamp"] = draw(timestamps)
        facts["original_commit_timestamp"] = draw(st.none() | timestamps)
    if parts > 2:
        facts["transaction_length"] = draw(u64)
    if parts > 3:
        facts["immediate_server_version"] = draw(u31)
        facts["original_server_version"] = draw(st.none() | u31)
    if parts > 4:
        facts |= {"commit_group_ticket": draw(u64), "tail": draw(data)}
    return kind(flags=draw(u8), source_id=draw(sources), sequence=draw(signed), **facts)


def tagged_gtids() -> st.SearchStrategy[Body]:
    return st.builds(
        TaggedGtidEvent,
        flags=u8,
        source_id=sources,
        sequence=signed,
        tag=st.just("") | tags,
        last_committed=st.none() | signed,
        sequence_number=st.none() | signed,
        immediate_commit_timestamp=st.none() | u64,
        original_commit_timestamp=st.none() | u64,
        transaction_length=st.none() | u64,
        immediate_server_version=st.none() | u64,
        original_server_version=st.none() | u64,
        commit_group_ticket=st.none() | u64,
        # Field 20, which nobody knows.
        tail=st.just(b"") | data.map(b"\x28".__add__),
    )


def loads(kind: type[LoadEvent], **own: st.SearchStrategy[Any]) -> st.SearchStrategy[Body]:
    ending = st.binary(max_size=4) if kind.has_long_endings else packed(1)
    terminated = st.binary(max_size=20).map(lambda name: name.replace(b"\0", b""))
    return st.builds(
        kind,
        thread_id=u32,
        execution_time=u32,
        lines_skipped=u32,
        endings=st.tuples(ending, ending, ending, ending, ending),
        option_flags=u8,
        empty_flags=st.just(0) if kind.has_long_endings else u8,
        field_names=st.lists(data, max_size=4).map(tuple),
        table=data,
        database=data,
        file=terminated,
        **own,
    )


def fragments() -> st.SearchStrategy[Body]:
    return st.builds(
        PartialRowDataEvent,
        fragment_count=u32,
        fragment_number=u32,
        flags=st.just(1),
        original_size=u64,
        data=data,
    ) | st.builds(
        PartialRowDataEvent,
        fragment_count=u32,
        fragment_number=u32,
        flags=st.sampled_from([0, 2, 254]),
        original_size=st.none(),
        data=data,
    )


_PLAIN: dict[type, st.SearchStrategy[Any]] = {
    StopEvent: st.builds(StopEvent),
    RotateEvent: st.builds(RotateEvent, position=u64, file=names),
    HeartbeatEvent: st.builds(
        HeartbeatEvent, file=names, position=st.none() | st.integers(2**32, 2**55)
    ),
    IncidentEvent: st.builds(IncidentEvent, number=u16, message=data, padding=data),
    BinlogCheckpointEvent: st.builds(BinlogCheckpointEvent, file=names),
    XidEvent: st.builds(XidEvent, xid=u64),
    GtidListEvent: st.builds(
        GtidListEvent,
        gtids=st.lists(gtids, max_size=5).map(tuple),
        flags=st.integers(0, 15),
        padding=data,
    ),
    GtidEvent: gtid_events(),
    AnnotateRowsEvent: st.builds(AnnotateRowsEvent, query=data),
    QueryEvent: queries(QueryEvent),
    QueryCompressedEvent: queries(QueryCompressedEvent),
    TableMapEvent: table_maps(),
    IntvarEvent: st.builds(IntvarEvent, kind=u8, value=u64),
    RandEvent: st.builds(RandEvent, seed1=u64, seed2=u64),
    UserVarEvent: user_vars(),
    BeginLoadQueryEvent: st.builds(BeginLoadQueryEvent, file_id=u32, data=data),
    AppendBlockEvent: st.builds(AppendBlockEvent, file_id=u32, data=data),
    DeleteFileEvent: st.builds(DeleteFileEvent, file_id=u32),
    ExecuteLoadQueryEvent: st.builds(
        ExecuteLoadQueryEvent,
        statement=queries(QueryEvent),
        file_id=u32,
        name_start=u32,
        name_end=u32,
        duplicate_handling=u8,
    ),
    XaPrepareEvent: st.builds(
        XaPrepareEvent,
        one_phase=u8,
        xid=st.builds(TransactionXid, format_id=u32, global_id=data, branch=data),
    ),
    OpaqueEvent: st.builds(OpaqueEvent, data=data),
    IgnorableEvent: st.builds(IgnorableEvent, data=data),
    RowsQueryEvent: st.builds(RowsQueryEvent, query=data, length_byte=u8),
    MysqlGtidEvent: mysql_gtids(MysqlGtidEvent),
    AnonymousGtidEvent: mysql_gtids(AnonymousGtidEvent),
    TaggedGtidEvent: tagged_gtids(),
    PreviousGtidsEvent: previous_gtids(),
    TransactionPayloadEvent: data.flatmap(
        lambda payload: (
            st.builds(
                TransactionPayloadEvent,
                compression=st.just(0),
                uncompressed_size=u64,
                payload=st.just(payload),
            )
            | st.builds(
                TransactionPayloadEvent,
                compression=st.just(255),
                uncompressed_size=st.just(len(payload)),
                payload=st.just(payload),
            )
        )
    ),
    LargeTransactionHeaderEvent: st.builds(
        LargeTransactionHeaderEvent, version=u8, end_offset=u64, end_type=u8, padding=data
    ),
    TransactionContextEvent: st.builds(
        TransactionContextEvent,
        server_uuid=data,
        thread_id=u32,
        gtid_specified=u8,
        snapshot=data,
        write_set=st.lists(data, max_size=3).map(tuple),
        read_set=st.lists(data, max_size=3).map(tuple),
    ),
    ViewChangeEvent: st.builds(
        ViewChangeEvent,
        view_id_field=packed(40),
        sequence_number=u64,
        certification=st.lists(st.tuples(data, data), max_size=3).map(tuple),
    ),
    HeartbeatV2Event: st.builds(HeartbeatV2Event, file=names, position=u64),
    LoadEvent: loads(LoadEvent),
    NewLoadEvent: loads(NewLoadEvent),
    CreateFileEvent: loads(CreateFileEvent, file_id=u32, data=data),
    ExecLoadEvent: st.builds(ExecLoadEvent, file_id=u32),
    PartialRowDataEvent: fragments(),
    StartEncryptionEvent: st.builds(
        StartEncryptionEvent, scheme=u8, key_version=u32, nonce=packed(12)
    ),
}


def bodies(kind: type) -> st.SearchStrategy[Any]:
    """Any body of a class that stands after the FORMAT_DESCRIPTION."""
    return rows_events(kind) if issubclass(kind, RowsEvent) else _PLAIN[kind]


def any_body() -> st.SearchStrategy[Any]:
    """Any body but those that say something of the events after them."""
    dependent = {StartEncryptionEvent, PartialRowDataEvent}
    kinds = sorted(
        {kind for kind in BODIES.values() if kind in _PLAIN and kind not in dependent},
        key=lambda kind: kind.__name__,
    )
    return st.sampled_from(kinds).flatmap(bodies)


_TEXT_CODES = (2, 5, 6)
_NUMBER_CODES = {0: u32, 1: u64, 7: u16, 8: u16, 13: st.integers(0, 2**24 - 1), 19: u8, 129: u64}
_NAMES = {
    0: "FLAGS2",
    1: "SQL_MODE",
    2: "CATALOG",
    3: "AUTO_INCREMENT",
    4: "CHARSET",
    5: "TIME_ZONE",
    6: "CATALOG_NZ",
    7: "LC_TIME_NAMES",
    8: "CHARSET_DATABASE",
    11: "INVOKER",
    12: "UPDATED_DB_NAMES",
    13: "MICROSECONDS",
    19: "SQL_REQUIRE_PRIMARY_KEY",
    129: "XID",
    131: "CHARACTER_SET_COLLATIONS",
}
_VALUES: dict[int, st.SearchStrategy[Any]] = {
    **dict.fromkeys(_TEXT_CODES, names),
    **_NUMBER_CODES,
    3: st.tuples(u16, u16),
    4: st.tuples(u16, u16, u16),
    11: st.tuples(names, names),
    12: st.none() | st.lists(names.filter(bool), max_size=16).map(tuple),
    131: st.lists(st.tuples(u16, u16), max_size=5).map(tuple),
}


def status_vars() -> st.SearchStrategy[tuple[StatusVar, ...]]:
    """Runs of status variables, in any order."""
    one = st.sampled_from(sorted(_VALUES)).flatmap(
        lambda code: st.builds(StatusVar, st.just(code), st.just(_NAMES[code]), _VALUES[code])
    )
    return st.lists(one, max_size=8).map(tuple)
