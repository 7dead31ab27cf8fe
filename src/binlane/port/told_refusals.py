"""What a client is told of a refusal: nothing of binlogs that its account may not see."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.errors import UnsafeStatementError
from binlane.policy.refusals import Refusal, Why
from binlane.scope.safety import ROW_HINT, SPLIT_HINT

_UNNAMED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "BINLANE_PARTIAL_WRITE": "a binlog does not log all that the statement writes",
        "BINLANE_DEPENDENCY": (
            "a binlog does not log all that the statement needs, "
            "consequently the statement might not replay correctly"
        ),
        "BINLANE_PARTIAL_TRANSACTION": (
            "a binlog only records some of the changes made by the transaction"
        ),
        "BINLANE_TABLE_SCOPE_TRIGGER": (
            "a binlog logs a table by its name and in statement format, "
            "with which triggers are not supported"
        ),
        "BINLANE_LOAD_DATA": "a binlog is scoped and would log LOAD DATA as a statement",
    }
)
"""By symbol, what is told in the place of a text that names binlogs."""
_DEFINITION: Final = "BINLANE_DEFINITION"


def as_told(refusal: Refusal, seen: Collection[str] | None) -> Refusal:
    """A refusal as an account may know it, with those of its reasons that it may.

    Args:
        refusal: As it is.
        seen: The binlogs that the account may see; None for all.
    """
    if seen is None:
        return refusal
    reasons = [replace(refusal, others=()), *refusal.others]
    told = [one for one in reasons if _is_nameless(one) or _is_seen(one, seen)]
    if told:
        return replace(told[0], others=tuple(told[1:]))
    if refusal.symbol == _DEFINITION:
        message = "a statement on binlogs is sent by itself"
        return Refusal(refusal.errno, refusal.sqlstate, refusal.symbol, message)
    error = UnsafeStatementError(_UNNAMED[refusal.symbol])
    helps_rows = any(ROW_HINT in why.hint for why in refusal.why)
    hint = ROW_HINT if helps_rows else SPLIT_HINT
    return Refusal(
        refusal.errno, refusal.sqlstate, refusal.symbol, str(error), why=(Why(hint=hint),)
    )


def _is_nameless(refusal: Refusal) -> bool:
    return refusal.symbol not in _UNNAMED and refusal.symbol != _DEFINITION


def _is_seen(refusal: Refusal, seen: Collection[str]) -> bool:
    return bool(refusal.binlogs) and set(refusal.binlogs) <= set(seen)
