"""Reading on behind damage (`--force`): the damaged event group is left out and reported.

The events of the group before the fault have been given already; the group ends there. Reading
begins anew with the next event group that is certainly one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.encryption import KeyRing
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC, Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import EventType, Flavor
from binlane.log.grouping.resync import Found, find_event
from binlane.log.grouping.walk import Walker

_GTID_TYPES: Final = frozenset(
    {
        EventType.GTID,
        EventType.GTID_LOG,
        EventType.ANONYMOUS_GTID_LOG,
        EventType.GTID_TAGGED_LOG,
    }
)
_FILE_TYPES: Final = frozenset({EventType.FORMAT_DESCRIPTION, EventType.ROTATE, EventType.STOP})
_END_TYPES: Final = frozenset(
    {EventType.XID, EventType.XA_PREPARE_LOG, EventType.TRANSACTION_PAYLOAD}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A part of a file that could not be read.

    Attributes:
        file: Path of the file, as the user named it.
        position: Position of the part's first byte.
        next_position: Position of the first byte behind the part.
        cause: Error at the part's beginning, for people.
    """

    file: str
    position: int
    next_position: int
    cause: str

    def __str__(self) -> str:
        size = self.next_position - self.position
        return f"{self.file}:{self.position}–{self.next_position} ({size} bytes): {self.cause}"  # noqa: RUF001  # a range


class ForcedWalk:
    """The events of a file, as far as they can be had."""

    def __init__(
        self,
        bytes_from: Callable[[int], Iterable[bytes]],
        *,
        file: str,
        keys: KeyRing | None,
        report: Callable[[LeftOut], None],
    ) -> None:
        """Prepare for one file.

        Args:
            bytes_from: Function that gives the file's bytes from a position on; those behind 0
                decrypted.
            file: Name of the file, as messages shall give it.
            keys: Keys for an encrypted file; None if the user gave none.
            report: Called with each part that is left out, before the first event behind it.
        """
        self._bytes_from = bytes_from
        self._file = file
        self._keys = keys
        self._report = report
        self._has_gtids = False
        # Position of the damaged group's first bad byte, and the error there.
        self._damage: tuple[int, str] | None = None
        self._after_end = False

    def events(self) -> Iterator[Event]:
        """The events that can be read, each group up to its first fault."""
        at: Found | None = Found(0)
        format_: Format | None = None
        while at is not None:
            walker = self._walker(at, format_)
            try:
                for event in walker.events():
                    self._has_gtids |= event.header.type_code in _GTID_TYPES
                    if self._is_behind_damage(event, walker.format):
                        yield event
                self._tell(walker.position)
            except CodecError as error:
                at, format_ = self._seek(error, walker, at.shift), walker.format
            else:
                return

    def fail(self, error: CodecError) -> None:
        """Take the last event given for damaged: the rest of its group is left out."""
        self._damage = (error.position or 0, error.message)
        self._after_end = False

    def _walker(self, at: Found, format_: Format | None) -> Walker:
        chunks = self._bytes_from(at.position)
        position = at.position
        if format_ is None and position:
            # The magic was wrong; what follows may be whole.
            chunks = chain([MAGIC], chunks)
            position = 0
        return Walker(
            chunks,
            file=self._file,
            position=position,
            format_=format_,
            keys=self._keys,
            shift=at.shift,
        )

    def _is_behind_damage(self, event: Event, format_: Format | None) -> bool:
        """True if an event may be given: there is no damage, or the event's group begins behind it."""
        if self._damage is None:
            return True
        begins = self._after_end or _begins_group(
            event, has_gtids=self._has_gtids or _writes_gtids(format_)
        )
        self._after_end = _ends_group(event)
        if begins:
            self._tell(event.position)
        return begins

    def _seek(self, error: CodecError, walker: Walker, shift: int) -> Found | None:
        """Find the next certain event; None if there is none."""
        position = error.position or 0
        if self._damage is None:
            self._damage = (position, error.message)
        self._after_end = False
        found = None
        if walker.format is not None:
            found = find_event(self._bytes_from, position + 1, walker.format, shift=shift)
        elif position == 0 and any(self._bytes_from(len(MAGIC))):
            found = Found(len(MAGIC))
        if found is None:
            self._tell(sum(map(len, self._bytes_from(0))))
        return found

    def _tell(self, next_position: int) -> None:
        if self._damage is not None:
            position, cause = self._damage
            self._damage = None
            self._report(
                LeftOut(
                    file=self._file, position=position, next_position=next_position, cause=cause
                )
            )


def _begins_group(event: Event, *, has_gtids: bool) -> bool:
    type_code = event.header.type_code
    if type_code in _GTID_TYPES or type_code in _FILE_TYPES:
        return True
    # If there are GTIDs, BEGIN follows one, which may have been the damaged event.
    body = event.body
    return not has_gtids and isinstance(body, QueryEvent) and body.query == b"BEGIN"


def _ends_group(event: Event) -> bool:
    body = event.body
    return event.header.type_code in _END_TYPES or (
        isinstance(body, QueryEvent) and body.query in (b"COMMIT", b"ROLLBACK")
    )


def _writes_gtids(format_: Format | None) -> bool:
    if format_ is None:
        return False
    needed = EventType.GTID if format_.flavor is Flavor.MARIADB else EventType.XA_PREPARE_LOG
    return len(format_.post_header_lengths) >= needed
