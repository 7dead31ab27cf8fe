"""What the bodies of routines and triggers use: their statements' facts, and their tables.

Bodies are asked for again by every statement that calls them, so what was read is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from binlane.sql.analysis import read, read_expression
from binlane.sql.body import SpanKind, spans
from binlane.sql.compound import read_program
from binlane.sql.cursor import Stopped
from binlane.sql.effects import DDL_KINDS, StatementKind
from binlane.sql.tokens import SqlSyntaxError

if TYPE_CHECKING:
    from binlane.names import TableName
    from binlane.sql.facts import StatementFacts, TableUse

_BODIES_MAX: Final = 4096
_CREATED: Final = frozenset({StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_SELECT})


@dataclass(frozen=True, slots=True)
class BodyUse:
    """What a body uses.

    Attributes:
        facts: Of its statements and expressions, in the order of the text.
        tables: What its statements lock, one entry per name and alias as often as one statement
            names it, with all that its statements do to it; without what it creates itself.
        is_understood: All of it could be read.
    """

    facts: tuple[StatementFacts, ...]
    tables: tuple[TableUse, ...]
    is_understood: bool = True


@lru_cache(maxsize=_BODIES_MAX)
def body_use(body: str, database: str) -> BodyUse:
    """What a body uses.

    Args:
        body: The text of one statement, simple or compound.
        database: For names without one: that of the routine or trigger.
    """
    try:
        program = read_program(body)
    except (Stopped, SqlSyntaxError):
        return BodyUse((), (), is_understood=False)
    facts = [
        read_expression(span.text, database=database)
        if kind is SpanKind.EXPRESSION
        else read(span.text, database=database)
        for kind, span in spans(program)
    ]
    is_understood = all(each.effects.stopped_at is None for each in facts)
    return BodyUse(tuple(facts), _merged(facts), is_understood=is_understood)


def _merged(facts: list[StatementFacts]) -> tuple[TableUse, ...]:
    """One entry per table and alias, as the servers keep a routine's tables."""
    own = {
        name
        for each in facts
        if each.effects.kind in _CREATED and each.effects.is_temporary
        for name in each.effects.writes
    }
    merged: dict[tuple[TableName, str, int], TableUse] = {}
    for each in facts:
        if each.effects.kind in DDL_KINDS and each.effects.kind not in _CREATED:
            continue
        counts: dict[tuple[TableName, str], int] = {}
        for use in each.tables:
            if use.name in own:
                continue
            count = counts[use.name, use.alias] = counts.get((use.name, use.alias), 0) + 1
            key = (use.name, use.alias, count)
            before = merged.get(key)
            merged[key] = use if before is None else _joined(before, use)
    return tuple(merged.values())


def _joined(first: TableUse, second: TableUse) -> TableUse:
    return replace(
        first,
        changes=first.changes | second.changes,
        is_locked_for_update=first.is_locked_for_update or second.is_locked_for_update,
    )
