"""The two words of seed 002: the logging mode is the policy, the logging format its outcome.

Here rather than in `policy` or `scope`, because both need them and neither imports the other.
"""

from __future__ import annotations

from enum import Enum


class LoggingMode(Enum):
    """How a binlog chooses the logging format of a statement (`FORMAT` in CREATE BINLOG)."""

    __hash__ = object.__hash__  # members are unique; Enum's own is no C function

    STATEMENT = "STATEMENT"
    ROW = "ROW"
    MIXED = "MIXED"


class LoggingFormat(Enum):
    """How the effects of one statement are logged."""

    __hash__ = object.__hash__  # members are unique; Enum's own is no C function

    STATEMENT = "statement"
    ROW = "row"
