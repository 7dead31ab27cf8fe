"""Values of a session's user variables, asked of the source and written as USER_VAR events."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.log.codec.numbers import encode_decimal
from binlane.log.codec.packets.results import ResultSet, digits_of
from binlane.log.codec.status_numbers import collation_id
from binlane.log.codec.types import ColumnType, Flavor
from binlane.log.codec.variables import UserVarEvent, UserVarType

_UNSIGNED_FLAG: Final = 32
_NUMBER_COLLATIONS: Final[Mapping[Flavor, int]] = MappingProxyType(
    {Flavor.MARIADB: 8, Flavor.MYSQL: 255}
)
"""Collation ids that the servers write for numbers; on MySQL, if the login named no other one."""


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
        name: Name of the variable, in UTF-8.
        answer: Answer of the source, of one row.
        at: Index in the row of the first of the columns that `asked` names.
        flavor: Flavor whose log is written.
    """
    raw = answer.rows[0][at]
    if raw is None:
        return UserVarEvent(name=name, is_null=1)
    head = answer.heads[at]
    number = _NUMBER_COLLATIONS[flavor]
    if head.type_code == ColumnType.LONGLONG:
        value = int(digits_of(raw))
        is_unsigned = bool(head.flags & _UNSIGNED_FLAG)
        data = value.to_bytes(8, "little", signed=not is_unsigned)
        return _event(name, UserVarType.INT, number, data, flags=int(is_unsigned))
    if head.type_code == ColumnType.DOUBLE:
        return _event(name, UserVarType.REAL, number, struct.pack("<d", float(digits_of(raw))))
    if head.type_code == ColumnType.NEWDECIMAL:
        return _event(name, UserVarType.DECIMAL, number, encode_decimal(digits_of(raw)))
    hex_digits, collation = answer.cell_text(at + 1), answer.cell_text(at + 2)
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
