"""Delta tables whose protocol does not allow their columns."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from binlane.landing.tables.delta import DeltaFormat
from binlane.landing.tables.formats import Change, What
from binlane.landing.work import Mode
from binlane.names import TableName

TABLE = TableName("shop", "orders")
DAYS = pa.schema([pa.field("id", pa.int32())]).append(pa.field("d", pa.date32()))
TIMES = DAYS.set(1, pa.field("d", pa.timestamp("us")))


def opened(lake: Path) -> DeltaFormat:
    return DeltaFormat(str(lake), Mode.CURRENT, "binlane-1")


def test_a_column_of_times_without_zone_comes_with_its_feature(tmp_path: Path) -> None:
    tables = opened(tmp_path)
    tables.create(TABLE, DAYS)
    before = tables.load(TABLE)
    assert before is not None
    tables.commit(TABLE, before, Change(what=What.RESHAPE, schema=TIMES, applied=1))
    found = DeltaTable(tables.uri(TABLE))
    assert found.protocol().reader_features == ["timestampNtz"]
    assert found.to_pyarrow_table().schema.field("d").type == pa.timestamp("us")


def test_a_table_that_lacks_the_feature_is_mended(tmp_path: Path) -> None:
    tables = opened(tmp_path)
    tables.create(TABLE, DAYS)
    log = Path(tables.uri(TABLE)) / "_delta_log"
    metadata = next(
        json.loads(line)
        for line in (log / f"{0:020}.json").read_text().splitlines()
        if "metaData" in json.loads(line)
    )
    text = metadata["metaData"]["schemaString"]
    metadata["metaData"]["schemaString"] = text.replace('"date"', '"timestamp_ntz"')
    (log / f"{1:020}.json").write_text(json.dumps(metadata) + "\n")
    with pytest.raises(DeltaError, match="timestampNtz"):
        DeltaTable(tables.uri(TABLE))
    now = opened(tmp_path).load(TABLE)
    assert now is not None
    assert now.schema == TIMES
    assert DeltaTable(tables.uri(TABLE)).protocol().writer_features is not None
