"""Events → JSON lines, exactly as the public contract says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Final

from binlane.codec.columns import RowChange, decode_rows
from binlane.codec.control import (
    BinlogCheckpointEvent,
    FormatDescriptionEvent,
    HeartbeatEvent,
    RotateEvent,
)
from binlane.codec.event import Event
from binlane.codec.json_values import json_bytes, json_row
from binlane.codec.load_data import ExecuteLoadQueryEvent
from binlane.codec.query import AnnotateRowsEvent, QueryEvent
from binlane.codec.registry import OpaqueEvent
from binlane.codec.rows import RowsEvent, TableMapEvent
from binlane.codec.status_vars import decode_status_vars, query_text
from binlane.codec.table_metadata import table_columns
from binlane.codec.transaction import GtidEvent, GtidListEvent, TransactionXid
from binlane.codec.types import Flavor
from binlane.errors import CodecError
from binlane.grouping.event_group import GroupTracker
from binlane.grouping.table_maps import TableMaps

_LEFT_OUT: Final = frozenset(
    {"images", "padding", "has_short_id", "record", "server_version_field"}
)
# Names that every line has already for the event's own place.
_RENAMED: Final[Mapping[tuple[type, str], str]] = MappingProxyType(
    {
        (RotateEvent, "file"): "next_file",
        (RotateEvent, "position"): "next_file_position",
        (BinlogCheckpointEvent, "file"): "checkpoint_file",
        (HeartbeatEvent, "file"): "current_file",
    }
)


class JsonLines:
    """Renders the events of one or more files, in order.

    Args:
        with_rows: Whether rows events are followed by one object a row (`-v`).
    """

    def __init__(self, *, with_rows: bool) -> None:
        self._with_rows = with_rows
        self._tracker = GroupTracker()
        self._maps = TableMaps()
        self._flavor = Flavor.MARIADB

    def lines(self, event: Event, *, file: str) -> Iterator[str]:
        """One event, and its rows.

        Args:
            event: The next event of the log.
            file: Base name of its file.

        Raises:
            CodecError: If a rows event has no TABLE_MAP, or with rows if one cannot be decoded.
        """
        if isinstance(event.body, FormatDescriptionEvent):
            self._flavor = event.body.format.flavor
        gtid = self._tracker.feed(event).gtid
        table_map = self._maps.feed(event, file=file)
        place = {"file": file, "position": event.position}
        yield _dump(
            {
                **place,
                "next_position": event.next_position,
                "timestamp": event.header.timestamp,
                "server_id": event.header.server_id,
                "type": event.header.type_name,
                "type_code": event.header.type_code,
                "gtid": None if gtid is None else str(gtid),
                **_body_fields(event),
            }
        )
        if self._with_rows and table_map is not None and isinstance(event.body, RowsEvent):
            for row, line in enumerate(self._rows(event, event.body, table_map, file)):
                target = {"database": table_map.database, "table": table_map.table}
                change_gtid = {"gtid": None if gtid is None else str(gtid)}
                kind, images = line
                yield _dump({"type": kind, **target, **change_gtid, **place, "row": row, **images})

    def _rows(
        self, event: Event, body: RowsEvent, table_map: TableMapEvent, file: str
    ) -> Iterator[tuple[str, dict[str, object]]]:
        try:
            columns = table_columns(table_map, flavor=self._flavor)
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


def _body_fields(event: Event) -> dict[str, object]:
    body = event.body
    if isinstance(body, QueryEvent):
        return _query_fields(body)
    if isinstance(body, ExecuteLoadQueryEvent):
        own = ("file_id", "name_start", "name_end", "duplicate_handling")
        return _query_fields(body.statement) | {name: getattr(body, name) for name in own}
    if isinstance(body, AnnotateRowsEvent):
        return {"query": body.query.decode("utf-8", "backslashreplace")}
    if isinstance(body, OpaqueEvent):
        return {"body": json_bytes(body.data)}
    plain: dict[str, object] = {
        _RENAMED.get((type(body), field.name), field.name): _plain(getattr(body, field.name))
        for field in fields(body)  # type: ignore[arg-type]  # every body is a dataclass
        if field.name not in _LEFT_OUT
    }
    if isinstance(body, FormatDescriptionEvent):
        plain["server_version"] = body.server_version
        plain["post_header_lengths"] = list(body.post_header_lengths)
    if isinstance(body, GtidListEvent):
        plain["gtids"] = [str(gtid) for gtid in body.gtids]
    if isinstance(body, GtidEvent):
        plain["is_standalone"] = body.is_standalone
    if isinstance(body, TableMapEvent):
        plain["column_types"] = list(body.column_types)
    return plain


def _query_fields(body: QueryEvent) -> dict[str, object]:
    return {
        "thread_id": body.thread_id,
        "execution_time": body.execution_time,
        "error_code": body.error_code,
        "status_vars": {
            variable.name.lower(): _plain(variable.value)
            for variable in decode_status_vars(body.status_vars)
        },
        "database": body.database.decode("utf-8", "backslashreplace"),
        "query": query_text(body),
    }


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return json_bytes(value)
    if isinstance(value, TransactionXid):
        return {
            "format_id": value.format_id,
            "global_id": json_bytes(value.global_id),
            "branch": json_bytes(value.branch),
        }
    return value


def _dump(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str)
