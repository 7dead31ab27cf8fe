"""The part of the journal that sessions write: what their statements are to make, and what replies told.

Each file begins with all that older ones tell of the present, so that these can go once no binlog
asks for their groups any more.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from binlane.binlogs.store.disk import Disk
from binlane.errors import BinlaneError, CodecError, StoreError
from binlane.live.port.group_numbers import Stream
from binlane.live.port.journal import journal_records as records
from binlane.live.port.journal.record_log import JournalRecord, RecordLog, RecordPlace
from binlane.live.port.session_groups import SentStatement
from binlane.log.kernels.found_layout import MESSAGE_FIELDS
from binlane.statements.session.plan_bytes import EncodedPlans

_SUFFIX: Final = "statements"
_RETRY_S: Final = 1.0
_HEAD_BYTES: Final = 1 << 20
_MACHINE_BYTES: Final = 40

logger = logging.getLogger(__name__)


class Present(NamedTuple):
    """State of all sessions, with which a file of the journal begins.

    Attributes:
        sessions: Body of a SESSIONS record.
        ends: Numbers, by stream, behind which no group is told of in older files.
        under_way: Statements that may still have groups to come, each behind its session's thread.
    """

    sessions: bytes
    ends: Mapping[Stream, int]
    under_way: Sequence[tuple[int, SentStatement]]


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
        self._log = RecordLog(folder, _SUFFIX, file_bytes, disk)
        self._present = present
        self._machine = _LACKING if is_relayed else _MACHINE
        self._is_shrunk = self._is_closed = False
        self._retry_s = 0.0
        self._needs: dict[int, Mapping[Stream, int]] = {}

    def close(self) -> None:
        """Write nothing any more, and let go of the files."""
        self._is_closed = True
        self._log.renew()
        self._log.close()

    # Calls of the sessions' thread.

    def write(self, kind: int, body: bytes) -> RecordPlace | None:
        """Write a record; None if that fails, which `failure` then tells."""
        try:
            return self._log.append(kind, body) if self._is_begun() else None
        except StoreError as error:
            self._fail(error)
            return None

    def _is_begun(self) -> bool:
        """Have a file with room for records, if that is possible now.

        Raises:
            StoreError: If it is not.
        """
        log = self._log
        if log.current_bytes >= log.due_bytes:
            if self._is_closed or (self.failure and time.monotonic() < self._retry_s):
                return False
            self._begin_file()
        return True

    def write_messages(
        self, said: tuple[Any, int, Any], older: Sequence[int], most: int
    ) -> tuple[Any, int, int]:
        """Write messages of the most usual kinds, one after another, by a kernel.

        Args:
            said: Messages of another process, as an array that is changed, the place of the first one, and the
                UUIDs of the sources that are known; none for MariaDB.
            older: Threads of sessions with groups of older statements, as of `HAS_OLDER`.
            most: The number of messages that are written at most.

        Returns:
            An array of the `MESSAGE_FIELDS` numbers of each message that was written, the number of the file, and
            the file's offset to which their places are to be added. None are written where `write` has to go on.
        """
        import numpy as np  # noqa: PLC0415 - only kernels need it

        found = np.empty((most, MESSAGE_FIELDS), np.int64)
        threads, count, offset = np.array(older, np.int64), 0, 0
        try:
            if self._is_begun():
                written = found.reshape(-1)
                count, offset = self._log.append_messages(said, threads, written)
        except StoreError as error:
            self._fail(error)
        return found[:count].copy(), self._log.number, offset

    def _begin_file(self) -> None:
        log = self._log
        last = log.number
        log.begin_file()
        log.append(records.MACHINE, self._machine)
        present = self._present()
        places = []
        for thread_id, statement in present.under_way:
            plans = self.plans_of(statement) or EncodedPlans.of(())
            body = records.open_body(thread_id, statement, plans.encoded)
            places.append((statement, log.append(records.OPEN, body)))
        log.append(records.SESSIONS, present.sessions)
        # Much is under way where reading is far behind, and is said again in each file.
        log.begin_body()
        for statement, place in places:
            statement.place = place
        self._needs[last] = present.ends
        log.drop_stale()
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
        self.failure, self._retry_s = str(error), time.monotonic() + _RETRY_S
        self._log.renew()
        # This takes no room: the file is to say that it lacks something.
        with suppress(StoreError):
            self._log.rewrite_first(records.MACHINE, _LACKING)

    # Calls of either thread.

    def renew(self, *, is_stale: bool = False) -> None:
        """Have the next record begin a file.

        Args:
            is_stale: True if the records of older files are of another source.
        """
        self._log.renew(is_stale=is_stale)

    def plans_of(self, statement: SentStatement) -> EncodedPlans | None:
        """The plans of a statement; None if they cannot be read any more."""
        if statement.plans is None and statement.place is not None:
            statement.plans = self.plans_at(statement.place)
        return statement.plans

    def plans_at(self, place: RecordPlace) -> EncodedPlans | None:
        """The plans of a record; None if they cannot be read any more."""
        if place.file not in self._log.sizes:
            return None
        try:
            return records.read_statement(self._log.read(place)[1]).plans()
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
        if self._log.remove(number):
            self._needs.pop(number, None)

    # After a restart.

    def replay(self, take: Callable[[Iterable[JournalRecord]], None]) -> Iterator[bool]:
        """Replay the files' records, from the last file on that tells all of its time.

        Args:
            take: Takes in the records of a file; raises `CodecError` where they are none.

        Yields:
            For each file, once it was taken in: True if the file has all that was written.

        Raises:
            StoreError: If a file cannot be read.
        """
        log, first = self._log, self._note_needs()
        for number in tuple(log.sizes):
            if number < first:
                continue
            found = log.records(number)
            machine = next(found, None)
            if machine is None or machine.body[:1] != _MACHINE[:1]:
                continue
            is_whole = machine.body == _MACHINE
            try:
                take(found)
            except CodecError as error:
                logger.warning("the port's journal: %s", error)
                is_whole = False
            yield is_whole and number not in log.damage
        for text in log.damage.values():
            logger.warning("the port's journal: %s", text)

    def _note_needs(self) -> int:
        """Note of which groups older files tell; the last file that tells all of its time."""
        first, before = 0, list[int]()
        for number in tuple(self._log.sizes):
            ends = self._ends_before(number)
            if ends is not None:
                # A file is followed by another once all in it is told, or is said there again.
                for older in before:
                    self._needs[older] = ends
                first, before = number, []
            before.append(number)
        return first

    def _ends_before(self, number: int) -> Mapping[Stream, int] | None:
        """Up to where older files tell of groups; None if a file does not begin as it should."""
        for record in self._log.records(number, max_bytes=_HEAD_BYTES):
            if record.kind == records.MACHINE and record.body[:1] != _MACHINE[:1]:
                return None
            if record.kind == records.SESSIONS:
                with suppress(CodecError):
                    return records.read_sessions(record.body)[1]
                return {}
        return None


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
