"""Prepared statements: the text that EXECUTE logs, with values in the place of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from binlane.session.programs.values import UNKNOWN, UNKNOWN_TEXT, Value, parameter
from binlane.sql.tokens import SqlSyntaxError, TokenKind, tokenise

_CACHE_SIZE: Final = 1024


def with_values(
    statement: str, values: Sequence[Value], *, is_mariadb: bool, unknown: str = UNKNOWN_TEXT
) -> str:
    """The text of a prepared statement as it is executed and logged.

    Args:
        statement: As it was prepared.
        values: Of its parameters; where one is missing its `?` stays.
        is_mariadb: Whose notation is followed.
        unknown: Stands for a value that cannot be known.
    """
    parts: list[str] = []
    end = 0
    for place, value in zip(parameter_places(statement), values, strict=False):
        text = unknown if value is UNKNOWN else parameter(value, is_mariadb=is_mariadb)
        parts += [statement[end:place], text]
        end = place + 1
    return "".join([*parts, statement[end:]])


@lru_cache(_CACHE_SIZE)
def parameter_places(statement: str) -> tuple[int, ...]:
    """Where a statement has parameters."""
    try:
        tokens = list(tokenise(statement))
    except SqlSyntaxError:
        return ()
    return tuple(
        token.offset for token in tokens if token.kind is TokenKind.OPERATOR and token.text == "?"
    )


def trimmed(statement: str) -> str:
    """A statement as the servers keep it: without white space around it and its last `;`."""
    return statement.strip(" \t\r\n\v\f\0").rstrip("; \t\r\n\v\f\0")
