"""The tables and the decisions of a statement's shape, kept for all statements of the shape.

The tables that a statement opens depend on its text, the objects and the server; its logging depends on those
and on the session. Both are found once, and kept as long as none of these changes.
"""

from __future__ import annotations

from typing import Final

from binlane.statements.policy.procedure import Verdict, decide_statement
from binlane.statements.policy.refusals import (
    Outcome,
)
from binlane.statements.policy.resolution import Opening, ResolvedStatement, resolve
from binlane.statements.policy.server import Circumstances
from binlane.statements.policy.unsafe_defaults import has_random_default
from binlane.statements.programs.interpreter import is_straight
from binlane.statements.programs.trace import Trace
from binlane.statements.scope.changes import Changes
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import (
    StatementFacts,
)

SHAPES_MAX: Final = 4_096
"""Shapes that are kept."""
VERDICTS_MAX: Final = 64
"""Verdicts that a shape keeps."""


class ResolvedShape:
    """A statement's shape with its tables; places are those in the facts of the shape.

    Attributes:
        facts: Facts of the text that was resolved for the shape.
        resolved: The tables of the statement, with its accesses.
        is_alone: No trigger, stored function or user variable takes part in the statement.
        traces: Effects on rows, by outcome; kept only where the statement is alone, when the values in it
            cannot matter.
        changes: Changes and needs of the statement, by True if it stands in a procedure.
        may_branch: The statement's triggers and functions may go on in more than one way.
        can_depend: Values of the session may have to be logged before the text; None: not found out yet.
        may_recur: Statements of the shape do the same in the same state; None: not found out yet.
        random_tables: Opened tables with a DEFAULT that calls RAND(), each as often as it is opened.
    """

    __slots__ = (
        *("_verdicts", "can_depend", "changes", "facts", "is_alone", "may_branch", "may_recur"),
        *("random_tables", "resolved", "traces"),
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
        self.may_branch |= _writes_what_it_reads(resolved)
        self.traces: dict[Outcome, Trace] = {}
        self.changes: dict[bool, Changes] = {}
        self.can_depend: bool | None = None
        self.may_recur: bool | None = None
        self.random_tables = tuple(
            access.name
            for access in resolved.accesses
            if not access.table.is_temporary and has_random_default(access.table)
        )
        self._verdicts: dict[Circumstances, Verdict] = {}

    def verdict(self, circumstances: Circumstances) -> Verdict:
        """Return the decision for some circumstances."""
        found = self._verdicts.get(circumstances)
        if found is None:
            if len(self._verdicts) >= VERDICTS_MAX:
                self._verdicts.clear()
            found = decide_statement(self.resolved, circumstances)
            self._verdicts[circumstances] = found
        return found


def _writes_what_it_reads(resolved: ResolvedStatement) -> bool:
    """True if triggers may write a table that the statement itself has open, which fails on a row."""
    own = {access.name for access in resolved.accesses if not access.is_prelocked}
    return any(
        access.is_prelocked and access.changes and access.name in own
        for access in resolved.accesses
    )


def shape_of(facts: StatementFacts, opening: Opening) -> ResolvedShape:
    """Return the resolved shape of a statement: see `resolve`."""
    shape = facts.shape
    if shape is None or opening.created is not None:
        return _resolved(facts, opening)
    server = opening.server
    key = (
        *(shape, opening.objects.version, server.flavor, server.version, opening.database),
        *(opening.assume_engine, opening.checks_foreign_keys),
    )
    found = _shapes.get(key)
    if found is None:
        if len(_shapes) >= SHAPES_MAX:
            _shapes.clear()
        missed = len(opening.objects.missed)
        found = _resolved(shape.facts, opening)
        # A missing object may be read later, without a change of the existing ones.
        if not found.resolved.errors and len(opening.objects.missed) == missed:
            _shapes[key] = found
    return found


def forget(shape: ResolvedShape) -> None:
    """Remove a shape, which is then resolved anew when a statement needs it."""
    for key in [key for key, known in _shapes.items() if known is shape]:
        del _shapes[key]


def _resolved(facts: StatementFacts, opening: Opening) -> ResolvedShape:
    resolved = resolve(facts, opening)
    return ResolvedShape(facts, resolved, opening.objects)


def _is_alone(facts: StatementFacts, resolved: ResolvedStatement, objects: SchemaCatalog) -> bool:
    return not (
        facts.user_variables
        or facts.has_into
        or resolved.functions
        or any(access.changes and objects.triggers(access.name) for access in resolved.accesses)
    )


_shapes: Final[dict[tuple[object, ...], ResolvedShape]] = {}
