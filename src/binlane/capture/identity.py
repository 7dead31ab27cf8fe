"""Whether a source still is the one whose log was taken before.

GTIDs alone do not tell: a server that was reset counts from 1 again, and once it has passed what
was taken, its first groups would be missed in silence.
"""

from __future__ import annotations

from dataclasses import dataclass

from binlane.capture.source_facts import SourceFacts
from binlane.codec.types import Flavor
from binlane.errors import PeerError
from binlane.positions import FilePosition, GtidPosition, GtidSet, Position

_HINT = (
    "to go on with what the source has now: START BINLOG 'name' FROM 'position', or DROP BINLOG "
    "and CREATE BINLOG"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceIdentity:
    """What to remember of a source, with the position that was taken.

    Attributes:
        server: MySQL's UUID of it, MariaDB's server id.
        file_position: Where the next group begins in its files.
        created: When that file was begun, by its FORMAT_DESCRIPTION, in seconds since 1970.
    """

    server: str
    file_position: FilePosition
    created: int


def check_position(
    position: Position, facts: SourceFacts, identity: SourceIdentity | None, *, peer: str
) -> None:
    """Refuse a source that lacks groups that were taken, or no longer has those that follow.

    Raises:
        PeerError: With what happened and what to do.
    """
    del identity
    if facts.flavor is Flavor.MARIADB and isinstance(position, GtidPosition):
        last = {(gtid.domain_id, gtid.server_id): gtid.sequence for gtid in facts.last_gtids}
        # A replica whose own log is new has what it replicated before.
        replicated = GtidPosition.parse(facts.variables.get("gtid_slave_pos", ""))
        missing = [
            str(gtid)
            for gtid in position
            if last.get((gtid.domain_id, gtid.server_id), -1) < gtid.sequence
            and gtid not in replicated.gtids
        ]
        if missing and "gtid_binlog_state" in facts.variables:
            raise _other_history(", ".join(missing), peer)
    if isinstance(position, GtidSet) and isinstance(facts.position, GtidSet):
        if lacking := position.subtract(facts.position):
            raise _other_history(str(lacking), peer)
        if purged := facts.purged.subtract(position):
            raise PeerError(
                f"the source purged {purged}, which was not taken yet",
                peer=peer,
                phase="connect",
                hint=_HINT,
            )


def _other_history(gtids: str, peer: str) -> PeerError:
    return PeerError(
        f"{gtids} was taken before and is not in the source's log: it was reset, restored from an "
        "older copy, or another server took its place",
        peer=peer,
        phase="connect",
        hint=_HINT,
    )
