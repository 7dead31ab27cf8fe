"""Events as mariadb-binlog prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from binlane.binlogs.cat.text.event_text import (
    UNFINISHED,
    EventText,
    base64_text,
    binlog_statement,
    indented_lines,
    one_line,
    printable_rows,
)
from binlane.binlogs.cat.text.hexdump import mariadb_dump
from binlane.binlogs.cat.text.load_files import LoadFiles
from binlane.binlogs.cat.text.row_text import row_count
from binlane.binlogs.cat.text.session_text import END
from binlane.binlogs.cat.text.table_text import table_lines
from binlane.binlogs.cat.text.text_options import Base64Output, Progress, TextOptions
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, encode_event
from binlane.log.codec.query import AnnotateRowsEvent, QueryCompressedEvent, QueryEvent
from binlane.log.codec.rows import (
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
    uncompressed,
)
from binlane.log.codec.status_vars import decode_status_vars
from binlane.log.codec.types import EventType, Flavor, GtidExtraFlag, GtidFlag, HeaderFlag
from binlane.log.grouping.table_maps import TableMaps

if TYPE_CHECKING:
    from binlane.log.codec.control import BinlogCheckpointEvent
    from binlane.log.codec.encryption import StartEncryptionEvent
    from binlane.log.codec.load_data import ExecuteLoadQueryEvent
    from binlane.log.codec.transaction import GtidEvent, GtidListEvent, XaPrepareEvent, XidEvent

_HEAD: Final = (
    "/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/;",
    "/*!40019 SET @@session.max_delayed_threads=0*/;",
)
_OWN_IDS: Final = (
    "/*!100001 SET @@SESSION.SERVER_ID=@@GLOBAL.SERVER_ID */;",
    "/*!100001 SET @@SESSION.GTID_DOMAIN_ID=@@GLOBAL.GTID_DOMAIN_ID */;",
)
_ROW_NAMES: Final = ((WriteRowsEvent, "Write"), (UpdateRowsEvent, "Update"))
_GTID_WORDS: Final = (
    (GtidFlag.DDL, " ddl"),
    (GtidFlag.TRANSACTIONAL, " trans"),
    (GtidFlag.WAITED, " waited"),
)
_ALTER: Final = (
    GtidExtraFlag.START_ALTER | GtidExtraFlag.COMMIT_ALTER | GtidExtraFlag.ROLLBACK_ALTER
)
_HAS_TRIGGERS: Final = 1 << 14
_LINE_ENDS: Final = re.compile(r"[\r\n]+")


class MariadbText(EventText):
    """The text of MariaDB's events; see `EventText`."""

    flavor = Flavor.MARIADB

    def __init__(self, options: TextOptions, load_files: LoadFiles) -> None:
        super().__init__(options, load_files)
        self._has_begun = False
        self._annotate: Event | None = None
        self._skips_replication = False
        self._renderers |= {
            EventType.FORMAT_DESCRIPTION: self._format_description,
            EventType.BINLOG_CHECKPOINT: self._checkpoint,
            EventType.GTID_LIST: self._gtid_list,
            EventType.GTID: self._gtid,
            EventType.QUERY: self._query,
            EventType.QUERY_COMPRESSED: self._query,
            EventType.XID: self._xid,
            EventType.XA_PREPARE_LOG: self._xa_prepare,
            EventType.START_ENCRYPTION: self._start_encryption,
            EventType.EXECUTE_LOAD_QUERY: self._execute_load_query,
        }

    def head(self) -> Iterator[str]:
        """Return the statements that set the session."""
        yield from _HEAD
        yield from self._settings_head()

    def begin_file(self, file: str) -> Iterator[str]:
        """Begin a file: settings from before do not count in it."""
        self._file = file
        self._session = self._new_session()
        self._skips_replication = False
        yield f"DELIMITER {END[:-1]};"

    def end_file(self) -> Iterator[str]:
        """End the parts that the file leaves open, and set the ordinary delimiter."""
        yield from self._unfinished_rows()
        yield "DELIMITER ;"

    def cut(self) -> Iterator[str]:
        """Return a rollback, and forget the pending rows of the group's last statement."""
        self._annotate, self._maps = None, TableMaps()
        self._progress = Progress()
        yield f"ROLLBACK /* added by binlane: the log is damaged here */{END}"

    def finish(self) -> Iterator[str]:
        """Return the statements that reset the session."""
        yield "# End of log file"
        # The last file may have been cut within a transaction.
        yield "ROLLBACK /* added by mysqlbinlog */;"
        yield from self._settings_tail()
        if self._options.restores_ids:
            yield from _OWN_IDS

    def lines(self, event: Event) -> Iterator[str]:
        """Return the lines of one event.

        Raises:
            UnsupportedError: If the event changes data and has no text form.
            CodecError: If a rows event has no TABLE_MAP, or with `verbose` cannot be decoded.
        """
        body = event.body
        is_first, self._has_begun = not self._has_begun, True
        if is_first and isinstance(body, FormatDescriptionEvent) and self._starts_without:
            self._take_format(body)
            return
        if self._options.print_row_event_positions:
            yield from self._at(event)
        table_map = self._maps.feed(event, file=self._file)
        if isinstance(body, RowsEvent):
            yield from self._rows(event, body, table_map)
        elif isinstance(body, TableMapEvent):
            yield from self._table_map(event, body)
        elif isinstance(body, AnnotateRowsEvent):
            self._annotate = None if self._options.skip_annotate else event
        else:
            yield from self._flush_rows()
            yield from self._skip_replication(event)
            yield from self._renderers.get(event.header.type_code, self._other)(event, body)

    @property
    def _starts_without(self) -> bool:
        """True if the first FORMAT_DESCRIPTION is before the printed events, and needed by none."""
        options = self._options
        return options.starts_inside and options.base64_output is not Base64Output.AUTO

    def _skip_replication(self, event: Event) -> Iterator[str]:
        skips = bool(event.header.flags & HeaderFlag.SKIP_REPLICATION)
        if skips != self._skips_replication:
            self._skips_replication = skips
            yield f"/*!50521 SET skip_replication={int(skips)}*/{END}"

    def _checkpoint(self, event: Event, body: BinlogCheckpointEvent) -> Iterator[str]:
        yield from self._event_line(event, f"\tBinlog checkpoint {one_line(body.file)}")

    def _gtid_list(self, event: Event, body: GtidListEvent) -> Iterator[str]:
        ordered = sorted(body.gtids, key=lambda gtid: (gtid.domain_id, gtid.sequence))
        gtids = ",\n# ".join(map(str, ordered))
        yield from self._event_line(event, f"\tGtid list [{gtids}]")

    def _start_encryption(self, event: Event, body: StartEncryptionEvent) -> Iterator[str]:
        if event.header.flags & HeaderFlag.IGNORABLE:
            yield from self._other(event, body)
            return
        yield (
            f"# Encryption scheme: {body.scheme}, key_version: {body.key_version}, "
            f"nonce: {body.nonce.hex()}"
        )
        yield "# The rest of the binlog is encrypted!"

    def _gtid(self, event: Event, body: GtidEvent) -> Iterator[str]:
        gtid = body.gtid(event.header.server_id)
        yield from self._event_line(event, f"\tGTID {gtid}{_gtid_words(body)}")
        if not self._options.short_form:
            skips = int(not body.flags & GtidFlag.ALLOW_PARALLEL)
            for name, version, value in (
                ("skip_parallel_replication", 100101, skips),
                ("gtid_domain_id", 100001, gtid.domain_id),
                ("server_id", 100001, gtid.server_id),
            ):
                if self._session.changed(name, value):
                    yield f"/*M!{version} SET @@session.{name}={value}*/{END}"
            yield f"/*M!100001 SET @@session.gtid_seq_no={gtid.sequence}*/{END}"
        if body.flags & GtidFlag.PREPARED_XA:
            yield f"XA START {body.xid}{END}"
        elif not body.is_standalone:
            yield "START TRANSACTION"
            yield END

    def _query(self, event: Event, body: QueryEvent) -> Iterator[str]:
        yield from self._session.rewritten_use(event, body)
        is_compressed = isinstance(body, QueryCompressedEvent)
        values = {var.name: var.value for var in decode_status_vars(body.status_vars)}
        name = "Query_compressed" if is_compressed else "Query"
        yield from self._query_lines(event, body, name, f"\txid={values.get('XID', 0)}")
        flags = values.get("GTID_FLAGS3", (0,))
        assert isinstance(flags, tuple), "numbers by its layout"
        if flags[0] & _ALTER:
            if not self._options.short_form:
                yield from self._alter(event, body, flags[0])
            return
        yield body.query.decode("utf-8", "surrogateescape")
        yield END

    def _alter(self, event: Event, body: QueryEvent, flags: int) -> Iterator[str]:
        """A two-phase ALTER TABLE, which the server runs in a session of its own."""
        if self._options.prints_base64:
            statement = binlog_statement(base64_text(self._raw(event)))
            # Older servers know one phase only, and take the COMMIT as all of it.
            is_comment = not flags & GtidExtraFlag.COMMIT_ALTER
            yield f"/*!100600 {statement[: -len(END)]} */{END}" if is_comment else statement
        if self._options.verbose:
            yield indented_lines(body.query, "### ")

    def _execute_load_query(self, event: Event, body: ExecuteLoadQueryEvent) -> Iterator[str]:
        yield from self._query_lines(event, body.statement, "Execute_load_query", "\txid=0")
        yield from self._load_statement(body)

    def _xid(self, event: Event, body: XidEvent) -> Iterator[str]:
        yield from self._event_line(event, f"\tXid = {body.xid}")
        yield f"COMMIT{END}"

    def _xa_prepare(self, event: Event, body: XaPrepareEvent) -> Iterator[str]:
        yield from self._event_line(event, f"\tXID = {body.xid}")
        yield f"XA COMMIT {body.xid} ONE PHASE" if body.one_phase else f"XA PREPARE {body.xid}"
        yield END

    def _kept_annotate(self) -> Iterator[str]:
        event, self._annotate = self._annotate, None
        if event is None or not isinstance(event.body, AnnotateRowsEvent):
            return
        if self._options.short_form:
            yield "# Annotate_rows:"
        yield from self._event_line(event, "\tAnnotate_rows:")
        lines = _LINE_ENDS.split(event.body.query.decode("utf-8", "surrogateescape"))
        yield from (f"#Q> {line}" for line in lines if line)

    def _table_map(self, event: Event, body: TableMapEvent) -> Iterator[str]:
        yield from self._take_row_heads()
        yield from self._kept_annotate()
        options = self._options
        name = one_line(str(body.name))
        triggers = " (has triggers)" if body.flags & _HAS_TRIGGERS else ""
        yield from self._event_line(
            event, f"\tTable_map: {name} mapped to number {body.table_id}{triggers}"
        )
        if options.print_table_metadata and not options.short_form:
            yield from table_lines(body, self.flavor)
        if options.prints_base64:
            self._progress.row_bodies.append(base64_text(self._raw(event)))

    def _rows(
        self, event: Event, body: RowsEvent, table_map: TableMapEvent | None
    ) -> Iterator[str]:
        plain = uncompressed(body)
        self._progress.row_heads += self._event_line(event, _rows_text(body))
        if self._options.prints_base64:
            raw = self._raw(event) if plain is body else self._plain_raw(event, plain)
            self._progress.row_bodies.append(base64_text(raw))
        self._add_comments(event, plain, table_map)
        if body.ends_statement:
            yield from self._flush_rows()

    def _plain_raw(self, event: Event, plain: RowsEvent) -> bytes:
        """A BINLOG statement takes no compressed rows."""
        header = replace(event.header, type_code=plain.event_type)
        return encode_event(replace(event, header=header, body=plain), self._format)

    def _add_comments(self, event: Event, body: RowsEvent, table_map: TableMapEvent | None) -> None:
        options = self._options
        if table_map is None or options.short_form:
            return
        if options.verbose:
            self._progress.row_comments += printable_rows(
                body,
                table_map,
                options=options,
                flavor=self.flavor,
                place=(self._file, event),
            )
        if options.print_row_count:
            self._progress.row_count += row_count(body, table_map, flavor=self.flavor)

    def _take_row_heads(self) -> Iterator[str]:
        heads, self._progress.row_heads = self._progress.row_heads, []
        yield from heads

    def _unfinished_rows(self) -> Iterator[str]:
        """Rows whose statement does not end: to be read, not to be run."""
        if self._progress.row_heads or self._progress.row_bodies:
            self._progress.row_bodies, self._progress.row_count = [], 0
            yield from self._flush_rows()
            yield UNFINISHED

    def _flush_rows(self) -> Iterator[str]:
        """Return the rows of a statement: a description, one BINLOG statement, comments."""
        yield from self._take_row_heads()
        progress = self._progress
        if progress.row_bodies:
            yield ""
            yield binlog_statement("\n".join(progress.row_bodies))
        yield from progress.row_comments
        if progress.row_count:
            yield f"# Number of rows: {progress.row_count}"
        progress.row_bodies, progress.row_comments, progress.row_count = [], [], 0

    def _hexdump(self, event: Event, data: bytes) -> Iterator[str]:
        return mariadb_dump(data, event.position)


def _gtid_words(body: GtidEvent) -> str:
    words = "" if body.commit_id is None else f" cid={body.commit_id}"
    words += "".join(word for flag, word in _GTID_WORDS if body.flags & flag)
    extra = body.flags_extra or 0
    if extra & GtidExtraFlag.START_ALTER:
        words += " START ALTER"
    if extra & GtidExtraFlag.COMMIT_ALTER:
        words += f" COMMIT ALTER id= {body.alter_sequence}"
    if extra & GtidExtraFlag.ROLLBACK_ALTER:
        words += f" ROLLBACK ALTER id= {body.alter_sequence}"
    return words if body.thread_id is None else f"{words} thread_id={body.thread_id}"


def _rows_text(body: RowsEvent) -> str:
    verb = next((name for kind, name in _ROW_NAMES if isinstance(body, kind)), "Delete")
    name = f"{verb}_compressed_rows" if body.is_compressed else f"{verb}_rows"
    flags = " flags: STMT_END_F" if body.ends_statement else ""
    return f"\t{name}: table id {body.table_id}{flags}"
