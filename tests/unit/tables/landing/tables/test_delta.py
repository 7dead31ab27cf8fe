"""Delta tables whose protocol does not allow their columns."""

from __future__ import annotations

import json
import string
from base64 import b85encode
from pathlib import Path
from struct import pack

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from binlane.errors import StoreError
from binlane.names import TableName
from binlane.tables.landing.range_work import Mode
from binlane.tables.landing.table_files import write_file
from binlane.tables.landing.tables.delta import DeltaFormat
from binlane.tables.landing.tables.formats import TableCommit, What

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
    tables.commit(TABLE, before, TableCommit(what=What.RESHAPE, schema=TIMES, applied=1))
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


def test_rows_that_somebody_marked_as_deleted_do_not_come_back(tmp_path: Path) -> None:
    tables = opened(tmp_path)
    tables.create(TABLE, DAYS)
    now = tables.load(TABLE)
    assert now is not None
    rows = pa.table({"id": pa.array(range(40), pa.int32()), "d": [None] * 40}).cast(DAYS)
    file = write_file(rows, tables.uri(TABLE), "a.parquet", ["id"])
    tables.commit(TABLE, now, TableCommit(what=What.MERGE, add=[file], applied=1))
    log = Path(tables.uri(TABLE)) / "_delta_log"
    add = next(
        action["add"]
        for line in (log / f"{1:020}.json").read_text().splitlines()
        if "add" in (action := json.loads(line))
    )
    # A bitmap of 64 bits, of one of 32 bits, of one array: rows 3 and 7.
    bitmap = pack("<IQIIIHHIHH", 1681511377, 1, 0, 12346, 1, 0, 1, 16, 3, 7)
    python = string.digits + string.ascii_uppercase + string.ascii_lowercase
    python += "!#$%&()*+-;<=>?@^_`{|}~"
    delta = string.digits + string.ascii_lowercase + string.ascii_uppercase
    delta += ".-:+=^!/*?&<>()[]{}@%$#"
    text = b85encode(bitmap).decode().translate(str.maketrans(python, delta))
    sizes = {"sizeInBytes": len(bitmap), "cardinality": 2}
    vector = {"storageType": "i", "pathOrInlineDv": text, **sizes}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}
    entry = [
        {"protocol": protocol},
        {"remove": remove},
        {"add": {**add, "deletionVector": vector}},
    ]
    (log / f"{2:020}.json").write_text("\n".join(map(json.dumps, entry)))
    assert pa.table(DeltaTable(tables.uri(TABLE)).scan()).num_rows == 38
    with pytest.raises(StoreError, match="has deletion vectors, which somebody else wrote"):
        opened(tmp_path).load(TABLE)
