"""The settings of a store of tables, and the merger that may be one of them.

A merger is a statement of an engine that knows the format, in the place of tasks of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from binlane.tables.landing.range_work import DataFile, FormatName
from binlane.tables.landing.tables.formats import CommitSource

Run = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Runs a function over works, as an engine does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOrder:
    """A merge of runs into a current table, as one commit.

    Attributes:
        uri: Directory of the table, which exists.
        runs: Runs in log order; each has one row a key, with the columns of the table and `_gone`.
        names: Names of the source's columns, which runs begin with, in the table.
        left_out: Source columns that the table does not have.
        key: Names of the key's columns, at least one.
        app_id: Name of the landing in the commit.
        applied: The `_seq` up to which the table is complete then; the commit says so.
        note: Text for the table's history on the origin of the commit.
    """

    uri: str
    format: FormatName
    runs: Sequence[DataFile]
    names: Sequence[str]
    key: Sequence[str]
    app_id: str
    applied: int
    note: str
    left_out: frozenset[str] = frozenset()


class Merger(Protocol):
    """A service that merges by a statement of its own."""

    def takes(self, table_format: FormatName, names: Sequence[str], *, has_feed: bool) -> bool:
        """True if it can merge into a table of a format, with columns, and with or without a change feed."""

    def merge(self, order: MergeOrder) -> None:
        """Merge, all or nothing.

        Raises:
            StoreError: If the table cannot be written.
            BinlaneError: If the engine fails.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStoreSettings:
    """Settings of a store of tables.

    Attributes:
        run_id: Name of this landing in the files that it writes.
        run: Runs works; the default runs them here, one after the other.
        fence: Raises if the target is not ours any more; asked before each change of a table.
        keep_hours: How long files of earlier versions are kept.
        catalog: Settings of the catalog of Iceberg tables, see `iceberg.open_catalog`.
        merger: Merges into current tables that have a key instead of tasks, where it can.
        app_id: Name of the landing in the merger's commits, as it is in those of the format.
        soft_deletes: Whether rows that are deleted stay in current tables, with `_deleted_at`.
        feed: Whether current tables shall tell which rows their commits change; None leaves them as
            they are.
        source: The place in the log that the next commits come from, where that is known.
        is_read_only: Whether nothing is written; then no file is written either to try the target
            where a table cannot be read.
    """

    run_id: str
    run: Run = map
    fence: Callable[[], None] = lambda: None
    merger: Merger | None = None
    app_id: str = ""
    soft_deletes: bool = False
    keep_hours: float = 168.0
    catalog: Mapping[str, str] = field(default_factory=dict)
    feed: bool | None = None
    source: Callable[[], CommitSource | None] = lambda: None
    is_read_only: bool = False
