"""The one place that checks bounds: a cursor over bytes, and the writer of packed integers."""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from binlane.errors import CodecError, TruncatedError

_U16: Final = Struct("<H")
_U32: Final = Struct("<I")
_U64: Final = Struct("<Q")


class Reader:
    """A cursor over a buffer, little-endian unless a method says otherwise.

    Attributes:
        offset: The start of the next read, in bytes from the start of the buffer.
    """

    __slots__ = ("_data", "_end", "offset")

    def __init__(self, data: bytes | memoryview, offset: int = 0, end: int | None = None) -> None:
        self._data = memoryview(data)
        self._end = len(self._data) if end is None else end
        self.offset = offset

    @property
    def remaining(self) -> int:
        """The number of bytes behind the cursor."""
        return self._end - self.offset

    def _advance(self, length: int) -> int:
        start = self.offset
        if length < 0 or length > self._end - start:
            raise TruncatedError(
                f"{length} bytes expected at offset {start}, {self._end - start} left", offset=start
            )
        self.offset = start + length
        return start

    def take(self, length: int) -> bytes:
        """The next `length` bytes.

        Raises:
            TruncatedError: If fewer are left.
        """
        start = self._advance(length)
        return bytes(self._data[start : start + length])

    def unpack(self, layout: Struct) -> tuple[Any, ...]:
        """The fields of one `Struct`."""
        return layout.unpack_from(self._data, self._advance(layout.size))

    def pass_strings(self, count: int, *, before: int = 0, behind: int = 0) -> None:
        """Go past strings that stand behind lengths of 16 bits.

        Args:
            count: Number of strings to go past.
            before: Bytes that stand before each length.
            behind: Bytes that stand behind each string.

        Raises:
            TruncatedError: If they end behind the buffer.
        """
        data, at, around = self._data, self.offset, before + behind + 2
        try:
            for _ in range(count):
                low = at + before
                at += around + data[low] + (data[low + 1] << 8)
        except IndexError:
            at = len(data) + 1
        self._advance(at - self.offset)

    def u8(self) -> int:
        """One byte."""
        return self._data[self._advance(1)]

    def u16(self) -> int:
        """Two bytes."""
        return int(_U16.unpack_from(self._data, self._advance(2))[0])

    def u24(self) -> int:
        """Three bytes."""
        return int.from_bytes(self.take(3), "little")

    def u32(self) -> int:
        """Four bytes."""
        return int(_U32.unpack_from(self._data, self._advance(4))[0])

    def u48(self) -> int:
        """Six bytes."""
        return int.from_bytes(self.take(6), "little")

    def u64(self) -> int:
        """Eight bytes."""
        return int(_U64.unpack_from(self._data, self._advance(8))[0])

    def packed_int(self) -> int:
        """A length-encoded integer: 1, 3, 4 or 9 bytes.

        Raises:
            CodecError: If the first byte is 0xFB (NULL) or 0xFF, which stand for no number.
        """
        start = self.offset
        first = self.u8()
        if first < 0xFB:
            return first
        if first == 0xFC:
            return self.u16()
        if first == 0xFD:
            return self.u24()
        if first == 0xFE:
            return self.u64()
        raise CodecError(f"0x{first:02X} starts no length-encoded integer", offset=start)

    def between(self, start: int, end: int) -> bytes:
        """Bytes that were read already, from one offset to another."""
        return bytes(self._data[start:end])

    def rest(self) -> bytes:
        """All bytes that are left."""
        return self.take(self.remaining)

    def finish(self) -> None:
        """Assert that no bytes are left.

        Raises:
            CodecError: If bytes are left over.
        """
        if self.remaining:
            raise CodecError(f"{self.remaining} bytes left over", offset=self.offset)


def encode_packed_int(value: int) -> bytes:
    """The shortest length-encoded form of an integer from 0 to 2^64-1."""
    if value < 0xFB:
        return bytes((value,))
    if value < 1 << 16:
        return b"\xfc" + value.to_bytes(2, "little")
    if value < 1 << 24:
        return b"\xfd" + value.to_bytes(3, "little")
    return b"\xfe" + value.to_bytes(8, "little")
