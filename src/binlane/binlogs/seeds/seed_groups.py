"""Rows as transactions of bounded size, and as event groups with the GTIDs that the caller gives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from binlane.binlogs.routing.packed_rows import EVENT_BYTES_MAX
from binlane.binlogs.routing.routed_group import RoutedGroup
from binlane.client.rows.logged_table import LoggedTable
from binlane.client.rows.table_rows import RowBatch
from binlane.log.codec.body import Body
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import (
    LOGICAL_TIMESTAMPS,
    MysqlGtidEvent,
    TaggedGtidEvent,
)
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent, WriteRowsEvent, WriteRowsV1Event
from binlane.log.codec.status_vars import StatusVar, encode_status_vars
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import EventType, Flavor, GtidFlag, RowsFlag
from binlane.names import TableName
from binlane.positions import AnyGtid, Gtid

TABLE_ID: Final = 1
"""The table id in seeds: a group has rows of one table alone."""
TRANSACTION_BYTES_MAX: Final = 4 << 20
TRANSACTION_ROWS_MAX: Final = 10_000
_NO_FOREIGN_KEY_CHECKS: Final = 1 << 26
_NO_UNIQUE_CHECKS: Final = 1 << 27
_UTF8MB4: Final = 45
_PADDING: Final = bytes(5)
"""What makes the GTID event of MariaDB 10.11 as long as its server's."""
_MICROSECONDS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedTransaction:
    """Rows of one table that are inserted together.

    Attributes:
        table: The table of the rows.
        rows: The number of these rows.
        bodies: A TABLE_MAP, and the rows events behind it. Foreign keys are not checked for them,
            so that the order of the tables is free.
    """

    table: TableName
    rows: int
    bodies: tuple[TableMapEvent | WriteRowsEvent, ...]


def seed_group(
    transaction: SeedTransaction, gtid: AnyGtid, *, timestamp: int, server_id: int, format_: Format
) -> RoutedGroup:
    """An event group that a binlog can append.

    Args:
        transaction: The rows of the group.
        gtid: The group's GTID, of the flavor of the log; MariaDB's says the server's id itself.
        timestamp: Seconds since 1970 for the headers.
        server_id: The id of the server that the headers name.
        format_: The format of the source's events, whose server's version MySQL's GTIDs tell.
    """
    if isinstance(gtid, Gtid):
        server_id = gtid.server_id
        head: list[Body] = [
            GtidEvent(
                sequence=gtid.sequence,
                domain_id=gtid.domain_id,
                flags=GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL,
                flags_extra=0,
                padding=_PADDING,
            )
        ]
    else:
        facts: dict[str, Any] = {
            "flags": 0,
            "source_id": gtid.source_id,
            "sequence": gtid.sequence,
            "last_committed": 0,
            "sequence_number": 0,
            "immediate_commit_timestamp": timestamp * _MICROSECONDS,
            "transaction_length": 0,
            "immediate_server_version": _version_number(format_.server_version),
        }
        head = [
            TaggedGtidEvent(tag=gtid.tag, **facts)
            if gtid.tag
            else MysqlGtidEvent(timestamp_type=LOGICAL_TIMESTAMPS, **facts),
            _BEGIN,
        ]
    bodies = [*head, *transaction.bodies, XidEvent(xid=0)]
    return RoutedGroup(
        gtid=gtid,
        events=tuple(
            Event(
                EventHeader(
                    timestamp=timestamp,
                    type_code=_type_code(body),
                    server_id=server_id,
                    length=0,
                    next_position=0,
                    flags=0,
                ),
                body,
            )
            for body in bodies
        ),
        is_alone=True,
    )


def stated(text: str, database: str, flavor: Flavor) -> QueryEvent:
    """A statement that makes something; neither foreign nor unique keys are checked while it runs.

    Args:
        text: The statement, as SHOW CREATE prints it with sql_mode=''.
        database: The default database of the statement.
        flavor: The flavor of the log that it is for.
    """
    variables = [
        StatusVar(0, "FLAGS2", _NO_FOREIGN_KEY_CHECKS | _NO_UNIQUE_CHECKS),
        StatusVar(1, "SQL_MODE", 0),
        StatusVar(4, "CHARSET", (_UTF8MB4, _UTF8MB4, _UTF8MB4)),
    ]
    if flavor is Flavor.MYSQL:
        # SHOW CREATE TABLE leaves a TIMESTAMP that may be NULL, and has no default, to this.
        variables.append(StatusVar(16, "EXPLICIT_DEFAULTS_FOR_TIMESTAMP", 1))
    return QueryEvent(
        thread_id=0,
        execution_time=0,
        error_code=0,
        status_vars=encode_status_vars(variables),
        database=database.encode(),
        query=text.encode(),
    )


