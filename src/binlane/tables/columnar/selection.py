"""A reader's selection of a log: which tables, and from which event group to which."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import numpy.typing as npt

from binlane.errors import ConfigError
from binlane.names import TableName
from binlane.positions import FilePosition, Gtid, GtidPosition, file_number
from binlane.statements.scope.scope import Scope, ScopeList, ScopeObject

if TYPE_CHECKING:
    from binlane.binlogs.filters.terms import FilterTerms

Bound = FilePosition | GtidPosition | datetime
"""A file and position, a GTID position, or a time."""

_Numbers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.uint8]

_FILE_POSITION: Final = re.compile(r"(?P<file>.+):(?P<position>\d+)")
_PART: Final = re.compile(r"`(?:[^`]|``)+`|[^`.\s]+")


class Selectable(Protocol):
    """Facts about an event group that a selection decides by."""

    @property
    def file(self) -> str:
        """Base name of its file."""

    @property
    def position(self) -> int:
        """Position in the file at which the group begins, in bytes."""

    @property
    def timestamp(self) -> int:
        """Time of the group's last event, in seconds since 1970."""

    @property
    def mariadb_gtid(self) -> Gtid | None:
        """The group's GTID, if it is one of MariaDB's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """An event group without its events.

    Attributes:
        file: Base name of its file.
        position: Where the group begins, in bytes.
        timestamp: Time of the group's last event, in seconds since 1970.
        gtid_text: The group's GTID; empty if it has none.
    """

    file: str
    position: int
    timestamp: int
    gtid_text: str

    @property
    def mariadb_gtid(self) -> Gtid | None:
        """The group's GTID, if it is one of MariaDB's."""
        is_mysql = ":" in self.gtid_text
        return None if is_mysql or not self.gtid_text else Gtid.parse(self.gtid_text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A reader's selection of a log.

    Attributes:
        scope: The tables by databases and names.
        start: The first event group wanted: at or after a file position or time; after a GTID
            position, which is done already. None is the beginning.
        stop: Groups before a file position or time; up to and with a GTID position, of whose
            domains only those named are wanted. None is the end.
        filter_terms: The terms of the filter that tables pass, too; None for all tables.
        beside: Tables that are read whatever the filter says of them.
    """

    scope: Scope = field(default_factory=Scope.everything)
    start: Bound | None = None
    stop: Bound | None = None
    filter_terms: FilterTerms | None = None
    beside: frozenset[TableName] = frozenset()

    @property
    def is_unbounded(self) -> bool:
        """True if all groups lie between start and stop."""
        return self.start is None and self.stop is None

    def includes(self, group: Selectable) -> bool:
        """True if a group lies between start and stop; a group without a GTID always passes a GTID bound."""
        return (self.start is None or not _is_before(group, self.start)) and (
            self.stop is None or _is_before(group, self.stop)
        )

    def places(self, file: str, positions: _Numbers, times: _Numbers) -> _Flags | None:
        """Return a flag for each group that lies between start and stop; None if GTIDs decide.

        Args:
            file: Base name of their file.
            positions: Where the groups begin in the file.
            times: Times of the groups' last events.
        """
        wanted = np.ones(positions.shape[0], bool)
        for bound, is_start in ((self.start, True), (self.stop, False)):
            if isinstance(bound, GtidPosition):
                return None
            if bound is None:
                continue
            if isinstance(bound, FilePosition):
                ours, theirs = file_number(file), file_number(bound.file)
                before = (positions < bound.position) & (ours == theirs) | (ours < theirs)
            else:
                before = times < bound.timestamp()
            wanted &= before != is_start
        return wanted.astype(np.uint8)


def _is_before(group: Selectable, bound: Bound) -> bool:
    """True if a group belongs to the part of the log before a bound."""
    if isinstance(bound, FilePosition):
        place = (file_number(group.file), group.position)
        return place < (file_number(bound.file), bound.position)
    if isinstance(bound, GtidPosition):
        return group.mariadb_gtid is not None and bound.covers(group.mariadb_gtid)
    return group.timestamp < bound.timestamp()


def parse_bound(text: str, *, key: str) -> Bound:
    """Read `orders.000001:4`, `0-1-5,1-1-7` or `2026-01-31T12:00:00` (UTC unless it says a zone).

    Args:
        text: The text that the user wrote.
        key: The option, for the error.

    Raises:
        ConfigError: If the text is none of these.
    """
    try:
        return GtidPosition.parse(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    match = _FILE_POSITION.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"{text!r} is no place in a log",
            key=key,
            hint="write FILE:POSITION, a GTID position such as 0-1-5, or a time such as "
            "2026-01-31T12:00:00",
        )
    return FilePosition(match["file"], int(match["position"]))


def parse_tables(names: str | Iterable[str]) -> Scope:
    """The scope of some databases and tables: `shop`, `shop.orders`, `` `a.b`.`c` ``.

    Raises:
        ConfigError: If a name is neither a database nor a table.
    """
    listed = [names] if isinstance(names, str) else list(names)
    objects = [_parse_object(name.strip()) for name in listed]
    return Scope.nothing().with_list(ScopeList.LOG, objects)


def _parse_object(name: str) -> ScopeObject:
    parts = [
        part[1:-1].replace("``", "`") if part.startswith("`") else part
        for part in _PART.findall(name)
    ]
    if ".".join(_PART.findall(name)) != name or not 1 <= len(parts) <= 2:
        raise ConfigError(
            f"{name!r} names neither a database nor a table",
            key="tables",
            hint="write DATABASE or DATABASE.TABLE, with backticks around names that have dots",
        )
    return parts[0] if len(parts) == 1 else TableName(*parts)
