"""Recognition of groups that a replica has already, by the raw bytes of their first events.

A MariaDB replica says up to where in each domain it has everything; a MySQL replica says which GTIDs
it has, in whatever order they came.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, Protocol

from binlane.live.dump.raw_gtids import RawGtids
from binlane.log.codec.format import Format
from binlane.log.codec.types import EventType
from binlane.positions import Gtid, GtidPosition, GtidSet, Position, mariadb_position

_GTID: Final = Struct("<5xI10xQI")
_MYSQL_GTIDS: Final = frozenset({EventType.GTID_LOG, EventType.GTID_TAGGED_LOG})

# These stand between event groups: they are sent whatever is skipped.
_BETWEEN_GROUPS: Final = frozenset(
    {
        EventType.STOP,
        EventType.ROTATE,
        EventType.FORMAT_DESCRIPTION,
        EventType.GTID_LIST,
        EventType.BINLOG_CHECKPOINT,
        EventType.START_ENCRYPTION,
        EventType.PREVIOUS_GTIDS_LOG,
    }
)


class GroupSkipper(Protocol):
    """Leaves out the event groups that a replica has already.

    An INCIDENT stands for a group, behind its GTID, or alone: it then tells of what is in no file,
    to whoever does not begin behind it.

    Attributes:
        owes_position: True if groups were left out since the replica was last told where it stands.
    """

    owes_position: bool

    @property
    def is_done(self) -> bool:
        """True if nothing will be left out any more."""
        ...

    @property
    def passed(self) -> Position:
        """The position that is done at the dump's place; for MySQL that of the file's beginning."""
        ...

    def enter(self, done: Position, format_: Format) -> None:
        """Begin a file before which `done` was done."""
        ...

    def skip_to(self, done: Position) -> None:
        """Go on where `done` is done, all of which the replica has."""
        ...

    def add(self, done: Position) -> None:
        """Leave out more: before the file is entered that may hold it."""
        ...

    def leaves_out(self, type_code: int, data: bytes, offset: int) -> bool:
        """True if the event of `data` at `offset` belongs to a group that the replica has."""
        ...


def skipper_for(done: Position) -> GroupSkipper:
    """Return the skipper that leaves out the groups that a replica has done."""
    return MysqlSkipper(done) if isinstance(done, GtidSet) else MariadbSkipper(done)


class MariadbSkipper:
    """The skipper for a replica that has done everything up to a GTID of each domain.

    Attributes:
        passed: Everything before the point in the log where the dump stands.
        owes_position: True if groups were left out since the replica was last told where it stands.
    """

    def __init__(self, connect_state: Position) -> None:
        # Sequences grow within a domain, so the first one behind the replica's ends its part in this.
        self._last_by_domain = {
            gtid.domain_id: gtid.sequence for gtid in mariadb_position(connect_state)
        }
        self._is_skipping = self._has_begun = False
        self.passed = GtidPosition()
        self.owes_position = False

    @property
    def is_done(self) -> bool:
        """As `GroupSkipper`."""
        return not (self._last_by_domain or self._is_skipping or self.owes_position)

    def enter(self, done: Position, format_: Format) -> None:
        """As `GroupSkipper`."""
        del format_
        self.passed = mariadb_position(done)
        self._is_skipping = False
        self._pass_domains(self.passed)

    def skip_to(self, done: Position) -> None:
        """As `GroupSkipper`."""
        self.passed = self.passed.union(mariadb_position(done))
        self.owes_position = True
        self._pass_domains(mariadb_position(done))

    def add(self, done: Position) -> None:
        """As `GroupSkipper`."""
        for gtid in mariadb_position(done):
            known = self._last_by_domain.get(gtid.domain_id, -1)
            self._last_by_domain[gtid.domain_id] = max(known, gtid.sequence)

    def _pass_domains(self, done: GtidPosition) -> None:
        """Look no more for groups of domains of which all was done before this place."""
        for gtid in done:
            if gtid.sequence >= self._last_by_domain.get(gtid.domain_id, gtid.sequence + 1):
                del self._last_by_domain[gtid.domain_id]

    def leaves_out(self, type_code: int, data: bytes, offset: int) -> bool:
        """As `GroupSkipper`."""
        if type_code == EventType.GTID:
            server_id, sequence, domain_id = _GTID.unpack_from(data, offset)
            self._is_skipping = sequence <= self._last_by_domain.get(domain_id, -1)
            if self._is_skipping:
                self.passed = self.passed.advance(Gtid(domain_id, server_id, sequence))
                self.owes_position = True
            else:
                self._last_by_domain.pop(domain_id, None)
        elif type_code in _BETWEEN_GROUPS or _is_alone(type_code, has_begun=self._has_begun):
            self._is_skipping = False
        self._has_begun = type_code == EventType.GTID
        return self._is_skipping


class MysqlSkipper:
    """The skipper for a replica that has done a set of GTIDs.

    Attributes:
        passed: The position before the file that the dump stands in.
        owes_position: True if groups were left out since the replica was last told where it stands.
        is_done: True if all that the replica has was done before this file.
    """

    def __init__(self, done: GtidSet) -> None:
        self._done = done
        self._is_skipping = self._has_begun = False
        self._gtids = RawGtids()
        self.passed = GtidSet()
        self.owes_position = False
        self.is_done = not done

    def enter(self, done: Position, format_: Format) -> None:
        """As `GroupSkipper`."""
        assert isinstance(done, GtidSet), f"{done} is none of MySQL's"
        self.passed, self._gtids.format = done, format_
        self._is_skipping = False
        # Out of order as they may be: what was done before a file never stands in it again.
        self.is_done = done.includes(self._done) and not self.owes_position

    def skip_to(self, done: Position) -> None:
        """As `GroupSkipper`."""
        del done
        self.owes_position = True

    def add(self, done: Position) -> None:
        """As `GroupSkipper`."""
        assert isinstance(done, GtidSet), f"{done} is none of MySQL's"
        self._done = self._done.union(done)

    def leaves_out(self, type_code: int, data: bytes, offset: int) -> bool:
        """As `GroupSkipper`."""
        if type_code in _MYSQL_GTIDS:
            gtid = self._gtids.at(type_code, data, offset)
            self._is_skipping = self._done.covers(gtid)
            self.owes_position = self.owes_position or self._is_skipping
        elif (
            type_code in _BETWEEN_GROUPS
            or type_code == EventType.ANONYMOUS_GTID_LOG
            or _is_alone(type_code, has_begun=self._has_begun)
        ):
            self._is_skipping = False
        self._has_begun = type_code in _MYSQL_GTIDS
        return self._is_skipping


def _is_alone(type_code: int, *, has_begun: bool) -> bool:
    """True if an event is an INCIDENT that belongs to no group."""
    return type_code == EventType.INCIDENT and not has_begun
