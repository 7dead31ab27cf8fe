"""A session of the gateway as bytes tell it: who says what, in which order, and what is answered.

The bytes are a script. Each step begins with a byte that says what happens and how many of the bytes
behind it belong to it, so that any bytes are a script, and small changes make other ones.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from binlane.errors import BinlaneError, CodecError, StatementError
from binlane.live.dump.request import ReplicaRequest
from binlane.live.gateway.answers import OkAnswer, RowsAnswer
from binlane.live.gateway.judge import (
    ClientStatement,
    Done,
    Give,
    Pass,
    Refuse,
    RunVerdict,
    StatementReply,
    Verdict,
)
from binlane.live.gateway.login import LoginRules
from binlane.live.gateway.relay import Relay
from binlane.live.gateway.relay_questions import (
    Cutting,
    Entering,
    Following,
    Judging,
    Learning,
    Resetting,
    StatementQuestion,
)
from binlane.live.gateway.replica_statements import recognise
from binlane.log.codec.packets.commands import (
    BinlogDump,
    BinlogDumpGtid,
    RegisterSlave,
    encode_query,
)
from binlane.log.codec.packets.execution import Execution
from binlane.log.codec.packets.flags import Capability, Command, DumpFlag, ServerStatus
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH, FRAME_PAYLOAD_MAX, frame
from binlane.log.codec.packets.handshake import Greeting, HandshakeResponse, SslRequest
from binlane.log.codec.packets.replies import EofPacket, ErrPacket, OkPacket
from binlane.log.codec.packets.results import (
    ColumnDefinition,
)
from binlane.log.codec.types import ColumnType, Flavor
from tests.recording_judge import RecordingJudge
from tests.result_sets import encode_result_set

_OFFERED: Final = (
    Capability.PROTOCOL_41
    | Capability.LOCAL_FILES
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.MULTI_STATEMENTS
    | Capability.MULTI_RESULTS
    | Capability.SESSION_TRACK
    | Capability.DEPRECATE_EOF
    | Capability.QUERY_ATTRIBUTES
    | Capability.CONNECT_ATTRS
)
_CLIENTS: Final = (
    _OFFERED & ~Capability.DEPRECATE_EOF & ~Capability.SESSION_TRACK & ~Capability.QUERY_ATTRIBUTES,
    _OFFERED & ~Capability.QUERY_ATTRIBUTES,
    _OFFERED,
)
_GREETING: Final = Greeting(
    version="5.5.5-10.11.19-MariaDB",
    thread_id=77,
    auth_data=b"12345678abcdefghijkl\0",
    capabilities=_OFFERED | Capability.SSL | Capability.COMPRESS,
    character_set=45,
    status=ServerStatus.AUTOCOMMIT,
    plugin="mysql_native_password",
)
_ERR: Final = ErrPacket(errno=1045, message="Access denied", sqlstate="28000").encode()
_MISSING: Final = StatementError("there is no such thing", errno=1)
_STEPS: Final = 10
_LENGTHS: Final = 25
_SLACK: Final = 1 << 16
_UNSENT = RunVerdict(text="SELECT 1")


class _Verdicts(NamedTuple):
    """What a judge says by turns."""

    verdicts: Sequence[Verdict | None] = (
        RunVerdict(),
        RunVerdict(before=("SET @a = 1", "SET @b = 2")),
        Pass(),
        Refuse(_MISSING),
        Give(OkAnswer()),
        Give(RowsAnswer(("c",), [["1"], [None]])),
        None,
        _UNSENT,
    )


def login(data: bytes) -> None:
    """A login: the script begins before the greeting."""
    rules = LoginRules(offers_tls=True, source_is_local=len(data) % 2 == 1, checks_account=True)
    _Conversation(Relay(rules)).run(data)


def relayed(data: bytes) -> None:
    """A session of which no statement is judged; the first byte says what its client can."""
    _Conversation(_logged_in(Relay(), data)).run(data[1:])


def judged(data: bytes) -> None:
    """A session whose statements are judged: none reaches the source that was not."""
    relay, judge = Relay(), RecordingJudge()
    turns = 0

    def verdict(statements: Sequence[ClientStatement]) -> Verdict | None:
        nonlocal turns
        turns += 1
        number = sum(map(len, (one.text for one in statements))) + turns + len(data)
        return _Verdicts().verdicts[number % len(_Verdicts().verdicts)]

    def after(replies: Sequence[StatementReply]) -> Done:
        return Done(warnings=len(replies), then=_nothing if turns % 3 == 0 else None)

    judge.verdict, judge.after = verdict, after
    relay.find_judge = lambda: judge
    _Conversation(_logged_in(relay, data), judge).run(data[1:])


def dump_request(data: bytes) -> None:
    """A dump as a replica asks for it: user variables, then a command, split at the first NUL."""
    said, _, command = data.partition(b"\0")
    variables: dict[str, str | None] = {"master_binlog_checksum": "CRC32"}
    for text in said.decode("utf-8", "surrogateescape").split(";"):
        name, _, value = text.partition("=")
        variables[name] = value
        try:
            recognise(text)
        except BinlaneError as error:
            str(error)
    for decode in (BinlogDump.decode, BinlogDumpGtid.decode, RegisterSlave.decode):
        try:
            asked = decode(command)
        except CodecError:
            continue
        if isinstance(asked, RegisterSlave):
            is_told = asked.password in (asked.host, asked.user) or len(asked.password) < 6
            assert is_told or asked.password not in repr(asked), "nobody logs passwords"
        if isinstance(asked, RegisterSlave):
            continue
        assert "\0" not in asked.file
        for flavor in Flavor:
            try:
                ReplicaRequest.of(asked, variables, flavor=flavor)
            except StatementError as error:
                str(error)


async def _nothing() -> None:
    """What follows a command."""


def _logged_in(relay: Relay, data: bytes) -> Relay:
    client = _CLIENTS[(data[0] if data else 0) % len(_CLIENTS)]
    relay.from_source(frame(_GREETING.encode(), 0))
    head = SslRequest(capabilities=client, payload_max=1 << 24, character_set=45)
    response = HandshakeResponse(
        head=head, user="app", auth_response=b"\x55" * 20, plugin="mysql_native_password"
    )
    relay.from_client(frame(response.encode(), 1))
    relay.from_source(frame(OkPacket().encode(client), 2))
    relay.take_to_client()
    relay.take_to_source()
    if relay.question is not None:
        relay.go_on()
    return relay


class _Conversation:
    """A script at work."""

    def __init__(self, relay: Relay, judge: RecordingJudge | None = None) -> None:
        self._relay = relay
        self._judge = judge
        self._given = self._sent = 0
        # Of what goes to the source:
        self._frames = b""
        self._continues = self._is_local = False
        self._steps: Sequence[Callable[[bytes], None]] = (
            self._client,
            self._client_packet,
            self._client_query,
            self._client_numbered,
            self._source,
            self._source_packet,
            self._source_ok,
            self._source_rows,
            self._source_numbered,
            self._answer,
        )
        assert len(self._steps) == _STEPS, "scripts count on it"

    def run(self, data: bytes) -> None:
        offset = 0
        while offset < len(data) and not self._relay.is_closed:
            step, length = divmod(data[offset], _LENGTHS)
            if length == _LENGTHS - 1:  # a long one
                length, offset = int.from_bytes(data[offset + 1 : offset + 3], "little"), offset + 2
            offset += 1
            piece = data[offset : offset + length]
            offset += length
            self._is_local = self._relay._source.wants_local_data
            try:
                self._steps[step % _STEPS](piece)
            except BinlaneError as error:
                str(error)
                if isinstance(error, CodecError):
                    self._relay.protest(error)
                self._take()
                return
            self._take()

    def _take(self) -> None:
        """What goes out is a few packets more than what came in, and what is kept no more than that."""
        relay = self._relay
        to_source, to_client = relay.take_to_source(), relay.take_to_client()
        self._sent += len(to_source) + len(to_client)
        assert self._sent <= 40 * self._given + _SLACK, "it talks too much"
        assert relay.waiting_bytes <= self._given, "it keeps what nobody sent"
        if self._judge is not None:
            self._check_judged(to_source)
        while relay.has_more:
            relay.read_on()
            to_source = relay.take_to_source()
            if self._judge is not None:
                self._check_judged(to_source)

    def _check_judged(self, to_source: bytes) -> None:
        """A query that goes to the source is binlane's own, or was judged and let run."""
        judge = self._judge
        assert judge is not None, "it is asked"
        data = self._frames + to_source
        while len(data) >= FRAME_HEADER_LENGTH:
            length = int.from_bytes(data[:3], "little")
            if len(data) < FRAME_HEADER_LENGTH + length:
                break
            number, payload = data[3], data[FRAME_HEADER_LENGTH : FRAME_HEADER_LENGTH + length]
            is_command = not (number or self._continues or self._is_local)
            if is_command and payload[:1] == bytes((Command.QUERY,)):
                is_own = any(text in payload for text in (b"SET @", b"SELECT 1"))
                assert is_own or judge.statements, payload
            self._continues = length == FRAME_PAYLOAD_MAX
            data = data[FRAME_HEADER_LENGTH + length :]
        self._frames = data

    def _client(self, piece: bytes) -> None:
        self._given += len(piece)
        self._relay.from_client(piece)
        self._begin_tls()

    def _begin_tls(self) -> None:
        """TLS that changes nothing: what comes behind the wish for it is inside already."""
        relay = self._relay
        while relay.tls_side is not None:
            if begun := relay.begin_tls():
                relay.from_client(begun)

    def _client_packet(self, piece: bytes) -> None:
        self._client(frame(piece, 0))

    def _client_query(self, piece: bytes) -> None:
        self._client(frame(bytes((Command.QUERY,)) + piece, 0))

    def _client_numbered(self, piece: bytes) -> None:
        self._client(frame(piece[1:], piece[0] if piece else 1))

    def _source(self, piece: bytes) -> None:
        self._given += len(piece)
        self._relay.from_source(piece)

    def _source_packet(self, piece: bytes) -> None:
        self._source(frame(piece, 1))

    def _source_numbered(self, piece: bytes) -> None:
        self._source(frame(piece[1:], piece[0] if piece else 0))

    def _source_ok(self, piece: bytes) -> None:
        status = ServerStatus(int.from_bytes(piece[:2], "little"))
        self._source(frame(OkPacket(status=status, info=piece[2:]).encode(_OFFERED), 1))

    def _source_rows(self, piece: bytes) -> None:
        payloads = encode_result_set(
            [ColumnDefinition(name="c")],
            [[text.decode("latin-1")] for text in piece.split(b",")],
            capabilities=self._relay.capabilities,
        )
        self._source(b"".join(frame(each, 1 + number) for number, each in enumerate(payloads)))

    def _read(self, question: Learning | Cutting, *, learns: bool) -> None:
        if isinstance(question, Cutting):
            self._relay.cut(question.uncut.statements())
            return
        if learns and self._judge is not None:
            asyncio.run(self._judge.learn())
        self._relay.learned()

    def _answer(self, piece: bytes) -> None:
        relay, choice = self._relay, piece[0] if piece else 0
        question = relay.question
        if isinstance(question, Resetting | Following):
            relay.go_on()
        elif isinstance(question, Entering):
            if choice % 2:
                relay.enter()
            else:
                relay.turn_away(_MISSING)
        elif isinstance(question, Learning | Cutting):
            self._read(question, learns=choice % 2 != 0)
        elif isinstance(question, Judging):
            if question.answer is not None:
                relay.begin_rows(())
                relay.end_rows()
            else:
                verdicts = [one for one in _Verdicts().verdicts if one is not None]
                relay.decide(verdicts[choice % len(verdicts)])
        elif isinstance(question, StatementQuestion):
            answers: list[Callable[[], None]] = [
                relay.hand_on,
                partial(relay.refuse, _MISSING),
                partial(relay.answer, OkAnswer(info="done")),
                partial(relay.answer, RowsAnswer(("c",), [["1"]])),
            ]
            answers[choice % len(answers)]()
        elif question is not None:
            relay.refuse(_MISSING)


