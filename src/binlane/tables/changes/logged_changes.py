"""Events of a log → its changes: rows with their columns by name, statements, and what is missing.

A change knows its group and its place; how it looks is in `change_text` and `change_json`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from binlane.binlogs.cat.event_json_lines import change_kind
from binlane.binlogs.filters.events import is_frame
from binlane.binlogs.filters.statement_concern import concern_of
from binlane.errors import CodecError
from binlane.log.codec.columns import ABSENT, Column, RowChange, decode_rows
from binlane.log.codec.control import FormatDescriptionEvent, IncidentEvent
from binlane.log.codec.event import Event
from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent, RowsQueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.statement_text import statement_text
from binlane.log.codec.status_vars import invoker
from binlane.log.codec.table_metadata import primary_key, table_columns
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import Flavor
from binlane.log.grouping.event_group import END_QUERIES, GroupTracker, is_begin
from binlane.log.grouping.table_maps import TableMaps
from binlane.names import TableName
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.statements.sql.statement_kinds import DDL_KINDS
from binlane.tables.columnar.log_notes import statement_of

_UNTOLD: Final = Flavor.MARIADB


class ChangeOperation(Enum):
    """Kinds of changes, by the words that users give for them."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    DDL = "ddl"
    """A statement that defines objects."""
    STATEMENT = "statement"
    """Any other statement that the log holds as text."""
    INCIDENT = "incident"
    """Changes are missing in the log."""


