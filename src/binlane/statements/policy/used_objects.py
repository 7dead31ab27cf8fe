"""Tables and changes that views, foreign keys, routines and triggers bring to a statement.

A view gives tables, columns and locks; a foreign key changes rows of other tables; bodies of routines
and triggers have statements and tables of their own.

Both servers keep the tables of a routine in a map and read it in its own order, which is that of
the Table_map events in the log. MySQL's map is sorted; MariaDB's is a hash whose records move as it
grows, so that its order follows from all that was put in: linear hashing, one bucket split with each
new record.

Source: sql_view.cc `mysql_make_view` of MariaDB 10.11, `parse_view_definition` of MySQL 9.7; sp_head.cc
`merge_table_list` and `add_used_tables_to_table_list` of both; mysys/hash.c. Measured with functions
that write 2 to 12 tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.server import Server
from binlane.statements.sql.fact_finder import facts_of, parts_of
from binlane.statements.sql.facts import RowChange, SetColumn, StatementFacts, TableUse
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.parser import Stopped, parse_body
from binlane.statements.sql.schema import ForeignKey, View
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_finder import Untold
from binlane.statements.sql.statement_kinds import CREATE_TABLE_KINDS, DDL_KINDS
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree.expressions import Name, Node, Query, Select
from binlane.statements.sql.tree.statements import QueryStatement
from binlane.statements.sql.views import has_aggregates, is_volatile, only_select, own_calls


def is_merged(view: View, server: Server) -> bool:
    """True if the tables of a view are locked as the view is, not read into a table first.

    MySQL decides before it knows of aggregates, and merges functions of every kind.
    """
    select = only_select(view.facts.tree)
    if select is None or select.group_by or select.having is not None:
        return False
    calls = list(own_calls(select))
    if "DISTINCT" in select.options or any(call.over is not None for call in calls):
        return False
    return not (server.is_mariadb and (is_volatile(view.facts.tree) or has_aggregates(calls)))


def columns_behind(view: View, columns: Iterable[SetColumn]) -> list[SetColumn]:
    """Return the columns in a view's SELECT for the view's columns; an unknown column stands for itself."""
    known = _selected(view)
    return [
        known.get(each.name.lower(), SetColumn(qualifier=None, name=each.name)) for each in columns
    ]


def names_in_view(view: View, columns: Iterable[str]) -> set[str]:
    """Return a view's names for some columns of its table, in small letters, as far as known."""
    known, asked = _selected(view), set(columns)
    if not known:
        return set() if view.columns else asked  # SELECT *
    return {name for name, column in known.items() if column.name.lower() in asked}


def columns_of_view(view: View) -> list[str]:
    """The columns that the view's columns stand for, in their order, as far as they are told."""
    return [column.name for column in _selected(view).values()]


def updated_uses(
    uses: Sequence[TableUse], columns: Iterable[SetColumn], objects: Objects
) -> tuple[TableUse, ...]:
    """Return the tables of an UPDATE that may change several, each with its own changes.

    A column without a table belongs to the one that has it; if none is known to have it, to all.

    Args:
        uses: Tables that the statement, or the view that it changes, names.
        columns: Columns that the statement sets.
        objects: Catalog in which the tables' columns are looked up.
    """
    candidates = [use for use in uses if use.is_outermost and not use.is_sequence]
    changed = {id(use) for column in columns for use in _owners(column, candidates, objects)}
    return tuple(
        replace(use, changes=frozenset({RowChange.UPDATE}) if id(use) in changed else frozenset())
        if use.is_outermost and not use.is_sequence
        else use
        for use in uses
    )


def _selected(view: View) -> dict[str, SetColumn]:
    """Return the columns that the SELECT names, by the view's names in small letters."""
    tree = view.facts.tree
    node: Node = tree.query if isinstance(tree, QueryStatement) else tree
    while isinstance(node, Query):
        node = node.body
    found: dict[str, SetColumn] = {}
    for index, item in enumerate(node.items if isinstance(node, Select) else ()):
        if isinstance(item.value, Name):
            parts = item.value.parts
            alias = item.alias or parts[-1]
            name = view.columns[index] if index < len(view.columns) else alias
            qualifier = parts[-2] if len(parts) > 1 else None
            found[name.lower()] = SetColumn(qualifier=qualifier, name=parts[-1])
    return found


def _owners(
    column: SetColumn, candidates: Sequence[TableUse], objects: Objects
) -> Iterator[TableUse]:
    if column.qualifier is not None:
        qualifier = column.qualifier.lower()
        named = [use for use in candidates if use.alias.lower() == qualifier]
        exact = [use for use in named if use.alias == column.qualifier]
        yield from exact or named or candidates
        return
    known = [(use, _columns_of(use.name, objects)) for use in candidates]
    owners = [use for use, columns in known if columns and column.name.lower() in columns]
    yield from owners or [use for use, columns in known if columns is None] or candidates


