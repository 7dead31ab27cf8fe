"""A session at work between two connections that are none: what is written to each, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from binlane.errors import CodecError, PeerError, StatementError
from binlane.live.gateway.answers import Answer, RowsAnswer, RowsInParts
from binlane.live.gateway.gateway_session import GatewaySession, Sides
from binlane.live.gateway.handler import HandlerSession, Send
from binlane.live.gateway.judge import ClientStatement, Done, Refuse, RunVerdict, StatementReply
from binlane.live.gateway.relay import Relay
from binlane.live.gateway.side import Side
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.live.gateway.warning_limiter import WarningLimiter
from binlane.log.codec.packets.commands import BinlogDump, RegisterSlave, encode_query
from binlane.log.codec.packets.flags import Capability, DumpFlag, ServerStatus
from binlane.log.codec.packets.framing import PacketSplitter, frame, frames
from binlane.log.codec.packets.handshake import Greeting, HandshakeResponse, SslRequest
from binlane.log.codec.packets.replies import EofPacket, ErrPacket, OkPacket
from binlane.log.codec.packets.results import ColumnDefinition
from tests.recording_judge import JudgingHandler, RecordingJudge
from tests.result_sets import encode_result_set

OFFERED = (
    Capability.PROTOCOL_41
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.SESSION_TRACK
)
CLIENT = OFFERED & ~Capability.SESSION_TRACK
GREETING = Greeting(
    version="5.5.5-10.11.19-MariaDB",
    thread_id=77,
    auth_data=b"12345678abcdefghijkl\0",
    capabilities=OFFERED,
    character_set=45,
    status=ServerStatus.AUTOCOMMIT,
    plugin="mysql_native_password",
)
LOGIN = HandshakeResponse(
    head=SslRequest(capabilities=CLIENT, payload_max=1 << 24, character_set=45),
    user="app",
    auth_response=bytes(20),
    plugin="mysql_native_password",
)
OK = OkPacket().encode(CLIENT)
ERR = ErrPacket(errno=1064, message="syntax", sqlstate="42000").encode()
DUMP = BinlogDump(position=4, flags=DumpFlag(0), server_id=2, file="orders.000001")


def _query(text: str) -> bytes:
    return frame(encode_query(text), 0)


def _rows(*cells: str) -> bytes:
    heads = [ColumnDefinition(name="c")]
    payloads = encode_result_set(heads, [[cell] for cell in cells], capabilities=CLIENT)
    return frames(payloads, 1)


class _Wire(asyncio.Transport):
    """A connection that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.reads_on = True

    def write(self, data: Any) -> None:
        self.written += data

    def take(self) -> bytes:
        taken = bytes(self.written)
        self.written.clear()
        return taken

    def pause_reading(self) -> None:
        self.reads_on = False

    def resume_reading(self) -> None:
        self.reads_on = True


class _Handler(JudgingHandler):
    """Answers with what a test says."""

    def __init__(self, judge: RecordingJudge | None) -> None:
        super().__init__(lambda _: judge)
        self.answering: Callable[[HandlerSession, str], Awaitable[Answer | None]] | None = None
        self.registered: list[RegisterSlave | None] = []

    async def answer(self, session: HandlerSession, statement: str) -> Answer | None:
        """As of `Handler`."""
        return None if self.answering is None else await self.answering(session, statement)

    async def register(self, session: HandlerSession) -> None:
        """As of `Handler`."""
        self.registered.append(session.replica)

    async def dump(self, session: HandlerSession, command: object, send: Send) -> bytes:
        """As of `Handler`."""
        del session, command
        await send(frame(b"\0event", 1))
        return frame(EofPacket().encode(), 2)


