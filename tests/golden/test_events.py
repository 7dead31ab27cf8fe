"""Every event of real MariaDB files against what SHOW BINLOG EVENTS says of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from binlane.codec.buffer import Reader
from binlane.codec.charsets import charset_of
from binlane.codec.control import (
    BinlogCheckpointEvent,
    FormatDescriptionEvent,
    IncidentEvent,
    RotateEvent,
    StopEvent,
)
from binlane.codec.event import Event
from binlane.codec.load_data import (
    AppendBlockEvent,
    BeginLoadQueryEvent,
    ExecuteLoadQueryEvent,
)
from binlane.codec.numbers import decimal_from_bytes, decode_double
from binlane.codec.query import AnnotateRowsEvent, QueryCompressedEvent, QueryEvent
from binlane.codec.registry import BODIES
from binlane.codec.rows import RowsEvent, TableMapEvent
from binlane.codec.status_vars import decode_status_vars
from binlane.codec.transaction import (
    GtidEvent,
    GtidListEvent,
    TransactionXid,
    XaPrepareEvent,
    XidEvent,
)
from binlane.codec.types import EventType, GtidExtraFlag, GtidFlag, HeaderFlag
from binlane.codec.variables import IntvarEvent, IntvarKind, RandEvent, UserVarEvent, UserVarType
from binlane.errors import UnsupportedError
from binlane.grouping.walk import walk
from tests.fixture_sets import EventRow, fixture_set, mariadb_sets

READABLE = [
    name
    for name in mariadb_sets()
    if "events.tsv" in fixture_set(name) and name != "md1011_encrypted"
]
TYPE_NAMES = {
    EventType.QUERY: "Query",
    EventType.STOP: "Stop",
    EventType.ROTATE: "Rotate",
    EventType.INTVAR: "Intvar",
    EventType.APPEND_BLOCK: "Append_block",
    EventType.RAND: "RAND",
    EventType.USER_VAR: "User var",
    EventType.FORMAT_DESCRIPTION: "Format_desc",
    EventType.XID: "Xid",
    EventType.BEGIN_LOAD_QUERY: "Begin_load_query",
    EventType.EXECUTE_LOAD_QUERY: "Execute_load_query",
    EventType.TABLE_MAP: "Table_map",
    EventType.WRITE_ROWS_V1: "Write_rows_v1",
    EventType.UPDATE_ROWS_V1: "Update_rows_v1",
    EventType.DELETE_ROWS_V1: "Delete_rows_v1",
    EventType.INCIDENT: "Incident",
    EventType.XA_PREPARE_LOG: "XA_prepare",
    EventType.ANNOTATE_ROWS: "Annotate_rows",
    EventType.BINLOG_CHECKPOINT: "Binlog_checkpoint",
    EventType.GTID: "Gtid",
    EventType.GTID_LIST: "Gtid_list",
    EventType.START_ENCRYPTION: "Start_encryption",
    EventType.QUERY_COMPRESSED: "Query_compressed",
    EventType.WRITE_ROWS_COMPRESSED_V1: "Write_rows_compressed_v1",
    EventType.UPDATE_ROWS_COMPRESSED_V1: "Update_rows_compressed_v1",
    EventType.DELETE_ROWS_COMPRESSED_V1: "Delete_rows_compressed_v1",
}


@pytest.mark.parametrize("name", READABLE)
def test_every_event_is_what_the_server_lists(name: str) -> None:
    fixture = fixture_set(name)
    listed = {(row["file"], row["pos"]): row for row in fixture.events()}
    unlisted = []
    for file, data in fixture.binlogs:
        for event in walk([data], file=file):
            row = listed.pop((file, event.position), None)
            if row is None:
                unlisted.append((file, event))
            else:
                assert not unlisted
                check(event, row)
    assert not listed
    # The list was taken before the server stopped.
    assert {file for file, _ in unlisted} <= {fixture.binlogs[-1][0]}
    assert {type(event.body) for _, event in unlisted} <= {StopEvent, BinlogCheckpointEvent}


def check(event: Event, row: EventRow) -> None:
    """One event against one line of SHOW BINLOG EVENTS."""
    where = f"{row['file']}:{row['pos']}"
    assert TYPE_NAMES[EventType(event.header.type_code)] == row["type"], where
    assert event.header.server_id == row["server_id"], where
    # MariaDB 11.7 and later write 0 inside of groups, and list it.
    assert row["end_log_pos"] in {event.next_position, 0}, where
    assert event.header.next_position == row["end_log_pos"], where
    if (render := INFO.get(type(event.body))) is not None:
        assert_same_text(render(event, event.body), row["info"])
    elif isinstance(event.body, RowsEvent):
        assert _rows(event.body) == row["info"], where
    else:
        assert event.header.type_code not in BODIES, where


def assert_same_text(ours: str, listed: str) -> None:
    """Equal but for what the server's list cannot hold.

    The server has 255 bytes for the names in a TABLE_MAP; the list holds 600 characters of a
    text, escapes counted.
    """
    if match := _CUT.fullmatch(listed):
        assert len(ours) + len(_ESCAPED.findall(ours)) == int(match[2])
        listed = match[1]
    elif not (listed.startswith("table_id") and len(listed.encode()) == 255):
        assert len(ours) == len(listed)
    assert ours[: len(listed)] == listed


_CUT = re.compile(r"(.{500,600})\.\.\.\[(\d+)\]", re.DOTALL)
_ESCAPED = re.compile(r"[\n\r\t\0\\]")
_NOT_UTF8MB3 = re.compile("[\udc80-\udcff\U00010000-\U0010ffff]")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _format(event: Event, body: FormatDescriptionEvent) -> str:
    return f"Server ver: {body.server_version}, Binlog ver: {body.binlog_version}"


def _gtid_list(event: Event, body: GtidListEvent) -> str:
    """The server lists GTIDs by domain."""
    gtids = sorted(body.gtids, key=lambda gtid: gtid.domain_id)  # stable
    return f"[{','.join(map(str, gtids))}]"


def _gtid(event: Event, body: GtidEvent) -> str:
    gtid = f"GTID {body.gtid(event.header.server_id)}"
    extra = body.flags_extra or 0
    if extra & GtidExtraFlag.START_ALTER:
        return f"{gtid} START ALTER"
    if extra & GtidExtraFlag.COMMIT_ALTER:
        return f"{gtid} COMMIT ALTER id={body.alter_sequence}"
    if extra & GtidExtraFlag.ROLLBACK_ALTER:
        return f"{gtid} ROLLBACK ALTER id={body.alter_sequence}"
    if body.flags & GtidFlag.PREPARED_XA and body.xid is not None:
        return f"XA START {_xid(body.xid)} {gtid}"
    return gtid if body.is_standalone else f"BEGIN {gtid}"


def _xid(xid: TransactionXid) -> str:
    return f"X'{xid.global_id.hex()}',X'{xid.branch.hex()}',{xid.format_id}"


def _query(event: Event, body: QueryEvent) -> str:
    is_suppressed = event.header.flags & HeaderFlag.SUPPRESS_USE or not body.database
    use = "" if is_suppressed else f"use `{_text(body.database)}`; "
    flags2 = {var.name: var.value for var in decode_status_vars(body.status_vars)}.get("FLAGS2", 0)
    assert isinstance(flags2, int)
    checks = [f"{name}=0" for bit, name in CHECKS.items() if flags2 >> bit & 1]
    settings = f"set {', '.join(checks)}; " if checks else ""
    # The server puts ? for each byte that is no utf8mb3.
    text = _NOT_UTF8MB3.sub(
        lambda match: "?" * (4 if match[0] > "\uffff" else 1), _text(body.query)
    )
    return use + settings + text


def _rows(body: RowsEvent) -> str:
    return f"table_id: {body.table_id}" + (" flags: STMT_END_F" if body.ends_statement else "")


def _user_var(event: Event, body: UserVarEvent) -> str:
    name = f"@`{_text(body.name)}`="
    if body.is_null:
        return f"{name}NULL"
    if body.type_code == UserVarType.INT:
        return name + str(int.from_bytes(body.value, "little", signed=not body.flags))
    if body.type_code == UserVarType.STRING:
        value = f"_{charset_of(body.collation_id)} X'{body.value.hex().upper()}'"
        return f"{name}{value} COLLATE {COLLATIONS[body.collation_id]}"
    if body.type_code == UserVarType.REAL:
        return f"{name}{decode_double(Reader(body.value)):.15g}"
    assert body.type_code == UserVarType.DECIMAL
    return f"{name}{decimal_from_bytes(body.value[2:], body.value[0], body.value[1])}"


# Bits of FLAGS2.
CHECKS = {26: "foreign_key_checks", 27: "unique_checks"}
# What the sets hold; the names of collations are none of the codec's business.
COLLATIONS = {
    8: "latin1_swedish_ci",
    33: "utf8mb3_general_ci",
    45: "utf8mb4_general_ci",
    51: "cp1251_general_ci",
    63: "binary",
    2304: "utf8mb4_uca1400_ai_ci",
}

INFO: Mapping[type, Callable[[Event, Any], str]] = {
    FormatDescriptionEvent: _format,
    GtidListEvent: _gtid_list,
    BinlogCheckpointEvent: lambda _, body: body.file,
    GtidEvent: _gtid,
    QueryEvent: _query,
    QueryCompressedEvent: _query,
    AnnotateRowsEvent: lambda _, body: _text(body.query),
    TableMapEvent: lambda _, body: f"table_id: {body.table_id} ({body.database}.{body.table})",
    XidEvent: lambda _, body: f"COMMIT /* xid={body.xid} */",
    RotateEvent: lambda _, body: f"{body.file};pos={body.position}",
    StopEvent: lambda _, _body: "",
    IncidentEvent: lambda _, body: f"#{body.number} (LOST_EVENTS)",
    IntvarEvent: lambda _, body: f"{IntvarKind(body.kind).name}={body.value}",
    RandEvent: lambda _, body: f"rand_seed1={body.seed1},rand_seed2={body.seed2}",
    UserVarEvent: _user_var,
    BeginLoadQueryEvent: lambda _, body: f";file_id={body.file_id};block_len={len(body.data)}",
    AppendBlockEvent: lambda _, body: f";file_id={body.file_id};block_len={len(body.data)}",
    ExecuteLoadQueryEvent: lambda event, body: (
        f"{_query(event, body.statement)} ;file_id={body.file_id}"
    ),
    XaPrepareEvent: lambda _, body: f"XA PREPARE {_xid(body.xid)}",
}


def test_an_encrypted_file_is_read_up_to_its_encryption() -> None:
    fixture = fixture_set("md1011_encrypted")
    for file, data in fixture.binlogs:
        events = walk([data], file=file)
        for row in [row for row in fixture.events() if row["file"] == file][:2]:
            check(next(events), row)
        with pytest.raises(UnsupportedError) as caught:
            next(events)
        assert (caught.value.file, caught.value.position) == (file, 296)
        assert "--encryption-keys" in caught.value.hint
