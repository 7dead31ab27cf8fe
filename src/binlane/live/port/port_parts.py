"""State that all sessions of the port share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from binlane.live.gateway.handler import HandlerSession
from binlane.live.port.attribution_messages import AttributionReceiver
from binlane.live.port.context_use import KnownUses
from binlane.live.port.live_catalog import LiveCatalog
from binlane.statements.scope.definition import Definition
from binlane.statements.session.server_errors import NO_ERRORS, SessionErrors

Seen = Callable[[HandlerSession], Awaitable[Collection[str] | None]]
"""Gives the names of the binlogs that a session's account may see; None for all."""


async def _all_seen(_session: HandlerSession) -> None:
    """Show every binlog: the default of `seen`."""


class SourceMarks(Protocol):
    """Makes groups at the source for changes of which the source logs nothing; see `marks.Marker`."""

    async def open(self) -> None:
        """See that the source can be reached: marks are made for sessions that begin behind that."""
        ...

    async def mark(self, thread_id: int, there_s: float) -> str:
        """Have the source log a group for a session; gives its GTID.

        Raises:
            StatementError: If the source cannot be asked.
        """
        ...

    async def executed(self) -> str:
        """The GTIDs that a source of MySQL has executed up to now.

        Raises:
            StatementError: If the source cannot be asked.
        """
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class Standing:
    """The terms on which the port's binlogs and the source's objects are as they were.

    Args:
        definitions: Function that gives the binlogs, as in `PortParts`.
        catalog: Catalog of the source's objects, as in `PortParts`.
    """

    def __init__(
        self, definitions: Callable[[], tuple[Definition, ...]], catalog: LiveCatalog
    ) -> None:
        self._definitions, self._catalog = definitions, catalog
        self._now: Callable[[], bool] = lambda: False
        self._endings = 0

    def now(self) -> Callable[[], bool]:
        """Give a function that is true as long as they are as now, the same as long as they are."""
        if not self._now():
            definitions, version = self._definitions(), self._catalog.version
            endings = self._endings
            self._now = lambda: (
                self._definitions() is definitions
                and self._catalog.version is version
                and self._endings == endings
            )
        return self._now

    def end(self) -> None:
        """End the terms of now, though binlogs and objects are the same."""
        self._endings += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PortParts:
    """State that all sessions of the port share.

    Attributes:
        definitions: Gives the binlogs as they are now; the same tuple as long as they are the same.
        catalog: Catalog of the source's objects.
        attributions: Gets the plans of the groups that sessions make.
        marker: Makes groups for changes of which the source logs nothing.
        has_marks: True if the source has the table `binlane.marks`, which marks need.
        global_values: Gives the values that `SET GLOBAL` or the settings gave to the binlogs'
            variables.
        seen: Gives the binlogs that a session's account may see; None for all.
        uses: Known uses of context by statements.
        set_global_values: Keeps values of `SET GLOBAL`, None for those that are taken back; blocks.
        tells_tables: True if binlogs say which tables statements concern.
        holds_all_rows: True as long as all binlogs log everything as rows, whatever sessions do; None if
            that is not told.
        standing: Terms on which `definitions` and `catalog` are as they were.
        program_errors: Gives the prediction of errors inside of programs, which the source tells nobody.
    """

    definitions: Callable[[], tuple[Definition, ...]]
    catalog: LiveCatalog
    attributions: AttributionReceiver
    marker: SourceMarks
    has_marks: bool = True
    global_values: Callable[[], Mapping[str, str]] = dict
    seen: Seen = _all_seen
    uses: KnownUses = field(default_factory=KnownUses)
    set_global_values: Callable[[Mapping[str, str | None]], None] = lambda _: None
    tells_tables: bool = False
    holds_all_rows: Callable[[], bool] | None = None
    program_errors: Callable[[], SessionErrors] = lambda: NO_ERRORS
    standing: Standing = field(init=False)

    def __post_init__(self) -> None:
        """Begin with no terms."""
        object.__setattr__(self, "standing", Standing(self.definitions, self.catalog))


FindParts = Callable[[], Awaitable[PortParts | None]]
"""Gives what sessions share; None where the source was not set up to be judged: all is relayed then."""
