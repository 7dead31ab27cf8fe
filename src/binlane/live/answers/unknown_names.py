"""Names in a scope that the source does not have.

What is not there may come later, as in seed 000, so that a definition with such a name is taken. Where
there is a name that is near it is most likely a slip, and nothing would be logged: that is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import Final

from binlane.client.questions import ALL_ROWS, text_literal
from binlane.errors import StatementError
from binlane.live.answers.source_links import Query
from binlane.names import TableName, quote
from binlane.statements.scope.scope import SYSTEM_DATABASE, Scope, ScopeList, ScopeObject

# In digits: a client may have set any character set for results.
_DATABASES: Final = (
    "SELECT HEX(CONVERT(SCHEMA_NAME USING utf8mb4)) FROM information_schema.SCHEMATA"
)
_TABLES: Final = (
    "SELECT HEX(CONVERT(TABLE_NAME USING utf8mb4)) FROM information_schema.TABLES"
    " WHERE TABLE_SCHEMA = {}"
)
_HOMES: Final = (
    "SELECT HEX(CONVERT(TABLE_SCHEMA USING utf8mb4)) FROM information_schema.TABLES"
    " WHERE TABLE_NAME = {} ORDER BY TABLE_SCHEMA"
)
_NEAR: Final = 0.75
_COMPARED_MAX: Final = 10_000
"""Names among which a near one is looked for."""


@dataclass(frozen=True, slots=True)
class UnknownNames:
    """Names of a scope that the source does not have, a sentence each.

    Attributes:
        slips: Names of which others are near.
        missing: Names without a near other name.
    """

    slips: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, which: ScopeList, what: str, near: str) -> None:
        """Add a name to the slips or the missing.

        Args:
            which: The list that names it.
            what: The kind and name of the missing object.
            near: The similar name that is there; empty for none.
        """
        told = f"{which.value} names what is not there: {what} that this account sees{near}"
        (self.slips if near else self.missing).append(told)


async def unknown_names(query: Query, scope: Scope, before: Scope | None = None) -> UnknownNames:
    """Look for the names of a scope that the source does not have.

    Args:
        query: Asks in the session of whoever defines the binlog: what its account does not see is
            not there.
        scope: The scope that is to be.
        before: The scope that was: names in it have been checked before; None of a new binlog.
    """
    try:
        return await _Looking(query, scope).look(before or Scope(ignores_case=scope.ignores_case))
    except StatementError as error:
        return UnknownNames(
            [f"whether the source has all that the scope names is not known: {error}"]
        )


@dataclass(frozen=True, slots=True)
class _Looking:
    query: Query
    scope: Scope

    async def look(self, before: Scope) -> UnknownNames:
        """As `unknown_names`."""
        found = UnknownNames()
        lists = {which: self.scope.objects(which) - before.objects(which) for which in ScopeList}
        if not any(lists.values()):
            return found
        databases = await self._names(_DATABASES)
        tables: dict[str, Sequence[str]] = {}
        for which, objects in lists.items():
            for name in sorted(objects, key=str):
                database = name.database if isinstance(name, TableName) else name
                if database == SYSTEM_DATABASE:
                    continue
                if not self._is_among(database, databases):
                    said = self._near(database, databases, quote) or await self._as_table(name)
                    found.add(which, f"no database {quote(database)}", said)
                elif isinstance(name, TableName):
                    if database not in tables:
                        tables[database] = await self._names(_TABLES, database)
                    if not self._is_among(name.table, tables[database]):
                        shown = partial(TableName, database)
                        said = self._near(name.table, tables[database], shown)
                        found.add(which, f"no table {name}", said)
        return found

    async def _names(self, statement: str, name: str | None = None) -> Sequence[str]:
        text = statement if name is None else statement.format(text_literal(name))
        return [bytes.fromhex(row[0] or "").decode() for row in await self.query(text + ALL_ROWS)]

    async def _as_table(self, name: ScopeObject) -> str:
        """Return a hint that a name which is no database's is a table's."""
        if isinstance(name, TableName):
            return ""
        homes = await self._names(_HOMES, name)
        return f"; there is the table {TableName(homes[0], name)}" if homes else ""

    def _is_among(self, name: str, names: Iterable[str]) -> bool:
        return any(self.scope.is_same(name, other) for other in names)

    @staticmethod
    def _near(name: str, names: Sequence[str], shown: Callable[[str], object]) -> str:
        if len(names) > _COMPARED_MAX:
            return ""
        near = [other for other in names if other.casefold() == name.casefold()]
        near = near or get_close_matches(name, names, n=1, cutoff=_NEAR)
        return f"; near is {shown(near[0])}" if near else ""