class _Talk:
    """A session, its two ends, and what has to do with it."""

    def __init__(self, judge: RecordingJudge | None = None) -> None:
        self.client, self.source = _Wire(), _Wire()
        self._sides = Sides(Side(), Side(), "1.2.3.4:5")
        self._sides.client.connection_made(self.client)
        self._sides.source.connection_made(self.source)
        self.handler = _Handler(judge)
        self.relay = Relay()
        self.logins = 0
        self.session = GatewaySession(
            self._sides, self.handler, self.relay, logged_in=self._logged_in, told=WarningLimiter()
        )
        self.running = asyncio.ensure_future(self.session.run())

    def _logged_in(self) -> None:
        self.logins += 1

    async def log_in(self) -> None:
        await self.answers(frame(GREETING.encode(), 0))
        await self.says(frame(LOGIN.encode(), 1))
        await self.answers(frame(OK, 2))
        self.client.take(), self.source.take()

    async def says(self, data: bytes) -> bytes:
        """Have the client say something; what the source gets."""
        self._sides.client.data_received(data)
        await self.rest()
        return self.source.take()

    async def answers(self, data: bytes) -> bytes:
        """Have the source say something; what the client gets."""
        self._sides.source.data_received(data)
        await self.rest()
        return self.client.take()

    async def rest(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def client_ends(self) -> None:
        self._sides.client.eof_received()
        await self.rest()

    def congest(self, *, is_congested: bool) -> None:
        side = self._sides.client
        if is_congested:
            side.pause_writing()
        else:
            side.resume_writing()


def _talk(work: Callable[[_Talk], Awaitable[None]], judge: RecordingJudge | None = None) -> None:
    async def run() -> None:
        talk = _Talk(judge)
        try:
            await talk.log_in()
            await asyncio.wait_for(work(talk), 10)
        finally:
            talk.running.cancel()
            await asyncio.gather(talk.running, return_exceptions=True)

    asyncio.run(run())


def _error(data: bytes) -> ErrPacket:
    (packet,) = PacketSplitter().feed(data)
    return ErrPacket.decode(packet.payload)


def test_statements_pass_and_the_client_goes() -> None:
    async def work(talk: _Talk) -> None:
        assert (talk.session.user, talk.session.thread_id, talk.logins) == ("app", 77, 1)
        assert await talk.says(_query("SELECT 1")) == _query("SELECT 1")
        assert await talk.answers(_rows("1")) == _rows("1")
        await talk.client_ends()
        assert talk.running.done()
        assert talk.running.exception() is None

    _talk(work)


def test_an_answer_that_asks_the_source_first() -> None:
    async def answering(session: HandlerSession, statement: str) -> Answer:
        assert statement == "SHOW BINLOGS"
        await session.require(SourcePrivilege.MONITOR)
        return RowsAnswer(["Name"], [["orders"]])

    async def work(talk: _Talk) -> None:
        talk.handler.answering = answering
        assert await talk.says(_query("SHOW BINLOGS")) == _query("SHOW GRANTS")
        answer = await talk.answers(_rows("GRANT ALL PRIVILEGES ON *.* TO `app`@`%`"))
        assert b"orders" in answer
        await talk.says(_query("SHOW BINLOGS"))
        assert _error(await talk.answers(_rows("GRANT USAGE ON *.* TO `app`@`%`"))).errno == 1227

    _talk(work)


def test_a_fault_in_an_answer_does_not_end_the_session() -> None:
    async def answering(session: HandlerSession, statement: str) -> Answer:
        raise KeyError(statement)

    async def work(talk: _Talk) -> None:
        talk.handler.answering = answering
        await talk.says(_query("SHOW BINLOGS"))
        assert "failed to answer" in _error(talk.client.take()).message
        assert await talk.says(_query("SELECT 1")) == _query("SELECT 1")

    _talk(work)


def test_rows_in_parts_wait_for_the_client() -> None:
    async def parts() -> Any:
        for part in range(3):
            yield [[str(part)]]

    async def work(talk: _Talk) -> None:
        async def answering(session: HandlerSession, statement: str) -> Answer:
            del session, statement
            talk.congest(is_congested=True)
            return RowsInParts(["Name"], parts())

        talk.handler.answering = answering
        await talk.says(_query("SHOW BINLOGS"))
        assert len(PacketSplitter().feed(talk.client.take())) == 4
        assert not talk.source.reads_on
        talk.congest(is_congested=False)
        await talk.rest()
        assert len(PacketSplitter().feed(talk.client.take())) == 3
        assert talk.source.reads_on

    _talk(work)


def test_a_replica_registers_and_dumps() -> None:
    register = RegisterSlave(server_id=2, host="here", port=3306)

    async def work(talk: _Talk) -> None:
        await talk.says(frame(register.encode(), 0))
        assert talk.handler.registered == [register]
        talk.client.take()
        asked = await talk.says(frame(DUMP.encode(), 0))
        assert asked == _query("SET SESSION wait_timeout = 31536000")
        await talk.answers(frame(OK, 1))
        count = talk.source.take().count(b"@")
        heads = [ColumnDefinition(name=str(number)) for number in range(count)]
        values = encode_result_set(heads, [[None] * count], capabilities=CLIENT)
        events = PacketSplitter().feed(await talk.answers(frames(values, 1)))
        assert [packet.payload for packet in events] == [b"\0event", EofPacket().encode()]
        assert await talk.says(_query("SELECT 1")) == _query("SELECT 1")

    _talk(work)


def test_a_judge_follows_its_session_to_the_end() -> None:
    followed: list[str] = []

    async def then() -> None:
        followed.append("then")

    def after(_: object) -> Done:
        return Done(then=then)

    judge = RecordingJudge(after=after)

    async def work(talk: _Talk) -> None:
        assert judge.calls == []
        await talk.says(_query("INSERT"))
        await talk.answers(frame(OkPacket(affected_rows=1).encode(OFFERED), 1))
        assert followed == ["then"]
        await talk.says(_query("DELETE"))
        await talk.client_ends()
        assert not talk.running.done(), "it waits for the reply"
        await talk.answers(frame(OkPacket(affected_rows=5).encode(OFFERED), 1))
        assert [reply.affected_rows for (reply,) in judge.replies] == [1, 5]
        assert judge.calls[-1] == "ended"

    _talk(work, judge)


def test_a_fault_of_the_judge_does_not_end_the_session() -> None:
    def verdict(statements: object) -> RunVerdict:
        raise KeyError(statements)

    judge = RecordingJudge(verdict=verdict)

    async def work(talk: _Talk) -> None:
        assert await talk.says(_query("INSERT")) == _query("INSERT")
        assert await talk.answers(frame(OkPacket().encode(OFFERED), 1)) == frame(OK, 1)
        assert judge.calls == ["judge", "stumbled", "unjudged"]

    _talk(work, judge)


def test_what_a_judge_says_later() -> None:
    asked: list[tuple[ClientStatement, ...]] = []

    async def later(statements: Any) -> Refuse:
        asked.append(tuple(statements))
        return Refuse(StatementError("unsafe", errno=11314))

    judge = RecordingJudge(verdict=lambda _: None, later=later)

    async def work(talk: _Talk) -> None:
        assert await talk.says(_query("INSERT")) == b""
        assert asked == [(ClientStatement("INSERT"),)]
        assert _error(talk.client.take()).errno == 11314

    _talk(work, judge)


def test_a_client_that_breaks_the_protocol_is_told() -> None:
    async def work(talk: _Talk) -> None:
        await talk.says(frame(b"", 0))
        assert _error(talk.client.take()).errno == 1835
        with pytest.raises(CodecError):
            await talk.running

    _talk(work)


def test_a_client_that_breaks_the_protocol_behind_a_judged_command_is_told() -> None:
    async def later(statements: Any) -> Refuse:
        del statements
        return Refuse(StatementError("unsafe", errno=11314))

    judge = RecordingJudge(verdict=lambda _: None, later=later)

    async def work(talk: _Talk) -> None:
        await talk.says(_query("INSERT") + frame(b"", 0))
        told = [packet.payload for packet in PacketSplitter().feed(talk.client.take())]
        assert [ErrPacket.decode(one).errno for one in told] == [11314, 1835]
        with pytest.raises(CodecError, match="empty command"):
            await talk.running

    _talk(work, judge)


def test_a_source_that_goes_away_ends_the_session() -> None:
    async def answering(session: HandlerSession, statement: str) -> Answer:
        del statement
        with pytest.raises(PeerError):
            await session.query_source("DO 1")
        return RowsAnswer(["Name"], [])

    async def work(talk: _Talk) -> None:
        talk.handler.answering = answering
        await talk.says(_query("SHOW BINLOGS"))
        await talk.answers(frame(OK, 1))
        talk.session.drain()
        await talk.rest()
        assert talk.running.done()

    _talk(work)


def test_draining_waits_for_what_is_under_way() -> None:
    async def work(talk: _Talk) -> None:
        await talk.says(_query("SELECT 1"))
        talk.session.drain()
        await talk.rest()
        assert not talk.running.done()
        await talk.answers(_rows("1"))
        assert talk.running.done()

    _talk(work)


def test_statements_in_the_session_at_the_source() -> None:
    found: list[StatementReply] = []

    async def answering(session: HandlerSession, statement: str) -> Answer:
        del statement
        found.append(await session.run_at_source("DO 1"))
        with pytest.raises(StatementError, match="syntax"):
            await session.run_at_source("DO")
        return RowsAnswer(["Name"], [])

    async def work(talk: _Talk) -> None:
        talk.handler.answering = answering
        assert await talk.says(_query("SHOW BINLOGS")) == _query("DO 1")
        await talk.answers(frame(replace(OkPacket(), affected_rows=3).encode(CLIENT), 1))
        assert talk.source.take() == _query("DO")
        await talk.answers(frame(ERR, 1))
        assert found[0].affected_rows == 3

    _talk(work)
