"""Events → the text that mariadb-binlog or mysqlbinlog prints, whose flavor the file is of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from binlane.binlogs.cat.text.event_text import EventText
from binlane.binlogs.cat.text.load_files import LoadFiles
from binlane.binlogs.cat.text.text_options import Progress, TextOptions
from binlane.errors import CodecError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.types import Flavor


def _renamed(statement: QueryEvent, names: Mapping[str, str]) -> QueryEvent:
    """A statement with another name of its default database, where that has one."""
    database = names.get(statement.database.decode("utf-8", "surrogateescape"))
    if database is None:
        return statement
    return replace(statement, database=database.encode("utf-8", "surrogateescape"))


def _dialect(flavor: Flavor) -> type[EventText]:
    """Return the text module of a flavor; the other one is not imported."""
    if flavor is Flavor.MYSQL:
        from binlane.binlogs.cat.text.mysql import MysqlText  # noqa: PLC0415  # see above

        return MysqlText
    from binlane.binlogs.cat.text.mariadb import MariadbText  # noqa: PLC0415  # see above

    return MariadbText


class TextLines:
    """Renders the events of one or more files, in order.

    Args:
        options: Options of the text; the official tools' defaults by default.
    """

    def __init__(self, options: TextOptions | None = None) -> None:
        self._options = TextOptions() if options is None else options
        self._load_files = LoadFiles(self._options.load_directory)
        self._text: EventText | None = None
        self._file: str | None = None
        self._held: list[tuple[Event, str]] = []

    def head(self) -> Iterable[str]:
        """Return nothing: the first lines depend on the flavor, which the first file shows."""
        return ()

    def lines(self, event: Event, *, file: str) -> Iterator[str]:
        """One event, in one or more lines; a text may hold several of them.

        Args:
            event: The next event of the log; inner events follow their carrier.
            file: Name of the file that holds it.

        Raises:
            UnsupportedError: If the event changes data and has no text form.
            CodecError: If a rows event has no TABLE_MAP, or with `verbose` if one cannot be decoded.
        """
        if isinstance(event.body, FormatDescriptionEvent):
            yield from self._use_dialect_of(event.body)
        if self._text is None:
            # A server sends a ROTATE before it says what it is.
            self._held.append((event, file))
            return
        held, self._held = self._held, []
        for earlier, its_file in (*held, (event, file)):
            yield from self._begin(self._text, its_file)
            try:
                yield from self._text.lines(self._rewritten(earlier))
            except CodecError as error:
                raise error.at(its_file, earlier.position) from None

    def open(self, event: Event, *, file: str) -> Iterator[str]:
        """The lines before the first event of a file whose FORMAT_DESCRIPTION is not printed."""
        assert isinstance(event.body, FormatDescriptionEvent), "a file begins with it"
        yield from self._use_dialect_of(event.body)
        assert self._text is not None, "set just now"
        yield from self._begin(self._text, file)

    @property
    def progress(self) -> Progress:
        """The open parts of the text; none before a FORMAT_DESCRIPTION."""
        return Progress() if self._text is None else self._text.progress

    def resume(self, progress: Progress, tables: Iterable[Event] = ()) -> None:
        """Go on behind events that the kernel has printed; see `EventText.resume`."""
        if self._text is not None:
            self._text.resume(progress, tables)

    def cut(self) -> Iterator[str]:
        """The end of an event group that damage cut off."""
        if self._text is not None:
            yield from self._text.cut()

    def finish(self) -> Iterator[str]:
        """End the open parts, and give the client its settings back."""
        if self._text is None:
            yield from self._use(_dialect(self._options.flavor or Flavor.MARIADB))
        assert self._text is not None, "set just now"
        if self._file is not None:
            yield from self._text.end_file()
        yield from self._text.finish()

    def _use_dialect_of(self, body: FormatDescriptionEvent) -> Iterator[str]:
        yield from self._use(_dialect(self._options.flavor or body.format.flavor))

    def _use(self, dialect: type[EventText]) -> Iterator[str]:
        if isinstance(self._text, dialect):
            return
        if self._text is not None:
            yield from self.finish()
        self._text, self._file = dialect(self._options, self._load_files), None
        yield from self._text.head()

    def _rewritten(self, event: Event) -> Event:
        """The event with the database that the options give its table or, in MySQL, its statement.

        A MariaDB statement keeps its own; there the text says `use` by itself.
        """
        names, body = self._options.rewrite_databases, event.body
        if not names:
            return event
        if isinstance(body, TableMapEvent) and body.database in names:
            return replace(event, body=replace(body, database=names[body.database]))
        if self._text is None or self._text.flavor is not Flavor.MYSQL:
            return event
        # Few ask for other names, and a small log takes longer to import for than to print.
        from binlane.log.codec.load_data import ExecuteLoadQueryEvent  # noqa: PLC0415

        if isinstance(body, QueryEvent):
            return replace(event, body=_renamed(body, names))
        if isinstance(body, ExecuteLoadQueryEvent):
            return replace(event, body=replace(body, statement=_renamed(body.statement, names)))
        return event

    def _begin(self, text: EventText, file: str) -> Iterator[str]:
        if file == self._file:
            return
        if self._file is not None:
            yield from text.end_file()
        self._file = file
        yield from text.begin_file(file)
