"""Which events are printed by the tables that they concern (seed 003, sections 4 to 6).

`TableFilter` goes by what an event writes, as binlane's own lists do (`--do-table` and its like): an
event group of which nothing is left is left out with its GTID. `NameFilter` is the servers' tools'
`--database` and `--table`: a statement goes by its default database, and groups stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from binlane.cat.filters.rows import RowStatements, is_of_rows
from binlane.cat.filters.statements import Concern, concern_of
from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.event import Event
from binlane.codec.query import QueryEvent
from binlane.codec.types import EventType, Flavor
from binlane.grouping.event_group import GroupTracker
from binlane.names import TableName
from binlane.scope.scope import Scope, ScopeList

_CONTEXT_TYPES: Final = frozenset({EventType.INTVAR, EventType.RAND, EventType.USER_VAR})
# The data of files may be too large to be held until the statement that loads it; an XA transaction
# is prepared everywhere, so that its XA COMMIT finds it.
_ALWAYS_PRINTED: Final = frozenset(
    {EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK, EventType.XA_PREPARE_LOG}
)
_FRAMES: Final = (b"BEGIN", b"COMMIT", b"ROLLBACK", b"SAVEPOINT", b"RELEASE SAVEPOINT", b"XA ")


class RenameMode(Enum):
    """What a table is that has been renamed."""

    FOLLOW = "follow"
    """The same table: what was said of its old name holds for the new one as well."""
    NAME = "name"
    """Another one: only names count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLists:
    """Tables and databases to print, or not to print.

    Attributes:
        scope: Those named with their database, and databases.
        do_names: Tables of this name in any database are printed.
        ignore_names: They are not.
        rename: What a renamed table is.
    """

    scope: Scope = field(default_factory=Scope.everything)
    do_names: frozenset[str] = frozenset()
    ignore_names: frozenset[str] = frozenset()
    rename: RenameMode = RenameMode.FOLLOW

    @property
    def is_everything(self) -> bool:
        """Whether no table is left out."""
        return self.scope.is_unscoped and not (self.do_names or self.ignore_names)


class TableFilter:
    """Prints what concerns the tables of lists, and only that.

    Attributes:
        lists: As they are by now: they grow by renames and by tables that could not be made.
    """

    def __init__(self, lists: TableLists, note: Callable[[str], None]) -> None:
        """Start before the first event.

        Args:
            lists: What to print.
            note: Told where something is left out that a list does not plainly say.
        """
        self.lists = lists
        self._note = note
        self._tracker = GroupTracker()
        self._rows = RowStatements(self._includes)
        # Events of the group that are needed only if something else of it is printed.
        self._frame: list[Event] = []
        self._context: list[Event] = []
        self._is_printed = False
        # With RenameMode.NAME: what named tables are called that were renamed.
        self._away: set[TableName] = set()

    def feed(self, event: Event, *, file: str) -> Iterator[Event]:
        """Take the next event; give those to print, in order.

        Raises:
            CodecError: If a rows event has no TABLE_MAP.
        """
        # The events inside a compressed transaction belong to the group that its carrier ends.
        place = None if event.inner else self._tracker.feed(event)
        if place is not None and place.begins:
            yield from self.finish()
        if place is not None and place.is_control:
            yield event
            return
        for kept in self._select(event, file):
            if not self._is_printed:
                yield from self._frame
                self._frame, self._is_printed = [], True
            yield kept
        if place is not None and place.ends and not _is_carrier(event):
            yield from self.finish()

    def finish(self) -> Iterator[Event]:
        """What is held of a group that has no end."""
        rows = list(self._rows.finish())
        if rows and not self._is_printed:
            yield from self._frame
        yield from rows
        self._frame, self._context, self._is_printed = [], [], False

    def _select(self, event: Event, file: str) -> Iterator[Event]:
        type_code = event.header.type_code
        if is_of_rows(event):
            yield from self._rows.feed(event, file=file)
        elif type_code in _CONTEXT_TYPES:
            self._context.append(event)
        elif isinstance(event.body, QueryEvent):
            yield from self._select_query(event, event.body, file)
        elif (statement := getattr(event.body, "statement", None)) is not None:
            yield from self._select_query(event, statement, file)
        elif self._is_printed or type_code in _ALWAYS_PRINTED:
            yield event
        else:
            self._frame.append(event)

    def _select_query(self, event: Event, body: QueryEvent, file: str) -> Iterator[Event]:
        context, self._context = self._context, []
        if _is_frame(body):
            if self._is_printed or body.query.startswith(b"XA "):
                yield event
            else:
                self._frame.append(event)
            return
        concern = concern_of(body)
        if self._passes(concern, f"{file}:{event.position}"):
            yield from context
            yield event
        self._remember(concern)

    def _passes(self, concern: Concern, place: str) -> bool:
        """Whether a statement is printed: all its tables are named, none of them is ignored."""
        if concern.is_open_ended:
            self._note(f"{place}: what a statement writes cannot be told; it is left out")
            return False
        if not (concern.tables or concern.databases):
            return self._does_all
        inside = [
            *map(self._includes_renamed if concern.renames else self._includes, concern.tables),
            *map(self.lists.scope.includes_database, concern.databases),
        ]
        if any(inside) and not all(inside):
            self._note(f"{place}: a statement also concerns other tables; it is left out")
            self._ignore_made(concern)
        return all(inside)

    @property
    def _does_all(self) -> bool:
        return self.lists.scope.log_all and not self.lists.do_names

    def _includes(self, table: TableName) -> bool:
        lists, scope = self.lists, self.lists.scope
        if table.table in lists.ignore_names:
            return False
        if table.table in lists.do_names:
            scope = replace(scope, log_tables=scope.log_tables | {table})
        return scope.includes(table)

    def _includes_renamed(self, table: TableName) -> bool:
        return table in self._away or self._includes(table)

    def _ignore_made(self, concern: Concern) -> None:
        """A table that is not made does not exist: what follows for it could not run."""
        if concern.made is not None and self._includes(concern.made):
            scope = self.lists.scope.added(ScopeList.IGNORE, [concern.made])
            self.lists = replace(self.lists, scope=scope)

    def _remember(self, concern: Concern) -> None:
        """Follow the tables that a statement renames or drops."""
        self._away.difference_update(concern.drops)
        for old, new in concern.renames:
            if self.lists.rename is RenameMode.FOLLOW:
                self._follow(old, new)
            elif old in self._away or (self._includes(old) and not self._includes(new)):
                self._away.discard(old)
                if not self._includes(new):
                    self._away.add(new)

    def _follow(self, old: TableName, new: TableName) -> None:
        scope = self.lists.scope
        if self._includes(old) and not self._includes(new):
            scope = scope.dropped(ScopeList.IGNORE, [new]).added(ScopeList.LOG, [new])
        elif not self._includes(old) and self._includes(new):
            scope = scope.added(ScopeList.IGNORE, [new])
        self.lists = replace(self.lists, scope=scope)


