"""One event, field by field: the bytes of each field and their meaning; pure.

The places of fields are not written down here for any class: `recording` finds them out. A damaged
event is explained up to its fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from binlane.binlogs.cat.explain.column_lines import column_lines, metadata_parts
from binlane.binlogs.cat.explain.find import FoundEvent, table_of
from binlane.binlogs.cat.explain.meanings import meaning, status_meaning
from binlane.binlogs.cat.explain.recording import BodyDecoder, Read, Recorded, named
from binlane.binlogs.cat.explain.row_parts import RowPart, row_parts
from binlane.errors import CodecError
from binlane.log.codec.body import Body
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, EventHeader, checksum
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH, Format, knows_checksums
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.registry import BODIES, REFUSED, OpaqueEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.status_vars import decode_status_vars, encode_status_vars
from binlane.log.codec.types import EventType, Flavor
from binlane.log.grouping.inner import expanded

if TYPE_CHECKING:
    from binlane.statements.sql.logged_objects import LoggedObjects

_HEADER_FIELDS: Final = (
    ("timestamp", 0, 4),
    ("type_code", 4, 5),
    ("server_id", 5, 9),
    ("length", 9, 13),
    ("next_position", 13, 17),
    ("flags", 17, 19),
)
_INNER_MAX: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of an explanation.

    Attributes:
        name: Name of the field or column; empty if the line is about none.
        text: Meaning of the bytes, for people.
        offset: Offset of the first byte in the event; None where no bytes stand beside the line.
    """

    name: str
    text: str
    offset: int | None = None
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Lines of one part of the event."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One event explained.

    Attributes:
        file: Path of the file, as the user named it.
        position: Position of the event's first byte.
        header: The event's header; None where not even this is there.
        sections: Sections in the order of the bytes; values decoded from them come behind.
        faults: Errors in the event, for people; empty for a sound event.
    """

    file: str
    position: int
    header: EventHeader | None
    sections: tuple[Section, ...]
    faults: tuple[str, ...]


def explain(found: FoundEvent, *, catalog: LoggedObjects | None = None) -> Explanation:
    """Explain an event field by field.

    Args:
        found: The event and what was before it.
        catalog: Names columns that the log does not name.
    """
    return _Explainer(found, catalog).explanation()


class _Explainer:
    """Collects sections and faults."""

    def __init__(self, found: FoundEvent, catalog: LoggedObjects | None) -> None:
        self._found = found
        self._catalog = catalog
        self._data = found.data
        self._sections: list[Section] = []
        self._faults: list[str] = []

    def explanation(self) -> Explanation:
        header = None
        try:
            header = EventHeader.decode(self._data)
            self._header(header)
        except CodecError as error:
            self._faults.append(str(error))
        return Explanation(
            file=self._found.file,
            position=self._found.position,
            header=header,
            sections=tuple(self._sections),
            faults=tuple(self._faults),
        )

    def _header(self, header: EventHeader) -> None:
        self._add(
            "header",
            (
                Line(
                    name=name,
                    text=meaning(EventHeader, name, getattr(header, name)),
                    offset=start,
                    data=self._data[start:end],
                )
                for name, start, end in _HEADER_FIELDS
            ),
        )
        if header.length > len(self._data):
            self._faults.append(
                f"the event says {header.length} bytes, the file has {len(self._data)} of them"
            )
        elif header.length < HEADER_LENGTH:
            self._faults.append(f"the event says {header.length} bytes; its header has more")
            return
        if header.type_code in REFUSED:
            self._faults.append(REFUSED[header.type_code])
        elif header.type_code == EventType.FORMAT_DESCRIPTION:
            self._body(header, None, len(self._data))
        elif self._found.format is None:
            self._faults.append("no FORMAT_DESCRIPTION stands before it, which says how to read it")
        else:
            self._body(header, self._found.format, self._body_end(header, self._found.format))

    def _body_end(self, header: EventHeader, format_: Format) -> int:
        """Offset at which the checksum begins, or the bytes end."""
        end = header.length - format_.checksum_length
        return max(HEADER_LENGTH, min(end, len(self._data)))

    def _body(self, header: EventHeader, format_: Format | None, end: int) -> None:
        start = HEADER_LENGTH
        data = self._data
        if format_ is not None:
            start, data, end = self._plain(header, format_, end)
        decode = _decoder(header, format_)
        recorded = Recorded.of(data, start, end, decode)
        reads = named(recorded, data, start, end, decode)
        if isinstance(recorded.body, FormatDescriptionEvent):
            reads = _without_checksum(reads, recorded.body)
        owner = BODIES.get(header.type_code, OpaqueEvent)
        shift = len(self._data) - len(data)
        self._add("body", _body_lines(recorded.body, owner, reads, data, shift))
        if recorded.fault is not None:
            self._faults.append(str(recorded.fault))
            rest = data[reads[-1].end if reads else start : end]
            if rest:
                at = (reads[-1].end if reads else start) + shift
                self._add("not read", [Line(name="", text="", offset=at, data=rest)])
        elif recorded.body is not None:
            self._more(header, recorded.body, reads, format_)
        self._checksum(header, recorded.body, format_)

    def _plain(self, header: EventHeader, format_: Format, end: int) -> tuple[int, bytes, int]:
        """Return start, bytes and end of the body, without a foreign writer's additions."""
        data = self._data
        has_tail = header.type_code != EventType.ROTATE
        tail = format_.header_length - HEADER_LENGTH if has_tail else 0
        known, announced = format_.foreign_lengths.get(header.type_code, (0, 0))
        lines = []
        if announced > known:
            at = HEADER_LENGTH + tail + known
            lines.append(_unread(data, at, at + announced - known))
            data = data[:at] + data[at + announced - known :]
        if tail:
            lines.append(_unread(data, HEADER_LENGTH, HEADER_LENGTH + tail))
            data = data[:HEADER_LENGTH] + data[HEADER_LENGTH + tail :]
        self._add("of another writer", lines)
        return HEADER_LENGTH, data, end - (len(self._data) - len(data))

    def _more(
        self, header: EventHeader, body: Body, reads: list[Read], format_: Format | None
    ) -> None:
        """Explain the inside of a field, decoded in its turn."""
        starts = {read.name: read.start for read in reversed(reads)}
        try:
            if isinstance(body, FormatDescriptionEvent):
                self._add("post-header lengths", _post_header_lines(body))
            elif isinstance(body, QueryEvent):
                self._add("status variables", _status_lines(body, starts.get("status_vars")))
                if body.record is not None:
                    text = meaning(QueryEvent, "query", body.query)
                    self._add("decompressed", [Line(name="query", text=text)])
            elif isinstance(body, TableMapEvent) and format_ is not None:
                self._table_map(body, starts, format_.flavor)
            elif isinstance(body, RowsEvent) and format_ is not None:
                self._rows(body, starts, format_.flavor)
            elif isinstance(body, TransactionPayloadEvent) and format_ is not None:
                event = Event(header, body, self._found.position)
                self._add("events inside", _inner_lines(event, format_))
        except CodecError as error:
            self._faults.append(error.message)

    def _table_map(self, body: TableMapEvent, starts: dict[str, int], flavor: Flavor) -> None:
        parts = metadata_parts(body, flavor=flavor)
        at = starts.get("optional_metadata", 0)
        self._add(
            "optional metadata",
            (
                Line(name=name, text=text, offset=at + offset, data=data)
                for name, text, offset, data in parts
            ),
        )
        names = column_lines(body, flavor=flavor, catalog=self._catalog)
        self._add("columns", (Line(name=name, text=text) for name, text in names))

    def _rows(self, body: RowsEvent, starts: dict[str, int], flavor: Flavor) -> None:
        table_map = table_of(self._found, body)
        if table_map is None:
            self._faults.append("no TABLE_MAP before it tells its table, so its rows say nothing")
            return
        self._add("table", [Line(name="", text=f"{table_map.database}.{table_map.table}")])
        title: str | None = None
        lines: list[Line] = []
        try:
            for part in row_parts(body, table_map, flavor=flavor, catalog=self._catalog):
                if part.title != title:
                    self._add(title or "", lines)
                    title, lines = part.title, []
                lines.append(_row_line(part, starts.get("images")))
        finally:
            self._add(title or "", lines)

    def _checksum(self, header: EventHeader, body: Body | None, format_: Format | None) -> None:
        if isinstance(body, FormatDescriptionEvent):
            has_checksum = knows_checksums(body.server_version)
        else:
            has_checksum = format_ is not None and format_.checksum_length > 0
        if not has_checksum or header.length > len(self._data):
            return
        end = header.length - CHECKSUM_LENGTH
        data = self._data[end:]
        stored, computed = int.from_bytes(data, "little"), checksum(self._data[:end])
        verdict = "right" if stored == computed else f"WRONG: the bytes give {computed:08x}"
        if stored != computed:
            self._faults.append(f"the checksum is {stored:08x}, the bytes give {computed:08x}")
        text = f"{stored:08x}, {verdict}"
        self._add("checksum", [Line(name="crc32", text=text, offset=end, data=data)])

    def _add(self, title: str, lines: Iterator[Line] | list[Line]) -> None:
        shown = tuple(lines)
        if shown:
            self._sections.append(Section(title=title, lines=shown))


