"""Events as SHOW BINLOG EVENTS of either server lists them.

Positions, names of types and texts are those that the servers print of the same bytes; names in a
TABLE_MAP are whole here where the servers cut them at 255 bytes.

Source: MariaDB 10.11 and MySQL 9.7, sql/log_event.cc, pack_info and get_type_str.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from binlane.log.codec.buffer import Reader
from binlane.log.codec.collation_names import collation_name
from binlane.log.codec.control import (
    BinlogCheckpointEvent,
    FormatDescriptionEvent,
    IncidentEvent,
    RotateEvent,
)
from binlane.log.codec.event import Event
from binlane.log.codec.load_data import AppendBlockEvent, BeginLoadQueryEvent, ExecuteLoadQueryEvent
from binlane.log.codec.mysql_transaction import (
    AnonymousGtidEvent,
    MysqlGtidEvent,
    PreviousGtidsEvent,
    TaggedGtidEvent,
)
from binlane.log.codec.numbers import decimal_from_bytes, decode_double
from binlane.log.codec.payload import PayloadCompression, TransactionPayloadEvent
from binlane.log.codec.query import (
    AnnotateRowsEvent,
    QueryCompressedEvent,
    QueryEvent,
    RowsQueryEvent,
)
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.status_vars import decode_status_vars
from binlane.log.codec.transaction import (
    GtidEvent,
    GtidListEvent,
    TransactionXid,
    XaPrepareEvent,
    XidEvent,
)
from binlane.log.codec.types import EventType, Flavor, GtidExtraFlag, GtidFlag, HeaderFlag, RowsFlag
from binlane.log.codec.variables import (
    IntvarEvent,
    IntvarKind,
    RandEvent,
    UserVarEvent,
    UserVarType,
)

_UNKNOWN: Final = "Unknown"
TYPE_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {
        EventType.QUERY: "Query",
        EventType.STOP: "Stop",
        EventType.ROTATE: "Rotate",
        EventType.INTVAR: "Intvar",
        EventType.APPEND_BLOCK: "Append_block",
        EventType.DELETE_FILE: "Delete_file",
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
        EventType.IGNORABLE: "Ignorable",
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
        EventType.WRITE_ROWS_COMPRESSED: "Write_rows_compressed",
        EventType.UPDATE_ROWS_COMPRESSED: "Update_rows_compressed",
        EventType.DELETE_ROWS_COMPRESSED: "Delete_rows_compressed",
        EventType.ROWS_QUERY: "Rows_query",
        EventType.WRITE_ROWS: "Write_rows",
        EventType.UPDATE_ROWS: "Update_rows",
        EventType.DELETE_ROWS: "Delete_rows",
        EventType.PARTIAL_UPDATE_ROWS: "Update_rows_partial",
        EventType.GTID_LOG: "Gtid",
        EventType.ANONYMOUS_GTID_LOG: "Anonymous_Gtid",
        EventType.GTID_TAGGED_LOG: "Gtid_tagged_log_event",
        EventType.PREVIOUS_GTIDS_LOG: "Previous_gtids",
        EventType.TRANSACTION_CONTEXT: "Transaction_context",
        EventType.VIEW_CHANGE: "View_change",
        EventType.TRANSACTION_PAYLOAD: "Transaction_payload",
    }
)


class ListedEvent(NamedTuple):
    """One line of the list.

    Attributes:
        position: Pos; of an event inside of a TRANSACTION_PAYLOAD where that ends.
        type_name: The value of the column Event_type.
        server_id: The value of the column Server_id.
        end: End_log_pos, as its header says; MariaDB 11.7 and later write 0 inside of groups.
        info: Info; bytes that are no UTF-8 are lone surrogates where a server gives them as they are.
    """

    position: int
    type_name: str
    server_id: int
    end: int
    info: str


def listed_event(event: Event, flavor: Flavor) -> ListedEvent:
    """An event as a server lists it.

    Args:
        event: An event of a file, or inside of a TRANSACTION_PAYLOAD.
        flavor: The flavor of the server whose list it is.
    """
    is_inner = bool(event.inner)
    return ListedEvent(
        position=event.next_position if is_inner else event.position,
        type_name=TYPE_NAMES.get(event.header.type_code, _UNKNOWN),
        server_id=event.header.server_id,
        end=event.next_position if is_inner else event.header.next_position,
        info=_info(event, flavor),
    )


def _info(event: Event, flavor: Flavor) -> str:
    body = event.body
    if isinstance(body, RowsEvent):
        return _rows(body, flavor)
    renderers = _MYSQL_INFO if flavor is Flavor.MYSQL else _INFO
    render = renderers.get(type(body))
    return render(event, body) if render else ""


_NOT_UTF8: Final = re.compile("[\udc80-\udcff]")
_NOT_UTF8MB3: Final = re.compile("[\udc80-\udcff\U00010000-\U0010ffff]")
_ROWS_FLAGS: Final = (
    (RowsFlag.STMT_END, "STMT_END_F"),
    (RowsFlag.NO_FOREIGN_KEY_CHECKS, "NO_FOREIGN_KEY_CHECKS_F"),
    (RowsFlag.RELAXED_UNIQUE_CHECKS, "RELAXED_UNIQUE_CHECKS_F"),
    (RowsFlag.USE_SQL_FOREIGN_KEY, "USE_SQL_FOREIGN_KEY_F"),
)
_CHECKS: Final = ((26, "foreign_key_checks"), (27, "unique_checks"))
"""Bits of FLAGS2."""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _gtid_list(event: Event, body: GtidListEvent) -> str:
    """The server lists GTIDs by domain."""
    del event
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
    del event
    return f"SET @@SESSION.GTID_NEXT= '{body.gtid or 'ANONYMOUS'}'"


def _payload(event: Event, body: TransactionPayloadEvent) -> str:
    del event
    compression = PayloadCompression(body.compression).name
    return f"compression='{compression}', decompressed_size={body.uncompressed_size} bytes"


def _xa_prepare(event: Event, body: XaPrepareEvent) -> str:
    del event
    xid = _xid(body.xid)
    return f"XA COMMIT {xid} ONE PHASE" if body.one_phase else f"XA PREPARE {xid}"


def _use(event: Event, body: QueryEvent) -> str:
    is_suppressed = event.header.flags & HeaderFlag.SUPPRESS_USE or not body.database
    return "" if is_suppressed else f"use `{_text(body.database)}`; "


def _query(event: Event, body: QueryEvent) -> str:
    flags2 = {var.name: var.value for var in decode_status_vars(body.status_vars)}.get("FLAGS2", 0)
    bits = flags2 if isinstance(flags2, int) else 0
    checks = [f"{name}=0" for bit, name in _CHECKS if bits >> bit & 1]
    settings = f"set {', '.join(checks)}; " if checks else ""
    # The server puts ? for each byte that is no utf8mb3.
    text = _NOT_UTF8MB3.sub(
        lambda match: "?" * (4 if match[0] > "\uffff" else 1), _text(body.query)
    )
    return _use(event, body) + settings + text


def _mysql_query(event: Event, body: QueryEvent) -> str:
    variables = {var.name: var.value for var in decode_status_vars(body.status_vars)}
    xid = variables.get("DDL_LOGGED_WITH_XID")
    text = _NOT_UTF8.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", _text(body.query))
    return _use(event, body) + text + (f" /* xid={xid} */" if xid is not None else "")


def _rows(body: RowsEvent, flavor: Flavor) -> str:
    shown = _ROWS_FLAGS if flavor is Flavor.MYSQL else _ROWS_FLAGS[:1]
    names = [name for flag, name in shown if body.flags & flag]
    return f"table_id: {body.table_id}" + (f" flags: {' '.join(names)}" if names else "")


def _load_block(event: Event, body: BeginLoadQueryEvent | AppendBlockEvent) -> str:
    del event
    return f";file_id={body.file_id};block_len={len(body.data)}"


def _user_var(event: Event, body: UserVarEvent) -> str:
    return _user_variable(event, body, Flavor.MARIADB)


def _mysql_user_var(event: Event, body: UserVarEvent) -> str:
    return _user_variable(event, body, Flavor.MYSQL)


def _user_variable(event: Event, body: UserVarEvent, flavor: Flavor) -> str:
    del event
    name = f"@`{_text(body.name)}`="
    if body.is_null:
        return f"{name}NULL"
    if body.type_code == UserVarType.INT:
        return name + str(int.from_bytes(body.value, "little", signed=not body.flags))
    if body.type_code == UserVarType.STRING:
        collation = collation_name(body.collation_id, flavor) or "???"
        literal = f"X'{body.value.hex().upper()}'"
        if flavor is Flavor.MYSQL:
            literal = f"0x{body.value.hex().upper()}"
        return f"{name}_{collation.partition('_')[0]} {literal} COLLATE {collation}"
    if body.type_code == UserVarType.REAL:
        return f"{name}{decode_double(Reader(body.value)):.15g}"
    if body.type_code == UserVarType.DECIMAL:
        return f"{name}{decimal_from_bytes(body.value[2:], body.value[0], body.value[1])}"
    return name


_INFO: Final[Mapping[type, Callable[[Event, Any], str]]] = MappingProxyType(
    {
        FormatDescriptionEvent: lambda _, body: (
            f"Server ver: {body.server_version}, Binlog ver: {body.binlog_version}"
        ),
        GtidListEvent: _gtid_list,
        BinlogCheckpointEvent: lambda _, body: body.file,
        GtidEvent: _gtid,
        QueryEvent: _query,
        QueryCompressedEvent: _query,
        AnnotateRowsEvent: lambda _, body: _text(body.query),
        TableMapEvent: lambda _, body: f"table_id: {body.table_id} ({body.database}.{body.table})",
        XidEvent: lambda _, body: f"COMMIT /* xid={body.xid} */",
        RotateEvent: lambda _, body: f"{body.file};pos={body.position}",
        IncidentEvent: lambda _, body: f"#{body.number} (LOST_EVENTS)",
        IntvarEvent: lambda _, body: f"{IntvarKind(body.kind).name}={body.value}",
        RandEvent: lambda _, body: f"rand_seed1={body.seed1},rand_seed2={body.seed2}",
        UserVarEvent: _user_var,
        BeginLoadQueryEvent: _load_block,
        AppendBlockEvent: _load_block,
        ExecuteLoadQueryEvent: lambda event, body: (
            f"{_query(event, body.statement)} ;file_id={body.file_id}"
        ),
        XaPrepareEvent: _xa_prepare,
    }
)
"""MariaDB's description of a body; of one that is not here it says nothing."""
_MYSQL_INFO: Final[Mapping[type, Callable[[Event, Any], str]]] = MappingProxyType(
    {
        **_INFO,
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
)
