"""The tables that a statement concerns: by its tables info, else by its text and a schema (seed 003).

Without a schema a view is a table of its own, and a statement that calls stored code tells nothing
of the effects of that code. With one a view concerns the tables that it is made of, a statement
also those that the functions in it and the triggers of its tables name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from binlane.binlogs.filters.schema_objects import SchemaObjects
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.status_vars import is_undone
from binlane.names import TableName
from binlane.statements.sql.evaluation.functions import is_built_in
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.logged_statements import LoggedStatement, logged_statement
from binlane.statements.sql.statement_kinds import (
    TABLE_DROPPING_KINDS,
    VIEW_KINDS,
    StatementKind,
)
from binlane.statements.sql.tables_info import is_open_ended, told_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """The tables and objects that a statement is about, as far as rules ask.

    Attributes:
        effects: Effects that the statement's text tells.
        tables: All that must be wanted for the statement to be; of a rename those left of TO that
            it did not make itself.
        calls: Stored functions and procedures that it may call.
        thread_id: Id of the session that ran it; 0 where that is not told.
        is_open_ended: True if its text does not tell the tables that it writes.
        is_undone: True if it begins an ALTER in two phases, or takes it back: nothing of it is
            done.
    """

    effects: StatementEffects
    tables: tuple[TableName, ...]
    calls: tuple[TableName, ...]
    thread_id: int
    is_open_ended: bool
    is_undone: bool = False

    @property
    def kind(self) -> StatementKind:
        """Kind of the statement."""
        return self.effects.kind

    @property
    def databases(self) -> tuple[str, ...]:
        """Databases that must be wanted for a statement about no table to be."""
        return () if self.tables else self.effects.databases

    @property
    def changed(self) -> tuple[TableName, ...]:
        """Tables that the text says it changes; MAINTENANCE keeps a table as it is."""
        return () if self.kind is StatementKind.MAINTENANCE else self.effects.writes

    @property
    def drops(self) -> tuple[TableName, ...]:
        """Tables and views that are gone after the statement."""
        effects = self.effects
        return effects.objects if self.kind is StatementKind.DROP_VIEW else effects.drops

    @property
    def is_list(self) -> bool:
        """True if it does the same to each of several tables, so that a part of it can be done."""
        return self.kind is StatementKind.RENAME_TABLE or self.kind in TABLE_DROPPING_KINDS


def concern_of(body: QueryEvent, known: SchemaObjects | None = None) -> Concern:
    """The tables that a statement concerns.

    Args:
        body: QUERY event of the log.
        known: The server's objects before the statement; None where there is no schema.

    Raises:
        CodecError: If the event's tables info ends inside a name, or its context is damaged.
    """
    # An event without a list of tables does not tell that the statement is about none.
    told = tuple(dict.fromkeys(told_tables(body))) if body.tables_info else None
    concern = concern_of_statement(logged_statement(body), told, known, thread_id=body.thread_id)
    return replace(concern, is_undone=True) if is_undone(body) else concern


def concern_of_statement(
    statement: LoggedStatement,
    told: tuple[TableName, ...] | None = None,
    known: SchemaObjects | None = None,
    *,
    thread_id: int = 0,
) -> Concern:
    """Give the tables that a statement concerns; its tables info, if it had one, was read."""
    facts = statement.facts()
    effects = facts.effects
    is_open = is_open_ended(effects)
    if told is not None:
        tables, is_open = told, False
    else:
        tables = effects.involved_tables
        if known is not None and effects.stopped_at is None:
            found = _through_objects(facts, tables, known, statement.database)
            tables, is_open = (tables, is_open) if found is None else (found, False)
    return Concern(
        effects=effects,
        tables=tables,
        calls=_calls(facts, statement.database),
        thread_id=thread_id,
        is_open_ended=is_open,
    )


def _calls(facts: StatementFacts, database: str) -> tuple[TableName, ...]:
    functions = [
        TableName(use.database or database, use.name)
        for use in facts.functions
        if use.database is not None or use.is_quoted or not is_built_in(use.name)
    ]
    return (*facts.effects.calls, *functions)


def _through_objects(
    facts: StatementFacts, tables: Iterable[TableName], known: SchemaObjects, database: str
) -> tuple[TableName, ...] | None:
    """The tables behind views, and those that stored code adds; None if that is not known."""
    kind = facts.effects.kind
    if kind in VIEW_KINDS:
        behind = facts.effects.reads or facts.effects.objects
        return tuple(dict.fromkeys(known.behind_views(behind)))
    added = known.used_by(facts, database)
    if added is None:
        return None
    return tuple(dict.fromkeys((*known.behind_views(tables), *added)))
