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
    IgnorableEvent,
    IncidentEvent,
    RotateEvent,
    StopEvent,
)
from binlane.codec.encryption import StartEncryptionEvent
from binlane.codec.format import Format
from binlane.codec.fragments import PartialRowDataEvent
from binlane.codec.group_replication import TransactionContextEvent, ViewChangeEvent
from binlane.codec.heartbeat import HeartbeatEvent, HeartbeatV2Event
from binlane.codec.load_data import (
    AppendBlockEvent,
    BeginLoadQueryEvent,
    DeleteFileEvent,
    ExecuteLoadQueryEvent,
)
from binlane.codec.mysql_transaction import (
    AnonymousGtidEvent,
    MysqlGtidEvent,
    PreviousGtidsEvent,
    TaggedGtidEvent,
)
from binlane.codec.old_load import CreateFileEvent, ExecLoadEvent, LoadEvent, NewLoadEvent
from binlane.codec.payload import LargeTransactionHeaderEvent, TransactionPayloadEvent
from binlane.codec.query import (
    AnnotateRowsEvent,
    QueryCompressedEvent,
    QueryEvent,
    RowsQueryEvent,
)
from binlane.codec.rows import (
    DeleteRowsCompressedEvent,
    DeleteRowsCompressedV1Event,
    DeleteRowsEvent,
    DeleteRowsV1Event,
    PartialUpdateRowsEvent,
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
        EventType.LOAD: LoadEvent,
        EventType.CREATE_FILE: CreateFileEvent,
        EventType.APPEND_BLOCK: AppendBlockEvent,
        EventType.EXEC_LOAD: ExecLoadEvent,
        EventType.DELETE_FILE: DeleteFileEvent,
        EventType.NEW_LOAD: NewLoadEvent,
        EventType.RAND: RandEvent,
        EventType.USER_VAR: UserVarEvent,
        EventType.FORMAT_DESCRIPTION: FormatDescriptionEvent,
        EventType.XID: XidEvent,
        EventType.BEGIN_LOAD_QUERY: BeginLoadQueryEvent,
        EventType.EXECUTE_LOAD_QUERY: ExecuteLoadQueryEvent,
        EventType.TABLE_MAP: TableMapEvent,
        EventType.WRITE_ROWS_V1: WriteRowsV1Event,
        EventType.UPDATE_ROWS_V1: UpdateRowsV1Event,
        EventType.DELETE_ROWS_V1: DeleteRowsV1Event,
        EventType.INCIDENT: IncidentEvent,
        EventType.HEARTBEAT: HeartbeatEvent,
        EventType.IGNORABLE: IgnorableEvent,
        EventType.ROWS_QUERY: RowsQueryEvent,
        EventType.WRITE_ROWS: WriteRowsEvent,
        EventType.UPDATE_ROWS: UpdateRowsEvent,
        EventType.DELETE_ROWS: DeleteRowsEvent,
        EventType.GTID_LOG: MysqlGtidEvent,
        EventType.ANONYMOUS_GTID_LOG: AnonymousGtidEvent,
        EventType.PREVIOUS_GTIDS_LOG: PreviousGtidsEvent,
        EventType.TRANSACTION_CONTEXT: TransactionContextEvent,
        EventType.VIEW_CHANGE: ViewChangeEvent,
        EventType.XA_PREPARE_LOG: XaPrepareEvent,
        EventType.PARTIAL_UPDATE_ROWS: PartialUpdateRowsEvent,
        EventType.TRANSACTION_PAYLOAD: TransactionPayloadEvent,
        EventType.HEARTBEAT_V2: HeartbeatV2Event,
        EventType.GTID_TAGGED_LOG: TaggedGtidEvent,
        EventType.LARGE_TRANSACTION_HEADER: LargeTransactionHeaderEvent,
        EventType.ANNOTATE_ROWS: AnnotateRowsEvent,
        EventType.BINLOG_CHECKPOINT: BinlogCheckpointEvent,
        EventType.GTID: GtidEvent,
        EventType.GTID_LIST: GtidListEvent,
        EventType.START_ENCRYPTION: StartEncryptionEvent,
        EventType.QUERY_COMPRESSED: QueryCompressedEvent,
        EventType.WRITE_ROWS_COMPRESSED_V1: WriteRowsCompressedV1Event,
        EventType.UPDATE_ROWS_COMPRESSED_V1: UpdateRowsCompressedV1Event,
        EventType.DELETE_ROWS_COMPRESSED_V1: DeleteRowsCompressedV1Event,
        EventType.WRITE_ROWS_COMPRESSED: WriteRowsCompressedEvent,
        EventType.UPDATE_ROWS_COMPRESSED: UpdateRowsCompressedEvent,
        EventType.DELETE_ROWS_COMPRESSED: DeleteRowsCompressedEvent,
        EventType.PARTIAL_ROW_DATA: PartialRowDataEvent,
    }
)
REFUSED: Final[Mapping[int, str]] = MappingProxyType(
    {
        EventType.START_V3: "the file was written before MySQL 5.0, in binlog version 1 or 3; "
        "version 4 can be read",
        **dict.fromkeys(
            (
                EventType.PRE_GA_WRITE_ROWS,
                EventType.PRE_GA_UPDATE_ROWS,
                EventType.PRE_GA_DELETE_ROWS,
            ),
            "rows of MySQL 5.1 before its 5.1.18 cannot be read",
        ),
    }
)
"""Types of old test releases that nothing reads any more, and what to say of them."""
