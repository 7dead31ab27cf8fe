"""Counts of the port's work since it was opened, for whoever shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final

from binlane.errors import StatementError
from binlane.live.gateway.judge import Give, Pass, Refuse, RunVerdict, Verdict


class LoginOutcome(Enum):
    """Outcome of the login of a client that connected."""

    ADMITTED = "admitted"
    REFUSED = "refused"
    BROKEN = "broken"
    TOO_MANY = "too many"
    TOO_LATE = "too late"
    NO_SOURCE = "no source"


class StatementOutcome(Enum):
    """Outcome of a statement that was judged, or of several in one packet."""

    PASSED = "passed"
    FOLLOWED = "followed"
    ANSWERED = "answered"
    REFUSED = "refused"


_OUTCOMES: Final[Mapping[type[Verdict], StatementOutcome]] = MappingProxyType(
    {
        Pass: StatementOutcome.PASSED,
        RunVerdict: StatementOutcome.FOLLOWED,
        Give: StatementOutcome.ANSWERED,
        Refuse: StatementOutcome.REFUSED,
    }
)


@dataclass(slots=True)
class PortCounts:
    """Counts that only grow.

    Attributes:
        logins: Clients that connected, by what became of them.
        verdicts: Statements, by the kind of what the judge said of them.
        refused: By error number, statements and dumps that binlane refused, judged or not.
        faults: Faults of binlane's own while it judged, followed or answered statements.
    """

    logins: Counter[LoginOutcome] = field(default_factory=Counter)
    # Types have a hash that costs nothing, members of enumerations one in Python.
    verdicts: dict[type[Verdict], int] = field(default_factory=lambda: dict.fromkeys(_OUTCOMES, 0))
    refused: Counter[int] = field(default_factory=Counter)
    faults: int = 0

    @property
    def judged(self) -> Counter[StatementOutcome]:
        """Number of statements by the judge's verdict."""
        return Counter({_OUTCOMES[kind]: count for kind, count in self.verdicts.items() if count})

    def judge(self, verdict: Verdict) -> None:
        """Count the verdict on a statement."""
        self.verdicts[type(verdict)] += 1
        if isinstance(verdict, Refuse):
            self.refused[verdict.error.errno] += 1

    def add(self, more: PortCounts) -> None:
        """Add the counts of another port."""
        self.logins += more.logins
        self.refused += more.refused
        self.faults += more.faults
        for kind, count in more.verdicts.items():
            self.verdicts[kind] += count

    def refuse(self, error: StatementError, *, is_judged: bool) -> None:
        """Count an error that answers a question."""
        self.refused[error.errno] += 1
        if is_judged:
            self.verdicts[Refuse] += 1
