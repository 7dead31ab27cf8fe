"""The filter of the servers' own tools: `--database` and `--table`.

It stands apart from `event_selection`, since it needs the modules of filters, which take long to
import.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from binlane.binlogs.filters.events import CONTEXT_TYPES, is_frame
from binlane.binlogs.filters.filtered_rows import RowStatements, is_of_rows
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import Flavor
from binlane.names import TableName


class NameFilter:
    """Passes the events that `--database` and `--table` of the servers' tools name."""

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
        if event.header.type_code in CONTEXT_TYPES:
            self._context.append(event)
            return
        if isinstance(event.body, FormatDescriptionEvent):
            self._goes_by_rewritten = event.body.format.flavor is Flavor.MYSQL
        context, self._context = self._context, []
        body = getattr(event.body, "statement", event.body)
        if not isinstance(body, QueryEvent) or is_frame(body) or self._names(body.database):
            yield from context
            yield event

    def finish(self) -> Iterator[Event]:
        """Give the held events of a statement that has no end."""
        yield from self._rows.finish()

    def _includes(self, table: TableName) -> bool:
        is_named = self._table is None or table.table == self._table
        return is_named and self._names(table.database.encode("utf-8", "surrogateescape"))

    def _names(self, database: bytes) -> bool:
        name = database.decode("utf-8", "surrogateescape")
        if self._goes_by_rewritten:
            name = self._rewrites.get(name, name)
        return self._database is None or name == self._database
