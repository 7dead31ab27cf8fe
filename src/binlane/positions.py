"""Where something stands in a log: GTIDs, GTID positions and sets, and file positions.

A MariaDB GTID is `domain-server-sequence`; a GTID position holds the last GTID of each domain and
so says "everything up to here". Sequences grow within a domain, whatever server wrote them.

A MySQL GTID is `source:sequence` or `source:tag:sequence`; a GTID set holds intervals of sequences
for each source and tag, since nothing says that they come in order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

DOMAIN_MAX = SERVER_ID_MAX = 2**32 - 1
SEQUENCE_MAX = 2**64 - 1
MYSQL_SEQUENCE_MAX: Final = 2**63 - 2
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
        return next((gtid for gtid in self.gtids if gtid.domain_id == domain_id), None)

    def covers(self, gtid: Gtid) -> bool:
        """Whether `gtid` is done at this position."""
        last = self.last(gtid.domain_id)
        return last is not None and last.sequence >= gtid.sequence

    def includes(self, other: GtidPosition) -> bool:
        """Whether everything done at `other` is done here too."""
        return all(self.covers(gtid) for gtid in other)

    def advance(self, gtid: Gtid) -> GtidPosition:
        """The position after `gtid`."""
        return GtidPosition.of((*self.gtids, gtid))

    def union(self, other: GtidPosition) -> GtidPosition:
        """The position that has done what either has done."""
        return GtidPosition.of(sorted((*self, *other), key=lambda gtid: gtid.sequence))

    def intersection(self, other: GtidPosition) -> GtidPosition:
        """The position that has done only what both have done."""
        return GtidPosition.of(
            min(mine, theirs, key=lambda gtid: gtid.sequence)
            for mine in self
            if (theirs := other.last(mine.domain_id))
        )


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
        source_id: As in `MysqlGtid`.
        tag: As in `MysqlGtid`.
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
        return any(
            first <= gtid.sequence <= last
            for run in self.runs
            if (run.source_id, run.tag) == (gtid.source_id, gtid.tag)
            for first, last in run.intervals
        )

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

    def union(self, other: GtidSet) -> GtidSet:
        """What either holds."""
        return GtidSet.of((*self.runs, *other.runs))


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


@dataclass(frozen=True, slots=True, order=True)
class FilePosition:
    """A byte position in a binlog file.

    Attributes:
        file: Base name such as `orders.000001`.
        position: Byte offset, from 4.
    """

    file: str
    position: int

    def __str__(self) -> str:
        return f"{self.file}:{self.position}"
