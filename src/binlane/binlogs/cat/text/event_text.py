"""The common parts of the text of both dialects: an event's first line, its bytes, LOAD DATA."""

from __future__ import annotations

import base64
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from binlane.binlogs.cat.text.load_files import LoadFiles
from binlane.binlogs.cat.text.row_text import row_lines
from binlane.binlogs.cat.text.session_text import END, WrittenSettings
from binlane.binlogs.cat.text.text_options import Progress, TextOptions
from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, encode_event
from binlane.log.codec.format import CHECKSUM_LENGTH, Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.types import EventType, Flavor, HeaderFlag
from binlane.log.grouping.table_maps import TableMaps

if TYPE_CHECKING:
    from binlane.log.codec.control import IncidentEvent, RotateEvent
    from binlane.log.codec.load_data import DeleteFileEvent, ExecuteLoadQueryEvent, FileBlockEvent
    from binlane.log.codec.variables import IntvarEvent, RandEvent, UserVarEvent

_RESTORE_CHARSET: Final = (
    "/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;",
    "/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;",
    "/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;",
)


class EventText(ABC):
    """The text of a run of events, with the state that its reader has so far.

    Args:
        options: Options of the text to print.
        load_files: Files of LOAD DATA statements.
    """

    flavor: ClassVar[Flavor]

    def __init__(self, options: TextOptions, load_files: LoadFiles) -> None:
        self._options = options
        self._load_files = load_files
        self._session = self._new_session()
        self._maps = TableMaps()
        self._progress = Progress()
        self._format: Format | None = None
        self._file = ""
        # Those of both flavors; subclasses add theirs.
        self._renderers: dict[int, Callable[[Event, Any], Iterator[str]]] = {
            EventType.ROTATE: self._rotate,
            EventType.STOP: self._stop,
            EventType.INTVAR: self._intvar,
            EventType.RAND: self._rand,
            EventType.USER_VAR: self._user_var,
            EventType.INCIDENT: self._incident,
            EventType.DELETE_FILE: self._delete_file,
            **dict.fromkeys(LOAD_BLOCKS, self._file_block),
        }

    def _new_session(self) -> WrittenSettings:
        options = self._options
        return WrittenSettings(
            self.flavor,
            short_form=options.short_form,
            rewrite_databases=options.rewrite_databases,
        )

    @property
    def progress(self) -> Progress:
        """The parts that are begun and not ended."""
        return self._progress

    def resume(self, progress: Progress, tables: Iterable[Event] = ()) -> None:
        """Go on behind events that the kernel has printed.

        Args:
            progress: Parts that the other has begun and not ended.
            tables: TABLE_MAPs of the statement that the next event belongs to.
        """
        self._progress = progress
        for table in tables:
            self._maps.feed(table, file=self._file)

    @abstractmethod
    def head(self) -> Iterator[str]:
        """The lines before the first file."""

    def begin_file(self, file: str) -> Iterator[str]:
        """The lines before the first event of a file."""
        self._file = file
        yield from ()

    @abstractmethod
    def lines(self, event: Event) -> Iterator[str]:
        """One event of the current file."""

    def end_file(self) -> Iterator[str]:
        """The lines behind the last event of a file."""
        yield from ()

    @abstractmethod
    def cut(self) -> Iterator[str]:
        """Return the end of an event group that damage cut off, and forget its pending part."""

    @abstractmethod
    def finish(self) -> Iterator[str]:
        """The lines behind the last file."""

    def _settings_head(self) -> Iterator[str]:
        if self._options.disable_log_bin:
            yield "/*!32316 SET @OLD_SQL_LOG_BIN=@@SQL_LOG_BIN, SQL_LOG_BIN=0*/;"
        yield "/*!50003 SET @OLD_COMPLETION_TYPE=@@COMPLETION_TYPE,COMPLETION_TYPE=0*/;"
        if self._options.set_charset is not None:
            yield ""
            yield "/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;"
            yield "/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;"
            yield "/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;"
            yield f"/*!40101 SET NAMES {self._options.set_charset} */;"

    def _settings_tail(self) -> Iterator[str]:
        yield "/*!50003 SET COMPLETION_TYPE=@OLD_COMPLETION_TYPE*/;"
        if self._options.disable_log_bin:
            yield "/*!32316 SET SQL_LOG_BIN=@OLD_SQL_LOG_BIN*/;"
        if self._options.set_charset is not None:
            yield from _RESTORE_CHARSET
        yield "/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=0*/;"

    def _at(self, event: Event) -> Iterator[str]:
        if not self._options.short_form:
            yield f"# at {self._shown_position(event)}"

    def _shown_position(self, event: Event) -> int:
        """An event inside of a payload stands, for the official tool, at the payload's end."""
        return event.next_position if event.inner else event.position

    def _event_line(self, event: Event, text: str) -> Iterator[str]:
        """Return the line that describes an event; with `hexdump` its bytes stand inside it."""
        if self._options.short_form:
            return
        header = event.header
        checksum = dump = ""
        if self._format is not None and self._format.checksum_length:
            data = self._raw(event)
            checksum = f" CRC32 0x{int.from_bytes(data[-CHECKSUM_LENGTH:], 'little'):08x}"
        if self._options.hexdump:
            dump = "\n" + "\n".join(self._hexdump(event, self._raw(event)))
        end = event.next_position if event.inner else header.next_position
        where = f"server id {header.server_id}  end_log_pos {end}{checksum} "
        yield f"#{local_time(header.timestamp)} {where}{dump}{text}"

    @abstractmethod
    def _hexdump(self, event: Event, data: bytes) -> Iterator[str]:
        """The lines of an event's bytes."""

    def _other(self, event: Event, _: object) -> Iterator[str]:
        """An event without a text of its own."""
        header = event.header
        if header.type_name == "UNKNOWN":
            yield from self._event_line(event, "\n# Unknown event")
            return
        if not header.flags & HeaderFlag.IGNORABLE:
            log = "MariaDB" if self.flavor is Flavor.MARIADB else "MySQL"
            raise UnsupportedError(
                f"{header.type_name} has no text form in a {log} log",
                hint="--format=json prints it",
            ).at(self._file, event.position)
        name = header.type_name.capitalize()
        text = f"\tIgnorable\n# Ignorable event type {header.type_code} ({name})"
        yield from self._event_line(event, text)

    def _raw(self, event: Event) -> bytes:
        """The bytes of an event; one inside of a payload gets the checksum that it lacks there."""
        if event.raw is None or event.inner:
            return encode_event(event, self._format)
        return event.raw

    def _take_format(self, body: FormatDescriptionEvent) -> None:
        """Take the format that a FORMAT_DESCRIPTION gives to the events behind it."""
        self._format = body.format
        self._session.set_writer(body.server_version)

    def _format_description(
        self, event: Event, body: FormatDescriptionEvent, *, is_relay: bool = False
    ) -> Iterator[str]:
        self._take_format(body)
        at_startup = " at startup" if body.created else ""
        yield from self._event_line(
            event,
            f"\tStart: binlog v {body.binlog_version}, server v {one_line(body.server_version)}"
            f" created {local_time(event.header.timestamp)}{at_startup}",
        )
        if not self._options.short_form and event.header.flags & HeaderFlag.BINLOG_IN_USE:
            yield "# Warning: this binlog is either in use or was not closed properly."
        if is_relay:
            yield _OF_RELAY_LOG
            return
        if body.created and not event.header.flags & HeaderFlag.ARTIFICIAL:
            yield f"ROLLBACK{END}"
        if self._options.prints_base64:
            yield binlog_statement(base64_text(self._raw(event)))

    def _query_lines(self, event: Event, body: QueryEvent, name: str, xid: str) -> Iterator[str]:
        """The lines before a statement."""
        yield from self._event_line(
            event,
            f"\t{name}\tthread_id={body.thread_id}\texec_time={body.execution_time}"
            f"\terror_code={body.error_code}{xid}",
        )
        is_thread_told = self.flavor is Flavor.MARIADB or not self._options.require_row_format
        yield from self._session.set_query(event, body, tells_thread=is_thread_told)

    def _rotate(self, event: Event, body: RotateEvent) -> Iterator[str]:
        yield from self._event_line(
            event, f"\tRotate to {one_line(body.file)}  pos: {body.position}"
        )

    def _stop(self, event: Event, _: object) -> Iterator[str]:
        yield from self._event_line(event, "\tStop")

    def _intvar(self, event: Event, body: IntvarEvent) -> Iterator[str]:
        from binlane.log.codec.variables import IntvarKind  # noqa: PLC0415  # as the event was

        yield from self._event_line(event, "\tIntvar")
        is_last = body.kind == IntvarKind.LAST_INSERT_ID
        yield f"SET {'LAST_INSERT_ID' if is_last else 'INSERT_ID'}={body.value}{END}"

    def _rand(self, event: Event, body: RandEvent) -> Iterator[str]:
        yield from self._event_line(event, "\tRand")
        yield f"SET @@RAND_SEED1={body.seed1}, @@RAND_SEED2={body.seed2}{END}"

    def _user_var(self, event: Event, body: UserVarEvent) -> Iterator[str]:
        yield from self._event_line(event, "\tUser_var")
        yield from self._session.set_user_var(body)

    def _incident(self, event: Event, body: IncidentEvent) -> Iterator[str]:
        name = "LOST_EVENTS" if body.number == _LOST_EVENTS else str(body.number)
        yield from self._event_line(event, f"\n# Incident: {name}")
        # No SQL on purpose: whoever runs the text must stop here.
        yield "RELOAD DATABASE; # Shall generate syntax error"

    def _file_block(self, event: Event, body: FileBlockEvent) -> Iterator[str]:
        is_first = event.header.type_code == EventType.BEGIN_LOAD_QUERY
        name = "Begin_load_query" if is_first else "Append_block"
        yield from self._event_line(
            event, f"\n#{name}: file_id: {body.file_id}  block_len: {len(body.data)}"
        )
        self._load_files.write(body.file_id, body.data, is_first=is_first)

    def _delete_file(self, event: Event, body: DeleteFileEvent) -> Iterator[str]:
        yield from self._event_line(event, f"\n#Delete_file: file_id={body.file_id}")

    def _load_statement(self, body: ExecuteLoadQueryEvent) -> Iterator[str]:
        query = body.with_file(self._load_files.path_of(body.file_id))
        yield query.decode("utf-8", "surrogateescape")
        yield END
        if not self._options.short_form:
            yield f"# file_id: {body.file_id} "


