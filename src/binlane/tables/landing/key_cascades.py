"""Effects of foreign keys on the rows of child tables, which MariaDB's log does not tell.

InnoDB deletes and changes the children's rows below the log. This module does the same again: from
all images of parents and children in a stretch of the log, in its order, and from the children's
rows before it.

Source: MariaDB 10.11 storage/innobase/row/row0ins.cc, row_ins_foreign_check_on_constraint.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlane.names import TableName
from binlane.statements.sql.schema import ACTING
from binlane.tables.columnar.table_schema import SEQUENCE_COLUMN
from binlane.tables.landing.net_changes import GONE
from binlane.tables.landing.tables.key_order import sorted_by_key

UNCHECKED: Final = "_unchecked"
"""Column of images: nothing cascades that is not logged; see `ranges.unchecked`."""
ORDER: Final = "_order"
"""Column of images: the order of those of one `_seq`."""
IMAGE_COLUMNS: Final = ("_op", "_gtid", "_ts", SEQUENCE_COLUMN, ORDER, UNCHECKED)
"""Columns that stand before a table's own columns in its images."""

_LETTERS: Final = "its foreign key is of text with letters beyond ASCII, which only its server compares as it does"

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A foreign key that acts, its columns named as in rows.

    Attributes:
        child: The table whose rows the key changes.
        columns: Names of the child's columns.
        parent: The table that the key refers to.
        parent_columns: Names of the parent's columns.
        on_delete: The action on the child's rows when the parent's rows go.
        on_update: The action on the child's rows when the parent's columns change.
        is_exact: Whether text is compared byte for byte, not by letters.
    """

    child: TableName
    columns: tuple[str, ...]
    parent: TableName
    parent_columns: tuple[str, ...]
    on_delete: str
    on_update: str
    is_exact: bool = False


Find = Callable[[Link, set[Values]], pa.Table]
"""Function of a link, and keys of its parent: the child's rows before the stretch that have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedTable:
    """Facts about a table with links.

    Attributes:
        key: Key of the current table; empty if it has none.
        columns: Names and types of the table's own columns.
        images: All images of the stretch in log order, with `IMAGE_COLUMNS`; None if there are
            none.
        is_kept: Whether a current table has all of the table's rows before the stretch.
    """

    key: tuple[str, ...] = ()
    columns: pa.Schema = field(default_factory=lambda: pa.schema([]))
    images: pa.Table | None = None
    is_kept: bool = False


@dataclass(slots=True)
class Cascades:
    """Rows of children after the links acted.

    Attributes:
        runs: By child, the rows that differ from what its own images say: the columns of a run.
        versions: By child, all versions that its rows had on the way, in the same form.
        unknown: Children whose rows cannot be known, and why.
    """

    runs: dict[TableName, pa.Table] = field(default_factory=dict)
    versions: dict[TableName, pa.Table] = field(default_factory=dict)
    unknown: dict[TableName, str] = field(default_factory=dict)


def cascades(
    links: Sequence[Link], tables: Mapping[TableName, LinkedTable], find: Find
) -> Cascades:
    """Follow the effects of links in a stretch of the log.

    Args:
        links: All links that act on tables that are landed, and all that act on their parents.
        tables: All tables that are named in links.
        find: Looks for rows of tables that are kept.
    """
    parents = {link.parent for link in links}
    leaving = {
        table: _leaving(known.images, [link for link in links if link.parent == table])
        for table, known in tables.items()
        if table in parents and known.images is not None
    }
    if not any(any(keys.values()) for keys in leaving.values()):
        return Cascades()
    search = _Search(links, tables, find)
    for keys in leaving.values():
        for link, values in keys.items():
            search.follow(link, values)
    found = Cascades(unknown=search.unknown)
    replay = _Replay(links, search)
    replay.run()
    for table, effects in replay.effects.items():
        if table not in found.unknown and replay.versions[table]:
            found.runs[table] = _run(effects.values(), tables[table])
            found.versions[table] = _run(replay.versions[table], tables[table])
    return found


