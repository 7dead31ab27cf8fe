"""Dumps of binlogs to replicas and tools: who reads which binlog, and when a dump has to end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Final, Self

from binlane.binlogs.store.live import LiveBinlog
from binlane.errors import BinlaneError, DefinitionError, StatementError
from binlane.live.answers.access import (
    DUMP_TIMEOUT_S,
    FOLLOWED_TIMEOUT_S,
    NOT_IN_TIME,
    Access,
)
from binlane.live.dump.dump_progress import DumpProgress
from binlane.live.dump.dump_sending import DumpContext, awaited, serve_dump
from binlane.live.dump.replica_dump import ReplicaDump
from binlane.live.dump.request import FATAL_ERRNO, ReplicaRequest, refusal
from binlane.live.gateway.handler import HandlerSession, Send
from binlane.live.gateway.log_texts import shown
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.live.loop.binlogs import Binlogs
from binlane.log.codec.format import flavor_of
from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid
from binlane.log.codec.types import Flavor
from binlane.positions import GtidSet
from binlane.statements.scope.definition import (
    unknown_binlog,
)

_REFUSED_MAX: Final = 20
_AGAIN_S: Final = 1.0
_SAME_ID: Final = 4052
"""ER_SLAVE_SAME_ID of MariaDB."""
_BY_FILE: Final = MappingProxyType(
    {
        Flavor.MARIADB: "MASTER_USE_GTID=no, MASTER_LOG_FILE",
        Flavor.MYSQL: "SOURCE_AUTO_POSITION=0, SOURCE_LOG_POS=4, SOURCE_LOG_FILE",
    }
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedReplica:
    """A replica whose dump is running.

    Attributes:
        server_id: Given by the replica when it registers or begins to dump.
        peer: The address of the replica.
        user: Account that it logged in with.
        binlog: Name of the binlog that it reads.
        host: The replica's `report_host`, empty if it has none.
        port: The replica's `report_port`, 0 if it has none.
        uuid: The replica's `server_uuid`, empty if it has none.
        thread_id: The thread id of its session on the source.
        keeps_gtids: True if it keeps MySQL's GTIDs.
        is_tls: True if its connection is encrypted.
        progress: The progress of its dump.
    """

    server_id: int
    peer: str
    user: str
    binlog: str
    host: str = ""
    port: int = 0
    uuid: str = ""
    thread_id: int = 0
    keeps_gtids: bool = False
    is_tls: bool = False
    progress: DumpProgress = field(default_factory=DumpProgress)

    def is_same(self, other: ConnectedReplica, flavor: Flavor) -> bool:
        """True if a source takes both for one replica: MySQL by their UUID, if they have one."""
        if flavor is Flavor.MYSQL and (self.uuid or other.uuid):
            return self.uuid == other.uuid
        return self.server_id == other.server_id != 0


class ReplicaDumps:
    """Serves the dumps of one process.

    Args:
        binlogs: The binlogs that are dumped.
        access: Decides which binlogs a session may read.
    """

    def __init__(self, binlogs: Binlogs, access: Access) -> None:
        self._binlogs = binlogs
        self._access = access
        self._watched: dict[HandlerSession, _WatchedDump] = {}
        self._replicas: dict[int, ConnectedReplica] = {}
        self._ended: dict[int, asyncio.Future[StatementError | None]] = {}
        self._refused: dict[tuple[str, int], str] = {}

    def killed(self, thread_id: int) -> None:
        """End the dump of a session that the source has killed, or whose statement."""
        dump = self._ended.get(thread_id)
        if dump is not None and not dump.done():
            dump.set_result(None)

    @property
    def replicas(self) -> Mapping[int, ConnectedReplica]:
        """The replicas and tools that read binlogs now, by the thread ids of their sessions."""
        return self._replicas

    def look_again(self) -> None:
        """Look again if accounts may read, since grants or accounts have changed."""
        for watched in self._watched.values():
            watched.look_again()

    async def serve(
        self, session: HandlerSession, command: BinlogDump | BinlogDumpGtid, send: Send
    ) -> bytes:
        """Serve a dump until it ends.

        Raises:
            StatementError: If the binlog cannot be told or what is asked cannot be served.
        """
        flavor = flavor_of(session.server_version)
        request = ReplicaRequest.of(command, session.variables, flavor=flavor)
        dump = ReplicaDump(request)
        try:
            live = await awaited(
                self._access.listing(session, self._binlog_of(session, request)),
                request,
                dump,
                send,
            )
            return await self._serve(session, request, dump, live, send)
        except StatementError as error:
            self._note_refused(request, "", error.message)
            if not dump.file:
                raise
            # Something was sent, so that this is no first packet.
            return dump.error(error)

    async def _binlog_of(self, session: HandlerSession, request: ReplicaRequest) -> LiveBinlog:
        """The binlog that a replica asks for; who is told that the source lives may wait for long."""
        is_patient = request.heartbeat_period_s is not None
        timeout_s = DUMP_TIMEOUT_S if is_patient else FOLLOWED_TIMEOUT_S
        names = await self._access.names(session, SourcePrivilege.READ, timeout_s=timeout_s)
        return self._binlogs.live(self._binlog_for(request, names))

    async def _serve(
        self,
        session: HandlerSession,
        request: ReplicaRequest,
        dump: ReplicaDump,
        live: LiveBinlog,
        send: Send,
    ) -> bytes:
        source_id = ""
        if isinstance(request.connect_state, GtidSet):
            found = await session.query_source("SELECT @@GLOBAL.server_uuid LIMIT 1")
            source_id = found.texts()[0][0] or ""
        with self._connected(session, request, live.name) as (replica, ended):
            async with _WatchedDump(self._access, session, live) as watched:
                self._watched[session] = watched
                for binlog in ("", live.name):
                    self._refused.pop((binlog, request.server_id), None)
                try:
                    context = DumpContext(
                        source_id=source_id,
                        ended=ended,
                        refusal_of=watched.refusal,
                        progress=replica.progress,
                    )
                    return await serve_dump(request, live, send, context, dump=dump)
                finally:
                    del self._watched[session]
                    if replica.progress.failure and not ended.done():
                        self._note_refused(request, live.name, replica.progress.failure)

    def _note_refused(self, request: ReplicaRequest, binlog: str, why: str) -> None:
        """Note that a replica stops: one that is refused comes again only if somebody has it do so."""
        if request.is_non_blocking or not request.server_id:
            return  # a tool, which tells who runs it
        key = binlog or request.file.rpartition(".")[0], request.server_id
        self._refused.pop(key, None)
        self._refused[key] = why
        while len(self._refused) > _REFUSED_MAX:
            del self._refused[next(iter(self._refused))]

    @property
    def refused(self) -> Sequence[str]:
        """Replicas whose dumps ended with an error, and why, until they come again."""
        running = {(one.binlog, one.server_id) for one in self._replicas.values()}
        return [
            shown(f"replica {server_id}{f' of binlog {binlog}' if binlog else ''} stops: {why}")
            for (binlog, server_id), why in tuple(self._refused.items())
            if (binlog, server_id) not in running
        ]

    async def register(self, session: HandlerSession) -> None:
        """Let a session introduce itself as a replica; it is told nothing.

        Raises:
            StatementError: If its account may read no binlog, as far as that is known at once.
        """
        try:
            await self._access.names(session, SourcePrivilege.READ, timeout_s=0)
        except StatementError as error:
            if error.errno != NOT_IN_TIME:
                raise

    def _binlog_for(self, request: ReplicaRequest, names: Sequence[str]) -> str:
        # A MySQL may say both, a MariaDB by GTID names the file of the server that it had before.
        is_by_file = request.connect_state is None or request.flavor is Flavor.MYSQL
        if is_by_file and request.file:
            name = request.file.rpartition(".")[0]
            if name not in names:
                raise unknown_binlog(name, names)
            return name
        if len(names) == 1:
            return names[0]
        listed = ", ".join(f"'{name}'" for name in names)
        if not names:
            raise DefinitionError(
                "there are no binlogs", errno=1236, hint="make one with CREATE BINLOG"
            )
        raise DefinitionError(
            f"a replica by GTID does not say which binlog it wants; the binlogs are {listed}",
            errno=1236,
            hint=f"let its account read one alone, GRANT READ ON BINLOG '{names[0]}' TO …, or name"
            f" a file: {_BY_FILE[request.flavor]}='{names[0]}.000001'",
        )

    @contextmanager
    def _connected(
        self, session: HandlerSession, request: ReplicaRequest, name: str
    ) -> Iterator[tuple[ConnectedReplica, asyncio.Future[StatementError | None]]]:
        """Note a dump while it runs; gives who reads, and what ends it."""
        told = session.replica
        uuids = (session.variables.get(each) for each in ("replica_uuid", "slave_uuid"))
        replica = ConnectedReplica(
            server_id=request.server_id,
            peer=session.peer,
            user=session.user,
            binlog=name,
            host=told.host if told else "",
            port=told.port if told else 0,
            uuid=next((each for each in uuids if each), ""),
            thread_id=session.thread_id,
            keeps_gtids=request.keeps_gtids,
            is_tls=session.is_tls,
        )
        self._check_one_binlog(replica)
        self._end_older(replica, request.flavor)
        ended: asyncio.Future[StatementError | None] = asyncio.get_running_loop().create_future()
        self._replicas[session.thread_id], self._ended[session.thread_id] = replica, ended
        try:
            yield replica, ended
        finally:
            del self._replicas[session.thread_id], self._ended[session.thread_id]

    def _check_one_binlog(self, replica: ConnectedReplica) -> None:
        """See that a replica that keeps GTIDs follows no other binlog of the source by them.

        Each of the two would give it empty transactions for what only the other one has.
        """
        for other in self._replicas.values():
            is_same = replica.uuid and other.uuid == replica.uuid
            if (
                is_same
                and other.keeps_gtids
                and replica.keeps_gtids
                and other.binlog != replica.binlog
            ):
                raise refusal(
                    "the replica follows another binlog of this source by GTID already, and is told "
                    "that it has all of the source's transactions",
                    hint="by file and position it may follow several: SOURCE_AUTO_POSITION=0",
                )

    def _end_older(self, replica: ConnectedReplica, flavor: Flavor) -> None:
        """End what a replica left behind that comes again, as the servers do.

        Of another binlog it is no older dump: one server may follow several by several connections.
        """
        for thread_id, other in self._replicas.items():
            is_same = other.binlog == replica.binlog and other.is_same(replica, flavor)
            if is_same and not (ended := self._ended[thread_id]).done():
                ended.set_result(_replaced(flavor))


class _WatchedDump:
    """A running dump, which ends when its account may read the binlog no more.

    The dump is watched for the time of an `async with` block.

    Args:
        access: Decides which binlogs a session may read.
        session: The session that reads the binlog.
        live: The binlog that is read.
    """

    def __init__(self, access: Access, session: HandlerSession, live: LiveBinlog) -> None:
        self._access = access
        self._session = session
        self._live = live
        self._error: StatementError | None = None
        self._has_changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def refusal(self) -> StatementError | None:
        """The error with which the dump has to end behind its present group; None while it may go on."""
        return self._error

    def look_again(self) -> None:
        """Look again if the account may read, since grants or accounts have changed."""
        self._has_changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._look())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _look(self) -> None:
        """See whether the account may still read, each time that this may have changed."""
        while self._error is None:
            await self._has_changed.wait()
            self._has_changed.clear()
            try:
                names = await self._access.names(self._session, SourcePrivilege.READ)
            except StatementError as error:
                if error.errno == NOT_IN_TIME:
                    await asyncio.sleep(_AGAIN_S)
                    self._has_changed.set()
                    continue
                self._end(error)
            except BinlaneError as error:
                logger.info("%s: %s", self._session.peer, error, extra=self._named)
                return  # the source has gone, and takes the session with it
            else:
                if self._live.name not in names:
                    self._end(_revoked())

    @property
    def _named(self) -> dict[str, object]:
        """Return the log fields that identify this dump."""
        return {"peer": self._session.peer, "binlog": self._live.name}

    def _end(self, error: StatementError) -> None:
        logger.info(
            "%s: the dump of %s ends: %s",
            *(self._session.peer, self._live.name, error),
            extra=self._named,
        )
        self._error = error
        self._live.notify()


def _revoked() -> StatementError:
    return StatementError(
        "Access denied; READ on the binlog was revoked", errno=1227, sqlstate="42000"
    )


def _replaced(flavor: Flavor) -> StatementError:
    """Return the error with which the older of two dumps of one replica ends."""
    if flavor is Flavor.MYSQL:
        return StatementError(
            "A replica with the same server_uuid/server_id as this replica has connected to the "
            "source",
            errno=FATAL_ERRNO,
        )
    return StatementError(
        "A slave with the same server_uuid/server_id is already connected", errno=_SAME_ID
    )
