"""Lanes: what a session's event groups are told by in the source's log.

A session in a lane has a `server_id` of its own on MariaDB, a tag of its GTIDs on MySQL: every group
that it makes says so, whatever the statement. Only privileged accounts may set those, so the source
has a procedure that does it for whoever calls it (`source_schema`).

Servers keep the last GTID of each server id and tag for ever, so there are few lanes, and they are
used again and again, those with low numbers first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final, Protocol

from binlane.codec.types import Flavor
from binlane.errors import StatementError
from binlane.gateway.judge import Reply
from binlane.names import TableName
from binlane.positions import AnyGtid, Gtid

DATABASE: Final = "binlane"
"""What binlane has on the source for itself."""
MARKS: Final = TableName(DATABASE, "marks")
"""A row for each lane; that it changes makes the source log a group. In no binlog."""
ENTER: Final = "lane"
"""The procedure that puts the session that calls it into the lane of a number."""
MARK: Final = "mark"
"""The procedure that makes the source log a group in the lane of the session that calls it."""

LANES_MAX: Final = 256
"""What `ENTER` takes: numbers below."""
SERVER_ID_FIRST: Final = 0x7B000000
SERVER_ID_LAST: Final = 0x7BFFFFFF
"""Server ids between them are lanes. Which of them are a server's hangs on its own server id, so
that the lanes of two servers that replicate from each other differ."""
_SERVERS: Final = 0x10000
_TAG: Final = "binlane_"

_REASONS: Final = {
    1044: "its account may not call binlane.lane",
    1049: "the source has no database binlane",
    1227: "binlane.lane may not do what it is for",
    1305: "the source has no procedure binlane.lane",
    1370: "its account may not call binlane.lane",
    1449: "the account that binlane.lane runs as is gone",
    1766: "it was in a transaction",
    6038: "binlane.lane may not do what it is for",
}
ALL_TAKEN: Final = "all lanes are taken"


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane of a source.

    Attributes:
        number: From 0.
        server_id: What its groups have on MariaDB; 0 on MySQL.
        tag: What its GTIDs have on MySQL; empty on MariaDB.
    """

    number: int
    server_id: int = 0
    tag: str = ""

    @property
    def enter(self) -> str:
        """The statement by which a session gets into it; behind COM_RESET_CONNECTION anew."""
        return f"CALL {DATABASE}.{ENTER}({self.number})"


@dataclass(frozen=True, slots=True)
class Lanes:
    """How the lanes of one source are told by.

    Attributes:
        flavor: Of the source.
        server_id: Its own server id.
    """

    flavor: Flavor
    server_id: int

    @property
    def first_server_id(self) -> int:
        """Of lane 0 on MariaDB."""
        return SERVER_ID_FIRST + self.server_id % _SERVERS * LANES_MAX

    def lane(self, number: int) -> Lane:
        """The lane of a number."""
        assert 0 <= number < LANES_MAX, f"there is no lane {number}"
        if self.flavor is Flavor.MARIADB:
            return Lane(number, server_id=self.first_server_id + number)
        return Lane(number, tag=f"{_TAG}{number}")

    def number_of(self, gtid: AnyGtid) -> int | None:
        """Which lane a group is of; None of none."""
        if isinstance(gtid, Gtid):
            return self.number_of_server_id(gtid.server_id)
        digits = gtid.tag.removeprefix(_TAG)
        is_number = digits != gtid.tag and digits.isdigit() and str(int(digits)) == digits
        return int(digits) if is_number and int(digits) < LANES_MAX else None

    def number_of_server_id(self, server_id: int) -> int | None:
        """Which lane events with a server id are of (MariaDB); None of none."""
        number = server_id - self.first_server_id
        is_lane = self.flavor is Flavor.MARIADB and 0 <= number < LANES_MAX
        return number if is_lane else None

    @property
    def setting(self) -> str:
        """The statement by which `ENTER` puts a session into lane `number`."""
        if self.flavor is Flavor.MARIADB:
            return (
                f"SET SESSION server_id = {SERVER_ID_FIRST}"
                f" + (@@GLOBAL.server_id & {_SERVERS - 1}) * {LANES_MAX} + number"
            )
        return f"SET SESSION gtid_next = CONCAT('AUTOMATIC:{_TAG}', number)"


class SourceSession(Protocol):
    """A session on the source that is to get into a lane."""

    @property
    def thread_id(self) -> int:
        """Its connection id on the source."""
        ...

    async def run_at_source(self, statement: str) -> Reply:
        """Run a statement that gives no rows.

        Raises:
            StatementError: If the source refuses it.
            PeerError: If the source goes away.
        """
        ...


class LanePool:
    """The lanes of a source; who takes one gives it back.

    Args:
        lanes: Of the source.
        is_clear: Whether all that a lane's last session may have made the source log has been
            attributed, so that the next one cannot be taken for it.
        numbers: Which lanes the pool has.
    """

    def __init__(
        self,
        lanes: Lanes,
        is_clear: Callable[[int], bool],
        numbers: Iterable[int] = range(LANES_MAX),
    ) -> None:
        self.lanes = lanes
        self._is_clear = is_clear
        self._free = list(numbers)
        heapify(self._free)
        self._refused = Counter[str]()

    @property
    def refused(self) -> Counter[str]:
        """How often a session got no lane, by reason."""
        return self._refused

    def acquire(self) -> Lane | None:
        """Take a lane; None if all are taken, or still have something to be attributed."""
        waiting: list[int] = []
        found: int | None = None
        while self._free and found is None:
            number = heappop(self._free)
            if self._is_clear(number):
                found = number
            else:
                waiting.append(number)
        for number in waiting:
            heappush(self._free, number)
        if found is None:
            self._refused[ALL_TAKEN] += 1
            return None
        return self.lanes.lane(found)

    async def claim(self, thread_id: int) -> Lane | None:
        """As `acquire`, of a pool that may be another process's, for a session of the source."""
        del thread_id
        return self.acquire()

    def release(self, lane: Lane) -> None:
        """Give a lane back: its session is over, or was told to forget it (COM_RESET_CONNECTION)."""
        assert lane.number not in self._free, f"lane {lane.number} was given back twice"
        heappush(self._free, lane.number)

    async def enter(self, session: SourceSession) -> Lane | None:
        """Put a session into a lane of its own; None where there is none for it, which is counted.

        The statement resets ROW_COUNT(), and on MySQL the session's warnings. On MySQL it is
        refused in a transaction.

        Raises:
            PeerError: If the source goes away.
        """
        lane = await self.claim(session.thread_id)
        if lane is None:
            return None
        errno = None
        try:
            errno = (await session.run_at_source(lane.enter)).errno
        except StatementError as error:
            errno = error.errno
        finally:
            if errno != 0:
                self.release(lane)
        if errno:
            self._refused[_REASONS.get(errno, f"binlane.lane failed with error {errno}")] += 1
        return None if errno else lane
