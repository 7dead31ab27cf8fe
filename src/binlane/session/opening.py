"""Errors that a statement meets when its tables are opened, before it touches a row.

Source: sql_base.cc `open_table`, of MariaDB 10.11 and MySQL 9.7.
"""

from __future__ import annotations

from typing import Final

from binlane.policy.access import ResolvedStatement
from binlane.session.failures import fail_as_stated
from binlane.session.report import Refusal
from binlane.session.state import Command, SessionState

_LOCKED_FOR_READ: Final = 1099
_NOT_LOCKED: Final = 1100
_OF_THE_TEXT: Final = frozenset((1052, 1054, 1093, 1110, 1136, 1288, 1348, 1394, 1471))
"""What is wrong with columns and targets: known of a statement before it runs."""


def is_not_locked(state: SessionState, command: Command) -> bool:
    """Fail a statement that LOCK TABLES keeps from a table; it then comes to nothing else.

    What LOCK TABLES did not name is not looked for: it may be missing, too.
    """
    if command.outcome.error in (_LOCKED_FOR_READ, _NOT_LOCKED):
        fail_as_stated(state, command)
        return True
    if not state.has_locked_tables:
        return False
    for use in command.facts.tables:
        name = use.name
        is_known = (
            state.assume_engine is not None
            or state.objects.table(name) is not None
            or state.objects.view(name) is not None
            or state.objects.is_unknown(name)
        )
        if not is_known and state.objects.has_database(name.database):
            state.fail(
                Refusal(
                    errno=_NOT_LOCKED,
                    sqlstate="HY000",
                    symbol="ER_TABLE_NOT_LOCKED",
                    message=f"Table '{name.table}' was not locked with LOCK TABLES",
                )
            )
            return True
    return False


def fails_at_once(command: Command, resolved: ResolvedStatement) -> bool:
    """Whether the script states an error of the text, and no body that could be meant has tables."""
    return command.outcome.error in _OF_THE_TEXT and not any(
        access.is_prelocked for access in resolved.accesses
    )
