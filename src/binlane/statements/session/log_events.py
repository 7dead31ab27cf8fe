"""The events that a session appends to its binlogs: bodies of the codec, and their printed form.

Values that only the server that runs a statement knows are 0 in a body, and printed as `#`: numbers of
transactions, GTIDs, files and tables, ids and seeds that the server chose. A body has those status variables
that the printed form shows. Rows, the maps of their tables and user variables are placeholders, as their
bodies need the rows' content, or the value as the server keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from binlane.log.codec.load_data import (
    BeginLoadQueryEvent,
    DeleteFileEvent,
    ExecuteLoadQueryEvent,
)
from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent, RowsQueryEvent
from binlane.log.codec.status_vars import (
    DDL_LOGGED_WITH_XID,
    StatusVar,
    decode_status_vars,
    encode_status_vars,
)
from binlane.log.codec.transaction import GtidEvent, TransactionXid, XaPrepareEvent, XidEvent
from binlane.log.codec.types import EventType, GtidExtraFlag, GtidFlag, RowsFlag
from binlane.log.codec.variables import IntvarEvent, IntvarKind, RandEvent
from binlane.names import TableName, quote
from binlane.statements.policy.server import Server
from binlane.statements.programs.host import LoggedVariable, printed_variable
from binlane.statements.sql.evaluation.values import IN_UTF8, NOT_AS_LOGGED
from binlane.statements.sql.servers import Fact

SOURCE_LOG: Final = ""
"""Name of the source's own log, beside the binlogs, in a session that keeps one."""
_FLAGS2: Final = 0
_OPTIONS: Final = (
    ("foreign_key_checks", 1 << 26, 0),
    ("sql_auto_is_null", 1 << 14, 1),
    ("unique_checks", 1 << 27, 0),
    ("check_constraint_checks", 1 << 15, 0),
    ("@@sql_if_exists", 1 << 28, 1),
    ("@@system_versioning_insert_history", 1 << 30, 1),
)
"""By name: the bit of FLAGS2, and the value that it stands for."""
OPTION_BITS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {name.strip("@"): (bit, value) for name, bit, value in _OPTIONS}
)
_OLD_TEXTS: Final = MappingProxyType(
    {
        "foreign_key_checks": "foreign_key_checks=1",
        "sql_auto_is_null": "sql_auto_is_null",
        "unique_checks": "unique_checks=1",
        "check_constraint_checks": "",
        "@@sql_if_exists": "@@sql_if_exists=1",
        "@@system_versioning_insert_history": "@@system_versioning_insert_history=1",
    }
)
"""Texts of options that servers without `Fact.LOGS_ALL_OPTIONS` show."""
_ROWS: Final[Mapping[str, tuple[EventType, EventType]]] = MappingProxyType(
    {
        "insert": (EventType.WRITE_ROWS, EventType.WRITE_ROWS_V1),
        "update": (EventType.UPDATE_ROWS, EventType.UPDATE_ROWS_V1),
        "delete": (EventType.DELETE_ROWS, EventType.DELETE_ROWS_V1),
        "partial update": (EventType.PARTIAL_UPDATE_ROWS, EventType.UPDATE_ROWS_V1),
    }
)
_FLAG_NAMES: Final = (
    (RowsFlag.STMT_END, "STMT_END_F"),
    (RowsFlag.NO_FOREIGN_KEY_CHECKS, "NO_FOREIGN_KEY_CHECKS_F"),
    (RowsFlag.RELAXED_UNIQUE_CHECKS, "RELAXED_UNIQUE_CHECKS_F"),
    (RowsFlag.USE_SQL_FOREIGN_KEY, "USE_SQL_FOREIGN_KEY_F"),
)
_STATEMENT_END: Final = int(RowsFlag.STMT_END)
_QUERIES_KEPT: Final = 4
_LENGTH_BYTE_MAX: Final = 255


class LoggedEvent(NamedTuple):
    """An event as SHOW BINLOG EVENTS prints it, ids as `#`: `Query`, "use `d`; insert …"."""

    type: str
    info: str


class MappedTable(NamedTuple):
    """Stands for the TABLE_MAP of a table."""

    table: TableName


class ChangedRows(NamedTuple):
    """Placeholder for a rows event.

    Attributes:
        event_type: Type of the rows event.
        table: The table whose rows change.
        flags: Bits of `RowsFlag`, joined by OR.
    """

    event_type: EventType
    table: TableName
    flags: int


class PayloadStart(NamedTuple):
    """Stands for a TRANSACTION_PAYLOAD; the events of its group follow, as the servers list them."""

    compression: str = "ZSTD"


Body = (
    QueryEvent
    | IntvarEvent
    | RandEvent
    | XidEvent
    | GtidEvent
    | XaPrepareEvent
    | AnnotateRowsEvent
    | RowsQueryEvent
    | PayloadStart
    | BeginLoadQueryEvent
    | DeleteFileEvent
    | ExecuteLoadQueryEvent
    | LoggedVariable
    | MappedTable
    | ChangedRows
)
"""Events and placeholders that a session appends."""


