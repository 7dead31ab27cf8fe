"""The tables of rows events: TABLE_MAP events, remembered until their statement ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from binlane.errors import CodecError
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.rows import DUMMY_TABLE_ID, RowsEvent, TableMapEvent
from binlane.log.grouping.inner import expanded_all


class TableMaps:
    """Table maps of the statement that is being read."""

    def __init__(self) -> None:
        self._maps: dict[int, TableMapEvent] = {}

    def feed(self, event: Event, *, file: str) -> TableMapEvent | None:
        """Take one event in log order.

        Args:
            event: An event of any type.
            file: The file it stands in, for the error.

        Returns:
            The table that a rows event changes; None for every other event, and for the dummy
            rows event that only ends a statement.

        Raises:
            CodecError: If a rows event refers to a table that the statement has not mapped, or
                that has another number of columns.
        """
        body = event.body
        if isinstance(body, TableMapEvent):
            self._maps[body.table_id] = body
            return None
        if not isinstance(body, RowsEvent):
            return None
        table_map = self._maps.get(body.table_id)
        if table_map is None and body.table_id != DUMMY_TABLE_ID:
            raise CodecError(
                f"{event.header.type_name} refers to table id {body.table_id}, "
                "which no TABLE_MAP of its statement names",
                hint="an event is missing before this one: start where its statement does, or fetch the "
                "file again from its source",
            ).at(file, event.position)
        if table_map is not None and body.column_count != len(table_map.column_types):
            raise CodecError(
                f"{event.header.type_name} has {body.column_count} columns, "
                f"its TABLE_MAP has {len(table_map.column_types)}",
                hint="the file is damaged here: fetch it again from its source",
            ).at(file, event.position)
        if body.ends_statement:
            self._maps.clear()
        return table_map


def rows_with_tables(
    events: Iterable[Event], *, file: str, format_: Format | None = None
) -> Iterator[tuple[Event, RowsEvent, TableMapEvent]]:
    """Every rows event of a run of events with its body and its table.

    Args:
        events: The events in log order; those inside a TRANSACTION_PAYLOAD are found in it.
        file: The file they stand in.
        format_: The format of the FORMAT_DESCRIPTION before them, if it is not among them.

    Raises:
        CodecError: As `TableMaps.feed` and `expanded_all`.
    """
    maps = TableMaps()
    for event in expanded_all(events, file=file, format_=format_):
        table_map = maps.feed(event, file=file)
        if table_map is not None and isinstance(event.body, RowsEvent):
            yield event, event.body, table_map
