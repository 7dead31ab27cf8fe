"""Counts of the row changes of event groups."""

from __future__ import annotations

from binlane.log.codec.format import Format
from binlane.log.codec.row_count import count_rows
from binlane.log.codec.table_metadata import table_columns
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.names import TableName
from binlane.statements.scope.scope import Scope


def row_changes(group: EventGroup, format_: Format, scope: Scope) -> int:
    """The row changes of a group in some tables.

    Raises:
        CodecError: If one cannot be decoded.
    """
    return sum(
        count_rows(body, table_columns(table_map, flavor=format_.flavor))
        for _, body, table_map in rows_with_tables(group.events, file=group.file, format_=format_)
        if scope.includes(TableName(table_map.database, table_map.table))
    )
