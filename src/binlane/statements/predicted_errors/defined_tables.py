"""Errors of statements that define a table or view, in the order of the servers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.refusals import Refusal, no_such_routine, refusal
from binlane.statements.predicted_errors.column_expressions import (
    named_in_columns,
    refused_function,
    refused_in_key,
)
from binlane.statements.predicted_errors.column_names import column_names, unknown_column
from binlane.statements.predicted_errors.constraint_names import (
    checks_unknown,
    wrong_check_names,
    wrong_copied_checks,
)
from binlane.statements.predicted_errors.foreign_key_rules import Parents, wrong_reference
from binlane.statements.predicted_errors.generated_column_rules import (
    changed_otherwise,
    needed,
    uninitialized,
    unversioned,
)
from binlane.statements.predicted_errors.known_objects import has_table
from binlane.statements.predicted_errors.table_structure import wrong_structure
from binlane.statements.predicted_errors.taken_names import taken_table
from binlane.statements.session.object_consequences import preview
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.session.transactions import begins_transaction
from binlane.statements.sql.evaluation.functions import is_made
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import Fact
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.table_changes import engine_name
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree.definitions import CreateTable
from binlane.statements.sql.tree.expressions import Call, walk

_STORED_OTHERWISE: Final = 3106


# What is wrong with a definition -------------------------------------------------------------------


def wrong_table(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Tables and their keys."""
    facts, tree = statement.facts, statement.facts.tree
    table: Table | None = None
    selected: list[str] | None = []
    if not isinstance(tree, CreateTable):
        table = state.objects.table(facts.effects.writes[0])
    elif facts.effects.if_exists and taken_table(state, statement, is_tolerant=False) is not None:
        return None
    elif tree.query is not None:
        selected = column_names(
            tree.query, facts, state.objects, server=state.server, database=statement.database
        )
    engine = state.variables.text("default_storage_engine") or "InnoDB"
    if state.server.is_mariadb and (error := unversioned(facts, table)) is not None:
        return error
    error = refused_function(facts, state.objects, server=state.server, database=statement.database)
    if error is None and state.server.is_mariadb:
        error = changed_otherwise(facts, table)
    wrong = wrong_structure(
        facts,
        table,
        server=state.server,
        engine=engine_name(engine),
        selected=selected,
        disallowed=partial(
            refused_in_key,
            objects=state.objects,
            database=statement.database,
            dialect=facts.dialect,
        ),
    )
    taken = _wrong_checks(state, statement, table)
    if state.server.is_mariadb:
        error = taken if wrong is None and taken is not None else error or wrong
    elif table is not None:
        is_stored_otherwise = wrong is not None and wrong.errno == _STORED_OTHERWISE
        left = None if is_stored_otherwise else needed(facts, table)
        error = error or taken or left or wrong
    else:
        error = error or wrong
    error = (
        error
        or _wrong_references(state, statement, table)
        or _wrong_expressions(state, statement, table)
    )
    return error or taken


def _wrong_checks(
    state: SessionState, statement: SessionStatement, table: Table | None
) -> Refusal | None:
    """Names of checks."""
    facts, tree = statement.facts, statement.facts.tree
    if table is None and not isinstance(tree, CreateTable):
        return None
    text = facts.text.upper()
    has_checks = table is not None and bool(table.check_names)
    if not has_checks and "CHECK" not in text and "CONSTRAINT" not in text:
        return None
    after: Table | None = None
    if table is None or state.server.is_mariadb:
        try:
            after = preview(state, statement, _last_name(facts))
        except SqlSyntaxError:  # a column that is not there, which is told otherwise
            after = None
    tables = state.objects.store.tables
    return wrong_check_names(facts, table, after, tables=tables, server=state.server)


def _last_name(facts: StatementFacts) -> TableName:
    """The name of a table behind a statement that defines it."""
    name = facts.effects.writes[0]
    return next((new for old, new in facts.effects.renames if old == name), name)


