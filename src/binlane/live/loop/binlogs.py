"""The binlogs of one process as the ports see them: definitions, states and counts.

All calls are made in one event loop; the routing loop's thread does the work.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.catalog import BinlogActivity, ScopeChange
from binlane.binlogs.store.grants import ReadGrant
from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.store import Store
from binlane.live.capture.settings import SourceSettings
from binlane.live.loop.binlog_changes import BinlogChanges
from binlane.live.loop.feeds import Feed
from binlane.live.loop.fill_changes import FillChanges
from binlane.live.loop.loop import RoutingLoop
from binlane.live.loop.outputs import Output
from binlane.live.loop.substitution import Substitution
from binlane.live.port.binlog_variables import FORMAT
from binlane.positions import AnyGtid, Position
from binlane.statements.scope.definition import Definition, is_internal, unknown_binlog
from binlane.statements.sql.accounts import AccountName
from binlane.statements.sql.servers import LoggingMode

BUSY_S: Final = 30.0
"""Longest time that the routing thread may take for one thing."""


class Binlogs:
    """The ports' view of all binlogs.

    Attributes:
        changes: Changes binlogs, as statements ask for it.
        crashed: Set when the routing loop has failed.
        fills: Gives binlogs their tables' rows.
    """

    def __init__(
        self, store: Store, settings: SourceSettings, substitution: Substitution | None = None
    ) -> None:
        """Prepare; `start` begins, in the event loop in which all else is called.

        Args:
            store: The open store, the routing loop's from now on.
            settings: The settings of the source.
            substitution: Given to the feeds' routers to put statements in the places of rows; None
                without a port.
        """
        self._loop = RoutingLoop(
            store,
            settings,
            wake_readers=self._wake_readers,
            substitution=substitution,
            access_changed=self._tell_access,
        )
        self._defined: tuple[Definition, ...] = ()
        self._all: Mapping[str, Output] | None = None
        self._shown: Mapping[str, Output] = {}
        self.fills = FillChanges(self._loop)
        self.changes = BinlogChanges(self._loop)
        self._readers: asyncio.AbstractEventLoop | None = None
        self.crashed = asyncio.Event()
        self._access_changed: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Begin to route."""
        self._readers = asyncio.get_running_loop()
        self._loop.start()

    async def stop(self) -> None:
        """Route no more: what came is stored, and commands under way are answered before.

        Raises:
            BaseException: What ended the routing loop, if that was no stop.
        """
        await asyncio.to_thread(self._loop.stop)
        if self._loop.crash is not None:
            raise self._loop.crash

    def end_dumps(self) -> None:
        """Let dumps end between two event groups."""
        for output in self._loop.outputs.values():
            output.live.end()

    def _wake_readers(self, woken: list[LiveBinlog]) -> None:
        """Called by the routing loop."""
        assert self._readers is not None, "start() comes first"
        self._readers.call_soon_threadsafe(self._wake, woken)

    def on_access_changed(self, call: Callable[[], None]) -> None:
        """Have something called, in the event loop, when some account may read others than before."""
        self._access_changed = call

    def _tell_access(self) -> None:
        """Called by the routing loop."""
        if self._readers is not None:
            self._readers.call_soon_threadsafe(self._access_changed)

    def _wake(self, woken: list[LiveBinlog]) -> None:
        for live in woken:
            live.wake()
        if self._loop.crash is not None:
            self.crashed.set()

    @property
    def _outputs(self) -> Mapping[str, Output]:
        """All but those that binlane keeps for itself."""
        if (outputs := self._loop.outputs) is not self._all:
            shown = {name: each for name, each in outputs.items() if not is_internal(name)}
            self._shown, self._all = shown, outputs
        return self._shown

    @property
    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(self._outputs)

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """All definitions, by name; the same tuple as long as they are the same."""
        outputs, defined = self._outputs.values(), self._defined
        if len(defined) == len(outputs):
            # It is asked before each statement: a generator would cost as much as all this.
            for one, output in zip(defined, outputs, strict=True):
                if one is not output.binlog.definition:
                    break
            else:
                return defined
        self._defined = tuple(output.binlog.definition for output in outputs)
        return self._defined

    def output(self, name: str) -> Output:
        """A binlog and how it fares.

        Raises:
            DefinitionError: If there is none of this name.
        """
        output = self._outputs.get(name)
        if output is None:
            raise unknown_binlog(name, self._outputs)
        return output

    def get(self, name: str) -> Binlog:
        """A binlog; raises as `output`."""
        return self.output(name).binlog

    def live(self, name: str) -> LiveBinlog:
        """A binlog, for a dump; raises as `output`."""
        return self.output(name).live

    def history(self) -> list[ScopeChange]:
        """All changes of definitions, oldest first; looks at the disk, from any thread."""
        return self._loop.store.history()

    @property
    def grants(self) -> tuple[ReadGrant, ...]:
        """Grants of READ on binlogs to accounts."""
        return self._loop.store.grants

    @property
    def access_version(self) -> int:
        """Another number when some account may read others than before."""
        return self._loop.accounts.version

    @property
    def departed(self) -> Mapping[AccountName, AnyGtid]:
        """Names that accounts of the source had, and the GTID from which on they had them no more."""
        return self._loop.accounts.departed

    @property
    def read_position(self) -> Position | None:
        """The position up to which the source's log was read; None before it was reached."""
        return self._loop.main.position

    @property
    def has_tables_info(self) -> bool:
        """True if binlogs are written with tables info."""
        return self._loop.store.has_tables_info

    @property
    def variables(self) -> Mapping[str, str]:
        """Values that SET GLOBAL or the settings gave the binlogs' variables, by name."""
        return self._loop.store.variables

    @property
    def default_format(self) -> LoggingMode:
        """The logging mode of a binlog whose statement has no FORMAT."""
        return LoggingMode(self.variables.get(FORMAT, LoggingMode.ROW.value))

    def set_variables(self, values: Mapping[str, str | None]) -> None:
        """Give the binlogs' variables values, also after a restart; looks at the disk, from any thread.

        Raises:
            StoreError: If they cannot be saved.
        """
        self._loop.store.set_variables(values)

    def lag_s(self, name: str) -> float | None:
        """Return how far a binlog is behind the source, in seconds; None where nobody can tell.

        It is 0 while nothing that came is left; else the age of what was routed last, or the time
        since the binlog last had everything.
        """
        output = self._loop.outputs[name]
        feed = self._loop.feed_of(output)
        if feed is not None and feed.is_streaming and feed.is_quiet:
            return 0.0
        known = [output.complete_s, output.last_timestamp]
        latest = max((at for at in known if at is not None), default=None)
        return None if latest is None else max(0.0, time.time() - latest)

    def feed(self, name: str) -> Feed | None:
        """Return the feed of a binlog; None for one that is stopped."""
        return self._loop.feed_of(self._loop.outputs[name])

    @property
    def feeds(self) -> Sequence[Feed]:
        """All feeds, the main one among them."""
        return self._loop.feeds

    @property
    def main(self) -> Feed:
        """The feed of the binlogs that keep up."""
        return self._loop.main

    @property
    def source_problem(self) -> str:
        """The reason why nothing comes from the source; empty while it does."""
        main = self._loop.main
        if main.gives:
            return ""
        return (
            f"not connected to the source: {main.failure.reason if main.failure else 'connecting'}"
        )

    @property
    def routing_problem(self) -> str:
        """The reason why nothing moves: the routing thread is at one thing for long; empty otherwise."""
        busy_s = self._loop.busy_s
        if busy_s < BUSY_S:
            return ""
        return (
            f"the routing thread has been at one thing for {busy_s:.0f} s: a disk that does not "
            "answer, or a very large transaction"
        )

    @property
    def store_problem(self) -> str:
        """The reason why watermarks cannot be saved; empty while they can."""
        return self._loop.marks_failure

    async def wait_until_complete(self, name: str, position: Position, *, timeout_s: float) -> bool:
        """Wait until a binlog is complete up to a position of the source.

        Returns:
            True if it is; False after `timeout_s` seconds, and at once for one that is stopped, or
            has not got the rows yet that it begins with.
        """
        live = self.live(name)
        deadline_s = time.monotonic() + timeout_s
        while not live.published.position.includes(position):
            version = live.version
            left_s = deadline_s - time.monotonic()
            output = self.output(name)
            is_waiting = output.state.activity is BinlogActivity.STOPPED or not output.is_kept
            if left_s <= 0 or live.is_dropped or is_waiting:
                return False
            await live.wait_for_change(version, left_s)
        return True
