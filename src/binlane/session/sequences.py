"""MariaDB's sequences: which NEXTVAL and SETVAL write the sequence's row.

A sequence reserves as many values as its CACHE says, and writes its row only then.

Source: MariaDB 10.11 sql/sql_sequence.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from binlane.names import TableName
from binlane.programs.trace import RowRun
from binlane.sql.facts import StatementFacts
from binlane.sql.parser import Stopped, parse
from binlane.sql.schema import Table
from binlane.sql.servers import Dialect
from binlane.sql.tokens import SqlSyntaxError
from binlane.sql.tree.definitions import Sequence
from binlane.sql.tree.expressions import Name

_CACHE_DEFAULT: Final = 1000


@dataclass(slots=True)
class SequenceValues:
    """Where a sequence stands.

    Attributes:
        next_value: What NEXTVAL gives next.
        reserved: How many values are left of those that its row says are taken.
    """

    next_value: int
    reserved: int = 0


def written_runs(
    values: dict[TableName, SequenceValues],
    runs: Iterable[RowRun],
    sequences: dict[TableName, Table],
    facts: StatementFacts,
) -> tuple[RowRun, ...]:
    """Leave out the rows of sequences that need not be written.

    Args:
        values: Where the session's sequences stand; kept up to date.
        runs: What the statement does.
        sequences: Those that it uses.
        facts: What it says.
    """
    given = _values_set(facts)
    kept = []
    for run in runs:
        table = sequences.get(run.table)
        if table is not None:
            known = values.setdefault(table.name, SequenceValues(_number("START", table, 1)))
            value = given.get(table.name.table)
            written = _take(known, table) if value is None else _set(known, value, table)
            if not written:
                continue
        kept.append(run)
    return tuple(kept)


def _values_set(facts: StatementFacts) -> dict[str, int]:
    """What SETVAL sets, by the sequence's name."""
    found: dict[str, int] = {}
    for use in facts.functions:
        if use.upper_name != "SETVAL" or len(use.arguments) < 2:
            continue
        name, value = use.arguments[:2]
        if isinstance(name, Name) and (text := facts.text_of(value)).isdigit():
            found[name.parts[-1]] = int(text)
    return found


def _take(known: SequenceValues, table: Table) -> bool:
    """NEXTVAL: whether it takes a new range."""
    known.next_value += _number("INCREMENT", table, 1)
    if known.reserved > 0:
        known.reserved -= 1
        return False
    known.reserved = _range(table) - 1
    return True


def _set(known: SequenceValues, value: int, table: Table) -> bool:
    """SETVAL: a value that was given out already changes nothing."""
    increment = _number("INCREMENT", table, 1)
    if value < known.next_value if increment > 0 else value > known.next_value:
        return False
    known.next_value, known.reserved = value + increment, 0
    return True


def _range(table: Table) -> int:
    """How many values are reserved at once."""
    return max(1, _number("CACHE", table, _CACHE_DEFAULT))


def _number(setting: str, table: Table, default: int) -> int:
    number = _settings(table.create_statement).get(setting, default)
    return default if number is None else number


@lru_cache
def _settings(create_statement: str) -> Mapping[str, int | None]:
    """What CREATE SEQUENCE says."""
    try:
        tree = parse(create_statement, Dialect(flavor="mariadb"))
    except (SqlSyntaxError, Stopped):
        return {}
    return tree.settings if isinstance(tree, Sequence) else {}
