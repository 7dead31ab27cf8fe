"""One session at work: a `Relay` between two connections, and a task that answers questions.

What passes is passed on as it arrives; a client or a source that goes away is noticed whatever is
under way.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import aclosing
from typing import Final, NamedTuple

from binlane.errors import BinlaneError, CodecError, PeerError, StatementError
from binlane.live.gateway.answers import Answer, HandOn, RowsInParts
from binlane.live.gateway.command_reader import READY
from binlane.live.gateway.handler import Handler, SessionAge
from binlane.live.gateway.judge import Judge, StatementReply
from binlane.live.gateway.log_texts import shown, start_of
from binlane.live.gateway.login import BAD_HANDSHAKE_ERRNO
from binlane.live.gateway.long_texts import read_beside
from binlane.live.gateway.ok_packets import reply_of
from binlane.live.gateway.pump import PumpedSocket
from binlane.live.gateway.relay import Relay, TlsSide
from binlane.live.gateway.relay_faults import GuardedJudge, kind_of, place_of
from binlane.live.gateway.relay_questions import (
    Cutting,
    Entering,
    Following,
    Judging,
    Learning,
    Question,
    Resetting,
    StatementQuestion,
)
from binlane.live.gateway.replica_statements import VARIABLES
from binlane.live.gateway.side import Side, nothing
from binlane.live.gateway.socket_accounts import check_account
from binlane.live.gateway.source_privileges import SourcePrivilege, check
from binlane.live.gateway.statement_answers import StatementAnswers
from binlane.live.gateway.warning_limiter import WarningLimiter
from binlane.log.codec.format import flavor_of
from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid, RegisterSlave
from binlane.log.codec.packets.flags import Capability
from binlane.log.codec.packets.replies import ErrPacket, OkPacket
from binlane.log.codec.packets.results import ResultSet
from binlane.log.codec.types import Flavor

_WAITING_MAX: Final = 1 << 20
_WITHOUT_ASCII: Final = frozenset(("ucs2", "utf16", "utf16le", "utf32", "filename"))
"""Character sets in which ASCII stands in other bytes: what is asked could not be read."""
# Seconds that the source may take for a statement whose client has gone, and a judge to follow it.
_SETTLE_S: Final = 2.0
# The connection behind a dump is silent: without this the source would close it after 8 hours.
_KEEP_OPEN: Final = "SET SESSION wait_timeout = 31536000"

logger = logging.getLogger(__name__)


class Sides(NamedTuple):
    """The two connections of a session.

    Attributes:
        client: Connection of whoever connected to the port.
        source: A fresh connection to the source.
    """

    client: Side
    source: Side
    peer: str


class GatewaySession:
    """A client's session; handlers see it as `handler.HandlerSession`.

    Attributes:
        peer: Address of the client, for messages.
    """

    def __init__(
        self,
        sides: Sides,
        handler: Handler,
        relay: Relay,
        *,
        logged_in: Callable[[], None],
        told: WarningLimiter,
    ) -> None:
        """Prepare; `run` relays.

        Args:
            sides: Connections to the client and the source.
            handler: Answers statements that concern binlogs.
            relay: The session's machine at its beginning.
            logged_in: Called once the source has let the client in.
            told: Takes the session's warnings for the log.
        """
        self.peer = sides.peer
        self._client = sides.client
        self._source = sides.source
        self._handler = handler
        self._relay = relay
        relay.find_judge = self._find_judge
        self._logged_in = logged_in
        self._told = told
        self._progress = asyncio.Event()
        self._is_draining = self._reads_on = self._is_admitted = False
        self._client_has_ended = self._source_has_ended = False
        self._passing: tuple[PumpedSocket, PumpedSocket] | None = None
        self._answering: asyncio.Future[None] | None = None
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def user(self) -> str:
        """Account name with which the client logged in."""
        return self._relay.user

    @property
    def thread_id(self) -> int:
        """The session's connection id on the source."""
        return self._relay.thread_id

    @property
    def is_tls(self) -> bool:
        """True if the client speaks TLS."""
        return self._relay.is_tls

    @property
    def connection(self) -> socket.socket | None:
        """The client's connection, if another process may send on it: in clear, and nothing waits."""
        return self._client.connection

    @property
    def age(self) -> SessionAge:
        """Progress of the session: it grows with each command that the client has the source run."""
        self.count_unread()
        return self._relay.age

    @property
    def server_version(self) -> str:
        """The source's."""
        return self._relay.server_version

    @property
    def capabilities(self) -> Capability:
        """The capabilities that client and source have agreed on."""
        return self._relay.capabilities

    @property
    def variables(self) -> dict[str, str | None]:
        """User variables that bear on replication, by lower-case name without `@`."""
        return self._relay.variables

    @property
    def replica(self) -> RegisterSlave | None:
        """The client's introduction as a replica, if there was one."""
        return self._relay.replica

    def drain(self) -> None:
        """End once nothing is under way: no statement, and no dump, which is told elsewhere."""
        self._go_on_unread()
        self._is_draining = True
        self._progress.set()
        self._end_drained()

    async def run(self) -> None:
        """Relay until one side closes.

        Raises:
            CodecError: If a side breaks the protocol.
            OSError: If a connection is lost while bytes are sent.
        """
        client, source = self._client, self._source
        client.freed = source.freed = self._regulate
        source.receive(self._from_source)
        client.receive(self._from_client)
        try:
            await self._over
            if self._client_has_ended and self._is_settling:
                await self._let_settle()
        finally:
            self._go_on_unread()
            client.receive(None)
            source.receive(None)
            if not self._over.cancel() and not self._over.cancelled():
                self._over.exception()  # raised above, or the task was cancelled at the same time
            if self._answering is not None:
                self._answering.cancel()
                await asyncio.gather(self._answering, return_exceptions=True)
            if self._is_admitted and self._relay.is_judged:
                await self._relay.judge.ended()
            # Objects of a failed session may be held for long by the error that says so.
            client.freed = source.freed = nothing
            self._relay.forget()
            self._relay.find_judge = lambda: None

    @property
    def _is_settling(self) -> bool:
        """True while the judge is to be told a reply of the source, or follows it."""
        if self._source_has_ended or not self._relay.is_followed:
            return False
        return self._answering is None or not self._answering.done()

    async def _let_settle(self) -> None:
        """Let the judge see the reply to the last command, of a client that did not wait for it."""
        try:
            async with asyncio.timeout(_SETTLE_S):
                while self._is_settling:
                    self._progress.clear()
                    await self._progress.wait()
        except TimeoutError:
            pass  # what was under way has no reply

    async def take_leave(self) -> None:
        """End a login that the source takes to be under way, once `run` has ended.

        Raises:
            CodecError: If the source breaks the protocol.
            OSError: If it is lost.
        """
        while (farewell := self._relay.farewell()) is None:
            data = await self._source.read()
            if not data:
                return
            self._relay.from_source(data)
        if farewell:
            await self._source.send(farewell)
            await self._source.read()

    async def query_source(self, statement: str) -> ResultSet:
        """Run a statement in this session on the source.

        Raises:
            StatementError: If the source refuses it.
            PeerError: If it answers without rows, or goes away.
        """
        reply = await self._done(statement)
        if isinstance(reply, OkPacket):
            raise PeerError(f"{statement} gave no rows", peer="source", phase="query")
        return reply

    async def run_at_source(self, statement: str) -> StatementReply:
        """Run a statement in this session on the source; rows that it gives are left out.

        Raises:
            StatementError: If the source refuses it.
            PeerError: If it goes away.
        """
        reply = await self._done(statement)
        if isinstance(reply, ResultSet):
            return StatementReply(is_result_set=True, status=reply.status)
        return reply_of(reply)

    async def require(self, privilege: SourcePrivilege) -> None:
        """See that the source grants the session's account a privilege.

        Raises:
            StatementError: Error 1227 if it does not.
        """
        grants = await self.query_source("SHOW GRANTS")
        check(privilege, [row[0] or "" for row in grants.texts()])

    async def _done(self, statement: str) -> OkPacket | ResultSet:
        reply = await self._ask(statement)
        if isinstance(reply, ErrPacket):
            raise StatementError(
                reply.message, errno=reply.errno, sqlstate=reply.sqlstate or "HY000"
            )
        return reply

    async def _ask(self, statement: str) -> OkPacket | ErrPacket | ResultSet:
        """Ask the source, which answers in a character set that can be read."""
        charset = self._relay.results_charset
        if charset not in _WITHOUT_ASCII:
            return await self._exchange(statement)
        await self._exchange("SET character_set_results = utf8mb4")
        reply = await self._exchange(statement)
        await self._exchange(f"SET character_set_results = {charset}")
        return reply

    async def _exchange(self, statement: str) -> OkPacket | ErrPacket | ResultSet:
        relay = self._relay
        relay.ask(statement)
        await self._flush()
        while (reply := relay.take_reply()) is None:
            self._progress.clear()
            await self._progress.wait()
        return reply

    async def _flush(self) -> None:
        """Pass on the waiting bytes, and wait while a side takes none."""
        self._pass_on()
        await self._source.drain()
        if not self._client_has_ended:
            await self._client.drain()

    def _pass_on(self) -> None:
        relay = self._relay
        if data := relay.take_to_source():
            self._source.write(data)
        if data := relay.take_to_client():
            self._client.write(data)
        if relay.tls_side is not None:
            self._begin_tls(relay.tls_side)
        if relay.question is not None or self._is_draining or self._client_has_ended:
            self._progress.set()
            if self._answering is None and relay.question is not None:
                self._answering = asyncio.ensure_future(self._answer_questions())
                self._answering.add_done_callback(self._answered)
            self._end_drained()
        if relay.is_closed:
            self._finish()
        if self._is_admitted and self._passing is None and relay.phase is READY:
            self._let_pass()
        if relay.has_more and not self._reads_on:
            self._reads_on = True
            asyncio.get_running_loop().call_soon(self._read_on)
        self._regulate()

    def _let_pass(self) -> None:
        """Let the kernel serve the session, if nothing of it has to be read."""
        client, source = self._client.passes, self._source.passes
        if client is None or source is None or self._is_draining or self._over.done():
            return
        if client.pump.can_pass and (passing := self._relay.passing()) is not None:
            self._passing = client, source
            client.taken_back = source.taken_back = self._go_on_unread
            client.pump.give(client, source, passing)

    def count_unread(self) -> None:
        """Count the commands that have passed unread."""
        if self._passing is not None:
            client, _ = self._passing
            self._relay.count_unread(*client.pump.count(client))

    def _go_on_unread(self) -> None:
        """Read the session's bytes again."""
        if self._passing is not None:
            client, source = self._passing
            self._passing = client.taken_back = source.taken_back = None
            self._relay.go_on_unread(client.pump.take_back(client))

    def _begin_tls(self, side: TlsSide) -> None:
        begun = self._relay.begin_tls()
        if side is TlsSide.CLIENT:
            self._client.start_tls(begun)
        else:
            self._source.start_tls()
            self._source.write(self._relay.take_to_source())

    def _regulate(self) -> None:
        """Let a side wait whose bytes cannot be used now."""
        relay, client, source = self._relay, self._client, self._source
        has_too_much = relay.waiting_bytes > _WAITING_MAX and relay.is_waiting
        if client.is_paused is not (source.is_congested or has_too_much):
            client.pause(is_paused=not client.is_paused)
        if source.is_paused is not client.is_congested:
            source.pause(is_paused=client.is_congested)

    def _from_client(self, data: bytes) -> None:
        if not data:
            self._client_has_ended = True
            self._tell_of_client()
            self._finish()
            return
        try:
            try:
                self._relay.from_client(data)
            except CodecError as error:
                self._protest(error)
                raise
            self._pass_on()
        except Exception as error:  # noqa: BLE001 - `run` raises it
            self._fail(error)

    def _tell_of_client(self) -> None:
        """Say why there is no login, as servers do, where TLS with the client did not begin."""
        client, relay = self._client, self._relay
        if client.failure and not client.is_encrypted:
            relay.refuse_login(_no_login(f"Bad handshake: {client.failure}"))
            client.write_in_clear(relay.take_to_client())

    def _read_on(self) -> None:
        """Go on with the client's bytes, once others had their turn."""
        self._reads_on = False
        if self._over.done():
            return
        try:
            try:
                self._relay.read_on()
            except CodecError as error:
                self._protest(error)
                raise
            self._pass_on()
        except Exception as error:  # noqa: BLE001 - `run` raises it
            self._fail(error)

    def _protest(self, error: CodecError) -> None:
        self._relay.protest(error)
        self._client.write(self._relay.take_to_client())

    def _from_source(self, data: bytes) -> None:
        if not data:
            self._source_has_ended = True
            self._tell_of_source()
            self._finish()
            return
        relay = self._relay
        try:
            relay.from_source(data)
            if not self._is_admitted and relay.is_logged_in:
                self._is_admitted = True
                self._logged_in()
            self._pass_on()
        except Exception as error:  # noqa: BLE001 - `run` raises it
            self._fail(error)

    def _tell_of_source(self) -> None:
        """Say why there is no login, where TLS with the source came to nothing."""
        if self._source.failure:
            self._relay.refuse_login(_no_login(f"the source: {self._source.failure}"))
            self._client.write(self._relay.take_to_client())

    def _fail(self, error: Exception) -> None:
        self._source_has_ended = True  # nothing of it is used any longer
        self._finish(error)

    def _finish(self, error: BaseException | None = None) -> None:
        """End `run`."""
        self._progress.set()
        if self._over.done():
            return
        if error is None:
            self._over.set_result(None)
        else:
            self._over.set_exception(error)

    def _end_drained(self) -> None:
        """End `run` where it is to end, nothing is under way, and nobody answers questions."""
        if self._is_draining and self._answering is None and self._relay.is_idle:
            self._finish()

    def _answered(self, answering: asyncio.Future[None]) -> None:
        """End `run` with the task that answers questions."""
        if not answering.cancelled():
            self._finish(answering.exception())

    async def _answer_questions(self) -> None:
        """Answer the questions that there are, and all that come, until the session is to end."""
        while not (self._is_draining and self._relay.is_idle):
            question = self._relay.question
            if question is None:
                self._progress.clear()
                await self._progress.wait()
            else:
                try:
                    await self._answer_one(question)
                except CodecError as error:
                    self._protest(error)
                    raise
            await self._flush()

    async def _answer_one(self, question: Question) -> None:
        if isinstance(question, BinlogDump | BinlogDumpGtid):
            await self._dump(question)
        elif isinstance(question, Entering):
            await self._enter()
        elif isinstance(question, Resetting | Following):
            await self._prepare(question)
        else:
            await self._answer(question)

    async def _enter(self) -> None:
        try:
            await check_account(self)
        except StatementError as error:
            self._told.warn("%s: user %r is turned away: %s", self.peer, self.user, error)
            self._relay.turn_away(error)
        else:
            self._relay.enter()

    async def _prepare(self, question: Resetting | Following) -> None:
        relay = self._relay
        if isinstance(question, Resetting):
            await relay.judge.reset()
        else:
            await question.then()
        relay.go_on()

    async def _answer(
        self, question: StatementQuestion | RegisterSlave | Learning | Cutting | Judging
    ) -> None:
        relay = self._relay
        try:
            if isinstance(question, Learning):
                await self._learn()
            elif isinstance(question, Cutting):
                relay.cut(await read_beside(question.uncut.statements))
            elif isinstance(question, Judging):
                await self._judge(question)
            else:
                await self._answer_statement(question)
        except StatementError as error:
            relay.refuse(error)
        except BinlaneError as error:
            if relay.question is None:
                raise  # it is answered, and what the client sent behind it is wrong
            self._told.warn("%s: %s", self.peer, shown(error), extra=self._named)
            relay.refuse(StatementError(str(error), hint=error.hint))

    async def _answer_statement(self, question: StatementQuestion | RegisterSlave) -> None:
        answer = await self._answer_guarded(question)
        if isinstance(answer, RowsInParts):
            await self._send_rows(answer)
        elif answer is None:
            self._relay.hand_on()
        elif isinstance(answer, HandOn):
            self._relay.hand_on(answer.text)
        else:
            self._relay.answer(answer)

    async def _learn(self) -> None:
        await self._relay.judge.learn()
        self._relay.learned()

    async def _judge(self, question: Judging) -> None:
        relay = self._relay
        if question.answer is not None:
            await self._send_rows(question.answer)
        else:
            relay.decide(await relay.judge.judge_later(question.statements))

    async def _send_rows(self, answer: RowsInParts) -> None:
        """Send rows as they are made, no faster than the client takes them."""
        self._relay.begin_rows(answer.heads)
        async with aclosing(answer.parts) as parts:
            async for rows in parts:
                self._relay.rows(rows)
                await self._flush()
        self._relay.end_rows()

    async def _answer_guarded(
        self, question: StatementQuestion | RegisterSlave
    ) -> Answer | HandOn | None:
        """Answer as `StatementAnswers.answer`; a fault in it is told, and the client gets an error."""
        try:
            answers = StatementAnswers(self, self._handler, self._relay)
            return await answers.answer(question)
        except (BinlaneError, OSError):
            raise
        except Exception as fault:  # noqa: BLE001 - any, so that the session goes on
            what = (
                kind_of(question.text)
                if isinstance(question, StatementQuestion)
                else "COM_REGISTER_SLAVE"
            )
            self._tell_fault(fault, f"answering {what}")
            raise StatementError(
                "binlane failed to answer it", hint="binlane's log names the fault: report it"
            ) from None

    @property
    def _flavor(self) -> Flavor:
        return flavor_of(self.server_version)

    async def _learn_variables(self) -> None:
        """Ask for those of a replica's variables that it has set in a way that was not understood."""
        names = sorted(VARIABLES - self.variables.keys())
        if not names:
            return
        found = await self.query_source(f"SELECT {', '.join(f'@{name}' for name in names)} LIMIT 1")
        told = zip(names, found.texts()[0], strict=True)
        self.variables.update({name: value for name, value in told if value is not None})

    def _find_judge(self) -> Judge | None:
        judge = self._handler.judge(self)
        return None if judge is None else GuardedJudge(judge, self._tell_fault)

    def _tell_fault(self, fault: Exception, doing: str) -> None:
        """Tell of a fault of binlane's own that the session outlives."""
        self._relay.count_fault()
        # Each place is a kind of its own: what comes again is counted.
        text = f"%s: a fault of binlane, please report it: {place_of(fault)}, while %s"
        self._told.warn(text, self.peer, doing, extra=self._named)

    @property
    def _named(self) -> dict[str, object]:
        """Give the fields that the log has of this session."""
        return {"peer": self.peer, "user": shown(self.user)}

    async def _dump(self, command: BinlogDump | BinlogDumpGtid) -> None:
        try:
            await self._ask(_KEEP_OPEN)
            await self._learn_variables()
            logger.info(
                "%s: user %s, server id %d, reads %s",
                *(
                    self.peer,
                    shown(self.user),
                    command.server_id,
                    shown(start_of(command, self.variables, self._flavor)),
                ),
                extra=self._named,
            )
            last_packet = await self._handler.dump(self, command, self._client.send)
        except StatementError as error:
            logger.info("%s: dump refused: %s", self.peer, shown(error), extra=self._named)
            self._relay.refuse(error)
        else:
            self._relay.end_dump(last_packet)


def _no_login(text: str) -> StatementError:
    return StatementError(text, errno=BAD_HANDSHAKE_ERRNO, sqlstate="08S01")
