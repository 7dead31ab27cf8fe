"""Messages between a worker and the process that started it, beside the names of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

from binlane.live.gateway.handler import HandlerSession, SessionAge
from binlane.live.gateway.port_counts import PortCounts
from binlane.live.service.config import ServeSettings
from binlane.log.codec.packets.commands import RegisterSlave
from binlane.log.codec.packets.flags import Capability
from binlane.log.codec.packets.results import ColumnDefinition
from binlane.statements.scope.definition import Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogsNow:
    """The binlogs' facts for which statements are judged.

    Attributes:
        definitions: The definitions of all binlogs.
        variables: Values that SET GLOBAL gave the binlogs' variables, by name.
        has_tables_info: True if binlogs are written with tables info.
    """

    definitions: tuple[Definition, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    has_tables_info: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The facts with which a worker begins.

    Attributes:
        settings: The settings of all parts, with as many sessions as there are descriptors for.
        binlogs: The binlogs' facts as they are now.
        number: The number of the worker, from 0.
    """

    settings: ServeSettings
    binlogs: BinlogsNow
    number: int


@dataclass(kw_only=True, eq=False)
class SessionFacts:
    """The values of a worker's session when something is asked for it.

    Attributes:
        number: The session's number among those of its worker. All others are fields of
            `HandlerSession`.
    """

    number: int
    user: str
    peer: str
    thread_id: int
    is_tls: bool
    age: SessionAge
    server_version: str
    capabilities: Capability
    variables: dict[str, str | None]
    replica: RegisterSlave | None

    @classmethod
    def of(cls, session: HandlerSession, number: int) -> SessionFacts:
        """Read the values of a session."""
        values = {name: getattr(session, name) for name in SESSION_VALUES}
        return SessionFacts(number=number, **values)


SESSION_VALUES: Final = tuple(each.name for each in fields(SessionFacts) if each.name != "number")
"""Names of a session's values."""


@dataclass(frozen=True, slots=True)
class RowsToCome:
    """A result set whose rows are asked for one part after the other.

    Attributes:
        columns: The columns that `RowsInParts` has.
        key: The key by which the rows are asked for.
    """

    columns: Sequence[ColumnDefinition | str]
    key: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """A worker's state, as the worker tells it.

    Attributes:
        counts: Counts of the worker's clients, by outcome.
        sessions: Clients that are logged in.
        problem: The `problem` of the worker's `Port`.
    """

    counts: PortCounts = field(default_factory=PortCounts)
    sessions: int = 0
    problem: str = ""
