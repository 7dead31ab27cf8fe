"""Every event of real files against what their servers' SHOW BINLOG EVENTS says of it."""

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
from binlane.codec.encryption import StartEncryptionEvent
from binlane.codec.event import Event
from binlane.codec.load_data import (
    AppendBlockEvent,
    BeginLoadQueryEvent,
    ExecuteLoadQueryEvent,
)
from binlane.codec.mysql_transaction import (
    AnonymousGtidEvent,
    MysqlGtidEvent,
    PreviousGtidsEvent,
    TaggedGtidEvent,
)
from binlane.codec.numbers import decimal_from_bytes, decode_double
from binlane.codec.payload import PayloadCompression, TransactionPayloadEvent
from binlane.codec.query import (
    AnnotateRowsEvent,
    QueryCompressedEvent,
    QueryEvent,
    RowsQueryEvent,
)
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
from binlane.codec.types import (
    EventType,
    Flavor,
    GtidExtraFlag,
    GtidFlag,
    HeaderFlag,
    RowsFlag,
)
from binlane.codec.variables import IntvarEvent, IntvarKind, RandEvent, UserVarEvent, UserVarType
from binlane.errors import UnsupportedError
from binlane.grouping.inner import expanded_all
from binlane.grouping.walk import walk
from tests.fixture_sets import EventRow, fixture_set, mysql_sets, server_sets

READABLE = [
    name
    for name in server_sets()
    if "events.tsv" in fixture_set(name) and not name.endswith("_encrypted")
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
    EventType.ROWS_QUERY: "Rows_query",
    EventType.WRITE_ROWS: "Write_rows",
    EventType.UPDATE_ROWS: "Update_rows",
    EventType.DELETE_ROWS: "Delete_rows",
    EventType.PARTIAL_UPDATE_ROWS: "Update_rows_partial",
    EventType.GTID_LOG: "Gtid",
    EventType.ANONYMOUS_GTID_LOG: "Anonymous_Gtid",
    EventType.GTID_TAGGED_LOG: "Gtid_tagged_log_event",
    EventType.PREVIOUS_GTIDS_LOG: "Previous_gtids",
    EventType.TRANSACTION_PAYLOAD: "Transaction_payload",
}


@pytest.mark.parametrize("name", READABLE)
def test_every_event_is_what_the_server_lists(name: str) -> None:
    fixture = fixture_set(name)
    flavor = Flavor.MYSQL if name in mysql_sets() else Flavor.MARIADB
    listed = iter(fixture.events())
    unlisted = []
    for file, data in fixture.binlogs:
        for event in expanded_all(walk([data], file=file), file=file):
            row = next(listed, None)
            if row is None:
                unlisted.append((file, event))
            else:
                assert file == row["file"]
                check(event, row, flavor)
    assert next(listed, None) is None
    # The list was taken before the server stopped.
    assert {file for file, _ in unlisted} <= {fixture.binlogs[-1][0]}
    assert {type(event.body) for _, event in unlisted} <= {StopEvent, BinlogCheckpointEvent}


def check(event: Event, row: EventRow, flavor: Flavor = Flavor.MARIADB) -> None:
    """One event against one line of SHOW BINLOG EVENTS."""
    where = f"{row['file']}:{row['pos']}"
    # MySQL lists what is inside of a carrier at the carrier's end.
    assert row["pos"] == (event.next_position if event.inner else event.position), where
    assert TYPE_NAMES[EventType(event.header.type_code)] == row["type"], where
    assert event.header.server_id == row["server_id"], where
    # MariaDB 11.7 and later write 0 inside of groups, and list it.
    assert row["end_log_pos"] in {event.next_position, 0}, where
    assert event.inner or event.header.next_position == row["end_log_pos"], where
    is_mysql = flavor is Flavor.MYSQL
    if (render := (MYSQL_INFO if is_mysql else INFO).get(type(event.body))) is not None:
        assert_same_text(render(event, event.body), row["info"])
    elif isinstance(event.body, RowsEvent):
        assert (_mysql_rows if is_mysql else _rows)(event.body) == row["info"], where
    else:
        assert event.header.type_code not in BODIES, where


def assert_same_text(ours: str, listed: str) -> None:
    """Equal but for what the server's list cannot hold.

    The server has 255 bytes for the names in a TABLE_MAP, and MySQL goes on with what its memory
    holds behind them; the list holds 600 characters of a text, escapes counted.
    """
    if ours.startswith("table_id") and len(ours.encode()) > 255:
        ours = ours.encode()[:254].decode("utf-8", "ignore")
        listed = listed[: len(ours)]
    if match := _CUT.fullmatch(listed):
        assert len(ours) + len(_ESCAPED.findall(ours)) == int(match[2])
        listed = match[1]
    else:
        assert len(ours) == len(listed)
    assert ours[: len(listed)] == listed


