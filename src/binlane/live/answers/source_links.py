"""Links by which a source's tables change each other unlogged, read when a binlog is defined.

With the answer routing tells a cascade from any other TABLE_MAP without rows, and CREATE BINLOG
tells its user which foreign keys come into the scope from outside.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.errors import StatementError
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.reading import read
from binlane.statements.sql.schema import ACTING, ForeignKey, Table
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.table_changes import created
from binlane.statements.sql.tree.definitions import CreateTable

Rows = Sequence[Sequence[str | None]]
Query = Callable[[str], Awaitable[Rows]]
"""Runs a statement on the source and gives its rows as texts; raises StatementError."""

_KEYS: Final = (
    "SELECT k.TABLE_SCHEMA, k.TABLE_NAME, k.CONSTRAINT_NAME, k.REFERENCED_TABLE_SCHEMA, "
    "k.REFERENCED_TABLE_NAME, r.DELETE_RULE, r.UPDATE_RULE, k.COLUMN_NAME, "
    "k.REFERENCED_COLUMN_NAME "
    "FROM information_schema.KEY_COLUMN_USAGE k "
    "LEFT JOIN information_schema.REFERENTIAL_CONSTRAINTS r "
    "ON k.CONSTRAINT_SCHEMA = r.CONSTRAINT_SCHEMA "
    "AND k.CONSTRAINT_NAME = r.CONSTRAINT_NAME AND k.TABLE_NAME = r.TABLE_NAME "
    "WHERE k.REFERENCED_TABLE_NAME IS NOT NULL "
    "ORDER BY k.TABLE_SCHEMA, k.TABLE_NAME, k.CONSTRAINT_NAME, k.ORDINAL_POSITION"
)
_MERGES: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE ENGINE = 'MRG_MyISAM'"
)
# A global privilege on tables lets an account see them all.
_SEES_ALL: Final = (
    "SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'SELECT' "
    "AND GRANTEE = CONCAT('\\'', SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '\\'@\\'', "
    "SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '\\'')"
)
_DIALECT: Final = Dialect()
_NOT_FOLLOWED: Final = "and an INCIDENT will stand for it; have the parent in scope, too, or let the binlog FOLLOW CASCADES"
_FOLLOWED: Final = (
    "and is derived if all rows of the table are in the binlog, from its CREATE TABLE on or WITH "
    "ROWS; else an INCIDENT will stand for it"
)
_BY_INNODB: Final = "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLinks:
    """A source's links between tables, as the source answered.

    Attributes:
        links: Between all tables that the account sees; complete if it sees all there are.
        are_logged: True if the source logs what its foreign keys change, as MySQL 9.6 and later.
    """

    links: TableLinks
    are_logged: bool

    def notes(self, scope: Scope, *, follows_cascades: bool = False) -> tuple[str, ...]:
        """Return sentences that the user of a scope should know."""
        return tuple(self._notes(scope, _FOLLOWED if follows_cascades else _NOT_FOLLOWED))

    def _notes(self, scope: Scope, outcome: str) -> Iterator[str]:
        if scope.is_unscoped:
            return
        for key in () if self.are_logged else sorted(self.links.keys, key=str):
            if scope.includes(key.table) and not scope.includes(key.parent):
                yield (
                    f"{key.table}: foreign key {key.name} refers to {key.parent}, which is outside "
                    f"of the scope, with {_actions(key)}: what it changes is not logged, {outcome}"
                )
        for merge, child in sorted(self.links.unions):
            if scope.includes(child) and not scope.includes(merge):
                yield (
                    f"{child}: belongs to the MERGE table {merge}, which is outside of the scope: "
                    "for rows written through that an INCIDENT will stand"
                )
        if not self.links.is_complete:
            yield (
                "this account does not see all tables, so foreign keys may be missing here: "
                "with SELECT on *.* all are known"
            )


NO_SOURCE_LINKS: Final = SourceLinks(links=NO_LINKS, are_logged=False)
"""The links of a source that was not asked."""


async def source_links(query: Query) -> SourceLinks:
    """Ask a source for the links between its tables.

    Args:
        query: Asks the source in a session of whoever defines a binlog.

    Raises:
        StatementError: If the source refuses a question.
    """
    rows = await query(_KEYS)
    keys = {key for key in _keys(row for row in rows if row[5] is not None) if key.acts}
    unknown: set[TableName] = set()
    # MariaDB tells what keys do only to who may do more with a table than read it.
    for name in sorted({_name(row) for row in rows if row[5] is None}):
        table = await _defined(query, name)
        keys |= {key for key in (() if table is None else table.foreign_keys) if key.acts}
        unknown |= {name} if table is None else set()
    unions: set[tuple[TableName, TableName]] = set()
    for row in await query(_MERGES):
        name = _name(row)
        # One that is broken cannot be written.
        table = await _defined(query, name)
        unions |= {(name, child) for child in (() if table is None else table.union)}
    sees_all = bool(await query(_SEES_ALL))
    by_innodb = await query(_BY_INNODB)
    links = TableLinks(
        keys=frozenset(keys),
        unions=frozenset(unions),
        is_complete=sees_all,
        unknown=frozenset(unknown),
    )
    return SourceLinks(links=links, are_logged=bool(by_innodb) and by_innodb[0][1] == "OFF")


async def _defined(query: Query, name: TableName) -> Table | None:
    """A table as the source defines it; None if that cannot be found out."""
    try:
        text = (await query(f"SHOW CREATE TABLE {name}"))[0][1] or ""
    except StatementError:
        return None
    facts = read(text, database=name.database, dialect=_DIALECT)
    if not isinstance(facts.tree, CreateTable):
        return None
    return created(name, facts, engine="INNODB", charset=None)


def _name(row: Sequence[str | None]) -> TableName:
    return TableName(row[0] or "", row[1] or "")


def _keys(rows: Iterable[Sequence[str | None]]) -> Iterator[ForeignKey]:
    texts = [[cell or "" for cell in row] for row in rows]
    for fields, columns in groupby(texts, key=lambda row: row[:7]):
        database, table, name, parent_database, parent, on_delete, on_update = fields
        pairs = [(row[7], row[8]) for row in columns]
        yield ForeignKey(
            table=TableName(database, table),
            columns=tuple(own for own, _ in pairs),
            parent=TableName(parent_database, parent),
            on_delete=on_delete,
            on_update=on_update,
            name=name,
            parent_columns=tuple(other for _, other in pairs),
        )


def _actions(key: ForeignKey) -> str:
    actions = (("ON DELETE", key.on_delete), ("ON UPDATE", key.on_update))
    return " ".join(f"{when} {action}" for when, action in actions if action in ACTING)
