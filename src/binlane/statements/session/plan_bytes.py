"""Plans of event groups as bytes, for the journal and between processes.

All numbers are little-endian, names UTF-8 behind a length of 16 bits. Parts that come again with
each statement of a shape are encoded once: the sections, the binlogs and their definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple, overload

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.grouping.sections import RowsPiece, Section
from binlane.names import TableName
from binlane.statements.session.group_plan import (
    EncodedEvent,
    Generated,
    GroupPlan,
    Part,
    RowsPart,
    TextPart,
)
from binlane.statements.sql.servers import RowImage

_U16: Final = Struct("<H")
_U32: Final = Struct("<I")
_HEAD: Final = Struct("<IIIB")
_U32_PAIR: Final = Struct("<II")
_PART: Final = Struct("<BIII")
EVENT_HEAD: Final = Struct("<BHI")
"""The bytes before an event's body: its type code, its flags, and its length."""
_CHANGES: Final = ("insert", "update", "delete")
_CHANGE_NUMBERS: Final = {kind: number for number, kind in enumerate(_CHANGES)}
_IMAGES: Final = tuple(RowImage)
_IMAGE_NUMBERS: Final = {image: number for number, image in enumerate(_IMAGES)}
FULL_IMAGE: Final = _IMAGE_NUMBERS[RowImage.FULL]
"""The number of the whole row image in a plan."""
_IS_TEXT: Final = 1
_HAS_SECTION: Final = 2
_HAS_GENERATED: Final = 4
_HAS_TABLES: Final = 8
_USES_TEMPORARY: Final = 16
_IS_AS_SENT: Final = 32
_KEPT: Final = 1024
_KEPT_BYTES_MOST: Final = 16 << 10
"""Longer plans are not kept twice: they are decoded whenever somebody looks at them."""

# Sections by their ids, kept alive here: they come again as the same objects, and to look
# one up by its contents costs more than all the rest.
_known_sections: Final[dict[int, tuple[Section, bytes]]] = {}
# What was decoded from bytes that come again.
_read_named: Final[dict[bytes, tuple[Mapping[str, int], Mapping[str, int]]]] = {}
_read_sections: Final[dict[bytes, Section]] = {}


class EncodedPlans(Sequence[GroupPlan]):
    """The plans of the groups of one statement with their bytes, decoded once somebody looks at them.

    Attributes:
        encoded: The bytes of the plans, as `encode_plans` gives them.

    Args:
        count: Number of plans in the bytes.
    """

    __slots__ = ("_count", "_plans", "encoded")

    def __init__(self, encoded: bytes, count: int) -> None:
        self.encoded = encoded
        self._count = count
        self._plans: tuple[GroupPlan, ...] | None = None

    @classmethod
    def of(cls, plans: Sequence[GroupPlan]) -> EncodedPlans:
        """Some plans with their bytes."""
        if isinstance(plans, EncodedPlans):
            return plans
        return EncodedPlans(encode_plans(plans), len(plans))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> GroupPlan: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[GroupPlan]: ...
    def __getitem__(self, index: int | slice) -> GroupPlan | Sequence[GroupPlan]:
        plans = self._plans
        if plans is None:
            plans = self._made()
            if len(self.encoded) <= _KEPT_BYTES_MOST:
                self._plans = plans
        return plans[index]

    def _made(self) -> tuple[GroupPlan, ...]:
        return decode_plans(Reader(self.encoded))


class EncodedPlan(NamedTuple):
    """The plan of one group, decoded once somebody looks at it.

    Attributes:
        plans: The plans of all groups of its statement.
        number: Its number among them, from 0.
    """

    plans: EncodedPlans
    number: int

    @property
    def plan(self) -> GroupPlan:
        """The plan.

        Raises:
            CodecError: If the bytes are none.
        """
        return self.plans[self.number]

    def names(self, binlog: str) -> bool:
        """True if the plan names a binlog.

        Raises:
            CodecError: If the bytes are no plan.
        """
        if self.number:
            return binlog in self.plan.binlogs
        reader = Reader(self.plans.encoded)
        reader.offset = _U32.size
        return binlog in _read_names(reader)[0]


def encode_plans(plans: Sequence[GroupPlan]) -> bytes:
    """The plans of the groups of one statement."""
    if isinstance(plans, EncodedPlans):
        return plans.encoded
    pieces = [_U32.pack(len(plans))]
    for plan in plans:
        _add_plan(pieces, plan)
    return b"".join(pieces)


class EncodedPart(NamedTuple):
    """A text's part of a group without its events, at any place of the group.

    Attributes:
        kind: Bytes before the number of the text's section.
        behind: Bytes between that number and the events.
    """

    kind: bytes
    behind: bytes

    @classmethod
    def of(cls, part: TextPart) -> EncodedPart:
        """Take the events out of a part with a section."""
        pieces: list[bytes] = []
        _add_parts(pieces.append, (part,))
        head = b"".join(pieces[: -2 * len(part.events)])
        return cls(head[:1], head[1 + _U32.size :])

    def at(self, section: int) -> bytes:
        """Return the part's bytes with the number of a section."""
        return self.kind + _U32.pack(section) + self.behind


