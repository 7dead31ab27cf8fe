"""Events as mysqlbinlog prints them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from binlane.binlogs.cat.text.event_text import (
    LOAD_BLOCKS,
    UNFINISHED,
    EventText,
    base64_text,
    binlog_statement,
    one_line,
    printable_rows,
)
from binlane.binlogs.cat.text.hexdump import mysql_dump
from binlane.binlogs.cat.text.load_files import LoadFiles
from binlane.binlogs.cat.text.session_text import END, is_of_transaction
from binlane.binlogs.cat.text.table_text import generated_key_line, table_lines
from binlane.binlogs.cat.text.text_options import Base64Output, TextOptions
from binlane.errors import UnsupportedError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)
from binlane.log.codec.status_vars import decode_status_vars
from binlane.log.codec.types import EventType, Flavor, HeaderFlag, RowsFlag
from binlane.log.grouping.table_maps import TableMaps

if TYPE_CHECKING:
    from binlane.log.codec.load_data import ExecuteLoadQueryEvent
    from binlane.log.codec.mysql_transaction import MysqlGtidEvent, PreviousGtidsEvent
    from binlane.log.codec.payload import TransactionPayloadEvent
    from binlane.log.codec.query import RowsQueryEvent
    from binlane.log.codec.transaction import XaPrepareEvent, XidEvent

_GTID_TYPES: Final = frozenset(
    {EventType.GTID_LOG, EventType.ANONYMOUS_GTID_LOG, EventType.GTID_TAGGED_LOG}
)
_HEAD: Final = (
    "# The proper term is pseudo_replica_mode, but we use this compatibility alias",
    "# to make the statement usable on server versions 8.0.24 and older.",
    "/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/;",
)
_ROW_NAMES: Final = (
    (WriteRowsEvent, "Write_rows"),
    (PartialUpdateRowsEvent, "Update_rows_partial"),
    (UpdateRowsEvent, "Update_rows"),
    (DeleteRowsEvent, "Delete_rows"),
)
_ROW_FLAGS: Final = (
    (RowsFlag.STMT_END, "STMT_END_F"),
    (RowsFlag.NO_FOREIGN_KEY_CHECKS, "NO_FOREIGN_KEY_CHECKS_F"),
    (RowsFlag.RELAXED_UNIQUE_CHECKS, "RELAXED_UNIQUE_CHECKS_F"),
    (RowsFlag.COMPLETE_ROWS, "COMPLETE_ROWS_F"),
    (RowsFlag.USE_SQL_FOREIGN_KEY, "USE_SQL_FOREIGN_KEY_F"),
)
_VALUES_FOR_QUERY: Final = frozenset({EventType.INTVAR, EventType.RAND, EventType.USER_VAR})
_NOT_ROW_FORMAT: Final = frozenset(
    {*_VALUES_FOR_QUERY, *LOAD_BLOCKS, EventType.DELETE_FILE, EventType.EXECUTE_LOAD_QUERY}
)
_MAY_HAVE_STATEMENTS: Final = 1
# Version of a server that tells when it committed, but not its version; older ones tell neither.
_UNKNOWN_VERSION: Final = 999999
_GENERATED_KEYS_SINCE: Final = 80030
_MICROSECONDS: Final = 1_000_000
_BEGINNINGS: Final = (b"BEGIN", b"XA START", b"START TRANSACTION")
_ENDS: Final = (b"COMMIT", b"ROLLBACK", b"XA ROLLBACK")
_ATOMIC_CREATE: Final = b" START TRANSACTION"
# DROP TABLE is of one thread in any case.
_TEMPORARY: Final = b"TEMPORARY"
_TO_SAVEPOINT: Final = b"ROLLBACK TO"
_STATEMENT_ESCAPES: Final = str.maketrans(
    {"\n": "\n# ", "\r": "\\r", "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\0": "\\0"}
)


class MysqlText(EventText):
    """The text of MySQL's events; see `EventText`."""

    flavor = Flavor.MYSQL

    def __init__(self, options: TextOptions, load_files: LoadFiles) -> None:
        super().__init__(options, load_files)
        # True if a FORMAT_DESCRIPTION came, other than those with which relay logs begin.
        self._has_begun_log = False
        # True if a transaction has begun whose statements have to be rows.
        self._is_inside = False
        self._renderers |= {
            EventType.FORMAT_DESCRIPTION: self._start,
            EventType.PREVIOUS_GTIDS_LOG: self._previous_gtids,
            **dict.fromkeys(_GTID_TYPES, self._gtid),
            EventType.QUERY: self._query,
            EventType.ROWS_QUERY: self._rows_query,
            EventType.TRANSACTION_PAYLOAD: self._payload,
            EventType.XID: self._xid,
            EventType.XA_PREPARE_LOG: self._xa_prepare,
            EventType.EXECUTE_LOAD_QUERY: self._execute_load_query,
        }

    def head(self) -> Iterator[str]:
        """Return the statements that set the session."""
        yield from _HEAD
        yield from self._settings_head()
        if self._options.idempotent:
            yield "/*!50700 SET @@SESSION.RBR_EXEC_MODE=IDEMPOTENT*/;"
            yield ""
        if self._options.require_row_format:
            yield "/*!80019 SET @@SESSION.REQUIRE_ROW_FORMAT=1*/;"
            yield ""
        yield f"DELIMITER {END[:-1]};"

    def _end_log(self) -> Iterator[str]:
        """Return the end of the parts that the log leaves open."""
        yield from self._end_payload()
        yield from self._unfinished_rows()
        progress = self._progress
        if progress.has_gtid and progress.awaits_begin and not progress.in_transaction:
            yield f"BEGIN /*added by mysqlbinlog */ {END}"
        if progress.in_transaction or (progress.has_gtid and progress.awaits_begin):
            yield f"ROLLBACK /* added by mysqlbinlog */ {END}"
        if not self._options.skip_gtids:
            yield f"SET @@SESSION.GTID_NEXT= 'AUTOMATIC' /* added by mysqlbinlog */ {END}"
        progress.has_gtid = progress.awaits_begin = progress.in_transaction = False

    def cut(self) -> Iterator[str]:
        """End as at the end of a file; held parts of the group's last statement are forgotten."""
        self._progress.row_bodies, self._progress.row_comments = [], []
        self._maps = TableMaps()
        yield from self._end_log()

    def finish(self) -> Iterator[str]:
        """The end of the last log, and the session's settings as they were."""
        yield from self._end_log()
        yield "DELIMITER ;"
        yield "# End of log file"
        yield from self._settings_tail()
        if self._options.idempotent:
            yield "/*!50700 SET @@SESSION.RBR_EXEC_MODE=STRICT*/;"

    def lines(self, event: Event) -> Iterator[str]:
        """Return the lines of one event.

        Raises:
            UnsupportedError: If the event changes data and has no text form.
            CodecError: If a rows event has no TABLE_MAP, or with `verbose` cannot be decoded.
        """
        if not event.inner:
            yield from self._end_payload()
        if (
            event.header.type_code in _GTID_TYPES
            and self._progress.has_gtid
            and self._progress.awaits_begin
        ):
            # A filter left out the statement of the last GTID; a client must use that up first.
            yield f"COMMIT /* added by mysqlbinlog */{END}"
        if isinstance(event.body, FormatDescriptionEvent) and self._begins_log(event):
            yield from self._end_log()
        yield from self._at(event)
        body = event.body
        if self._options.require_row_format:
            self._check_row_format(event)
        table_map = self._maps.feed(event, file=self._file)
        if isinstance(body, RowsEvent):
            yield from self._rows(event, body, table_map)
        elif isinstance(body, TableMapEvent):
            yield from self._table_map(event, body)
        elif event.header.type_code in _VALUES_FOR_QUERY:
            # These values are printed with their statement, behind its position.
            self._progress.values += self._renderers[event.header.type_code](event, body)
        else:
            yield from self._flush_rows()
            yield from self._renderers.get(event.header.type_code, self._other)(event, body)

    def _check_row_format(self, event: Event) -> None:
        body = event.body
        is_statement = isinstance(body, QueryEvent) and (
            (event.header.flags & HeaderFlag.THREAD_SPECIFIC and _TEMPORARY in body.query.upper())
            or (
                self._is_inside
                and not is_of_transaction(body.query)
                and not body.query.endswith(_ATOMIC_CREATE)
            )
        )
        if is_statement or event.header.type_code in _NOT_ROW_FORMAT:
            raise UnsupportedError(
                f"{event.header.type_name} is not of row format, which --require-row-format asks for",
                hint="leave the option away, or set binlog_format=ROW where the log is written",
            ).at(self._file, event.position)

    def _end_payload(self) -> Iterator[str]:
        if self._progress.in_payload and not self._options.short_form:
            yield "# End of compressed events."
        self._progress.in_payload = False

    def _begins_log(self, event: Event) -> bool:
        """True if a FORMAT_DESCRIPTION ends the log before it.

        A relay log goes on with the transaction that the one before it left open. So does a
        server's log for a client that begins to read inside of a file: there the FORMAT_DESCRIPTION
        has no position.
        """
        if event.header.flags & HeaderFlag.RELAY_LOG:
            return False
        is_behind_log, self._has_begun_log = self._has_begun_log, True
        return is_behind_log and event.header.next_position != 0

    def _start(self, event: Event, body: FormatDescriptionEvent) -> Iterator[str]:
        is_relay = bool(event.header.flags & HeaderFlag.RELAY_LOG)
        yield from self._format_description(event, body, is_relay=is_relay)
        options = self._options
        has_text = not options.short_form and options.base64_output is not Base64Output.NEVER
        if options.skip_gtids and has_text and not is_relay:
            yield f"/*!50616 SET @@SESSION.GTID_NEXT='AUTOMATIC'*/{END}"

    def _previous_gtids(self, event: Event, body: PreviousGtidsEvent) -> Iterator[str]:
        if self._options.skip_gtids:
            return
        yield from self._event_line(event, "\tPrevious-GTIDs")
        gtids = str(body.position).replace(",", ",\n# ")
        yield f"# {gtids or '[empty]'}"

    def _gtid(self, event: Event, body: MysqlGtidEvent) -> Iterator[str]:
        if self._options.skip_gtids:
            return
        immediate = body.immediate_commit_timestamp or 0
        original = (
            immediate if body.original_commit_timestamp is None else body.original_commit_timestamp
        )
        is_row_based = not body.flags & _MAY_HAVE_STATEMENTS
        name = "GTID" if body.gtid else "Anonymous_GTID"
        yield from self._event_line(
            event,
            f"\t{name}\tlast_committed={body.last_committed or 0}"
            f"\tsequence_number={body.sequence_number or 0}"
            f"\trbr_only={'yes' if is_row_based else 'no'}"
            f"\toriginal_committed_timestamp={original}"
            f"\timmediate_commit_timestamp={immediate}"
            f"\ttransaction_length={body.transaction_length or 0}",
        )
        if is_row_based:
            yield f"/*!50718 SET TRANSACTION ISOLATION LEVEL READ COMMITTED*/{END}"
        yield f"# original_commit_timestamp={original} ({_microseconds(original)})"
        yield f"# immediate_commit_timestamp={immediate} ({_microseconds(immediate)})"
        yield f"/*!80001 SET @@session.original_commit_timestamp={original}*/{END}"
        unknown = 0 if body.immediate_commit_timestamp is None else _UNKNOWN_VERSION
        version = body.immediate_server_version or unknown
        self._progress.server_version = version
        first = body.original_server_version or version
        yield f"/*!80014 SET @@session.original_server_version={first}*/{END}"
        yield f"/*!80014 SET @@session.immediate_server_version={version}*/{END}"
        yield f"SET @@SESSION.GTID_NEXT= '{body.gtid or 'ANONYMOUS'}'{END}"
        progress = self._progress
        progress.has_gtid = progress.awaits_begin = True
        self._is_inside = False

    def _query(self, event: Event, body: QueryEvent) -> Iterator[str]:
        yield from self._take_values()
        values = {var.name: var.value for var in decode_status_vars(body.status_vars)}
        xid = values.get("DDL_LOGGED_WITH_XID")
        yield from self._query_lines(event, body, "Query", "" if xid is None else f"\tXid = {xid}")
        self._follow(body.query)
        yield body.query.decode("utf-8", "surrogateescape")
        yield END

    def _follow(self, query: bytes) -> None:
        """Remember whether the tool takes a transaction as open behind a statement.

        One that XA PREPARE has left is open for it until the next one ends.
        """
        self._progress.awaits_begin = False
        if query.startswith(_BEGINNINGS):
            self._progress.in_transaction = self._is_inside = True
        elif query.startswith(_ENDS) and not query.upper().startswith(_TO_SAVEPOINT):
            self._progress.in_transaction = False

    def _take_values(self) -> Iterator[str]:
        values, self._progress.values = self._progress.values, []
        yield from values

    def _execute_load_query(self, event: Event, body: ExecuteLoadQueryEvent) -> Iterator[str]:
        yield from self._take_values()
        yield from self._query_lines(event, body.statement, "Execute_load_query", "")
        yield from self._load_statement(body)

    def _rows_query(self, event: Event, body: RowsQueryEvent) -> Iterator[str]:
        if self._options.verbose < 2 or self._options.short_form:
            return
        yield from self._event_line(event, "\tRows_query")
        query = body.query.decode("utf-8", "surrogateescape")
        yield "# " + query.translate(_STATEMENT_ESCAPES)
        if self._options.prints_base64:
            self._progress.row_bodies.append(base64_text(self._raw(event)))

    def _payload(self, event: Event, body: TransactionPayloadEvent) -> Iterator[str]:
        from binlane.log.codec.payload import PayloadCompression  # noqa: PLC0415  # as the event was

        compression = PayloadCompression(body.compression).name
        yield from self._event_line(
            event,
            f"\tTransaction_Payload\t\tpayload_size={len(body.payload)}"
            f"\tcompression_type={compression}\tuncompressed_size={body.uncompressed_size}",
        )
        if not self._options.short_form:
            yield "# Start of compressed events."
        self._progress.in_payload = True

    def _xid(self, event: Event, body: XidEvent) -> Iterator[str]:
        yield from self._event_line(event, f"\tXid = {body.xid}")
        yield f"COMMIT{END}"
        self._progress.in_transaction = False

    def _xa_prepare(self, event: Event, body: XaPrepareEvent) -> Iterator[str]:
        yield from self._event_line(event, f"\tXA PREPARE {body.xid}")
        yield f"XA COMMIT {body.xid} ONE PHASE" if body.one_phase else f"XA PREPARE {body.xid}"
        yield END

    def _table_map(self, event: Event, body: TableMapEvent) -> Iterator[str]:
        options = self._options
        if options.base64_output is Base64Output.NEVER and not options.short_form:
            raise UnsupportedError(
                "rows cannot be printed with --base64-output=never, "
                "since without BINLOG statements the text would lose them",
                hint="use --base64-output=decode-rows with -v to read them as comments",
            ).at(self._file, event.position)
        name = one_line(str(body.name))
        yield from self._event_line(event, f"\tTable_map: {name} mapped to number {body.table_id}")
        if not options.short_form:
            if _GENERATED_KEYS_SINCE <= self._progress.server_version < _UNKNOWN_VERSION:
                yield generated_key_line(body)
            if options.print_table_metadata:
                yield from table_lines(body, self.flavor)
        if options.prints_base64:
            self._progress.row_bodies.append(base64_text(self._raw(event)))

    def _rows(
        self, event: Event, body: RowsEvent, table_map: TableMapEvent | None
    ) -> Iterator[str]:
        yield from self._event_line(event, _rows_text(body))
        if self._options.prints_base64:
            self._progress.row_bodies.append(base64_text(self._raw(event)))
        if self._options.verbose and not self._options.short_form and table_map is not None:
            self._progress.row_comments += printable_rows(
                body,
                table_map,
                options=self._options,
                flavor=self.flavor,
                place=(self._file, event),
            )
        if body.ends_statement:
            yield from self._flush_rows()

    def _unfinished_rows(self) -> Iterator[str]:
        """Rows whose statement does not end: to be read, not to be run."""
        if self._progress.row_bodies or self._progress.row_comments:
            self._progress.row_bodies = []
            yield from self._flush_rows()
            yield UNFINISHED

    def _flush_rows(self) -> Iterator[str]:
        progress = self._progress
        if progress.row_bodies:
            yield ""
            yield binlog_statement("\n".join(progress.row_bodies))
        yield from progress.row_comments
        progress.row_bodies, progress.row_comments = [], []

    def _hexdump(self, event: Event, data: bytes) -> Iterator[str]:
        return mysql_dump(data, self._shown_position(event))


def _rows_text(body: RowsEvent) -> str:
    name = next(name for kind, name in _ROW_NAMES if isinstance(body, kind))
    flags = "".join(f" {text}" for flag, text in _ROW_FLAGS if body.flags & flag)
    return f"\t{name}: table id {body.table_id}" + (f" flags:{flags}" if flags else "")


def _microseconds(value: int) -> str:
    when = time.localtime(value // _MICROSECONDS)
    return time.strftime("%Y-%m-%d %H:%M:%S", when) + f".{value % _MICROSECONDS:06d} {when.tm_zone}"
