"""Sessions as text: the objects and the statements that run on them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

_MADE: Final = re.compile(
    r"""(?isx) (?: /\*.*?\*/ \s* | --[^\n]*\n \s* )*
    (?: insert\ into | create (?:\s+ (?: or\ replace | temporary | definer=\S+ | algorithm=\S+
        | sql\ security\ \w+ | unique ))*
      \s+ (?:table|view|procedure|function|trigger|event|sequence|package|database)
      (?:\s+if\s+not\s+exists)? ) \s+ (?P<name>`[^`]+` | [\w.@]+)
    """
)
_HANGS_ON: Final = re.compile(r"(?is)references\s+`?(\w+)|create trigger .*? on `?(\w+)")
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of a session.

    Attributes:
        sql: Its text.
        rows: Rows that it changes before it fails, where that is meant; None if it succeeds.
    """

    sql: str
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A session on objects of its own.

    Attributes:
        schema: Statements that make the objects.
        statements: What the session runs.
    """

    schema: tuple[str, ...]
    statements: tuple[Statement, ...] = field(default_factory=tuple)

    @property
    def texts(self) -> list[str]:
        """The statements as they are sent."""
        return [statement.sql for statement in self.statements]


def needed(schema: Sequence[str], texts: Sequence[str]) -> tuple[str, ...]:
    """The statements that make what some texts name, what that names itself, and what hangs on it.

    Children of foreign keys and triggers hang on their tables. What makes no object stays.
    """
    made = [_MADE.match(sql) for sql in schema]
    names = [found and found["name"].strip("`").lower().split(".")[-1] for found in made]
    words = [frozenset(_WORD.findall(sql.lower())) for sql in schema]
    known = set(_WORD.findall(" ".join(texts).lower()))
    kept = {index for index, name in enumerate(names) if name is None}
    known |= {word for index in kept for word in words[index]}
    while True:
        new = {
            index
            for index, sql in enumerate(schema)
            if index not in kept and (names[index] in known or _hangs(sql, known))
        }
        if not new:
            break
        kept |= new
        known |= {word for index in new for word in words[index]}
    return tuple(sql for index, sql in enumerate(schema) if index in kept)


def _hangs(sql: str, known: set[str]) -> bool:
    return any((one or other).lower() in known for one, other in _HANGS_ON.findall(sql))