# Seeds ----------------------------------------------------------------------------------------


def _step(number: int, piece: bytes) -> bytes:
    if len(piece) < _LENGTHS - 1:
        return bytes((number * _LENGTHS + len(piece),)) + piece
    return bytes((number * _LENGTHS + _LENGTHS - 1,)) + len(piece).to_bytes(2, "little") + piece


_QUERIES: Final = (
    b"SELECT 1",
    b"SHOW BINLOGS",
    b"SHOW BINLOG INCIDENTS FOR 'a'",
    b"ACKNOWLEDGE BINLOG INCIDENTS FOR 'a' TO '0-1-5'",
    b"SET @master_binlog_checksum = 'NONE', @slave_connect_state = '0-1-1'",
    b"INSERT INTO t VALUES (1); SELECT 'a;b'; DELETE FROM t",
    b"LOAD DATA LOCAL INFILE 'f' INTO TABLE t",
    b"SHOW GLOBAL VARIABLES LIKE 'gtid_binlog_pos'",
    b"SELECT BINLOG_GTID_POS('orders.000001', 4)",
)


def _commands() -> Iterator[bytes]:
    for text in _QUERIES:
        yield encode_query(text)
        yield encode_query(text, Capability.QUERY_ATTRIBUTES)
    yield b"\x16INSERT INTO t VALUES (?, ?)"
    yield Execution(
        statement_id=1, types=(ColumnType.LONG, ColumnType.STRING), values=(1, b"x")
    ).encode()
    yield bytes((Command.STMT_SEND_LONG_DATA,)) + b"\1\0\0\0\1\0long"
    yield bytes((Command.STMT_CLOSE,)) + b"\1\0\0\0"
    yield bytes((Command.STMT_RESET,)) + b"\1\0\0\0"
    yield bytes((Command.CHANGE_USER,)) + b"other\0\0d\0\x2d\0mysql_native_password\0"
    yield bytes((Command.RESET_CONNECTION,))
    yield bytes((Command.SET_OPTION,)) + b"\0\0"
    yield bytes((Command.INIT_DB,)) + b"shop"
    yield RegisterSlave(server_id=2, host="h", user="u", password="secret", port=1).encode()
    yield BinlogDump(position=4, flags=DumpFlag(2), server_id=2, file="o.000001").encode()
    yield BinlogDumpGtid(flags=DumpFlag(0), server_id=2, done=bytes(8)).encode()
    yield b"\xfe" + b"\x01\0\0\x01"
    yield b"\x0e"


