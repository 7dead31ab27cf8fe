"""Families of column types, as the servers convert between them, and what a definition says of values."""

from __future__ import annotations

from typing import Final

from binlane.statements.sql.table_definitions import TableColumn

_INTEGERS: Final = {
    **dict.fromkeys(("TINYINT", "INT1", "BOOL", "BOOLEAN"), 8),
    **dict.fromkeys(("SMALLINT", "INT2"), 16),
    **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), 24),
    **dict.fromkeys(("INT", "INTEGER", "INT4"), 32),
    **dict.fromkeys(("BIGINT", "INT8", "SERIAL"), 64),
}
FIXED_CHARS: Final = frozenset({"CHAR", "NCHAR"})
CHARS: Final = frozenset({*FIXED_CHARS, "VARCHAR", "NVARCHAR", "VARCHAR2"})
TEXTS_MAX: Final = {
    "TINYTEXT": 255,
    "TEXT": 65_535,
    "MEDIUMTEXT": (1 << 24) - 1,
    "LONGTEXT": (1 << 32) - 1,
    "CLOB": (1 << 32) - 1,
}
BYTES_MAX: Final = {"BINARY": 1, "TINYBLOB": 255, "BLOB": 65_535, "MEDIUMBLOB": (1 << 24) - 1}
_BYTES: Final = frozenset({"VARBINARY", "RAW", "LONGBLOB", *BYTES_MAX})
_FAMILIES: Final = {
    **dict.fromkeys(_INTEGERS, "INTEGER"),
    **dict.fromkeys(("DECIMAL", "NUMERIC", "DEC", "FIXED"), "DECIMAL"),
    **dict.fromkeys(("FLOAT", "FLOAT4"), "FLOAT"),
    **dict.fromkeys(("DOUBLE", "FLOAT8", "REAL"), "DOUBLE"),
    **dict.fromkeys((*CHARS, *TEXTS_MAX), "TEXT"),
    **dict.fromkeys(_BYTES, "BYTES"),
}
CHARACTERS: Final = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
"""Character sets that have all characters."""
WIDE: Final = frozenset({"ucs2", "utf16", "utf16le", "utf32"})
"""Character sets in which ASCII has other bytes."""
_OF_UTF8MB3: Final = frozenset({"ascii", "latin1", "ucs2"})
_FLOAT_DIGITS_MAX: Final = 24
_DECIMAL_DEFAULT: Final = (10, 0)


def family_of(column: TableColumn) -> str:
    """Types between which values go alike; a type that has no others like it is its own."""
    family = _FAMILIES.get(column.type_name, column.type_name)
    if family == "FLOAT" and len(column.arguments) == 1:
        return "DOUBLE" if (first_number(column) or 0) > _FLOAT_DIGITS_MAX else "FLOAT"
    return family


def integer_range(column: TableColumn) -> tuple[int, int]:
    """The lowest and highest value of an integer column."""
    bits = _INTEGERS[column.type_name]
    if column.is_unsigned:
        return 0, (1 << bits) - 1
    return -(1 << bits - 1), (1 << bits - 1) - 1


def is_alike(old: TableColumn, new: TableColumn) -> bool:
    """True if two definitions mean the same values."""
    return (
        (family_of(old), old.type_name in FIXED_CHARS, old.type_name == "BINARY")
        == (family_of(new), new.type_name in FIXED_CHARS, new.type_name == "BINARY")
        and old.is_unsigned == new.is_unsigned
        and old.charset == new.charset
        and (
            old.arguments == new.arguments and old.type_name == new.type_name
            if family_of(old) != "INTEGER"
            else old.type_name == new.type_name
        )
    )


def keeps_values(old: TableColumn, new: TableColumn) -> bool:
    """True if every value of a definition is the same in another definition."""
    if is_alike(old, new):
        return True
    family = family_of(old)
    if family != family_of(new) or old.charset != new.charset:
        return False
    if family == "INTEGER":
        (low, high), (lowest, highest) = integer_range(old), integer_range(new)
        return lowest <= low and high <= highest
    return (
        old.type_name == new.type_name
        and old.type_name in CHARS
        and (first_number(old) or 1) <= (first_number(new) or 1)
    )


def has_all_of(charset: str | None, other: str | None) -> bool:
    """True if a character set is known to have all characters of another one."""
    return (
        charset == other
        or charset in CHARACTERS
        or (charset in {"utf8mb3", "ucs2"} and other in _OF_UTF8MB3 | {"utf8mb3"})
        or (charset is not None and other == "ascii")
    )


def decimal_digits(column: TableColumn) -> tuple[int, int]:
    """Precision and scale of a DECIMAL."""
    numbers = [int(text) for text in column.arguments if text.isdigit()]
    precision, scale = (*numbers, *_DECIMAL_DEFAULT[len(numbers) :])
    return precision or _DECIMAL_DEFAULT[0], scale


def binary_bytes(column: TableColumn) -> int:
    """The bytes that each value of a BINARY has; 0 of other types."""
    return (first_number(column) or 1) if column.type_name == "BINARY" else 0


def first_number(column: TableColumn) -> int | None:
    """The number in the parentheses behind its type."""
    arguments = column.arguments
    return int(arguments[0]) if arguments and arguments[0].isdigit() else None


def type_text(column: TableColumn) -> str:
    """The type of a column as text, such as `VARCHAR(50)`."""
    arguments = f"({','.join(column.arguments)})" if column.arguments else ""
    return f"{column.type_name}{arguments}"
