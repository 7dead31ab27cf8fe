"""CPU time of merging changes into a current table, as JSON lines: plan, tasks and commit.

A table of a million rows and, for `random` keys, of more, gets batches of changes, most of them
updates: of neighbouring keys (`clustered`), of new ones (`appended`) and of any (`random`). What
stands in one line is the median of some batches, each into the table that the ones before left.
`found` is what would be left of it with deletion vectors: the old rows are looked up by their keys
alone, and the new ones written to a file of their own.

    python -m benchmarks.merge [--rows N] [--changes N] [--rounds N] [--format delta] [--cdf]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from binlane.names import TableName
from binlane.tables.landing.net_changes import GONE
from binlane.tables.landing.range_work import DataFile, FormatName, Mode
from binlane.tables.landing.table_files import write_file
from binlane.tables.landing.tables.key_order import places
from binlane.tables.landing.tables.opening import open_store
from binlane.tables.landing.tables.parquet_files import read_columns, read_rows
from binlane.tables.landing.tables.store_settings import TableStoreSettings
from binlane.tables.landing.tables.table_store import TableStore

_TABLE = TableName("shop", "orders")
_KEY = ("id",)


def main() -> None:
    """Print one line for each kind of keys."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--format", default="delta")
    parser.add_argument("--cdf", action="store_true")
    given = parser.parse_args()
    for kind in ("clustered", "appended", "random"):
        with tempfile.TemporaryDirectory() as into:
            keeping = TableStoreSettings(run_id="merge", feed=given.cdf)
            store = open_store(into, Mode.CURRENT, FormatName(given.format), "merge", keeping)
            first = _run(Path(into), np.arange(given.rows), 1)
            started = _cpu_s()
            _merge(store, first, 1)
            filled_s = _cpu_s() - started
            figures = []
            looked_up = []
            written_bytes = []
            generator = np.random.default_rng(1)
            for number in range(2, given.rounds + 2):
                keys = _keys(kind, given.rows, given.changes, number, generator)
                run = _run(Path(into), keys, number)
                looked_up.append(_found_cpu_s(store, into, run))
                before = _bytes_in(into)
                started = _cpu_s()
                _merge(store, run, number)
                store.compact(_TABLE)
                figures.append(_cpu_s() - started)
                written_bytes.append(_bytes_in(into) - before)
            snapshot = store.snapshot(_TABLE)
            assert snapshot is not None
            line = {
                "benchmark": "merge",
                "format": given.format,
                "keys": kind,
                "rows": given.rows,
                "changes": given.changes,
                "filled_cpu_s": round(filled_s, 3),
                "median_cpu_s": round(statistics.median(figures), 4),
                "highest_cpu_s": round(max(figures), 4),
                "median_found_cpu_s": round(statistics.median(looked_up), 4),
                "median_written_mb": round(statistics.median(written_bytes) / 1e6, 2),
                "cdf": given.cdf,
                "files": len(snapshot.files),
                "size_mb": round(snapshot.size_bytes / 1e6, 1),
            }
            print(json.dumps(line), flush=True)


def _keys(
    kind: str, rows: int, changes: int, number: int, generator: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if kind == "clustered":
        start = int(generator.integers(0, rows - changes))
        return np.arange(start, start + changes)
    if kind == "appended":
        return np.arange(rows + number * changes, rows + (number + 1) * changes)
    return np.sort(generator.choice(rows, changes, replace=False))


def _run(folder: Path, keys: np.ndarray[tuple[int], np.dtype[np.int64]], seq: int) -> DataFile:
    """Changes of keys as a task stages them: one in ten a deletion, unless the table is empty."""
    count = len(keys)
    texts = pa.array([f"customer {key * 7919 % 100003} {seq}" for key in keys.tolist()])
    rows = pa.table(
        {
            "id": pa.array(keys, pa.int64()),
            "name": texts,
            "amount": pa.array(keys * 37 % 1_000_000, pa.int64()).cast(pa.decimal128(19, 0)),
            "at": pa.array(keys * 1_000_003 + seq, pa.timestamp("us")),
            "state": pa.array(["new", "paid", "sent"]).take(pa.array(keys % 3, pa.int64())),
            "_gtid": pa.array([f"0-1-{seq}"] * count),
            "_seq": pa.array(np.full(count, seq), pa.int64()),
            "_ts": pa.array(np.full(count, seq), pa.timestamp("us", tz="UTC")),
            GONE: pa.array((keys % 10 == 9) & (seq > 1)),
        }
    )
    file = write_file(rows, str(folder), f"{seq}.parquet", _KEY)
    return DataFile(
        path=f"{folder}/{file.path}",
        rows=file.rows,
        size_bytes=file.size_bytes,
        schema=file.schema,
        stats=file.stats,
    )


def _merge(store: TableStore, run: DataFile, seq: int) -> None:
    own = pa.schema([run.schema.field(name) for name in run.schema.names if name[0] != "_"])
    store.merge(_TABLE, [run], _KEY, own, seq)


def _found_cpu_s(store: TableStore, folder: str, run: DataFile) -> float:
    """What it costs to find the old rows of some keys, and to write the new ones down."""
    started = _cpu_s()
    rows = read_rows(run.path)
    now = store.snapshot(_TABLE)
    assert now is not None
    for path in now.files:
        found = places(read_columns(f"{store.uri(_TABLE)}/{path}", _KEY), rows, _KEY)
        np.flatnonzero(found >= 0)
    write_file(rows, folder, "found.parquet", _KEY)
    return _cpu_s() - started


def _bytes_in(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
