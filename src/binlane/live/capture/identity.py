"""Recognition of a source whose log was taken before.

GTIDs alone do not tell: a server that was reset counts from 1 again, and once it has passed what
was taken, its first groups would be missed in silence. So the file is remembered, too, in which the
next group was to come, and when it was begun. Another server with the same GTIDs has files of its
own and passes: that is a failover.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.errors import PeerError
from binlane.live.capture.source_facts import SourceFacts
from binlane.log.grouping.raw import Item, RawRun
from binlane.positions import FilePosition, GtidPosition, GtidSet, Position

PHASE: Final = "position"
"""The phase of the errors here: the place in the source's log to go on from."""
_ANONYMOUS: Final = "anonymous transaction"
"""Words in the message of a MySQL's sender, in every language."""

_HINT: Final = (
    "to go on with what the source has now: START BINLOG 'name' FROM 'position', or DROP BINLOG "
    "and CREATE BINLOG"
)


class UntakenError(PeerError):
    """Transactions without a GTID stand in the source's log where the next group was to come.

    A dump by GTID passes them over, so that they would be missed in silence.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceIdentity:
    """The facts of a source to remember with the position that was taken.

    Attributes:
        server: MySQL's UUID of it, MariaDB's server id.
        file_position: The beginning of the next group in its files.
        created: The time when that file was begun, by its FORMAT_DESCRIPTION, in seconds since
            1970.
    """

    server: str
    file_position: FilePosition
    created: int


def lacks(position: Position, facts: SourceFacts) -> bool:
    """True if `check_position` refuses."""
    try:
        check_position(position, facts, peer="")
    except PeerError:
        return True
    return False


def check_position(position: Position, facts: SourceFacts, *, peer: str) -> None:
    """Refuse a source that lacks groups that were taken, or no longer has those that follow.

    Raises:
        PeerError: With what happened and what to do.
    """
    if isinstance(position, GtidPosition) and "gtid_binlog_state" in facts.variables:
        last = {(gtid.domain_id, gtid.server_id): gtid.sequence for gtid in facts.last_gtids}
        # A replica whose own log is new has what it replicated before.
        replicated = GtidPosition.parse(facts.variables.get("gtid_slave_pos", ""))
        missing = GtidPosition(
            tuple(
                gtid
                for gtid in position
                if last.get((gtid.domain_id, gtid.server_id), -1) < gtid.sequence
                and gtid not in replicated.gtids
            )
        )
        if missing:
            raise _other_history(f"{missing} is not in its log", peer)
    if isinstance(position, GtidSet) and isinstance(facts.position, GtidSet):
        if lacking := position.subtract(facts.position):
            raise _other_history(f"{lacking} is not in its gtid_executed", peer)
        if purged := facts.purged.subtract(position):
            raise PeerError(
                f"the source purged {purged} before binlane had read it",
                peer=peer,
                phase=PHASE,
                hint=_HINT,
            )


def check_file(identity: SourceIdentity, created: int, *, peer: str) -> None:
    """Refuse a server whose file is another one than that of its name before.

    Args:
        identity: The identity of the same server that was remembered.
        created: The time when the server's file of that name was begun.
        peer: The source's address, for messages.

    Raises:
        PeerError: With what happened and what to do.
    """
    if created != identity.created:
        raise _other_history(
            f"its file {identity.file_position.file} is another one than before", peer
        )


def check_missing_file(
    identity: SourceIdentity, oldest: FilePosition, refused: PeerError, *, peer: str
) -> None:
    """Refuse a server that lacks the remembered file, or its end, unless it only was purged.

    Args:
        identity: The identity of the same server that was remembered.
        oldest: The first file that it has.
        refused: The server's answer when it was asked for the place in the file.
        peer: The source's address, for messages.

    Raises:
        PeerError: With what happened and what to do.
    """
    if oldest < identity.file_position:
        raise _other_history(
            f"it lacks {identity.file_position}, and has {oldest.file} ({refused.message})", peer
        )


def goes_beyond(item: Item, position: Position) -> bool:
    """True if an item of a log goes beyond a position."""
    gtids = map(item.gtid, range(item.count)) if isinstance(item, RawRun) else (item.gtid,)
    return any(gtid is not None and not position.covers(gtid) for gtid in gtids)


def check_anonymous(refused: PeerError, position: Position, *, peer: str) -> None:
    """Tell what a MySQL refuses to send on since it has no GTID.

    Args:
        refused: The source's answer when it was asked for its log from where the next group was to
            come.
        position: The position that was taken.
        peer: The source's address, for messages.

    Raises:
        UntakenError: If that is so.
    """
    if _ANONYMOUS in refused.message:
        raise UntakenError(
            f"transactions without a GTID stand in the source's log behind {position}; they are in "
            f"no binlog, and cannot be taken ({refused.message})",
            peer=peer,
            phase=PHASE,
            hint="START BINLOG 'name' FROM 'position' goes on, behind an INCIDENT at which "
            "replicas stop; or DROP BINLOG and CREATE BINLOG",
        )


def _other_history(what: str, peer: str) -> PeerError:
    return PeerError(
        f"the source is not what it was: {what}; it was reset, restored from an older copy, or "
        "another server took its place",
        peer=peer,
        phase=PHASE,
        hint=_HINT,
    )
