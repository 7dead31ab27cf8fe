"""Which pieces of a log a reader need not open, by what facts tell of them."""

from __future__ import annotations

from bisect import bisect_left

from binlane.columnar.selection import Bound, Selection
from binlane.positions import FilePosition, GtidPosition, Position, parse_position
from binlane.ranges.facts import FileFacts, Piece
from binlane.ranges.files import LogFile


def is_wanted(
    piece: Piece,
    facts: FileFacts,
    file: LogFile,
    selection: Selection,
    *,
    has_statements: bool,
) -> bool:
    """Whether a reader must open a piece.

    Args:
        piece: Of the file.
        facts: Of the file.
        file: Its number counts.
        selection: What is wanted.
        has_statements: Whether statements, and INCIDENTs, are wanted too.
    """
    if not piece.groups:
        return False
    if _is_before(piece, facts, file, selection.start):
        return False
    if _is_behind(piece, facts, file, selection.stop):
        return False
    if has_statements and (
        _any_in(piece, [query.event.position for query in facts.queries])
        or _any_in(piece, facts.incidents)
    ):
        return True
    # Rows of an XA transaction come where it is committed.
    if _any_in(piece, [place.start for place in facts.xa if not place.is_prepare]):
        return True
    tables = facts.tables(piece)
    return tables is None or any(selection.scope.includes(table) for table in tables)


def _is_before(piece: Piece, facts: FileFacts, file: LogFile, bound: Bound | None) -> bool:
    """Whether all groups of a piece lie before a bound."""
    if bound is None:
        return False
    if isinstance(bound, FilePosition):
        return (file.number, piece.stop) <= _place(bound)
    if isinstance(bound, GtidPosition):
        return not piece.has_anonymous and _position(piece, facts, bound)
    return piece.last_timestamp < bound.timestamp()


def _position(piece: Piece, facts: FileFacts, bound: Position) -> bool:
    if bound.flavor != facts.flavor:
        return False
    return bound.includes(parse_position(piece.gtids, facts.flavor))


def _is_behind(piece: Piece, facts: FileFacts, file: LogFile, bound: Bound | None) -> bool:
    """Whether no group of a piece lies before a bound."""
    if bound is None:
        return False
    if isinstance(bound, FilePosition):
        return (file.number, piece.start) >= _place(bound)
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


def _place(bound: FilePosition) -> tuple[int, int]:
    number = bound.file.rpartition(".")[2]
    return int(number) if number.isdigit() else 0, bound.position


def _any_in(piece: Piece, positions: list[int] | tuple[int, ...]) -> bool:
    """Whether any of some growing positions lies in a piece."""
    found = bisect_left(positions, piece.start)
    return found < len(positions) and positions[found] < piece.stop
