"""What is found out about a statement before it runs, kept for all statements of its shape.

Which tables a statement opens depends on its text, the objects and the server; how it is logged,
on that and on the session. Both are found once, as long as none of it changes.
"""

from __future__ import annotations

from typing import Final

from binlane.policy.misnamed import misnamed
from binlane.policy.procedure import Verdict, decide_statement
from binlane.policy.refusals import LoggingError, Outcome
from binlane.policy.resolution import Opening, ResolvedStatement, resolve
from binlane.policy.server import Circumstances, Server
from binlane.programs.interpreter import is_straight
from binlane.programs.trace import Trace
from binlane.scope.changes import Changes
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.facts import StatementFacts

PLANS_MAX: Final = 4_096
"""Plans that are kept."""
VERDICTS_MAX: Final = 64
"""Verdicts that a plan keeps."""

_USUAL: Final = Opening()


class Plan:
    """A statement with its tables; places are those of the facts of the shape.

    Attributes:
        facts: What it says.
        resolved: Its tables.
        is_alone: No trigger, stored function or user variable takes part in it.
        traces: What it did to rows, by what happened; kept only where it is alone, when the values
            in it cannot matter.
        changes: What it changes and needs, by whether it stands in a procedure.
        may_branch: Its triggers and functions may go on in more than one way.
        can_depend: Values of the session may have to be logged before its text; None: not found
            out yet.
        misnamed: The error of columns that it names and that are not there.
    """

    __slots__ = (
        *("_verdicts", "can_depend", "changes", "facts", "is_alone", "may_branch"),
        *("misnamed", "resolved", "traces"),
    )

    def __init__(
        self, facts: StatementFacts, resolved: ResolvedStatement, objects: SchemaCatalog
    ) -> None:
        self.facts = facts
        self.resolved = resolved
        self.is_alone = _is_alone(facts, resolved, objects)
        self.may_branch = bool(resolved.functions) or any(
            not is_straight(trigger.body, trigger.dialect)
            for access in resolved.accesses
            if access.changes
            for trigger in objects.triggers(access.name)
        )
        self.traces: dict[Outcome, Trace] = {}
        self.changes: dict[bool, Changes] = {}
        self.can_depend: bool | None = None
        self.misnamed: LoggingError | None = None
        self._verdicts: dict[Circumstances, Verdict] = {}

    def verdict(self, circumstances: Circumstances) -> Verdict:
        """How the statement is logged."""
        found = self._verdicts.get(circumstances)
        if found is None:
            if len(self._verdicts) >= VERDICTS_MAX:
                self._verdicts.clear()
            found = decide_statement(self.resolved, circumstances)
            self._verdicts[circumstances] = found
        return found


def plan_of(
    facts: StatementFacts,
    objects: SchemaCatalog,
    *,
    server: Server,
    database: str,
    opening: Opening = _USUAL,
) -> Plan:
    """The plan of a statement: see `resolve`."""
    shape = facts.shape
    if shape is None or opening.created is not None:
        return _plan(facts, objects, server=server, database=database, opening=opening)
    key = (
        shape,
        objects.version,
        *(server.flavor, server.version, database),
        *(opening.assume_engine, opening.checks_foreign_keys),
    )
    found = _plans.get(key)
    if found is None:
        if len(_plans) >= PLANS_MAX:
            _plans.clear()
        found = _plans[key] = _plan(
            shape.facts, objects, server=server, database=database, opening=opening
        )
    return found


def _plan(
    facts: StatementFacts,
    objects: SchemaCatalog,
    *,
    server: Server,
    database: str,
    opening: Opening,
) -> Plan:
    resolved = resolve(facts, objects, server=server, database=database, opening=opening)
    plan = Plan(facts, resolved, objects)
    if not resolved.errors and opening.assume_engine is None:
        plan.misnamed = misnamed(facts, objects, server=server, database=database)
    return plan


def _is_alone(facts: StatementFacts, resolved: ResolvedStatement, objects: SchemaCatalog) -> bool:
    return not (
        facts.user_variables
        or facts.has_into
        or resolved.functions
        or any(access.changes and objects.triggers(access.name) for access in resolved.accesses)
    )


def resolved_of(
    facts: StatementFacts,
    objects: SchemaCatalog,
    *,
    server: Server,
    database: str,
    opening: Opening = _USUAL,
) -> ResolvedStatement:
    """The tables of a statement, its own places with them."""
    plan = plan_of(facts, objects, server=server, database=database, opening=opening)
    resolved = plan.resolved
    return resolved if facts.shift is None else resolved.moved(facts.shift)


_plans: Final[dict[tuple[object, ...], Plan]] = {}
