"""Statements that differ only in their literals: what one of them says holds for all.

A statement is cut into literals and what stands between them by one regular expression, instead of
into all its tokens. The facts of the first statement of a shape serve the others, with their
places moved by what the literals before them differ in length. What the expression does not
understand is read as if it stood alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from binlane.sql.effects import StatementKind
from binlane.sql.facts import (
    FunctionUse,
    Limit,
    Shape,
    Shift,
    StatementFacts,
    SystemVariableUse,
    TableUse,
    UserVariableUse,
)
from binlane.sql.tokens import NUMBER, WORD, literals

SHAPES_MAX: Final = 4_096
"""Shapes that are kept."""

_KINDS: Final = frozenset(
    (
        StatementKind.INSERT,
        StatementKind.REPLACE,
        StatementKind.UPDATE,
        StatementKind.DELETE,
        StatementKind.SELECT,
    )
)
"""Statements whose facts hold no literal but in arguments of functions."""


class Cut(NamedTuple):
    """A statement, cut at its literals.

    Attributes:
        key: What stands between them, and whether each is a string, a number or 0.
        ends: Where each literal ends.
    """

    key: str
    ends: tuple[int, ...]


def cut(statement: str, *, ansi_quotes: bool, no_backslash_escapes: bool) -> Cut | None:
    """Cut a statement at its literals; None if it holds what is not understood."""
    parts: list[str] = []
    ends: list[int] = []
    end = 0
    pattern = _pattern(ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes)
    for gap, number, string in pattern.findall(statement):
        end += len(gap)
        if number:
            # LIMIT 0 is told from others.
            parts += (gap, "0" if number == "0" else "1")
            end += len(number)
        elif string:
            parts += (gap, "'")
            end += len(string)
        else:
            parts.append(gap)
            continue
        ends.append(end)
    return Cut("\0".join(parts), tuple(ends)) if end == len(statement) else None


@cache
def _pattern(*, ansi_quotes: bool, no_backslash_escapes: bool) -> re.Pattern[str]:
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


def read_by_shape(
    statement: str, context: tuple[str, bool, bool, bool], read: Callable[[], StatementFacts]
) -> StatementFacts:
    """The facts of a statement, from those of its shape where they are known.

    Args:
        statement: Its text.
        context: What else `read` depends on: default database, ANSI_QUOTES, NO_BACKSLASH_ESCAPES
            and ORACLE.
        read: Reads the statement itself.
    """
    found = cut(statement, ansi_quotes=context[1], no_backslash_escapes=context[2])
    if found is None:
        return read()
    key = (found.key, context)
    shape = _shapes.get(key)
    if shape is not None:
        return _facts_of(shape, found.ends, statement)
    facts = read()
    if not _has_shape(facts) or _STRING_ALIAS.search(found.key):
        return facts
    if len(_shapes) >= SHAPES_MAX:
        _shapes.clear()
    shape = _shapes[key] = Shape(facts, found.ends)
    return shape.facts


_shapes: Final[dict[tuple[str, tuple[str, bool, bool, bool]], Shape]] = {}
_STRING_ALIAS: Final = re.compile(
    r"\bAS (?: \s | /\*.*?\*/ | (?:\#|--)[^\n]*\n )* \0'", re.VERBOSE | re.DOTALL | re.IGNORECASE
)
"""A table that is called by a string."""


def _has_shape(facts: StatementFacts) -> bool:
    """Whether no literal stands in facts but in arguments of functions."""
    return (
        facts.effects.kind in _KINDS
        and facts.effects.stopped_at is None
        and not facts.statement_assignments
    )


def _facts_of(shape: Shape, ends: tuple[int, ...], statement: str) -> StatementFacts:
    """The facts of a statement of a shape whose literals end at `ends`."""
    shift = Shift(shape.ends, ends)
    if not shape.has_literal_arguments and shift.leaves(shape.last):
        return shape.facts
    facts = shape.facts
    changes: dict[str, Any] = {"shift": shift}
    for name in ("tables", "system_variables", "user_variables", "limits"):
        uses = getattr(facts, name)
        if uses:
            changes[name] = tuple([_moved(use, shift) for use in uses])
    if facts.functions:
        changes["functions"] = tuple(
            [_moved_call(use, shift, statement) for use in facts.functions]
        )
    for name in ("on_duplicate_offset", "query_offset", "skip_locked", "nowait"):
        place = getattr(facts, name)
        if place is not None:
            changes[name] = shift(place)
    return StatementFacts(**(shape.values | changes))


_Use = TypeVar("_Use", TableUse, SystemVariableUse, UserVariableUse, Limit)


def _moved(use: _Use, shift: Shift) -> _Use:
    offset = shift(use.offset)
    length = shift(use.offset + use.length) - offset
    if offset == use.offset and length == use.length:
        return use
    return replace(use, offset=offset, length=length)


def _moved_call(use: FunctionUse, shift: Shift, statement: str) -> FunctionUse:
    offset = shift(use.offset)
    starts = tuple(map(shift, use.argument_offsets))
    places = zip(use.arguments, use.argument_offsets, starts, strict=True)
    return FunctionUse(
        name=use.name,
        database=use.database,
        arguments=tuple([statement[at : shift(old + len(text))] for text, old, at in places]),
        argument_offsets=starts,
        offset=offset,
        length=shift(use.offset + use.length) - offset,
        is_quoted=use.is_quoted,
    )
