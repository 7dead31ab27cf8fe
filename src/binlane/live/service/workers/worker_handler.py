"""The requests of a worker's gateway, answered by the binlogs' process, except judging."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast
from weakref import WeakKeyDictionary, WeakValueDictionary, finalize

from binlane.errors import PeerError
from binlane.live.answers.explain_answers import explain_binlog, explained
from binlane.live.answers.session_judges import Port
from binlane.live.gateway.answers import Answer, RowsInParts
from binlane.live.gateway.handler import Handler, HandlerSession, Send
from binlane.live.gateway.judge import Judge
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.live.service.workers.link import ProcessLink
from binlane.live.service.workers.messages import BinlogsNow, RowsToCome, SessionFacts
from binlane.live.service.workers.passed_connections import pass_on
from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid
from binlane.log.codec.packets.results import Cell
from binlane.statements.scope.definition import Definition

_P = ParamSpec("_P")
_R = TypeVar("_R")


class KnownBinlogs:
    """The binlogs as the process that keeps them has told.

    Args:
        link: The link to the process that keeps the binlogs.
        now: The binlogs' facts at the start.

    Attributes:
        now: The facts that were told last.
    """

    def __init__(self, link: ProcessLink, now: BinlogsNow) -> None:
        self._link = link
        self._loop = asyncio.get_running_loop()
        self.now = now

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """All definitions; the same tuple as long as they are the same."""
        return self.now.definitions

    @property
    def variables(self) -> Mapping[str, str]:
        """Values that SET GLOBAL or the settings gave the binlogs' variables, by name."""
        return self.now.variables

    @property
    def has_tables_info(self) -> bool:
        """True if binlogs are written with tables info."""
        return self.now.has_tables_info

    def set_variables(self, values: Mapping[str, str | None]) -> None:
        """Give the binlogs' variables values; from any thread but the event loop's.

        Raises:
            StoreError: If they cannot be saved.
        """
        call = self._link.call("set_variables", dict(values))
        asyncio.run_coroutine_threadsafe(call, self._loop).result()


def _asked(
    method: Callable[Concatenate[Handler, HandlerSession, _P], Coroutine[Any, Any, _R]],
) -> Callable[Concatenate[WorkerHandler, HandlerSession, _P], Coroutine[Any, Any, _R]]:
    """Make a method that calls the same one of the other process's handler."""

    @wraps(method)
    async def ask(
        handler: WorkerHandler, session: HandlerSession, /, *args: _P.args, **kwargs: _P.kwargs
    ) -> _R:
        assert not kwargs, "arguments go by position"
        return cast("_R", await handler.handle(session, method.__name__, *args))

    return ask


class WorkerHandler:
    """A `Handler` whose answers come from another process.

    Args:
        link: The link to the process that keeps the binlogs.
        binlogs: The binlogs as that process has told.
        passing: Takes connections of clients to that process.
    """

    def __init__(self, link: ProcessLink, binlogs: KnownBinlogs, passing: socket.socket) -> None:
        self._link = link
        self._passing = passing
        self._binlogs = binlogs
        self._loop = asyncio.get_running_loop()
        self._last = 0
        self._numbers: WeakKeyDictionary[HandlerSession, int] = WeakKeyDictionary()
        self._sessions: WeakValueDictionary[int, HandlerSession] = WeakValueDictionary()
        self._sends: dict[int, Send] = {}
        self.port: Port | None = None

    # What the gateway asks ------------------------------------------------------------------------

    @property
    def has_tables_info(self) -> bool:
        """True if binlogs are written with tables info."""
        return self._binlogs.has_tables_info

    def judge(self, session: HandlerSession) -> Judge | None:
        """Return the judge of a session's statements; None lets all pass."""
        return None if self.port is None else self.port.judge(session)

    async def answer(self, session: HandlerSession, statement: str) -> Answer | None:
        """Answer a statement on binlogs; None hands it on to the source."""
        about = explained(statement)
        if about is None:
            found = await self.handle(session, "answer", statement)
            return self._rows(found) if isinstance(found, RowsToCome) else cast("Answer", found)
        names = await self._link.call("names", self._facts(session), SourcePrivilege.MONITOR)
        definitions = [each for each in self._binlogs.definitions if each.name in names]
        state = None
        if definitions and self.port is not None:
            state = await self.port.state_of(session)
        live, model = (None, None) if state is None else state
        return await explain_binlog(session, about, definitions, live=live, model=model)

    register = _asked(Handler.register)
    gtid_position = _asked(Handler.gtid_position)
    gtid_position_now = _asked(Handler.gtid_position_now)
    binlog_format = _asked(Handler.binlog_format)
    gtid_purged = _asked(Handler.gtid_purged)
    gtid_position_at = _asked(Handler.gtid_position_at)
    snapshot = _asked(Handler.snapshot)
    answers = _asked(Handler.answers)

    def killed(self, thread_id: int) -> None:
        """Be told that the source has killed a session, or the statement of one."""
        self._link.tell("killed", thread_id)

    async def dump(
        self, session: HandlerSession, command: BinlogDump | BinlogDumpGtid, send: Send
    ) -> bytes:
        """Serve a dump; return its last packet."""
        number = self._number(session)
        if session.connection is not None:
            pass_on(self._passing, number, session.connection)
        self._sends[number] = send
        try:
            return cast("bytes", await self.handle(session, "dump", command))
        finally:
            del self._sends[number]

    async def handle(self, session: HandlerSession, method: str, *arguments: object) -> Any:
        """Have the other process's handler do something for a session.

        Args:
            session: The session that is served.
            method: The name of a method of `Handler`.
            arguments: The method's arguments behind the session.

        Raises:
            BinlaneError: What it raises.
        """
        return await self._link.call("handle", method, self._facts(session), *arguments)

    # What is asked for sessions -------------------------------------------------------------------

    async def seen(self, session: HandlerSession) -> Sequence[str] | None:
        """The names of the binlogs that a session's account may see; None for all."""
        found: Sequence[str] | None = await self._link.call("told_names", self._facts(session))
        return found

    async def ask_session(self, number: int, method: str, argument: object) -> object:
        """Have a session do something at the source.

        Args:
            number: The number of the session.
            method: The name of a method of `HandlerSession`.
            argument: The only argument of the method.

        Raises:
            PeerError: If it is over.
        """
        ask: Callable[[object], Awaitable[object]] = getattr(self._session(number), method)
        return await ask(argument)

    async def send(self, number: int, data: bytes) -> None:
        """Send a session some bytes of its dump; returns when the client takes more."""
        if number in self._sends:
            await self._sends[number](data)

    def _session(self, number: int) -> HandlerSession:
        session = self._sessions.get(number)
        if session is None:
            raise PeerError("the session is over", peer="client", phase="answer")
        return session

    async def _parts(self, key: int) -> AsyncGenerator[Sequence[Sequence[Cell]], None]:
        try:
            while (rows := await self._link.call("rows", key)) is not None:
                yield rows
        finally:
            self._link.tell("no_rows", key)

    def _rows(self, found: RowsToCome) -> RowsInParts:
        return RowsInParts(found.columns, self._parts(found.key))

    def _number(self, session: HandlerSession) -> int:
        number = self._numbers.get(session)
        if number is None:
            self._last += 1
            number = self._numbers[session] = self._last
            self._sessions[number] = session
            finalize(session, self._tell_gone, number)
        return number

    def _tell_gone(self, number: int) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._link.tell, "gone", number)

    def _facts(self, session: HandlerSession) -> SessionFacts:
        return SessionFacts.of(session, self._number(session))
