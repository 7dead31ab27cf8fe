"""The pipeline of `cat`: files → selection → renderer → output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, TextIO

from binlane.binlogs.cat.event_selection import Selector
from binlane.binlogs.cat.event_streams import LogFile
from binlane.binlogs.cat.renderer import OpensFiles, Renderer
from binlane.cli.cat_request import CatRequest
from binlane.errors import CodecError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.types import EventType

if TYPE_CHECKING:
    from binlane.binlogs.cat.name_filter import NameFilter
    from binlane.binlogs.filters.events import EventFilter
    from binlane.binlogs.filters.filter_state import FilterState


class _Filter(Protocol):
    def feed(self, event: Event, *, file: str) -> Iterator[Event]: ...
    def finish(self) -> Iterator[Event]: ...


class Pipeline:
    """Selects and prints the events of a stream of files."""

    def __init__(
        self,
        request: CatRequest,
        print_event: Callable[[Event, str], None],
        state: FilterState | None,
        note: Callable[[str], None],
        *,
        open_file: Callable[[Event, str], None] | None = None,
    ) -> None:
        """Put the stages together.

        Args:
            request: The request of the command line.
            print_event: Takes each selected event, with the base name of its file.
            state: The filter by tables and kinds of statements; None if there is none.
            note: Told, once for each place, of what a filter leaves out beyond its plain words.
            open_file: Takes a FORMAT_DESCRIPTION at which printing stops; None if nobody does.
        """
        self._selector = Selector(request.selection)
        self._filters = tuple(_filters(request, state, note))
        self._has_stop = request.selection.has_stop
        self._note = note
        self._print = print_event
        self._open_file = open_file
        self._format: Format | None = None

    def run(self, files: Iterable[LogFile]) -> None:
        """Print everything that the request selects.

        Raises:
            CodecError: At damage that is not passed over.
        """
        for file in files:
            self._selector.begin_file(file.path, is_first=file.is_first, is_last=file.is_last)
            self._run_file(file)
            if self._selector.is_done:
                break
        self._finish()
        if self._has_stop and not self._selector.is_done:
            self._note("the log ends before the stop that was asked for")

    def _run_file(self, file: LogFile) -> None:
        for event in file.events:
            if isinstance(event.body, FormatDescriptionEvent):
                self._format = event.body.format
            try:
                if self._selector.takes(event):
                    self._feed_whole(event, file)
                elif self._open_file and isinstance(event.body, FormatDescriptionEvent):
                    self._open_file(event, file.name)
            except CodecError as error:
                located = error.at(file.path, event.position)
                located.file = file.path  # what renders events knows the base name only
                if file.forced is None:
                    raise located from None
                file.forced.fail(located)
            if self._selector.is_done:
                return
        self._selector.end_file()

    def _feed_whole(self, event: Event, file: LogFile) -> None:
        """Feed an event, and the events inside it."""
        is_carrier = event.header.type_code in (
            EventType.TRANSACTION_PAYLOAD,
            EventType.PARTIAL_ROW_DATA,
        )
        if not is_carrier or self._format is None:
            self._feed(event, file.name, self._filters)
            return
        from binlane.log.grouping.inner import expanded  # noqa: PLC0415  # few logs need it

        for inner in expanded(event, self._format, file=file.path):
            self._feed(inner, file.name, self._filters)

    def _feed(self, event: Event, file: str, filters: tuple[_Filter, ...]) -> None:
        if not filters:
            self._print(event, file)
            return
        for kept in filters[0].feed(event, file=file):
            self._feed(kept, file, filters[1:])

    def _finish(self) -> None:
        for index, each in enumerate(self._filters):
            for kept in each.finish():
                self._feed(kept, "", self._filters[index + 1 :])


def _filters(
    request: CatRequest, state: FilterState | None, note: Callable[[str], None]
) -> Iterator[NameFilter | EventFilter]:
    if request.prints_all:
        return
    if request.is_filtered_by_name:
        from binlane.binlogs.cat.name_filter import NameFilter  # noqa: PLC0415  # needs SQL

        given = request.given
        yield NameFilter(
            database=given["database"], table=given["table"], rewrites=request.rewrites
        )
    if state is not None:
        from binlane.binlogs.filters.events import EventFilter  # noqa: PLC0415  # as above
        from binlane.cli.cat_renderers import known_objects  # noqa: PLC0415  # as above

        yield EventFilter(state, note, known_objects(request))


def file_opener(renderer: Renderer, output: TextIO) -> Callable[[Event, str], None] | None:
    """Return the writer of the lines of files without printed events; None if there are none."""
    if not isinstance(renderer, OpensFiles):
        return None

    def open_file(event: Event, file: str) -> None:
        output.writelines(f"{line}\n" for line in renderer.open(event, file=file))

    return open_file


def event_printer(
    renderer: Renderer, output: TextIO, event_types: frozenset[str], *, flushes: bool
) -> Callable[[Event, str], None]:
    """Return a function that writes the lines of events.

    Args:
        renderer: Makes the lines of events.
        output: Takes the lines of events.
        event_types: Names of the types to print, empty for all: the renderer sees every event,
            since rows need their table maps and lines their GTID.
        flushes: True if somebody waits for each event.
    """

    def print_event(event: Event, file: str) -> None:
        lines = renderer.lines(event, file=file)
        if not event_types or event.header.type_name in event_types:
            output.writelines(f"{line}\n" for line in lines)
        else:
            for _ in lines:
                pass
        if flushes:
            output.flush()

    return print_event
