"""Sessions over real sockets, whose packets come in pieces: in every form of the pump the same bytes arrive."""

from __future__ import annotations

import asyncio
import gc
import random
import socket
import struct
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import pytest

from binlane.live.gateway import pump
from binlane.live.gateway.gateway_session import GatewaySession, Sides
from binlane.live.gateway.judge import (
    AS_IT_IS,
    PASS,
    PlanPiece,
    SeenStatement,
    Unseen,
    UnseenEnds,
)
from binlane.live.gateway.port_counts import PortCounts, StatementOutcome
from binlane.live.gateway.relay import Relay
from binlane.live.gateway.side import Side
from binlane.live.gateway.warning_limiter import WarningLimiter
from binlane.live.port.alike_transactions import TextEvent, TransactionEnd
from binlane.live.port.attribution_messages import AttributionSender
from binlane.live.port.group_planning import WaitingWrite
from binlane.live.port.journal import journal_records as records
from binlane.live.port.journal.journal_records import StatementRecord
from binlane.log.codec.packets.commands import encode_query
from binlane.log.codec.packets.execution import Execution
from binlane.log.codec.packets.flags import Capability, ServerStatus
from binlane.log.codec.packets.framing import FRAME_PAYLOAD_MAX, frame, frames
from binlane.log.codec.packets.handshake import Greeting, HandshakeResponse, SslRequest
from binlane.log.codec.packets.replies import ErrPacket, OkPacket
from binlane.log.codec.packets.results import ColumnDefinition
from binlane.log.codec.packets.session_state import SessionState
from binlane.log.codec.types import ColumnType
from binlane.log.grouping.sections import RowsPiece
from binlane.log.kernels.load import Build, can_jit, is_compiled, running
from binlane.names import TableName
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.session.group_plan import EncodedEvent, GroupPlan, TextPart, basis_of
from binlane.statements.session.plan_bytes import EVENT_HEAD, encode_plans
from binlane.statements.sql.servers import LoggingMode
from tests.recording_judge import JudgingHandler, RecordingJudge
from tests.result_sets import encode_result_set

_TIMEOUT_S = 60.0
_BASE = Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION | Capability.PLUGIN_AUTH
_COMPILED = [Build.COMPILED] if is_compiled(("passing",)) else []
_FORMS = [None, *_COMPILED, *([Build.PLAIN] if can_jit() else [])]


