"""The order of pieces of a log and the bounds of a selection, by facts about the pieces."""

from __future__ import annotations

from binlane.positions import FilePosition, GtidPosition, Position, parse_position
from binlane.tables.columnar.selection import Bound, file_number
from binlane.tables.ranges.facts import FileFacts, Piece


def lies_before(piece: Piece, facts: FileFacts, name: str, bound: Bound | None) -> bool:
    """True if all groups of a piece lie before a bound."""
    if bound is None:
        return False
    if isinstance(bound, FilePosition):
        return (file_number(name), piece.stop) <= (file_number(bound.file), bound.position)
    if isinstance(bound, GtidPosition):
        return not piece.has_anonymous and _position(piece, facts, bound)
    return piece.last_timestamp < bound.timestamp()


def _position(piece: Piece, facts: FileFacts, bound: Position) -> bool:
    if bound.flavor != facts.flavor:
        return False
    return bound.includes(parse_position(piece.gtids, facts.flavor))


def lies_behind(piece: Piece, facts: FileFacts, name: str, bound: Bound | None) -> bool:
    """True if no group of a piece lies before a bound."""
    if bound is None:
        return False
    if isinstance(bound, FilePosition):
        return (file_number(name), piece.start) >= (file_number(bound.file), bound.position)
    if isinstance(bound, GtidPosition):
        if bound.flavor != facts.flavor:
            return False
        done = facts.done_at(piece.start)
        if not isinstance(done, GtidPosition):
            return False
        own = GtidPosition.parse(piece.gtids)
        # Sequences grow within a domain: where all that is wanted of it is done, no more is.
        return all(
            (last := bound.last(gtid.domain_id)) is None or done.covers(last) for gtid in own
        )
    return piece.first_timestamp >= bound.timestamp()