def holding(rows: pa.Table, link: Link, values: set[Values]) -> pa.Int64Array:
    """Return the indexes of a child's rows that have one of some keys of the parent."""
    column = rows.column(link.columns[0])
    if len(link.columns) == 1 and pa.types.is_integer(column.type):
        wanted = pa.array([each[0] for each in values if _fits(each[0], column.type)], column.type)
        mask: Any = pc.is_in(column, value_set=wanted)
        return pa.array(np.flatnonzero(mask.to_numpy(zero_copy_only=False)), pa.int64())
    folded = {_folded(each, link) for each in values}
    places = [
        place
        for place, each in enumerate(_tuples(rows, link.columns))
        if None not in each and _folded(each, link) in folded
    ]
    return pa.array(places, pa.int64())


def _fits(value: object, data_type: pa.DataType) -> bool:
    try:
        pa.scalar(value, data_type)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


# Rows that can be concerned -----------------------------------------------------------------------


def _leaving(images: pa.Table, links: Sequence[Link]) -> dict[Link, set[Values]]:
    """The keys of a parent that go or change, for each link."""
    ops = images.column("_op")
    found: dict[Link, set[Values]] = {}
    checked = pc.invert(images.column(UNCHECKED))
    deleted = images.filter(pc.and_(pc.equal(ops, pa.scalar("delete")), checked))
    before = images.filter(pc.and_(pc.equal(ops, pa.scalar("update_before")), checked))
    after = images.filter(pc.and_(pc.equal(ops, pa.scalar("update_after")), checked))
    for link in links:
        names = list(link.parent_columns)
        if not set(names) <= set(images.column_names):
            continue
        gone = set(_tuples(deleted, names)) if link.on_delete in ACTING else set()
        if link.on_update in ACTING:
            changed = _changed(before, after, names)
            pairs = zip(
                _tuples(before.filter(changed), names),
                _tuples(after.filter(changed), names),
                strict=True,
            )
            for old, new in pairs:
                gone |= {old, new}
        found[link] = {values for values in gone if None not in values}
    return found


def _changed(before: pa.Table, after: pa.Table, names: Sequence[str]) -> Any:
    """Return a mask of the rows in which any of some columns differs."""
    found: Any = pa.array([False] * before.num_rows, pa.bool_())
    for name in names:
        old, new = before.column(name).combine_chunks(), after.column(name).combine_chunks()
        same: Any = pc.fill_null(pc.equal(old, new), pa.scalar(value=False))
        both_null = pc.and_(pc.is_null(old), pc.is_null(new))
        found = pc.or_(found, pc.invert(pc.or_(same, both_null)))
    return found


def _tuples(rows: pa.Table, names: Sequence[str]) -> Iterator[Values]:
    return zip(*(rows.column(name).to_pylist() for name in names), strict=True)


