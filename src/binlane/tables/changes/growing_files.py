"""The events of a log's files while their server writes them, file after file.

Any source that `ranges` opens can be followed: files, stores and buckets. What a store's writer has
begun is not there yet; of other files an event is there when all of it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from binlane.binlogs.store.stored_groups import fingerprint
from binlane.errors import StoreError, TruncatedError
from binlane.log.codec.event import Event
from binlane.log.grouping.first_event import format_of
from binlane.log.grouping.walk import Walker
from binlane.positions import FilePosition
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.log_sources import Sources
from binlane.tables.ranges.storage import head_event, named
from binlane.tables.ranges.stored_files import StoredLogFile, chunks_of, open_range

FilesEvent = tuple[str, Event]
"""Base name of a file, and an event of it."""

_LOOK_S: Final = 0.2
_HEAD_WAIT_S: Final = 10.0
_RESET_HINT: Final = "the log was reset: begin anew, with --from-beginning to see all of it"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """Settings for following files.

    Attributes:
        goes_on: True to wait for more at the log's end.
        keys: Path of a key file, for encrypted files.
        note: Called with remarks for the user.
    """

    goes_on: bool
    keys: str | None
    note: Callable[[str], None]


def growing_events(
    sources: Sources, start: FilePosition, options: FollowOptions
) -> Iterator[FilesEvent]:
    """The events of a log from a place on, the FORMAT_DESCRIPTION of its file first.

    Args:
        sources: The files of one log; the list is asked for anew where the log may have grown.
        start: Place where an event group begins.
        options: Settings that say how files are followed.

    Raises:
        CodecError: If a file is damaged.
        StoreError: If a file cannot be read, or the log is not the one any more that was followed.
    """
    log = _GrowingLog(sources, options)
    file, position = log.file(start.file), start.position
    while True:
        yield from _FollowedFile(log, file, options).events(position)
        following = log.after(file.number)
        if following is None:
            return
        if following.number != file.number + 1:
            raise StoreError(
                f"files are missing behind it: the next one is {following.name}",
                path=named(file.uri),
                hint="they were purged before they were read; begin anew with --from-beginning",
            )
        file, position = following, 0


class _GrowingLog:
    """The list of a log's files, as it is now."""

    def __init__(self, sources: Sources, options: FollowOptions) -> None:
        self._sources = sources
        self.options = options

    def file(self, name: str) -> StoredLogFile:
        """Give a file with its present size.

        Raises:
            StoreError: If the log has it no more.
        """
        for file in self._sources.one_log():
            if file.name == name:
                return file
        raise StoreError("the log has this file no more", path=name, hint=_RESET_HINT)

    def after(self, number: int) -> StoredLogFile | None:
        """Give the first file behind another; None if there is none yet."""
        files = self._sources.one_log()
        return next((file for file in files if file.number > number), None)


class _FollowedFile:
    """One file while it is followed."""

    def __init__(self, log: _GrowingLog, file: StoredLogFile, options: FollowOptions) -> None:
        self._log = log
        self._file = file
        self._options = options
        self._identity = ""

    def events(self, position: int) -> Iterator[FilesEvent]:
        """Give the events from a position on, up to the end of the file."""
        head = self._head()
        if head is None:
            return
        self._identity = fingerprint(head)
        name, uri = self._file.name, self._file.uri
        yield name, head
        start = max(position, head.next_position)
        walker = Walker(
            self._chunks(start), file=named(uri), position=start, format_=format_of(head)
        )
        try:
            for event in walker.events():
                yield name, event
        except TruncatedError as error:
            # The server died while it wrote the event, and began another file.
            if not self._options.goes_on or self._log.after(self._file.number) is None:
                raise
            self._options.note(f"{error}: left out, since the log goes on in the next file")

    def _head(self) -> Event | None:
        """Wait for the first event of a file that its server is making; None if it does not come."""
        deadline = time.monotonic() + _HEAD_WAIT_S
        while True:
            try:
                return head_event(
                    self._file.uri, is_plain=self._file.is_plain, keys=self._options.keys
                )
            except TruncatedError:
                is_last = self._log.after(self._file.number) is None
                if not self._options.goes_on and is_last:
                    return None
                if not is_last and time.monotonic() > deadline:
                    raise
                time.sleep(_LOOK_S)

    def _chunks(self, position: int) -> Iterator[bytes]:
        """The file's bytes from a position on, and those that come behind them."""
        if not self._file.is_plain:
            yield from self._range(position, None)
            if self._options.goes_on and self._log.after(self._file.number) is None:
                self._options.note(
                    f"{named(self._file.uri)} is compressed or encrypted: such a file is read as "
                    "far as it is now; later files of its log are followed"
                )
            while self._options.goes_on and self._log.after(self._file.number) is None:
                time.sleep(_LOOK_S)
            return
        is_closed = False
        while True:
            size = self._size(position)
            if size > position:
                yield from self._range(position, size)
                position = size
            elif is_closed or not self._options.goes_on:
                return
            elif self._log.after(self._file.number) is not None:
                # Its last bytes may have come between the two looks.
                is_closed = True
            else:
                time.sleep(_LOOK_S)

    def _range(self, start: int, stop: int | None) -> Iterator[bytes]:
        file = self._file
        piece = LogRange(
            uri=file.uri,
            name=file.name,
            number=file.number,
            start=start,
            stop=stop,
            is_plain=file.is_plain,
            keys=self._options.keys,
        )
        with closing(open_range(piece)) as source:
            yield from chunks_of(source.reread(start))

    def _size(self, position: int) -> int:
        """The present size of the file.

        Raises:
            StoreError: If it is another file now.
        """
        size = self._log.file(self._file.name).size_bytes
        if size < position:
            raise StoreError(
                f"the file is {size} bytes long, and {position} of it were read",
                path=named(self._file.uri),
                hint=_RESET_HINT,
            )
        if size > position:
            head = head_event(self._file.uri, is_plain=True, keys=self._options.keys)
            if fingerprint(head) != self._identity:
                raise StoreError(
                    "the file was replaced", path=named(self._file.uri), hint=_RESET_HINT
                )
        return size
