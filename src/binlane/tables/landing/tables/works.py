"""Works for tasks, from a table's files and the runs to be merged into them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from binlane.names import TableName
from binlane.tables.landing.net_changes import COUNT
from binlane.tables.landing.range_work import DataFile
from binlane.tables.landing.tables.bounds import LiveFile, SortedKeys
from binlane.tables.landing.tables.formats import Snapshot, TableFormat
from binlane.tables.landing.tables.merge_work import How, MergeWork, RowChange, RunSlice
from binlane.tables.landing.tables.parquet_files import read_columns
from binlane.tables.landing.tables.planning import parts, target_bytes


class Works:
    """Makes works on tables of one kind.

    Args:
        tables: The tables in their format.
        run_id: Name of the landing in the files that are written.
        soft_deletes: Whether deleted rows stay in tables.
    """

    def __init__(self, tables: TableFormat, run_id: str, *, soft_deletes: bool) -> None:
        self._tables = tables
        self._run_id = run_id
        self._soft_deletes = soft_deletes

    def rewriting(
        self,
        table: TableName,
        base: Sequence[LiveFile],
        schema: pa.Schema,
        change: RowChange | None = None,
        key: tuple[str, ...] = (),
    ) -> MergeWork:
        """All rows of some files become one file's, in the order of a key if there is one."""
        size_bytes = sum(file.size_bytes for file in base)
        return MergeWork(
            how=How.REWRITE,
            directory=self._tables.uri(table),
            format=self._tables.format,
            run_id=self._run_id,
            base=tuple(file.path for file in base),
            key=key,
            known=tuple(dict.fromkeys(name for file in base for name in file.nulls)),
            schema=schema,
            change=change,
            target_bytes=max(size_bytes, 1),
            size_bytes=size_bytes,
            rows=sum(file.rows for file in base),
            soft_deletes=self._soft_deletes,
        )

    def merging(
        self,
        table: TableName,
        now: Snapshot,
        files: Sequence[LiveFile],
        runs: Sequence[DataFile],
        like: MergeWork,
    ) -> list[MergeWork]:
        """Plan works that merge runs by key.

        Args:
            table: The name of the table.
            now: The table as it is before.
            files: The table's files in which keys may be, with their bounds.
            runs: Staged runs in log order.
            like: A work with the fields that all works have in common: how, key and names.

        Raises:
            StoreError: If a run cannot be read.
        """
        keys = [SortedKeys(read_columns(run.path, like.key), like.key) for run in runs]
        target = target_bytes(now.size_bytes + sum(run.size_bytes for run in runs))
        found = []
        planned = parts(files, keys, like.key, target, is_whole=now.has_feed)
        has_feed = now.has_feed and any(part.files for part in planned)
        for part in planned:
            slices = [
                (run, RunSlice(uri=run.path, drop=drop, add=add))
                for run, drop, add in zip(runs, part.drop, part.add, strict=True)
                if drop[0] < drop[1] or add[0] < add[1]
            ]
            base = self.rewriting(table, part.files, now.schema, key=like.key)
            base = replace(base, how=like.how, names=like.names, has_feed=has_feed)
            found.append(_merged(base, slices, target))
        return found

    def counting(
        self, table: TableName, now: Snapshot, runs: Sequence[DataFile], names: tuple[str, ...]
    ) -> MergeWork:
        """Rows without a key come and go; only where some go is the table read.

        Raises:
            StoreError: If a run cannot be read.
        """
        counts = pa.concat_tables(read_columns(run.path, [COUNT]) for run in runs).column(COUNT)
        # There is no row where as many come as go.
        base = list(now.files.values()) if (pc.min(counts).as_py() or 0) < 0 else []
        slices = [(run, RunSlice(uri=run.path, drop=(0, 0), add=(0, run.rows))) for run in runs]
        target = target_bytes(now.size_bytes + sum(run.size_bytes for run in runs))
        work = self.rewriting(table, base, now.schema)
        has_feed = now.has_feed and bool(base)
        work = replace(work, how=How.COUNT, names=names, has_feed=has_feed)
        return _merged(work, slices, target)


def _merged(work: MergeWork, runs: Sequence[tuple[DataFile, RunSlice]], target: int) -> MergeWork:
    """A work on base files that merges runs into them."""
    sizes = [run.size_bytes * part.rows // max(run.rows, 1) for run, part in runs]
    return replace(
        work,
        runs=tuple(part for _, part in runs),
        target_bytes=target,
        size_bytes=work.size_bytes + sum(sizes),
        rows=work.rows + sum(part.rows for _, part in runs),
    )
