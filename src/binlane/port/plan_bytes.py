"""Plans of event groups as bytes, for the journal and between processes.

All numbers are little-endian, names UTF-8 behind a length of 16 bits. What comes again with each
statement of a shape is encoded once: the sections, the binlogs and their definitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Final

from binlane.codec.buffer import Reader
from binlane.errors import CodecError
from binlane.names import TableName
from binlane.routing.plan import (
    EncodedEvent,
    Generated,
    GroupPlan,
    Part,
    Rows,
    RowsPiece,
    Section,
    Text,
)

_U16: Final = Struct("<H")
_U32: Final = Struct("<I")
_U32_PAIR: Final = Struct("<II")
_PART: Final = Struct("<BIII")
_EVENT: Final = Struct("<BHI")
_CHANGES: Final = ("insert", "update", "delete")
_CHANGE_NUMBERS: Final = {kind: number for number, kind in enumerate(_CHANGES)}
_IS_TEXT: Final = 1
_HAS_SECTION: Final = 2
_HAS_GENERATED: Final = 4
_KEPT: Final = 1024


def encode_plans(plans: Sequence[GroupPlan]) -> bytes:
    """The plans of the groups of one statement."""
    pieces = [_U32.pack(len(plans))]
    for plan in plans:
        _add_plan(pieces, plan)
    return b"".join(pieces)


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
    sections, bases = plan.sections, plan.bases
    pieces.append(_U32_PAIR.pack(len(sections), len(bases)))
    pieces += map(_section_bytes, sections)
    pieces += [_base(name, number) for name, number in bases.items()]
    # Binlogs mostly have the same: what several have stands there once.
    distinct: list[tuple[Part, ...]] = []
    names = []
    for name, parts in plan.binlogs.items():
        try:
            number = distinct.index(parts)
        except ValueError:
            number = len(distinct)
            distinct.append(parts)
        names.append(_base(name, number))
    pieces.append(_U32_PAIR.pack(len(distinct), len(names)))
    for parts in distinct:
        pieces.append(_U32.pack(len(parts)))
        for part in parts:
            _add_part(pieces, part)
    pieces += names
    pieces.append(_U32.pack(len(plan.ends)))
    for name, end in plan.ends.items():
        pieces.append(_base(name, end is not None))
        if end is not None:
            _add_event(pieces, end)


def _add_part(pieces: list[bytes], part: Part) -> None:
    if len(part) == 1:
        pieces.append(_PART.pack(0, part.section, 0, 0))
        return
    events, section, generated, timestamp = part
    kind = _IS_TEXT if section is None else _IS_TEXT | _HAS_SECTION
    if generated is not None:
        kind |= _HAS_GENERATED
    pieces.append(_PART.pack(kind, section or 0, timestamp, len(events)))
    if generated is not None:
        pieces.append(_table_bytes(generated.table) + _U32.pack(generated.column))
    for event in events:
        _add_event(pieces, event)


def _add_event(pieces: list[bytes], event: EncodedEvent) -> None:
    type_code, body, flags = event
    pieces += (_EVENT.pack(type_code, flags, len(body)), body)


@lru_cache(_KEPT)
def _section_bytes(section: Section) -> bytes:
    pieces = [_U32.pack(len(section))]
    for tables, changes in section:
        pieces.append(_U32_PAIR.pack(len(tables), len(changes)))
        pieces += map(_table_bytes, tables)
        for kind, table in changes:
            pieces += (bytes((_CHANGE_NUMBERS[kind],)), _table_bytes(table))
    return b"".join(pieces)


@lru_cache(_KEPT)
def _base(name: str, number: int) -> bytes:
    return encode_name(name) + _U32.pack(number)


def _table_bytes(table: TableName) -> bytes:
    return encode_name(table.database) + encode_name(table.table)


def _plan(reader: Reader) -> GroupPlan:
    section_count, base_count = reader.unpack(_U32_PAIR)
    sections = tuple(_section(reader) for _ in range(section_count))
    bases = dict(_named(reader) for _ in range(base_count))
    list_count, binlog_count = reader.unpack(_U32_PAIR)
    lists = [tuple(_part(reader) for _ in range(reader.u32())) for _ in range(list_count)]
    numbers = dict(_named(reader) for _ in range(binlog_count))
    if any(number >= list_count for number in numbers.values()):
        raise CodecError(f"there are {list_count} lists of parts", offset=reader.offset)
    binlogs = {name: lists[number] for name, number in numbers.items()}
    ends = dict(_end(reader) for _ in range(reader.u32()))
    return GroupPlan(sections=sections, binlogs=binlogs, bases=bases, ends=ends)


def _named(reader: Reader) -> tuple[str, int]:
    name = decode_name(reader)
    return name, reader.u32()


def _section(reader: Reader) -> Section:
    return tuple(_piece(reader) for _ in range(reader.u32()))


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
        return Rows(section)
    generated = None
    if kind & _HAS_GENERATED:
        table = _table(reader)
        generated = Generated(table, reader.u32())
    events = tuple(_event(reader) for _ in range(event_count))
    return Text(events, section if kind & _HAS_SECTION else None, generated, timestamp)


def _event(reader: Reader) -> EncodedEvent:
    type_code, flags, length = reader.unpack(_EVENT)
    return EncodedEvent(type_code, reader.take(length), flags)


def _end(reader: Reader) -> tuple[str, EncodedEvent | None]:
    name, has_event = _named(reader)
    return name, _event(reader) if has_event else None
