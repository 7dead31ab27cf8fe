"""The base of all reports, and the run that feeds them: scripts in, lines out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from binlane.statements.check.checker import Checker
from binlane.statements.check.findings import CheckedStatement, Finding, Kind, findings
from binlane.statements.check.reasons import Judgement
from binlane.statements.sql.script import Script

EXIT_UNREADABLE = 3


class Judged(NamedTuple):
    """A finding, and whether it makes the check fail."""

    finding: Finding
    counts: bool


@dataclass(slots=True)
class Tally:
    """Counts of a run so far.

    Attributes:
        statements: Number of statements in all scripts.
        kinds: Number of findings that count, by kind.
        allowed: Number of findings that only `--allow` keeps from counting.
        unreadable: Scripts that could not be read, each with the reason.
        exit_code: Exit code of the process at the end.
    """

    scripts: int = 0
    statements: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    allowed: int = 0
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    exit_code: int = 0

    def count(self, judged: Sequence[Judged]) -> None:
        """Add the findings of one statement."""
        for finding, counts in judged:
            if counts:
                self.kinds[finding.kind] += 1
                self.exit_code = max(self.exit_code, finding.kind.exit_code)
            else:
                self.allowed += 1

    def missed(self, script: str, why: str) -> None:
        """Add a script that could not be read."""
        self.unreadable.append((script, why))
        self.exit_code = max(self.exit_code, EXIT_UNREADABLE)


class Report(ABC):
    """One form of output for the findings; its methods give lines to print."""

    def begin(self) -> Iterator[str]:
        """Give the lines before the first statement."""
        yield from ()

    @abstractmethod
    def statement(
        self, script: str, checked: CheckedStatement, judged: Sequence[Judged]
    ) -> Iterator[str]:
        """Give the lines on a statement."""

    def end(self, tally: Tally) -> Iterator[str]:
        """Give the lines behind the last statement."""
        del tally
        yield from ()


@dataclass(frozen=True, slots=True)
class Run:
    """A run over several scripts.

    Attributes:
        checker: Check that runs the scripts.
        judgement: Choice of the findings that count.
        report: Report that turns findings into lines.
        is_quiet: Report only statements with findings that count.
        tally: Counts of the run so far.
    """

    checker: Checker
    judgement: Judgement
    report: Report
    is_quiet: bool = False
    tally: Tally = field(default_factory=Tally)

    def check(
        self, name: str, script: str | Script, source: Callable[[str], Script] | None = None
    ) -> Iterator[str]:
        """Give the lines on one script.

        Args:
            name: Path of the script as the user gave it.
            script: Text or bytes of the script.
            source: Gives the bytes of scripts that the script reads; raises StoreError.
        """
        tally, judgement = self.tally, self.judgement
        for checked in self.checker.check(script, path=name, source=source):
            tally.statements += 1
            judged = [
                Judged(finding, judgement.counts(finding))
                for finding in findings(checked)
                if judgement.is_shown(finding)
            ]
            tally.count(judged)
            if not self.is_quiet or any(counts for _, counts in judged):
                yield from self.report.statement(checked.statement.script or name, checked, judged)
        tally.scripts += 1
