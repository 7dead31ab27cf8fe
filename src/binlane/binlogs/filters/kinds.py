"""Kinds of statements by which a log can be filtered (WL#41), and the row changes that are theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from binlane.errors import ConfigError
from binlane.log.codec.types import EventType
from binlane.statements.sql.statement_kinds import (
    CREATE_TABLE_KINDS,
    DDL_KINDS,
    WRITING_KINDS,
    StatementKind,
)


class RowKind(Enum):
    """Kind of change that a rows event makes."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


_ROWS: Final[Mapping[RowKind, str]] = MappingProxyType(
    {RowKind.INSERT: "WRITE", RowKind.UPDATE: "UPDATE", RowKind.DELETE: "DELETE"}
)
_KIND_OF_ROWS: Final = MappingProxyType(
    {
        int(kind): row_kind
        for row_kind, word in _ROWS.items()
        for kind in EventType
        if kind.name.removeprefix("PRE_GA_").removeprefix("PARTIAL_").startswith(f"{word}_ROWS")
    }
)

_OWN_WORDS: Final = frozenset(
    {"begin", "commit", "rollback", "savepoint", "xa", "unknown", "empty"}
)
_GROUPS: Final[Mapping[str, tuple[frozenset[StatementKind], frozenset[RowKind]]]] = (
    MappingProxyType(
        {
            "ddl": (DDL_KINDS, frozenset()),
            "dml": (WRITING_KINDS, frozenset(RowKind)),
            "create table": (CREATE_TABLE_KINDS | {StatementKind.CREATE_TABLE_LIKE}, frozenset()),
            # These statements are logged as rows of all kinds.
            "replace": (frozenset({StatementKind.REPLACE}), frozenset()),
            "load data": (frozenset({StatementKind.LOAD_DATA}), frozenset()),
        }
    )
)


_KNOWN: Final = MappingProxyType(
    {
        **{
            kind.value: (
                frozenset({kind}),
                frozenset(each for each in RowKind if each.value == kind.value),
            )
            for kind in StatementKind
            if kind.value not in _OWN_WORDS
        },
        **_GROUPS,
    }
)


def row_kind(type_code: int) -> RowKind | None:
    """Give the kind of change of a rows event's type; None for any other event."""
    return _KIND_OF_ROWS.get(type_code)


def is_kind(word: str) -> bool:
    """True if a word names a kind of statements, as `parse_kinds` takes it."""
    return _spelled(word) in _KNOWN


def parse_kinds(
    texts: Iterable[str],
) -> tuple[frozenset[StatementKind], frozenset[RowKind]]:
    """Kinds of statements, and those of the rows that they are logged as.

    Args:
        texts: `insert`, `CREATE TABLE`, `create-table`, `ddl` (all definitions), `dml` (all changes
            of rows); several of them with commas between them.

    Raises:
        ConfigError: If one is no kind.
    """
    statements, rows = frozenset[StatementKind](), frozenset[RowKind]()
    for text in texts:
        for word in filter(None, map(_spelled, text.split(","))):
            if word not in _KNOWN:
                raise ConfigError(
                    f"there is no kind of statements {word}",
                    key="do-event",
                    hint="such are insert, update, delete, create-table, rename-table, ddl and dml",
                )
            of_kind = _KNOWN[word]
            statements, rows = statements | of_kind[0], rows | of_kind[1]
    return statements, rows


def _spelled(word: str) -> str:
    return " ".join(word.strip().lower().replace("-", " ").replace("_", " ").split())