def wrong_copy(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """CREATE TABLE … LIKE: MySQL's names of its checks."""
    effects = statement.facts.effects
    source = next(map(state.objects.table, effects.reads), None)
    if source is None or state.server.is_mariadb:
        return None
    if effects.if_exists and taken_table(state, statement, is_tolerant=False) is not None:
        return None
    tables = state.objects.store.tables
    return wrong_copied_checks(source, effects.writes[0], tables, is_temporary=effects.is_temporary)


def _wrong_expressions(
    state: SessionState, statement: SessionStatement, before: Table | None
) -> Refusal | None:
    """Columns that expressions of columns name."""
    named = named_in_columns(statement.facts, state.server)
    is_checked = not state.server.is_mariadb and "CHECK" in statement.facts.text.upper()
    is_known = before is None or before.is_complete
    is_looked_at = bool(named) or (is_checked and is_known)
    child = preview(state, statement, _last_name(statement.facts)) if is_looked_at else None
    if child is None or not child.is_complete:
        return None
    columns = {column.name.lower() for column in child.definition.columns}
    unknown = (refusal(1054, *one) for one in named if one[0].lower() not in columns)
    error = next(unknown, None)
    if error is None and state.server.is_mariadb:
        error = uninitialized(statement.facts, child)
    if error is None and is_checked and state.server.has(Fact.CHECK_CONSTRAINTS):
        error = checks_unknown(before, child)
    return error


def _wrong_references(
    state: SessionState, statement: SessionStatement, before: Table | None
) -> Refusal | None:
    """Foreign keys."""
    facts = statement.facts
    is_new = isinstance(facts.tree, CreateTable)
    is_select = facts.effects.kind is StatementKind.CREATE_TABLE_SELECT
    if "REFERENCES" not in facts.text.upper() or (before is None and not is_new):
        return None
    if is_select and not state.server.is_mariadb:
        return None  # which MySQL refuses for another reason
    child = preview(state, statement, facts.effects.writes[0])
    if child is None:
        return None
    if begins_transaction(facts) and child.foreign_keys:
        return refusal(3978)

    def parent(name: TableName) -> Table | None:
        found, visible = state.objects.base_table(name), state.objects.table(name)
        is_hidden = visible is not None and visible.is_temporary
        if found is None and not is_hidden and (has_table(state, name) or not name.database):
            raise LookupError(name)
        if found is not None and not found.is_complete:
            raise LookupError(name)
        return found

    variables = state.variables
    must_be_unique = variables.is_on("restrict_fk_on_non_standard_key", default=True)
    checks = variables.settings.checks_foreign_keys
    parents = Parents(
        server=state.server,
        find=parent,
        checks=checks,
        must_be_unique=must_be_unique,
        named=lambda: _reference_names(state, child.name, is_made=before is None),
    )
    return wrong_reference(facts, before, child, parents)


def _reference_names(state: SessionState, child: TableName, *, is_made: bool) -> Iterator[str]:
    """Names of a database's foreign keys, those of a table that is made anew left out."""
    for table in state.objects.store.tables.values():
        if table.name.database != child.database or (is_made and table.name == child):
            continue
        for key in table.foreign_keys if table.engine == "INNODB" else ():
            yield key.own_name.lower()


def wrong_view(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """The query of a view: its columns, and the functions that it calls."""
    facts, objects = statement.facts, state.objects
    if state.assume_engine is None:
        found = unknown_column(facts, objects, server=state.server, database=statement.database)
        if found is not None:
            return found
    calls = (node for node in walk(facts.tree) if isinstance(node, Call))
    for use in calls:
        name = TableName(use.database or statement.database, use.name)
        is_loadable = use.database is None and objects.is_loadable_function(use.name)
        if is_made(use, facts.dialect) and not is_loadable and objects.function(name) is None:
            return no_such_routine("FUNCTION", name)
    return None