@contextmanager
def form(build: Build | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a pump have its kernel in a form, or none; in the compiled one the loop waits."""
    monkeypatch.setattr(pump, "is_compiled", lambda _: build is not None)
    make = pump.waiting_loop if build is Build.COMPILED else None
    monkeypatch.setattr(asyncio, "run", partial(_run, make))
    with running(build or Build.PLAIN):
        yield


def _run(
    make: Callable[[], asyncio.AbstractEventLoop] | None, work: Coroutine[None, None, None]
) -> None:
    with asyncio.Runner(loop_factory=make) as runner:
        runner.run(work)


class Talk:
    """A session between two sockets.

    Attributes:
        client, source: The far ends.
    """

    def __init__(self, capabilities: Capability, judge: RecordingJudge | None = None) -> None:
        self.capabilities = capabilities
        self._judge = judge
        self.counts = PortCounts()
        self.relay = Relay(counts=self.counts)

    async def begin(self) -> None:
        self.client, here = socket.socketpair()
        self.source, there = socket.socketpair()
        self.client.setblocking(False)
        self.source.setblocking(False)
        client = Side.of(here)
        source = Side.of(there)
        self.sides = Sides(client, source, "1.2.3.4:5")
        self.session = GatewaySession(
            self.sides,
            JudgingHandler(lambda _: self._judge),
            self.relay,
            logged_in=lambda: None,
            told=WarningLimiter(),
        )
        self.running = asyncio.ensure_future(self.session.run())
        greeting = Greeting(
            version="5.5.5-10.11.19-MariaDB",
            thread_id=77,
            auth_data=b"12345678abcdefghijkl\0",
            capabilities=self.capabilities | Capability.SESSION_TRACK,
            character_set=45,
            status=ServerStatus.AUTOCOMMIT,
            plugin="mysql_native_password",
        )
        login = HandshakeResponse(
            head=SslRequest(capabilities=self.capabilities, payload_max=1 << 24, character_set=45),
            user="app",
            auth_response=bytes(20),
            plugin="mysql_native_password",
        )
        await self.passes(self.source, self.client, frame(greeting.encode(), 0), is_same=False)
        await self.passes(self.client, self.source, frame(login.encode(), 1), is_same=False)
        await self.passes(self.source, self.client, frame(OkPacket().encode(_BASE), 2))

    async def passes(
        self, from_: socket.socket, to: socket.socket, *parts: bytes, is_same: bool = True
    ) -> bytes:
        """Send parts one after another, see that they arrive, and give the bytes that did."""
        loop = asyncio.get_running_loop()
        whole = b"".join(parts)

        async def send() -> None:
            for part in parts:
                await loop.sock_sendall(from_, part)
                if len(parts) > 1:
                    await asyncio.sleep(0)

        sending = asyncio.ensure_future(send())
        got = b""
        async with asyncio.timeout(_TIMEOUT_S):
            while len(got) < len(whole) if is_same else not got:
                data = await loop.sock_recv(to, 1 << 20)
                assert data, "the end"
                got += data
            await sending
        assert not is_same or got == whole
        return got

    async def ask(self, command: bytes, reply: bytes, cut: Callable[[bytes], list[bytes]]) -> None:
        await self.passes(self.client, self.source, *cut(command))
        await self.passes(self.source, self.client, *cut(reply))

    @property
    def is_passing(self) -> bool:
        return self.session._passing is not None

    async def end(self) -> None:
        self.client.close()
        async with asyncio.timeout(_TIMEOUT_S):
            await asyncio.gather(self.running, return_exceptions=True)
        self.source.close()
        for side in self.sides[:2]:
            side.close()
        await asyncio.sleep(0)


def talk(
    work: Callable[[Talk], Awaitable[None]],
    capabilities: Capability = _BASE,
    judge: RecordingJudge | None = None,
) -> Talk:
    one = Talk(capabilities, judge)

    async def run() -> None:
        await one.begin()
        try:
            await work(one)
        finally:
            await one.end()

    asyncio.run(run())
    return one


def query(text: str) -> bytes:
    return frame(encode_query(text), 0)


def whole(data: bytes) -> list[bytes]:
    return [data]


class Cuts:
    """Random bytes of sessions, cut at random."""

    def __init__(self, seed: int, capabilities: Capability) -> None:
        self._random = random.Random(seed)
        self._capabilities = capabilities

    def cut(self, data: bytes) -> list[bytes]:
        if self._random.random() < 0.5:
            return [data]
        most = min(len(data) - 1, 6)
        places = sorted(self._random.sample(range(1, len(data)), self._random.randint(0, most)))
        return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]

    def command(self) -> bytes:
        text = self._random.choice(
            (
                "SELECT 1",
                "select a, b from t where x = 'é'",
                "INSERT INTO t VALUES (1)",
                "UPDATE t SET a = @b",
                "SET @a = 1",
                "BEGIN",
                "commit",
                "SELECT 1 FROM mastodon",
                "SELECT '" + "x" * self._random.randint(0, 90_000) + "'",
                "/* c */ SELECT 2",
            )
        )
        if self._random.random() < 0.2:
            return frame(b"\x17\1\0\0\0\0\1\0\0\0", 0)
        return frame(b"\x0e", 0) if self._random.random() < 0.1 else query(text)

    def reply(self) -> bytes:
        kind = self._random.randrange(5)
        if kind == 0:
            return frame(ErrPacket(errno=1064, message="no", sqlstate="42000").encode(), 1)
        if kind == 1:
            status = ServerStatus.AUTOCOMMIT | ServerStatus.IN_TRANSACTION
            ok = OkPacket(
                affected_rows=self._random.choice((0, 1, 300, 70_000)),
                insert_id=self._random.choice((0, 5, 1 << 40)),
                status=status,
            )
            return frame(ok.encode(_BASE), 1)
        if kind == 2:
            return frame(OkPacket().encode(_BASE), 1)
        heads = [ColumnDefinition(name=f"c{n}") for n in range(self._random.choice((1, 2, 260)))]
        rows = [
            ["y" * self._random.choice((0, 1, 30, 300, 70_000)) for _ in heads[:2]]
            + ["z"] * (len(heads) - 2)
            for _ in range(self._random.randrange(4))
        ]
        packets = encode_result_set(heads, rows, capabilities=self._capabilities)
        return frames(packets, 1)


@pytest.mark.parametrize("build", _FORMS)
@pytest.mark.parametrize("extra", [Capability(0), Capability.DEPRECATE_EOF])
@pytest.mark.parametrize("seed", range(3))
def test_sessions_in_pieces(
    monkeypatch: pytest.MonkeyPatch, build: Build | None, extra: Capability, seed: int
) -> None:
    count = 40 if build is Build.PLAIN else 150
    capabilities = _BASE | extra

    async def work(one: Talk) -> None:
        cuts = Cuts(seed, capabilities)
        passing = 0
        for number in range(count):
            before = one.session.age.commands
            assert before == number
            await one.ask(cuts.command(), cuts.reply(), cuts.cut)
            await asyncio.sleep(0)
            passing += one.is_passing
        assert bool(passing) is (build is not None)
        assert one.session.age.commands == count

    with form(build, monkeypatch):
        talk(work, capabilities)


@pytest.mark.parametrize("build", _FORMS)
def test_commands_behind_one_another(monkeypatch: pytest.MonkeyPatch, build: Build | None) -> None:
    async def work(one: Talk) -> None:
        await one.ask(query("SELECT 1"), _rows(3), whole)
        await one.passes(one.client, one.source, query("SELECT 1"))
        reply = _rows(3)
        await one.passes(one.source, one.client, reply[:5])
        await one.passes(one.client, one.source, query("SELECT 2") + query("SET @a = 1"))
        await one.passes(one.source, one.client, reply[5:] + reply)
        await one.passes(one.source, one.client, frame(OkPacket().encode(_BASE), 1))
        await one.ask(query("SELECT 1"), _rows(1), whole)
        assert one.is_passing is (build is not None)
        assert one.session.age.commands == 5

    with form(build, monkeypatch):
        talk(work)


@pytest.mark.parametrize("build", _COMPILED)
def test_rows_for_a_client_that_takes_nothing(
    monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    async def work(one: Talk) -> None:
        loop = asyncio.get_running_loop()
        await one.passes(one.client, one.source, query("SELECT 1"))
        rows = _rows(200, length=60_000)
        sending = asyncio.ensure_future(loop.sock_sendall(one.source, rows))
        await asyncio.sleep(0.1)
        assert not sending.done()
        assert not one.is_passing
        assert one.sides.source.is_paused
        got = bytearray()
        while len(got) < len(rows):
            got += await asyncio.wait_for(loop.sock_recv(one.client, 1 << 20), _TIMEOUT_S)
        await sending
        assert got == rows
        await one.ask(query("SELECT 1"), _rows(1), whole)
        assert one.is_passing

    with form(build, monkeypatch):
        talk(work)


@pytest.mark.parametrize("build", _FORMS)
def test_a_packet_of_16_mb(monkeypatch: pytest.MonkeyPatch, build: Build | None) -> None:
    if build is Build.PLAIN:
        pytest.skip("takes minutes")
    row = (
        b"\xfe"
        + (FRAME_PAYLOAD_MAX + 10).to_bytes(8, "little")
        + b"\xfe" * (FRAME_PAYLOAD_MAX + 10)
    )
    reply = frames(
        [b"\1", ColumnDefinition(name="c").encode(), b"\xfe\0\0\2\0", row, b"\xfe\0\0\2\0"], 1
    )

    async def work(one: Talk) -> None:
        await one.ask(query("SELECT 1"), reply, whole)
        await one.ask(query("SELECT 1"), _rows(1), whole)
        assert one.is_passing is (build is not None)

    with form(build, monkeypatch):
        talk(work)


@pytest.mark.parametrize("build", _COMPILED)
def test_either_side_ends(monkeypatch: pytest.MonkeyPatch, build: Build) -> None:
    async def client_ends(one: Talk) -> None:
        await one.ask(query("SELECT 1"), _rows(1), whole)
        assert one.is_passing
        one.client.shutdown(socket.SHUT_WR)
        await asyncio.wait_for(one.running, _TIMEOUT_S)

    async def source_ends(one: Talk) -> None:
        await one.passes(one.client, one.source, query("SELECT 1"))
        reply = _rows(1)
        loop = asyncio.get_running_loop()
        # A head that is cut waits, and arrives before the end does.
        await loop.sock_sendall(one.source, reply[:2])
        await asyncio.sleep(0.05)
        one.source.close()
        await asyncio.wait_for(one.running, _TIMEOUT_S)

    with form(build, monkeypatch):
        talk(client_ends)
        talk(source_ends)


@pytest.mark.parametrize("build", _COMPILED)
def test_a_session_is_drained(monkeypatch: pytest.MonkeyPatch, build: Build) -> None:
    async def work(one: Talk) -> None:
        await one.passes(one.client, one.source, query("SELECT 1"))
        one.session.drain()
        assert not one.is_passing
        await asyncio.sleep(0.02)
        assert not one.running.done()
        await one.passes(one.source, one.client, _rows(1))
        await asyncio.wait_for(one.running, _TIMEOUT_S)

    with form(build, monkeypatch):
        talk(work)


@pytest.mark.parametrize("build", _COMPILED)
@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("INSERT INTO t VALUES (1)", True),
        ("delete from t", True),
        ("INSERT INTO t VALUES (@a)", False),
        ("INSERT INTO t VALUES ('é')", False),
        ("INSERT INTO t VALUES (1); SET SESSION x = 1", False),
        ("INSERT /*!INTO*/ t VALUES (1)", False),
        ("INSERTS", False),
        ("CREATE TABLE t (a INT)", False),
        ("SELECT * FROM t WHERE a IN (1)", True),
        ("SELECT BinLog", False),
    ],
)
def test_texts_that_their_judge_is_not_asked_about(
    monkeypatch: pytest.MonkeyPatch, build: Build, text: str, *, passes: bool
) -> None:
    judge = RecordingJudge(verdict=lambda _: PASS, unseen_now=Unseen(is_plain=True))

    async def work(one: Talk) -> None:
        await asyncio.sleep(0.02)
        assert one.is_passing
        await one.ask(query(text), frame(OkPacket().encode(_BASE), 1), whole)
        assert len(judge.statements) == (not passes)

    with form(build, monkeypatch):
        one = talk(work, judge=judge)
    assert one.counts.judged[StatementOutcome.PASSED] == 1


def _reads_at(place: object) -> Unseen:
    """Reads pass that are like those that were judged."""
    return Unseen(is_plain=False, place=place, last=SeenStatement(place))


def _prepared(number: int, parameters: int) -> bytes:
    """The reply to COM_STMT_PREPARE; the definitions of parameters are all alike."""
    head = b"\0" + number.to_bytes(4, "little") + b"\0\0" + parameters.to_bytes(2, "little")
    definitions = [ColumnDefinition(name="?").encode()] * parameters
    return frames([head + b"\0\0\0", *definitions, *([b"\xfe\0\0\2\0"] if parameters else [])], 1)


def _execution(number: int, types: bytes | None, *values: int) -> bytes:
    head = b"\x17" + number.to_bytes(4, "little") + b"\0\1\0\0\0"
    if not values:
        return frame(head, 0)
    told = b"\0" if types is None else b"\1" + types
    return frame(head + bytes((len(values) + 7) // 8) + told + bytes(values), 0)


@pytest.mark.parametrize("build", [each for each in _FORMS if each is not None])
def test_executions_that_are_like_those_before(
    monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    judge = RecordingJudge(verdict=lambda _: PASS, unseen_now=Unseen(is_plain=True))
    ok = frame(OkPacket().encode(_BASE), 1)
    tiny, unsigned = b"\1\0", b"\1\x80"

    async def work(one: Talk) -> None:
        async def passes(command: bytes, *, passes: bool = True) -> None:
            before = len(judge.statements)
            await one.ask(command, ok, whole)
            await asyncio.sleep(0.01)
            assert len(judge.statements) == before + (not passes)

        for number, count in ((1, 2), (2, 0), (129, 5)):
            text = "INSERT INTO t VALUES (" + ",".join("?" * count) + ")"
            packet = frame(b"\x16" + text.encode(), 0)
            await one.ask(packet, _prepared(number, count), whole)
        await passes(_execution(1, tiny * 2, 1, 2), passes=False)
        await passes(_execution(1, None, 1, 2))
        await passes(_execution(1, tiny * 2, 3, 4))
        await passes(_execution(1, tiny + unsigned, 3, 4), passes=False)
        await passes(_execution(1, None, 3, 4))
        await passes(_execution(2, None), passes=False)
        await passes(_execution(2, None))
        await passes(_execution(1, None, 3, 4))
        # Another one in the same place of the table takes it over.
        await passes(_execution(129, tiny * 5, *range(5)), passes=False)
        await passes(_execution(129, tiny * 5, *range(5)))
        await passes(_execution(129, tiny * 4 + unsigned, *range(5)), passes=False)
        await passes(_execution(1, None, 3, 4), passes=False)
        await passes(_execution(2, None))
        # A value that was sent before is a judge's.
        await one.passes(one.client, one.source, frame(b"\x18\2\0\0\0\0\0xyz", 0))
        await passes(_execution(2, None), passes=False)
        await passes(_execution(2, None))
        # A closed one, and none after a reset.
        await one.passes(one.client, one.source, frame(b"\x19\2\0\0\0", 0))
        await passes(_execution(2, None), passes=False)
        await passes(_execution(129, None, *range(5)))
        await one.ask(frame(b"\x1f", 0), ok, whole)
        await asyncio.sleep(0.02)
        assert one.is_passing
        await passes(_execution(129, None, *range(5)), passes=False)

    with form(build, monkeypatch):
        talk(work, judge=judge)


@pytest.mark.parametrize("build", [each for each in _FORMS if each is not None])
def test_known_reads_pass_and_what_comes_otherwise_is_told(
    monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    autocommit, transaction = (_reads_at(object()) for _ in range(2))
    judge = RecordingJudge(verdict=lambda _: AS_IT_IS, unseen_now=autocommit)
    capabilities = _BASE | Capability.DEPRECATE_EOF
    rows = frames(
        encode_result_set([ColumnDefinition(name="c")], [["r"]], capabilities=capabilities), 1
    )
    begun = frames(
        encode_result_set(
            [ColumnDefinition(name="c")],
            [["r"]],
            capabilities=capabilities,
            status=ServerStatus.AUTOCOMMIT | ServerStatus.IN_TRANSACTION,
        ),
        1,
    )
    error = frame(ErrPacket(errno=1213, message="no", sqlstate="40001").encode(), 1)
    told = "SELECT c FROM t WHERE a = ? AND b = ?"

    async def work(one: Talk) -> None:
        async def passes(
            command: bytes, reply: bytes, *calls: str, cut: Callable[[bytes], list[bytes]] = whole
        ) -> None:
            before = len(judge.calls)
            await one.passes(one.client, one.source, command)
            await one.passes(one.source, one.client, *cut(reply))
            await asyncio.sleep(0.01)
            assert tuple(judge.calls[before:]) == calls

        await one.ask(frame(b"\x16" + told.encode(), 0), _prepared(1, 2)[:-9], whole)
        read = _execution(1, None, 1, 2)
        await passes(_execution(1, b"\1\0" * 2, 1, 2), rows, "judge", "done")
        await passes(read, rows)
        await passes(read, rows, cut=lambda data: [data[:3], data[3:20], data[20:]])
        await passes(read, error, f"go on with {told}", "done")
        assert judge.replies[-1][0].errno == 1213
        await passes(read, begun, f"go on with {told}", "done")
        assert judge.replies[-1][0].status & ServerStatus.IN_TRANSACTION
        await passes(read, begun)
        await passes(read, rows, f"go on with {told}", "done")
        # Other texts are judged.
        await passes(query("SELECT `c` FROM t"), rows, "judge", "done")
        await passes(read, rows)
        judge.unseen_now = transaction
        await passes(query("BEGIN"), rows, "judge", "done")
        await passes(read, rows, "judge", "done")
        await passes(read, rows)
        judge.unseen_now = autocommit
        await passes(query("COMMIT"), rows, "judge", "done")
        await passes(read, rows)
        judge.unseen_now = None
        await passes(query("SET autocommit = 0"), rows, "judge", "done")
        await passes(read, rows, "judge", "done")
        await one.passes(one.client, one.source, read)
        one.session._go_on_unread()
        await one.passes(one.source, one.client, rows)
        assert judge.calls[-1] == "done"

    with form(build, monkeypatch):
        talk(work, capabilities, judge=judge)


@pytest.mark.parametrize("build", [each for each in _FORMS if each is not None])
def test_texts_pass_that_differ_in_literals_from_one_that_was_judged(
    monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    autocommit, transaction = (_reads_at(object()) for _ in range(2))
    judge = RecordingJudge(verdict=lambda _: AS_IT_IS, unseen_now=autocommit)
    capabilities = _BASE | Capability.DEPRECATE_EOF
    heads = [ColumnDefinition(name="c")]
    rows = frames(encode_result_set(heads, [["r"]], capabilities=capabilities), 1)
    error = frame(ErrPacket(errno=1213, message="no", sqlstate="40001").encode(), 1)
    text = "SELECT c FROM t WHERE a = {}"

    async def work(one: Talk) -> None:
        async def passes(literal: str, *calls: str, reply: bytes = rows) -> None:
            before = len(judge.calls)
            await one.passes(one.client, one.source, query(text.format(literal)))
            await one.passes(one.source, one.client, reply)
            await asyncio.sleep(0.01)
            assert tuple(judge.calls[before:]) == calls

        await passes("1", "judge", "done")
        await passes("23")
        await passes("'4'", "judge", "done")
        await passes("4")
        await passes("'it is'")
        await passes("5", f"go on with {text.format(1)}", "done", reply=error)
        assert judge.replies[-1][0].errno == 1213
        await passes("'@'", "judge", "done")
        judge.unseen_now = transaction
        await passes("7.5", "judge", "done")
        await passes("8", "judge", "done")
        await passes("9")
        judge.unseen_now = None
        await passes("7.25", "judge", "done")
        await passes("10", "judge", "done")

    with form(build, monkeypatch):
        talk(work, capabilities, judge=judge)


_INSERT = "INSERT INTO t VALUES (?, ?)"
_UPDATE = "UPDATE t SET a={} WHERE b={}"


def _written(number: int | None, text: bytes | None, *, is_new: bool = False) -> bytes:
    """An execution of `_INSERT`."""
    types = [ColumnType.LONG, ColumnType.VAR_STRING]
    execution = Execution(statement_id=1, types=types, values=[number, text], sends_types=is_new)
    return frame(execution.encode(), 0)


_STATE = b"\x05\x09\x08________"
"""What MySQL tells of a transaction."""


def _begun() -> bytes:
    """The reply of MySQL to BEGIN."""
    status = ServerStatus.IN_TRANSACTION | ServerStatus.SESSION_STATE_CHANGED
    ok = OkPacket(status=status | ServerStatus.AUTOCOMMIT, session_state=_STATE)
    return frame(ok.encode(_BASE | Capability.SESSION_TRACK), 1)


def _ok(*, rows: int = 0, insert_id: int = 0, info: bytes = b"", is_active: bool = True) -> bytes:
    status = ServerStatus.AUTOCOMMIT
    status |= ServerStatus.IN_TRANSACTION if is_active else ServerStatus(0)
    ok = OkPacket(affected_rows=rows, insert_id=insert_id, status=status, info=info)
    return frame(ok.encode(_BASE), 1)


class Transaction:
    """A session that ran a transaction once, so that its writes are known."""

    def __init__(self) -> None:
        self.idle, self.begun, self.writing = object(), object(), object()
        self.judge = RecordingJudge(verdict=lambda _: AS_IT_IS)
        self.begin, self.commit = query("BEGIN"), query("COMMIT")
        self.updated = _ok(rows=1, info=b"Rows matched: 1  Changed: 1  Warnings: 0")

    async def passes(self, one: Talk, command: bytes, reply: bytes, *calls: str) -> None:
        """Send a command and its reply, and see which calls the judge gets."""
        before = len(self.judge.calls)
        await one.passes(one.client, one.source, command)
        await one.passes(one.source, one.client, reply)
        await asyncio.sleep(0.01)
        assert tuple(self.judge.calls[before:]) == calls

    async def judged(self, one: Talk) -> None:
        judged = "judge", "done"
        await one.ask(frame(b"\x16" + _INSERT.encode(), 0), _prepared(1, 2), whole)
        for command, reply, place, last in (
            (self.begin, _ok(), self.begun, SeenStatement(self.idle, "BEGIN", turns=True)),
            (
                _written(1, b"a", is_new=True),
                _ok(rows=1, insert_id=5),
                self.writing,
                SeenStatement(self.begun, "FIRST", needs_rows=True),
            ),
            (
                _written(2, b"b"),
                _ok(rows=1, insert_id=6),
                self.writing,
                SeenStatement(self.writing, "INSERT", needs_rows=True),
            ),
            (
                query(_UPDATE.format(1, 2)),
                self.updated,
                self.writing,
                SeenStatement(self.writing, "UPDATE", needs_rows=True, tells_rows=True),
            ),
            (self.commit, _ok(is_active=False), self.idle, None),
        ):
            self.judge.unseen_now = Unseen(is_plain=False, place=place, last=last)
            await self.passes(one, command, reply, *judged)
        assert one.is_passing


def _insert(number: int, text: str) -> str:
    return f"INSERT INTO t VALUES ({number}, '{text}')"


@pytest.mark.parametrize("build", [each for each in _FORMS if each is not None])
def test_writes_of_a_transaction_pass_and_are_told_before_its_end(
    monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    known = Transaction()

    async def work(one: Talk) -> None:
        await known.judged(one)
        for number in (35, 1 << 30):
            await known.passes(one, known.begin, _ok())
            await known.passes(one, _written(number, b"c d-7"), _ok(rows=1, insert_id=1 << 40))
            await known.passes(one, query(_UPDATE.format(number, 8)), known.updated)
            await known.passes(one, _written(9, b"e", is_new=True), _ok(rows=300))
            assert one.session.age.commands == 1 + one.counts.judged.total()
            await known.passes(
                one,
                known.commit,
                _ok(is_active=False),
                "repeat BEGIN with 0: BEGIN",
                f"repeat FIRST with {1 << 40}: {_insert(number, 'c d-7')}",
                f"repeat UPDATE with 0: {_UPDATE.format(number, 8)}",
                f"repeat INSERT with 0: {_insert(9, 'e')}",
                *("judge", "done"),
            )
        assert one.counts.judged == {StatementOutcome.FOLLOWED: 15}
        assert one.session.age.commands == 16

    with form(build, monkeypatch):
        talk(work, judge=known.judge)


_FIRST = "repeat BEGIN with 0: BEGIN"


@pytest.mark.parametrize("build", _COMPILED)
@pytest.mark.parametrize(
    "reply",
    [
        _ok(rows=0),
        _ok(rows=1, info=b"Rows matched: 1  Changed: 0  Warnings: 0"),
        _ok(rows=1, is_active=False),
        frame(ErrPacket(errno=1213, message="no", sqlstate="40001").encode(), 1),
    ],
    ids=["no rows", "none changed", "no transaction", "an error"],
)
def test_a_write_that_did_something_else_is_told(
    monkeypatch: pytest.MonkeyPatch, build: Build, reply: bytes
) -> None:
    known, text = Transaction(), _UPDATE.format(3, 4)

    async def work(one: Talk) -> None:
        await known.judged(one)
        await known.passes(one, known.begin, _ok())
        await known.passes(one, _written(3, b"x"), _ok(rows=1))
        first = _FIRST, f"repeat FIRST with 0: {_insert(3, 'x')}"
        told = f"go on with {text} as UPDATE", "done"
        await known.passes(one, query(text), reply, *first, *told)
        assert one.counts.judged == {StatementOutcome.FOLLOWED: 8}

    with form(build, monkeypatch):
        talk(work, judge=known.judge)


_FIRST_READ = "SELECT a FROM t WHERE b = {}"


@pytest.mark.parametrize("build", _COMPILED)
def test_the_first_read_of_a_transaction_passes_and_is_told(
    monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    known = Transaction()
    first = SeenStatement(known.begun, "FIRST READ")
    reads = known.judge
    begun = ServerStatus.AUTOCOMMIT | ServerStatus.IN_TRANSACTION
    rows = frames(
        encode_result_set([ColumnDefinition(name="a")], [["r"]], capabilities=_BASE, status=begun),
        1,
    )
    error = frame(ErrPacket(errno=1213, message="no", sqlstate="40001").encode(), 5)

    async def begins(one: Talk) -> None:
        await one.passes(one.client, one.source, known.begin)
        await one.passes(one.source, one.client, _ok())

    async def reads_first(one: Talk, number: int, *parts: bytes) -> None:
        await one.passes(one.client, one.source, query(_FIRST_READ.format(number)))
        await one.passes(one.source, one.client, *parts)
        await asyncio.sleep(0.01)

    async def work(one: Talk) -> None:
        await known.judged(one)
        await begins(one)
        reads.unseen_now = Unseen(is_plain=False, place=known.writing, last=first)
        await reads_first(one, 1, rows)
        reads.unseen_now = Unseen(is_plain=False, place=known.idle)
        await one.ask(known.commit, _ok(is_active=False), whole)
        del reads.calls[:]
        await begins(one)
        await reads_first(one, 2, rows[:3], rows[3:-2], rows[-2:])
        await one.ask(query(_UPDATE.format(3, 4)), known.updated, whole)
        assert not reads.calls
        await one.ask(known.commit, _ok(is_active=False), whole)
        told = f"repeat FIRST READ with 0: {_FIRST_READ.format(2)}"
        updated = f"repeat UPDATE with 0: {_UPDATE.format(3, 4)}"
        assert reads.calls == [_FIRST, told, updated, "judge", "done"]
        del reads.calls[:]
        await begins(one)
        await reads_first(one, 5, rows[:-9], error)
        told = f"go on with {_FIRST_READ.format(5)} as FIRST READ"
        assert reads.calls == [_FIRST, told, "done"]
        assert reads.replies[-1][-1].errno == 1213

    with form(build, monkeypatch):
        talk(work, judge=reads)


@pytest.mark.parametrize("build", _COMPILED)
@pytest.mark.parametrize(
    ("number", "text"),
    [
        *((0, b"a"), (-1, b"a"), (None, b"a")),
        *((1, text) for text in (None, b"", b"'", b'"', b"\\", b"\n", b"\xc3", b"a" * 251)),
    ],
)
def test_values_that_may_be_read_otherwise_are_judged(
    monkeypatch: pytest.MonkeyPatch, build: Build, number: int | None, text: bytes | None
) -> None:
    known = Transaction()

    async def work(one: Talk) -> None:
        await known.judged(one)
        await known.passes(one, known.begin, _ok())
        await known.passes(one, _written(number, text), _ok(rows=1), _FIRST, "judge", "done")

    with form(build, monkeypatch):
        talk(work, judge=known.judge)


@pytest.mark.parametrize("build", _COMPILED)
def test_a_transaction_of_more_writes_than_are_kept(
    monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    known, count = Transaction(), 300

    async def work(one: Talk) -> None:
        await known.judged(one)
        del known.judge.calls[:]
        await one.ask(known.begin, _ok(), whole)
        for number in range(1, count + 1):
            known.judge.unseen_now = Unseen(is_plain=False, place=known.writing)
            await one.ask(_written(number, b"text"), _ok(rows=1), whole)
        await one.ask(known.commit, _ok(is_active=False), whole)
        texts = [call.partition(": ")[2] for call in known.judge.calls]
        told = [text for text in texts if text.startswith("INSERT")]
        judged = [each.text for (each,) in known.judge.statements[5:]]
        assert len(told) + len(judged) == count + 1
        assert len(judged) < count / 20
        assert {*told, *judged} == {_insert(n, "text") for n in range(1, count + 1)} | {"COMMIT"}
        assert one.counts.judged == {StatementOutcome.FOLLOWED: count + 7}

    with form(build, monkeypatch):
        talk(work, judge=known.judge)


_DEFINITION = Definition(
    name="b", scope=Scope.everything(), logging_mode=LoggingMode.STATEMENT, log_id=1
)
_TABLE = TableName("d", "t")
_ROWS = (RowsPiece((_TABLE,), (("insert", _TABLE),)),)
_TEXT_EVENTS = {
    "FIRST": TextEvent(b"first head", 8, has_insert_id=True),
    "INSERT": TextEvent(b"", 0, has_insert_id=False),
    "UPDATE": TextEvent(b"head", 0, has_insert_id=False),
}


def _events(effect: str, text: str, insert_id: int) -> tuple[EncodedEvent, ...]:
    head, flags, has_insert_id = _TEXT_EVENTS[effect]
    event = EncodedEvent(2, (78).to_bytes(4, "little") + head + text.encode(), flags)
    value = EncodedEvent(5, b"\x02" + insert_id.to_bytes(8, "little"))
    return (value, event) if has_insert_id else (event,)


def _plan(writes: Sequence[tuple[str, str, int]]) -> GroupPlan:
    parts = tuple(TextPart(_events(*write), place) for place, write in enumerate(writes))
    bases = {"b": basis_of(_DEFINITION)}
    return GroupPlan(sections=(_ROWS,) * len(writes), binlogs={"b": parts}, bases=bases)


class Groups:
    """Groups of transactions that end in a known way, and what is said of them."""

    def __init__(self) -> None:
        writes = [("FIRST", "a", 0), ("INSERT", "b", 0), ("UPDATE", "c", 0)]
        waiting = [
            WaitingWrite(
                number,
                write[0],
                b"".join(
                    EVENT_HEAD.pack(kind, flags, len(body)) + body
                    for kind, body, flags in _events(*write)
                ),
                text=write[1],
                version=None,
            )
            for number, write in enumerate(writes)
        ]
        self._end = TransactionEnd((_DEFINITION,))
        assert self._end.learn(_plan(writes), waiting)
        self._there, here = socket.socketpair()
        self._there.setblocking(False)
        self.sender = AttributionSender(here)
        self.ends = UnseenEnds(self.sender, 77, 78, 40, "0-1-1")

    def close(self) -> None:
        """Close both ends of the connection."""
        self.sender.close()
        self._there.close()

    def piece(self, effect: object) -> PlanPiece | None:
        """As of `SeenStatement`."""
        assert isinstance(effect, str)
        event = _TEXT_EVENTS.get(effect)
        return PlanPiece(b"", b"") if event is None else self._end.piece(effect, event)

    def heard(self) -> list[tuple[int, StatementRecord]]:
        """Kinds of messages, and messages, that have come."""
        data, found = self._there.recv(1 << 20), []
        while data:
            length, kind = struct.unpack_from("<IB", data)
            found.append((kind, records.read_statement(data[5 : 5 + length])))
            data = data[5 + length :]
        return found


def _told(
    gtid: str, *, behind: bytes = b"", rows: int = 0, insert_id: int = 0, info: bytes = b""
) -> bytes:
    """The reply to a statement that made a group."""
    state = SessionState(variables={"last_gtid": gtid}).encode() + behind
    status = ServerStatus.AUTOCOMMIT | ServerStatus.SESSION_STATE_CHANGED
    ok = OkPacket(
        affected_rows=rows, insert_id=insert_id, status=status, info=info, session_state=state
    )
    return frame(ok.encode(_BASE | Capability.SESSION_TRACK), 1)


@pytest.mark.parametrize("build", [each for each in _FORMS if each is not None])
@pytest.mark.parametrize("behind", [b"", _STATE], ids=["MariaDB", "MySQL"])
def test_transactions_pass_as_wholes_and_their_groups_are_told_of(
    monkeypatch: pytest.MonkeyPatch, build: Build, behind: bytes
) -> None:
    known, groups = Transaction(), Groups()
    last = SeenStatement(known.writing, "COMMIT", turns=True, piece=groups.piece)

    async def transaction(one: Talk, number: int) -> None:
        await one.passes(one.client, one.source, known.begin)
        await one.passes(one.source, one.client, _begun() if behind else _ok(), is_same=False)
        await known.passes(one, _written(number, b"x y"), _ok(rows=1, insert_id=1 << 40))
        await known.passes(one, query(_UPDATE.format(number, 8)), known.updated)
        await known.passes(one, _written(1 << 30, b"e"), _ok(rows=300))

    async def work(one: Talk) -> None:
        await known.judged(one)
        await transaction(one, 3)
        known.judge.unseen_now = Unseen(
            is_plain=False, place=known.idle, last=last, ends=groups.ends
        )
        await one.passes(one.client, one.source, known.commit)
        await one.passes(one.source, one.client, _told("0-1-2"), is_same=False)
        before = len(known.judge.calls)
        for number, place in ((35, 44), (36, 49)):
            await transaction(one, number)
            await one.passes(one.client, one.source, known.commit)
            ((kind, intent),) = groups.heard()
            writes = [
                ("FIRST", _insert(number, "x y"), 1 << 40),
                ("UPDATE", _UPDATE.format(number, 8), 0),
                ("INSERT", _insert(1 << 30, "e"), 0),
            ]
            assert kind == records.INTENT
            assert intent[:4] == (77, place + 1, 0, "")
            assert intent.encoded == encode_plans((_plan(writes),))
            await one.passes(
                one.source, one.client, _told(f"0-1-{number}", behind=behind), is_same=False
            )
            ((kind, answer),) = groups.heard()
            assert kind == records.ANSWER
            assert answer[:5] == (77, place + 1, records.IS_KNOWN, f"0-1-{number}", None)
        assert len(known.judge.calls) == before
        # What was said already is not told again.
        await one.passes(one.client, one.source, known.begin)
        await one.passes(one.source, one.client, _ok())
        await one.passes(one.client, one.source, query("SELECT 1"))
        assert known.judge.calls[before:] == ["ended 50 by 0-1-36", _FIRST, "judge"]

    with form(build, monkeypatch):
        talk(work, judge=known.judge)
    groups.close()


@pytest.mark.parametrize("build", _COMPILED)
@pytest.mark.parametrize(
    "reply",
    [
        _told("0-1-2"),
        _ok(is_active=False),
        _told("0-1-9", behind=b"\x01\x02\x01d"),
        frame(ErrPacket(errno=1213, message="no", sqlstate="40001").encode(), 1),
    ],
    ids=["a group again", "no group", "more", "an error"],
)
def test_an_end_that_did_something_else_is_told(
    monkeypatch: pytest.MonkeyPatch, build: Build, reply: bytes
) -> None:
    known, groups = Transaction(), Groups()
    last = SeenStatement(known.writing, "COMMIT", turns=True, piece=groups.piece)
    ends = groups.ends._replace(told="0-1-2")

    async def work(one: Talk) -> None:
        await known.judged(one)
        for place in (False, True):
            await known.passes(one, known.begin, _ok())
            await known.passes(one, _written(3, b"x"), _ok(rows=1))
            await one.passes(one.client, one.source, known.commit)
            if not place:
                known.judge.unseen_now = Unseen(
                    is_plain=False, place=known.idle, last=last, ends=ends
                )
                await one.passes(one.source, one.client, _told("0-1-2"), is_same=False)
                del known.judge.calls[:]
        assert [kind for kind, _ in groups.heard()] == [records.INTENT]
        await one.passes(one.source, one.client, reply, is_same=False)
        await asyncio.sleep(0.01)
        assert known.judge.calls == [
            *(_FIRST, f"repeat FIRST with 0: {_insert(3, 'x')}"),
            *("go on with COMMIT as COMMIT", "done"),
        ]

    with form(build, monkeypatch):
        talk(work, judge=known.judge)
    groups.close()


class Alone:
    """A session whose writes with autocommit are known."""

    def __init__(self) -> None:
        self.known, self.groups = Transaction(), Groups()
        self.judge = self.known.judge

    async def judged(self, one: Talk) -> None:
        """Have an execution of `_INSERT` judged, and an UPDATE by its text."""
        await one.ask(frame(b"\x16" + _INSERT.encode(), 0), _prepared(1, 2), whole)
        idle, piece, judge = self.known.idle, self.groups.piece, self.judge
        for command, last in (
            (_written(1, b"a", is_new=True), SeenStatement(idle, "FIRST", needs_rows=True)),
            (query(_UPDATE.format(1, 2)), SeenStatement(idle, "UPDATE", True, True)),
        ):
            judge.unseen_now = Unseen(
                is_plain=False,
                place=idle,
                last=last._replace(piece=piece),
                ends=self.groups.ends,
            )
            await one.passes(one.client, one.source, command)
            await one.passes(one.source, one.client, _told("0-1-1", rows=1), is_same=False)
            await asyncio.sleep(0.01)
        assert judge.unseen_now is not None
        judge.unseen_now = judge.unseen_now._replace(last=None)
        del judge.calls[:]

    async def passes(self, one: Talk, command: bytes, reply: bytes) -> bytes:
        """Send a command, and a reply of which the client gets a part."""
        await one.passes(one.client, one.source, command)
        return await one.passes(one.source, one.client, reply, is_same=False)


@pytest.mark.parametrize("build", [each for each in _FORMS if each is not None])
@pytest.mark.parametrize("behind", [b"", _STATE], ids=["MariaDB", "MySQL"])
def test_writes_with_autocommit_pass_and_their_groups_are_told_of(
    monkeypatch: pytest.MonkeyPatch, build: Build, behind: bytes
) -> None:
    alone, none = Alone(), ""
    updated = b"Rows matched: 1  Changed: 1  Warnings: 0"

    async def work(one: Talk) -> None:
        await alone.judged(one)
        for number, (effect, insert_id, info) in enumerate(
            (
                ("FIRST", 1 << 40, b""),
                ("UPDATE", 0, updated),
                ("FIRST", 0, b""),
                ("UPDATE", 7, updated),
            ),
            41,
        ):
            text = _insert(number, "x y") if effect == "FIRST" else _UPDATE.format(number, 8)
            command = _written(number, b"x y") if effect == "FIRST" else query(text)
            await one.passes(one.client, one.source, command)
            said = _plan([(effect, text, 0)])
            ((kind, intent),) = alone.groups.heard()
            assert (kind, *intent[:4]) == (records.INTENT, 77, number, 0, none)
            assert intent.encoded == encode_plans((said,))
            reply = _told(f"0-1-{number}", behind=behind, rows=1, insert_id=insert_id, info=info)
            got = await one.passes(one.source, one.client, reply, is_same=False)
            assert got == _ok(rows=1, insert_id=insert_id, info=info, is_active=False)
            ((kind, answer),) = alone.groups.heard()
            told = (77, number, records.IS_KNOWN, f"0-1-{number}")
            assert (kind, *answer[:4]) == (records.ANSWER, *told)
            # The value of AUTO_INCREMENT is known from the reply alone.
            is_known = effect == "FIRST" and insert_id
            plan = encode_plans((_plan([(effect, text, insert_id)]),)) if is_known else b""
            assert answer.encoded == plan
        assert not alone.judge.calls
        # The next statement is the judge's.
        await one.passes(one.client, one.source, query("SELECT 1"))
        assert alone.judge.calls == ["ended 44 by 0-1-44", "judge"]

    with form(build, monkeypatch):
        talk(work, judge=alone.judge)
    alone.groups.close()


@pytest.mark.parametrize("build", _COMPILED)
@pytest.mark.parametrize(
    "reply",
    [
        _told("0-1-2", rows=1),
        _told("0-1-9", rows=0),
        _told("0-1-9", rows=1, info=b"Rows matched: 1  Changed: 0  Warnings: 0"),
        _ok(rows=1, is_active=False),
        _told("0-1-9", rows=1, behind=b"\x01\x02\x01d"),
        frame(ErrPacket(errno=1062, message="no", sqlstate="23000").encode(), 1),
    ],
    ids=["a group again", "no rows", "none changed", "no group", "more", "an error"],
)
def test_a_write_with_autocommit_that_did_something_else_is_told(
    monkeypatch: pytest.MonkeyPatch, build: Build, reply: bytes
) -> None:
    alone = Alone()

    async def work(one: Talk) -> None:
        await alone.judged(one)
        await alone.passes(one, _written(2, b"x"), _told("0-1-2", rows=1, insert_id=5))
        kinds = [kind for kind, _ in alone.groups.heard()]
        assert kinds == [records.INTENT, records.ANSWER]
        await alone.passes(one, query(_UPDATE.format(3, 4)), reply)
        await asyncio.sleep(0.01)
        assert [kind for kind, _ in alone.groups.heard()] == [records.INTENT]
        told = f"go on with {_UPDATE.format(3, 4)} as UPDATE"
        assert alone.judge.calls == ["ended 41 by 0-1-2", told, "done"]

    with form(build, monkeypatch):
        talk(work, judge=alone.judge)
    alone.groups.close()


@pytest.mark.parametrize("build", _COMPILED)
def test_a_write_with_autocommit_behind_a_transaction_without_writes(
    monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    alone = Alone()
    known, judge = alone.known, alone.judge

    async def work(one: Talk) -> None:
        await alone.judged(one)
        for command, reply, before, place, effect in (
            (known.begin, _ok(), known.idle, known.begun, "BEGIN"),
            (known.commit, _ok(is_active=False), known.begun, known.idle, "NOTHING"),
        ):
            last = SeenStatement(before, effect, turns=True)
            judge.unseen_now = Unseen(is_plain=False, place=place, last=last)
            await one.ask(command, reply, whole)
            await asyncio.sleep(0.01)
        write = SeenStatement(known.idle, "UPDATE", True, True, piece=alone.groups.piece)
        judge.unseen_now = Unseen(
            is_plain=False, place=known.idle, last=write, ends=alone.groups.ends
        )
        text = query(_UPDATE.format(1, 2))
        for number in (2, 3, 4):
            # The first one is the judge's: it learns that such a transaction may be before it.
            del judge.calls[:]
            await one.ask(known.begin, _ok(), whole)
            await one.ask(known.commit, _ok(is_active=False), whole)
            await alone.passes(one, text, _told(f"0-1-{number}", rows=1))
            await asyncio.sleep(0.01)
            assert bool(judge.calls) is (number == 2)
        assert [answer[1] for kind, answer in alone.groups.heard() if kind == records.ANSWER] == [
            43,
            46,
        ]

    with form(build, monkeypatch):
        talk(work, judge=judge)
    alone.groups.close()


@pytest.mark.parametrize("build", _COMPILED)
def test_a_session_that_ends_in_its_transaction(
    monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    known = Transaction()

    async def work(one: Talk) -> None:
        await known.judged(one)
        await known.passes(one, known.begin, _ok())
        await one.passes(one.client, one.source, _written(3, b"x"))
        one.client.shutdown(socket.SHUT_WR)
        await asyncio.sleep(0.05)
        told = f"go on with {_insert(3, 'x')} as FIRST"
        assert known.judge.calls[-2:] == [_FIRST, told]
        await one.passes(one.source, one.client, _ok(rows=1))
        await asyncio.wait_for(one.running, _TIMEOUT_S)
        assert known.judge.calls[-2:] == ["done", "ended"]

    with form(build, monkeypatch):
        talk(work, judge=known.judge)


@pytest.mark.parametrize("build", _COMPILED)
def test_terms_that_end(monkeypatch: pytest.MonkeyPatch, build: Build) -> None:
    holds = [True]
    judge = RecordingJudge(verdict=lambda _: PASS)
    judge.unseen_now = Unseen(is_plain=True, terms=lambda: holds[0])

    async def work(one: Talk) -> None:
        await asyncio.sleep(0.02)
        assert one.is_passing
        holds[0], judge.unseen_now = False, None
        await one.ask(query("BEGIN"), frame(OkPacket().encode(_BASE), 1), whole)
        assert len(judge.statements) == 1

    with form(build, monkeypatch):
        talk(work, judge=judge)


@pytest.mark.parametrize("build", _COMPILED)
def test_the_loop_goes_on_while_commands_pass_without_a_pause(
    monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    judge = RecordingJudge(verdict=lambda _: PASS, unseen_now=Unseen(is_plain=True))
    is_over = threading.Event()
    reply = frame(OkPacket().encode(_BASE), 1)

    def ask(one: Talk) -> int:
        count = 0
        for each in (one.client, one.source):
            each.settimeout(_TIMEOUT_S)
        while not is_over.is_set():
            one.client.sendall(query("BEGIN"))
            one.source.recv(1 << 10)
            one.source.sendall(reply)
            one.client.recv(1 << 10)
            count += 1
        return count

    async def work(one: Talk) -> None:
        await asyncio.sleep(0.02)
        assert one.is_passing
        asking = asyncio.get_running_loop().run_in_executor(None, ask, one)
        for _ in range(20):
            await asyncio.sleep(0.01)  # a timer
            await asyncio.to_thread(lambda: None)  # another thread that wakes the loop
        is_over.set()
        assert await asking > 20
        assert not judge.statements

    with form(build, monkeypatch):
        talk(work, judge=judge)


def _rows(count: int, length: int = 3) -> bytes:
    heads = [ColumnDefinition(name="c")]
    rows = [["r" * length]] * count
    return frames(encode_result_set(heads, rows, capabilities=_BASE), 1)


@pytest.mark.parametrize("build", _FORMS)
def test_a_session_leaves_nothing_to_the_garbage_collector(
    build: Build | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        judge = RecordingJudge(verdict=lambda _: PASS, unseen_now=Unseen(is_plain=True))
        talk = Talk(_BASE, judge)
        await talk.begin()
        await talk.passes(talk.client, talk.source, frame(encode_query("SELECT 1"), 0))
        await talk.passes(talk.source, talk.client, frame(OkPacket().encode(_BASE), 1))
        parts = (talk.session, talk.relay, talk.sides.client, talk.sides.source)
        held = [weakref.ref(each) for each in parts]
        del parts
        talk.client.close()
        await asyncio.wait_for(talk.running, _TIMEOUT_S)
        assert judge.has_passed is (build is not None)
        talk.sides.client.close()
        talk.sides.source.close()
        talk.source.close()
        vars(talk).clear()
        for _ in range(10):
            await asyncio.sleep(0)
        assert [each() for each in held] == [None] * len(held)

    with form(build, monkeypatch):
        gc.collect()
        gc.disable()
        try:
            asyncio.run(run())
        finally:
            gc.enable()


@pytest.mark.parametrize("build", _FORMS)
def test_callbacks_without_end_do_not_keep_sessions_waiting(
    build: Build | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        talk = Talk(_BASE)
        loop = asyncio.get_running_loop()
        is_over = False

        def again() -> None:
            if not is_over:
                loop.call_soon(again)

        again()
        await talk.begin()
        for _ in range(20):
            await talk.passes(talk.client, talk.source, frame(encode_query("SELECT 1"), 0))
            await talk.passes(talk.source, talk.client, frame(OkPacket().encode(_BASE), 1))
        is_over = True
        talk.client.close()
        await asyncio.wait_for(talk.running, _TIMEOUT_S)
        talk.sides.client.close()
        talk.sides.source.close()
        talk.source.close()
        await asyncio.sleep(0.01)

    with form(build, monkeypatch):
        asyncio.run(asyncio.wait_for(run(), _TIMEOUT_S))
