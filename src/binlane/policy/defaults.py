"""Columns whose DEFAULT may give another value on a replica.

MariaDB looks at all defaults of a written table, whatever the statement does to it; MySQL at those
that the statement uses, and inside of routines and triggers at all. Both measured.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from binlane.policy.reasons import Reason
from binlane.policy.unsafe_text import is_unsafe_function
from binlane.sql.facts import StatementKind
from binlane.sql.reading import read_expression
from binlane.sql.servers import ANY
from binlane.sql.tree.definitions import Column, CreateTable
from binlane.sql.tree.expressions import Default, told, walk
from binlane.sql.tree.statements import Insert, Update

if TYPE_CHECKING:
    from collections.abc import Iterator

    from binlane.policy.reasons import ReasonFound
    from binlane.policy.server import Server
    from binlane.policy.unsafe_text import Place
    from binlane.sql.facts import StatementFacts
    from binlane.sql.schema import Table
    from binlane.sql.table_definitions import TableColumn

_EXPRESSIONS_MAX: Final = 4096
# What MariaDB's expressions of columns call non-deterministic, or bound to the session.
_MARIADB_VARYING: Final = frozenset(
    {
        *("UUID", "UUID_SHORT", "UUID_V4", "UUID_V7", "SYS_GUID", "RAND", "RANDOM_BYTES"),
        *("USER", "SESSION_USER", "SYSTEM_USER", "CURRENT_USER", "CURRENT_ROLE"),
        *("CONNECTION_ID", "DATABASE", "SCHEMA", "SYSDATE", "UTC_TIMESTAMP"),
        *("DATE_FORMAT", "DAYNAME", "MONTHNAME", "ENCRYPT"),
    }
)
_INSERTS: Final = frozenset({StatementKind.INSERT, StatementKind.REPLACE, StatementKind.LOAD_DATA})


@lru_cache(maxsize=_EXPRESSIONS_MAX)
def default_facts(expression: str, database: str) -> StatementFacts:
    """What the expression of a DEFAULT uses."""
    return read_expression(expression, database=database, dialect=ANY)


def has_random_default(table: Table) -> bool:
    """Whether a column's DEFAULT calls RAND(), which takes the session's seeds."""
    return any(
        use.upper_name == "RAND" and not use.arguments
        for column in table.definition.columns
        if column.has_default_expression and column.default is not None
        for use in default_facts(column.default, table.name.database).functions
    )


def has_varying_default(table: Table, server: Server) -> bool:
    """Whether any column's DEFAULT may give another value on a replica."""
    return any(_is_varying(column, table, server) for column in table.definition.columns)


def used_defaults(
    table: Table, facts: StatementFacts, server: Server, place: Place
) -> Iterator[ReasonFound]:
    """What is found unsafe in the defaults that a statement uses of a table that it writes.

    MariaDB looks for them here in CREATE … SELECT alone.
    """
    if server.is_mariadb and facts.effects.kind is not StatementKind.CREATE_TABLE_SELECT:
        return
    for column in used_columns(table, facts):
        if _is_varying(column, table, server):
            what = f"the default of {table.name.plain}.{column.name}"
            yield place.found(Reason.SYSTEM_FUNCTION, what, place.offset, place.length)


def prepared_defaults(
    table: Table, facts: StatementFacts, server: Server
) -> Iterator[StatementFacts]:
    """The expressions of a table's defaults that a statement makes the server get ready.

    MariaDB does so with all of every table that it opens, MySQL with those that are used.
    """
    columns = table.definition.columns if server.is_mariadb else used_columns(table, facts)
    for column in columns:
        if column.has_default_expression and column.default is not None:
            yield default_facts(column.default, table.name.database)


def used_columns(table: Table, facts: StatementFacts) -> Iterator[TableColumn]:
    """The columns whose DEFAULT a statement uses."""
    said = _said(facts, table)
    given = None if facts.columns is None else {name.lower() for name in facts.columns}
    created = facts.tree if isinstance(facts.tree, CreateTable) else None
    if created is not None:
        # Of CREATE … SELECT the columns that it defines itself, also where its query gives them.
        given = {column.name.lower() for column in table.definition.columns}
        given -= {e.name.lower() for e in created.elements if isinstance(e, Column)}
    is_insert = facts.effects.kind in _INSERTS or created is not None
    for column in table.definition.columns:
        name = column.name.lower()
        if name in said or (is_insert and given is not None and name not in given):
            yield column


def _said(facts: StatementFacts, table: Table) -> set[str]:
    """The columns, in small letters, for which DEFAULT stands in a text."""
    if not facts.defaults:
        return set()
    found = {
        node.column.parts[-1].lower()
        for node in walk(facts.tree)
        if isinstance(node, Default) and node.column is not None
    }
    if isinstance(facts.tree, Update):
        for one in facts.tree.assignments:
            if isinstance(one.value, Default):
                found.add(one.column.parts[-1].lower())
    elif isinstance(facts.tree, Insert):
        names = facts.columns or [column.name for column in table.definition.columns]
        for row in told(facts.tree.rows or ()):
            items = told(row.items)
            is_whole = len(items) == len(row.items)
            for index, item in enumerate(items):
                if isinstance(item, Default):
                    meant = names[index : index + 1] if is_whole else names
                    found.update(name.lower() for name in meant)
    return found


def _is_varying(column: TableColumn, table: Table, server: Server) -> bool:
    if not column.has_default_expression or column.default is None:
        return False
    facts = default_facts(column.default, table.name.database)
    if not server.is_mariadb:
        kind = StatementKind.DO
        return any(is_unsafe_function(use, kind, server) for use in facts.functions)
    return (
        bool(facts.system_variables or facts.user_variables)
        or any(use.upper_name in _MARIADB_VARYING for use in facts.functions)
        or any(use.upper_name == "WEEK" and len(use.arguments) == 1 for use in facts.functions)
    )
