"""The history of a log before a place in it: its tables, and the XA transactions that are prepared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.columnar.followed_log import FollowedLog
from binlane.tables.ranges.known_facts import KnownFacts
from binlane.tables.ranges.log_file_facts import LogFileFacts, XaPlace
from binlane.tables.ranges.stored_files import StoredLogFile

if TYPE_CHECKING:
    from binlane.binlogs.filters.filter_state import FilterState


@dataclass(slots=True)
class _Cursor:
    """State of the log at the place up to which it is followed.

    Attributes:
        fingerprint: Fingerprint of the file; empty before the first.
        number: Number of the file; 0 before the first.
        position: Position in the file, in bytes.
        log: The log at that place, with the reader's filter.
        prepared: Place of the group that prepared each transaction, by xid.
    """

    log: FollowedLog
    fingerprint: str = ""
    number: int = 0
    position: int = 0
    prepared: dict[str, tuple[StoredLogFile, LogFileFacts, XaPlace]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilterAt:
    """The state of a filter at a place, from which on its reader goes.

    Attributes:
        state: State of the filter at that place.
        number: Number of the file; 0 for the beginning of the log.
        position: Position in the file, in bytes.
    """

    state: FilterState
    number: int = 0
    position: int = 0


class LogHistory:
    """Follows a log through the facts of its files, forwards where it can.

    Args:
        facts: The known facts of the log's files.
        filter_at: The reader's filter and its place; None without a filter.
        schema: The objects that are known before the log's beginning; None if nobody knows any.
    """

    def __init__(
        self,
        facts: KnownFacts,
        filter_at: FilterAt | None = None,
        schema: LoggedObjects | None = None,
    ) -> None:
        self._facts = facts
        self._filter_at = filter_at
        self._schema = schema
        self._at = self._start()

    def _start(self) -> _Cursor:
        found = self._filter_at
        state = None if found is None else found.state.copy()
        objects = LoggedObjects() if self._schema is None else self._schema.copy()
        return _Cursor(FollowedLog(objects, state))

    @property
    def filter_state(self) -> FilterState | None:
        """State of the filter where the log is followed to; None without a filter."""
        return self._at.log.filter_state

    @property
    def catalog(self) -> LoggedObjects:
        """The tables as the log's statements tell them up to where the log is followed."""
        assert self._at.log.objects is not None, "every cursor has them"
        return self._at.log.objects

    @property
    def prepared(self) -> dict[str, tuple[StoredLogFile, LogFileFacts, XaPlace]]:
        """The XA transactions that are prepared there, each with the group that did so."""
        return self._at.prepared

    def follow(self, files: Sequence[StoredLogFile], file: StoredLogFile, position: int) -> None:
        """Follow the log up to a place.

        Args:
            files: All files of the log, in order.
            file: The file in which the place is.
            position: Where in the file a group begins, in bytes.

        Raises:
            CodecError: If a file does not begin as a binlog file.
            StoreError: If a file cannot be read.
        """
        if not self._fits(files) or (self._at.number, self._at.position) > (file.number, position):
            self._at = self._start()
        for each in files:
            if self._at.number <= each.number <= file.number:
                until = position if each.number == file.number else None
                facts = self._facts.of(each, until=until)
                start = self._at.position if each.number == self._at.number else 0
                stop = facts.end if until is None else until
                self._apply(each, facts, start, stop)
                self._at.fingerprint = facts.fingerprint
                self._at.number, self._at.position = each.number, stop

    def _fits(self, files: Sequence[StoredLogFile]) -> bool:
        """True if the log is still the one that was followed."""
        if not self._at.fingerprint:
            return True
        file = next((file for file in files if file.number == self._at.number), None)
        if file is None:
            # The followed file was purged; the facts from it still hold.
            return files[0].number > self._at.number
        return self._facts.first(file).fingerprint == self._at.fingerprint

    def _apply(self, file: StoredLogFile, facts: LogFileFacts, start: int, stop: int) -> None:
        for query in facts.queries:
            if start <= query.event.position < stop:
                self.catalog.feed(query.event)
                begin, here = self._filter_at, (file.number, query.event.position)
                if begin is not None and here >= (begin.number, begin.position):
                    self._at.log.judge(query.event, f"{file.name}:{query.event.position}")
        for place in facts.xa:
            if start <= place.start < stop:
                self._at.prepared.pop(place.xid, None)
                if place.is_prepare:
                    self._at.prepared[place.xid] = (file, facts, place)
