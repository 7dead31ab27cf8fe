"""DEFAULTs that make a statement unsafe: they may give another value on a replica."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from binlane.statements.policy.reasons import (
    OWN_TEXT,
    Reason,
    ReasonFound,
    TextPlace,
    columns_by_default,
    is_unsafe_function,
)
from binlane.statements.policy.server import Server
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.name_finder import SEQUENCE_FUNCTIONS
from binlane.statements.sql.reading import read_expression
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import INSERTING_KINDS, StatementKind
from binlane.statements.sql.table_definitions import TableColumn
from binlane.statements.sql.tree.definitions import AlterTable, CreateTable, DefinedColumn
from binlane.statements.sql.tree.expressions import Expression
from binlane.statements.sql.tree.statements import Insert

_EXPRESSIONS_MAX: Final = 4096


# Functions that MariaDB calls non-deterministic in columns' expressions, or bound to the session.
_MARIADB_VARYING: Final = frozenset(
    {
        *("UUID", "UUID_SHORT", "UUID_V4", "UUID_V7", "SYS_GUID", "RAND", "RANDOM_BYTES"),
        *("USER", "SESSION_USER", "SYSTEM_USER", "CURRENT_USER", "CURRENT_ROLE"),
        *("CONNECTION_ID", "DATABASE", "SCHEMA", "SYSDATE", "UTC_TIMESTAMP"),
        *("DATE_FORMAT", "DAYNAME", "MONTHNAME", "ENCRYPT"),
    }
)


@lru_cache(maxsize=_EXPRESSIONS_MAX)
def default_facts(expression: str, database: str, dialect: Dialect) -> StatementFacts:
    """Read the facts of a DEFAULT's expression."""
    return read_expression(expression, database=database, dialect=dialect)


def has_random_default(table: Table) -> bool:
    """True if a column's DEFAULT calls RAND(), which takes the session's seeds."""
    return any(
        use.upper_name == "RAND" and not use.arguments
        for column in table.definition.columns
        if column.has_default_expression and column.default is not None
        for use in default_facts(column.default, table.name.database, table.dialect).functions
    )


def has_varying_default(table: Table, server: Server) -> bool:
    """True if any column's DEFAULT may give another value on a replica."""
    return any(_is_varying(column, table, server) for column in table.definition.columns)


def used_defaults(
    table: Table, facts: StatementFacts, server: Server, place: TextPlace
) -> Iterator[ReasonFound]:
    """Give the unsafe defaults that a statement uses of a table that it writes.

    MariaDB looks for unsafe defaults here in CREATE … SELECT alone. MySQL does not look at columns that
    INSERT leaves out where it names a view; measured on 9.7.4.
    """
    if server.is_mariadb and facts.effects.kind is not StatementKind.CREATE_TABLE_SELECT:
        return
    by_default = columns_by_default(facts, table)
    is_view = bool(place.via) and not server.is_mariadb
    for column in used_columns(table, facts):
        if is_view and column.name.lower() not in by_default:
            continue
        if _is_varying(column, table, server):
            what = f"the default of {table.name.plain}.{column.name}"
            yield place.found(Reason.SYSTEM_FUNCTION, what, place.offset, place.length)


def added_unsafe_defaults(facts: StatementFacts, server: Server) -> Iterator[ReasonFound]:
    """Give the unsafe defaults of the columns that ALTER TABLE adds.

    The existing rows get these defaults, which a replica would compute by itself.
    """
    for default, start, is_added in _new_defaults(facts):
        for use in default.functions if is_added else ():
            if is_unsafe_function(use, StatementKind.DO, server):
                what = f"{use.name.lower()}()"
                yield OWN_TEXT.found(Reason.SYSTEM_FUNCTION, what, start + use.offset, use.length)


def gives_unsafe_default(facts: StatementFacts, server: Server) -> bool:
    """True if CREATE or ALTER TABLE gives a column a DEFAULT that is unsafe."""
    return any(
        is_unsafe_function(use, StatementKind.DO, server)
        for default, _, _ in _new_defaults(facts)
        for use in default.functions
    )


def default_sequences(facts: StatementFacts) -> Iterator[tuple[str, ReasonFound]]:
    """The functions of sequences that MariaDB's new defaults call: NEXTVAL, LASTVAL or SETVAL."""
    for default, start, _ in _new_defaults(facts):
        for use in default.functions:
            if use.database is None and use.upper_name in SEQUENCE_FUNCTIONS:
                what, place = f"{use.name.lower()}()", start + use.offset
                found = OWN_TEXT.found(Reason.SYSTEM_FUNCTION, what, place, use.length)
                yield use.upper_name, found


def _new_defaults(facts: StatementFacts) -> Iterator[tuple[StatementFacts, int, bool]]:
    """Give the defaults of CREATE and ALTER TABLE, their places, and True if ALTER adds the column."""
    tree = facts.tree
    expressions: list[tuple[Expression | None, bool]] = []
    if isinstance(tree, CreateTable):
        expressions += (
            (one.default, False) for one in tree.elements if isinstance(one, DefinedColumn)
        )
    elif isinstance(tree, AlterTable):
        for action in tree.actions:
            is_added = action.kind == "ADD COLUMN"
            expressions += ((one.default, is_added) for one in action.columns)
            expressions.append((action.default, False))
    for expression, is_added in expressions:
        if expression is not None:
            text, start = facts.text_of(expression), facts.place(expression.at)
            yield default_facts(text, "", facts.dialect), start, is_added


def prepared_defaults(
    table: Table, facts: StatementFacts, server: Server
) -> Iterator[StatementFacts]:
    """The expressions of a table's defaults that a statement makes the server get ready.

    MariaDB does so with all of every table that it opens, MySQL with those that are used.
    """
    columns = table.definition.columns if server.is_mariadb else used_columns(table, facts)
    for column in columns:
        if column.has_default_expression and column.default is not None:
            yield default_facts(column.default, table.name.database, table.dialect)


def used_columns(table: Table, facts: StatementFacts) -> Iterator[TableColumn]:
    """The columns whose DEFAULT a statement uses."""
    by_default = columns_by_default(facts, table)
    given = None if facts.columns is None else {name.lower() for name in facts.columns}
    if isinstance(facts.tree, Insert) and any(not row.items for row in facts.tree.rows or ()):
        given = set()  # VALUES () gives no column a value
    created = facts.tree if isinstance(facts.tree, CreateTable) else None
    if created is not None:
        # CREATE … SELECT: the columns that it defines itself count, also where its query gives them.
        given = {column.name.lower() for column in table.definition.columns}
        given -= {e.name.lower() for e in created.elements if isinstance(e, DefinedColumn)}
    is_insert = facts.effects.kind in INSERTING_KINDS or created is not None
    for column in table.definition.columns:
        name = column.name.lower()
        if name in by_default or (is_insert and given is not None and name not in given):
            yield column


def _is_varying(column: TableColumn, table: Table, server: Server) -> bool:
    if not column.has_default_expression or column.default is None:
        return False
    facts = default_facts(column.default, table.name.database, table.dialect)
    if not server.is_mariadb:
        kind = StatementKind.DO
        return any(is_unsafe_function(use, kind, server) for use in facts.functions)
    return (
        bool(facts.system_variables or facts.user_variables)
        or any(use.upper_name in _MARIADB_VARYING for use in facts.functions)
        or any(use.upper_name == "WEEK" and len(use.arguments) == 1 for use in facts.functions)
    )
