"""Tables' definitions as the log told them: columns before an ALTER TABLE, foreign keys.

They are kept in a file of their own beside the journal, which names the file, so that a batch that
is run again finds the definitions of its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Self

from binlane.binlogs.routing.table_links import acting
from binlane.names import TableName
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import StatementKind
from binlane.statements.sql.schema import ForeignKey, Key, Table
from binlane.statements.sql.table_definitions import TableColumn, TableDefinition
from binlane.tables.ranges.statements import Statement


class Definitions:
    """The definitions at one place of a log.

    Args:
        catalog: The tables as they are known there.
        triggered: Tables that have, or had, triggers.
    """

    def __init__(
        self, catalog: SchemaCatalog | None = None, triggered: Iterable[TableName] = ()
    ) -> None:
        self._catalog = SchemaCatalog() if catalog is None else catalog
        self._triggered = set(triggered)

    @property
    def version(self) -> object:
        """Another value after every change."""
        return self._catalog.version, len(self._triggered)

    @property
    def catalog(self) -> SchemaCatalog:
        """The catalog that a reader of the log behind this place needs; not to be changed."""
        return self._catalog

    def table(self, name: TableName) -> Table | None:
        """A table; None if the log never told it well enough."""
        return self._catalog.base_table(name)

    def columns(self, name: TableName) -> dict[str, TableColumn]:
        """A table's columns by their names in small letters; empty if they are not known."""
        definition = self._catalog.definition(name)
        if definition is None:
            return {}
        return {column.name.lower(): column for column in definition.columns}

    def is_told(self, name: TableName) -> bool:
        """True if the log has a table's CREATE TABLE, understood or not."""
        return self.table(name) is not None or self._catalog.is_unknown(name)

    def is_plain(self, name: TableName) -> bool:
        """True if a name is known to be that of a table, and of one without triggers."""
        return self.is_told(name) and name not in self._triggered

    def is_temporary(self, name: TableName) -> bool:
        """True if a statement that has this name can only mean a temporary table."""
        return self.table(name) is None and self._catalog.table(name) is not None

    def acting_keys(self) -> list[ForeignKey]:
        """The foreign keys that change their tables' rows."""
        tables = (self.table(name) for name in self._catalog.tables)
        return [key for table in tables if table for key in acting(table.foreign_keys)]

    def acting_children(self, parent: TableName) -> list[ForeignKey]:
        """The acting foreign keys that refer to a table."""
        return list(acting(self._catalog.children(parent)))

    def primary_key(self, name: TableName) -> tuple[str, ...]:
        """Names of the columns of a table's primary key; empty if it is not known."""
        table = self.table(name)
        keys = () if table is None else table.keys
        return next((key.columns for key in keys if key.is_primary), ())

    def with_children(self, tables: Iterable[TableName]) -> list[TableName]:
        """Some tables, and all whose rows foreign keys may change with theirs."""
        found = list(dict.fromkeys(tables))
        for parent in found:  # it grows
            found += [key.table for key in self.acting_children(parent) if key.table not in found]
        return found

    def follow(self, statement: Statement) -> None:
        """Do what a statement does to the definitions."""
        self._catalog.apply(
            statement.text,
            database=statement.database,
            sql_mode=statement.sql_mode,
            charset=statement.charset,
        )
        effects = statement.effects()
        if effects.kind is StatementKind.CREATE_TRIGGER:
            self._triggered |= {*effects.writes, *effects.reads}
        self._triggered |= {new for old, new in effects.renames if old in self._triggered}

    def copy(self) -> Definitions:
        """Return definitions that change independently of these."""
        return Definitions(self._catalog.copy(), self._triggered)

    def after(self, statement: Statement) -> Definitions:
        """The definitions behind a statement; these stay as they are."""
        found = self.copy()
        found.follow(statement)
        return found

    def fields(self) -> dict[str, Any]:
        """The definitions as JSON has them; attributes that are as usual are left out."""
        tables = (self.table(name) for name in self._catalog.tables)
        return {
            "tables": [_fields(table, {"create_statement"}) for table in tables if table],
            "triggered": sorted((name.database, name.table) for name in self._triggered),
        }

    @classmethod
    def of_fields(cls, found: Mapping[str, Any]) -> Self:
        """Exact inverse, but for the texts of CREATE TABLE."""
        catalog = SchemaCatalog.of_tables(map(_table, found["tables"]))
        return cls(catalog, (TableName(*name) for name in found["triggered"]))


def _fields(value: Any, left_out: set[str]) -> dict[str, Any]:
    made = {}
    for each in fields(value):
        content = getattr(value, each.name)
        if each.name in left_out or (each.default is not MISSING and content == each.default):
            continue
        made[each.name] = _json(content)
    return made


def _json(value: Any) -> Any:
    if isinstance(value, TableName):
        return [value.database, value.table]
    if is_dataclass(value):
        return _fields(value, set())
    return [_json(each) for each in value] if isinstance(value, tuple) else value


def _table(found: Mapping[str, Any]) -> Table:
    plain = _plain(found)
    definition = _plain(found["definition"])
    definition["columns"] = tuple(
        TableColumn(**_plain(each)) for each in found["definition"]["columns"]
    )
    return Table(
        **{
            **plain,
            "name": TableName(*found["name"]),
            "definition": TableDefinition(**definition),
            "keys": tuple(Key(**_plain(each)) for each in found.get("keys", ())),
            "foreign_keys": tuple(map(_foreign_key, found.get("foreign_keys", ()))),
            "union": tuple(TableName(*each) for each in found.get("union", ())),
        }
    )


def _foreign_key(found: Mapping[str, Any]) -> ForeignKey:
    names = {"table": TableName(*found["table"]), "parent": TableName(*found["parent"])}
    return ForeignKey(**{**_plain(found), **names})


def _plain(found: Mapping[str, Any]) -> dict[str, Any]:
    """Lists as tuples, as the values have them."""
    return {name: _tuple(value) for name, value in found.items()}


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