def printable_rows(
    body: RowsEvent,
    table_map: TableMapEvent,
    *,
    options: TextOptions,
    flavor: Flavor,
    place: tuple[str, Event],
) -> Iterator[str]:
    """Comments for the rows of an event.

    Args:
        body: The rows event to print.
        table_map: Table map of the rows' table.
        options: Options of the text to print.
        flavor: Flavor of the file's server.
        place: File and event of the rows, for errors.

    Raises:
        CodecError: If a row cannot be decoded. Where a BINLOG statement has the rows as well,
            those of a type that cannot be told are a comment that says so.
    """
    file, event = place
    try:
        yield from row_lines(body, table_map, flavor=flavor, with_types=options.verbose > 1)
    except UnsupportedError as error:
        if not options.prints_base64:
            raise error.at(file, event.position) from None
        yield f"### {error}"
    except CodecError as error:
        raise error.at(file, event.position) from None


_LOST_EVENTS: Final = 1
_OF_RELAY_LOG: Final = "# This Format_description_event appears in a relay log and was generated by the replica thread."
UNFINISHED: Final = "# The statement does not end here: running this text leaves its rows out."
LOAD_BLOCKS: Final = (EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK)


@lru_cache(maxsize=64)
def local_time(timestamp: int) -> str:
    """`YYMMDD HH:MM:SS` in the local time zone, the hour without a leading zero."""
    when = time.localtime(timestamp)
    return time.strftime("%y%m%d ", when) + f"{when.tm_hour:2}" + time.strftime(":%M:%S", when)


def base64_text(data: bytes) -> str:
    """Base64 in lines of 76 characters."""
    return base64.encodebytes(data).decode().removesuffix("\n")


def binlog_statement(text: str) -> str:
    """A BINLOG statement of events in base64."""
    return f"BINLOG '\n{text}\n'{END}"


def one_line(text: str) -> str:
    """A name inside of a comment, which a line end in it would end."""
    return text.replace("\n", "\\n")


def indented_lines(text: bytes, prefix: str) -> str:
    """A statement as a comment, every line with a prefix."""
    return prefix + text.decode("utf-8", "surrogateescape").replace("\n", f"\n{prefix}")
