"""Events → SQL that makes the same changes: one statement per row; logged statements unchanged.

The output is for people and for servers of the log's flavor; it carries no GTIDs. A trigger's
changes stand in the log as rows, so tables that the output is run on must have no triggers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from binlane.binlogs.cat.sql.row_sql import RowSqlCache
from binlane.binlogs.cat.sql.session_sql import SqlSession, printed_text, user_value
from binlane.binlogs.cat.sql.sql_literals import quoted
from binlane.binlogs.cat.text.load_files import LoadFiles
from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.control import FormatDescriptionEvent, IncidentEvent
from binlane.log.codec.event import Event
from binlane.log.codec.load_data import (
    AppendBlockEvent,
    BeginLoadQueryEvent,
    ExecuteLoadQueryEvent,
    FileBlockEvent,
)
from binlane.log.codec.query import AnnotateRowsEvent, QueryCompressedEvent, QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent, XaPrepareEvent, XidEvent
from binlane.log.codec.types import EventType, Flavor, GtidFlag, HeaderFlag
from binlane.log.codec.variables import IntvarEvent, IntvarKind, RandEvent, UserVarEvent
from binlane.log.grouping.event_group import GroupTracker
from binlane.log.grouping.table_maps import TableMaps
from binlane.names import quote

if TYPE_CHECKING:
    from binlane.statements.sql.logged_objects import LoggedObjects

_DELIMITER: Final = ";;"
# These events change nothing that SQL could say.
_SILENT: Final = frozenset(
    {
        EventType.STOP,
        EventType.ROTATE,
        EventType.DELETE_FILE,
        EventType.HEARTBEAT,
        EventType.HEARTBEAT_V2,
        EventType.GTID,
        EventType.GTID_LOG,
        EventType.ANONYMOUS_GTID_LOG,
        EventType.GTID_TAGGED_LOG,
        EventType.GTID_LIST,
        EventType.PREVIOUS_GTIDS_LOG,
        EventType.BINLOG_CHECKPOINT,
        EventType.START_ENCRYPTION,
        EventType.TRANSACTION_CONTEXT,
        EventType.VIEW_CHANGE,
        EventType.TRANSACTION_PAYLOAD,
        EventType.LARGE_TRANSACTION_HEADER,
    }
)
_START_TRANSACTION: Final = re.compile(r"(?<=\S)\s+START TRANSACTION\Z")
_XA_START: Final = re.compile(rb"XA\s+(?:START|BEGIN)\b", re.IGNORECASE)
_BEGINS: Final = re.compile(rb"(?:BEGIN|START TRANSACTION)\s*\Z", re.IGNORECASE)
_ENDS: Final = re.compile(rb"(?:COMMIT|ROLLBACK)\s*\Z", re.IGNORECASE)


class SqlLines:
    """Renders the events of one or more files, in order.

    Args:
        catalog: Catalog of the columns' names where the log does not tell them; logged DDL keeps it
            up to date.
        load_directory: Directory of the files of LOAD DATA statements; the system's directory for
            temporary files by default.
    """

    def __init__(
        self, *, catalog: LoggedObjects | None = None, load_directory: Path | None = None
    ) -> None:
        self._catalog = catalog
        self._tables = RowSqlCache(catalog)
        self._session = SqlSession()
        self._load_files = LoadFiles(load_directory)
        self._tracker = GroupTracker()
        self._maps = TableMaps()
        self._flavor = Flavor.MARIADB
        self._is_open = False
        self._is_undone = False
        self._detaches_xa = False
        self._renderers: Mapping[type, Callable[[Event, Any], Iterator[str]]] = MappingProxyType(
            {
                FormatDescriptionEvent: self._format_description,
                GtidEvent: self._gtid,
                QueryEvent: self._query,
                QueryCompressedEvent: self._query,
                AnnotateRowsEvent: self._annotate,
                XidEvent: self._xid,
                XaPrepareEvent: self._xa_prepare,
                IntvarEvent: self._intvar,
                RandEvent: self._rand,
                UserVarEvent: self._user_var,
                IncidentEvent: self._incident,
                BeginLoadQueryEvent: self._file_block,
                AppendBlockEvent: self._file_block,
                ExecuteLoadQueryEvent: self._execute_load_query,
            }
        )

    def head(self) -> Iterator[str]:
        """The settings that the session needs before anything else."""
        yield "-- SQL made from a binlog by binlane; tables must have no triggers."
        yield "SET NAMES utf8mb4;"

    def finish(self) -> Iterator[str]:
        """Roll back a transaction that the log does not end."""
        yield from self._roll_back()

    def lines(self, event: Event, *, file: str) -> Iterator[str]:
        """The statements of one event.

        Args:
            event: The next event; events inside a compressed transaction follow their carrier.
            file: Base name of its file.

        Raises:
            UnsupportedError: If nothing names a table's columns, or the event has no SQL.
            CodecError: If a row cannot be decoded, or no TABLE_MAP tells its table.
        """
        place = self._tracker.feed(event)
        if place.begins and not event.inner:
            yield from self._roll_back()
            if not place.is_control:
                yield _comment(f"{place.gtid or 'no GTID'}  {_place(event, file)}")
        if self._catalog is not None and self._catalog.feed(event):
            self._tables.forget()
        table_map = self._maps.feed(event, file=file)
        if table_map is not None and isinstance(event.body, RowsEvent):
            yield from self._rows(event, event.body, table_map, file)
            return
        renderer = self._renderers.get(type(event.body))
        try:
            if renderer is not None:
                yield from renderer(event, event.body)
            else:
                yield from self._other(event)
        except CodecError as error:
            raise error.at(file, event.position) from None

    def _rows(
        self, event: Event, body: RowsEvent, table_map: TableMapEvent, file: str
    ) -> Iterator[str]:
        table = self._tables.get(table_map, flavor=self._flavor, place=(file, event.position))
        for setting in self._session.for_rows(event, body.flags, flavor=self._flavor):
            yield f"{setting};"
        try:
            for change in table.changes(body):
                yield f"{table.forward(change)};"
        except CodecError as error:
            raise error.at(file, event.position) from None

    def _roll_back(self) -> Iterator[str]:
        if self._is_open:
            yield "ROLLBACK;"
        self._is_open = False

    def _begin(self) -> Iterator[str]:
        if not self._is_open:
            yield "BEGIN;"
        self._is_open = True

    def _format_description(self, event: Event, body: FormatDescriptionEvent) -> Iterator[str]:
        del event
        self._flavor = body.format.flavor
        yield from ()

    def _gtid(self, event: Event, body: GtidEvent) -> Iterator[str]:
        del event
        self._is_undone = body.is_undone
        if body.flags & GtidFlag.PREPARED_XA:
            yield from self._detach_xa()
            yield f"XA START {body.xid};"
        elif not body.is_standalone:
            yield from self._begin()

    def _detach_xa(self) -> Iterator[str]:
        """Detach the session from the transaction after XA PREPARE, as replication does."""
        if not self._detaches_xa:
            yield "SET pseudo_slave_mode = 1;"
        self._detaches_xa = True

    def _query(self, event: Event, body: QueryEvent) -> Iterator[str]:
        if _BEGINS.match(body.query):
            yield from self._begin()
            return
        if _ENDS.match(body.query):
            self._is_open = False
            yield f"{body.query.decode().strip()};"
            return
        if self._is_undone:
            return
        if _XA_START.match(body.query):
            yield from self._detach_xa()
        text, _ = printed_text(body)
        # MySQL's CREATE TABLE … SELECT: behind this clause only its own rows could follow.
        text = _START_TRANSACTION.sub("", text)
        yield from self._statement(event, body, text)

    def _statement(self, event: Event, body: QueryEvent, text: str) -> Iterator[str]:
        for setting in self._session.for_statement(event, body, flavor=self._flavor):
            yield f"{setting};"
        if body.error_code:
            yield _comment(f"failed on its server with error {body.error_code}")
        text = text.rstrip().rstrip(";")
        if ";" not in text and "--" not in text and "#" not in text:
            yield f"{text};"
            return
        delimiter = _DELIMITER
        while delimiter in text:
            delimiter += ";"
        yield f"DELIMITER {delimiter}"
        yield text
        yield delimiter
        yield "DELIMITER ;"

    def _annotate(self, event: Event, body: AnnotateRowsEvent) -> Iterator[str]:
        del event
        yield _comment(body.query.decode("utf-8", "backslashreplace"))

    def _xid(self, event: Event, body: XidEvent) -> Iterator[str]:
        del event, body
        self._is_open = False
        yield "COMMIT;"

    def _xa_prepare(self, event: Event, body: XaPrepareEvent) -> Iterator[str]:
        del event
        yield f"XA COMMIT {body.xid} ONE PHASE;" if body.one_phase else f"XA PREPARE {body.xid};"

    def _intvar(self, event: Event, body: IntvarEvent) -> Iterator[str]:
        del event
        name = "LAST_INSERT_ID" if body.kind == IntvarKind.LAST_INSERT_ID else "INSERT_ID"
        yield f"SET {name} = {body.value};"

    def _rand(self, event: Event, body: RandEvent) -> Iterator[str]:
        del event
        yield f"SET @@rand_seed1 = {body.seed1}, @@rand_seed2 = {body.seed2};"

    def _user_var(self, event: Event, body: UserVarEvent) -> Iterator[str]:
        del event
        yield f"SET @{quote(body.name.decode('utf-8', 'surrogateescape'))} := {user_value(body)};"

    def _file_block(self, event: Event, body: FileBlockEvent) -> Iterator[str]:
        del event
        is_first = isinstance(body, BeginLoadQueryEvent)
        self._load_files.write(body.file_id, body.data, is_first=is_first)
        yield from ()

    def _execute_load_query(self, event: Event, body: ExecuteLoadQueryEvent) -> Iterator[str]:
        query = body.with_file(self._load_files.path_of(body.file_id))
        yield from self._statement(event, body.statement, query.decode("utf-8", "surrogateescape"))

    def _incident(self, event: Event, body: IncidentEvent) -> Iterator[str]:
        del event
        text = body.message.decode("utf-8", "backslashreplace")
        # Whoever runs this must stop here: the log cannot say what happened.
        yield f"SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = {quoted(f'incident: {text}'[:128])};"

    def _other(self, event: Event) -> Iterator[str]:
        header = event.header
        is_harmless = header.type_code in _SILENT or header.flags & HeaderFlag.IGNORABLE
        if not is_harmless and not isinstance(event.body, RowsEvent | TableMapEvent):
            raise UnsupportedError(
                f"{header.type_name} (type {header.type_code}) has no form in SQL",
                hint="--format=json prints it",
            )
        yield from ()


def _comment(text: str) -> str:
    return "\n".join(f"-- {line}" for line in text.splitlines() or [""])


def _place(event: Event, file: str) -> str:
    when = datetime.fromtimestamp(event.header.timestamp, UTC)
    return f"{file}:{event.position}  {when:%Y-%m-%d %H:%M:%S} UTC"
