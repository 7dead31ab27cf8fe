"""The binlogs of one process: event groups from capture are routed into the store, readers are woken.

All of it is called in one event loop; what touches the disk runs in a thread, one at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.event import EventHeader
from binlane.codec.rows import RowsEvent
from binlane.codec.types import EventType
from binlane.errors import DefinitionError, PeerError, StatementError
from binlane.grouping.event_group import EventGroup
from binlane.grouping.raw import RawRun, RunMaker
from binlane.kernels.load import is_compiled
from binlane.positions import Gtid, GtidPosition, mariadb_position
from binlane.routing.route import route
from binlane.routing.routed_group import OmissionKind, Routing
from binlane.routing.spans import SpanCounts, SpanRouter
from binlane.scope.definition import Definition, unknown_binlog
from binlane.store.binlog import Binlog
from binlane.store.live import LiveBinlog
from binlane.store.runs import append_run
from binlane.store.store import Store

FORMAT_TIMEOUT_S: Final = 10.0
"""How long CREATE BINLOG waits for capture's first word from the source."""

_UNKNOWN_TARGET_BINLOG: Final = 1373
_KERNELS: Final = ("route", "scan")

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Counts:
    """What went into one binlog since this process began.

    Attributes:
        event_groups: Appended.
        events: In them.
        rows_events: Of these, row events.
        incidents: Groups that an INCIDENT event stands for.
        omissions: By kind, what was left out since it names outside objects.
    """

    event_groups: int = 0
    events: int = 0
    rows_events: int = 0
    incidents: int = 0
    omissions: Counter[str] = field(default_factory=Counter)

    def add(self, spans: SpanCounts) -> None:
        """Count what came as bytes."""
        self.event_groups += spans.groups
        self.events += spans.events
        self.rows_events += spans.rows_events
        if spans.texts_left_out:
            self.omissions[OmissionKind.ANNOTATE.value] += spans.texts_left_out
        if spans.statements:
            self.omissions[OmissionKind.STATEMENT.value] += spans.statements


