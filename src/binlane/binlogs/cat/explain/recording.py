"""The bytes of each field of an event, found out by decoding the event; pure.

No class tells where its fields are. A recording reader notes every read of the decoder; then each
range is named by changing a byte of it and looking which field is another one now. A range that
changes several fields, or makes the event undecodable, is a length, a count or a tag: layout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from struct import Struct, calcsize
from typing import Any, Final, Self, TypeVar

from binlane.errors import CodecError
from binlane.log.codec.body import Body
from binlane.log.codec.buffer import Reader

LAYOUT: Final = "(layout)"
NUL: Final = "(end of text)"
_NAMED_MAX: Final = 256
# The lowest bit of a length is a small change; in MySQL's packed numbers it tells the length.
_BITS: Final = (0x01, 0x80)
_T = TypeVar("_T")
_COMPONENT: Final = re.compile(r"(\d*)([a-zA-Z])")

BodyDecoder = Callable[[Reader], Body]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One read of a decoder.

    Attributes:
        start: Offset of its first byte.
        end: Offset behind its last byte.
        value: The value that the decoder read.
        name: Name of the field that was read; in parentheses if it is no field; empty if nothing
            tells.
    """

    start: int
    end: int
    value: object
    name: str = ""


class RecordingReader(Reader):
    """A reader that records every read.

    Attributes:
        reads: Reads in the order of reading.
    """

    __slots__ = ("_depth", "reads")

    def __init__(self, data: bytes | memoryview, offset: int = 0, end: int | None = None) -> None:
        super().__init__(data, offset, end)
        self.reads: list[Read] = []
        self._depth = 0

    def _noted(self, read: Callable[[], _T]) -> _T:
        """Note the outermost of nested reads."""
        start = self.offset
        self._depth += 1
        try:
            value = read()
        finally:
            self._depth -= 1
        if not self._depth and self.offset > start:
            self.reads.append(Read(start=start, end=self.offset, value=value))
        return value

    def take(self, length: int) -> bytes:
        """Do as `Reader.take` does, and note the read."""
        return self._noted(lambda: super(RecordingReader, self).take(length))

    def unpack(self, layout: Struct) -> tuple[Any, ...]:
        """Do as `Reader.unpack` does, and note each field."""
        start = self.offset
        self._depth += 1
        try:
            values = super().unpack(layout)
        finally:
            self._depth -= 1
        for (first, last), value in zip(_components(layout.format), values, strict=True):
            self.reads.append(Read(start=start + first, end=start + last, value=value))
        return values

    def u8(self) -> int:
        """Do as `Reader.u8` does, and note the read."""
        return self._noted(super().u8)

    def u16(self) -> int:
        """Do as `Reader.u16` does, and note the read."""
        return self._noted(super().u16)

    def u24(self) -> int:
        """Do as `Reader.u24` does, and note the read."""
        return self._noted(super().u24)

    def u32(self) -> int:
        """Do as `Reader.u32` does, and note the read."""
        return self._noted(super().u32)

    def u48(self) -> int:
        """Do as `Reader.u48` does, and note the read."""
        return self._noted(super().u48)

    def u64(self) -> int:
        """Do as `Reader.u64` does, and note the read."""
        return self._noted(super().u64)

    def packed_int(self) -> int:
        """Do as `Reader.packed_int` does, and note the read."""
        return self._noted(super().packed_int)

    def rest(self) -> bytes:
        """Do as `Reader.rest` does, and note the read."""
        return self._noted(super().rest)


def _components(layout: str) -> list[tuple[int, int]]:
    """Give the beginning and end of each field of a `Struct` format."""
    order, places, offset = layout[:1], [], 0
    for count, code in _COMPONENT.findall(layout[1:]):
        sizes = [calcsize(f"{order}{count}{code}")]
        if code != "s":
            sizes = [calcsize(f"{order}{code}")] * int(count or 1)
        for size in sizes:
            places.append((offset, offset + size))
            offset += size
    return places


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The results of decoding a body.

    Attributes:
        body: The decoded body; None if it does not decode.
        reads: Reads of the decoder, up to the fault if there is one.
        fault: Error of the decoder; None if there is none.
    """

    body: Body | None
    reads: tuple[Read, ...]
    fault: CodecError | None = None

    @classmethod
    def of(cls, data: bytes, start: int, end: int, decode: BodyDecoder) -> Self:
        """Decode the bytes from `start` to `end`."""
        reader = RecordingReader(data, start, end)
        try:
            body = decode(reader)
            reader.finish()
        except CodecError as error:
            return cls(body=None, reads=tuple(reader.reads), fault=error)
        return cls(body=body, reads=tuple(reader.reads))


def named(recorded: Recorded, data: bytes, start: int, end: int, decode: BodyDecoder) -> list[Read]:
    """The reads of a body with their names.

    Args:
        recorded: Results of decoding the body.
        data: The bytes that hold the body.
        start: Offset of the body in the bytes.
        end: Offset behind the body in the bytes.
        decode: Function that decodes the body.
    """
    body = recorded.body
    if body is None:
        return list(recorded.reads)
    values = _values(body)
    effects = [
        _effect(data, read, start, end, decode, values) for read in recorded.reads[:_NAMED_MAX]
    ]
    sure = [next(iter(effect.changed)) if len(effect.changed) == 1 else "" for effect in effects]
    free = {name: value for name, value in values.items() if name not in sure}
    names = [
        name or _likely_name(read, effect, free)
        for name, read, effect in zip(sure, recorded.reads, effects, strict=False)
    ]
    # A series of many is of what its beginning is of.
    names += names[-1:] * (len(recorded.reads) - len(names))
    return [replace(read, name=name) for read, name in zip(recorded.reads, names, strict=True)]


@dataclass(frozen=True, slots=True)
class _Effect:
    """The effect of another first byte in a range: changed fields, or the decoding error."""

    changed: frozenset[str]
    fault: str = ""


def _values(body: Body) -> Mapping[str, object]:
    return {field.name: getattr(body, field.name) for field in fields(body)}  # type: ignore[arg-type]  # every body is a dataclass


def _effect(
    data: bytes,
    read: Read,
    start: int,
    end: int,
    decode: BodyDecoder,
    values: Mapping[str, object],
) -> _Effect:
    """Return the effect of another bit; two are tried, and the one that shows more is kept."""
    effects = []
    for bit in _BITS:
        mutant = bytearray(data)
        mutant[read.start] ^= bit
        reader = Reader(bytes(mutant), start, end)
        try:
            body = decode(reader)
            reader.finish()
        except (CodecError, UnicodeDecodeError) as error:
            effects.append(_Effect(frozenset(), str(error)))
            continue
        changed = {name for name, value in values.items() if getattr(body, name, None) != value}
        effects.append(_Effect(frozenset(changed)))
        if len(changed) == 1:
            return effects[-1]
    return effects[0]


def _likely_name(read: Read, effect: _Effect, free: Mapping[str, object]) -> str:
    """Return the only field with this value and no range; else the field that needs the range."""
    found = [
        name
        for name, value in free.items()
        if _is_same(value, read.value) and (name in effect.changed or not effect.changed)
    ]
    if len(found) == 1 and (read.value or effect.changed):
        return found[0]
    if read.value == 0 and read.end == read.start + 1 and "NUL" in effect.fault:
        return NUL
    return LAYOUT if isinstance(read.value, int) else ""


def _is_same(field: object, read: object) -> bool:
    if isinstance(field, str) and isinstance(read, bytes):
        return field.encode("utf-8", "surrogateescape") == read
    return type(field) is type(read) and field == read
