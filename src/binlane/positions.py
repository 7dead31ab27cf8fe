"""Where something stands in a log: GTIDs, GTID positions and file positions.

A MariaDB GTID is `domain-server-sequence`; a GTID position holds the last GTID of each domain and
so says "everything up to here". Sequences grow within a domain, whatever server wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

DOMAIN_MAX = SERVER_ID_MAX = 2**32 - 1
SEQUENCE_MAX = 2**64 - 1


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