class Binlogs:
    """Everything that `serve` knows of its binlogs.

    Attributes:
        captured: Up to where the source has been routed into all of them; None before the first
            event group where capture begins as configured.
        lock: Held while the store is written.
        last_timestamp: Of the last group that was routed, seconds since 1970.
        counts: By binlog name.
    """

    def __init__(self, store: Store, *, uses_kernels: bool = True) -> None:
        """Serve a store's binlogs.

        Args:
            store: That is open.
            uses_kernels: Whether groups are routed as bytes, where the kernels for it are compiled.
        """
        self._store = store
        self._uses_kernels = uses_kernels and is_compiled(_KERNELS)
        self._live = {name: LiveBinlog(binlog) for name, binlog in store.binlogs.items()}
        self.lock = asyncio.Lock()
        self._format: tuple[EventHeader, FormatDescriptionEvent] | None = None
        self._has_format = asyncio.Event()
        # Without binlogs nothing can be missed, and an old position may be purged by now.
        done = store.source_position() if store.binlogs else None
        self.captured = None if done is None else mariadb_position(done)
        self.last_timestamp = 0
        self._runs: RunMaker | None = None
        self._router: SpanRouter | None = None
        self._routed: list[Definition] = []
        self.counts: dict[str, Counts] = {name: Counts() for name in store.binlogs}

    @property
    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._live))

    def get(self, name: str) -> Binlog:
        """A binlog.

        Raises:
            DefinitionError: If there is none of this name.
        """
        self.live(name)
        return self._store.binlogs[name]

    def live(self, name: str) -> LiveBinlog:
        """A binlog, for a dump.

        Raises:
            DefinitionError: If there is none of this name.
        """
        live = self._live.get(name)
        if live is None:
            raise unknown_binlog(name, self._live)
        return live

    async def apply(self, groups: Sequence[EventGroup]) -> None:
        """Route whole event groups into every binlog and make them durable.

        Raises:
            StoreError: If the disk cannot be written; nothing half written is published.
            PeerError: If the source gives what cannot be routed.
        """
        async with self.lock:
            await asyncio.to_thread(self._apply, groups)
        if self._format is not None:
            self._has_format.set()
        self._notify()

    def _notify(self) -> None:
        for live in self._live.values():
            live.notify()

    def _apply(self, groups: Sequence[EventGroup]) -> None:
        captured = self.captured
        for stretch in _stretches(groups):
            for group in stretch:
                if group.mariadb_gtid is not None:
                    captured = _advanced(captured, group.mariadb_gtid)
            if captured is None or not self._apply_run(stretch, captured):
                for group in stretch:
                    self._apply_group(group)
        self._store.sync_all()
        # Only now: a batch that failed comes again.
        self.captured = captured
        if captured is not None:
            self._store.note_source_position(captured)

    def _apply_run(self, groups: Sequence[EventGroup], after: GtidPosition) -> bool:
        """Route groups as bytes, if they can be; whether that was done."""
        run = self._runs.run(groups) if self._runs and groups[0].gtid is not None else None
        if run is None:
            return False
        binlogs = self._store.binlogs
        router = self._router_for([binlog.definition for binlog in binlogs.values()])
        if not router.read(run):
            return False
        for number, (name, binlog) in enumerate(binlogs.items()):
            has = [group.gtid is not None and binlog.reached.covers(group.gtid) for group in groups]
            if has != sorted(has, reverse=True):
                for group in groups:
                    self._route(name, binlog, group)
                continue
            before = router.counts(number).copy()
            append_run(
                binlog,
                router,
                number,
                run,
                first=sum(has),
                after=after,
                by_reference=partial(self._route_of, run, name, binlog),
            )
            self._count_spans(name, router.counts(number).since(before))
        self.last_timestamp = run.last_timestamp
        return True

    def _route_of(self, run: RawRun, name: str, binlog: Binlog, number: int) -> None:
        self._route(name, binlog, run.group(number))

    def _router_for(self, definitions: list[Definition]) -> SpanRouter:
        """The router of these definitions; one that was asked before knows its texts."""
        if self._router is None or self._routed != definitions:
            self._router, self._routed = SpanRouter(definitions), definitions
        return self._router

    def _apply_group(self, group: EventGroup) -> None:
        first = group.events[0]
        if isinstance(first.body, FormatDescriptionEvent):
            self._format = first.header, first.body
            self._runs = RunMaker(first.body.format) if self._uses_kernels else None
            for binlog in self._store.binlogs.values():
                binlog.set_format(first.body, timestamp=first.header.timestamp)
        elif group.is_control and first.header.type_code != EventType.INCIDENT:
            return
        elif group.mariadb_gtid is None and not group.is_control:
            raise PeerError(
                f"an event group without a GTID stands at {group.file}:{group.position}",
                peer="source",
                phase="capture",
                hint="the source must be MariaDB 10.0.2 or later",
            )
        else:
            for name, binlog in self._store.binlogs.items():
                self._route(name, binlog, group)
            self.last_timestamp = group.timestamp

    def _route(self, name: str, binlog: Binlog, group: EventGroup) -> None:
        if group.mariadb_gtid is not None and binlog.position.covers(group.mariadb_gtid):
            return
        routing = route(group, binlog.definition, binlog.format, binlog.prepared, binlog.memory)
        self._count(name, group, routing)
        if routing.memory is not None:
            binlog.remember(routing.memory)
        if routing.group is not None:
            binlog.append(routing.group)
        elif group.mariadb_gtid is not None:
            binlog.advance(group.mariadb_gtid)

    def _count_spans(self, name: str, spans: SpanCounts) -> None:
        counts, kind = self.counts[name], OmissionKind.ANNOTATE.value
        if spans.texts_left_out and not counts.omissions[kind]:
            logger.warning(
                "binlog %s: %s left out: it may name objects outside of the scope "
                "(further ones are only counted)",
                *(name, kind),
            )
        counts.add(spans)

    def _count(self, name: str, group: EventGroup, routing: Routing) -> None:
        counts = self.counts[name]
        for omission in routing.omissions:
            if not counts.omissions[omission.kind.value]:
                logger.warning(
                    "binlog %s: %s left out of %s: %s (further ones are only counted)",
                    *(name, omission.kind.value, group.mariadb_gtid, omission.reason),
                )
            counts.omissions[omission.kind.value] += 1
        if routing.incident is not None:
            logger.error(
                "binlog %s: INCIDENT for %s: %s", name, group.mariadb_gtid, routing.incident
            )
            counts.incidents += 1
        if routing.group is not None:
            counts.event_groups += 1
            counts.events += len(routing.group.events)
            counts.rows_events += sum(
                isinstance(event.body, RowsEvent) for event in routing.group.events
            )

    async def create(self, definition: Definition, *, start: GtidPosition) -> None:
        """Make a new binlog that begins after `start`.

        Raises:
            StatementError: If the source has not been heard of yet.
            StoreError: If the disk cannot be written.
        """
        try:
            async with asyncio.timeout(FORMAT_TIMEOUT_S):
                await self._has_format.wait()
        except TimeoutError:
            raise StatementError(
                "the source's log has not been reached yet",
                errno=1236,
                hint="see binlane's own log for why, and try again",
            ) from None
        assert self._format is not None, "set before _has_format"
        header, format_description = self._format
        async with self.lock:
            binlog = await asyncio.to_thread(
                self._store.create_binlog,
                definition,
                start=start,
                format_description=format_description,
                server_id=header.server_id,
                timestamp=header.timestamp,
            )
        self.counts[definition.name] = Counts()
        self._live[definition.name] = LiveBinlog(binlog)
        self._notify()

    async def alter(self, definition: Definition) -> None:
        """Give a binlog another scope, for all that is routed from now on.

        Raises:
            DefinitionError: If there is none of this name.
            StoreError: If the disk cannot be written.
        """
        self.live(definition.name)
        async with self.lock:
            await asyncio.to_thread(self._store.alter_binlog, definition)

    async def purge(self, name: str, first: str) -> None:
        """Delete the files before `first`.

        Raises:
            DefinitionError: If there is no such binlog or file.
        """
        binlog = self.get(name)
        if all(file.name != first for file in binlog.files()):
            raise DefinitionError(
                f"Target log not found in binlog index: '{first}'",
                errno=_UNKNOWN_TARGET_BINLOG,
                hint=f"SHOW BINARY LOGS FOR '{name}' lists the files",
            )
        async with self.lock:
            await asyncio.to_thread(binlog.purge, first)
        self.live(name).notify()

    async def drop(self, name: str) -> None:
        """Remove a binlog and end its dumps.

        Raises:
            DefinitionError: If there is none of this name.
        """
        live = self.live(name)
        async with self.lock:
            await asyncio.to_thread(self._store.drop_binlog, name)
        del self._live[name]
        del self.counts[name]
        live.drop()

    async def rotate(self, name: str, *, timestamp: int) -> None:
        """Begin a new file.

        Raises:
            DefinitionError: If there is none of this name.
        """
        binlog = self.get(name)
        async with self.lock:
            await asyncio.to_thread(binlog.rotate, timestamp)
        self.live(name).notify()

    async def wait_until_complete(
        self, name: str, position: GtidPosition, *, timeout_s: float
    ) -> bool:
        """Wait until a binlog is complete up to a position of the source.

        Returns:
            Whether it is; False after `timeout_s` seconds.
        """
        live = self.live(name)
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        while not live.published.position.includes(position):
            version = live.version
            left_s = deadline_s - asyncio.get_running_loop().time()
            if left_s <= 0 or live.is_dropped:
                return False
            await live.wait_for_change(version, left_s)
        return True


def _stretches(groups: Sequence[EventGroup]) -> Iterator[Sequence[EventGroup]]:
    """Groups that stand one behind the other in their file; one that has no GTID stands alone."""
    start = 0
    for index in range(1, len(groups) + 1):
        if index < len(groups):
            before, group = groups[index - 1], groups[index]
            follows = (before.file, before.next_position) == (group.file, group.position)
            if follows and before.gtid is not None and group.gtid is not None:
                continue
        yield groups[start:index]
        start = index


def _advanced(captured: GtidPosition | None, gtid: Gtid) -> GtidPosition:
    """The position after a group; sequences must grow, since "done up to here" is told by them."""
    if captured is None:
        return GtidPosition.of([gtid])
    if captured.covers(gtid):
        raise PeerError(
            f"event group {gtid} comes after {captured.last(gtid.domain_id)}",
            peer="source",
            phase="capture",
            hint="set gtid_strict_mode=ON on the source, so that sequences grow in each domain",
        )
    return captured.advance(gtid)
