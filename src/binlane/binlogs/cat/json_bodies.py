"""The body of an event → the fields that its JSON line has, by their names in snake_case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.charsets import charset_of, text_decoder
from binlane.log.codec.control import (
    BinlogCheckpointEvent,
    FormatDescriptionEvent,
    IgnorableEvent,
    RotateEvent,
)
from binlane.log.codec.event import Event
from binlane.log.codec.group_replication import TransactionContextEvent, ViewChangeEvent
from binlane.log.codec.heartbeat import HeartbeatEvent, HeartbeatV2Event
from binlane.log.codec.json_values import json_bytes
from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.numbers import decimal_from_bytes, decode_double
from binlane.log.codec.old_load import CreateFileEvent, LoadEvent, NewLoadEvent
from binlane.log.codec.payload import PayloadCompression, TransactionPayloadEvent
from binlane.log.codec.query import (
    AnnotateRowsEvent,
    QueryCompressedEvent,
    QueryEvent,
    RowsQueryEvent,
)
from binlane.log.codec.registry import OpaqueEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.status_vars import decode_status_vars, query_text
from binlane.log.codec.transaction import GtidEvent, GtidListEvent, TransactionXid
from binlane.log.codec.variables import UserVarEvent, UserVarType

# Fields whose content other fields say already, and the padding of an event.
_LEFT_OUT: Final = frozenset(
    {"images", "padding", "has_short_id", "record", "server_version_field", "view_id_field", "head"}
)
# Names that every line has already for the event's own place.
_RENAMED: Final[Mapping[tuple[type, str], str]] = MappingProxyType(
    {
        (RotateEvent, "file"): "next_file",
        (RotateEvent, "position"): "next_file_position",
        (BinlogCheckpointEvent, "file"): "checkpoint_file",
        (HeartbeatEvent, "file"): "current_file",
        (HeartbeatEvent, "position"): "current_position",
        (HeartbeatV2Event, "file"): "current_file",
        (HeartbeatV2Event, "position"): "current_position",
        (LoadEvent, "file"): "loaded_file",
        (NewLoadEvent, "file"): "loaded_file",
        (CreateFileEvent, "file"): "loaded_file",
    }
)


def body_fields(event: Event) -> dict[str, object]:
    """Make the printed fields of a body, in a form that `codec.json_text` takes."""
    body = event.body
    special = _SPECIAL.get(type(body), lambda _: {})(body)
    if type(body) in _WHOLE:
        return special
    plain: dict[str, object] = {
        _RENAMED.get((type(body), field.name), field.name): _plain(getattr(body, field.name))
        for field in fields(body)  # type: ignore[arg-type]  # every body is a dataclass
        if field.name not in _LEFT_OUT
    }
    if not plain.get("tail", True):
        del plain["tail"]
    if isinstance(body, RowsEvent) and body.partition_ids:
        plain["partition_ids"] = body.partition_ids
    return plain | special


def _format(body: FormatDescriptionEvent) -> dict[str, object]:
    return {
        "post_header_lengths": list(body.post_header_lengths),
        "server_version": body.server_version,
    }


def _query(body: QueryEvent) -> dict[str, object]:
    tables_info = {} if body.tables_info is None else {"tables_info": body.tables}
    return {
        "thread_id": body.thread_id,
        "execution_time": body.execution_time,
        "error_code": body.error_code,
        "status_vars": {
            variable.name.lower(): variable.value
            for variable in decode_status_vars(body.status_vars)
        },
        "database": _text(body.database),
        "query": query_text(body),
        **tables_info,
    }


def _execute_load_query(body: ExecuteLoadQueryEvent) -> dict[str, object]:
    own = ("file_id", "name_start", "name_end", "duplicate_handling")
    return _query(body.statement) | {name: getattr(body, name) for name in own}


def _load(body: LoadEvent) -> dict[str, object]:
    return {
        "endings": list(map(_text, body.endings)),
        "field_names": list(map(_text, body.field_names)),
        "table": _text(body.table),
        "database": _text(body.database),
        "loaded_file": _text(body.file),
    }


def _user_var(body: UserVarEvent) -> dict[str, object]:
    value = None if body.is_null else _user_value(body)
    kinds = {int(kind): kind.name for kind in UserVarType}
    kind = None if body.type_code is None else kinds.get(body.type_code, body.type_code)
    return {
        "name": _text(body.name),
        "value_type": kind,
        "collation_id": body.collation_id,
        "value": value,
        "flags": body.flags,
    }


def _user_value(body: UserVarEvent) -> object:
    """A number or text; its bytes where they are no value of their type."""
    data = body.value
    try:
        if body.type_code == UserVarType.INT:
            return int.from_bytes(data, "little", signed=not body.flags)
        if body.type_code == UserVarType.REAL:
            return decode_double(Reader(data))
        if body.type_code == UserVarType.DECIMAL and len(data) > 1:
            return format(decimal_from_bytes(data[2:], data[0], data[1]), "f")
        charset = charset_of(body.collation_id)
        decode = None if charset is None else text_decoder(charset)
        if body.type_code == UserVarType.STRING and decode is not None:
            return decode(data)
    except (CodecError, UnicodeDecodeError):
        pass
    return json_bytes(data)


def _transaction_context(body: TransactionContextEvent) -> dict[str, object]:
    return {"server_uuid": _text(body.server_uuid)}


def _view_change(body: ViewChangeEvent) -> dict[str, object]:
    certification = [{"key": key, "value": value} for key, value in body.certification]
    return {"view_id": body.view_id, "certification": certification}


def _payload(body: TransactionPayloadEvent) -> dict[str, object]:
    return {
        "compression": PayloadCompression(body.compression).name,
        "uncompressed_size": body.uncompressed_size,
        "payload_size": len(body.payload),
    }


_SPECIAL: Final[Mapping[type, Callable[[Any], dict[str, object]]]] = MappingProxyType(
    {
        **dict.fromkeys((QueryEvent, QueryCompressedEvent), _query),
        **dict.fromkeys((LoadEvent, NewLoadEvent, CreateFileEvent), _load),
        ExecuteLoadQueryEvent: _execute_load_query,
        AnnotateRowsEvent: lambda body: {"query": _text(body.query)},
        RowsQueryEvent: lambda body: {"query": _text(body.query)},
        OpaqueEvent: lambda body: {"body": body.data},
        IgnorableEvent: lambda body: {"body": body.data},
        FormatDescriptionEvent: _format,
        GtidEvent: lambda body: {"is_standalone": body.is_standalone},
        GtidListEvent: lambda body: {"gtids": list(map(str, body.gtids))},
        PreviousGtidsEvent: lambda body: {
            "gtid_set": str(body.position),
            "has_tags": body.has_tags,
        },
        TableMapEvent: lambda body: {"column_types": list(body.column_types)},
        TransactionContextEvent: _transaction_context,
        TransactionPayloadEvent: _payload,
        UserVarEvent: _user_var,
        ViewChangeEvent: _view_change,
    }
)
# Of these bodies nothing is printed beyond the fields that `_SPECIAL` gives.
_WHOLE: Final = frozenset(
    {
        QueryEvent,
        QueryCompressedEvent,
        ExecuteLoadQueryEvent,
        AnnotateRowsEvent,
        RowsQueryEvent,
        OpaqueEvent,
        IgnorableEvent,
        PreviousGtidsEvent,
        TransactionPayloadEvent,
        UserVarEvent,
    }
)


def _text(data: bytes) -> str:
    """Return UTF-8 text; invalid bytes become lone surrogates, and then all of it base64."""
    return data.decode("utf-8", "surrogateescape")


def _plain(value: object) -> object:
    if isinstance(value, TransactionXid):
        return {
            "format_id": value.format_id,
            "global_id": value.global_id,
            "branch": value.branch,
        }
    return value
