"""Rules that name databases and tables, in the order in which the servers' replicas go through them.

A table is asked for by its own database, never by a session's default one. First the rules of
databases: where there are any to do, the database must be one of them, and those to ignore are not
asked; else it must be none to ignore. Then those of tables, the first that names it decides: do,
ignore, wild do, wild ignore. One that no rule names is wanted unless there are rules of tables to do.

Source: rpl_filter.cc (MariaDB), rpl_filter.cc (MySQL), `db_ok`, `tables_ok`, `db_ok_with_wild_table`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from binlane.names import TableName

_ESCAPE: Final = "\\"
_SIGNS: Final = {"%": ".*", "_": "."}
_KNOWN_MAX: Final = 1 << 16
_NO_NAMES: Final = frozenset[str]()
_NO_TABLES: Final = frozenset[TableName]()


@dataclass(frozen=True)
class WildTable:
    """`database.table` as a pattern of LIKE: `%` any characters, `_` one, a backslash before itself.

    As on the servers it is compared with the whole name, so `%` may stand for a dot as well; names
    that differ in case are two, as they are where case counts.
    """

    text: str

    def __post_init__(self) -> None:
        """Refuse what is no pattern of a table.

        Raises:
            ValueError: If there is no dot between database and table.
        """
        if "." not in self.text.strip("."):
            raise ValueError(f"{self.text!r} is no pattern DATABASE.TABLE, such as shop.% or %.log")

    def matches(self, name: str) -> bool:
        """True if it means `database.table`, or as `database.` the database as such."""
        return self._pattern.fullmatch(name) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts, signs = [], iter(self.text)
        for sign in signs:
            if sign == _ESCAPE:
                parts.append(re.escape(next(signs, _ESCAPE)))
            else:
                parts.append(_SIGNS.get(sign) or re.escape(sign))
        return re.compile("".join(parts), re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class TableRules:
    """Databases and tables to do and to ignore; without any, everything is wanted.

    Attributes:
        do_databases: Databases; only their tables are wanted.
        ignore_databases: Databases whose tables are not wanted.
        do_tables: Tables; only these, and those of the other rules to do, are wanted.
        do_names: Tables of this name in any database; as one of `do_tables` each.
        ignore_tables: Tables that are not wanted.
        ignore_names: Names of tables that are not wanted in any database.
        wild_do: Patterns; only tables that one of them means, or of `do_tables`, are wanted.
        wild_ignore: Patterns of tables that are not wanted.
    """

    do_databases: frozenset[str] = _NO_NAMES
    ignore_databases: frozenset[str] = _NO_NAMES
    do_tables: frozenset[TableName] = _NO_TABLES
    do_names: frozenset[str] = _NO_NAMES
    ignore_tables: frozenset[TableName] = _NO_TABLES
    ignore_names: frozenset[str] = _NO_NAMES
    wild_do: tuple[WildTable, ...] = ()
    wild_ignore: tuple[WildTable, ...] = ()
    _known: dict[TableName, bool] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def is_everything(self) -> bool:
        """True if there is no rule."""
        return not (
            self.do_databases
            or self.ignore_databases
            or self.has_tables_to_do
            or self.ignore_tables
            or self.ignore_names
            or self.wild_ignore
        )

    @property
    def has_tables_to_do(self) -> bool:
        """True if tables that no rule names are not wanted."""
        return bool(self.do_tables or self.do_names or self.wild_do)

    @property
    def does_all(self) -> bool:
        """True if statements about no table, such as FLUSH, are wanted: no rule names anything to do."""
        return not (self.do_databases or self.has_tables_to_do)

    def includes(self, table: TableName) -> bool:
        """True if a table is wanted."""
        found = self._known.get(table)
        if found is None:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            found = self._known[table] = self._passes_database(table.database) and self._decide(
                table
            )
        return found

    def includes_database(self, database: str) -> bool:
        """True if a database as such is wanted: its making, its options, its views and routines.

        Tables that are named one by one are not a database; a pattern such as `shop.%` is.
        """
        if not self._passes_database(database):
            return False
        name = f"{database}."
        if _matches(self.wild_do, name):
            return True
        return not self.has_tables_to_do and not _matches(self.wild_ignore, name)

    def may_include_of(self, database: str) -> bool:
        """True if any table of a database may be wanted."""
        if not self._passes_database(database):
            return False
        is_named = any(table.database == database for table in self.do_tables)
        return not self.has_tables_to_do or is_named or bool(self.do_names or self.wild_do)

    def includes_whole(self, database: str) -> bool:
        """True if all tables of a database are wanted, whatever they are called."""
        is_one_ignored = any(table.database == database for table in self.ignore_tables)
        return (
            self._passes_database(database)
            and not self.has_tables_to_do
            and not (is_one_ignored or self.ignore_names or self.wild_ignore)
        )

    def names_in(self, database: str) -> frozenset[TableName]:
        """The tables of a database that are to be done by their name."""
        return frozenset(
            table for table in self.do_tables if table.database == database and self.includes(table)
        )

    def _passes_database(self, database: str) -> bool:
        if self.do_databases:
            return database in self.do_databases
        return database not in self.ignore_databases

    def _decide(self, table: TableName) -> bool:
        if table in self.do_tables or table.table in self.do_names:
            return True
        if table in self.ignore_tables or table.table in self.ignore_names:
            return False
        if _matches(self.wild_do, table.plain):
            return True
        if _matches(self.wild_ignore, table.plain):
            return False
        return not self.has_tables_to_do


def _matches(patterns: Iterable[WildTable], name: str) -> bool:
    return any(pattern.matches(name) for pattern in patterns)
