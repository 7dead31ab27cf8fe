"""A source of groups without a server: its log is in memory, and its connections are pipes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from binlane.binlogs.store.byte_source import FileBytes
from binlane.live.capture.identity import SourceIdentity
from binlane.live.capture.settings import SourceSettings, Start
from binlane.live.capture.source_facts import SourceFacts
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.raw import Item, RawRun, raw_groups
from binlane.positions import FilePosition, GtidPosition, Position


class FakeServer:
    """A MariaDB whose log is that of some files, as far as `give` lets it come.

    Attributes:
        position: Everything that the log has by now.
        refusals: Errors of the next attempts to connect, in order.
        starts: Where each connection asked the log to begin.
    """

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._items: list[tuple[Item, Position]] = []
        self.description: FormatDescriptionEvent | None = None
        position: Position = GtidPosition()
        for item in _items(paths):
            position = _after(item, position)
            self._items.append((item, position))
        self._given = 0
        self._cut: Exception | None = None
        self._logs: list[FakeLog] = []
        self._lock = threading.Lock()
        self.refusals: list[Exception] = []
        self.starts: list[Start | Position] = []

    @property
    def count(self) -> int:
        """The number of runs that the log has in the end."""
        return len(self._items)

    @property
    def position(self) -> Position:
        return self._items[self._given - 1][1] if self._given else GtidPosition()

    def give(self, count: int | None = None) -> None:
        """Let further runs be logged; all that are left by default."""
        left = len(self._items) - self._given
        self._given += left if count is None else count
        self._tell()

    def cut(self, error: Exception) -> None:
        """Let all connections end."""
        self._cut = error
        self._tell()

    def _tell(self) -> None:
        with self._lock:
            for log in self._logs:
                log.wake()

    def open(
        self,
        settings: SourceSettings,
        start: Start | Position,
        /,
        *,
        spill: Path,
        server_id: int,
        identity: SourceIdentity | None,
    ) -> FakeLog:
        """Prepare a replica's connection."""
        del settings, spill, identity
        return FakeLog(self, start, server_id)

    def connect(self, log: FakeLog, start: Start | Position) -> Position:
        """Let a replica connect; where its log begins."""
        self.starts.append(start)
        if self.refusals:
            raise self.refusals.pop(0)
        with self._lock:
            self._logs.append(log)
        self._cut = None
        log.wake()
        return start if isinstance(start, GtidPosition) else self.position

    def close(self, log: FakeLog) -> None:
        with self._lock, suppress(ValueError):
            self._logs.remove(log)

    def behind(self, position: Position) -> Iterator[tuple[Item, Position]]:
        """What a replica lacks of what was logged.

        Raises:
            Exception: As `cut` says, behind all that.
        """
        for item, after in self._items[: self._given]:
            if not position.includes(after) or isinstance(item, EventGroup):
                yield item, after
        if self._cut is not None:
            raise self._cut


class FakeLog:
    """One replica's connections to a `FakeServer`."""

    silent_s = 60.0

    def __init__(self, server: FakeServer, start: Start | Position, server_id: int) -> None:
        self._server = server
        self._start = start
        self.server_id = server_id
        self.facts: SourceFacts | None = None
        self.position: Position | None = None
        self.identity: SourceIdentity | None = None
        self.file_position = FilePosition("binlog.000001", 4)
        self.format_description: FormatDescriptionEvent | None = None
        self.has_progressed = self.is_silent = False
        self._out, self._in = os.pipe()
        os.set_blocking(self._out, False)

    def connect(self) -> None:
        self.position = self._server.connect(self, self._start)

    def wake(self) -> None:
        os.write(self._in, b"\0")

    def fileno(self) -> int:
        return self._out

    def receive(self) -> Iterator[Item]:
        with suppress(BlockingIOError):
            os.read(self._out, 1 << 12)
        assert self.position is not None
        for item, after in self._server.behind(self.position):
            if isinstance(item, EventGroup):
                body = item.events[0].body
                assert isinstance(body, FormatDescriptionEvent)
                if self.format_description is not None:
                    continue
                self.format_description = body
            else:
                self.position = after
            self.has_progressed = True
            yield item

    def close(self) -> None:
        self._server.close(self)
        for end in (self._out, self._in):
            with suppress(OSError):
                os.close(end)


def _items(paths: tuple[str, ...]) -> Iterator[Item]:
    for path in paths:
        with closing(FileBytes(path, 0)) as source:
            for item in raw_groups(source, file=path, name=Path(path).name, window_bytes=512):
                if isinstance(item, RawRun):
                    yield item.kept(0)
                elif isinstance(item, EventGroup) and isinstance(
                    item.events[0].body, FormatDescriptionEvent
                ):
                    yield item


def _after(item: Item, position: Position) -> Position:
    return item.position_after(position) if isinstance(item, RawRun) else position
