"""Places in a log: GTIDs, GTID positions and sets, and file positions.

A MariaDB GTID is `domain-server-sequence`; a GTID position holds the last GTID of each domain and
so says "everything up to here". Sequences grow within a domain, whatever server wrote them.

A MySQL GTID is `source:sequence` or `source:tag:sequence`; a GTID set holds intervals of sequences
for each source and tag, since nothing says that they come in order.

Both say "this is done", and whoever only asks that asks a `Position`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import total_ordering
from itertools import islice
from types import MappingProxyType
from typing import ClassVar, Final, Protocol, Self

DOMAIN_MAX = SERVER_ID_MAX = 2**32 - 1
SEQUENCE_MAX = 2**64 - 1
MYSQL_SEQUENCE_MAX: Final = 2**63 - 2
_FILE_NUMBER: Final = re.compile(r"\.(\d+)$")
_TAG: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_INTERVAL: Final = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?", re.ASCII)
_SOURCE: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, order=True)
class Gtid:
    """A MariaDB GTID.

    Attributes:
        domain_id: Replication domain, 0 to 2^32-1.
        server_id: The server that first wrote the event group.
        sequence: Sequence number, growing within the domain.
    """

    domain_id: int
    server_id: int
    sequence: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `0-1-5`.

        Raises:
            ValueError: If the text is no GTID.
        """
        parts = text.strip().split("-")
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
            raise ValueError(f"{text!r} is no MariaDB GTID (domain-server-sequence)")
        domain_id, server_id, sequence = map(int, parts)
        if domain_id > DOMAIN_MAX or server_id > SERVER_ID_MAX or sequence > SEQUENCE_MAX:
            raise ValueError(f"{text!r} is no MariaDB GTID: a part is out of range")
        return cls(domain_id, server_id, sequence)

    def __str__(self) -> str:
        return f"{self.domain_id}-{self.server_id}-{self.sequence}"


