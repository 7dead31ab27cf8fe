"""Character sets and collations of columns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

from binlane.log.codec.charsets import BINARY, charset_of, collation_of
from binlane.statements.sql.tree.definitions import (
    TableOption,
)
from binlane.statements.sql.tree.expressions import (
    DataType,
)

TEXT_TYPES: Final = frozenset(
    {
        *("CHAR", "VARCHAR", "VARCHAR2", "ENUM", "SET"),
        *("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "CLOB"),
    }
)
NATIONAL_TYPES: Final = frozenset({"NCHAR", "NVARCHAR"})
_BYTE_TYPES: Final = frozenset(
    {
        *("BINARY", "VARBINARY", "RAW", "VECTOR"),
        *("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"),
        *("INET4", "INET6", "UUID"),
    }
)
CHARSET_WORDS: Final = MappingProxyType({"BYTE": BINARY, "ASCII": "latin1", "UNICODE": "ucs2"})
"""Words of a type that stand for a character set."""
_NATIONAL_CHARSET: Final = "utf8mb3"
_JSON_CHARSET: Final = "utf8mb4"


def named_charset(options: Iterable[TableOption]) -> str | None:
    """The character set that options name, by itself or by a collation; None if they name none."""
    found = by_collation = None
    for option in options:
        if option.name == "COLLATE":
            by_collation = _charset_of_collation(option.value)
        elif option.name == "CHARACTER SET":
            found = None if option.value == "default" else _known(option.value)
    return found or by_collation


def named_collation(options: Iterable[TableOption]) -> str | None:
    """The collation that options name; None if they name none."""
    found = [option.value for option in options if option.name == "COLLATE"]
    return collation_today(found[-1]) if found and found[-1].lower() != "default" else None


def collation_today(name: str) -> str:
    """A collation by its name today: `utf8_bin` is `utf8mb3_bin`."""
    return re.sub("^utf8_", "utf8mb3_", name.lower())


def _charset_of_collation(collation: str) -> str | None:
    """Give the character set by the collation's name: `utf8mb4_bin`; some newer ones of MariaDB name none."""
    return _known(collation.lower().partition("_")[0])


def _known(charset: str) -> str | None:
    """The character set by its name today: `utf8` is `utf8mb3`; None if there is none."""
    collation_id = collation_of(charset)
    return None if collation_id is None else charset_of(collation_id)


def binary_collation(kind: DataType, charset: str | None) -> str | None:
    """Give the collation of text that says BINARY: the character set's own that compares bytes."""
    if "BINARY" not in kind.words or charset in {None, BINARY}:
        return None
    return f"{charset}_bin"


def names_own_charset(kind: DataType) -> bool:
    """Return True if the words of a type decide on its character set."""
    return kind.name in NATIONAL_TYPES or "BINARY" in kind.words or _type_charset(kind) is not None


def _type_charset(kind: DataType) -> str | None:
    """The character set that a type names, by itself or by a collation."""
    own = _known(kind.charset) if kind.charset else None
    return own or (_charset_of_collation(kind.collation) if kind.collation else None)


def column_charset(kind: DataType, default: str | None) -> str | None:
    """The character set of a column, `binary` for bytes; None where it has none."""
    if kind.name in _BYTE_TYPES:
        return BINARY
    if kind.name == "JSON":
        return _JSON_CHARSET
    if kind.name in NATIONAL_TYPES:
        return _NATIONAL_CHARSET
    if kind.name not in TEXT_TYPES:
        return None
    word = next((word for word in CHARSET_WORDS if word in kind.words), "")
    return _type_charset(kind) or CHARSET_WORDS.get(word) or default
