"""Rows of children, followed: how fast a binlog's rows come into the file, and a parent's rows ask it.

Usage: benchmarks/cascades.py [rows]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from binlane.binlogs.routing.cascade_replay import CascadeReplay, FollowedTable
from binlane.binlogs.store.child_rows import ChildRowsFile, KeptChildren, KeptState
from binlane.log.codec.rows import DeleteRowsV1Event, RowsEvent, TableMapEvent, WriteRowsV1Event
from binlane.log.codec.types import ColumnType, Flavor
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.schema import ForeignKey

PARENT, CHILD = TableName("crm", "p"), TableName("shop", "c")
NAMES = b"\x04\x05\x02id\x01k"
SIGNS = b"\x01\x01\x00"
PER_EVENT = 100
CHILDREN = 10


def _map(name: TableName, table_id: int) -> TableMapEvent:
    return TableMapEvent(
        table_id=table_id,
        flags=1,
        database=name.database,
        table=name.table,
        column_types=bytes((ColumnType.LONG, ColumnType.LONG)),
        metadata=b"",
        null_bits=b"\x02",
        optional_metadata=SIGNS + NAMES,
    )


def _image(one: int, other: int) -> bytes:
    return b"\xfc" + one.to_bytes(4, "little") + other.to_bytes(4, "little")


def _rows(kind: type[RowsEvent], images: bytes) -> RowsEvent:
    return kind(
        table_id=1,
        flags=1,
        extra=None,
        column_count=2,
        columns_present=b"\xff",
        columns_present_after=None,
        images=images,
    )


def main(count: int) -> None:
    """Print the figures for a number of children, ten to a parent."""
    key = ForeignKey(
        table=CHILD,
        columns=("k",),
        parent=PARENT,
        parent_columns=("id",),
        on_delete="CASCADE",
        name="of_p",
    )
    scope = Scope.everything()
    with tempfile.TemporaryDirectory() as folder:
        rows = ChildRowsFile(Path(folder) / "1.sqlite")
        rows.clear()
        kept = KeptChildren(rows, KeptState())
        kept.follow([(CHILD, ("k",))])
        kept.state.tables[CHILD] = FollowedTable(
            indexes=kept.state.tables[CHILD].indexes, reason="", is_plain=True
        )
        replay = CascadeReplay(rows, kept.state.tables, [key], scope, Flavor.MARIADB)
        child, parent = _map(CHILD, 1), _map(PARENT, 1)
        replay.see_map(CHILD, child)
        rows.begin()
        start = time.perf_counter()
        for first in range(0, count, PER_EVENT):
            images = b"".join(_image(n, n // CHILDREN) for n in range(first, first + PER_EVENT))
            replay.feed(_rows(WriteRowsV1Event, images), child, {CHILD})
        rows.commit("{}")
        took = time.perf_counter() - start
        print(f"{count:,} rows taken in {took:.2f} s: {count / took:,.0f} rows/s")
        print(f"{rows.size_bytes() / count:.0f} bytes a row")
        rows.begin()
        start, parents = time.perf_counter(), count // CHILDREN // 2
        derived = 0
        for first in range(0, parents, PER_EVENT):
            images = b"".join(_image(n, 0) for n in range(first, first + PER_EVENT))
            event = _rows(DeleteRowsV1Event, images)
            derived += len(replay.feed(event, parent, {PARENT, CHILD}))
        took = time.perf_counter() - start
        print(f"{derived:,} rows derived in {took:.2f} s: {derived / took:,.0f} rows/s")
        rows.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