_CUT = re.compile(r"(.{500,600})\.\.\.\[(\d+)\]", re.DOTALL)
_ESCAPED = re.compile(r"[\n\r\t\0\\]")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
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


def _mysql_gtid(event: Event, body: MysqlGtidEvent) -> str:
    return f"SET @@SESSION.GTID_NEXT= '{body.gtid or 'ANONYMOUS'}'"


def _payload(event: Event, body: TransactionPayloadEvent) -> str:
    compression = PayloadCompression(body.compression).name
    return f"compression='{compression}', decompressed_size={body.uncompressed_size} bytes"


def _xa_prepare(event: Event, body: XaPrepareEvent) -> str:
    xid = _xid(body.xid)
    return f"XA COMMIT {xid} ONE PHASE" if body.one_phase else f"XA PREPARE {xid}"


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


def _mysql_query(event: Event, body: QueryEvent) -> str:
    is_suppressed = event.header.flags & HeaderFlag.SUPPRESS_USE or not body.database
    use = "" if is_suppressed else f"use `{_text(body.database)}`; "
    variables = {var.name: var.value for var in decode_status_vars(body.status_vars)}
    xid = variables.get("DDL_LOGGED_WITH_XID")
    text = _NOT_UTF8.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", _text(body.query))
    return use + text + (f" /* xid={xid} */" if xid is not None else "")


def _rows(body: RowsEvent) -> str:
    return f"table_id: {body.table_id}" + (" flags: STMT_END_F" if body.ends_statement else "")


def _mysql_rows(body: RowsEvent) -> str:
    names = [name for flag, name in ROWS_FLAGS.items() if body.flags & flag]
    return f"table_id: {body.table_id}" + (f" flags: {' '.join(names)}" if names else "")


def _mysql_user_var(event: Event, body: UserVarEvent) -> str:
    if body.is_null or body.type_code != UserVarType.STRING:
        return _user_var(event, body)
    charset = "utf8mb4" if body.collation_id == 255 else charset_of(body.collation_id)
    collation = "utf8mb4_0900_ai_ci" if body.collation_id == 255 else COLLATIONS[body.collation_id]
    return f"@`{_text(body.name)}`=_{charset} 0x{body.value.hex().upper()} COLLATE {collation}"


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


ROWS_FLAGS = {
    RowsFlag.STMT_END: "STMT_END_F",
    RowsFlag.NO_FOREIGN_KEY_CHECKS: "NO_FOREIGN_KEY_CHECKS_F",
    RowsFlag.RELAXED_UNIQUE_CHECKS: "RELAXED_UNIQUE_CHECKS_F",
    RowsFlag.USE_SQL_FOREIGN_KEY: "USE_SQL_FOREIGN_KEY_F",
}
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
    StartEncryptionEvent: lambda _, _body: "",
    IncidentEvent: lambda _, body: f"#{body.number} (LOST_EVENTS)",
    IntvarEvent: lambda _, body: f"{IntvarKind(body.kind).name}={body.value}",
    RandEvent: lambda _, body: f"rand_seed1={body.seed1},rand_seed2={body.seed2}",
    UserVarEvent: _user_var,
    BeginLoadQueryEvent: lambda _, body: f";file_id={body.file_id};block_len={len(body.data)}",
    AppendBlockEvent: lambda _, body: f";file_id={body.file_id};block_len={len(body.data)}",
    ExecuteLoadQueryEvent: lambda event, body: (
        f"{_query(event, body.statement)} ;file_id={body.file_id}"
    ),
    XaPrepareEvent: _xa_prepare,
}
MYSQL_INFO: Mapping[type, Callable[[Event, Any], str]] = {
    **INFO,
    QueryEvent: _mysql_query,
    UserVarEvent: _mysql_user_var,
    ExecuteLoadQueryEvent: lambda event, body: (
        f"{_mysql_query(event, body.statement)} ;file_id={body.file_id}"
    ),
    RowsQueryEvent: lambda _, body: f"# {_text(body.query)}",
    MysqlGtidEvent: _mysql_gtid,
    AnonymousGtidEvent: _mysql_gtid,
    TaggedGtidEvent: _mysql_gtid,
    PreviousGtidsEvent: lambda _, body: str(body.position).replace(",", ",\n"),
    TransactionPayloadEvent: _payload,
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