def _decoder(header: EventHeader, format_: Format | None) -> BodyDecoder:
    if header.type_code == EventType.FORMAT_DESCRIPTION:
        return FormatDescriptionEvent.decode_whole
    assert format_ is not None, "only FORMAT_DESCRIPTION needs none"
    known = format_
    body_type = BODIES.get(header.type_code, OpaqueEvent)
    return lambda reader: body_type.decode(reader, known)


def _body_lines(
    body: Body | None, owner: type, reads: list[Read], data: bytes, shift: int
) -> Iterator[Line]:
    counts = {read.name: sum(other.name == read.name for other in reads) for read in reads}
    values = {} if body is None else {field.name for field in fields(body)}  # type: ignore[arg-type]  # every body is a dataclass
    for read in reads:
        value = read.value
        if counts[read.name] == 1 and read.name in values:
            value = getattr(body, read.name)
        yield Line(
            name=read.name,
            text=meaning(owner, read.name, value),
            offset=read.start + shift,
            data=data[read.start : read.end],
        )


def _unread(data: bytes, start: int, end: int) -> Line:
    return Line(name="", text="binlane does not know it", offset=start, data=data[start:end])


def _without_checksum(reads: list[Read], body: FormatDescriptionEvent) -> list[Read]:
    """The reads of a FORMAT_DESCRIPTION, whose decoder takes everything to the end at once.

    Only the version inside tells whether an algorithm and a checksum stand there.
    """
    if body.checksum_algorithm is None:
        return reads
    *others, lengths = reads
    end = lengths.start + len(body.post_header_lengths)
    algorithm = Read(
        start=end, end=end + 1, value=body.checksum_algorithm, name="checksum_algorithm"
    )
    return [*others, replace(lengths, end=end), algorithm]


def _post_header_lines(body: FormatDescriptionEvent) -> Iterator[Line]:
    for code, length in enumerate(body.post_header_lengths, start=1):
        if length:
            name = EventType(code).name if code in tuple(EventType) else f"type {code}"
            yield Line(name=name, text=str(length))


def _status_lines(body: QueryEvent, start: int | None) -> Iterator[Line]:
    at = start
    for variable in decode_status_vars(body.status_vars):
        data = encode_status_vars([variable])
        text = status_meaning(variable.name, variable.value)
        yield Line(name=variable.name, text=text, offset=at, data=data)
        if at is not None:
            at += len(data)


def _inner_lines(event: Event, format_: Format) -> Iterator[Line]:
    inner = islice(expanded(event, format_), 1, None)
    for one in islice(inner, _INNER_MAX):
        header = one.header
        yield Line(name=str(one.inner), text=f"{header.type_name}, {header.length} bytes")
    left = sum(1 for _ in inner)
    if left:
        yield Line(name="", text=f"and {left} more")


def _row_line(part: RowPart, images: int | None) -> Line:
    offset = None if images is None or part.offset is None else images + part.offset
    return Line(name=part.name, text=part.text, offset=offset, data=part.data)
