"""What the port has done since it was opened, for whoever shows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final

from binlane.errors import StatementError
from binlane.gateway.judge import Give, Pass, Refuse, Run, Verdict


class LoginOutcome(Enum):
    """What became of a client that connected."""

    ADMITTED = "admitted"
    REFUSED = "refused"
    BROKEN = "broken"
    TOO_MANY = "too many"
    TOO_LATE = "too late"
    NO_SOURCE = "no source"


class StatementOutcome(Enum):
    """What became of a statement that was judged, or of several in one packet."""

    PASSED = "passed"
    FOLLOWED = "followed"
    ANSWERED = "answered"
    REFUSED = "refused"


_OUTCOMES: Final = MappingProxyType(
    {
        Pass: StatementOutcome.PASSED,
        Run: StatementOutcome.FOLLOWED,
        Give: StatementOutcome.ANSWERED,
        Refuse: StatementOutcome.REFUSED,
    }
)


@dataclass(slots=True)
class PortCounts:
    """Counts that only grow.

    Attributes:
        logins: Clients that connected, by what became of them.
        judged: Statements, by what the judge said of them.
        refused: By error number, statements and dumps that binlane refused, judged or not.
    """

    logins: Counter[LoginOutcome] = field(default_factory=Counter)
    judged: Counter[StatementOutcome] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)

    def judge(self, verdict: Verdict) -> None:
        """Count what was said of a statement."""
        self.judged[_OUTCOMES[type(verdict)]] += 1
        if isinstance(verdict, Refuse):
            self.refused[verdict.error.errno] += 1

    def refuse(self, error: StatementError, *, is_judged: bool) -> None:
        """Count an error that answers a question."""
        self.refused[error.errno] += 1
        if is_judged:
            self.judged[StatementOutcome.REFUSED] += 1
