"""GTIDs must come as a position can tell of them: "done up to here"."""

from __future__ import annotations

from binlane.errors import PeerError
from binlane.positions import AnyGtid, FilePosition, Gtid, GtidPosition, Position


def passed(position: Position | None, gtid: AnyGtid, *, at: FilePosition, peer: str) -> Position:
    """A position with one group more.

    Args:
        position: None where the source has not said it.
        gtid: The GTID of the group.
        at: The place where the group begins.
        peer: The source's address, for messages.

    Raises:
        PeerError: If the position is not known, or has the group done already.
    """
    if position is None:
        raise unknown_start(at, peer=peer)
    if position.covers(gtid):
        raise disorder(position, gtid, at=at, peer=peer)
    return position.advance(gtid)


def unknown_start(at: FilePosition, *, peer: str) -> PeerError:
    """The error if nobody said the position before a group."""
    return PeerError(
        f"event groups came before the source said what stands before {at}",
        peer=peer,
        phase="dump",
        hint="the source must be MariaDB 10.0.2 or later, or MySQL with gtid_mode=ON",
    )


def disorder(
    position: Position | None, gtid: AnyGtid | None, *, at: FilePosition, peer: str
) -> PeerError:
    """The error if a group came that a position has done already."""
    if isinstance(gtid, Gtid) and isinstance(position, GtidPosition):
        return PeerError(
            f"event group {gtid} comes after {position.last(gtid.domain_id)} ({at})",
            peer=peer,
            phase="dump",
            hint="set gtid_strict_mode=ON on the source, so that sequences grow in each domain; "
            "to go on behind this group: START BINLOG 'name' FROM 'position'",
        )
    return PeerError(
        f"transaction {gtid} comes twice ({at})",
        peer=peer,
        phase="dump",
        hint="compare the source's gtid_executed with its log",
    )
