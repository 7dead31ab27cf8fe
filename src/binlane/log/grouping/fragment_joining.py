"""The pieces of a rows event that MariaDB cut up, and the whole event they make."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from binlane.errors import CodecError
from binlane.log.codec.event import Event, EventHeader, checksum, decode_event
from binlane.log.codec.format import CHECKSUM_LENGTH, EVENT_LENGTH_MAX, Format
from binlane.log.codec.registry import BODIES
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.types import ChecksumAlgorithm, EventType

if TYPE_CHECKING:
    from binlane.log.codec.fragments import PartialRowDataEvent

_HINT: Final = "an event is missing or damaged before this one"


class Fragments:
    """Joins the pieces of rows events, of one event at a time."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0
        self._count = 0
        self._size: int | None = None

    def feed(self, event: Event) -> Event:
        """Take the next event of a file.

        Returns:
            The same; the last piece has `joined`, the bytes of all of them.

        Raises:
            CodecError: If pieces are missing, out of order, or not as long as the first one says.
        """
        if event.header.type_code != EventType.PARTIAL_ROW_DATA:
            if self._pieces:
                raise CodecError(
                    f"{event.header.type_name} stands behind {len(self._pieces)} of "
                    f"{self._count} pieces of a rows event",
                    hint=_HINT,
                )
            return event
        from binlane.log.codec.fragments import PartialRowDataEvent  # noqa: PLC0415  # as the event was

        body = event.body
        assert isinstance(body, PartialRowDataEvent), "its type says so"
        self._add(body)
        if body.fragment_number < self._count:
            return event
        joined = b"".join(self._pieces)
        if self._size is not None and len(joined) != self._size:
            raise CodecError(
                f"the pieces of a rows event have {len(joined)} bytes, "
                f"the first one announces {self._size}"
            )
        self._pieces, self._length = [], 0
        whole = replace(event, joined=joined)
        object.__setattr__(whole, "raw", event.raw)
        return whole

    def _add(self, body: PartialRowDataEvent) -> None:
        number = body.fragment_number
        if not self._pieces:
            self._count, self._size = body.fragment_count, body.original_size
        if number != len(self._pieces) + 1 or body.fragment_count != self._count:
            raise CodecError(
                f"piece {number} of {body.fragment_count} of a rows event stands where "
                f"piece {len(self._pieces) + 1} is expected",
                hint=_HINT,
            )
        self._length += len(body.data)
        most = EVENT_LENGTH_MAX if self._size is None else min(self._size, EVENT_LENGTH_MAX)
        if number > self._count or self._length > most:
            raise CodecError(
                f"piece {number} of {self._count} of a rows event makes it {self._length} bytes "
                f"long; {most} are possible"
            )
        self._pieces.append(body.data)


def joined_event(event: Event, joined: bytes, format_: Format) -> Event:
    """The rows event that pieces make, as an event inside of the last one.

    Raises:
        CodecError: If it is no whole rows event.
    """
    header = EventHeader.decode(joined)
    kind = BODIES.get(header.type_code)
    if header.length != len(joined) or kind is None or not issubclass(kind, RowsEvent):
        raise CodecError(
            f"the pieces make {len(joined)} bytes of {header.type_name}, which says that it has "
            f"{header.length}; a whole rows event is expected"
        )
    end = len(joined) - CHECKSUM_LENGTH
    stored = int.from_bytes(joined[end:], "little")
    if not format_.checksum_length or stored != checksum(joined[:end]):
        format_ = replace(format_, checksum=ChecksumAlgorithm.NONE)
    made = decode_event(joined, format_, position=event.position)
    return replace(made, inner=1, carrier_length=event.header.length)
