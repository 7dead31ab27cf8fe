"""Events that stand before a QUERY and give it values: INTVAR, RAND and USER_VAR."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Final, Self

from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format

_RAND: Final = Struct("<QQ")
_INTVAR: Final = Struct("<BQ")
_USER_VAR_VALUE: Final = Struct("<BII")


class IntvarKind(IntEnum):
    """The variable that an INTVAR event sets."""

    LAST_INSERT_ID = 1
    INSERT_ID = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class IntvarEvent:
    """A value for LAST_INSERT_ID() or for the next AUTO_INCREMENT column.

    Attributes:
        kind: The `IntvarKind` code as written.
    """

    kind: int
    value: int

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read kind and value."""
        del format_
        kind, value = reader.unpack(_INTVAR)
        return cls(kind=kind, value=value)

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return _INTVAR.pack(self.kind, self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandEvent:
    """The seeds for RAND()."""

    seed1: int
    seed2: int

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read both seeds of RAND()."""
        del format_
        seed1, seed2 = reader.unpack(_RAND)
        return cls(seed1=seed1, seed2=seed2)

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return _RAND.pack(self.seed1, self.seed2)


class UserVarType(IntEnum):
    """Type of a user variable's value."""

    STRING = 0
    REAL = 1
    INT = 2
    ROW = 3
    DECIMAL = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class UserVarEvent:
    """A user variable that the next statement reads.

    Attributes:
        name: The variable's name in UTF-8, without the `@`.
        type_code: `UserVarType`; None where the value is NULL and the event ends before it.
        collation_id: The collation of a string.
        value: The value as written: 8 bytes for REAL and INT; precision, scale and digits for
            DECIMAL.
        flags: Bit 0 is UNSIGNED; None in old events.
        is_null: True if the value is NULL.
    """

    name: bytes
    is_null: int
    type_code: int | None = None
    collation_id: int = 0
    value: bytes = b""
    flags: int | None = None

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the name, and the value if there is one."""
        del format_
        name = reader.take(reader.u32())
        is_null = reader.u8()
        if is_null and not reader.remaining:
            return cls(name=name, is_null=is_null)
        type_code, collation_id, length = reader.unpack(_USER_VAR_VALUE)
        return cls(
            name=name,
            is_null=is_null,
            type_code=type_code,
            collation_id=collation_id,
            value=reader.take(length),
            flags=reader.u8() if reader.remaining else None,
        )

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        head = len(self.name).to_bytes(4, "little") + self.name + bytes((self.is_null,))
        if self.type_code is None:
            return head
        fixed = _USER_VAR_VALUE.pack(self.type_code, self.collation_id, len(self.value))
        return head + fixed + self.value + (b"" if self.flags is None else bytes((self.flags,)))