@lru_cache(_QUERIES_KEPT)
def query(text: str, database: str = "", status_vars: bytes = b"") -> QueryEvent:
    """A statement, with the default database that its text needs; none if that is empty."""
    return QueryEvent(
        thread_id=0,
        execution_time=0,
        error_code=0,
        status_vars=status_vars,
        database=database.encode(),
        query=text.encode("utf-8", "surrogateescape"),
    )


GROUP_START: Final = GtidEvent(sequence=0, domain_id=0, flags=0)
STANDALONE: Final = GtidEvent(sequence=0, domain_id=0, flags=GtidFlag.STANDALONE)
START_ALTER: Final = replace(STANDALONE, flags_extra=GtidExtraFlag.START_ALTER)
COMMIT_ALTER: Final = replace(STANDALONE, flags_extra=GtidExtraFlag.COMMIT_ALTER, alter_sequence=0)
ROLLBACK_ALTER: Final = replace(
    STANDALONE, flags_extra=GtidExtraFlag.ROLLBACK_ALTER, alter_sequence=0
)
BEGIN: Final = query("BEGIN")
COMMIT: Final = query("COMMIT")
ROLLBACK: Final = query("ROLLBACK")
XID: Final = XidEvent(xid=0)
LAST_INSERT_ID: Final = IntvarEvent(kind=IntvarKind.LAST_INSERT_ID, value=0)
INSERT_ID: Final = IntvarEvent(kind=IntvarKind.INSERT_ID, value=0)
RANDOM_SEEDS: Final = RandEvent(seed1=0, seed2=0)
BEGIN_LOAD: Final = BeginLoadQueryEvent(file_id=0, data=b"")
DELETE_FILE: Final = DeleteFileEvent(file_id=0)


@lru_cache
def status_vars(flags2: int, *, is_atomic: bool = False) -> bytes:
    """Status variables of a statement.

    Args:
        flags2: Bits of `OPTION_BITS`, joined by OR.
        is_atomic: MySQL commits the statement, which is DDL, together with its log.
    """
    found = [StatusVar(_FLAGS2, "FLAGS2", flags2)] if flags2 else []
    if is_atomic:
        found.append(StatusVar(DDL_LOGGED_WITH_XID, "DDL_LOGGED_WITH_XID", 0))
    return encode_status_vars(found)


def with_status(event: Body, status: bytes) -> Body:
    """A statement about a transaction with the status variables of its session."""
    return replace(event, status_vars=status) if status and isinstance(event, QueryEvent) else event


def xa_start(xid: TransactionXid, server: Server) -> Body:
    """The start of an XA transaction."""
    if server.is_mariadb:
        return GtidEvent(sequence=0, domain_id=0, flags=GtidFlag.PREPARED_XA, xid=xid)
    return query(f"XA START {xid}")


def annotation(text: str, server: Server) -> Body:
    """The text of a statement whose rows follow."""
    data = text.encode("utf-8", "surrogateescape")
    if server.is_mariadb:
        return AnnotateRowsEvent(query=data)
    return RowsQueryEvent(query=data, length_byte=min(len(data), _LENGTH_BYTE_MAX))


def rows(
    kind: str,
    table: TableName,
    server: Server,
    *,
    checks_foreign_keys: bool = True,
    checks_unique: bool = True,
    is_partial: bool = False,
) -> ChangedRows:
    """Rows of one kind, other rows following: `insert`, `update` or `delete`.

    Args:
        kind: Kind of change: `insert`, `update` or `delete`.
        table: The table whose rows change.
        server: Server that logs the rows.
        checks_foreign_keys: The session's value of foreign_key_checks.
        checks_unique: The session's value of unique_checks.
        is_partial: MySQL's binlog_row_value_options has PARTIAL_JSON: every update is of that type, also of a
            table without JSON.
    """
    if is_partial and kind == "update":
        kind = "partial update"
    flags = 0 if checks_foreign_keys else int(RowsFlag.NO_FOREIGN_KEY_CHECKS)
    flags |= 0 if checks_unique else RowsFlag.RELAXED_UNIQUE_CHECKS
    flags |= RowsFlag.USE_SQL_FOREIGN_KEY if server.has_server_foreign_keys else 0
    return ChangedRows(_ROWS[kind][server.is_mariadb], table, flags)


def ended(event: ChangedRows) -> ChangedRows:
    """A rows event as the last one of its statement."""
    return ChangedRows(event.event_type, event.table, event.flags | _STATEMENT_END)


def ends_rows(event: Body) -> bool:
    """True if an event is the last one of a statement's rows."""
    return isinstance(event, ChangedRows) and bool(event.flags & _STATEMENT_END)


def group(events: Sequence[Body], end: Body, server: Server) -> list[Body]:
    """The content of caches between its opening and its end."""
    return [GROUP_START if server.is_mariadb else BEGIN, *events, end]


def standalone(
    events: Sequence[Body], server: Server, opening: GtidEvent = STANDALONE
) -> list[Body]:
    """A statement that is a group by itself, with the values that belong to it."""
    return [opening, *events] if server.is_mariadb else list(events)


# As SHOW BINLOG EVENTS prints them ----------------------------------------------------------------