class _Search:
    """The rows that links may reach, and those of the stretch that decide whether they do.

    Attributes:
        rows: By child, its rows before the stretch, by key.
        keys: By child, the keys of all rows that may be reached.
        unknown: Children whose rows cannot be found, and why.
    """

    def __init__(
        self, links: Sequence[Link], tables: Mapping[TableName, LinkedTable], find: Find
    ) -> None:
        self._links = links
        self._find = find
        self._followed: dict[Link, set[Values]] = defaultdict(set)
        self.tables = tables
        self.rows: dict[TableName, dict[Values, dict[str, Any]]] = defaultdict(dict)
        self.keys: dict[TableName, set[Values]] = defaultdict(set)
        self.unknown: dict[TableName, str] = {}

    def follow(self, link: Link, values: set[Values]) -> None:
        """Find the children of some keys, and theirs."""
        waiting = [(link, values)]
        while waiting:
            link, values = waiting.pop()
            fresh = values - self._followed[link]
            if not fresh or link.child in self.unknown:
                continue
            self._followed[link] |= fresh
            known = self.tables[link.child]
            if not link.is_exact and any(not _is_plain(each) for each in fresh):
                self._lose(link.child, _LETTERS)
            elif not known.is_kept:
                self._lose(link.child, _with(link.parent))
            else:
                found = [*self._before(link, fresh), *self._of_images(link, fresh)]
                if found and not known.key:
                    reason = "a foreign key changed its rows, and it has no primary key"
                    self._lose(link.child, reason)
                    continue
                self.keys[link.child] |= {_of(row, known.key) for row in found}
                waiting += self._further(link, found)

    def _further(
        self, link: Link, rows: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[Link, set[Values]]]:
        """The keys that rows of a child are parents by: those they have, and those they get."""
        for further in self._links:
            if further.parent != link.child:
                continue
            names = further.parent_columns
            own = {_of(row, names) for row in rows}
            if not set(names).isdisjoint(link.columns):
                own |= {
                    _of({**row, **dict(zip(link.columns, new, strict=True))}, names)
                    for row in rows
                    for new in self._followed[link]
                }
            yield further, {each for each in own if None not in each}

    def _before(self, link: Link, values: set[Values]) -> list[dict[str, Any]]:
        """The rows of a child before the stretch."""
        found: list[dict[str, Any]] = self._find(link, values).to_pylist()
        for row in found:
            self.rows[link.child][_of(row, self.tables[link.child].key)] = row
        return found

    def _of_images(self, link: Link, values: set[Values]) -> list[dict[str, Any]]:
        """The rows of a child that come in the stretch."""
        images = self.tables[link.child].images
        if images is None:
            return []
        found: list[dict[str, Any]] = images.take(holding(images, link, values)).to_pylist()
        return found

    def _lose(self, table: TableName, reason: str) -> None:
        """A child cannot be known, nor can its children."""
        if table in self.unknown:
            return
        self.unknown[table] = reason
        for link in self._links:
            if link.parent == table:
                self._lose(link.child, _with(table))


def _with(parent: TableName) -> str:
    return f"foreign keys changed its rows with those of {parent.plain}, which are not known"


def _is_plain(values: Values) -> bool:
    return all(not isinstance(value, str) or value.isascii() for value in values)


def _folded(values: Values, link: Link) -> Values:
    """Values that are equal where the server finds them so."""
    if link.is_exact:
        return values
    return tuple(
        value.rstrip(" ").casefold() if isinstance(value, str) else value for value in values
    )


def _of(row: Mapping[str, Any], names: Iterable[str]) -> Values:
    return tuple(row[name] for name in names)


# Effects on these rows ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Event:
    """A change of a row that the log tells."""

    place: tuple[int, int]
    table: TableName
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    gtid: str | None
    time: datetime
    is_checked: bool


Effects = dict[Values, dict[str, Any]]


