"""Events → JSON lines, exactly as `docs/reference/json.md` specifies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from binlane.binlogs.cat.json_bodies import body_fields
from binlane.errors import CodecError
from binlane.log.codec.columns import Column, RowChange, decode_rows
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.json_text import json_text
from binlane.log.codec.json_values import json_row
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import Flavor
from binlane.log.grouping.event_group import GroupTracker
from binlane.log.grouping.table_maps import TableMaps
from binlane.names import TableName

if TYPE_CHECKING:
    from binlane.statements.sql.logged_objects import LoggedObjects


class JsonLines:
    """Renders the events of one or more files, in order.

    Args:
        with_rows: True if rows events are followed by one object a row (`-v`).
        catalog: Catalog of column facts that the log does not tell; logged DDL keeps it up to date.
    """

    def __init__(self, *, with_rows: bool, catalog: LoggedObjects | None = None) -> None:
        self._with_rows = with_rows
        self._catalog = catalog
        self._tracker = GroupTracker()
        self._maps = TableMaps()
        self._flavor = Flavor.MARIADB

    def head(self) -> Iterable[str]:
        """Return nothing: JSON has no lines before the first event."""
        return ()

    def lines(self, event: Event, *, file: str) -> Iterator[str]:
        """One event, and its rows.

        Args:
            event: The next event of the log; those inside a TRANSACTION_PAYLOAD follow it.
            file: Base name of its file.

        Raises:
            CodecError: If a rows event has no TABLE_MAP, or with rows if one cannot be decoded.
        """
        if isinstance(event.body, FormatDescriptionEvent):
            self._flavor = event.body.format.flavor
        if self._catalog is not None:
            self._catalog.feed(event)
        gtid = self._tracker.feed(event).gtid
        gtid_text = None if gtid is None else str(gtid)
        table_map = self._maps.feed(event, file=file)
        yield json_text(event_object(event, file=file, gtid=gtid_text))
        if self._with_rows and table_map is not None and isinstance(event.body, RowsEvent):
            place = RowsPlace(event=event, file=file, gtid=gtid_text, table=table_map.name)
            for number, (columns, change) in enumerate(
                self._rows(event, event.body, table_map, file)
            ):
                yield json_text(row_object(place, number, columns, change))

    def finish(self) -> Iterator[str]:
        """Return nothing: JSON has no lines behind the last event."""
        yield from ()

    def _rows(
        self, event: Event, body: RowsEvent, table_map: TableMapEvent, file: str
    ) -> Iterator[tuple[Sequence[Column], RowChange]]:
        try:
            if self._catalog is None:
                columns = table_columns(table_map, flavor=self._flavor)
            else:
                columns = self._catalog.columns(table_map, flavor=self._flavor)
            for change in decode_rows(body, columns):
                yield columns, change
        except CodecError as error:
            raise error.at(file, event.position) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsPlace:
    """The place of a rows event in its log.

    Attributes:
        event: The rows event; it may stand inside of a TRANSACTION_PAYLOAD.
        file: Base name of the event's file.
        gtid: GTID of the event group, as text.
        table: The table whose rows the event changes.
    """

    event: Event
    file: str
    gtid: str | None
    table: TableName


def event_object(event: Event, *, file: str, gtid: str | None) -> dict[str, object]:
    """The JSON object of an event.

    Args:
        event: An event of any type.
        file: Base name of the event's file.
        gtid: GTID of the event group, as text.
    """
    return {
        "file": file,
        "position": event.position,
        "next_position": event.next_position,
        "timestamp": event.header.timestamp,
        "server_id": event.header.server_id,
        "type": event.header.type_name,
        "type_code": event.header.type_code,
        "gtid": gtid,
        **({"inner": event.inner} if event.inner else {}),
        **body_fields(event),
    }


def row_object(
    place: RowsPlace, number: int, columns: Sequence[Column], change: RowChange
) -> dict[str, object]:
    """The JSON object of a row's change.

    Args:
        place: The place of the rows event.
        number: Number of the change within the event, from 0.
        columns: All columns of the table.
        change: The images before and after the change, a value a column.
    """
    images: dict[str, object] = {
        name: json_row(columns, image)
        for name, image in zip(("before", "after"), change, strict=True)
        if image is not None
    }
    event = place.event
    return {
        "type": change_kind(change),
        "database": place.table.database,
        "table": place.table.table,
        "gtid": place.gtid,
        "file": place.file,
        "position": event.position,
        **({"inner": event.inner} if event.inner else {}),
        "row": number,
        **images,
    }


def change_kind(change: RowChange) -> str:
    """`insert`, `update` or `delete`."""
    before, after = change
    if before is None:
        return "insert"
    return "delete" if after is None else "update"
