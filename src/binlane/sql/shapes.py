"""Statements that differ only in their literals: what one of them says holds for all.

A statement is cut into literals and what stands between them by one regular expression, instead of
into all its tokens. The facts of the first statement of a shape serve the others, with their
places moved by what the literals before them differ in length. What the expression does not
understand is read as if it stood alone.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from binlane.sql.dialect import Dialect
from binlane.sql.effects import StatementKind
from binlane.sql.facts import StatementFacts
from binlane.sql.tokens import NUMBER, WORD, literals
from binlane.sql.tree.expressions import Literal
from binlane.sql.tree.node import children

_KINDS: Final = frozenset(
    (
        StatementKind.INSERT,
        StatementKind.REPLACE,
        StatementKind.UPDATE,
        StatementKind.DELETE,
        StatementKind.SELECT,
    )
)
"""Statements of which many differ in literals alone, and whose decision no literal changes."""


class Cut(NamedTuple):
    """A statement, cut at its literals.

    Attributes:
        key: What stands between them, and of which kind each is.
        ends: Where each literal ends.
    """

    key: str
    ends: tuple[int, ...]


def cut(statement: str, dialect: Dialect) -> Cut | None:
    """Cut a statement at its literals; None if it holds what is not understood."""
    parts: list[str] = []
    ends: list[int] = []
    end = 0
    pattern = _pattern(dialect.ansi_quotes, dialect.no_backslash_escapes)
    for gap, number, string in pattern.findall(statement):
        end += len(gap)
        if number:
            # LIMIT 0 is told from others; hexadecimal literals and bits from numbers.
            parts += (gap, "1" if number.isdecimal() and number != "0" else _kind(number))
            end += len(number)
        elif string:
            parts += (gap, string[0])
            end += len(string)
        else:
            parts.append(gap)
            continue
        ends.append(end)
    return Cut("\0".join(parts), tuple(ends)) if end == len(statement) else None


def _kind(number: str) -> str:
    """What a literal that is no plain number is called in a shape."""
    if number == "0":
        return "0"
    if number[0] in "xX" or number[:2] in ("0x", "0X"):
        return "x"
    return "b" if number[0] in "bB" or number[:2] in ("0b", "0B") else "1"


@cache
def _pattern(ansi_quotes: bool, no_backslash_escapes: bool) -> re.Pattern[str]:  # noqa: FBT001
    """A run of what is no literal, and a literal; as `tokens` reads them.

    No alternative takes what could be read in another way, such as `t.5` or `@'x'`, so nothing is
    ever tried twice. The groups are not possessive: before 3.11.5, Python does not go back to where
    such a group began if an alternative fails behind its first character.
    """
    string = literals("'", backslash_escapes=not no_backslash_escapes)
    name_in_quotes = "`[^`]*+`"
    if ansi_quotes:
        name_in_quotes += r'|"[^"]*+"'
    else:
        string += "|" + literals('"', backslash_escapes=not no_backslash_escapes)
    letter = WORD.replace("0-9", "")
    return re.compile(
        rf"""
        ( (?: [ \t\n\v\f\r(),=<>*+;:!%&|^~?{{}}\[\]]++
            | (?![xXbBnN]'){letter}{WORD}*+
            | {name_in_quotes}
            | \.(?!\d)
            | @@?+(?:{WORD}|\.)*+(?!['"])
            | -(?!-[\x00-\x20]|-\Z) | --(?=[\x00-\x20]|\Z)[^\n]*+ | \#[^\n]*+
            | /(?!\*) | /\*(?!M?!)(?:[^*]|\*(?!/))*\*/
          )* )
        (?: ( [xX]'[0-9A-Fa-f]*+' | [bB]'[01]*+' | (?<![0-9A-Za-z_$\x80-\U0010FFFF.`"])(?:{NUMBER}) )
          | ( [nN]?{string} ) )?
        """,
        re.VERBOSE | re.DOTALL,
    )


def has_shape(facts: StatementFacts, found: Cut) -> bool:
    """Whether all literals of a statement are literals of its tree.

    Others, such as the length in a type, or a string as an alias, are part of what it says.
    """
    effects = facts.effects
    if effects.stopped_at is not None or effects.kind not in _KINDS:
        return False
    if facts.statement_assignments:
        return False
    spans: list[tuple[int, int]] = []
    waiting = [facts.tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Literal):
            spans.append((node.at, node.end))
        waiting += children(node)
    spans.sort()
    place = 0
    for end in found.ends:
        while place < len(spans) and spans[place][1] < end:
            place += 1
        if place == len(spans) or spans[place][0] >= end:
            return False
    return True
