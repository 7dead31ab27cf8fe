"""The part of the journal that sessions write: what their statements are to make, and what replies told.

Each file begins with all that older ones tell of the present, so that these can go once no binlog
asks for their groups any more.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from binlane.binlogs.routing.plan import GroupPlan
from binlane.binlogs.routing.plan_bytes import encode_plans
from binlane.binlogs.store.disk import Disk
from binlane.binlogs.store.record_log import Place, Record, RecordLog
from binlane.errors import BinlaneError, CodecError, StoreError
from binlane.live.port import journal_records as records
from binlane.live.port.session_groups import SessionGroups, Statement, Stream

_SUFFIX: Final = "statements"
_RETRY_S: Final = 1.0
_HEAD_BYTES: Final = 1 << 20
_MACHINE_BYTES: Final = 40

logger = logging.getLogger(__name__)


class Present(NamedTuple):
    """State of all sessions, with which a file of the journal begins.

    Attributes:
        epoch: Number of the source that the journal is about; another source has another number.
        ends: Numbers, by stream, behind which no group is told of in older files.
        heads: State of each of the sessions.
        under_way: Statements that may still have groups to come, each behind its session's thread.
    """

    epoch: int
    ends: Mapping[Stream, int]
    heads: Sequence[records.SessionHead]
    under_way: Sequence[tuple[int, Statement]]


class RecordedFile(NamedTuple):
    """A file as it is found after a restart.

    Attributes:
        records: Gives the file's records in order.
        is_whole: Tells if the file has all that was written, once all records were looked at.
    """

    records: Iterator[Record]
    is_whole: Callable[[], bool]


class StatementJournal:
    """Files `*.statements`; one thread writes.

    Attributes:
        failure: Why they cannot be written; empty while they can.
    """

    def __init__(
        self,
        folder: Path,
        disk: Disk,
        file_bytes: int,
        present: Callable[[], Present],
        *,
        is_relayed: bool = False,
    ) -> None:
        """Find the files that are there.

        Args:
            folder: Folder of the journal's files.
            disk: Disk that holds the folder.
            file_bytes: Size at which a file is followed by another.
            present: Gives the state with which a file begins.
            is_relayed: Same as in `AttributionSettings`: with True, files never have all that was said.

        Raises:
            StoreError: If the folder cannot be used.
        """
        self.failure = ""
        self._log = RecordLog(folder, _SUFFIX, disk)
        self._file_bytes = file_bytes
        self._present = present
        self._machine = _LACKING if is_relayed else _MACHINE
        self._is_file_due = True
        self._is_stale = self._is_shrunk = self._is_closed = False
        self._retry_s = 0.0
        self._needs: dict[int, Mapping[Stream, int]] = {}

    def close(self) -> None:
        """Write nothing any more, and let go of the files."""
        self._is_closed = self._is_file_due = True
        self._log.close()

    # Calls of the sessions' thread.

    def write(self, kind: int, body: bytes) -> Place | None:
        """Write a record; None if that fails, which `failure` then tells."""
        log = self._log
        try:
            if self._is_file_due or log.current_bytes >= self._file_bytes:
                if self._is_closed or (self.failure and time.monotonic() < self._retry_s):
                    return None
                self._begin_file()
            return log.append(kind, body)
        except StoreError as error:
            self._fail(error)
            return None

    def _begin_file(self) -> None:
        log = self._log
        last = log.number
        log.begin_file()
        log.append(records.MACHINE, self._machine)
        is_stale, self._is_stale = self._is_stale, False
        present = self._present()
        places = []
        for thread_id, statement in present.under_way:
            body = records.open_body(
                thread_id, statement, encode_plans(self.plans_of(statement) or ())
            )
            places.append((statement, log.append(records.OPEN, body)))
        log.append(records.SESSIONS, records.sessions_body(present.epoch, present.heads))
        for statement, place in places:
            statement.place = place
        self._needs[last] = present.ends
        self._is_file_due = False
        if is_stale:
            for number in self._log.older:
                self._remove(number)
        if self.failure:
            logger.info("the port's journal can be written again")
            self.failure = ""

    def _fail(self, error: StoreError) -> None:
        if self.failure != str(error):
            logger.error(
                "the port's journal cannot be written, statements go as rows: %s%s",
                error,
                f" ({error.hint})" if error.hint else "",
            )
        self.failure = str(error)
        self._is_file_due, self._retry_s = True, time.monotonic() + _RETRY_S
        # This takes no room: the file is to say that it lacks something.
        with suppress(StoreError):
            self._log.rewrite_first(records.MACHINE, _LACKING)

    # Calls of either thread.

    def renew(self, *, is_stale: bool = False) -> None:
        """Have the next record begin a file.

        Args:
            is_stale: True if the records of older files are of another source.
        """
        self._is_file_due = True
        self._is_stale |= is_stale

    def plans_of(self, statement: Statement) -> Sequence[GroupPlan] | None:
        """The plans of a statement; None if they cannot be read any more."""
        if statement.plans is None and statement.place is not None:
            statement.plans = self.plans_at(statement.place)
        return statement.plans

    def plans_at(self, place: Place) -> tuple[GroupPlan, ...] | None:
        """The plans of a record; None if they cannot be read any more."""
        if place.file not in self._log.sizes:
            return None
        try:
            return records.read_plans(*self._log.read(place))
        except BinlaneError as error:
            logger.warning("the port's journal: %s", error)
            return None

    # Calls of the routing thread.

    def passed(self, ends: Mapping[Stream, int], held: Collection[int]) -> None:
        """Let files go of which no group is asked for any more.

        Args:
            ends: Up to where nobody asks for groups of streams.
            held: Numbers of files that tell of statements under way.
        """
        for number in self._log.older:
            needs = self._needs.get(number, {})
            if number in held or any(ends.get(stream, 0) < last for stream, last in needs.items()):
                return
            self._remove(number)

    def shrink(self, max_bytes: int) -> None:
        """Let the oldest files go until there are no more bytes, whoever may ask for their groups."""
        for number in self._log.older:
            if self._log.size_bytes <= max_bytes:
                return
            if not self._is_shrunk:
                logger.warning(
                    "the port's journal has more than %d bytes: what its oldest files tell of goes "
                    "as rows to binlogs that lack it still",
                    max_bytes,
                )
            self._is_shrunk = True
            self._remove(number)

    def _remove(self, number: int) -> None:
        try:
            self._log.remove(number)
        except StoreError as error:
            logger.warning("the port's journal: %s", error)
        else:
            self._needs.pop(number, None)

    # After a restart.

    def files(self) -> Iterator[RecordedFile]:
        """Give the files' records, from the last file on that tells all of its time.

        Raises:
            StoreError: If a file cannot be read.
        """
        first = self._note_needs()
        for number in tuple(self._log.sizes):
            if number < first:
                continue
            found = self._log.records(number)
            machine = next(found, None)
            if machine is None or machine.body[:1] != _MACHINE[:1]:
                continue
            is_of_this_run = machine.body == _MACHINE
            yield RecordedFile(
                found,
                lambda: is_of_this_run and number not in self._log.damage,  # noqa: B023
            )
        for text in self._log.damage.values():
            logger.warning("the port's journal: %s", text)

    def _note_needs(self) -> int:
        """Note of which groups older files tell; the last file that tells all of its time."""
        first, before = 0, list[int]()
        for number in tuple(self._log.sizes):
            told = self._told(number)
            if told is not None:
                # A file is followed by another once all in it is told, or is said there again.
                for older in before:
                    self._needs[older] = told
                first, before = number, []
            before.append(number)
        return first

    def _told(self, number: int) -> dict[Stream, int] | None:
        """Up to where groups were told before a file; None if it does not begin as it should."""
        for record in self._log.records(number, max_bytes=_HEAD_BYTES):
            if record.kind == records.MACHINE and record.body[:1] != _MACHINE[:1]:
                return None
            if record.kind == records.SESSIONS:
                told: dict[Stream, int] = {}
                with suppress(CodecError):
                    for head in records.read_sessions(record.body)[1]:
                        for stream, last in head.told.items():
                            told[stream] = max(last, told.get(stream, 0))
                    return told
        return None


def head_of(thread_id: int, groups: SessionGroups) -> records.SessionHead:
    """Give the state of a session with which a file begins."""
    return records.SessionHead(
        thread_id=thread_id,
        is_taken=groups.is_taken,
        has_untold=groups.has_untold,
        told=dict(groups.told),
        start=dict(groups.start),
        run=groups.run,
    )


def _machine() -> bytes:
    """The version, and an id of this run of the machine; always of the same length."""
    try:
        told = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        told = secrets.token_bytes(_MACHINE_BYTES)
    run = told.strip().ljust(_MACHINE_BYTES, b"\0")[:_MACHINE_BYTES]
    return bytes((records.VERSION,)) + run


_MACHINE: Final = _machine()
_LACKING: Final = _MACHINE[:1] + bytes(_MACHINE_BYTES)
"""Machine id of a file that may lack something."""