class _Replay:
    """The stretch, done again with its links.

    Attributes:
        effects: By child, the last state of its rows that links made.
        versions: By child, all states of its rows that links made.
    """

    def __init__(self, links: Sequence[Link], search: _Search) -> None:
        self._links = links
        self._search = search
        self._rows: dict[TableName, dict[Values, dict[str, Any]]] = search.rows
        self._by_link: dict[Link, dict[Values, set[Values]]] = {
            link: defaultdict(set) for link in links
        }
        self.effects: dict[TableName, Effects] = defaultdict(dict)
        self.versions: dict[TableName, list[dict[str, Any]]] = defaultdict(list)
        for table, rows in list(search.rows.items()):
            for key, row in rows.items():
                self._index(table, key, row)

    def run(self) -> None:
        """Do it."""
        for event in sorted(self._events(), key=lambda each: each.place):
            table, key = event.table, self._search.tables[event.table].key
            if event.before is not None and key:
                self._take(table, _of(event.before, key))
            if event.after is not None and key:
                self._put(table, _of(event.after, key), event.after)
            if event.before is not None and event.is_checked:
                self._leave(event, table, event.before, event.after)

    def _events(self) -> Iterator[_Event]:
        parents = {link.parent for link in self._links}
        for table, known in self._search.tables.items():
            if known.images is None:
                continue
            wanted = self._search.keys.get(table, set())
            before: dict[str, Any] | None = None
            for row in _deciding(known, wanted, is_parent=table in parents).to_pylist():
                if row["_op"] == "update_before":
                    before = row
                    continue
                is_gone = row["_op"] == "delete"
                place = (row[SEQUENCE_COLUMN], row[ORDER])
                old, new = (row, None) if is_gone else (before, row)
                yield _Event(place, table, old, new, row["_gtid"], row["_ts"], not row[UNCHECKED])
                before = None

    def _leave(
        self,
        event: _Event,
        parent: TableName,
        old: Mapping[str, Any],
        new: Mapping[str, Any] | None,
    ) -> None:
        """A parent's row is gone, or has other values: what its links do to its children."""
        for link in self._links:
            if link.parent != parent:
                continue
            values = _of(old, link.parent_columns)
            now = None if new is None else _of(new, link.parent_columns)
            action = link.on_delete if now is None else link.on_update
            if None in values or values == now or action not in ACTING:
                continue
            for key in list(self._by_link[link].get(_folded(values, link), ())):
                self._act(event, link, key, action, now)

    def _act(self, event: _Event, link: Link, key: Values, action: str, now: Values | None) -> None:
        child = link.child
        row = self._take(child, key)
        made = {"_gtid": event.gtid, "_ts": event.time, SEQUENCE_COLUMN: event.place[0]}
        if action == "CASCADE" and now is None:
            self._note(child, key, {**row, **made, GONE: True})
            self._leave(event, child, row, None)
            return
        values = now if action == "CASCADE" and now is not None else (None,) * len(link.columns)
        changed = {**row, **dict(zip(link.columns, values, strict=True)), **made}
        after = _of(changed, self._search.tables[child].key)
        self._put(child, after, changed)
        if after != key:
            self._note(child, key, {**row, **made, GONE: True})
        self._note(child, after, {**changed, GONE: False})
        self._leave(event, child, row, changed)

    def _note(self, table: TableName, key: Values, row: dict[str, Any]) -> None:
        self.effects[table][key] = row
        self.versions[table].append(row)

    def _take(self, table: TableName, key: Values) -> dict[str, Any]:
        """Have a row no more, nor what links made of it."""
        self.effects[table].pop(key, None)
        row = self._rows[table].pop(key, {})
        for link in self._links:
            if link.child == table and row:
                self._by_link[link][_folded(_of(row, link.columns), link)].discard(key)
        return row

    def _put(self, table: TableName, key: Values, row: dict[str, Any]) -> None:
        self._take(table, key)
        self._rows[table][key] = row
        self._index(table, key, row)

    def _index(self, table: TableName, key: Values, row: Mapping[str, Any]) -> None:
        for link in self._links:
            if link.child == table:
                values = _of(row, link.columns)
                if None not in values:
                    self._by_link[link][_folded(values, link)].add(key)


def _deciding(known: LinkedTable, wanted: set[Values], *, is_parent: bool) -> pa.Table:
    """The images that say what becomes of children: of parents that go, of wanted children."""
    images = known.images
    assert images is not None, "who calls has looked"
    ops = np.asarray(images.column("_op").to_pylist(), object)
    chosen = (ops != "insert") if is_parent else np.zeros(len(ops), bool)
    if wanted:
        chosen |= np.fromiter((key in wanted for key in _tuples(images, known.key)), bool, len(ops))
    first = np.flatnonzero(ops == "update_before")
    both = chosen[first] | chosen[first + 1]
    chosen[first] = chosen[first + 1] = both
    return images.filter(pa.array(chosen))


def _run(rows: Iterable[dict[str, Any]], known: LinkedTable) -> pa.Table:
    """Give the rows that links made the form of a run: sorted by key, and by `_seq`."""
    moment = pa.timestamp("us", tz="UTC")
    added = [
        pa.field("_gtid", pa.string()),
        pa.field(SEQUENCE_COLUMN, pa.int64()),
        pa.field("_ts", moment),
        pa.field(GONE, pa.bool_()),
    ]
    schema = pa.schema([*known.columns, *added])
    made = pa.Table.from_pylist(list(rows), schema)
    return sorted_by_key(made, known.key)
