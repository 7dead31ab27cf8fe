"""Rows of tables in a binlog, and which of them a replica has, wants, or cannot use.

Where a binlog begins with its tables, a replica that has nothing of the source begins there. One that
has all up to the place of the rows has them already; one that is on the way through them goes on; and
one that has a part of what came before, and none of the rows, cannot go on here at all.

Pure: positions in, positions out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from binlane.binlogs.store.fills import BLOCK, Seeding, without_seeds
from binlane.live.dump.request import refusal
from binlane.live.dump.start import BeginningFile
from binlane.positions import GtidPosition, GtidSet, Position

_File = TypeVar("_File", bound=BeginningFile)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPositions:
    """A replica by GTID: its part of a binlog.

    Attributes:
        asked: What it says it has, with the rows that it must have by that; decides if and where it
            can begin.
        done: The same, and what is never to be sent to it.
        known: The same, and what rows stand for that it is given: it gets nothing else for that.
    """

    asked: Position
    done: Position
    known: Position


def dump_start(connect_state: Position, seedings: Sequence[Seeding], name: str) -> HeldPositions:
    """Find out which rows a replica has.

    Args:
        connect_state: The position that the replica says it has done.
        seedings: The rows in the binlog, in the order in which they stand there.
        name: The name of the binlog.

    Raises:
        StatementError: If the replica has a part of what the first rows stand for.
    """
    state = _of_this_binlog(connect_state, seedings)
    asked = done = known = state
    for seeding in seedings:
        own = without_seeds(asked, seedings)
        held = _held(state, seeding)
        if seeding.is_beginning:
            known = known.union(seeding.place)
        if _has_last(held, seeding):
            if seeding.is_beginning and isinstance(own, GtidSet):
                asked, done = asked.union(seeding.place), done.union(seeding.place)
        elif held is None and _has_passed(own, seeding):
            asked, done = _with(asked, seeding), done.union(seeding.whole)
        elif held is None and seeding.last is not None and _is_before(asked, own, seeding):
            raise refusal(
                "Could not find GTID state requested by slave in any binlog files. Probably the "
                "slave state is too old and required binlog files have been purged.",
                hint=f"binlog {name} begins with the rows as of {seeding.place}: begin with no GTID "
                "of this source and empty tables, or with a copy of the tables as of then",
            )
    return HeldPositions(asked=asked, done=done, known=known.union(done))


def files_for(
    connect_state: Position, seedings: Sequence[Seeding], files: Sequence[_File]
) -> Sequence[_File]:
    """The files that a replica may begin in.

    Before a later beginning is complete, the files before it are still there: a replica on its way
    through them goes on there, and does not begin anew. Files before it that stay because somebody
    reads them are nothing for a replica that lacks what precedes them.

    Args:
        connect_state: The position that the replica asks for, as `HeldPositions` has it.
        seedings: The rows in the binlog, as `dump_start` takes them.
        files: The files of the binlog, oldest first.
    """
    own = without_seeds(connect_state, seedings)
    for seeding in seedings:
        is_usable = _held(connect_state, seeding) is not None or _has_passed(own, seeding)
        if seeding.last is None and not is_usable and _is_before(connect_state, own, seeding):
            begin = max(i for i, file in enumerate(files) if not file.begin)
            return files[:begin] or files
    if files and not connect_state.includes(files[0].begin):
        return files[max((i for i, file in enumerate(files) if not file.begin), default=0) :]
    return files


def left_out_rows(seeding: Seeding) -> Position:
    """Give what a replica is not sent that comes to a beginning with all before it."""
    return seeding.whole.union(seeding.place)


def _held(state: Position, seeding: Seeding) -> int | None:
    """The sequence of the last group of a seeding that a replica has; None if it has none."""
    held = seeding.held_in(state)
    return None if held is None or held >= seeding.first + BLOCK else held


def _has_last(held: int | None, seeding: Seeding) -> bool:
    return held is not None and seeding.last is not None and held >= seeding.last


def _with(asked: Position, seeding: Seeding) -> Position:
    """Add the rows that a replica must have; of those that are being placed nobody asks."""
    return asked if seeding.last is None else asked.union(seeding.whole)


def _has_passed(own: Position, seeding: Seeding) -> bool:
    """True if a replica that has no group of a seeding has come by its place without it."""
    place = seeding.place
    if not place or not own.includes(place):
        return False
    if seeding.is_beginning or seeding.is_arrival:
        return True
    # Who stands just there is to get the rows of the tables that come in.
    ahead = own.subtract(place)
    if isinstance(ahead, GtidPosition):
        assert isinstance(place, GtidPosition)
        return any(place.last(gtid.domain_id) for gtid in ahead)
    assert isinstance(ahead, GtidSet)
    assert isinstance(place, GtidSet)
    sources = {run.source_id for run in place.runs}
    return any(run.source_id in sources for run in ahead.runs)


def _is_before(asked: Position, own: Position, seeding: Seeding) -> bool:
    """True if a replica has something from before a beginning, and not all that this stands for."""
    if not seeding.is_beginning:
        return False
    if asked != own and seeding.held_in(asked) is None:
        return True  # rows of an earlier beginning
    if isinstance(own, GtidPosition):
        assert isinstance(seeding.place, GtidPosition)
        return any(own.last(gtid.domain_id) for gtid in seeding.place)
    return bool(own.intersection(seeding.place))


def _of_this_binlog(state: Position, seedings: Sequence[Seeding]) -> Position:
    """Return a position without the GTIDs of rows that stand in another binlog of the same source."""
    if not isinstance(state, GtidPosition):
        return state
    keys = {each.source.key for each in seedings}
    return GtidPosition.of(
        gtid
        for gtid in state
        if str(gtid.domain_id) not in keys
        or any(_held(GtidPosition((gtid,)), each) is not None for each in seedings)
    )
