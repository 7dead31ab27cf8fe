"""The tables and the decisions of a statement's shape, kept for all statements of the shape.

The tables that a statement opens depend on its text, the objects and the server; its logging depends on those
and on the session. Both are found once, and kept as long as none of these changes. Where no literal decides
what a statement does, statements of one shape do the same.
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
from binlane.statements.policy.used_objects import body_use
from binlane.statements.programs.interpreter import is_straight
from binlane.statements.programs.runner import is_program
from binlane.statements.programs.trace import Trace
from binlane.statements.scope.changes import Changes
from binlane.statements.session.state import SessionState
from binlane.statements.session.variables import OF_BINLOGS
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import StatementFacts, VariableScope
from binlane.statements.sql.schema import Table
from binlane.statements.sql.statement_kinds import WRITING_KINDS, StatementKind
from binlane.statements.sql.tree.expressions import (
    Default,
    Literal,
    LiteralKind,
    Name,
    Node,
    Operation,
    children,
)
from binlane.statements.sql.tree.statements import Delete, Insert, Set, Update

SHAPES_MAX: Final = 4_096
"""Shapes that are kept."""
VERDICTS_MAX: Final = 64
"""Verdicts that a shape keeps."""


_OF_ROWS: Final = WRITING_KINDS | {StatementKind.SELECT}


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
        self.may_branch = not self.is_alone and (
            bool(resolved.functions)
            or any(
                not is_straight(trigger.body, trigger.dialect)
                for access in resolved.accesses
                if access.changes
                for trigger in objects.triggers(access.name)
            )
        )
        self.may_branch |= len(resolved.accesses) > 1 and _writes_what_it_reads(resolved)
        self.traces: dict[Outcome, Trace] = {}
        self.changes: dict[bool, Changes] = {}
        self.can_depend: bool | None = None
        self.may_recur: bool | None = None
        self.random_tables = tuple(
            [
                one.name
                for one in resolved.accesses
                if not one.table.is_temporary
                and one.table.definition.has_default_expressions
                and has_random_default(one.table)
            ]
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


def may_branch(state: SessionState, facts: StatementFacts) -> bool:
    """True if a statement runs programs, which may go on in more than one way."""
    if facts.effects.kind not in _OF_ROWS and is_program(facts):
        return True
    objects = state.objects
    if not objects.has_programs:
        return False
    if facts.shape is not None:
        return shape_of(facts, state.opening(state.database)).may_branch
    if any(objects.triggers(use.name) or objects.view(use.name) for use in facts.tables):
        return True
    packages = facts.dialect.calls_packages
    called = (
        objects.called(use.database, use.name, state.database, calls_packages=packages)
        for use in facts.functions
    )
    return any(objects.function(name) is not None for name in called)


def forget(shape: ResolvedShape) -> None:
    """Remove a shape, which is then resolved anew when a statement needs it."""
    for key in [key for key, known in _shapes.items() if known is shape]:
        del _shapes[key]


def _resolved(facts: StatementFacts, opening: Opening) -> ResolvedShape:
    resolved = resolve(facts, opening)
    return ResolvedShape(facts, resolved, opening.objects)


def _is_alone(facts: StatementFacts, resolved: ResolvedStatement, objects: SchemaCatalog) -> bool:
    changed = [access.name for access in resolved.accesses if access.changes]
    return not (
        facts.user_variables
        or facts.has_into
        or resolved.functions
        or any(map(objects.triggers, changed))
    )


_shapes: Final[dict[tuple[object, ...], ResolvedShape]] = {}


_SHARED: Final = frozenset((VariableScope.GLOBAL, VariableScope.PERSIST))
"""Scopes of values that other sessions have, too."""
_INSERTS: Final = frozenset((StatementKind.INSERT, StatementKind.REPLACE))
_ENDS: Final = frozenset((StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK))
_KINDS: Final = (
    _INSERTS | _ENDS | {StatementKind.UPDATE, StatementKind.DELETE, StatementKind.SELECT}
)


def may_come_as_text(facts: StatementFacts) -> bool:
    """True if the same text does the same in the same state, and leaves other variables or another database.

    That is SET of the session's system variables, without those of the binlogs; USE and SHOW.
    """
    if facts.effects.kind is StatementKind.SESSION:
        return facts.verb == "USE" or facts.verb.startswith("SHOW ")
    is_set = isinstance(facts.tree, Set) and not facts.statement_assignments
    return (
        is_set
        and not (facts.functions or facts.tables or facts.user_variables)
        and all(
            one.scope not in _SHARED and one.name not in OF_BINLOGS and not one.name.startswith("@")
            for one in facts.assignments
        )
    )


# Literals that decide what a statement does --------------------------------------------------------


def has_alike_effects(shape: ResolvedShape, objects: SchemaCatalog) -> bool:
    """True if statements of a shape that differ in literals alone do the same."""
    facts, resolved = shape.facts, shape.resolved
    return not (
        facts.effects.kind not in _KINDS
        or shape.may_branch
        or resolved.errors
        or resolved.notes
        or resolved.functions
        or shape.random_tables
        or resolved.is_delayed
        or facts.user_variables
        or facts.has_into
        or facts.is_delayed
        or facts.statement_assignments
        or any(one.table.is_sequence or one.table.is_temporary for one in resolved.accesses)
        or (not shape.is_alone and _has_variables_in_triggers(shape, objects))
        or _may_be_given_ids(shape)
        or _may_be_proven_empty(facts)
    )


def _has_variables_in_triggers(shape: ResolvedShape, objects: SchemaCatalog) -> bool:
    """True if a trigger reads user variables, which are no part of the session's state here."""
    return any(
        facts.user_variables
        for access in shape.resolved.accesses
        if access.changes
        for trigger in objects.triggers(access.name)
        for facts in body_use(trigger.body, trigger.name.database, trigger.dialect).facts
    )


