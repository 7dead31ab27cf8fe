"""The columns of a table in a piece of a log, as its table maps and the statements there tell them."""

from __future__ import annotations

from collections.abc import Iterator

from binlane.log.codec.columns import Column
from binlane.log.codec.rows import TableMapEvent
from binlane.names import TableName
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.ranges.log_file_facts import FilePiece, LogFileFacts

Columns = tuple[Column, ...]


def columns_in(
    facts: LogFileFacts, piece: FilePiece, catalog: LoggedObjects, table: TableName
) -> Iterator[tuple[TableMapEvent, Columns]]:
    """The columns that a table's rows in a piece may have.

    Args:
        facts: The facts of the file.
        piece: A piece of those facts.
        catalog: The tables as the log tells them before the piece; on return, as it tells them
            behind it.
        table: The name of the table.

    Yields:
        Table maps, each with the columns that fit it somewhere in the piece: where within it a map
        stands is not known.
    """
    numbers = range(len(facts.table_maps)) if piece.maps is None else piece.maps
    maps = [
        table_map
        for table_map in (facts.table_maps[number] for number in numbers)
        if TableName(table_map.database, table_map.table) == table
    ]
    found: dict[TableMapEvent, set[Columns]] = {table_map: set() for table_map in maps}

    def look() -> None:
        for table_map, seen in found.items():
            seen.add(catalog.columns(table_map, flavor=facts.format.flavor))

    look()
    for query in facts.queries:
        if piece.start <= query.event.position < piece.stop and catalog.feed(query.event):
            look()
    for table_map, seen in found.items():
        # A statement before or behind the map that is about other columns told nothing of the map.
        told = {columns for columns in seen if any(column.has_schema for column in columns)}
        yield from ((table_map, columns) for columns in told or seen)
