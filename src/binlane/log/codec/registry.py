"""The bodies that decode each event type: the only registry.

A body's module is imported when its type is first met, since few logs have more than a dozen types
and each module costs a start about a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Final, Self

from binlane.log.codec.body import Body
from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format
from binlane.log.codec.types import EventType


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueEvent:
    """A body that binlane keeps and forwards without reading it.

    Attributes:
        data: The whole body as written.
    """

    data: bytes

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Keep all bytes undecoded."""
        del format_
        return cls(data=reader.rest())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return self.data


_HOMES: Final[Mapping[int, str]] = MappingProxyType(
    {
        EventType.QUERY: "query.QueryEvent",
        EventType.STOP: "control.StopEvent",
        EventType.ROTATE: "control.RotateEvent",
        EventType.INTVAR: "variables.IntvarEvent",
        EventType.LOAD: "old_load.LoadEvent",
        EventType.CREATE_FILE: "old_load.CreateFileEvent",
        EventType.APPEND_BLOCK: "load_data.AppendBlockEvent",
        EventType.EXEC_LOAD: "old_load.ExecLoadEvent",
        EventType.DELETE_FILE: "load_data.DeleteFileEvent",
        EventType.NEW_LOAD: "old_load.NewLoadEvent",
        EventType.RAND: "variables.RandEvent",
        EventType.USER_VAR: "variables.UserVarEvent",
        EventType.FORMAT_DESCRIPTION: "control.FormatDescriptionEvent",
        EventType.XID: "transaction.XidEvent",
        EventType.BEGIN_LOAD_QUERY: "load_data.BeginLoadQueryEvent",
        EventType.EXECUTE_LOAD_QUERY: "load_data.ExecuteLoadQueryEvent",
        EventType.TABLE_MAP: "rows.TableMapEvent",
        EventType.WRITE_ROWS_V1: "rows.WriteRowsV1Event",
        EventType.UPDATE_ROWS_V1: "rows.UpdateRowsV1Event",
        EventType.DELETE_ROWS_V1: "rows.DeleteRowsV1Event",
        EventType.INCIDENT: "control.IncidentEvent",
        EventType.HEARTBEAT: "heartbeat.HeartbeatEvent",
        EventType.IGNORABLE: "control.IgnorableEvent",
        EventType.ROWS_QUERY: "query.RowsQueryEvent",
        EventType.WRITE_ROWS: "rows.WriteRowsEvent",
        EventType.UPDATE_ROWS: "rows.UpdateRowsEvent",
        EventType.DELETE_ROWS: "rows.DeleteRowsEvent",
        EventType.GTID_LOG: "mysql_transaction.MysqlGtidEvent",
        EventType.ANONYMOUS_GTID_LOG: "mysql_transaction.AnonymousGtidEvent",
        EventType.PREVIOUS_GTIDS_LOG: "mysql_transaction.PreviousGtidsEvent",
        EventType.TRANSACTION_CONTEXT: "group_replication.TransactionContextEvent",
        EventType.VIEW_CHANGE: "group_replication.ViewChangeEvent",
        EventType.XA_PREPARE_LOG: "transaction.XaPrepareEvent",
        EventType.PARTIAL_UPDATE_ROWS: "rows.PartialUpdateRowsEvent",
        EventType.TRANSACTION_PAYLOAD: "payload.TransactionPayloadEvent",
        EventType.HEARTBEAT_V2: "heartbeat.HeartbeatV2Event",
        EventType.GTID_TAGGED_LOG: "mysql_transaction.TaggedGtidEvent",
        EventType.LARGE_TRANSACTION_HEADER: "payload.LargeTransactionHeaderEvent",
        EventType.ANNOTATE_ROWS: "query.AnnotateRowsEvent",
        EventType.BINLOG_CHECKPOINT: "control.BinlogCheckpointEvent",
        EventType.GTID: "transaction.GtidEvent",
        EventType.GTID_LIST: "transaction.GtidListEvent",
        EventType.START_ENCRYPTION: "encryption.StartEncryptionEvent",
        EventType.QUERY_COMPRESSED: "query.QueryCompressedEvent",
        EventType.WRITE_ROWS_COMPRESSED_V1: "rows.WriteRowsCompressedV1Event",
        EventType.UPDATE_ROWS_COMPRESSED_V1: "rows.UpdateRowsCompressedV1Event",
        EventType.DELETE_ROWS_COMPRESSED_V1: "rows.DeleteRowsCompressedV1Event",
        EventType.WRITE_ROWS_COMPRESSED: "rows.WriteRowsCompressedEvent",
        EventType.UPDATE_ROWS_COMPRESSED: "rows.UpdateRowsCompressedEvent",
        EventType.DELETE_ROWS_COMPRESSED: "rows.DeleteRowsCompressedEvent",
        EventType.PARTIAL_ROW_DATA: "fragments.PartialRowDataEvent",
    }
)
"""Module of this package and class; the tests import them all."""


class _Bodies(Mapping[int, type[Body]]):
    """The classes of `_HOMES`, each imported at its first use."""

    def __getitem__(self, code: int) -> type[Body]:
        module, _, name = _HOMES[code].partition(".")
        body: type[Body] = getattr(import_module(f"{__package__}.{module}"), name)
        return body

    def __iter__(self) -> Iterator[int]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


BODIES: Final[Mapping[int, type[Body]]] = _Bodies()


@cache
def body_type(code: int) -> type[Body]:
    """Return the body class of an event type; `OpaqueEvent` for unknown types."""
    return BODIES.get(code, OpaqueEvent)


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