def sessions() -> Iterator[bytes]:
    """A script for each command, with each way to answer it."""
    prepared = b"\0\1\0\0\0\0\0\2\0\0\0\0"
    for number, payload in enumerate(_commands()):
        for reply in (
            _step(6, b"\2\0"),
            _step(6, b"\x0a\0") + _step(6, b"\2\0"),
            _step(7, b"a,b"),
            _step(5, _ERR),
            _step(5, b"\xfbfile") + _step(3, b"\2content") + _step(3, b"\3") + _step(6, b"\2\0"),
            _step(5, prepared) + _step(5, EofPacket().encode()),
            _step(5, b"\xfenative\0scramble") + _step(3, b"\3answer") + _step(6, b"\2\0"),
        ):
            begin = bytes((number,))
            yield begin + _step(1, payload) + _step(9, bytes((number,))) + reply + _step(9, b"\1")


def logins() -> Iterator[bytes]:
    """Logins that work, and some that do not."""
    greeting = _step(4, frame(_GREETING.encode(), 0))
    for client in _CLIENTS:
        head = SslRequest(capabilities=client, payload_max=1 << 24, character_set=45)
        for user, attributes in (("app", None), ("root", (("k", "v"), ("l", "w")))):
            response = HandshakeResponse(
                head=head,
                user=user,
                auth_response=b"\x55" * 20,
                plugin="mysql_native_password",
                attributes=attributes,
            ).encode()
            said = greeting + _step(0, frame(response, 1))
            yield said + _step(5, OkPacket().encode(client)) + _step(2, b"SELECT 1")
            yield said + _step(5, b"\xfeplugin\0" + bytes(20)) + _step(3, b"\3abc") + _step(5, _ERR)
            wish = replace(head, capabilities=client | Capability.SSL)
            by_tls = greeting + _step(0, frame(wish.encode(), 1)) + _step(0, frame(response, 2))
            change = bytes((Command.CHANGE_USER,)) + b"other\0\0d\0\x2d\0mysql_native_password\0"
            said = by_tls + _step(5, OkPacket().encode(client)) + _step(9, b"\1")
            yield said + _step(1, change) + _step(6, b"\2\0") + _step(9, b"\0")
            yield by_tls + _step(5, b"\1\4") + _step(3, b"\4secret\0") + _step(5, _ERR)
    yield _step(4, frame(_ERR, 0))


def requests() -> Iterator[bytes]:
    """Dump commands, with what is said before."""
    said = (
        b"SET @slave_connect_state='0-1-1,1-1-1';slave_connect_state=0-1-1,1-2-3"
        b";mariadb_slave_capability=4;master_heartbeat_period=1000000000"
    )
    for payload in _commands():
        yield said + b"\0" + payload


def mutations(seeds: Sequence[bytes], count: int, chance: random.Random) -> Iterator[bytes]:
    """Scripts like some others: bytes changed, pieces taken out, doubled or put together."""
    for _ in range(count):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(data) + 1)
            kind = chance.randrange(5)
            if kind == 0 and data:
                data[at % len(data)] = chance.choice(
                    (0, 1, 0x7F, 0x80, 0xFB, 0xFE, 0xFF, at & 0xFF)
                )
            elif kind == 1:
                del data[at : at + chance.randrange(1, 8)]
            elif kind == 2:
                data[at:at] = chance.randbytes(chance.randrange(1, 8))
            elif kind == 3:
                data[at:at] = chance.choice(seeds)[1:]
            else:
                data += chance.choice(seeds)[1:]
        yield bytes(data)