_BEGIN: Final = QueryEvent(
    thread_id=0, execution_time=0, error_code=0, status_vars=b"", database=b"", query=b"BEGIN"
)


def _type_code(body: Body) -> int:
    if isinstance(body, WriteRowsEvent):
        return body.event_type
    return next(code for kind, code in _TYPE_CODES if type(body) is kind)


_TYPE_CODES: Final = (
    (GtidEvent, EventType.GTID),
    (MysqlGtidEvent, EventType.GTID_LOG),
    (TaggedGtidEvent, EventType.GTID_TAGGED_LOG),
    (QueryEvent, EventType.QUERY),
    (TableMapEvent, EventType.TABLE_MAP),
    (XidEvent, EventType.XID),
)


def _version_number(text: str) -> int:
    """80036 of `8.0.36-log`."""
    parts = [int(part) for part in re.findall(r"\d+", text)[:3]]
    major, minor, patch = (*parts, 0, 0, 0)[:3]
    return major * 10_000 + minor * 100 + patch


def in_transactions(
    table: LoggedTable,
    batches: Iterable[RowBatch],
    *,
    bytes_max: int = TRANSACTION_BYTES_MAX,
    rows_max: int = TRANSACTION_ROWS_MAX,
) -> Iterator[SeedTransaction]:
    """Rows of a table as transactions that insert them.

    Args:
        table: The table of the rows.
        batches: The rows, in any number of batches.
        bytes_max: Bytes of the images of a transaction, unless one row has more.
        rows_max: The most rows of a transaction.
    """
    pending = _Pending(table)
    for batch in batches:
        for images, rows in _events(batch, rows_max):
            if pending.rows and (
                pending.rows + rows > rows_max or pending.size_bytes + len(images) > bytes_max
            ):
                yield pending.take()
            pending.add(images, rows)
    if pending.rows:
        yield pending.take()


def _events(batch: RowBatch, rows_max: int) -> Iterator[tuple[bytes, int]]:
    """The images of a batch in pieces that have room in an event, with the rows of each."""
    ends, start, first = batch.image_ends, 0, 0
    while first < len(ends):
        last = int(np.searchsorted(ends, start + EVENT_BYTES_MAX, side="right"))
        last = min(max(last, first + 1), first + rows_max, len(ends))
        stop = int(ends[last - 1])
        yield batch.images[start:stop], last - first
        start, first = stop, last


class _Pending:
    """A transaction that is being filled."""

    def __init__(self, table: LoggedTable) -> None:
        self._table = table
        self._map = table.table_map(TABLE_ID)
        self._kind = WriteRowsV1Event if table.flavor is Flavor.MARIADB else WriteRowsEvent
        count = len(table.columns)
        self._present = ((1 << count) - 1).to_bytes((count + 7) // 8, "little")
        self._parts: list[bytes] = []
        self.rows = 0
        self.size_bytes = 0

    def add(self, images: bytes, rows: int) -> None:
        self._parts.append(images)
        self.rows += rows
        self.size_bytes += len(images)

    def take(self) -> SeedTransaction:
        last = len(self._parts) - 1
        events = [
            self._event(images, RowsFlag.STMT_END if number == last else 0)
            for number, images in enumerate(self._parts)
        ]
        made = SeedTransaction(table=self._table.name, rows=self.rows, bodies=(self._map, *events))
        self._parts, self.rows, self.size_bytes = [], 0, 0
        return made

    def _event(self, images: bytes, flags: int) -> WriteRowsEvent:
        return self._kind(
            table_id=TABLE_ID,
            flags=flags | RowsFlag.NO_FOREIGN_KEY_CHECKS,
            extra=b"" if self._kind.has_extra else None,
            column_count=len(self._table.columns),
            columns_present=self._present,
            columns_present_after=None,
            images=images,
        )
