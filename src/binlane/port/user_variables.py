"""Values of a session's user variables, asked of the source and written as USER_VAR events."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from binlane.codec.packets.results import ResultSet
from binlane.codec.types import ColumnType, Flavor
from binlane.codec.variables import UserVarEvent, UserVarType
from binlane.port.session_values import cell_text, collation_id, number_text

_UNSIGNED_FLAG: Final = 32
_NUMBER_COLLATIONS: Final[Mapping[Flavor, int]] = MappingProxyType(
    {Flavor.MARIADB: 8, Flavor.MYSQL: 255}
)
"""What the servers write where a value is a number; MySQL, where nothing else was connected with."""
_DECIMAL_GROUP: Final = 9
_GROUP_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def asked(name: str) -> tuple[str, ...]:
    """The expressions that tell a variable's value, type and collation."""
    quoted = "@`" + name.replace("`", "``") + "`"
    return (quoted, f"HEX({quoted})", f"COLLATION({quoted})")


def variable_event(
    name: bytes,
    answer: ResultSet,
    at: int,
    flavor: Flavor,
) -> UserVarEvent | None:
    """The event of a variable; None where its value cannot be told exactly.

    Args:
        name: In UTF-8.
        answer: The source's, of one row.
        at: Where in it the columns are that `asked` names.
        flavor: Whose log.
    """
    raw = answer.rows[0][at]
    if raw is None:
        return UserVarEvent(name=name, is_null=1)
    head = answer.heads[at]
    number = _NUMBER_COLLATIONS[flavor]
    if head.type_code == ColumnType.LONGLONG:
        value = int(number_text(raw))
        is_unsigned = bool(head.flags & _UNSIGNED_FLAG)
        data = value.to_bytes(8, "little", signed=not is_unsigned)
        return _event(name, UserVarType.INT, number, data, flags=int(is_unsigned))
    if head.type_code == ColumnType.DOUBLE:
        return _event(name, UserVarType.REAL, number, struct.pack("<d", float(number_text(raw))))
    if head.type_code == ColumnType.NEWDECIMAL:
        return _event(name, UserVarType.DECIMAL, number, packed_decimal(number_text(raw)))
    hex_digits, collation = cell_text(answer, at + 1), cell_text(answer, at + 2)
    found = collation_id(collation or "", flavor)
    if found is None or hex_digits is None:
        return None
    return _event(name, UserVarType.STRING, found, bytes.fromhex(hex_digits))


def _event(
    name: bytes, kind: UserVarType, collation: int, value: bytes, flags: int = 0
) -> UserVarEvent:
    # The byte of flags stands behind whole numbers alone.
    return UserVarEvent(
        name=name,
        is_null=0,
        type_code=kind,
        collation_id=collation,
        value=value,
        flags=flags if kind is UserVarType.INT else None,
    )


def packed_decimal(text: str) -> bytes:
    """Precision, scale and the digits of a DECIMAL as the servers write them.

    Source: MariaDB 10.11 strings/decimal.c `decimal2bin`.
    """
    whole, _, fraction = text.lstrip("+-").partition(".")
    return bytes((len(whole) + len(fraction), len(fraction))) + _digits(
        whole, fraction, is_negative=text.startswith("-") and Decimal(text) != 0
    )


def _digits(whole: str, fraction: str, *, is_negative: bool) -> bytes:
    """Groups of nine digits, those of the whole part from its end, big-endian."""
    first = len(whole) % _DECIMAL_GROUP
    groups = [whole[:first]] if first else []
    groups += [whole[at : at + _DECIMAL_GROUP] for at in range(first, len(whole), _DECIMAL_GROUP)]
    groups += [fraction[at : at + _DECIMAL_GROUP] for at in range(0, len(fraction), _DECIMAL_GROUP)]
    data = b"".join(int(group).to_bytes(_GROUP_BYTES[len(group)], "big") for group in groups)
    if is_negative:
        data = bytes(byte ^ 0xFF for byte in data)
    return bytes((data[0] ^ 0x80,)) + data[1:] if data else data
