"""Going through a scoped binlog beside the full log: which of its event groups is part of which."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Final

from binlane.binlogs.store.verify.contents import GroupChanges, contents
from binlane.binlogs.store.verify.faults import Fault
from binlane.binlogs.store.verify.log import LogFiles
from binlane.binlogs.store.verify.statement_parts import is_part_of_group
from binlane.log.codec.encryption import KeyRing
from binlane.positions import AnyGtid, GtidSet, Position

_AHEAD_MAX: Final = 16
_SEEDS: Final = "rows of its tables as they were, which no other log has"
_ARRIVED: Final = "a table came into the scope with its rows"


class ScopedLog:
    """The event groups of a scoped binlog, as far as the full log has come.

    Attributes:
        name: Name that faults give the binlog.
        beside: By reason, the GTIDs that the binlog rightly has and no other log.
    """

    def __init__(
        self,
        log: LogFiles,
        span: tuple[Position | None, Position | None],
        keys: KeyRing | None,
    ) -> None:
        self.name = log.name
        self.beside: dict[str, list[AnyGtid]] = defaultdict(list)
        self._log_begin = log.begin
        self._seeds = tuple(
            (each.whole, _ARRIVED if each.is_arrival else _SEEDS) for each in log.seedings
        )
        self._begin, self._end = span
        # Others cannot be found, neither by a GTID nor by what they do.
        groups = contents(log.paths, keys=keys, is_live=log.is_live)
        self._groups = (
            group
            for group in groups
            if (group.gtid or group.changes) and not self._is_beside(group.gtid)
        )
        self._ahead: deque[GroupChanges] = deque()
        self._see(1)

    def has_begun(self, group: GroupChanges) -> bool:
        """True unless a group of the full log was done before the binlog began."""
        begin = self._log_begin
        return begin is None or group.gtid is None or not begin.covers(group.gtid)

    def note_arrival(self, group: GroupChanges) -> None:
        """Note a group in which a table comes into the scope with its rows."""
        if group.gtid is not None:
            self.beside[_ARRIVED].append(group.gtid)

    def notes(self) -> Iterator[str]:
        """Describe the groups that the binlog rightly has beside the full log, a line each."""
        for reason, gtids in self.beside.items():
            more = f", the first of {len(gtids)} event groups" if len(gtids) > 1 else ""
            yield f"binlog {self.name}: GTID {gtids[0]}{more}: {reason}"

    def _is_beside(self, gtid: AnyGtid | None) -> bool:
        if gtid is None:
            return False
        for seeds, reason in self._seeds:
            if seeds.covers(gtid):
                self.beside[reason].append(gtid)
                return True
        return False

    def _see(self, count: int) -> None:
        """Have so many groups in sight, if there are."""
        while len(self._ahead) < count and (group := next(self._groups, None)):
            self._ahead.append(group)

    def _take(self) -> GroupChanges:
        taken = self._ahead.popleft()
        self._see(1)
        return taken

    def part_of(self, group: GroupChanges) -> GroupChanges | None:
        """The next group, if it is a part of this one of the full log."""
        if not self._ahead or self._ahead[0].gtid != group.gtid:
            return None
        if group.gtid is None and not is_part_of_group(self._ahead[0], group):
            return None
        return self._take()

    def skip_strangers(self, group: GroupChanges, done: Position | None) -> Iterator[Fault]:
        """Leave out groups that will not come any more.

        Args:
            group: The group that the full log has come to.
            done: Position that the full log has done so far, this group included.
        """
        for _ in range(self._strangers_before(group)):
            yield _stranger(self._take())
        while self._ahead and (gtid := self._ahead[0].gtid) is not None:
            if gtid == group.gtid or self._may_come(gtid, done):
                return
            yield _stranger(self._take())

    def _strangers_before(self, group: GroupChanges) -> int:
        """Count the groups without GTID before the one that is a part of this one.

        Groups with tables in scope are here, so that none is found that comes later.
        """
        if group.gtid is not None or not self._ahead or self._ahead[0].gtid is not None:
            return 0
        if is_part_of_group(self._ahead[0], group):
            return 0
        self._see(_AHEAD_MAX)
        found = (n for n, mine in enumerate(self._ahead) if is_part_of_group(mine, group))
        return next(found, 0)

    def _may_come(self, gtid: AnyGtid, done: Position | None) -> bool:
        if done is None or self._end is None:
            return False
        if isinstance(self._begin, GtidSet) and self._begin.covers(gtid):
            return False
        return self._end.covers(gtid) and not done.covers(gtid)

    def rest(self) -> Iterator[Fault]:
        """Give the groups that the full log does not have, at its end."""
        if not self._ahead:
            return
        first, *others = self._ahead
        yield _stranger(first, more=len(others) + sum(1 for _ in self._groups))


def _stranger(group: GroupChanges, *, more: int = 0) -> Fault:
    name = f"GTID {group.gtid}"
    if group.gtid is None:
        name = f"the event group with {group.changes[0].text}"
    what = f"{name} is not in the full log, or not behind those before it here"
    what += f"; nor are {more} behind it" if more else ""
    return Fault(group.file, group.position, what)
