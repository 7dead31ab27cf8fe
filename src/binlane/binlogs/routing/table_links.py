"""Links by which rows of tables change with those of others without a statement or event that says so.

Children of foreign keys that act (MariaDB, and MySQL before 9.6, log the parent's rows alone) and
tables of MERGE tables (a row is logged as that of the MERGE table). The effect of DDL on such links
is followed by its texts. Where a text leaves it open, a link stays: one too many is harmless.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

from binlane.names import TableName
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.foreign_keys import altered_references
from binlane.statements.sql.schema import ForeignKey, Table
from binlane.statements.sql.statement_kinds import (
    CREATE_TABLE_KINDS,
    TABLE_DROPPING_KINDS,
    StatementKind,
)
from binlane.statements.sql.table_changes import created, union_of
from binlane.statements.sql.table_definitions import renamed_columns
from binlane.statements.sql.tree.definitions import AlterTable

_CREATED: Final = CREATE_TABLE_KINDS | {StatementKind.CREATE_TABLE_LIKE}
_DEFINED: Final = _CREATED | {StatementKind.ALTER_TABLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLinks:
    """The links of some tables.

    Attributes:
        keys: Foreign keys that change their children.
        unions: MERGE tables, each with one of its tables.
        known: Tables whose definitions were seen, so that they have no other links as children.
        is_complete: True if all tables were seen but those in `unknown`, so that `known` is not
            asked.
        unknown: Tables whose definitions are not understood.
    """

    keys: frozenset[ForeignKey] = frozenset()
    unions: frozenset[tuple[TableName, TableName]] = frozenset()
    known: frozenset[TableName] = frozenset()
    is_complete: bool = False
    unknown: frozenset[TableName] = field(default=frozenset())

    @property
    def folded(self) -> Self:
        """Fold all names to lower case, for a source that does not tell case apart."""
        return replace(
            self,
            keys=frozenset(
                replace(key, table=key.table.folded, parent=key.parent.folded) for key in self.keys
            ),
            unions=frozenset((merge.folded, child.folded) for merge, child in self.unions),
            known=frozenset(table.folded for table in self.known),
            unknown=frozenset(table.folded for table in self.unknown),
        )

    def knows(self, table: TableName) -> bool:
        """True if a table has no other links as a child than those here."""
        return table not in self.unknown if self.is_complete else table in self.known

    def is_like(self, other: Self) -> bool:
        """True if other links differ in the tables alone whose definitions were seen."""
        return (self.keys, self.unions, self.unknown, self.is_complete) == (
            *(other.keys, other.unions, other.unknown, other.is_complete),
        )

    @property
    def linked(self) -> frozenset[TableName]:
        """All tables that have links, and those whose links are not known."""
        keys = (name for key in self.keys for name in (key.table, key.parent))
        return self.unknown.union(keys, *self.unions)

    def is_merged(self, table: TableName) -> bool:
        """True if a table is a MERGE table, or one of those of such a table."""
        return any(table in pair for pair in self.unions)

    def ancestors(self, table: TableName) -> frozenset[TableName]:
        """The tables by whose rows foreign keys may change those of a table, over any others."""
        found: set[TableName] = set()
        nearest = {table}
        while nearest:
            nearest = {key.parent for key in self.keys if key.table in nearest} - found
            found |= nearest
        return frozenset(found)

    def after(self, facts: StatementFacts, effects: StatementEffects) -> Self:
        """The links behind a statement.

        Args:
            facts: Facts of the statement's text.
            effects: Effects on objects, by the names that these links have.
        """
        if effects.is_temporary:
            return self
        kind = effects.kind
        if effects.stopped_at is not None and not effects.writes and kind in _DEFINED:
            # The statement may be about any table.
            return replace(self, known=frozenset(), is_complete=False)
        if kind in _CREATED:
            return self._created(facts, effects)
        if kind is StatementKind.CREATE_SEQUENCE and not self.is_complete:
            return replace(self, known=self.known | set(effects.writes))
        if kind is StatementKind.ALTER_TABLE:
            return self._altered(facts, effects).renamed(effects)
        if kind is StatementKind.RENAME_TABLE:
            return self.renamed(effects)
        if kind in TABLE_DROPPING_KINDS:
            return self.without(effects.drops)
        if effects.dropped_databases:
            tables = (*(key.table for key in self.keys), *(merge for merge, _ in self.unions))
            named = {*tables, *self.known, *self.unknown}
            return self.without([one for one in named if one.database in effects.dropped_databases])
        return self

    def _created(self, facts: StatementFacts, effects: StatementEffects) -> Self:
        name = effects.writes[0]
        before = self if effects.if_exists else self.without([name])
        if effects.stopped_at is not None:
            return before.not_known(name)
        found = before
        if effects.kind is not StatementKind.CREATE_TABLE_LIKE:
            table = created(name, facts, engine="INNODB", charset=None)
            found = replace(
                before,
                keys=before.keys | _acting(table.foreign_keys),
                unions=before.unions | {(name, child) for child in table.union},
            )
        if effects.if_exists or self.is_complete:
            return found
        return replace(found, known=found.known | {name})

    def _altered(self, facts: StatementFacts, effects: StatementEffects) -> Self:
        name = effects.writes[0]
        links = self.without(effects.drops)
        # CONVERT PARTITION … TO TABLE makes a table like its own, without foreign keys.
        node = facts.tree
        if effects.stopped_at is not None or not isinstance(node, AlterTable):
            return links.not_known(name)
        renamed = renamed_columns(node.actions)
        own = self._of(name)
        links = replace(
            links,
            keys=frozenset(key.with_columns(name, renamed) for key in links.keys - own)
            | _acting(altered_references([*own], name, facts)),
        )
        for action in node.actions:
            if action.option is not None and action.option.name == "UNION":
                others = frozenset(pair for pair in links.unions if pair[0] != name)
                union = {(name, one) for one in union_of(action.option, name)}
                links = replace(links, unions=others | union)
        return links

    def renamed(self, effects: StatementEffects) -> Self:
        """Give the links with the names that tables have behind a statement."""
        links = self
        for old, new in effects.renames:
            links = links._moved(old, new)
        return links

    def _moved(self, old: TableName, new: TableName) -> Self:
        """A table has another name: so have its keys, and those that refer to it have both.

        A key whose parent is renamed with foreign_key_checks=0 may go on meaning the old name.
        """

        def follow(name: TableName) -> TableName:
            return new if name == old else name

        keys = {key.renamed(new) for key in self._of(old)}
        keys |= self.keys - self._of(old)
        keys |= {replace(key, parent=new) for key in keys if key.parent == old}
        return replace(
            self,
            keys=frozenset(keys),
            unions=frozenset((follow(merge), follow(child)) for merge, child in self.unions)
            | self.unions,
            known=frozenset(map(follow, self.known)),
            unknown=frozenset(map(follow, self.unknown)),
        )

    def _of(self, table: TableName) -> frozenset[ForeignKey]:
        return frozenset(key for key in self.keys if key.table == table)

    def without(self, tables: Iterable[TableName]) -> Self:
        """Without those of tables that are gone; who refers to them goes on doing so."""
        gone = frozenset(tables)
        if self.known.isdisjoint(gone) and self.linked.isdisjoint(gone):
            return self
        return replace(
            self,
            keys=frozenset(key for key in self.keys if key.table not in gone),
            unions=frozenset(pair for pair in self.unions if pair[0] not in gone),
            known=self.known - gone,
            unknown=self.unknown - gone,
        )

    def not_known(self, table: TableName) -> Self:
        """Note a table of which nothing is known any more."""
        return replace(self, known=self.known - {table}, unknown=self.unknown | {table})

    def fields(self) -> dict[str, object]:
        """Give the fields as JSON has them, equal for equal links; empty if there are none."""
        found: dict[str, object] = {}
        if self.keys:
            found["keys"] = sorted(json.dumps(_key_fields(key)) for key in self.keys)
        if self.unions:
            found["unions"] = sorted((*_pair(merge), *_pair(child)) for merge, child in self.unions)
        if self.known:
            found["known"] = sorted(map(_pair, self.known))
        if self.unknown:
            found["unknown"] = sorted(map(_pair, self.unknown))
        if self.is_complete:
            found["is_complete"] = True
        return found

    @classmethod
    def of_fields(cls, fields: Mapping[str, object]) -> Self:
        """The links of `fields`.

        Raises:
            ValueError: If they are none.
            KeyError: If one is missing.
            TypeError: If one is of another type.
        """

        def listed(name: str) -> Iterator[Sequence[str]]:
            found = fields.get(name, ())
            assert isinstance(found, list | tuple)
            return iter(found)

        return cls(
            keys=frozenset(_key_of(json.loads(str(one))) for one in listed("keys")),
            unions=frozenset(
                (TableName(one[0], one[1]), TableName(one[2], one[3])) for one in listed("unions")
            ),
            known=frozenset(TableName(*one) for one in listed("known")),
            unknown=frozenset(TableName(*one) for one in listed("unknown")),
            is_complete=bool(fields.get("is_complete", False)),
        )


NO_LINKS: Final = TableLinks()
"""The links where nothing is known."""


def links_of(tables: Iterable[Table], *, is_complete: bool) -> TableLinks:
    """The links of tables that a catalog knows.

    Args:
        tables: Tables, each with its foreign keys.
        is_complete: True if `tables` are all tables of the server.
    """
    keys: set[ForeignKey] = set()
    unions: set[tuple[TableName, TableName]] = set()
    known: set[TableName] = set()
    for table in tables:
        keys |= _acting(table.foreign_keys)
        unions |= {(table.name, child) for child in table.union}
        known.add(table.name)
    return TableLinks(
        keys=frozenset(keys),
        unions=frozenset(unions),
        known=frozenset() if is_complete else frozenset(known),
        is_complete=is_complete,
    )


def _acting(keys: Iterable[ForeignKey]) -> frozenset[ForeignKey]:
    """Keys that act; of a number in the name of one that does not nobody here knows."""
    return frozenset(key for key in keys if key.acts)


def _pair(name: TableName) -> tuple[str, str]:
    return name.database, name.table


def _key_fields(key: ForeignKey) -> list[object]:
    return [
        _pair(key.table),
        key.columns,
        _pair(key.parent),
        key.parent_columns,
        key.on_delete,
        key.on_update,
        key.name,
        *((key.made_up, "index" if key.names_index else "") if key.made_up else ()),
    ]


def _key_of(fields: Sequence[Sequence[str]]) -> ForeignKey:
    # Stores of versions before have no names that servers make up.
    table, columns, parent, parent_columns, on_delete, on_update, name, *more = fields
    made_up, names_index = more or ("", "")
    return ForeignKey(
        table=TableName(*table),
        columns=tuple(columns),
        parent=TableName(*parent),
        parent_columns=tuple(parent_columns),
        on_delete=str(on_delete),
        on_update=str(on_update),
        name=str(name),
        names_index=names_index == "index",
        made_up=str(made_up),
    )