@lru_cache(_KEPT)
def rows_at(section: int) -> bytes:
    """The part of a binlog that has the rows of a section."""
    return _PART.pack(0, section, 0, 0)


def encode_section(section: Section) -> bytes:
    """The rows of a statement that the source is to log."""
    known = _known_sections.get(id(section))
    if known is not None and known[0] is section:
        return known[1]
    return _section_bytes(section)


def encode_pieces(
    names: tuple[str, ...],
    numbers: tuple[int, ...],
    bases: tuple[tuple[str, int], ...],
    sections: Sequence[bytes],
    lists: Sequence[Sequence[bytes]],
) -> EncodedPlans:
    """Put the plan of a statement's only group together, which ends as the source's and has full images.

    Args:
        names: Names of the binlogs that the plan names.
        numbers: For each of them, the number of its list of parts.
        bases: Numbers of the binlogs' definitions.
        sections: Bytes of the rows that the source is to log.
        lists: Different lists of parts, of which some have events behind them.
    """
    head = _HEAD.pack(len(sections), len(lists), 0, FULL_IMAGE)
    pieces = [_U32.pack(1), _names(names, numbers, bases), head, *sections]
    for parts in lists:
        pieces.append(_U32.pack(len(parts)))
        pieces += parts
    return EncodedPlans(b"".join(pieces), 1)


def encode_beginning(names: tuple[str, ...], bases: tuple[tuple[str, int], ...]) -> bytes:
    """Give the beginning of plans as of `encode_pieces` in which all binlogs have the same list of parts.

    Args:
        names: Names of the binlogs that a plan names.
        bases: Numbers of the binlogs' definitions.

    Returns:
        The names behind their length, as plans have them, and the number of the row image.
    """
    encoded = _names(names, (0,) * len(names), bases)
    return _U32.pack(len(encoded)) + encoded + bytes((_IMAGE_NUMBERS[RowImage.FULL],))


def decode_plans(reader: Reader) -> tuple[GroupPlan, ...]:
    """The inverse of `encode_plans`.

    Raises:
        CodecError: If the bytes are none of it.
    """
    return tuple(_plan(reader) for _ in range(reader.u32()))


def encode_name(name: str) -> bytes:
    """A name behind its length."""
    data = name.encode("utf-8", "surrogateescape")
    return _U16.pack(len(data)) + data


def decode_name(reader: Reader) -> str:
    """The inverse of `encode_name`."""
    return reader.take(reader.u16()).decode("utf-8", "surrogateescape")


def _add_plan(pieces: list[bytes], plan: GroupPlan) -> None:
    add = pieces.append
    # Binlogs mostly have the same: what several have stands there once.
    distinct: list[tuple[Part, ...]] = []
    numbers = []
    for parts in plan.binlogs.values():
        if parts not in distinct:
            distinct.append(parts)
        numbers.append(distinct.index(parts))
    add(_names(tuple(plan.binlogs), tuple(numbers), tuple(plan.bases.items())))
    sections = plan.sections
    image = _IMAGE_NUMBERS[plan.image]
    add(_HEAD.pack(len(sections), len(distinct), len(plan.ends), image))
    for section in sections:
        add(encode_section(section))
    for parts in distinct:
        add(_U32.pack(len(parts)))
        _add_parts(add, parts)
    for name, end in plan.ends.items():
        add(_named(name, end is not None))
        if end is not None:
            ((type_code, body, flags),) = end.events
            add(EVENT_HEAD.pack(type_code, flags, len(body)) + body)


def _add_parts(add: Callable[[bytes], None], parts: tuple[Part, ...]) -> None:
    for part in parts:
        if isinstance(part, RowsPart):
            add(_PART.pack(0, part[0], 0, 0))
            continue
        events, section, generated, timestamp, tables, uses_temporary, is_as_sent, *_ = part
        kind = _IS_TEXT if section is None else _IS_TEXT | _HAS_SECTION
        if generated is not None:
            kind |= _HAS_GENERATED
        if tables:
            kind |= _HAS_TABLES
        if uses_temporary:
            kind |= _USES_TEMPORARY
        if is_as_sent:
            kind |= _IS_AS_SENT
        add(_PART.pack(kind, section or 0, timestamp, len(events)))
        if generated is not None:
            add(_table_bytes(generated.table) + _U32.pack(generated.column))
        if tables:
            add(_U32.pack(len(tables)) + b"".join(map(_table_bytes, tables)))
        for type_code, body, flags in events:
            add(EVENT_HEAD.pack(type_code, flags, len(body)))
            add(body)


@lru_cache(_KEPT)
def _names(
    names: tuple[str, ...], numbers: tuple[int, ...], bases: tuple[tuple[str, int], ...]
) -> bytes:
    """Write the names of the binlogs, the numbers of their parts, and their definitions."""
    pieces = [_U32_PAIR.pack(len(names), len(bases))]
    pieces += map(_named, names, numbers)
    pieces += [_named(name, number) for name, number in bases]
    return b"".join(pieces)


