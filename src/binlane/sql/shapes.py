"""Statements that differ only in their literals: what one of them says holds for all.

A statement is cut into literals and what stands between them by one regular expression, instead of
into all its tokens. The facts of the first statement of a shape serve the others, with their
places moved by what the literals before them differ in length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from binlane.sql.dialect import Dialect
from binlane.sql.effects import StatementKind
from binlane.sql.facts import StatementFacts
from binlane.sql.tokens import WORD
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


Key = tuple[str | None, ...]
"""What a statement says beside its literals, and of which kind each of these is."""


def key_of(statement: str, dialect: Dialect) -> Key:
    """What a statement has in common with those that differ from it in literals alone."""
    return tuple(pattern(dialect).split(statement))


def ends_of(statement: str, dialect: Dialect) -> tuple[int, ...]:
    """Where each literal ends that is not part of `key_of`."""
    found = pattern(dialect).finditer(statement)
    return tuple([each.end() for each in found if each[_KEPT] is None])


def pattern(dialect: Dialect) -> re.Pattern[str]:
    """A literal, or what may hold something that looks like one; as `tokens` reads them.

    Whatever does not match stays part of the key, and so does what the last group holds: names in
    quotes, comments, and all from where this expression does not know how to go on.
    """
    return _pattern(dialect.ansi_quotes, dialect.no_backslash_escapes)


_KEPT: Final = 3


@cache
def _pattern(ansi_quotes: bool, no_backslash_escapes: bool) -> re.Pattern[str]:  # noqa: FBT001
    # It begins with a set of characters, so that Python looks for one of these first. LIMIT 0 is
    # told from others, so a 0 alone matches nothing; hexadecimal literals and bits are told from
    # numbers by the first group, strings from each other by the second.
    single = _content("'", backslash_escapes=not no_backslash_escapes)
    double = _content('"', backslash_escapes=not (ansi_quotes or no_backslash_escapes))
    word = WORD.strip("[]")
    return re.compile(
        rf"""
        ['"`\#/0-9-]
        (?: (?<=[0-9]) (?<![{word}.`"@][0-9]) ([xb]?+)
            (?: (?<=0x)[0-9A-Fa-f]++(?!{WORD}) | (?<=0b)[01]++(?!{WORD})
              | (?<![xb]) (?:(?<!0)|(?=\.[0-9])) [0-9]*+
                (?: \.[0-9]*+(?:[eE][+-]?+[0-9]++)?+ | [eE][+-]?+[0-9]++ | (?!{WORD}) ) )
          | (?<=(['"`\#/-]))
            (?: (?<=') (?: (?<![xXbBnN@]'){single}
                  | (?<![{word}.`"@].')
                    (?: (?<=[nN]'){single} | (?<=[xX]')(?:[0-9A-Fa-f]{{2}})*+' | (?<=[bB]')[01]*+' ) )
              | {r"(?!)" if ansi_quotes else rf'(?<=")(?<!@"){double}'}
              | ( (?<=`)[^`]*+` | (?<='){single} | (?<="){double}
                | (?<=\#)[^\n]*+ | (?<=-)-(?=[\x00-\x20]|\Z)[^\n]*+
                | (?<=/)\*(?!M?!).*?\*/
                | (?<=/)\*.*+ | (?<=['"`]).*+ ) ) )
        """,
        re.VERBOSE | re.DOTALL,
    )


def _content(quote: str, *, backslash_escapes: bool) -> str:
    """The pattern of a string behind its opening quote.

    It looks before it takes two characters: before 3.11.5, Python does not go back to where a
    possessive group began if that fails behind its first character.
    """
    plain, pair = f"[^{quote}]*+", quote + quote
    if backslash_escapes:
        plain, pair = f"[^{quote}\\\\]*+", rf"\\|{pair}"
    return f"{plain}(?:(?={pair})..{plain})*+{quote}"


def has_shape(facts: StatementFacts, ends: Sequence[int]) -> bool:
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
    for end in ends:
        while place < len(spans) and spans[place][1] < end:
            place += 1
        if place == len(spans) or spans[place][0] >= end:
            return False
    return True