def _columns_of(name: TableName, objects: Objects) -> frozenset[str] | None:
    """Names of a table's or view's columns in small letters; None if they are not all known."""
    table = objects.table(name)
    if table is not None:
        if not table.is_complete:
            return None
        return frozenset(column.name.lower() for column in table.definition.columns)
    view = objects.view(name)
    if view is not None and view.columns:
        return frozenset(column.lower() for column in view.columns)
    if view is None:
        return None
    return _columns_behind(view.facts.tables, objects)


def _columns_behind(uses: Sequence[TableUse], objects: Objects) -> frozenset[str] | None:
    """Return the column names that a view may have: those of its tables; None if not known."""
    found: frozenset[str] = frozenset()
    for use in uses:
        if use.is_outermost and objects.view(use.name) is None:
            columns = _columns_of(use.name, objects)
            if columns is None:
                return None
            found |= columns
    return found or None


ROW_DELETES: Final = frozenset({RowChange.DELETE, RowChange.REPLACE})
"""Changes that remove rows."""
ROW_UPDATES: Final = frozenset({RowChange.UPDATE, RowChange.UPSERT})
"""Changes of rows in place."""


NO_CHANGES: Final[frozenset[RowChange]] = frozenset()
"""Changes of a use that only looks at rows: none."""
_RESTRICTS: Final = frozenset({"RESTRICT", "NO ACTION"})


def cascaded(key: ForeignKey, changes: frozenset[RowChange]) -> frozenset[RowChange]:
    """Return the effect on the child's rows of a change of the parent's rows."""
    found = set()
    if changes & ROW_DELETES:
        if key.on_delete == "CASCADE":
            found.add(RowChange.DELETE)
        elif key.on_delete not in _RESTRICTS:
            found.add(RowChange.UPDATE)
    if changes & ROW_UPDATES and key.on_update not in _RESTRICTS:
        found.add(RowChange.UPDATE)
    return frozenset(found)


def roles(key: ForeignKey, changes: frozenset[RowChange]) -> Iterator[frozenset[RowChange]]:
    """Give the purposes for which MySQL opens a child: to look at its rows, to update, to delete them.

    Args:
        key: Foreign key of the child.
        changes: Changes of the parent's rows.
    """
    is_deleted, is_updated = bool(changes & ROW_DELETES), bool(changes & ROW_UPDATES)
    actions = [key.on_delete] * is_deleted + [key.on_update] * is_updated
    if not _RESTRICTS.isdisjoint(actions):
        yield NO_CHANGES
    if (is_updated and key.on_update not in _RESTRICTS) or (
        is_deleted and key.on_delete not in (*_RESTRICTS, "CASCADE")
    ):
        yield frozenset({RowChange.UPDATE})
    if is_deleted and key.on_delete == "CASCADE":
        yield frozenset({RowChange.DELETE})


def cascaded_kind(key: ForeignKey, kind: str, columns: frozenset[str] | None) -> str | None:
    """Return the change of a child's row that refers to a changed row: `update`, `delete` or None.

    Args:
        key: Foreign key of the child.
        kind: Change of the parent's row: `update` or `delete`.
        columns: Columns that an update changes, in small letters; None: any column may change.
    """
    action = key.on_delete if kind == "delete" else key.on_update
    referred = {column.lower() for column in key.parent_columns}
    is_touched = kind == "delete" or not columns or not referred or not referred.isdisjoint(columns)
    if action in _RESTRICTS or not is_touched:
        return None
    return "delete" if kind == "delete" and action == "CASCADE" else "update"


def identifier(key: ForeignKey) -> str:
    """InnoDB's name of a foreign key."""
    return f"{key.table.database}/{key.name or f'{key.table.table}_ibfk_1'}"


_BODIES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class BodyUse:
    """The statements and tables that a body uses.

    Attributes:
        facts: Facts of the body's statements and expressions, in the order of the text.
        tables: Tables that the body's statements lock, without those that it creates itself; one entry per
            name and alias as often as one statement names it, with all changes that the statements make to
            it.
        is_understood: All of the body could be read.
    """

    facts: tuple[StatementFacts, ...]
    tables: tuple[TableUse, ...]
    is_understood: bool = True


def body_use(body: str, database: str, dialect: Dialect) -> BodyUse:
    """Read the statements and tables that a body uses.

    Args:
        body: The text of one statement, simple or compound.
        database: Database for names without one: that of the routine or trigger.
        dialect: Dialect of the session that made the routine or trigger.
    """
    try:
        return _body_use(body, database, dialect)
    except RecursionError:
        return _NOT_UNDERSTOOD  # which is not kept: with more of the stack left it may be


_NOT_UNDERSTOOD: Final = BodyUse((), (), is_understood=False)


@lru_cache(maxsize=_BODIES_MAX)
def _body_use(body: str, database: str, dialect: Dialect) -> BodyUse:
    try:
        program = parse_body(body, dialect)
        facts = [facts_of(part, body, database, dialect) for part in parts_of(program)]
    except (Stopped, SqlSyntaxError, Untold):
        return _NOT_UNDERSTOOD
    return BodyUse(tuple(facts), _merged(facts))


