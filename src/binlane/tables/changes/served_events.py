"""The events of a running server's log as they come, through restarts of the server."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Final

from binlane.client.account import account_at
from binlane.client.passing_errors import is_passing
from binlane.client.remote import read_remote
from binlane.client.remote_machine import RemoteEvent, RemoteRequest
from binlane.errors import PeerError
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC
from binlane.log.grouping.event_group import GroupTracker
from binlane.positions import FilePosition
from binlane.tables.ranges.served_logs import ServerPlace

_RETRY_S: Final = 1.0
_SERVER_ID_BASE: Final = 0x62000000
_SERVER_ID_RANDOM: Final = 1 << 24


class ServedLog:
    """A server's log that is followed by a dump that waits for more.

    A lost connection is begun anew at the group that was being read; of that group no event is
    given twice.

    Args:
        place: The server whose log is read.
        note: Called with remarks for the user.
        goes_on: True to wait for more at the log's end.
    """

    def __init__(
        self, place: ServerPlace, note: Callable[[str], None], *, goes_on: bool = True
    ) -> None:
        self._place = place
        self._note = note
        self._goes_on = goes_on
        self._server_id = 0
        if goes_on:
            self._server_id = _SERVER_ID_BASE + secrets.randbelow(_SERVER_ID_RANDOM)
        self._tracker = GroupTracker()
        self._last: FilePosition | None = None
        self._is_lost = False

    def events(self, start: FilePosition) -> Iterator[tuple[str, Event]]:
        """The events of the log from a place on.

        Args:
            start: Place where an event group begins.

        Raises:
            PeerError: If the server refuses something; unless more is waited for, also if it cannot
                be reached.
            CodecError: If an event is damaged.
        """
        while True:
            try:
                for remote in self._new_events(start):
                    if self._tracker.feed(remote.event).begins:
                        start = FilePosition(remote.file, remote.event.position)
                    self._last = FilePosition(remote.file, remote.event.position)
                    yield remote.file, remote.event
            except PeerError as error:
                if not (self._goes_on and is_passing(error)):
                    raise
                self._lose(str(error))
            else:
                if not self._goes_on:
                    return
                # MySQL ends dumps so when it is shut down.
                self._lose(f"the server ended the dump ({self._place.url})")

    def _lose(self, why: str) -> None:
        """Tell once that the server is gone, and wait a moment."""
        if not self._is_lost:
            self._note(f"{why}; trying again until it is back")
        self._is_lost = True
        time.sleep(_RETRY_S)

    def _new_events(self, start: FilePosition) -> Iterator[RemoteEvent]:
        """The events from a place on that were not given before."""
        with closing(self._dump(start)) as events:
            for remote in events:
                self._tell_back()
                if self._is_new(remote):
                    yield remote

    def _dump(self, start: FilePosition) -> Generator[RemoteEvent, None, None]:
        request = RemoteRequest(
            account=account_at(self._place.url, self._place.password()),
            file=start.file,
            position=max(start.position, len(MAGIC)),
            server_id=self._server_id,
            waits=self._goes_on,
        )
        return read_remote(self._place.url, request)

    def _tell_back(self) -> None:
        if self._is_lost:
            self._note("the server is back; going on where its log was left")
        self._is_lost = False

    def _is_new(self, remote: RemoteEvent) -> bool:
        last = self._last
        return last is None or remote.file != last.file or remote.event.position > last.position
