"""A binlog file as a stream of bytes → its events, each with its position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from binlane.errors import CodecError, TruncatedError, UnsupportedError
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.format import EVENT_LENGTH_MAX, HEADER_LENGTH, MAGIC, MAGIC_INNODB, Format
from binlane.log.codec.types import HeaderFlag
from binlane.log.grouping.decryption import plain_chunks
from binlane.log.grouping.flavors import check_flavor
from binlane.log.grouping.fragment_joining import Fragments
from binlane.log.grouping.pieces import Pieces

if TYPE_CHECKING:
    from binlane.log.codec.encryption import KeyRing

_POSITION_MASK: Final = (1 << 32) - 1


class Walker:
    """Cuts a file into events and decodes them.

    Attributes:
        position: The start of the next event, in bytes from the start of the file.
        format: The format of the last FORMAT_DESCRIPTION, None before the first.
    """

    def __init__(
        self,
        chunks: Iterable[bytes],
        *,
        file: str,
        position: int = 0,
        format_: Format | None = None,
        keys: KeyRing | None = None,
        shift: int = 0,
    ) -> None:
        """Start at the beginning of a file, or at an event inside it.

        Args:
            chunks: The bytes from `position` on, in pieces of any size.
            file: The file's name, as messages shall give it.
            position: The start of an event, when `format_` is given.
            format_: The format of the FORMAT_DESCRIPTION before `position`.
            keys: The keys of an encrypted file, which can be read from its beginning only.
            shift: The distance by which headers are ahead of the file behind damage, in bytes.
        """
        if format_ is None:
            chunks = plain_chunks(chunks, file=file, keys=keys)
        self._pieces = Pieces(chunks)
        self._file = file
        self._fragments = Fragments()
        self._is_relay_log = False
        self.position = position
        self.format = format_
        self._shift = shift

    def events(self) -> Iterator[Event]:
        """All events in file order.

        Raises:
            CodecError: With file and position of the first byte of the faulty event.
        """
        if self.format is None:
            self._magic()
        while (available := self._pieces.fill(HEADER_LENGTH)) >= HEADER_LENGTH:
            try:
                event = self._next_event()
            except CodecError as error:
                raise error.at(self._file, self.position) from None
            yield event
            self.position = event.next_position
        if available:
            raise TruncatedError(
                f"{available} bytes stand after the last event; "
                f"an event header needs {HEADER_LENGTH}",
                hint="the file was cut, or its server still writes it",
            ).at(self._file, self.position)

    def _magic(self) -> None:
        magic = self._pieces.take(len(MAGIC))
        if magic == MAGIC_INNODB or self._file.endswith(".ibb"):
            raise UnsupportedError(
                "the file is a binlog inside of InnoDB (MariaDB 12.3), which is no file of events",
                hint="read it from its server, which gives it out as events",
            ).at(self._file, 0)
        if magic != MAGIC:
            raise CodecError(
                f"no binlog file: it begins with {magic.hex(' ') or 'nothing'}, "
                f"{MAGIC.hex(' ')} is expected",
                hint="name a binlog file, not its index or a relay log's info file",
            ).at(self._file, 0)
        self.position = len(MAGIC)

    def _next_event(self) -> Event:
        header = EventHeader.decode(self._pieces.peek(HEADER_LENGTH))
        if not HEADER_LENGTH <= header.length <= EVENT_LENGTH_MAX:
            raise CodecError(
                f"{header.type_name} says it is {header.length} bytes long; "
                f"{HEADER_LENGTH} to {EVENT_LENGTH_MAX} are possible",
                hint="the file is damaged here: fetch it again from its source",
            )
        data = self._pieces.take(header.length)
        if len(data) < header.length:
            raise TruncatedError(
                f"the file ends inside {header.type_name}: {header.length} bytes are announced, "
                f"{len(data)} are there",
                hint="the file was cut, or its server still writes it",
            )
        event = decode_event(data, self.format, position=self.position)
        check_flavor(header.type_code, self.format)
        self._is_relay_log |= _begins_relay_log(event)
        if not self._is_relay_log:
            _check_position(event, self._shift)
        if isinstance(event.body, FormatDescriptionEvent):
            self.format = event.body.format
        return self._fragments.feed(event)


def walk(chunks: Iterable[bytes], *, file: str, keys: KeyRing | None = None) -> Iterator[Event]:
    """The events of one binlog file.

    Args:
        chunks: The file's bytes in pieces of any size.
        file: The file's name, as messages shall give it.
        keys: The keys of files that a server encrypted; None if the user gave none.

    Raises:
        CodecError: At the first fault, after all events before it were given.
        UnsupportedError: Where an encrypted part begins whose key is not among `keys`.
    """
    return Walker(chunks, file=file, keys=keys).events()


def _begins_relay_log(event: Event) -> bool:
    """True if the events that follow were copied from another log, whose positions their headers keep.

    Relay logs say so in their FORMAT_DESCRIPTION since MySQL 5.6; in all of them the source's ROTATE,
    which stands in no file of its own, comes before the source's events.
    """
    if isinstance(event.body, RotateEvent):
        return event.header.next_position == 0
    return bool(event.header.flags & HeaderFlag.RELAY_LOG)


def _check_position(event: Event, shift: int) -> None:
    """A header's position is right, or 0, or, in artificial events, anything."""
    header = event.header
    if header.next_position == 0 or header.flags & HeaderFlag.ARTIFICIAL:
        return
    if header.next_position != (event.next_position + shift) & _POSITION_MASK:
        raise CodecError(
            f"{header.type_name} says it ends at {header.next_position}, "
            f"it ends at {event.next_position}",
            hint="the file is damaged or was put together from others",
        )
