"""The decision table of seed 002: logging mode and statement in, logging format out.

The 24 rows are data, in the seed's order; nothing is decided beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from binlane.policy.engines import Capability
from binlane.sql.logging_mode import LoggingFormat, LoggingMode


class Problem(Enum):
    """What the client is told."""

    NOT_LOGGABLE = "Error: not loggable"
    UNSAFE = "Warning: unsafe"


@dataclass(frozen=True, slots=True)
class Decision:
    """How a statement is logged.

    Attributes:
        logging_format: The format; None if it cannot be logged and so must not be executed.
        problem: An error where `logging_format` is None, a warning, or None.
    """

    logging_format: LoggingFormat | None
    problem: Problem | None = None


STATEMENT: Final = Decision(LoggingFormat.STATEMENT)
ROW: Final = Decision(LoggingFormat.ROW)
UNSAFE: Final = Decision(LoggingFormat.STATEMENT, Problem.UNSAFE)
ERROR: Final = Decision(None, Problem.NOT_LOGGABLE)

_SAFE_ROWS: Final = (
    (LoggingMode.STATEMENT, (ERROR, STATEMENT, ERROR, STATEMENT)),
    (LoggingMode.MIXED, (ERROR, STATEMENT, ROW, STATEMENT)),
    (LoggingMode.ROW, (ERROR, ERROR, ROW, ROW)),
)
_UNSAFE_ROWS: Final = (
    (LoggingMode.STATEMENT, (ERROR, UNSAFE, ERROR, UNSAFE)),
    (LoggingMode.MIXED, (ERROR, ERROR, ROW, ROW)),
    (LoggingMode.ROW, (ERROR, ERROR, ROW, ROW)),
)
_CAPABILITIES: Final = tuple(
    Capability(is_row_capable=row, is_statement_capable=statement)
    for row in (False, True)
    for statement in (False, True)
)
DECISIONS: Final[Mapping[tuple[bool, LoggingMode, Capability], Decision]] = MappingProxyType(
    {
        (is_unsafe, mode, what): decision
        for is_unsafe, rows in ((False, _SAFE_ROWS), (True, _UNSAFE_ROWS))
        for mode, decisions in rows
        for what, decision in zip(_CAPABILITIES, decisions, strict=True)
    }
)


def decide(*, is_unsafe: bool, logging_mode: LoggingMode, capability: Capability) -> Decision:
    """Look up how a statement is logged.

    Args:
        is_unsafe: The statement is not deterministic.
        logging_mode: The binlog's mode.
        capability: What the engines of all its tables can (`engines.capability`).

    Source: seed 002 (WL#3303), decision table.
    """
    return DECISIONS[is_unsafe, logging_mode, capability]
