"""Hypothesis strategies for what the codec reads and writes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from binlane.codec.body import Body
from binlane.codec.control import (
    BinlogCheckpointEvent,
    HeartbeatEvent,
    IncidentEvent,
    RotateEvent,
    StopEvent,
)
from binlane.codec.load_data import (
    AppendBlockEvent,
    BeginLoadQueryEvent,
    DeleteFileEvent,
    ExecuteLoadQueryEvent,
)
from binlane.codec.query import AnnotateRowsEvent, QueryCompressedEvent, QueryEvent
from binlane.codec.registry import BODIES, OpaqueEvent
from binlane.codec.rows import RowsEvent, TableMapEvent
from binlane.codec.status_vars import StatusVar
from binlane.codec.transaction import (
    GtidEvent,
    GtidListEvent,
    TransactionXid,
    XaPrepareEvent,
    XidEvent,
)
from binlane.codec.types import GtidExtraFlag, GtidFlag
from binlane.codec.variables import IntvarEvent, RandEvent, UserVarEvent
from binlane.positions import Gtid

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


_PLAIN: dict[type, st.SearchStrategy[Any]] = {
    StopEvent: st.builds(StopEvent),
    RotateEvent: st.builds(RotateEvent, position=u64, file=names),
    HeartbeatEvent: st.builds(HeartbeatEvent, file=names),
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
}


def bodies(kind: type) -> st.SearchStrategy[Any]:
    """Any body of a class that stands after the FORMAT_DESCRIPTION."""
    return rows_events(kind) if issubclass(kind, RowsEvent) else _PLAIN[kind]


def any_body() -> st.SearchStrategy[Any]:
    """Any body of any known type but FORMAT_DESCRIPTION."""
    kinds = sorted(
        {kind for kind in BODIES.values() if kind in _PLAIN}, key=lambda kind: kind.__name__
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