def _named(name: str, number: int) -> bytes:
    return encode_name(name) + _U32.pack(number)


def _section_bytes(section: Section) -> bytes:
    pieces = [_U32.pack(len(section))]
    for tables, changes in section:
        pieces.append(_U32_PAIR.pack(len(tables), len(changes)))
        pieces += map(_table_bytes, tables)
        for kind, table in changes:
            pieces += (bytes((_CHANGE_NUMBERS[kind],)), _table_bytes(table))
    encoded = b"".join(pieces)
    if len(_known_sections) >= _KEPT:
        _known_sections.clear()
    _known_sections[id(section)] = section, encoded
    return encoded


def _table_bytes(table: TableName) -> bytes:
    return encode_name(table.database) + encode_name(table.table)


def _plan(reader: Reader) -> GroupPlan:
    numbers, bases = _read_names(reader)
    section_count, list_count, end_count, image = reader.unpack(_HEAD)
    if image >= len(_IMAGES):
        raise CodecError(f"{image} is no row image", offset=reader.offset)
    if any([number >= list_count for number in numbers.values()]):  # noqa: C419 - it is faster
        raise CodecError(f"there are {list_count} lists of parts", offset=reader.offset)
    sections = tuple([_section(reader) for _ in range(section_count)])
    lists = [tuple([_part(reader) for _ in range(reader.u32())]) for _ in range(list_count)]
    binlogs = {name: lists[number] for name, number in numbers.items()}
    ends = dict([_end(reader) for _ in range(end_count)])
    return GroupPlan(
        sections=sections, binlogs=binlogs, bases=bases, ends=ends, image=_IMAGES[image]
    )


def _read_names(reader: Reader) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the inverse of `_names`."""
    start = reader.offset
    reader.pass_strings(sum(reader.unpack(_U32_PAIR)), behind=_U32.size)
    encoded = reader.between(start, reader.offset)
    known = _read_named.get(encoded)
    if known is None:
        reader.offset = start
        name_count, base_count = reader.unpack(_U32_PAIR)
        numbers = dict(_numbered(reader) for _ in range(name_count))
        known = numbers, dict(_numbered(reader) for _ in range(base_count))
        if len(_read_named) >= _KEPT:
            _read_named.clear()
        _read_named[encoded] = known
    return known


def named_in(names: bytes) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """The numbers of lists of parts by binlog, and of definitions, by a plan's bytes of names."""
    return _read_named.get(names) or _read_names(Reader(names))


def _numbered(reader: Reader) -> tuple[str, int]:
    name = decode_name(reader)
    return name, reader.u32()


def _section(reader: Reader) -> Section:
    start = reader.offset
    for _ in range(reader.u32()):
        table_count, change_count = reader.unpack(_U32_PAIR)
        reader.pass_strings(2 * table_count)
        for _ in range(change_count):
            reader.pass_strings(1, before=1)
            reader.pass_strings(1)
    encoded = reader.between(start, reader.offset)
    known = _read_sections.get(encoded)
    if known is None:
        reader.offset = start
        known = tuple([_piece(reader) for _ in range(reader.u32())])
        if len(_read_sections) >= _KEPT:
            _read_sections.clear()
        _read_sections[encoded] = known
    return known


def _piece(reader: Reader) -> RowsPiece:
    table_count, change_count = reader.unpack(_U32_PAIR)
    tables = tuple(_table(reader) for _ in range(table_count))
    return RowsPiece(tables, tuple(_change(reader) for _ in range(change_count)))


def _change(reader: Reader) -> tuple[str, TableName]:
    number = reader.u8()
    if number >= len(_CHANGES):
        raise CodecError(f"{number} is no kind of change", offset=reader.offset)
    return _CHANGES[number], _table(reader)


def _table(reader: Reader) -> TableName:
    database = decode_name(reader)
    return TableName(database, decode_name(reader))


def _part(reader: Reader) -> Part:
    kind, section, timestamp, event_count = reader.unpack(_PART)
    if not kind & _IS_TEXT:
        return RowsPart(section)
    generated = None
    if kind & _HAS_GENERATED:
        table = _table(reader)
        generated = Generated(table, reader.u32())
    tables: tuple[TableName, ...] = ()
    if kind & _HAS_TABLES:
        tables = tuple(_table(reader) for _ in range(reader.u32()))
    events = tuple([_event(reader) for _ in range(event_count)])
    place = section if kind & _HAS_SECTION else None
    uses_temporary, is_as_sent = bool(kind & _USES_TEMPORARY), bool(kind & _IS_AS_SENT)
    # In half of the time of names.
    return TextPart(events, place, generated, timestamp, tables, uses_temporary, is_as_sent)


def _event(reader: Reader) -> EncodedEvent:
    type_code, flags, length = reader.unpack(EVENT_HEAD)
    return EncodedEvent(type_code, reader.take(length), flags)


def _end(reader: Reader) -> tuple[str, TextPart | None]:
    name, has_event = _numbered(reader)
    return name, TextPart((_event(reader),)) if has_event else None
