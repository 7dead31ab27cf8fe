"""CHECK BINLOG and SHOW BINLOG CHECKS: tables of binlogs, compared with servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from binlane.errors import StatementError
from binlane.live.answers.access import Access
from binlane.live.answers.system_tables.snapshot import CheckFacts, utc
from binlane.live.gateway.answers import Answer, OkAnswer, RowsAnswer
from binlane.live.gateway.handler import HandlerSession
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.log.codec.packets.results import ColumnDefinition
from binlane.statements.scope.statements import CheckBinlog, ShowChecks
from binlane.tables.proof.verdicts import ComparisonStep, TableVerdict


class TimedStep(Protocol):
    """The step of a comparison that runs."""

    @property
    def step(self) -> ComparisonStep:
        """The step as it began."""
        ...

    @property
    def text(self) -> str:
        """The step in one line, with its time."""
        ...


class Comparisons(Protocol):
    """Compares tables, and knows the last verdicts; `service` has it."""

    @property
    def is_running(self) -> bool:
        """True while tables are being compared."""
        ...

    @property
    def running(self) -> TimedStep | None:
        """The step at which the present comparison is; None while none runs."""
        ...

    def verdicts(self, binlog: str) -> Sequence[TableVerdict]:
        """The last verdict on each table of a binlog and each server."""
        ...

    def check(self, binlogs: Iterable[str]) -> None:
        """Compare some binlogs as soon as no other comparison runs."""
        ...


class CheckStatements:
    """Executes the statements.

    Args:
        access: Says which binlogs a session may see.

    Attributes:
        comparisons: Compares tables; None where nobody does.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self.comparisons: Comparisons | None = None

    async def check(self, session: HandlerSession, statement: CheckBinlog) -> Answer:
        """Execute CHECK BINLOG."""
        await session.require(SourcePrivilege.DEFINE)
        names = await self._access.chosen(session, statement.name, SourcePrivilege.MONITOR)
        if self.comparisons is None:
            raise StatementError("no comparisons are made by this process")
        waits = " once the present comparison ends" if self.comparisons.is_running else ""
        self.comparisons.check(names)
        return OkAnswer(info=f"comparing begins{waits}; SHOW BINLOG CHECKS tells the outcome")

    async def show(self, session: HandlerSession, statement: ShowChecks) -> Answer:
        """Execute SHOW BINLOG CHECKS."""
        columns = (
            *("Binlog", "Table", "Server", "State", "Gtid", "Since"),
            *(ColumnDefinition.integer("Rows"), "Checked", "Outcome"),
        )
        names = await self._access.chosen(session, statement.name, SourcePrivilege.MONITOR)
        rows = [
            (
                *(each.binlog, each.table, each.server, each.finding, each.gtid, each.since),
                *(each.rows, each.checked, each.outcome),
            )
            for each in self.facts(names)
        ]
        return RowsAnswer(columns, rows)

    def facts(self, names: Iterable[str]) -> list[CheckFacts]:
        """The last verdicts on the tables of some binlogs, and the comparison that runs now."""
        if self.comparisons is None:
            return []
        running, found = self.comparisons.running, []
        for name in names:
            found += [_facts(each) for each in self.comparisons.verdicts(name)]
            if running is not None and running.step.binlog == name:
                found.append(_comparing(running))
        return found


def _comparing(running: TimedStep) -> CheckFacts:
    step = running.step
    return CheckFacts(
        binlog=step.binlog,
        table=step.table,
        server=step.server,
        finding="comparing",
        gtid="",
        since="",
        rows=0,
        checked=None,
        outcome=running.text,
    )


def _facts(verdict: TableVerdict) -> CheckFacts:
    return CheckFacts(
        binlog=verdict.binlog,
        table=verdict.table,
        server=verdict.server,
        finding=verdict.finding.value,
        gtid=verdict.gtid,
        since="" if verdict.is_whole else verdict.since,
        rows=verdict.rows,
        checked=utc(int(verdict.at_s)) if verdict.at_s else None,
        outcome=verdict.text,
    )
