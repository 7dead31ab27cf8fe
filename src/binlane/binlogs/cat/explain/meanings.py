"""Meanings of a field's value: flags and codes by name, times as dates, text as text; pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import IntEnum, IntFlag
from types import MappingProxyType
from typing import Final

from binlane.log.codec.charsets import charset_of
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import EventHeader
from binlane.log.codec.load_data import DuplicateHandling, ExecuteLoadQueryEvent
from binlane.log.codec.payload import PayloadCompression, TransactionPayloadEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import (
    ChecksumAlgorithm,
    EventType,
    GtidExtraFlag,
    GtidFlag,
    HeaderFlag,
    RowsFlag,
)
from binlane.log.codec.variables import IntvarEvent, IntvarKind, UserVarEvent, UserVarType

_FLAGS: Final[Mapping[tuple[type, str], type[IntFlag]]] = MappingProxyType(
    {
        (EventHeader, "flags"): HeaderFlag,
        (RowsEvent, "flags"): RowsFlag,
        (GtidEvent, "flags"): GtidFlag,
        (GtidEvent, "flags_extra"): GtidExtraFlag,
    }
)
_CODES: Final[Mapping[tuple[type, str], type[IntEnum]]] = MappingProxyType(
    {
        (EventHeader, "type_code"): EventType,
        (FormatDescriptionEvent, "checksum_algorithm"): ChecksumAlgorithm,
        (IntvarEvent, "kind"): IntvarKind,
        (UserVarEvent, "type_code"): UserVarType,
        (ExecuteLoadQueryEvent, "duplicate_handling"): DuplicateHandling,
        (TransactionPayloadEvent, "compression"): PayloadCompression,
    }
)
# Bits of the status variable FLAGS2, named after the session's options that they are.
_SESSION_BITS: Final[Mapping[int, str]] = MappingProxyType(
    {
        14: "AUTO_IS_NULL",
        15: "NO_CHECK_CONSTRAINT_CHECKS",
        19: "NOT_AUTOCOMMIT",
        24: "EXPLICIT_DEFAULTS_FOR_TIMESTAMP",
        26: "NO_FOREIGN_KEY_CHECKS",
        27: "RELAXED_UNIQUE_CHECKS",
    }
)
_SECONDS: Final = frozenset({"timestamp", "created"})
_MICROSECONDS: Final = frozenset({"immediate_commit_timestamp", "original_commit_timestamp"})
_PADDING: Final = b"\0"


def meaning(owner: type, name: str, value: object) -> str:
    """A field's value for people.

    Args:
        owner: The class whose field it is.
        name: Name of the field in `owner`.
        value: Value of the field, or of a part of it.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _number(owner, name, value)
    if isinstance(value, bytes):
        return bytes_text(value)
    return str(value)


def bytes_text(data: bytes) -> str:
    """Return bytes as text in quotes; empty if they are no text."""
    try:
        text = data.rstrip(_PADDING).decode()
    except UnicodeDecodeError:
        return ""
    if not text or not all(char.isprintable() or char in "\n\t" for char in text):
        return ""
    return repr(text)


def flag_names(flags: type[IntFlag], value: int) -> str:
    """`STMT_END | COMPLETE_ROWS`; bits without a name in hexadecimal."""
    names = [flag.name or "" for flag in flags if value & flag]
    rest = value & ~sum(flags)
    return " | ".join([*names, f"0x{rest:X}"] if rest else names)


def status_meaning(name: str, value: object) -> str:
    """A status variable's value for people."""
    if name == "FLAGS2" and isinstance(value, int):
        names = [word for bit, word in _SESSION_BITS.items() if value >> bit & 1]
        return f"{value}: {' | '.join(names) or 'none'}"
    if name == "CHARSET" and isinstance(value, tuple):
        kinds = ("client", "connection", "server")
        return ", ".join(
            f"{kind} {charset_of(collation_id)} ({collation_id})"
            for kind, collation_id in zip(kinds, value, strict=True)
        )
    if name == "CHARSET_DATABASE" and isinstance(value, int):
        return f"{value}: {charset_of(value)}"
    return bytes_text(value) if isinstance(value, bytes) else str(value)


def _number(owner: type, name: str, value: int) -> str:
    for (cls, field), flags in _FLAGS.items():
        if field == name and issubclass(owner, cls):
            return f"{value}: {flag_names(flags, value)}" if value else "0: none"
    for (cls, field), codes in _CODES.items():
        if field == name and issubclass(owner, cls):
            known = value in tuple(codes)
            return f"{value}: {codes(value).name}" if known else f"{value}: unknown"
    if name in _SECONDS and value:
        return f"{value}: {datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S} UTC"
    if name in _MICROSECONDS and value < 1 << 55:
        when = datetime.fromtimestamp(value // 1_000_000, UTC)
        return f"{value}: {when:%Y-%m-%d %H:%M:%S}.{value % 1_000_000:06d} UTC"
    return str(value)
