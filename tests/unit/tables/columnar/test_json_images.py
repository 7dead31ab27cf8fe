"""Row images as JSON: by kernels what the reference gives, and that is what `cat` prints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from binlane.positions import file_number
from binlane.tables.columnar.table_schema import JSON_COLUMN, TABLE, ReadOptions
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.read import read_range
from tests.fixture_sets import fixture_set

SETS = (
    "md1011_metadata_full",
    "md1011_types_enum_set",
    "md1011_types_json_mariadb",
    "md1011_types_numeric",
    "md1011_types_string",
    "md1011_types_temporal",
    "md1011_types_temporal_old",
    "md1011_compressed",
    "md1011_rowimage_minimal",
    "my97_types_json",
    "my97_types_temporal",
    "my97_types_geometry",
    "my97_json_partial",
    "my97_compressed",
)


def images(
    folder: Path, name: str, *, by_kernels: bool
) -> Iterator[tuple[str, int, int, str, str]]:
    """The images of a log, each with its table, place and operation."""
    want = ReadOptions(as_json=True)
    for file, data in fixture_set(name).binlogs:
        path = folder / file
        path.write_bytes(data)
        piece = LogRange(uri=str(path), name=file, number=file_number(file))
        for batch in read_range(piece, want, by_kernels=by_kernels):
            assert isinstance(batch, pa.RecordBatch)
            assert batch.schema.metadata is not None
            for row in batch.to_pylist():
                place = row["_position"], row["_row"], row["_op"]
                yield batch.schema.metadata[TABLE].decode(), *place, row[JSON_COLUMN]


@pytest.mark.parametrize("name", SETS)
def test_kernels_give_what_the_reference_gives(name: str, tmp_path: Path) -> None:
    expected = sorted(images(tmp_path, name, by_kernels=False))
    assert expected
    assert sorted(images(tmp_path, name, by_kernels=True)) == expected