def printed(event: Body, server: Server) -> LoggedEvent:
    """An event as SHOW BINLOG EVENTS of a server prints it, numbers that nobody knows as `#`."""
    return _PRINTERS[type(event)](event, server)


def _query(event: QueryEvent, server: Server) -> LoggedEvent:
    shows_values = server.has(Fact.LOGS_ALL_OPTIONS)
    options, end = _shown_status(event.status_vars, shows_values=shows_values)
    text = (options if server.is_mariadb else "") + _text(event.query) + end
    return LoggedEvent("Query", _use(event) + text)


def _use(event: QueryEvent) -> str:
    return f"use {quote(event.database.decode())}; " if event.database else ""


def _text(data: bytes) -> str:
    text = data.decode("utf-8", "surrogateescape")
    return text.replace(NOT_AS_LOGGED, "").replace(IN_UTF8, "")


@lru_cache
def _shown_status(data: bytes, *, shows_values: bool) -> tuple[str, str]:
    """Return the texts that status variables show before a statement and behind it."""
    options, end = "", ""
    for variable in decode_status_vars(data):
        if variable.code == DDL_LOGGED_WITH_XID:
            end = " /* xid=# */"
        elif isinstance(variable.value, int):
            texts = [
                f"{name}={value}" if shows_values else _OLD_TEXTS[name]
                for name, bit, value in _OPTIONS
                if variable.value & bit
            ]
            shown = ", ".join(text for text in texts if text)
            options = f"set {shown}; " if shown else ""
    return options, end


def _intvar(event: IntvarEvent, _: Server) -> LoggedEvent:
    return LoggedEvent("Intvar", f"{IntvarKind(event.kind).name}=#")


def _gtid(event: GtidEvent, _: Server) -> LoggedEvent:
    if event.xid is not None:
        return LoggedEvent("Gtid", f"XA START {event.xid} GTID #")
    if event.flags_extra is not None:
        return LoggedEvent("Gtid", f"GTID # {_ALTERS[event.flags_extra]}")
    return LoggedEvent("Gtid", "GTID #" if event.flags & GtidFlag.STANDALONE else "BEGIN GTID #")


_ALTERS: Final[Mapping[int, str]] = MappingProxyType(
    {
        GtidExtraFlag.START_ALTER: "START ALTER",
        GtidExtraFlag.COMMIT_ALTER: "COMMIT ALTER id=#",
        GtidExtraFlag.ROLLBACK_ALTER: "ROLLBACK ALTER id=#",
    }
)


def _xa_prepare(event: XaPrepareEvent, _: Server) -> LoggedEvent:
    text = f"XA COMMIT {event.xid} ONE PHASE" if event.one_phase else f"XA PREPARE {event.xid}"
    return LoggedEvent("XA_prepare", text)


def _table_map(event: MappedTable, _: Server) -> LoggedEvent:
    return LoggedEvent("Table_map", f"table_id: # ({event.table.plain})")


def _rows(event: ChangedRows, server: Server) -> LoggedEvent:
    is_partial = event.event_type is EventType.PARTIAL_UPDATE_ROWS
    name = "Update_rows_partial" if is_partial else event.event_type.name.capitalize()
    # Servers show the flag of a statement's end alone, unless foreign keys are their own work.
    shown = ~0 if server.has_server_foreign_keys else RowsFlag.STMT_END
    flags = " ".join(text for flag, text in _FLAG_NAMES if event.flags & shown & flag)
    return LoggedEvent(name, f"table_id: # flags: {flags}" if flags else "table_id: #")


def _load(event: ExecuteLoadQueryEvent, _: Server) -> LoggedEvent:
    statement = event.statement
    text = f"{_use(statement)}{_text(statement.query)} ;file_id=#"
    return LoggedEvent("Execute_load_query", text)


_PRINTERS: Final[Mapping[type[Body], Callable[[Any, Server], LoggedEvent]]] = MappingProxyType(
    {
        QueryEvent: _query,
        IntvarEvent: _intvar,
        RandEvent: lambda _, __: LoggedEvent("RAND", "rand_seed1=#,rand_seed2=#"),
        XidEvent: lambda _, __: LoggedEvent("Xid", "COMMIT /* xid=# */"),
        GtidEvent: _gtid,
        XaPrepareEvent: _xa_prepare,
        AnnotateRowsEvent: lambda event, _: LoggedEvent("Annotate_rows", _text(event.query)),
        RowsQueryEvent: lambda event, _: LoggedEvent("Rows_query", f"# {_text(event.query)}"),
        PayloadStart: lambda event, _: LoggedEvent(
            "Transaction_payload",
            f"compression='{event.compression}', decompressed_size=# bytes",
        ),
        BeginLoadQueryEvent: lambda _, __: LoggedEvent(
            "Begin_load_query", ";file_id=#;block_len=#"
        ),
        DeleteFileEvent: lambda _, __: LoggedEvent("Delete_file", ";file_id=#"),
        ExecuteLoadQueryEvent: _load,
        LoggedVariable: lambda event, server: LoggedEvent(
            "User var", printed_variable(event, server)
        ),
        MappedTable: _table_map,
        ChangedRows: _rows,
    }
)
