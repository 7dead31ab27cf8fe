"""A binlog whose files cannot be made whole: known by its catalog row, closed to writing."""

from __future__ import annotations

from pathlib import Path

from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.binlog_files import Published
from binlane.binlogs.store.catalog import BinlogRecord, Mark
from binlane.binlogs.store.files import BinlogFile
from binlane.binlogs.store.group_form import EndState
from binlane.errors import StoreError


class LostBinlog(Binlog):
    """A stand-in for a binlog until `Store.reopen_binlog` finds its files whole.

    The binlog is published up to its mark, in the one file that the mark names; a reader of that
    file finds the damage.
    """

    def __init__(
        self, directory: Path, record: BinlogRecord, mark: Mark, error: StoreError
    ) -> None:
        """Know it by its row.

        Args:
            directory: Directory in which its files should be.
            record: The binlog's row in the catalog.
            mark: The mark in that row.
            error: The error of opening the binlog.
        """
        # Nothing of what a binlog has while it is written: every way to that is closed by `failure`.
        self.definition = record.definition
        self._directory = directory
        self._failure = str(error)
        self._contents = self._published_contents = EndState(
            mark.position, mark.prepared, Memory(), mark.incidents
        )
        self._next_memory = None
        self._unsearched = mark.unsearched
        self._mark_state = Published(
            closed=(),
            last=BinlogFile(
                directory=directory,
                name=mark.end.file,
                size_bytes=mark.end.position,
                begin_gtids=str(record.begin),
                flavor=record.begin.flavor,
            ),
            position=mark.position,
        )

    @property
    def published(self) -> Published:
        """The one file that the mark names."""
        return self._mark_state

    @property
    def has_unsynced(self) -> bool:
        """Nothing is ever appended."""
        return False

    def close(self) -> None:
        """There is nothing to close."""

    def abandon(self) -> None:
        """There is nothing to let go of."""