class NameFilter:
    """Prints what `--database` and `--table` of the servers' tools name."""

    def __init__(
        self, *, database: str | None, table: str | None, rewrites: Mapping[str, str]
    ) -> None:
        """Start before the first event.

        Args:
            database: Statements with this default database, rows of its tables; None for all.
            table: Rows of tables of this name; None for all.
            rewrites: New names of databases (`--rewrite-db`), which `database` goes by in logs of
                MySQL; mariadb-binlog goes by the names in the log.
        """
        self._database = database
        self._table = table
        self._rewrites = rewrites
        self._goes_by_rewritten = False
        self._rows = RowStatements(self._includes)
        self._context: list[Event] = []

    def feed(self, event: Event, *, file: str) -> Iterator[Event]:
        """Take the next event; give those to print, in order.

        Raises:
            CodecError: If a rows event has no TABLE_MAP.
        """
        if is_of_rows(event):
            yield from self._rows.feed(event, file=file)
            return
        yield from self._rows.finish()
        if event.header.type_code in _CONTEXT_TYPES:
            self._context.append(event)
            return
        if isinstance(event.body, FormatDescriptionEvent):
            self._goes_by_rewritten = event.body.format.flavor is Flavor.MYSQL
        context, self._context = self._context, []
        body = getattr(event.body, "statement", event.body)
        if not isinstance(body, QueryEvent) or _is_frame(body) or self._names(body.database):
            yield from context
            yield event

    def finish(self) -> Iterator[Event]:
        """What is held of a statement that has no end."""
        yield from self._rows.finish()

    def _includes(self, table: TableName) -> bool:
        is_named = self._table is None or table.table == self._table
        return is_named and self._names(table.database.encode("utf-8", "surrogateescape"))

    def _names(self, database: bytes) -> bool:
        name = database.decode("utf-8", "surrogateescape")
        if self._goes_by_rewritten:
            name = self._rewrites.get(name, name)
        return self._database is None or name == self._database


def _is_carrier(event: Event) -> bool:
    return event.header.type_code == EventType.TRANSACTION_PAYLOAD


def _is_frame(body: QueryEvent) -> bool:
    """Whether a statement only delimits transactions: it passes where anything in them does."""
    return body.query[:20].upper().startswith(_FRAMES) and body.query[:9].upper() != b"BEGIN NOT"


def make_lists(
    *,
    do: Iterable[str | TableName],
    ignore: Iterable[str | TableName],
    do_names: Iterable[str],
    ignore_names: Iterable[str],
    rename: RenameMode,
) -> TableLists:
    """Lists from what a command line names.

    Args:
        do: Databases and tables to print; nothing here nor in `do_names` means everything.
        ignore: Databases and tables not to print.
        do_names: Table names without a database.
        ignore_names: Likewise.
        rename: What a renamed table is.
    """
    do, do_names = list(do), frozenset(do_names)
    scope = Scope(log_all=not do and not do_names)
    return TableLists(
        scope=scope.with_list(ScopeList.LOG, do).with_list(ScopeList.IGNORE, ignore),
        do_names=do_names,
        ignore_names=frozenset(ignore_names),
        rename=rename,
    )
