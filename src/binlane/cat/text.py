"""Events → text that a MariaDB client can run: the shape of mariadb-binlog's own output.

Rows events go out as BINLOG statements, one for each statement that was logged; `-v` adds what they
mean as comments. Session variables are set only when they change.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from binlane.cat.load_files import LoadFiles
from binlane.cat.pseudo_sql import pseudo_sql
from binlane.cat.session_state import SessionState
from binlane.codec.control import (
    BinlogCheckpointEvent,
    FormatDescriptionEvent,
    IncidentEvent,
    RotateEvent,
    StopEvent,
)
from binlane.codec.event import Event, encode_event
from binlane.codec.format import Format
from binlane.codec.load_data import (
    AppendBlockEvent,
    BeginLoadQueryEvent,
    DeleteFileEvent,
    ExecuteLoadQueryEvent,
    FileBlockEvent,
)
from binlane.codec.query import AnnotateRowsEvent, QueryCompressedEvent, QueryEvent
from binlane.codec.rows import RowsEvent, TableMapEvent, uncompressed
from binlane.codec.transaction import GtidEvent, GtidListEvent, XaPrepareEvent, XidEvent
from binlane.codec.types import EventType, GtidFlag, HeaderFlag
from binlane.codec.variables import IntvarEvent, RandEvent, UserVarEvent
from binlane.errors import UnsupportedError
from binlane.grouping.table_maps import TableMaps

DELIMITER: Final = "/*!*/;"
HEAD: Final = (
    "/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/;",
    "/*!50003 SET @OLD_COMPLETION_TYPE=@@COMPLETION_TYPE,COMPLETION_TYPE=0*/;",
    f"DELIMITER {DELIMITER[:-1]};",
)
TAIL: Final = (
    "DELIMITER ;",
    "# End of log file",
    "ROLLBACK /* added by binlane */;",
    "/*!50003 SET COMPLETION_TYPE=@OLD_COMPLETION_TYPE*/;",
    "/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=0*/;",
)
_ROWS_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {"WRITE": "Write_rows", "UPDATE": "Update_rows", "DELETE": "Delete_rows"}
)
# They change nothing; what follows START_ENCRYPTION cannot be read, and is an error of its own.
_TOLD_ONLY: Final = frozenset({EventType.START_ENCRYPTION, EventType.HEARTBEAT_V2})
_GTID_WORDS: Final = (
    (GtidFlag.DDL, "ddl"),
    (GtidFlag.TRANSACTIONAL, "trans"),
    (GtidFlag.WAITED, "waited"),
)


class TextLines:
    """Renders the events of one or more files, in order.

    Args:
        verbose: 0 BINLOG statements only; 1 and more add pseudo-SQL for each row; 2 and more add
            each column's type.
        load_directory: Where the files of LOAD DATA statements are written, whose text names them;
            the system's directory for temporary files by default.
    """

    def __init__(self, *, verbose: int, load_directory: Path | None = None) -> None:
        self._verbose = verbose
        self._load_files = LoadFiles(load_directory)
        self._session = SessionState()
        self._maps = TableMaps()
        self._format: Format | None = None
        self._statement: list[bytes] = []
        self._comments: list[str] = []
        self._renderers: Mapping[type, Callable[[Event, Any], Iterator[str]]] = MappingProxyType(
            {
                FormatDescriptionEvent: self._format_description,
                RotateEvent: self._rotate,
                StopEvent: self._stop,
                BinlogCheckpointEvent: self._checkpoint,
                GtidListEvent: self._gtid_list,
                GtidEvent: self._gtid,
                QueryEvent: self._query,
                QueryCompressedEvent: self._query,
                AnnotateRowsEvent: self._annotate,
                TableMapEvent: self._table_map,
                XidEvent: self._xid,
                IntvarEvent: self._intvar,
                RandEvent: self._rand,
                UserVarEvent: self._user_var,
                IncidentEvent: self._incident,
                XaPrepareEvent: self._xa_prepare,
                BeginLoadQueryEvent: self._file_block,
                AppendBlockEvent: self._file_block,
                DeleteFileEvent: self._delete_file,
                ExecuteLoadQueryEvent: self._execute_load_query,
            }
        )

    def lines(self, event: Event, *, file: str) -> Iterator[str]:
        """One event.

        Args:
            event: The next event of the log.
            file: Name of its file, for errors.

        Raises:
            UnsupportedError: If the event changes data and has no text form here.
            CodecError: If a rows event has no TABLE_MAP, or with `verbose` if one cannot be decoded.
        """
        yield f"# at {event.position}"
        if isinstance(event.body, RowsEvent):
            yield from self._rows_event(event, event.body, file)
            return
        self._maps.feed(event, file=file)
        renderer = self._renderers.get(type(event.body))
        if renderer is None:
            yield from self._other(event, file)
            return
        yield from renderer(event, event.body)

    def _head(self, event: Event, text: str) -> str:
        header = event.header
        when = datetime.fromtimestamp(header.timestamp).astimezone()
        place = f"server id {header.server_id}  end_log_pos {event.next_position}"
        checksum = ""
        if self._format is not None and self._format.checksum_length:
            checksum = f" CRC32 0x{int.from_bytes(self._bytes(event)[-4:], 'little'):08x}"
        return f"#{when:%y%m%d} {when.hour:2}:{when:%M:%S} {place}{checksum} \t{text}"

    def _bytes(self, event: Event) -> bytes:
        return encode_event(event, self._format)

    def _format_description(self, event: Event, body: FormatDescriptionEvent) -> Iterator[str]:
        self._format = body.format
        created = ""
        if body.created:
            when = datetime.fromtimestamp(body.created).astimezone()
            created = f" created {when:%y%m%d} {when.hour:2}:{when:%M:%S} at startup"
        yield self._head(
            event, f"Start: binlog v {body.binlog_version}, server v {body.server_version}{created}"
        )
        if event.header.flags & HeaderFlag.BINLOG_IN_USE:
            yield "# Warning: this binlog is either in use or was not closed properly."
        if body.created:
            yield f"ROLLBACK{DELIMITER}"
        yield from _binlog_statement([self._bytes(event)])

    def _rotate(self, event: Event, body: RotateEvent) -> Iterator[str]:
        yield self._head(event, f"Rotate to {body.file}  pos: {body.position}")

    def _stop(self, event: Event, body: StopEvent) -> Iterator[str]:
        del body
        yield self._head(event, "Stop")

    def _checkpoint(self, event: Event, body: BinlogCheckpointEvent) -> Iterator[str]:
        yield self._head(event, f"Binlog checkpoint {body.file}")

    def _gtid_list(self, event: Event, body: GtidListEvent) -> Iterator[str]:
        yield self._head(event, "Gtid list [" + ",\n# ".join(map(str, body.gtids)) + "]")

    def _gtid(self, event: Event, body: GtidEvent) -> Iterator[str]:
        words = [word for flag, word in _GTID_WORDS if body.flags & flag]
        if body.commit_id is not None:
            words.insert(0, f"cid={body.commit_id}")
        gtid = body.gtid(event.header.server_id)
        yield self._head(event, " ".join([f"GTID {gtid}", *words]))
        yield from self._session.set_gtid(
            gtid, skips_parallel=not body.flags & GtidFlag.ALLOW_PARALLEL
        )
        if body.flags & GtidFlag.PREPARED_XA:
            yield f"XA START {body.xid}{DELIMITER}"
        elif not body.is_standalone:
            yield "START TRANSACTION"
            yield DELIMITER

    def _query(self, event: Event, body: QueryEvent) -> Iterator[str]:
        yield from self._statement_lines(event, "Query", body, body.query)

    def _execute_load_query(self, event: Event, body: ExecuteLoadQueryEvent) -> Iterator[str]:
        query = body.with_file(self._load_files.path_of(body.file_id))
        yield from self._statement_lines(event, "Execute_load_query", body.statement, query)

    def _file_block(self, event: Event, body: FileBlockEvent) -> Iterator[str]:
        is_first = isinstance(body, BeginLoadQueryEvent)
        self._load_files.write(body.file_id, body.data, is_first=is_first)
        name = "Begin_load_query" if is_first else "Append_block"
        yield self._head(event, f"{name}: file_id: {body.file_id}  block_len: {len(body.data)}")

    def _delete_file(self, event: Event, body: DeleteFileEvent) -> Iterator[str]:
        yield self._head(event, f"Delete_file: file_id={body.file_id}")

    def _xa_prepare(self, event: Event, body: XaPrepareEvent) -> Iterator[str]:
        yield self._head(event, f"XID = {body.xid}")
        yield f"XA COMMIT {body.xid} ONE PHASE" if body.one_phase else f"XA PREPARE {body.xid}"
        yield DELIMITER

    def _statement_lines(
        self, event: Event, name: str, body: QueryEvent, query: bytes
    ) -> Iterator[str]:
        yield self._head(
            event,
            f"{name}\tthread_id={body.thread_id}\texec_time={body.execution_time}"
            f"\terror_code={body.error_code}",
        )
        yield from self._session.set_query(event, body)
        yield query.decode("utf-8", "surrogateescape")
        yield DELIMITER

    def _annotate(self, event: Event, body: AnnotateRowsEvent) -> Iterator[str]:
        yield self._head(event, "Annotate_rows:")
        text = body.query.decode("utf-8", "surrogateescape")
        yield from (f"#Q> {line}" for line in text.splitlines() or [""])

    def _table_map(self, event: Event, body: TableMapEvent) -> Iterator[str]:
        self._statement.append(self._bytes(event))
        name = f"`{body.database}`.`{body.table}`"
        yield self._head(event, f"Table_map: {name} mapped to number {body.table_id}")

    def _rows_event(self, event: Event, body: RowsEvent, file: str) -> Iterator[str]:
        table_map = self._maps.feed(event, file=file)
        ends = body.ends_statement
        name = _ROWS_NAMES[event.header.type_name.split("_", 1)[0]]
        flags = " flags: STMT_END_F" if ends else ""
        yield self._head(event, f"{name}: table id {body.table_id}{flags}")
        # A BINLOG statement takes no compressed rows.
        plain = uncompressed(body)
        header = replace(event.header, type_code=plain.event_type)
        self._statement.append(self._bytes(replace(event, header=header, body=plain)))
        if self._verbose and table_map is not None and self._format is not None:
            self._comments += pseudo_sql(
                body,
                table_map,
                flavor=self._format.flavor,
                with_types=self._verbose > 1,
                place=(file, event.position),
            )
        if ends:
            yield ""
            yield from self._session.set_timestamp(event)
            yield from _binlog_statement(self._statement)
            yield from self._comments
            self._statement, self._comments = [], []

    def _xid(self, event: Event, body: XidEvent) -> Iterator[str]:
        yield self._head(event, f"Xid = {body.xid}")
        yield f"COMMIT{DELIMITER}"

    def _intvar(self, event: Event, body: IntvarEvent) -> Iterator[str]:
        yield self._head(event, "Intvar")
        yield from self._session.set_intvar(body)

    def _rand(self, event: Event, body: RandEvent) -> Iterator[str]:
        yield self._head(event, "Rand")
        yield f"SET @@RAND_SEED1={body.seed1}, @@RAND_SEED2={body.seed2}{DELIMITER}"

    def _user_var(self, event: Event, body: UserVarEvent) -> Iterator[str]:
        yield self._head(event, "User_var")
        yield self._session.set_user_var(body)

    def _incident(self, event: Event, body: IncidentEvent) -> Iterator[str]:
        text = body.message.decode("utf-8", "backslashreplace")
        yield self._head(event, f"Incident: LOST_EVENTS ({text})")
        # Not SQL on purpose: whoever replays the text must stop here.
        yield f"RELOAD DATABASE; # {text}"

    def _other(self, event: Event, file: str) -> Iterator[str]:
        flags, type_code = event.header.flags, event.header.type_code
        is_known = event.header.type_name != "UNKNOWN"
        if is_known and not flags & HeaderFlag.IGNORABLE and type_code not in _TOLD_ONLY:
            raise UnsupportedError(
                f"{event.header.type_name} has no text form in this version",
                hint="--format=json prints it; mariadb-binlog may print it as SQL",
            ).at(file, event.position)
        yield self._head(event, f"# {event.header.type_name} (type {type_code}), not read")


def _binlog_statement(events: list[bytes]) -> Iterator[str]:
    yield "BINLOG '"
    for data in events:
        yield base64.encodebytes(data).decode().removesuffix("\n")
    yield f"'{DELIMITER}"
