"""The life of a row: its changes along a log, through new values of its key and new names of its table.

A key may be that of several rows, one after the other; each of them has a life of its own. A row
whose key is changed stays the same row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from binlane.errors import ConfigError
from binlane.log.codec.columns import ABSENT, Value
from binlane.tables.changes.logged_changes import (
    Change,
    ChangedRow,
    ChangeOperation,
    LoggedText,
    name_of,
)
from binlane.tables.changes.row_changes import TableLog
from binlane.tables.changes.row_key import KeyValues, RowKey, is_same, key_of
from binlane.tables.changes.table_names import Place, TableNames, place_of

_ROUNDS_MAX: Final = 100


@dataclass(slots=True)
class RowLife:
    """The life of one row.

    Attributes:
        table: Number of the row's table among those of the asked name.
        keys: Values that the key had, the last one at the end.
        last: The last change of the row.
        is_alive: True if the row is there at the log's end.
        has_asked_key: True if the key had the asked value at any time.
        values: The values that the row is known to have, by names of columns.
    """

    table: int
    keys: list[KeyValues]
    last: Change | None = None
    is_alive: bool = True
    has_asked_key: bool = False
    values: dict[str, Value] = field(default_factory=dict)

    @property
    def state(self) -> ChangedRow | None:
        """The last change with all values that the row is known to have; None if it is deleted."""
        last = self.last
        if not self.is_alive or not isinstance(last, ChangedRow):
            return None
        values = tuple(self.values.get(name_of(column), ABSENT) for column in last.columns)
        return replace(last, images=(None, values))

    def take(self, change: ChangedRow) -> None:
        """Take the values of the next change; images may hold only a part of them."""
        before, after = change.images
        self.is_alive, self.last = after is not None, change
        if before is None:
            self.values.clear()
        for image in filter(None, (before, after)):
            for column, value in zip(change.columns, image, strict=True):
                if value is not ABSENT:
                    self.values[name_of(column)] = value


@dataclass(frozen=True, slots=True)
class LifeEvent:
    """A change in the life of a row.

    Attributes:
        change: The change: of the row, or a statement about its table.
        lives: The lives that the change is part of.
    """

    change: Change
    lives: tuple[RowLife, ...]


@dataclass(slots=True)
class RowHistory:
    """The changes of the rows that had a key, in log order.

    Attributes:
        events: The changes, each with the lives that it belongs to.
        lives: The lives of the rows, in the order of their beginning.
        texts: Number of statements on the table that the log holds as text, whose rows are unknown.
    """

    events: list[LifeEvent] = field(default_factory=list)
    lives: list[RowLife] = field(default_factory=list)
    texts: int = 0


def row_history(log: TableLog, key: RowKey, note: Callable[[str], None]) -> RowHistory:
    """Follow the rows of a table that had a key at any time.

    Args:
        log: The log and the table.
        key: The key that the user asked for.
        note: Called with remarks on what cannot be told.

    Raises:
        ConfigError: If nothing tells the table's key, or the asked one does not fit it.
        CodecError: If the log is damaged.
        StoreError: If a file cannot be read.
    """
    follower = _Follower(log, key, note)
    for _ in range(_ROUNDS_MAX):
        history = follower.run()
        if history is not None:
            return history
    raise ConfigError(
        f"the row's key changes more than {_ROUNDS_MAX} times",
        key="key",
        hint="ask for its present key",
    )


class _Follower:
    """Reads the changes of some keys, until they hold all keys of the rows that are followed."""

    def __init__(self, log: TableLog, key: RowKey, note: Callable[[str], None]) -> None:
        self._log = log
        self._key = key
        self._names: TableNames = log.names
        # Of each column of the key all names that it has; empty for the primary key.
        self._columns = tuple(self._names.aliases(name) for name in key.names)
        self._searched = self._searched_columns()
        self._wanted = frozenset({key.values})
        self._notes: dict[str, None] = {}
        self._note = note

    def run(self) -> RowHistory | None:
        """Follow the rows once; None if more keys than before are to be looked for."""
        found = _Lives(self._names, self._is_asked)
        self._notes.clear()
        changes = self._log.changes(self._searched, self._wanted, self._take_note)
        for change in changes:
            found.take(change, self._columns)
        keys = frozenset(each for life in found.asked for each in life.keys)
        if not keys <= self._wanted and keys:
            self._wanted |= keys
            return None
        for text in self._notes:
            self._note(text)
        return found.history()

    def _take_note(self, text: str) -> None:
        self._notes[text] = None

    def _is_asked(self, change: ChangedRow, image: Sequence[object]) -> bool:
        """True if an image has the asked key."""
        indexes = change.key
        if self._columns:
            places = {name_of(column).lower(): column.index for column in change.columns}
            found = [[places[name] for name in names if name in places] for names in self._columns]
            if not all(found):
                return False
            indexes = tuple(each[0] for each in found)
        pairs = zip(indexes, self._key.values, strict=False)
        return len(indexes) == len(self._key.values) and all(
            is_same(image[index], text) for index, text in pairs
        )

    def _searched_columns(self) -> list[tuple[str, ...]]:
        """The columns by which rows are found, as all names together that they have anywhere."""
        log, key = self._log, self._key
        if key.names:
            choices: list[tuple[str, ...]] = [()]
            for names in self._columns:
                choices = [(*each, name) for each in choices for name in sorted(names)]
            return choices
        table, given = log.names.asked.plain, len(key.values)
        if not log.keys:
            columns = log.columns or ("@1",)
            raise ConfigError(
                f"nothing tells the primary key of {table}",
                key="key",
                hint=f"name columns, as --key {columns[0]}=…; the log tells "
                f"{', '.join(log.columns) or 'no names: @1 is the first, or give --schema'}",
            )
        fitting = [each for each in log.keys if len(each) == given]
        if not fitting:
            raise ConfigError(
                f"the primary key of {table} is {', '.join(log.keys[-1])}, and the values given "
                f"are {given}: {', '.join(key.values)}",
                key="key",
                hint="write a value for each column in this order, with commas between",
            )
        return fitting


class _Lives:
    """Lives of rows, put together change by change."""

    def __init__(
        self, names: TableNames, is_asked: Callable[[ChangedRow, Sequence[object]], bool]
    ) -> None:
        self._names = names
        self._is_asked = is_asked
        self._lives: list[RowLife] = []
        self._alive: dict[tuple[int, KeyValues], RowLife] = {}
        self._events: list[LifeEvent] = []
        self._statements = {each.place: each for each in names.statements}
        self._texts = 0

    @property
    def asked(self) -> list[RowLife]:
        """The lives of rows that had the asked key at any time."""
        return [life for life in self._lives if life.has_asked_key]

    def history(self) -> RowHistory:
        """Give what was found about the asked rows."""
        asked = self.asked
        wanted = {id(life) for life in asked}
        events = []
        for event in self._events:
            lives = tuple(life for life in event.lives if id(life) in wanted)
            is_text = not isinstance(event.change, ChangedRow)
            if lives or (is_text and not event.lives):
                events.append(LifeEvent(event.change, lives))
        return RowHistory(events=events, lives=asked, texts=self._texts)

    def take(self, change: Change, columns: Sequence[frozenset[str]]) -> None:
        """Follow the next change of the log."""
        place = place_of(change.file, change.event.position)
        if isinstance(change, ChangedRow):
            table = self._names.number_at(change.table, place)
            if table is not None:
                self._take_row(change, table, columns)
        elif isinstance(change, LoggedText):
            self._take_text(change, place)

    def _take_row(self, change: ChangedRow, table: int, columns: Sequence[frozenset[str]]) -> None:
        before, after = change.images
        old, new = (key_of(change, image, columns) for image in (before, after))
        if before is not None and after is not None and new is None:
            new = old  # images that hold only what changed
        if old is None and new is None:
            return
        life = None if old is None else self._alive.pop((table, old), None)
        if life is None:
            known = new if old is None else old
            assert known is not None, "one of them is there"
            life = RowLife(table, [known])
            self._lives.append(life)
        if new is not None:
            if new != life.keys[-1]:
                life.keys.append(new)
            older = self._alive.get((table, new))
            if older is not None:
                older.is_alive = False  # a foreign key deleted it, which no log tells
            self._alive[table, new] = life
        life.take(change)
        life.has_asked_key |= any(
            image is not None and self._is_asked(change, image) for image in (before, after)
        )
        self._events.append(LifeEvent(change, (life,)))

    def _take_text(self, change: LoggedText, place: Place) -> None:
        known = self._statements.get(place)
        if known is None:
            if change.kind is ChangeOperation.STATEMENT:
                self._texts += 1
            if change.kind is not ChangeOperation.DDL:
                # An INCIDENT, or rows that only the text of a statement tells.
                self._events.append(LifeEvent(change, ()))
            return
        lives = tuple(life for (table, _), life in self._alive.items() if table == known.table)
        if lives:
            self._events.append(LifeEvent(change, lives))
        if known.empties:
            for life in lives:
                life.is_alive, life.last = False, change
            self._alive = {key: life for key, life in self._alive.items() if key[0] != known.table}


def changes_column(change: ChangedRow, names: frozenset[str]) -> bool:
    """True if a change sets one of some columns, whose names are in small letters."""
    before, after = change.images
    if before is not None and after is not None:
        return any(name_of(change.columns[index]).lower() in names for index in change.changed)
    image = before if after is None else after
    assert image is not None, "a change has an image"
    return any(
        name_of(column).lower() in names and image[column.index] is not ABSENT
        for column in change.columns
    )