def _may_be_given_ids(shape: ResolvedShape) -> bool:
    """True if a literal can be the value of an AUTO_INCREMENT column, or let the server choose it."""
    facts = shape.facts
    for access in shape.resolved.accesses:
        column = access.table.auto_increment
        if column is None or not access.changes:
            continue
        if access.is_prelocked:
            return True
        if facts.effects.kind in _INSERTS and (
            access.via or not _are_given_alike(facts, access.table, column.lower())
        ):
            return True
    return False


def _are_given_alike(facts: StatementFacts, table: Table, column: str) -> bool:
    """True if all statements of an INSERT's shape give a column a value, or none does."""
    statement = facts.tree
    if not isinstance(statement, Insert) or facts.has_query:
        return False
    names = facts.columns
    if names is None:
        names = tuple(each.name for each in table.definition.columns)
    places = [place for place, name in enumerate(names) if name.lower() == column]
    if not places:
        return facts.columns is not None
    return all(
        len(row.items) == len(names) and _is_alike(row.items[places[0]], facts)
        for row in statement.rows or ()
    )


def _is_alike(value: Node, facts: StatementFacts) -> bool:
    """True if a value is NULL, 0, DEFAULT or another integer in all statements of a shape."""
    if isinstance(value, Default):
        return value.column is None
    if not isinstance(value, Literal):
        return False
    is_integer = value.kind is LiteralKind.NUMBER and facts.text_of(value).isdecimal()
    return is_integer or value.kind is LiteralKind.NULL


def _may_be_proven_empty(facts: StatementFacts) -> bool:
    """True if only literals decide whether WHERE holds, or whether two of its conditions can meet."""
    statement = facts.tree
    if not isinstance(statement, Update | Delete) or statement.where is None:
        return False
    compared: set[str] = set()
    waiting: list[Node] = [statement.where]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Literal):
            return True
        if not isinstance(node, Operation):
            continue
        if all(isinstance(operand, Literal) for operand in node.operands):
            return True
        if node.operator in ("AND", "OR", "XOR", "NOT"):
            waiting.extend(node.operands)
        else:
            names = {one.parts[-1].lower() for one in node.operands if isinstance(one, Name)}
            if node.operator == "BETWEEN" or not compared.isdisjoint(names):
                return True
            compared |= names
            waiting.extend(one for one in children(node) if isinstance(one, Operation))
    return False
