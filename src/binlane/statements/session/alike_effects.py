"""Literals that decide what a statement does: where none does, statements of one shape do the same."""

from __future__ import annotations

from typing import Final

from binlane.statements.policy.used_objects import body_use
from binlane.statements.session.resolved_shape import ResolvedShape
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import Table
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tree.expressions import (
    Default,
    Literal,
    LiteralKind,
    Name,
    Node,
    Operation,
    children,
)
from binlane.statements.sql.tree.statements import Delete, Insert, Update

_INSERTS: Final = frozenset((StatementKind.INSERT, StatementKind.REPLACE))
_ENDS: Final = frozenset((StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK))
_KINDS: Final = (
    _INSERTS | _ENDS | {StatementKind.UPDATE, StatementKind.DELETE, StatementKind.SELECT}
)


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
        or any(
            access.table.is_sequence or access.table.is_temporary for access in resolved.accesses
        )
        or _has_variables_in_triggers(shape, objects)
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
