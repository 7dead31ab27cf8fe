"""Finding one event of a file by its position, with everything that decoding it needs; pure.

Only headers are read on the way, so that what is damaged before it does not matter unless it hides
where the event begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from binlane.errors import CodecError, ConfigError
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.format import EVENT_LENGTH_MAX, HEADER_LENGTH, MAGIC, Format
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.types import EventType

if TYPE_CHECKING:
    from binlane.statements.sql.logged_objects import LoggedObjects

_STATEMENTS: Final = frozenset({EventType.QUERY, EventType.QUERY_COMPRESSED, EventType.GTID})
_KEY: Final = "POSITION"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEvent:
    """An event as it stands in its file.

    Attributes:
        file: Path of the file, as the user named it.
        position: Position of the event's first byte.
        data: Bytes of the event: all, or as many as the file has.
        format: Format of the FORMAT_DESCRIPTION before it; None if there is none.
        table_maps: Table maps before it that may be of its statement, by table id.
    """

    file: str
    position: int
    data: bytes
    format: Format | None
    table_maps: dict[int, TableMapEvent]


def find_event(
    chunks: Iterable[bytes], position: int, *, file: str, catalog: LoggedObjects | None = None
) -> FoundEvent:
    """Find the event that begins at a position.

    Args:
        chunks: The bytes of the plain file from its beginning.
        position: Position in bytes from the start of the file.
        file: Name of the file, as messages shall give it.
        catalog: Catalog that follows the DDL before the event; None if there is none.

    Raises:
        ConfigError: If no event begins there; the hint says where those around it do.
        CodecError: If the file is no binlog, or is damaged before the position.
    """
    finder = _Finder(file, catalog)
    last = None
    for start, data, length in _events(chunks, position, file):
        if start == position:
            return finder.found(start, data)
        if length is None:
            raise CodecError(
                "the length that the event states is impossible, so no event behind it can be found",
                hint="explain this one",
            ).at(file, start)
        if position < start + length:
            name = EventHeader.decode(data).type_name
            raise ConfigError(
                f"{position} is inside of {name}, which begins at {start}",
                key=_KEY,
                hint=f"{name} begins at {start}, the next event at {start + length}",
            )
        try:
            finder.pass_by(start, data)
        except CodecError as error:
            raise error.at(file, start) from None
        last = (start, start + length)
    where = (
        f"the first one begins at {len(MAGIC)}, if there is any"
        if last is None
        else f"the last one stands from {last[0]} to {last[1]}"
    )
    raise ConfigError(
        f"no event begins at {position}: {where}",
        key=_KEY,
        hint="binlane cat FILE prints the position of each event as '# at POSITION'",
    )


class _Finder:
    """The state of the file's formats and table maps at the event that is being looked at."""

    def __init__(self, file: str, catalog: LoggedObjects | None) -> None:
        self._file = file
        self._catalog = catalog
        self._format: Format | None = None
        self._maps: dict[bytes, bytes] = {}

    def pass_by(self, position: int, data: bytes) -> None:
        """Remember the parts of an event on which later events depend."""
        type_code = data[4]
        if type_code == EventType.FORMAT_DESCRIPTION:
            self._format = decode_event(data, None, position=position).body.format  # type: ignore[attr-defined]  # by its type
        elif type_code == EventType.TABLE_MAP:
            self._maps[data[HEADER_LENGTH : HEADER_LENGTH + 6]] = data
        elif type_code in {EventType.XID, EventType.GTID, EventType.GTID_LOG}:
            self._maps.clear()
        if self._catalog is not None and type_code in _STATEMENTS:
            event = self._decoded(data)
            if event is not None:
                self._catalog.feed(event)

    def found(self, position: int, data: bytes) -> FoundEvent:
        """Return the event that was found, with the table maps known there."""
        bodies = [event.body for event in map(self._decoded, self._maps.values()) if event]
        return FoundEvent(
            file=self._file,
            position=position,
            data=data,
            format=self._format,
            table_maps={body.table_id: body for body in bodies if isinstance(body, TableMapEvent)},
        )

    def _decoded(self, data: bytes) -> Event | None:
        """Decode an event before the wanted one; damage in it does not matter."""
        try:
            return decode_event(data, self._format)
        except CodecError:
            return None


def _events(
    chunks: Iterable[bytes], position: int, file: str
) -> Iterator[tuple[int, bytes, int | None]]:
    """Start, bytes and length of each event up to a position; no length if it is impossible."""
    source = iter(chunks)
    buffer, offset, start = b"", 0, 0

    def fill(length: int) -> bool:
        nonlocal buffer, offset
        parts = [buffer[offset:]]
        available = len(parts[0])
        while available < length:
            chunk = next(source, None)
            if chunk is None:
                break
            parts.append(chunk)
            available += len(chunk)
        buffer, offset = b"".join(parts), 0
        return available >= length

    fill(len(MAGIC))
    if buffer[: len(MAGIC)] != MAGIC:
        raise CodecError(
            "this is no binlog file: its first four bytes are not those of one",
            hint="name a binlog file",
        ).at(file, 0)
    offset = start = len(MAGIC)
    while start <= position:
        if len(buffer) - offset < HEADER_LENGTH and not fill(HEADER_LENGTH):
            if len(buffer) > offset:
                yield start, buffer[offset:], None
            return
        length = int.from_bytes(buffer[offset + 9 : offset + 13], "little")
        if not HEADER_LENGTH <= length <= EVENT_LENGTH_MAX:
            yield start, buffer[offset : offset + HEADER_LENGTH], None
            return
        is_whole = len(buffer) - offset >= length or fill(length)
        yield start, buffer[offset : offset + length], length
        if not is_whole:
            return
        offset += length
        start += length


def table_of(found: FoundEvent, body: RowsEvent) -> TableMapEvent | None:
    """The table that a rows event changes; None if its TABLE_MAP is not there."""
    return found.table_maps.get(body.table_id)