def _merged(facts: list[StatementFacts]) -> tuple[TableUse, ...]:
    """One entry per table and alias, as the servers keep a routine's tables."""
    own = {
        name
        for each in facts
        if each.effects.kind in CREATE_TABLE_KINDS and each.effects.is_temporary
        for name in each.effects.writes
    }
    merged: dict[tuple[TableName, str, int], TableUse] = {}
    for each in facts:
        if each.effects.kind in DDL_KINDS and each.effects.kind not in CREATE_TABLE_KINDS:
            continue
        counts: dict[tuple[TableName, str], int] = {}
        for use in each.tables:
            if use.name in own:
                continue
            count = counts[use.name, use.alias] = counts.get((use.name, use.alias), 0) + 1
            key = (use.name, use.alias, count)
            before = merged.get(key)
            merged[key] = use if before is None else _joined(before, use)
    return tuple(merged.values())


def _joined(first: TableUse, second: TableUse) -> TableUse:
    return replace(
        first,
        changes=first.changes | second.changes,
        is_locked_for_update=first.is_locked_for_update or second.is_locked_for_update,
    )


_CACHE_SIZE: Final = 4096
_WORD: Final = (1 << 64) - 1
_HASH: Final = (1 << 32) - 1


@lru_cache(_CACHE_SIZE)
def in_server_order(uses: tuple[TableUse, ...], server: Server) -> tuple[TableUse, ...]:
    """Put the tables of a routine in the order in which the server opens them.

    Args:
        uses: In the order of the text; those of one name and alias count as one.
        server: Server whose map is meant.
    """
    by_key: dict[str, list[TableUse]] = {}
    for use in uses:
        key = f"{use.name.database}\0{use.name.table}\0{use.alias}\0"
        by_key.setdefault(key, []).append(use)
    keys = _hashed(tuple(by_key)) if server.is_mariadb else sorted(by_key, key=str.encode)
    return tuple(use for key in keys for use in by_key[key])


def _hashed(keys: Sequence[str]) -> list[str]:
    slots = _Slots()
    for key in keys:
        slots.insert(key)
    return slots.keys


class _Slots:
    """Records in slots; those of a bucket are linked, the first stands in the bucket's own slot.

    Attributes:
        keys: Keys of the records by slot.
    """

    def __init__(self) -> None:
        self.keys: list[str] = []
        self._next: list[int | None] = []
        self._size = 1
        """The next power of two above the number of records."""

    def insert(self, key: str) -> None:
        """Add a record; one bucket is split in two for this."""
        empty = self._split()
        count = len(self.keys)
        slot = _bucket(key, self._size, count)
        if slot == empty:
            self._put(slot, key, None)
        else:
            self._displace(slot, empty, key)
        if count == self._size:
            self._size *= 2

    def _split(self) -> int:
        """Make a new bucket with a slot at the end; the slot that is empty then."""
        count = len(self.keys)
        half = self._size // 2
        self.keys.append("")
        self._next.append(None)
        first = count - half
        if first == count or _bucket(self.keys[first], self._size, count) != first:
            return count
        chain = list(self._chain(first))
        stay = [slot for slot in chain if not _hash(self.keys[slot]) & half]
        move = [slot for slot in chain if _hash(self.keys[slot]) & half]
        if not move:
            return count
        # Each of the two buckets has its first record in its own slot; the others stay.
        records = {slot: self.keys[slot] for slot in chain}
        empty, moved = move[0], [count, *move[1:]]
        kept = stay
        if stay and move[0] == first:
            empty, kept = stay[0], [first, *stay[1:]]
        self._link(moved, [records[slot] for slot in move])
        self._link(kept, [records[slot] for slot in stay])
        return empty

    def _displace(self, slot: int, empty: int, key: str) -> None:
        """Put a record into a slot that is taken; the slot's old record moves to the empty one."""
        owner = _bucket(self.keys[slot], self._size, len(self.keys))
        self._put(empty, self.keys[slot], self._next[slot])
        if owner == slot:
            self._put(slot, key, empty)
            return
        self._put(slot, key, None)
        before = next(one for one in self._chain(owner) if self._next[one] == slot)
        self._next[before] = empty

    def _chain(self, slot: int) -> Iterator[int]:
        """The slots of a bucket's records."""
        following: int | None = slot
        while following is not None:
            yield following
            following = self._next[following]

    def _link(self, slots: Sequence[int], keys: Sequence[str]) -> None:
        for slot, key, following in zip(slots, keys, [*slots, None][1:], strict=True):
            self._put(slot, key, following)

    def _put(self, slot: int, key: str, following: int | None) -> None:
        self.keys[slot], self._next[slot] = key, following


def _bucket(key: str, size: int, count: int) -> int:
    """The bucket of a key among so many."""
    low = _hash(key) & (size - 1)
    return low if low < count else low & (size // 2 - 1)


@lru_cache(_CACHE_SIZE)
def _hash(key: str) -> int:
    """The sum of a key without regard to the case of its letters."""
    total, step = 1, 4
    for byte in key.upper().encode():
        total ^= (((total & 63) + step) * byte + (total << 8)) & _WORD
        step += 3
    return total & _HASH
