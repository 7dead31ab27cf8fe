"""Merging that is not done by tasks of ours, but by a statement of an engine that knows the format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from binlane.tables.landing.work import DataFile, Format


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
    format: Format
    runs: Sequence[DataFile]
    names: Sequence[str]
    key: Sequence[str]
    app_id: str
    applied: int
    note: str
    left_out: frozenset[str] = frozenset()


class Merger(Protocol):
    """A service that merges by a statement of its own."""

    def takes(self, table_format: Format, names: Sequence[str], *, has_feed: bool) -> bool:
        """True if it can merge into a table of a format, with columns, and with or without a change feed."""

    def merge(self, order: MergeOrder) -> None:
        """Merge, all or nothing.

        Raises:
            StoreError: If the table cannot be written.
            BinlaneError: If the engine fails.
        """
