"""The journal as a whole: files of statements and files of groups in one folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from binlane.binlogs.store.disk import Disk
from binlane.errors import StoreError
from binlane.live.port.group_numbers import GroupNumber, Stream
from binlane.live.port.journal import journal_records as records
from binlane.live.port.journal.group_journal import GroupJournal
from binlane.live.port.journal.journal_replay import Recovery
from binlane.live.port.journal.statement_journal import Present, StatementJournal
from binlane.live.port.session_groups import RowsReason, Unattributed
from binlane.statements.session.group_plan import GroupPlan

logger = logging.getLogger(__name__)


class PortJournal:
    """The two parts of the journal: one is written by the sessions' thread, one by the routing thread.

    Args:
        folder: Folder of the journal's files.
        disk: Disk that holds the folder.
        file_bytes: Size at which a file of statements is followed by another.
        present: Gives the state with which a file of statements begins.
        is_relayed: Same meaning as in `AttributionSettings`.

    Raises:
        StoreError: If the folder cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        disk: Disk,
        file_bytes: int,
        present: Callable[[], Present],
        *,
        is_relayed: bool,
    ) -> None:
        self.groups = GroupJournal(folder, disk, file_bytes // 8)
        self.statements = StatementJournal(folder, disk, file_bytes, present, is_relayed=is_relayed)

    @property
    def failure(self) -> str:
        """The reason why the journal cannot be written; empty while it can."""
        return self.statements.failure or self.groups.failure

    def recovered(self) -> Recovery | None:
        """Give the state of the moment when the process before ended; None if it cannot be read."""
        try:
            return Recovery(self.statements, self.groups)
        except StoreError as error:
            logger.error("the port's journal cannot be read, groups go as rows: %s", error)  # noqa: TRY400
            return None

    def recall(self, point: GroupNumber, thread_id: int) -> GroupPlan | Unattributed:
        """Give the recorded finding on a group.

        Args:
            point: The group that is asked about.
            thread_id: Thread that made the group as the log says; 0 where it does not.
        """
        found = self.groups.find(point)
        if found is None and self.groups.tells_of(point):
            return Unattributed(RowsReason.STRANGER)
        if found is None:
            return forgotten(thread_id)
        if found.plan != records.NO_PLAN:
            plans = self.statements.plans_at(found.place)
            if plans is not None and found.plan < len(plans):
                return plans[found.plan]
        return forgotten(found.thread_id)

    def passed(self, ends: Mapping[Stream, int], held: Collection[int], max_bytes: int) -> None:
        """Let files go of which no group is asked for any more, and the oldest if all are too large.

        Args:
            ends: Up to where nobody asks for groups of streams.
            held: Numbers of files that tell of statements under way.
            max_bytes: Size of all files together.
        """
        self.groups.passed(ends)
        self.statements.passed(ends, held)
        self.groups.shrink(max_bytes // 4)
        self.statements.shrink(max_bytes - max_bytes // 4)

    def forget(self) -> None:
        """Let the files go: they are of another source."""
        self.statements.renew(is_stale=True)
        self.groups.forget()


def forgotten(thread_id: int) -> Unattributed:
    """Give the finding on a group of which nothing is known any more, but perhaps its thread."""
    return Unattributed(RowsReason.FORGOTTEN, frozenset((thread_id,)) if thread_id else None)
