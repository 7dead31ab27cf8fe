"""Parts of a log before and behind the bounds of a selection, by the facts that are known of them."""

from __future__ import annotations

from binlane.positions import FilePosition, GtidPosition, Position, file_number, parse_position
from binlane.tables.columnar.selection import Bound, Selection
from binlane.tables.ranges.log_file_facts import FilePiece, LogFileFacts


def may_hold_file(selection: Selection, name: str) -> bool:
    """True if a selection may ask for anything of a file; no facts of the file are needed.

    Args:
        selection: The selection of event groups.
        name: Base name of the file.
    """
    number = file_number(name)
    if isinstance(selection.start, FilePosition) and number < file_number(selection.start.file):
        return False
    return not (
        isinstance(selection.stop, FilePosition) and number > file_number(selection.stop.file)
    )


def lies_before(piece: FilePiece, facts: LogFileFacts, name: str, bound: Bound | None) -> bool:
    """True if all groups of a piece lie before a bound."""
    if bound is None:
        return False
    if isinstance(bound, FilePosition):
        return (file_number(name), piece.stop) <= (file_number(bound.file), bound.position)
    if isinstance(bound, GtidPosition):
        return not piece.has_anonymous and _position(piece, facts, bound)
    return piece.last_timestamp < bound.timestamp()


def _position(piece: FilePiece, facts: LogFileFacts, bound: Position) -> bool:
    if bound.flavor != facts.flavor:
        return False
    return bound.includes(parse_position(piece.gtids, facts.flavor))


def lies_behind(piece: FilePiece, facts: LogFileFacts, name: str, bound: Bound | None) -> bool:
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
