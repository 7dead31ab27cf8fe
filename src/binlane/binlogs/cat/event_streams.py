"""The files of a command line as streams of events.

Files may be compressed, encrypted, or standard input; be read from a position on; or be damaged,
and the damage passed over.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from binlane.binlogs.store.chunks import STDIN, base_name, open_chunks
from binlane.binlogs.store.log_chunks import is_plain, log_chunks
from binlane.errors import CodecError
from binlane.log.codec.event import Event
from binlane.log.codec.types import EventType, HeaderFlag
from binlane.log.grouping.walk import Walker

if TYPE_CHECKING:
    from binlane.binlogs.cat.force import ForcedWalk, LeftOut
    from binlane.log.codec.encryption import KeyRing


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One file of a stream.

    Attributes:
        name: Base name without compression suffix, as output gives it.
        path: Path as the user named it, for messages.
        events: Events that can be read of the file.
        is_first: True if a start position is in this file.
        is_last: True if a stop position is in this file.
        forced: Walk that passes over damage and tells more of it; None where damage is an error.
    """

    name: str
    path: str
    events: Iterator[Event]
    is_first: bool
    is_last: bool
    forced: ForcedWalk | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Settings by which files are read.

    Attributes:
        keys: Keys for files that are encrypted; None if the user gave none.
        start_position: Position in the first file; 0 for its beginning.
        takes_open_files: True if files are read that were not closed.
        report: Called with each part that is left out for its damage; None stops at damage.
        meter: Called with the number of bytes that were read.
    """

    keys: KeyRing | None = None
    start_position: int = 0
    takes_open_files: bool = True
    report: Callable[[LeftOut], None] | None = None
    meter: Callable[[int], None] | None = None


def log_files(paths: tuple[str, ...], reading: Reading) -> Iterator[LogFile]:
    """Yield the files in the given order; each is opened when its first event is needed."""
    for index, path in enumerate(paths):
        is_first = index == 0
        opened = _File(path, reading, start_position=reading.start_position if is_first else 0)
        with opened.stack:
            yield LogFile(
                name=base_name(path),
                path=path,
                events=opened.events(),
                is_first=is_first,
                is_last=index == len(paths) - 1,
                forced=opened.forced,
            )


class _File:
    """One file while it is being read."""

    def __init__(self, path: str, reading: Reading, *, start_position: int) -> None:
        self.stack = ExitStack()
        self.forced = self._force(path, reading) if reading.report is not None else None
        self._path = path
        self._reading = reading
        self._start_position = start_position

    def events(self) -> Iterator[Event]:
        events = self._from_start() if self.forced is None else self.forced.events()
        return events if self._reading.takes_open_files else self._closed(events)

    def _from_start(self) -> Iterator[Event]:
        """Yield all events, or only the first and those from the start position on."""
        walker = Walker(self._chunks(), file=self._path, keys=self._reading.keys)
        events = walker.events()
        head = next(events, None)
        if head is None:
            return
        yield head
        start = self._start_position
        if start > head.next_position and is_plain(self._path):
            jump = Walker(
                self._chunks(start), file=self._path, position=start, format_=walker.format
            ).events()
            first = _first_or_none(jump)
            if first is not None:
                yield first
                yield from jump
                return
        # The selection by position tells if no event starts there.
        yield from events

    def _chunks(self, position: int = 0) -> Iterator[bytes]:
        chunks = open_chunks(self._path, position=position)
        meter = self._reading.meter
        return chunks if meter is None else _metered(chunks, meter, position)

    def _closed(self, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            is_description = event.header.type_code == EventType.FORMAT_DESCRIPTION
            if is_description and event.header.flags & HeaderFlag.BINLOG_IN_USE:
                raise CodecError(
                    "the file was not closed: its server still writes it, or crashed",
                    hint="--force-if-open reads it all the same",
                ).at(self._path, event.position)
            yield event

    def _force(self, path: str, reading: Reading) -> ForcedWalk:
        from binlane.binlogs.cat.force import ForcedWalk  # noqa: PLC0415  # needs numpy

        assert reading.report is not None, "the caller asks"
        source = self._spooled() if path == STDIN else path

        def bytes_from(position: int) -> Iterator[bytes]:
            # The walk decrypts a file that it begins with.
            if not position:
                return open_chunks(source)
            return log_chunks(source, position=position, keys=reading.keys, file=path)

        return ForcedWalk(bytes_from, file=path, keys=reading.keys, report=reading.report)

    def _spooled(self) -> str:
        """Standard input as a file that can be read twice, until this one is done with."""
        import shutil  # noqa: PLC0415  # only for standard input
        import tempfile  # noqa: PLC0415

        spool = tempfile.NamedTemporaryFile(prefix="binlane-")  # noqa: SIM115  # closed by the stack
        self.stack.enter_context(spool)
        shutil.copyfileobj(sys.stdin.buffer, spool)
        spool.flush()
        return spool.name


def _first_or_none(events: Iterator[Event]) -> Event | None:
    try:
        return next(events, None)
    except CodecError:
        return None


def _metered(
    chunks: Iterable[bytes], meter: Callable[[int], None], position: int
) -> Iterator[bytes]:
    meter(position)
    for chunk in chunks:
        meter(len(chunk))
        yield chunk
