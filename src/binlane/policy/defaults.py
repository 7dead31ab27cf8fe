"""Columns whose DEFAULT may give another value on a replica.

MariaDB looks at all defaults of a written table, whatever the statement does to it; MySQL at those
that the statement uses, and inside of routines and triggers at all. Both measured.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from binlane.policy.functions import is_unsafe_function
from binlane.policy.reasons import Reason
from binlane.sql.analysis import read_expression
from binlane.sql.effects import StatementKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from binlane.policy.reasons_found import ReasonFound
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
    return read_expression(expression, database=database)


def has_varying_default(table: Table, server: Server) -> bool:
    """Whether any column's DEFAULT may give another value on a replica."""
    return any(_is_varying(column, table, server) for column in table.definition.columns)


def used_defaults(
    table: Table, facts: StatementFacts, server: Server, place: Place
) -> Iterator[ReasonFound]:
    """What MySQL finds unsafe in the defaults that a statement uses of a table that it writes."""
    if server.is_mariadb:
        return
    for column in _used(table, facts):
        if _is_varying(column, table, server):
            what = f"the default of {table.name.plain}.{column.name}"
            yield place.found(Reason.SYSTEM_FUNCTION, what, place.offset, place.length)


def prepared_defaults(
    table: Table, facts: StatementFacts, server: Server
) -> Iterator[StatementFacts]:
    """The expressions of a table's defaults that a statement makes the server get ready.

    MariaDB does so with all of every table that it opens, MySQL with those that are used.
    """
    columns = table.definition.columns if server.is_mariadb else _used(table, facts)
    for column in columns:
        if column.has_default_expression and column.default is not None:
            yield default_facts(column.default, table.name.database)


def _used(table: Table, facts: StatementFacts) -> Iterator[TableColumn]:
    """The columns whose DEFAULT a statement uses."""
    supplied = None if facts.columns is None else {name.lower() for name in facts.columns}
    assigned = {column.name.lower() for column in facts.set_columns}
    for column in table.definition.columns:
        name = column.name.lower()
        is_left_out = (
            facts.effects.kind in _INSERTS and supplied is not None and name not in supplied
        )
        is_said = facts.defaults and (supplied is None or name in supplied | assigned)
        if is_left_out or is_said:
            yield column


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
