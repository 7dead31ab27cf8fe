"""Which tables a statement event concerns: from its tables info, else from its text (seed 003)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from binlane.codec.buffer import Reader
from binlane.codec.query import QueryEvent
from binlane.names import TableName
from binlane.sql.facts import OPEN_ENDED_KINDS, VIEW_KINDS, StatementEffects, StatementKind
from binlane.sql.logged_statements import logged_statement

# Their text does not tell what they write.
_OPEN_ENDED: Final = OPEN_ENDED_KINDS | {StatementKind.UNKNOWN}
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
    told = None if body.tables_info is None else tuple(tables_of(body))
    is_unknown = effects.stopped_at is not None or effects.kind in _OPEN_ENDED
    tables = _tables(effects) if told is None else told
    return Concern(
        tables=tables,
        databases=() if tables else effects.databases,
        renames=effects.net_renames,
        drops=effects.drops,
        made=effects.writes[0] if effects.kind in _MAKES_FROM_OTHERS and effects.writes else None,
        is_open_ended=is_unknown and told is None,
    )


def _tables(effects: StatementEffects) -> tuple[TableName, ...]:
    if effects.renames:
        return (*effects.renamed_tables, *effects.reads)
    objects = effects.objects if effects.kind in VIEW_KINDS else ()
    return (*objects, *effects.writes, *effects.reads)


def tables_of(body: QueryEvent) -> Iterator[TableName]:
    """The tables info of an extended event: an empty database is the default one.

    Raises:
        TruncatedError: If it ends inside a name.
    """
    reader = Reader(body.tables_info or b"")
    while reader.remaining:
        database = reader.take(reader.u8()) or body.database
        table = reader.take(reader.u8())
        yield TableName(
            database.decode("utf-8", "surrogateescape"), table.decode("utf-8", "surrogateescape")
        )