ROW_KINDS: Final = frozenset(
    {ChangeOperation.INSERT, ChangeOperation.UPDATE, ChangeOperation.DELETE}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeGroup:
    """The event group of a change, as far as the log has told of it.

    Attributes:
        number: Number of the group among those that were read; all changes of a group share it.
        gtid: The group's GTID as text; None in logs without GTIDs.
        thread_id: Connection id of the session, where the log tells it; else 0.
        statement: Text of the statement that made the rows, where the log holds it; else empty.
    """

    number: int = 0
    gtid: str | None = None
    thread_id: int = 0
    statement: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a log at its place.

    Attributes:
        kind: The kind of the change.
        file: Base name of the file.
        event: The event that holds the change.
        group: The event group that the change belongs to.
    """

    kind: ChangeOperation
    file: str
    event: Event
    group: ChangeGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRow(Change):
    """A change of a row.

    Attributes:
        table: The table of the row.
        columns: All columns of the table, by name where anything tells the names.
        key: Indexes of the primary key's columns in key order; empty if nothing tells the key.
        number: Number of the change within its event, from 0.
        images: Values before and after, a value a column, as `decode_rows` gives them.
        flavor: Flavor of the server that wrote the log.
    """

    table: TableName
    columns: Sequence[Column]
    key: tuple[int, ...]
    number: int
    images: RowChange
    flavor: Flavor

    @property
    def changed(self) -> tuple[int, ...]:
        """Indexes of the columns whose value an UPDATE changed, or whose old value nobody tells."""
        before, after = self.images
        if before is None or after is None:
            return ()
        pairs = enumerate(zip(before, after, strict=True))
        return tuple(index for index, (old, new) in pairs if new is not ABSENT and old != new)

    def narrowed(self, wanted: Callable[[str], bool]) -> ChangedRow:
        """Return the change without the columns that are not wanted; key columns stay."""
        kept = {
            column.index
            for column in self.columns
            if column.index in self.key or wanted(name_of(column))
        }
        before, after = (
            None
            if image is None
            else tuple(value if at in kept else ABSENT for at, value in enumerate(image))
            for image in self.images
        )
        return replace(self, images=(before, after))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedText(Change):
    """A statement that the log holds as text, or the message of an INCIDENT.

    Attributes:
        database: The default database of the statement.
        text: The statement, or the message.
        user: The account that the log names for the statement, as `user@host`; mostly empty.
    """

    database: str
    text: str
    user: str = ""


def name_of(column: Column) -> str:
    """The name of a column; `@1`, `@2` … where nothing tells it."""
    return f"@{column.index + 1}" if column.name is None else column.name


class ChangeReader:
    """Gives the changes of a stream of events, in log order.

    Args:
        define: Gives the objects of the log's server as they are before an event of a file; called
            once, at the first table whose names of columns the log does not tell. None where
            nobody knows more than the log.
        catalog: The objects before the first event, where they are known at once.
    """

    def __init__(
        self,
        define: Callable[[str, Event], LoggedObjects | None] | None = None,
        catalog: LoggedObjects | None = None,
    ) -> None:
        self._define = define
        self._catalog = catalog
        self._tracker = GroupTracker()
        self._maps = TableMaps()
        self._flavor = _UNTOLD
        self._group = ChangeGroup()

    def follow(self, event: Event) -> None:
        """Follow the log's DDL by its next event, whether its changes are wanted or not.

        Raises:
            CodecError: If the context of a statement is damaged.
        """
        if self._catalog is not None:
            self._catalog.feed(event)

    def feed(self, event: Event, *, file: str) -> Iterator[Change]:
        """Give the changes of the next event that is wanted.

        Args:
            event: The event; those inside of a TRANSACTION_PAYLOAD follow it.
            file: Base name of the event's file.

        Raises:
            CodecError: If rows cannot be decoded, or a statement's context is damaged.
        """
        body = event.body
        if isinstance(body, FormatDescriptionEvent):
            self._flavor = body.format.flavor
        self._take_group(event)
        table_map = self._maps.feed(event, file=file)
        if isinstance(body, RowsEvent):
            assert table_map is not None, "rows have their table map"
            yield from self._rows(event, body, table_map, file)
        elif isinstance(body, IncidentEvent):
            text = body.message.decode("utf-8", "backslashreplace")
            yield LoggedText(
                kind=ChangeOperation.INCIDENT,
                file=file,
                event=event,
                group=self._group,
                database="",
                text=text,
            )
        elif isinstance(body, AnnotateRowsEvent | RowsQueryEvent):
            text = body.query.decode("utf-8", "backslashreplace")
            self._group = replace(self._group, statement=text)
        else:
            yield from self._statement(event, file)

    def _take_group(self, event: Event) -> None:
        place = self._tracker.feed(event)
        body = event.body
        if place.begins:
            gtid = None if place.gtid is None else str(place.gtid)
            self._group = ChangeGroup(number=self._group.number + 1, gtid=gtid)
        if isinstance(body, GtidEvent | QueryEvent) and not self._group.thread_id:
            self._group = replace(self._group, thread_id=body.thread_id or 0)

    def _statement(self, event: Event, file: str) -> Iterator[LoggedText]:
        body = statement_of(event)
        if body is None or body.query in END_QUERIES or is_begin(event):
            return
        if is_frame(body) and body.query.startswith((b"COMMIT", b"SAVEPOINT", b"RELEASE")):
            return
        try:
            kind = ChangeOperation.STATEMENT
            if not isinstance(event.body, ExecuteLoadQueryEvent) and not is_frame(body):
                is_ddl = concern_of(body).kind in DDL_KINDS
                kind = ChangeOperation.DDL if is_ddl else ChangeOperation.STATEMENT
            user = invoker(body)
            text = statement_text(body)
        except CodecError as error:
            raise error.at(file, event.position) from None
        yield LoggedText(
            kind=kind,
            file=file,
            event=event,
            group=self._group,
            database=body.database.decode("utf-8", "backslashreplace"),
            text=text,
            user="@".join(user) if user else "",
        )

    def _rows(
        self, event: Event, body: RowsEvent, table_map: TableMapEvent, file: str
    ) -> Iterator[ChangedRow]:
        try:
            columns = self._columns(event, table_map, file)
            key = self._key(table_map, columns)
            for number, images in enumerate(decode_rows(body, columns)):
                yield ChangedRow(
                    kind=ChangeOperation(change_kind(images)),
                    file=file,
                    event=event,
                    group=self._group,
                    table=table_map.name,
                    columns=columns,
                    key=key,
                    number=number,
                    images=images,
                    flavor=self._flavor,
                )
        except CodecError as error:
            raise error.at(file, event.position) from None

    def _columns(self, event: Event, table_map: TableMapEvent, file: str) -> Sequence[Column]:
        if self._catalog is None:
            columns = table_columns(table_map, flavor=self._flavor)
            if self._define is None or not columns or columns[0].name is not None:
                return columns
            define, self._define = self._define, None
            self._catalog = define(file, event)
            if self._catalog is None:
                return columns
        return self._catalog.columns(table_map, flavor=self._flavor)

    def _key(self, table_map: TableMapEvent, columns: Sequence[Column]) -> tuple[int, ...]:
        key = tuple(part.index for part in primary_key(table_map))
        if key or self._catalog is None:
            return key
        places = {(column.name or "").lower(): column.index for column in columns}
        names = [name.lower() for name in self._catalog.primary_key(table_map.name)]
        return tuple(places[name] for name in names) if {*names} <= {*places} else ()
