"""Which tables a statement event concerns: from its tables info, else from its text (seed 003)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.codec.query import QueryEvent
from binlane.names import TableName
from binlane.sql.facts import StatementKind
from binlane.sql.logged_statements import logged_statement
from binlane.sql.tables_info import is_open_ended, told_tables

_MAKES_FROM_OTHERS: Final = frozenset(
    {StatementKind.CREATE_TABLE_LIKE, StatementKind.CREATE_TABLE_SELECT}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """What a statement is about, as far as lists of tables ask.

    Attributes:
        tables: All that must be printed for the statement to be; of a rename those left of TO
            that it did not make itself.
        databases: Likewise, of a statement about no table.
        renames: First and last name of each table renamed.
        drops: Tables that are gone afterwards.
        made: The table that a CREATE makes of others, by LIKE or SELECT.
        is_open_ended: Its text does not tell what it writes.
    """

    tables: tuple[TableName, ...] = ()
    databases: tuple[str, ...] = ()
    renames: tuple[tuple[TableName, TableName], ...] = ()
    drops: tuple[TableName, ...] = ()
    made: TableName | None = None
    is_open_ended: bool = False


def concern_of(body: QueryEvent) -> Concern:
    """The tables that a statement concerns.

    Raises:
        TruncatedError: If the event's tables info ends inside a name.
    """
    effects = logged_statement(body).effects()
    # Of what its text does not tell no list of tables is no knowledge either.
    is_told = bool(body.tables_info)
    tables = told_tables(body) if is_told else effects.involved_tables
    return Concern(
        tables=tables,
        databases=() if tables else effects.databases,
        renames=effects.net_renames,
        drops=effects.drops,
        made=effects.writes[0] if effects.kind in _MAKES_FROM_OTHERS and effects.writes else None,
        is_open_ended=is_open_ended(effects) and not is_told,
    )
