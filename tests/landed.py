"""Comparing landed tables with what the servers' SELECT said."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from binlane.names import TableName
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.landing.tables.iceberg import open_catalog
from binlane.tables.landing.tables.table_store import OWN_COLUMNS
from binlane.tables.landing.target_files import segment, table_uri
from tests.fixture_sets import FinalTable

_LONG_BYTES = 2048
_PLAIN: dict[pa.DataType, pa.DataType] = {
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
}


def delta_rows(path: Path) -> pa.Table:
    """All rows of a Delta table, in any order."""
    table = DeltaTable(str(path))
    schema: Any = table.schema().to_arrow()
    return pa.table(table.scan()).cast(pa.schema(schema))


def plain_rows(into: Path, table_format: FormatName, mode: Mode, table: TableName) -> pa.Table:
    """What somebody else's reader of the format sees of a table."""
    if table_format is FormatName.ICEBERG:
        suffix = {Mode.CURRENT: "", Mode.CHANGES: "_changes", Mode.HISTORY: "_history"}[mode]
        catalog = open_catalog(str(into), {})
        name = segment(table.table).replace(".", "@002e") + suffix
        found = catalog.load_table((segment(table.database), name)).scan().to_arrow()
        catalog.close()
        plain: list[tuple[str, pa.DataType]] = [
            (field.name, _PLAIN.get(field.type, field.type)) for field in found.schema
        ]
        return found.cast(pa.schema(plain))
    path = Path(table_uri(str(into), mode, table))
    if table_format is FormatName.DELTA:
        return delta_rows(path)
    return pq.read_table(path)


def current_rows(path: Path) -> Counter[tuple[Any, ...]]:
    """The rows of a current table without the columns that landing adds, and how often each is."""
    table = delta_rows(path)
    own = [name for name in table.column_names if name not in OWN_COLUMNS.names]
    return Counter(
        tuple(_short(row[name]) for name in own) for row in table.select(own).to_pylist()
    )


def final_rows(final: FinalTable, path: Path) -> Counter[tuple[Any, ...]]:
    """What a fixture says of the same table, in the types that the table has."""
    schema = delta_rows(path).schema
    types = [field.type for field in schema if field.name not in OWN_COLUMNS.names]
    assert len(types) == len(final.columns)
    return Counter(
        tuple(_value(value, data_type) for value, data_type in zip(row, types, strict=True))
        for row in final.rows
    )


def _short(value: object) -> object:
    """Long values as the fixtures keep them: length and hash."""
    data = value.encode() if isinstance(value, str) else value
    if isinstance(data, bytes) and len(data) > _LONG_BYTES:
        return len(data), hashlib.sha256(data).hexdigest()
    return value


def _value(value: Any, data_type: pa.DataType) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        return _text_or_bytes(value, data_type)
    if pa.types.is_integer(data_type):
        return int(value)
    if pa.types.is_floating(data_type):
        return float(value)
    if pa.types.is_decimal(data_type):
        return Decimal(value)
    if pa.types.is_date(data_type):
        return _time_or_none(date, value)
    if isinstance(data_type, pa.TimestampType):
        found = _time_or_none(datetime, value)
        return found if data_type.tz is None or found is None else found.replace(tzinfo=UTC)
    return value


def _time_or_none(kind: Any, value: str) -> Any:
    try:
        return kind.fromisoformat(value)
    except ValueError:
        return None


def _text_or_bytes(value: dict[str, Any], data_type: pa.DataType) -> Any:
    if "sha256" in value:
        return value["len"], value["sha256"]
    if "n" in value:
        return value["s"]
    data = bytes.fromhex(value["hex"])
    if not pa.types.is_string(data_type) and not pa.types.is_string_view(data_type):
        return data
    if "s" in value:
        return value["s"]
    try:
        return data.decode()
    except UnicodeDecodeError:
        return json.dumps({"base64": base64.b64encode(data).decode()})
