"""Events → JSON lines, exactly as `docs/reference/json.md` specifies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from binlane.binlogs.cat.json_bodies import body_fields
from binlane.errors import CodecError
from binlane.log.codec.columns import RowChange, decode_rows
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.json_text import json_text
from binlane.log.codec.json_values import json_row
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import Flavor
from binlane.log.grouping.event_group import GroupTracker
from binlane.log.grouping.table_maps import TableMaps

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
        place = {"file": file, "position": event.position}
        inner = {"inner": event.inner} if event.inner else {}
        yield json_text(
            {
                **place,
                "next_position": event.next_position,
                "timestamp": event.header.timestamp,
                "server_id": event.header.server_id,
                "type": event.header.type_name,
                "type_code": event.header.type_code,
                "gtid": gtid_text,
                **inner,
                **body_fields(event),
            }
        )
        if self._with_rows and table_map is not None and isinstance(event.body, RowsEvent):
            target = {"database": table_map.database, "table": table_map.table, "gtid": gtid_text}
            rows = self._rows(event, event.body, table_map, file)
            for row, (kind, images) in enumerate(rows):
                yield json_text({"type": kind, **target, **place, **inner, "row": row, **images})

    def finish(self) -> Iterator[str]:
        """Return nothing: JSON has no lines behind the last event."""
        yield from ()

    def _rows(
        self, event: Event, body: RowsEvent, table_map: TableMapEvent, file: str
    ) -> Iterator[tuple[str, dict[str, object]]]:
        try:
            if self._catalog is None:
                columns = table_columns(table_map, flavor=self._flavor)
            else:
                columns = self._catalog.columns(table_map, flavor=self._flavor)
            for change in decode_rows(body, columns):
                images: dict[str, object] = {
                    name: json_row(columns, image)
                    for name, image in zip(("before", "after"), change, strict=True)
                    if image is not None
                }
                yield change_kind(change), images
        except CodecError as error:
            raise error.at(file, event.position) from None


def change_kind(change: RowChange) -> str:
    """`insert`, `update` or `delete`."""
    before, after = change
    if before is None:
        return "insert"
    return "delete" if after is None else "update"