@dataclass(frozen=True, slots=True)
class GtidPosition:
    """A MariaDB GTID position: the last GTID of each domain. Empty means the beginning.

    Attributes:
        gtids: One for each domain, by growing domain id.
    """

    flavor: ClassVar[str] = "mariadb"

    gtids: tuple[Gtid, ...] = ()

    @classmethod
    def of(cls, gtids: Iterable[Gtid]) -> Self:
        """The position that has all of `gtids` done; of several in a domain the last one given."""
        last = {gtid.domain_id: gtid for gtid in gtids}
        return cls(tuple(last[domain_id] for domain_id in sorted(last)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `0-1-5,2-7-9`; the empty text is the beginning.

        Raises:
            ValueError: If a part is no GTID or a domain stands twice.
        """
        gtids = [Gtid.parse(part) for part in text.split(",") if part.strip()]
        if len({gtid.domain_id for gtid in gtids}) != len(gtids):
            raise ValueError(f"{text!r} names a domain twice")
        return cls.of(gtids)

    def __str__(self) -> str:
        return ",".join(map(str, self.gtids))

    def __iter__(self) -> Iterator[Gtid]:
        return iter(self.gtids)

    def __bool__(self) -> bool:
        return bool(self.gtids)

    def last(self, domain_id: int) -> Gtid | None:
        """The last GTID of a domain, None if nothing of it is done."""
        for gtid in self.gtids:
            if gtid.domain_id == domain_id:
                return gtid
        return None

    def covers(self, gtid: AnyGtid) -> bool:
        """True if `gtid` is done at this position; one of another flavor never is."""
        if not isinstance(gtid, Gtid):
            return False
        last = self.last(gtid.domain_id)
        return last is not None and last.sequence >= gtid.sequence

    def includes(self, other: GtidPosition) -> bool:
        """True if everything done at `other` is done here too."""
        return all(map(self.covers, other.gtids))

    def advance(self, gtid: AnyGtid) -> GtidPosition:
        """The position after `gtid`."""
        assert isinstance(gtid, Gtid), f"{gtid} is none of MariaDB's"
        if len(self.gtids) == 1 and self.gtids[0].domain_id == gtid.domain_id:
            return GtidPosition((gtid,))
        return GtidPosition.of((*self.gtids, gtid))

    def union(self, other: GtidPosition) -> GtidPosition:
        """The position of what either position has done."""
        return GtidPosition.of(sorted((*self, *other), key=lambda gtid: gtid.sequence))

    def intersection(self, other: GtidPosition) -> GtidPosition:
        """The position that has done only what both have done."""
        return GtidPosition.of(
            min(mine, theirs, key=lambda gtid: gtid.sequence)
            for mine in self
            if (theirs := other.last(mine.domain_id))
        )

    def subtract(self, other: GtidPosition) -> GtidPosition:
        """The domains in which this position is ahead of the other."""
        return GtidPosition.of(gtid for gtid in self if not other.covers(gtid))


@dataclass(frozen=True, slots=True, order=True)
class MysqlGtid:
    """A MySQL GTID.

    Attributes:
        source_id: str, in lower case, of the server or group that first committed the transaction.
        sequence: Number within source and tag, from 1.
        tag: Lower-case name that the session gave (MySQL 8.3 and later), else empty.
    """

    source_id: str
    sequence: int
    tag: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `uuid:7` or `uuid:tag:7`.

        Raises:
            ValueError: If the text is no GTID.
        """
        runs = list(GtidSet.parse(text).runs)
        if len(runs) != 1 or len(runs[0].intervals) != 1:
            raise ValueError(f"{text!r} is not one MySQL GTID (source:sequence)")
        ((first, last),) = runs[0].intervals
        if first != last:
            raise ValueError(f"{text!r} is not one MySQL GTID but several")
        return cls(runs[0].source_id, first, runs[0].tag)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.source_id}{tag}:{self.sequence}"


AnyGtid = Gtid | MysqlGtid


@dataclass(frozen=True, slots=True, order=True)
class GtidRun:
    """Sequences of one source and tag.

    Attributes:
        source_id: The source's UUID, as in `MysqlGtid`.
        tag: The GTID's tag, as in `MysqlGtid`.
        intervals: First and last sequence of each, both inside.
    """

    source_id: str
    tag: str
    intervals: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class GtidSet:
    """A set of MySQL GTIDs.

    Attributes:
        runs: One for each source and tag, in order, none empty; the intervals of each grow and
            do not touch.
    """

    flavor: ClassVar[str] = "mysql"

    runs: tuple[GtidRun, ...] = ()

    @classmethod
    def of(cls, gtids: Iterable[MysqlGtid | GtidRun]) -> Self:
        """The set of all that is given, in any order, overlapping or not."""
        found: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for gtid in gtids:
            found[gtid.source_id, gtid.tag].extend(
                gtid.intervals if isinstance(gtid, GtidRun) else ((gtid.sequence, gtid.sequence),)
            )
        return cls(
            tuple(
                GtidRun(source_id, tag, _joined(intervals))
                for (source_id, tag), intervals in sorted(found.items())
                if intervals
            )
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `uuid:1-5:7:tag:1,uuid:…`; white space and empty parts between commas are allowed.

        Raises:
            ValueError: If a part is none of a GTID set.
        """
        parts = ("".join(part.split()) for part in text.split(","))
        return cls.of(run for part in parts if part for run in _runs(part))

    def __contains__(self, gtid: MysqlGtid) -> bool:
        return self.covers(gtid)

    def __bool__(self) -> bool:
        return bool(self.runs)

    def __str__(self) -> str:
        texts: dict[str, str] = {}
        for run in self.runs:
            texts.setdefault(run.source_id, run.source_id)
            texts[run.source_id] += f":{run.tag}" if run.tag else ""
            for first, last in run.intervals:
                texts[run.source_id] += f":{first}" if first == last else f":{first}-{last}"
        return ",".join(texts.values())

    def covers(self, gtid: AnyGtid) -> bool:
        """True if `gtid` is in the set; one of another flavor never is."""
        if not isinstance(gtid, MysqlGtid):
            return False
        intervals = self._intervals(gtid.source_id, gtid.tag)
        at = bisect_right(intervals, (gtid.sequence, MYSQL_SEQUENCE_MAX)) - 1
        return at >= 0 and gtid.sequence <= intervals[at][1]

    def goes_past(self, gtid: MysqlGtid) -> bool:
        """True if the set has a later one of the same source and tag, and not `gtid`."""
        intervals = self._intervals(gtid.source_id, gtid.tag)
        is_earlier = bool(intervals) and gtid.sequence < intervals[-1][1]
        return is_earlier and not self.covers(gtid)

    def includes(self, other: GtidSet) -> bool:
        """True if everything in `other` is in this set too."""
        return not other.subtract(self)

    def advance(self, gtid: AnyGtid) -> GtidSet:
        """The set with `gtid` in it."""
        assert isinstance(gtid, MysqlGtid), f"{gtid} is none of MySQL's"
        for index, run in enumerate(self.runs):
            first, last = run.intervals[-1]
            is_next = gtid.sequence == last + 1
            if is_next and (run.source_id, run.tag) == (gtid.source_id, gtid.tag):
                intervals = (*run.intervals[:-1], (first, gtid.sequence))
                longer = GtidRun(run.source_id, run.tag, intervals)
                return GtidSet((*self.runs[:index], longer, *self.runs[index + 1 :]))
        return GtidSet.of((*self.runs, gtid))

    def union(self, other: GtidSet) -> GtidSet:
        """Return the GTIDs that either set holds."""
        return GtidSet.of((*self.runs, *other.runs))

    def intersection(self, other: GtidSet) -> GtidSet:
        """Return the GTIDs that both sets hold."""
        return self.subtract(self.subtract(other))

    def subtract(self, other: GtidSet) -> GtidSet:
        """Return the GTIDs that this set holds and the other does not."""
        return GtidSet.of(
            GtidRun(run.source_id, run.tag, gaps)
            for run in self.runs
            if (gaps := _without(run.intervals, other._intervals(run.source_id, run.tag)))
        )

    def _intervals(self, source_id: str, tag: str) -> tuple[tuple[int, int], ...]:
        for run in self.runs:
            if run.source_id == source_id and run.tag == tag:
                return run.intervals
        return ()


class Position(Protocol):
    """All that is done: MariaDB's `GtidPosition` or MySQL's `GtidSet`. Two are of one flavor.

    Attributes:
        flavor: `mariadb` or `mysql`, as `codec.types.Flavor` has them.
    """

    flavor: ClassVar[str]

    def __bool__(self) -> bool:
        """True if anything is done."""
        ...

    def __str__(self) -> str:
        """The set as the servers write it."""
        ...

    def covers(self, gtid: AnyGtid) -> bool:
        """True if `gtid` is done."""
        ...

    def includes(self, other: Self) -> bool:
        """True if everything done at `other` is done here too."""
        ...

    def advance(self, gtid: AnyGtid) -> Self:
        """The position with `gtid` done."""
        ...

    def union(self, other: Self) -> Self:
        """Return the position of what either has done."""
        ...

    def intersection(self, other: Self) -> Self:
        """Return the position of what both have done."""
        ...

    def subtract(self, other: Self) -> Self:
        """Return what is done here and not there."""
        ...


_POSITIONS: Final[Mapping[str, type[GtidPosition | GtidSet]]] = MappingProxyType(
    {kind.flavor: kind for kind in (GtidPosition, GtidSet)}
)


def nothing_done(flavor: str) -> GtidPosition | GtidSet:
    """The empty position of a flavor."""
    return _POSITIONS[flavor]()


def parse_position(text: str, flavor: str) -> GtidPosition | GtidSet:
    """Read a position of a flavor.

    Raises:
        ValueError: If it is none.
    """
    return _POSITIONS[flavor].parse(text)


def mariadb_position(position: Position) -> GtidPosition:
    """A position that can only be one of MariaDB, for what speaks MariaDB's protocol."""
    assert isinstance(position, GtidPosition), f"{position} is none of MariaDB's"
    return position


def uuid_text(digits: str) -> str:
    """The usual form of a UUID: 32 digits in lower case with dashes."""
    plain = digits.replace("-", "").lower()
    return "-".join((plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:]))


def _joined(intervals: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same sequences in as few growing intervals as there can be."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(intervals):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def _without(
    intervals: Iterable[tuple[int, int]], others: Sequence[tuple[int, int]]
) -> tuple[tuple[int, int], ...]:
    """The parts of growing intervals that lie in none of the others, which grow, too."""
    left: list[tuple[int, int]] = []
    start = 0
    for first, last in intervals:
        low = first
        while start < len(others) and others[start][1] < low:
            start += 1
        for hole_first, hole_last in islice(others, start, None):
            if hole_first > last:
                break
            if low < hole_first:
                left.append((low, hole_first - 1))
            low = hole_last + 1
        if low <= last:
            left.append((low, last))
    return tuple(left)


def _runs(text: str) -> Iterator[GtidRun]:
    """The runs of one source: `uuid:1-5:7:tag:1`."""
    source, *parts = text.split(":")
    if not _SOURCE.fullmatch(source) or not parts:
        raise ValueError(f"{text!r} is no MySQL GTID set (source:sequences)")
    tag = ""
    for part in parts:
        match = _INTERVAL.fullmatch(part)
        if match is None:
            tag = part.lower()
            if not _TAG.fullmatch(tag):
                raise ValueError(f"{part!r} in {text!r} is neither an interval nor a tag")
            continue
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= MYSQL_SEQUENCE_MAX or last > MYSQL_SEQUENCE_MAX:
            raise ValueError(f"{part!r} in {text!r} is out of range")
        if first <= last:
            yield GtidRun(uuid_text(source), tag, ((first, last),))


@total_ordering
@dataclass(frozen=True, slots=True)
class FilePosition:
    """A byte position in a binlog file.

    Positions of one log are in the order of its files' numbers: `orders.1000000` follows
    `orders.999999`.

    Attributes:
        file: Base name such as `orders.000001`.
        position: The byte offset in that file, from 4.
    """

    file: str
    position: int

    def __str__(self) -> str:
        return f"{self.file}:{self.position}"

    def __lt__(self, other: FilePosition) -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[str, int, str, int]:
        log, _, digits = self.file.rpartition(".")
        is_numbered = digits.isascii() and digits.isdigit()
        place = (log, int(digits)) if is_numbered else (self.file, 0)
        return (*place, self.file, self.position)


def file_number(file: str) -> int:
    """The number at the end of a binlog file's name, 0 if there is none."""
    match = _FILE_NUMBER.search(file)
    return int(match[1]) if match else 0
