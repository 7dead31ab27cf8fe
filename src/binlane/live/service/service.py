"""`binlane serve`: puts the parts together, starts them, and stops them in the other order.

Order of a start: store (it owns the directory), routing loop, listeners. A stop goes the other way:
dumps end behind the event group that they are at, statements under way are answered, routing ends
behind what came, the store is closed.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from asyncio import FIRST_COMPLETED
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from binlane.binlogs.store.store import Store
from binlane.client.session import ServerSession
from binlane.errors import BinlaneError
from binlane.live.answers.access import Access
from binlane.live.answers.grant_statements import Rows
from binlane.live.answers.incident_search import IncidentSearch
from binlane.live.answers.port_answers import PortAnswers
from binlane.live.answers.session_judges import Port
from binlane.live.fills.row_fills import RowFills
from binlane.live.gateway.transport import Gateway
from binlane.live.loop.binlogs import Binlogs
from binlane.live.loop.substitution import Substitution
from binlane.live.port.attribution_settings import JOURNAL_DIRECTORY, AttributionSettings
from binlane.live.port.attributions import Attributions
from binlane.live.port.catalog_connections import CatalogConnections
from binlane.live.port.live_catalog import LiveCatalog
from binlane.live.provision.certificates import port_context
from binlane.live.service.binlog_archive import Archive
from binlane.live.service.config import ServeSettings
from binlane.live.service.descriptors import settle, tell_once_in_a_while
from binlane.live.service.embedded import EmbeddedServer
from binlane.live.service.operation import Signals, Surroundings, attend, begin, reread_at
from binlane.live.service.process import worker_count
from binlane.live.service.proof_runs import ProofRuns
from binlane.live.service.status_keeper import ShownParts, StatusKeeper
from binlane.live.service.systemd import STOPPING, Manager
from binlane.live.service.workers.spares import Spares
from binlane.live.service.workers.workers import ServingParts, Workers, WorkersNews
from binlane.live.web.settings import HttpSettings
from binlane.live.web.status_values import WorkerStatus
from binlane.log.codec.types import Flavor

if TYPE_CHECKING:
    from binlane.live.web.guard import Guard

_SWITCH_S: Final = 0.001
"""Longest time that one of routing and dumps keeps the other waiting, if both have something to do."""

EMBEDDED_STOP_S: Final = 75.0
"""A little more than the embedded server gets for its shutdown."""

LEFT_BEHIND_S: Final = 0.5
"""Time for threads that wait for a source which does not answer."""

_PATIENCE_S: Final = 10.0

logger = logging.getLogger(__name__)


async def serve(settings: ServeSettings, surroundings: Surroundings) -> None:
    """Run until SIGTERM or SIGINT, as the only thing that this process does.

    A second signal waits for no client any more.

    Args:
        settings: The settings of all parts.
        surroundings: The surroundings of the process beside its settings.

    Raises:
        BinlaneError: What keeps the service from starting. Nothing that happens to the source or
            to one binlog ends it later.
    """
    loop = asyncio.get_running_loop()
    tell_once_in_a_while(loop)
    sys.setswitchinterval(_SWITCH_S)
    signals = Signals(loop)
    manager, ending = surroundings.manager, signals.ending
    with Store.open(settings.data_dir, settings.store, keeps_lost=True) as store:
        async with AsyncExitStack() as outer:
            embedded = None
            if settings.embedded is not None:
                embedded = EmbeddedServer(settings.embedded, settings.data_dir)
                outer.push_async_callback(embedded.stop)
                if not await _started(embedded, signals, manager):
                    return
            service = Service(settings, store, surroundings.spares, embedded)
            async with AsyncExitStack() as stack:
                await service.start(stack, surroundings.port_file)
                signals.hurry = service.hurry
                attending = begin(attend(service, manager))
                rereading = begin(reread_at(signals.reread, service, surroundings))
                await signals.wait_for_end(service.binlogs.crashed)
                logger.info("stopping")
                manager.tell(STOPPING)
                for task in (attending, rereading):
                    task.cancel()
            if embedded is not None:
                manager.ask_for_time(EMBEDDED_STOP_S)
                ending.within(EMBEDDED_STOP_S, status=1)
    ending.within(LEFT_BEHIND_S, status=0)


async def _started(embedded: EmbeddedServer, signals: Signals, manager: Manager) -> bool:
    """Start the embedded server; False if the process is to end before that is done."""
    starting = asyncio.create_task(embedded.start())
    ending = asyncio.create_task(signals.stopped.wait())
    manager.tell_status("starting the embedded server")
    while not starting.done() and not ending.done():
        manager.ask_for_time(EMBEDDED_STOP_S)
        await asyncio.wait((starting, ending), timeout=_PATIENCE_S, return_when=FIRST_COMPLETED)
    if not starting.done():
        signals.ending.within(EMBEDDED_STOP_S, status=1)
        embedded.interrupt()
        with suppress(BinlaneError):
            await starting
        return False
    ending.cancel()
    await starting
    return True


class Service:
    """The parts of one process, wired together.

    Attributes:
        settings: The settings that the service works by.
    """

    def __init__(
        self,
        configured: ServeSettings,
        store: Store,
        spares: Spares,
        embedded: EmbeddedServer | None = None,
    ) -> None:
        self.settings = configured
        self._embedded = embedded
        self._guard: Guard | None = None
        settings = settle(configured, binlogs=len(store.binlogs))
        if embedded is not None:
            settings = embedded.configured(settings)
        self._source = settings.source
        attributions = substitution = catalog = None
        has_workers, news = worker_count(settings.port) > 0, WorkersNews()
        if settings.port.enabled:
            flavor = Flavor.MYSQL if settings.source.url.scheme == "mysql" else Flavor.MARIADB
            attributions = Attributions(
                settings.data_dir / JOURNAL_DIRECTORY,
                flavor,
                AttributionSettings(
                    journal_max_bytes=settings.port.journal_max_bytes, is_relayed=has_workers
                ),
            )
            catalog = LiveCatalog(CatalogConnections(settings.source))
            if not has_workers:
                changes = attributions.changes
                catalog.on_changed = lambda *_: changes.made()
                catalog.on_heard = changes.heard
            substitution = Substitution(
                attributions, settings.port.bypass, news if has_workers else catalog
            )
        self.binlogs = Binlogs(store, settings.source, substitution)
        self.binlogs.fills.settings = settings.rows
        self._fills = RowFills(self.binlogs, settings.source)
        access = Access(self.binlogs, settings.access)
        self._port = None
        if attributions is not None and catalog is not None:
            self._port = Port(
                settings.source,
                self.binlogs,
                attributions,
                catalog,
                seen=access.told_names,
            )
        self._archive = (
            None if settings.archive is None else Archive(settings.archive, settings.data_dir)
        )
        self._statements = PortAnswers(
            self.binlogs,
            self._port,
            access=access,
            ask=self._ask_source,
        )
        self._gateway: Gateway | Workers = (
            Workers(
                settings,
                ServingParts(self._statements, self.binlogs, access, self._port, attributions),
                news=news,
                spares=spares,
            )
            if has_workers
            else Gateway(settings.listen, self._statements)
        )
        self._proofs = ProofRuns(
            settings.verify, settings.source, settings.data_dir, self._registered_replicas
        )
        self._statements.compare_by(self._proofs)
        self._status = StatusKeeper(
            settings,
            ShownParts(
                binlogs=self.binlogs,
                dumps=self._statements.dumps,
                gateway=self._gateway,
                port=self._port,
                archive=self._archive,
                proofs=self._proofs,
            ),
            problem=lambda: self.problem,
            workers=self._worker_statuses,
        )

    def _worker_statuses(self) -> Sequence[WorkerStatus]:
        return self._gateway.workers if isinstance(self._gateway, Workers) else ()

    def _registered_replicas(self) -> list[tuple[str, str, int]]:
        """Binlog, host and port of the replicas that registered with an address of theirs."""
        replicas = self._statements.dumps.replicas.values()
        return [(each.binlog, each.host, each.port) for each in replicas if each.host and each.port]

    async def _ask_source(self, statement: str) -> Rows:
        """Ask the source with binlane's own account."""
        source = self._source

        def ask() -> Rows:
            with ServerSession(source.url, source.secret(), answer_s=source.timeout_s) as session:
                return session.ask(statement)

        return await asyncio.to_thread(ask)

    async def start(self, stack: AsyncExitStack, port_file: Path | None) -> None:
        """Start all parts; `stack` stops them, in the other order."""
        # Statements under way need the routing loop, which goes last.
        self.binlogs.start()
        stack.push_async_callback(self.binlogs.stop)
        self._fills.start()
        stack.push_async_callback(asyncio.to_thread, self._fills.stop)
        search = IncidentSearch(self.binlogs)
        search.start()
        stack.callback(search.stop)
        if self._archive is not None:
            self._archive.start()
            stack.push_async_callback(asyncio.to_thread, self._archive.stop)
        if self._port is not None:
            stack.push_async_callback(self._port.stop)
        listen = self.settings.listen
        # Workers use the files, which are made here if need be.
        context = port_context(listen, self.settings.data_dir)
        if isinstance(self._gateway, Gateway):
            self._gateway.tls = context
        await self._gateway.start()
        stack.push_async_callback(self._gateway.stop)
        stack.callback(self.binlogs.end_dumps)
        logger.info("listening on %s:%d (MySQL protocol)", listen.address, self._gateway.port)
        self._proofs.start()
        stack.push_async_callback(self._proofs.stop)
        # Also where nobody asks over HTTP: the log tells of a source whose log lacks something.
        self._status.start()
        stack.push_async_callback(self._status.stop)
        if self.settings.http is not None:
            await self._start_http(stack, self.settings.http)
        if port_file is not None:
            unfinished = port_file.with_name(f"{port_file.name}.new")
            unfinished.write_text(str(self._gateway.port), encoding="ascii")
            unfinished.replace(port_file)

    async def _start_http(self, stack: AsyncExitStack, settings: HttpSettings) -> None:
        # They load what is a sixth of a start, for those who ask for it.
        from binlane.live.web.application import application  # noqa: PLC0415
        from binlane.live.web.guard import Guard, is_loopback  # noqa: PLC0415
        from binlane.live.web.port_card import serve_http  # noqa: PLC0415

        app = application(self._status.status)
        settings.secret()
        self._guard = Guard(settings)
        runner = await serve_http(
            app, address=settings.address, port=settings.port, guard=self._guard
        )
        stack.push_async_callback(runner.cleanup)
        logger.info("listening on %s:%d (HTTP)", *runner.addresses[0][:2])
        if settings.password_file is None and not all(
            is_loopback(at[0]) for at in runner.addresses
        ):
            logger.warning(
                "HTTP asks nobody for a password, and other machines reach %s:%d: set [http]"
                " password_file, or listen on 127.0.0.1",
                *runner.addresses[0][:2],
            )

    @property
    def problem(self) -> str:
        """The reason why nothing comes from the source, or nothing can be kept; empty where all is well."""
        embedded = "" if self._embedded is None else self._embedded.problem
        binlogs = self.binlogs
        problems = (
            *(embedded, binlogs.source_problem, binlogs.store_problem, binlogs.routing_problem),
        )
        return "; ".join(filter(None, problems))

    @property
    def summary(self) -> str:
        """A line on the service's present work, for a service manager."""
        return f"{len(self.binlogs.names)} binlogs, {self._gateway.sessions} sessions"

    async def beat(self) -> None:
        """Have the routing thread do nothing, which shows that it lives."""
        await self.binlogs.changes.nothing()

    def hurry(self) -> None:
        """While it stops: wait for no client any more."""
        self._gateway.hurry()

    async def use(self, settings: ServeSettings) -> None:
        """Take over settings that can change while it runs, and no others.

        Raises:
            BinlaneError: If something cannot be used; then nothing is taken over.
        """
        listen = replace(
            self.settings.listen,
            max_connections=settings.listen.max_connections,
            login_timeout_s=settings.listen.login_timeout_s,
            tls_cert=settings.listen.tls_cert,
            tls_key=settings.listen.tls_key,
            tls_names=settings.listen.tls_names,
        )
        # From the files as they are now, for clients that come from now on.
        context = port_context(listen, self.settings.data_dir)
        store = replace(settings.store, has_tables_info=self.settings.store.has_tables_info)
        http = self.settings.http
        if http is not None and settings.http is not None and self._guard is not None:
            told = settings.http
            http = replace(http, hosts=told.hosts, password_file=told.password_file)
            self._guard.use(http)
        await self.binlogs.changes.use(store)
        self.settings = replace(
            self.settings,
            store=store,
            log=settings.log,
            listen=listen,
            http=http,
            access=settings.access,
            rows=settings.rows,
        )
        self.binlogs.fills.settings = settings.rows
        self._statements.decide_by(settings.access)
        settled = settle(self.settings, binlogs=len(self.binlogs.names))
        if isinstance(self._gateway, Gateway):
            self._gateway.use(settled.listen, context)
        else:
            await self._gateway.use(settled)
