"""MariaDB's sequences: which NEXTVAL and SETVAL write the sequence's row.

A sequence reserves as many values as its CACHE says, and writes its row only then.

Source: MariaDB 10.11 sql/sql_sequence.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from binlane.names import TableName
from binlane.session.programs.host import RowRun
from binlane.sql.facts import StatementFacts
from binlane.sql.schema import Table

_CACHE: Final = re.compile(r"\bCACHE\s*=?\s*(\d+)", re.IGNORECASE)
_NO_CACHE: Final = re.compile(r"\bNO\s*CACHE\b", re.IGNORECASE)
_START: Final = re.compile(r"\bSTART\s*(?:WITH|=)?\s*(-?\d+)", re.IGNORECASE)
_INCREMENT: Final = re.compile(r"\bINCREMENT\s*(?:BY|=)?\s*(-?\d+)", re.IGNORECASE)
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
            known = values.setdefault(table.name, SequenceValues(_number(_START, table, 1)))
            value = given.get(table.name.table)
            written = _take(known, table) if value is None else _set(known, value, table)
            if not written:
                continue
        kept.append(run)
    return tuple(kept)


def _values_set(facts: StatementFacts) -> dict[str, int]:
    """What SETVAL sets, by the sequence's name."""
    return {
        use.arguments[0].rpartition(".")[2].strip("` "): int(use.arguments[1])
        for use in facts.functions
        if use.upper_name == "SETVAL"
        and len(use.arguments) > 1
        and use.arguments[1].strip().isdigit()
    }


def _take(known: SequenceValues, table: Table) -> bool:
    """NEXTVAL: whether it takes a new range."""
    known.next_value += _number(_INCREMENT, table, 1)
    if known.reserved > 0:
        known.reserved -= 1
        return False
    known.reserved = _range(table) - 1
    return True


def _set(known: SequenceValues, value: int, table: Table) -> bool:
    """SETVAL: a value that was given out already changes nothing."""
    increment = _number(_INCREMENT, table, 1)
    if value < known.next_value if increment > 0 else value > known.next_value:
        return False
    known.next_value, known.reserved = value + increment, 0
    return True


def _range(table: Table) -> int:
    """How many values are reserved at once."""
    if _NO_CACHE.search(table.create_statement):
        return 1
    return max(1, _number(_CACHE, table, _CACHE_DEFAULT))


def _number(pattern: re.Pattern[str], table: Table, default: int) -> int:
    found = pattern.search(table.create_statement)
    return int(found[1]) if found else default
