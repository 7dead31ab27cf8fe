"""Reading Parquet files of tables and runs: some rows, some columns, what their footers tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from binlane.errors import StoreError
from binlane.tables.landing.tables.bounds import LiveFile
from binlane.tables.landing.target_files import resolve


@contextmanager
def _opened(uri: str) -> Iterator[pq.ParquetFile]:
    filesystem, path = resolve(uri)
    try:
        with filesystem.open_input_file(path) as stream, pq.ParquetFile(stream) as file:
            yield file
    except (OSError, pa.ArrowInvalid) as error:
        raise StoreError(
            f"cannot be read: {error}", path=uri, hint="run the landing again"
        ) from error


def read_rows(uri: str, start: int = 0, stop: int | None = None) -> pa.Table:
    """Rows of a file, from those of its row groups in which they lie.

    Raises:
        StoreError: If it cannot be read.
    """
    with _opened(uri) as file:
        if stop is None:
            return file.read(use_threads=False)
        meta = file.metadata
        lengths = [meta.row_group(number).num_rows for number in range(meta.num_row_groups)]
        ends = np.cumsum(lengths).tolist()
        wanted = [
            number
            for number, end in enumerate(ends)
            if end > start and end - lengths[number] < stop
        ]
        skipped = ends[wanted[0]] - lengths[wanted[0]] if wanted else 0
        rows = file.read_row_groups(wanted, use_threads=False)
        return rows.slice(start - skipped, stop - start)


def read_columns(uri: str, names: Sequence[str]) -> pa.Table:
    """Some columns of a file.

    Raises:
        StoreError: If it cannot be read.
    """
    with _opened(uri) as file:
        # By number: names with dots would be taken for paths.
        numbers = [file.schema_arrow.get_field_index(name) for name in names]
        everything = range(file.metadata.num_row_groups)
        return file.reader.read_row_groups(list(everything), column_indices=numbers)


def footer_bounds(folder: str, file: LiveFile) -> LiveFile:
    """A file with the bounds that Parquet's own statistics tell.

    Raises:
        StoreError: If it cannot be read.
    """
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    with _opened(f"{folder}/{file.path}") as opened:
        meta = opened.metadata
        for number, name in enumerate(opened.schema_arrow.names):
            groups = range(meta.num_row_groups)
            stats: list[Any] = [meta.row_group(group).column(number).statistics for group in groups]
            if all(each is not None and each.has_null_count for each in stats):
                nulls[name] = sum(each.null_count for each in stats)
            if stats and all(each is not None and each.has_min_max for each in stats):
                low[name] = min(each.min for each in stats)
                high[name] = max(each.max for each in stats)
    return replace(
        file,
        low={**low, **file.low},
        high={**high, **file.high},
        nulls={**nulls, **file.nulls},
        is_read=True,
    )
