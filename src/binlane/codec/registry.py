"""Which body decodes which event type: the only registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Self

from binlane.codec.body import Body
from binlane.codec.buffer import Reader
from binlane.codec.control import (
    BinlogCheckpointEvent,
    FormatDescriptionEvent,
    HeartbeatEvent,
    IncidentEvent,
    RotateEvent,
    StopEvent,
)
from binlane.codec.format import Format
from binlane.codec.load_data import (
    AppendBlockEvent,
    BeginLoadQueryEvent,
    DeleteFileEvent,
    ExecuteLoadQueryEvent,
)
from binlane.codec.query import AnnotateRowsEvent, QueryCompressedEvent, QueryEvent
from binlane.codec.rows import (
    DeleteRowsCompressedEvent,
    DeleteRowsCompressedV1Event,
    DeleteRowsEvent,
    DeleteRowsV1Event,
    TableMapEvent,
    UpdateRowsCompressedEvent,
    UpdateRowsCompressedV1Event,
    UpdateRowsEvent,
    UpdateRowsV1Event,
    WriteRowsCompressedEvent,
    WriteRowsCompressedV1Event,
    WriteRowsEvent,
    WriteRowsV1Event,
)
from binlane.codec.transaction import GtidEvent, GtidListEvent, XaPrepareEvent, XidEvent
from binlane.codec.types import EventType
from binlane.codec.variables import IntvarEvent, RandEvent, UserVarEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueEvent:
    """A body that binlane keeps and forwards without reading it.

    Attributes:
        data: The whole body.
    """

    data: bytes

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Keep everything."""
        del format_
        return cls(data=reader.rest())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return self.data


BODIES: Final[Mapping[int, type[Body]]] = MappingProxyType(
    {
        EventType.QUERY: QueryEvent,
        EventType.STOP: StopEvent,
        EventType.ROTATE: RotateEvent,
        EventType.INTVAR: IntvarEvent,
        EventType.APPEND_BLOCK: AppendBlockEvent,
        EventType.DELETE_FILE: DeleteFileEvent,
        EventType.BEGIN_LOAD_QUERY: BeginLoadQueryEvent,
        EventType.EXECUTE_LOAD_QUERY: ExecuteLoadQueryEvent,
        EventType.XA_PREPARE_LOG: XaPrepareEvent,
        EventType.RAND: RandEvent,
        EventType.USER_VAR: UserVarEvent,
        EventType.FORMAT_DESCRIPTION: FormatDescriptionEvent,
        EventType.XID: XidEvent,
        EventType.TABLE_MAP: TableMapEvent,
        EventType.WRITE_ROWS_V1: WriteRowsV1Event,
        EventType.UPDATE_ROWS_V1: UpdateRowsV1Event,
        EventType.DELETE_ROWS_V1: DeleteRowsV1Event,
        EventType.INCIDENT: IncidentEvent,
        EventType.HEARTBEAT: HeartbeatEvent,
        EventType.WRITE_ROWS: WriteRowsEvent,
        EventType.UPDATE_ROWS: UpdateRowsEvent,
        EventType.DELETE_ROWS: DeleteRowsEvent,
        EventType.ANNOTATE_ROWS: AnnotateRowsEvent,
        EventType.BINLOG_CHECKPOINT: BinlogCheckpointEvent,
        EventType.GTID: GtidEvent,
        EventType.GTID_LIST: GtidListEvent,
        EventType.QUERY_COMPRESSED: QueryCompressedEvent,
        EventType.WRITE_ROWS_COMPRESSED_V1: WriteRowsCompressedV1Event,
        EventType.UPDATE_ROWS_COMPRESSED_V1: UpdateRowsCompressedV1Event,
        EventType.DELETE_ROWS_COMPRESSED_V1: DeleteRowsCompressedV1Event,
        EventType.WRITE_ROWS_COMPRESSED: WriteRowsCompressedEvent,
        EventType.UPDATE_ROWS_COMPRESSED: UpdateRowsCompressedEvent,
        EventType.DELETE_ROWS_COMPRESSED: DeleteRowsCompressedEvent,
    }
)
