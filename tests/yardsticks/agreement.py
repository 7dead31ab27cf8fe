"""How far sessions of ours agree with the recorded servers."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from tests.yardsticks.records import Record, records
from tests.yardsticks.running import Difference, differences


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A record in which we differ from the server."""

    record: Record
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The records of one flavor, compared.

    Attributes:
        flavor: `mariadb` or `mysql`.
        total: Records compared.
        mismatches: Those that differ.
        by_group: Agreeing and all records by the reason or error that they are about.
    """

    flavor: str
    total: int
    mismatches: tuple[Mismatch, ...]
    by_group: dict[str, tuple[int, int]]

    @property
    def agreed(self) -> int:
        """Records without a difference."""
        return self.total - len(self.mismatches)


def agreement(flavor: str, *, only: str = "") -> Agreement:
    """Compare all records of a flavor whose name matches `only`."""
    total: Counter[str] = Counter()
    agreed: Counter[str] = Counter()
    mismatches: list[Mismatch] = []
    kept = [record for record in records(flavor) if re.search(only, record.name)]
    groups = _groups(kept)
    for record in kept:
        found_in = _found_in(record, groups[record.name])
        total.update(found_in)
        try:
            found = differences(record)
        except Exception as error:  # noqa: BLE001 - one that ends in a traceback is a mismatch too
            found = [Difference("crash", None, f"{type(error).__name__}: {error}")]
        if found:
            mismatches.append(Mismatch(record, tuple(found)))
        else:
            agreed.update(found_in)
    return Agreement(
        flavor=flavor,
        total=len(kept),
        mismatches=tuple(mismatches),
        by_group={group: (agreed[group], number) for group, number in total.items()},
    )


def _groups(kept: list[Record]) -> dict[str, str]:
    """By a record's name: what makes its statement unsafe in the server's eyes, if anything does.

    A statement's own reason is what it is noted for in autocommit; contexts add others.
    """
    groups = {record.name: "safe everywhere, or never logged" for record in kept}
    for record in reversed(kept):
        own = [reason for reason in record.reasons if not _is_of_context(reason)]
        if own:
            groups[record.name] = own[0].removeprefix("ER_BINLOG_UNSAFE_")
    return groups


def _found_in(record: Record, group: str) -> set[str]:
    """The groups of a record: its statement's own, its errors and what its context adds."""
    context = {
        reason.removeprefix("ER_BINLOG_UNSAFE_")
        for reason in record.reasons
        if _is_of_context(reason)
    }
    return {group, *context} | ({f"error {record.error}"} if record.error else set())


def _is_of_context(reason: str) -> bool:
    return reason.endswith(("_MIXED_STATEMENT", "_NONTRANS_AFTER_TRANS"))
