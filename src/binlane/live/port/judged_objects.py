"""Statements that were judged with objects that DDL may have changed before they ran.

Who judges does not wait for DDL of others: their metadata locks would wait for each other. So it is
looked at afterwards, whenever something that was known is not known any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from binlane.names import TableName
from binlane.statements.session.session import Session
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.schema import Routine, Table, Trigger, View
from binlane.statements.sql.statement_kinds import DDL_KINDS


@dataclass(frozen=True, slots=True)
class JudgedObjects:
    """A statement that was judged with objects that may have been others when it ran.

    Attributes:
        facts: Parsed facts of the statement's text.
        database: Default database of the statement.
        tables: Tables with which the statement was judged, and their triggers.
        others: Views and functions with which the statement was judged, by name.
    """

    facts: StatementFacts
    database: str
    tables: tuple[tuple[Table, Sequence[Trigger]], ...]
    others: tuple[tuple[TableName, View | None, Routine | None], ...]

    @classmethod
    def of(cls, facts: StatementFacts, session: Session) -> Self:
        """Remember a session's definitions of a statement's objects."""
        database, objects = session.database, session.objects
        resolved = session.opened_by(facts, database)
        # A table that the statement makes or changes itself is another one behind it.
        own = facts.effects.writes if facts.effects.kind in DDL_KINDS else ()
        tables = tuple(
            (one.table, tuple(objects.triggers(one.name)))
            for one in resolved.accesses
            if one.name not in own
        )
        via = (step.name for one in resolved.accesses for step in one.via)
        names = dict.fromkeys((*(use.name for use in facts.tables), *via, *resolved.functions))
        others = tuple(
            (name, objects.view(name), objects.function(name)) for name in names if name not in own
        )
        return cls(facts, database, tables, others)

    def are_same(self, objects: Objects) -> bool:
        """True if the objects are the same as those that the statement was judged with."""
        return all(
            _is_same_view(view, objects.view(name)) and function == objects.function(name)
            for name, view, function in self.others
        ) and all(
            table.is_temporary
            or (
                _defined_alike(objects.base_table(table.name), table)
                and tuple(objects.triggers(table.name)) == triggers
            )
            for table, triggers in self.tables
        )


def _is_same_view(one: View | None, other: View | None) -> bool:
    """True if two views are the same to the last word."""
    if one is None or other is None:
        return one is other
    return one == other and one.facts.text == other.facts.text


def _defined_alike(one: Table | None, other: Table) -> bool:
    """True if two tables differ at most in the next AUTO_INCREMENT value, which SHOW CREATE tells."""
    return one is not None and _definition(one) == _definition(other)


def _definition(table: Table) -> Table:
    options = tuple(each for each in table.options if each[0].upper() != "AUTO_INCREMENT")
    return replace(table, create_statement="", options=options)
