"""Commands beside queries that read tables: nothing is logged, but a transaction begins.

With autocommit=0 an engine's transaction begins with the first table of it that is read, and then
SET TRANSACTION or SET binlog_format is refused. MySQL's EXPLAIN reads the tables of its statement,
and its SHOW is a query of the data dictionary, whose tables are InnoDB's.

Source: measured on MariaDB 10.11.19 and MySQL 9.7.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from binlane.names import TableName
from binlane.statements.session import transactions
from binlane.statements.session.object_consequences import apply
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.sql.schema import Table
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.table_definitions import TableDefinition
from binlane.statements.sql.tree.expressions import ObjectName
from binlane.statements.sql.tree.statements import Administration

_OF_DICTIONARY: Final = (
    *("COLUMNS", "FIELDS", "TABLES", "TABLE STATUS", "DATABASES", "SCHEMAS", "INDEX", "INDEXES"),
    *("KEYS", "TRIGGERS", "EVENTS", "PROCEDURE STATUS", "FUNCTION STATUS", "LIBRARY STATUS"),
    *("CHARACTER SET", "CHARSET", "COLLATION", "CREATE USER"),
)
"""Objects of MySQL's SHOW that are read from the dictionary; so does DESCRIBE of a table."""
_DESCRIBES: Final = ("EXPLAIN", "DESCRIBE", "DESC")
_DICTIONARY_WAS_READ: Final = frozenset((1356, 1396))
"""Errors of a view or an account that the dictionary has told of."""
_NO_HANDLER: Final = 1109
_DICTIONARY: Final = Table(
    name=TableName("mysql", "tables"), definition=TableDefinition(columns=()), engine="INNODB"
)
"""One table of the dictionary, which stands for all: no query may name them."""


def look_or_use(state: SessionState, statement: SessionStatement) -> None:
    """Carry out USE, SHOW, EXPLAIN, CHECKSUM TABLE and other commands that are no definition."""
    facts = statement.facts
    verb = facts.verb
    if (refused := transactions.refusal_of_command(state, verb)) is not None:
        state.fail(refused)
        return
    if transactions.command_commits(state, verb):
        state.implicit_commit()
    state.opened(_read(state, statement))
    if not statement.succeeds:
        state.fail_as_stated(statement)
    elif verb == "USE":
        state.database = facts.name
    elif verb.startswith(("INSTALL", "UNINSTALL")):
        apply(state, statement)


def handle(state: SessionState, statement: SessionStatement) -> None:
    """Carry out HANDLER, whose READ reads the table that OPEN gave a name."""
    facts = statement.facts
    name = facts.name.lower()
    if facts.verb == "HANDLER OPEN" and statement.succeeds:
        state.handlers = {**state.handlers, name: facts.tables[0].name}
    elif facts.verb == "HANDLER READ" and statement.outcome.error != _NO_HANDLER:
        state.opened(_known(state, [state.handlers[name]] if name in state.handlers else []))
    if not statement.succeeds:
        state.fail_as_stated(statement)


def _read(state: SessionState, statement: SessionStatement) -> Iterable[Table]:
    """The tables that a command reads."""
    facts, tree = statement.facts, statement.facts.tree
    if not isinstance(tree, Administration):
        return ()
    named = _known(state, (_resolved(name, statement.database) for name in tree.tables))
    if facts.verb == "CHECKSUM TABLE":
        return named
    if state.server.is_mariadb:
        return ()  # what it explains is a query here
    if tree.statement is not None:
        if not statement.succeeds:
            return ()
        effects = replace(facts.effects, kind=StatementKind.SELECT)
        resolved = state.host.resolved(replace(facts, effects=effects), statement.database)
        return [one.table for one in (*resolved.accesses, *resolved.dictionary)]
    is_told = statement.succeeds or statement.outcome.error in _DICTIONARY_WAS_READ
    # Temporary tables are not in the dictionary.
    if not is_told or not _asks_dictionary(facts.verb, tree) or any(t.is_temporary for t in named):
        return ()
    return (_DICTIONARY,)


def _asks_dictionary(verb: str, tree: Administration) -> bool:
    if not verb.startswith("SHOW "):
        return verb in _DESCRIBES and bool(tree.tables)
    words = verb.removeprefix("SHOW ")
    return words.startswith("EXTENDED ") or words.removeprefix("FULL ") in _OF_DICTIONARY


def _known(state: SessionState, names: Iterable[TableName]) -> list[Table]:
    return [table for name in names if (table := state.objects.table(name)) is not None]


def _resolved(name: ObjectName, database: str) -> TableName:
    return TableName(database if name.database is None else name.database, name.name)
