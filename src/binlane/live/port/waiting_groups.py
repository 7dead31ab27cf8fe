"""Groups that were read and are not attributed, and the statements that may have made them."""

from __future__ import annotations

from typing import NamedTuple

from binlane.live.port.session_groups import Arrival, SentStatement


class WaitingGroup(NamedTuple):
    """A group whose session is not known yet.

    Attributes:
        statements: Statements that were under way and could have made the group, with their threads.
        others: Threads with statements that may have made the group, as it is not known what they make.
    """

    arrival: Arrival
    statements: tuple[tuple[int, SentStatement], ...]
    others: frozenset[int]

    @property
    def is_over(self) -> bool:
        """True if none of the statements can claim the group any more."""
        return all(
            (one.is_answered and not one.is_split) or one.is_lost for _, one in self.statements
        )


class Unsettled(NamedTuple):
    """Groups and statements that are not done with, for the journal.

    Attributes:
        arrivals: Groups that were read and are not attributed, each behind its thread; 0 where it is not
            known.
        doubts: Threads and numbers of open statements of which no group is planned.
        is_any_open: True if a statement may still have groups to come.
        gone: Lists of statements that can make no more groups, with the number of those that are known.
    """

    arrivals: list[tuple[int, Arrival]]
    doubts: list[tuple[int, int]]
    is_any_open: bool
    gone: list[tuple[list[SentStatement], int]]


def may_have_made(statement: SentStatement) -> bool:
    """True if a group that could be a statement's, but was not told of it, may still be the statement's.

    False for a statement that can have made one group only, and was told another or none.
    """
    if not statement.is_answered:
        return True
    return not statement.count or (bool(statement.last) and statement.count > 1)
