"""A session from the greeting to its end, without any connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import CodecError, StatementError
from binlane.live.gateway.answers import OkAnswer, RowsAnswer
from binlane.live.gateway.relay import Relay
from binlane.live.gateway.relay_questions import Question, StatementQuestion
from binlane.log.codec.packets.commands import (
    BinlogDump,
    BinlogDumpGtid,
    RegisterSlave,
    encode_query,
)
from binlane.log.codec.packets.flags import (
    Capability,
    Command,
    DumpFlag,
    ExtendedCapability,
    ServerStatus,
)
from binlane.log.codec.packets.framing import FRAME_PAYLOAD_MAX, PacketSplitter, frame, frames
from binlane.log.codec.packets.handshake import Greeting, HandshakeResponse, SslRequest
from binlane.log.codec.packets.replies import EofPacket, ErrPacket, OkPacket
from binlane.log.codec.packets.results import (
    ColumnDefinition,
    ResultSet,
)
from tests.result_sets import encode_result_set

GREETING = Greeting(
    version="5.5.5-10.11.19-MariaDB",
    thread_id=77,
    auth_data=b"12345678abcdefghijkl\0",
    capabilities=Capability.PROTOCOL_41
    | Capability.COMPRESS
    | Capability.SSL
    | Capability.ZSTD_COMPRESSION
    | Capability.LOCAL_FILES
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.MULTI_STATEMENTS
    | Capability.DEPRECATE_EOF,
    character_set=45,
    status=ServerStatus.AUTOCOMMIT,
    plugin="mysql_native_password",
    extended_capabilities=ExtendedCapability.CACHE_METADATA,
)
LOGIN = HandshakeResponse(
    head=SslRequest(
        capabilities=Capability.PROTOCOL_41
        | Capability.LOCAL_FILES
        | Capability.SECURE_CONNECTION
        | Capability.QUERY_ATTRIBUTES
        | Capability.PLUGIN_AUTH,
        payload_max=1 << 24,
        character_set=45,
    ),
    user="app",
    auth_response=b"\x55" * 20,
    plugin="mysql_native_password",
)
CAPABILITIES = LOGIN.capabilities & ~Capability.QUERY_ATTRIBUTES
OK = OkPacket(affected_rows=1).encode(CAPABILITIES)
ERR = ErrPacket(errno=1045, message="Access denied", sqlstate="28000").encode()
DUMP = BinlogDump(position=4, flags=DumpFlag(0), server_id=2, file="orders.000001")


def _query(statement: str) -> bytes:
    return frame(encode_query(statement), 0)


def _rows(*rows: Sequence[str]) -> bytes:
    payloads = encode_result_set([ColumnDefinition(name="c")], rows, capabilities=CAPABILITIES)
    return frames(payloads, 1)


def _relay(login: HandshakeResponse = LOGIN) -> Relay:
    """A session that has just logged in."""
    relay = Relay()
    relay.from_source(frame(GREETING.encode(), 0))
    relay.from_client(frame(login.encode(), 1))
    relay.from_source(frame(OK, 2))
    relay.take_to_client()
    assert relay.take_to_source() == frame(login.encode(), 1)
    return relay


def _question(relay: Relay) -> Question | None:
    return relay.question


def _payloads(data: bytes) -> list[bytes]:
    return [packet.payload for packet in PacketSplitter().feed(data)]


def test_greeting_offers_what_can_be_relayed() -> None:
    relay = Relay()
    relay.from_source(frame(GREETING.encode(), 0))
    (payload,) = _payloads(relay.take_to_client())
    unoffered = Capability.COMPRESS | Capability.SSL | Capability.ZSTD_COMPRESSION
    assert Greeting.decode(payload) == replace(
        GREETING, capabilities=GREETING.capabilities & ~unoffered
    )


def test_login_passes_unchanged_and_is_remembered() -> None:
    relay = _relay()
    assert (relay.user, relay.thread_id) == ("app", 77)
    assert relay.server_version == "10.11.19-MariaDB"
    assert relay.capabilities == CAPABILITIES


def test_questions_of_the_authentication_plugin_pass() -> None:
    relay = Relay()
    relay.from_source(frame(GREETING.encode(), 0))
    relay.from_client(frame(LOGIN.encode(), 1))
    relay.take_to_client(), relay.take_to_source()
    switch = frame(b"\xfeclient_ed25519\0" + bytes(32), 2)
    relay.from_source(switch)
    assert relay.take_to_client() == switch
    relay.from_client(frame(bytes(64), 3))
    assert relay.take_to_source() == frame(bytes(64), 3)
    relay.from_source(frame(ERR, 4))
    assert relay.take_to_client() == frame(ERR, 4)
    assert relay.is_closed


def test_source_that_refuses_to_greet() -> None:
    relay = Relay()
    refusal = frame(ErrPacket(errno=1040, message="Too many", sqlstate=None).encode(), 0)
    relay.from_source(refusal)
    assert relay.take_to_client() == refusal
    assert relay.is_closed


@pytest.mark.parametrize(
    "capability", [Capability.SSL, Capability.COMPRESS, Capability.ZSTD_COMPRESSION]
)
def test_client_that_takes_what_is_not_offered(capability: Capability) -> None:
    relay = Relay()
    relay.from_source(frame(GREETING.encode(), 0))
    relay.take_to_client()
    head = replace(LOGIN.head, capabilities=LOGIN.capabilities | capability)
    relay.from_client(frame(head.encode(), 1))
    (packet,) = PacketSplitter().feed(relay.take_to_client())
    assert packet.sequence == 2
    assert ErrPacket.decode(packet.payload).errno == 1043
    assert relay.is_closed
    assert relay.take_to_source() == b""


def test_ordinary_statements_pass_unread() -> None:
    relay = _relay()
    statement = _query("UPDATE binlogs SET a = 1")
    relay.from_client(statement)
    assert relay.take_to_source() == statement
    relay.from_source(frame(OK, 1))
    assert relay.take_to_client() == frame(OK, 1)
    assert relay.is_idle


def test_statement_on_binlogs_is_a_question() -> None:
    relay = _relay()
    packet = _query("SHOW BINLOGS")
    relay.from_client(packet)
    assert relay.question == StatementQuestion("SHOW BINLOGS", packet)
    assert relay.take_to_source() == b""
    relay.answer(RowsAnswer(["Name"], [["orders"], [None]]))
    expected = encode_result_set(
        [ColumnDefinition(name="Name")], [["orders"], [None]], capabilities=CAPABILITIES
    )
    assert relay.take_to_client() == frames(expected, 1)
    assert relay.is_idle


def test_question_that_is_not_ours_goes_to_the_source() -> None:
    relay = _relay()
    packet = _query("SHOW BINLOGS")
    relay.from_client(packet)
    relay.hand_on()
    assert relay.take_to_source() == packet
    assert not relay.is_idle
    relay.from_source(frame(ERR, 1))
    assert relay.take_to_client() == frame(ERR, 1)


def test_refusal_has_number_state_and_hint() -> None:
    relay = _relay()
    relay.from_client(_query("DROP BINLOG 'x'"))
    relay.refuse(StatementError("no such binlog", errno=1, sqlstate="HY000", hint="SHOW BINLOGS"))
    (payload,) = _payloads(relay.take_to_client())
    assert ErrPacket.decode(payload) == ErrPacket(
        errno=1, message="no such binlog (hint: SHOW BINLOGS)", sqlstate="HY000"
    )


def test_answers_carry_the_status_of_the_session() -> None:
    relay = _relay()
    relay.from_client(_query("BEGIN"))
    in_transaction = ServerStatus.AUTOCOMMIT | ServerStatus.IN_TRANSACTION
    relay.from_source(frame(OkPacket(status=in_transaction).encode(CAPABILITIES), 1))
    relay.take_to_client()
    relay.from_client(_query("SET @slave_uuid = 'x'"))
    relay.answer(OkAnswer())
    (payload,) = _payloads(relay.take_to_client())
    assert OkPacket.decode(payload).status == in_transaction


def test_answer_never_overtakes_a_reply() -> None:
    relay = _relay()
    relay.from_client(_query("SELECT 1") + _query("SHOW BINLOGS") + _query("SELECT 2"))
    assert relay.take_to_source() == _query("SELECT 1")
    assert relay.question is None
    reply = _rows(["1"])
    relay.from_source(reply[:-1])
    assert relay.question is None
    relay.from_source(reply[-1:])
    assert relay.question is not None
    assert relay.take_to_client() == reply
    assert relay.take_to_source() == b""
    relay.answer(OkAnswer())
    assert relay.take_to_source() == _query("SELECT 2")


def test_own_statement_is_not_shown_to_the_client() -> None:
    relay = _relay()
    relay.from_client(_query("CREATE BINLOG 'orders'"))
    relay.ask("SHOW GRANTS")
    assert relay.take_to_source() == _query("SHOW GRANTS")
    reply = _rows(["GRANT ALL"])
    relay.from_source(reply[:20])
    assert relay.take_reply() is None
    relay.from_source(reply[20:])
    assert relay.take_reply() == ResultSet(("c",), ((b"GRANT ALL",),), ServerStatus.AUTOCOMMIT)
    assert relay.take_reply() is None
    assert relay.take_to_client() == b""
    relay.answer(OkAnswer())
    assert len(_payloads(relay.take_to_client())) == 1


def test_local_file_content_is_no_command() -> None:
    relay = _relay()
    load = _query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t")
    relay.from_client(load)
    relay.from_source(frame(b"\xfbx", 1))
    content = frame(bytes((Command.QUERY,)) + b"SHOW BINLOGS", 2) + frame(b"", 3)
    relay.from_client(content)
    assert relay.question is None
    assert relay.take_to_source() == load + content
    relay.from_source(frame(OK, 4))
    assert relay.is_idle
    relay.from_client(_query("SHOW BINLOGS"))
    assert relay.question is not None


def test_statement_of_many_frames_passes() -> None:
    relay = _relay()
    statement = _query("INSERT INTO t VALUES ('" + "x" * (FRAME_PAYLOAD_MAX + 100) + "')")
    sent = b""
    for start in range(0, len(statement), 1 << 20):
        relay.from_client(statement[start : start + (1 << 20)])
        sent += relay.take_to_source()
    assert sent == statement
    relay.from_source(frame(OK, 2))
    assert relay.is_idle


def test_change_of_user_forgets_what_the_session_set() -> None:
    relay = _relay()
    relay.variables["slave_uuid"] = "x"
    change = frame(bytes((Command.CHANGE_USER,)) + b"other\0\0\0", 0)
    relay.from_client(change)
    relay.from_source(frame(b"\xfemysql_native_password\0" + bytes(21), 1))
    answer = frame(b"\x03SHOW BINLOGS", 2)
    relay.from_client(answer)
    assert relay.take_to_source() == change + answer
    relay.from_source(frame(OK, 3))
    assert (relay.user, relay.variables) == ("other", {})
    assert relay.is_idle


def test_replica_registers_and_dumps() -> None:
    relay = _relay()
    register = RegisterSlave(server_id=2, host="here", port=3306)
    relay.from_client(frame(register.encode(), 0))
    assert _question(relay) == register
    relay.answer(OkAnswer())
    assert _payloads(relay.take_to_client()) == [
        OkPacket(status=ServerStatus.AUTOCOMMIT).encode(CAPABILITIES)
    ]
    assert relay.replica == register
    relay.from_client(frame(DUMP.encode(), 0))
    assert _question(relay) == DUMP
    relay.end_dump(frame(EofPacket().encode(), 9))
    assert relay.take_to_client() == frame(EofPacket().encode(), 9)
    assert relay.take_to_source() == b""


@pytest.mark.parametrize("is_late", [False, True])
def test_stray_byte_behind_a_dump_is_no_command(*, is_late: bool) -> None:
    relay = _relay()
    relay.from_client(frame(DUMP.encode(), 0) + (b"" if is_late else b"\0"))
    if is_late:
        relay.from_client(b"\0")
    relay.end_dump(frame(EofPacket().encode(), 9))
    relay.from_client(_query("SELECT 1"))
    assert relay.take_to_source() == _query("SELECT 1")


def test_last_words_of_the_source_do_not_disturb_a_dump() -> None:
    relay = _relay()
    relay.from_client(frame(DUMP.encode(), 0))
    relay.from_source(frame(ErrPacket(errno=1927, message="killed").encode(), 0))
    assert relay.take_to_client() == b""


def test_dump_by_gtid_set_is_a_question() -> None:
    command = BinlogDumpGtid(flags=DumpFlag(2), server_id=7, done=bytes(8), file="orders.000001")
    relay = _relay()
    relay.from_client(frame(command.encode(), 0))
    assert relay.question == command
    assert not relay.take_to_source()
    relay.end_dump(frame(EofPacket().encode(), 1))
    assert relay.is_idle


def test_client_must_not_speak_first_nor_say_nothing() -> None:
    with pytest.raises(CodecError):
        Relay().from_client(b"GET / HTTP/1.1")
    with pytest.raises(CodecError):
        _relay().from_client(frame(b"", 0))


def _conversation(cuts: Sequence[int]) -> list[bytes]:
    """What both sides get of one conversation, its bytes cut at `cuts`."""
    relay = Relay()
    seen: list[bytes] = []

    def say(take: str, data: bytes) -> None:
        edges = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
        got = [b"", b""]
        for start, end in pairwise(edges):
            getattr(relay, take)(data[start:end])
            got[0] += relay.take_to_client()
            got[1] += relay.take_to_source()
        seen.extend(got)

    say("from_source", frame(GREETING.encode(), 0))
    say("from_client", frame(LOGIN.encode(), 1))
    say("from_source", frame(OK, 2))
    say("from_client", _query("SELECT 1") + frame(bytes((Command.STMT_CLOSE,)) + bytes(4), 0))
    say("from_source", _rows(["1"], ["x" * 300]))
    say("from_client", _query("SHOW BINLOGS") + _query("SELECT 2"))
    assert relay.question is not None
    relay.answer(RowsAnswer(["Name"], [["orders"]]))
    seen += [relay.take_to_client(), relay.take_to_source()]
    say("from_source", frame(ERR, 1))
    say("from_client", frame(DUMP.encode(), 0))
    assert relay.question == DUMP
    relay.end_dump(frame(EofPacket().encode(), 1))
    return [*seen, relay.take_to_client(), relay.take_to_source()]


@given(st.lists(st.integers(min_value=0), max_size=8))
def test_any_pieces_give_the_same_conversation(cuts: list[int]) -> None:
    assert _conversation(cuts) == _conversation([])


@pytest.mark.parametrize("fails", [False, True])
def test_rows_in_parts_are_numbered_on(*, fails: bool) -> None:
    relay = _relay()
    relay.from_client(_query("SHOW BINLOGS"))
    relay.take_to_source()
    sent = b""
    relay.begin_rows([ColumnDefinition(name="Name")])
    for part in range(3):
        relay.rows([(f"{part}-{number}",) for number in range(200)])
        sent += relay.take_to_client()
    assert relay.question is not None
    if fails:
        relay.refuse(StatementError("no more"))
    else:
        relay.end_rows()
    sent += relay.take_to_client()
    packets = PacketSplitter().feed(sent)
    assert [packet.sequence for packet in packets] == [n % 256 for n in range(1, 1 + len(packets))]
    whole = encode_result_set(
        [ColumnDefinition(name="Name")],
        [(f"{part}-{number}",) for part in range(3) for number in range(200)],
        capabilities=relay.capabilities,
    )
    assert [packet.payload for packet in packets][:-1] == whole[:-1]
    assert (packets[-1].payload[0] == 0xFF) is fails
    assert relay.question is None
    relay.from_client(_query("SHOW BINLOGS"))
    relay.take_to_client()
    relay.answer(OkAnswer())
    assert relay.take_to_client()[3] == 1


def test_prepared_statements_are_questions_where_they_concern_binlogs() -> None:
    relay = _relay()
    plain = frame(bytes((Command.STMT_PREPARE,)) + b"SELECT ?", 0)
    relay.from_client(plain)
    assert relay.take_to_source() == plain
    relay.from_source(frames([b"\0\1\0\0\0" + bytes(7)], 1))
    relay.take_to_client()
    asked = frame(bytes((Command.STMT_PREPARE,)) + b"SHOW MASTER STATUS", 0)
    relay.from_client(asked)
    assert _question(relay) == StatementQuestion("SHOW MASTER STATUS", asked, is_prepared=True)
    assert relay.take_to_source() == b""
    relay.hand_on()
    assert relay.take_to_source() == asked


def test_another_statement_is_handed_on_in_the_place_of_the_clients() -> None:
    relay = _relay()
    relay.from_client(_query("SELECT @@gtid_binlog_pos"))
    assert _question(relay) == StatementQuestion(
        "SELECT @@gtid_binlog_pos", _query("SELECT @@gtid_binlog_pos")
    )
    relay.hand_on("SELECT '0-1-7'")
    assert relay.take_to_source() == _query("SELECT '0-1-7'")
    reply = _rows(("0-1-7",))
    relay.from_source(reply)
    assert relay.take_to_client() == reply


def test_a_dump_is_a_question_however_many_gtids_it_names() -> None:
    relay = _relay()
    command = BinlogDumpGtid(flags=DumpFlag(0), server_id=2, done=bytes(1 << 22))
    data = frame(command.encode(), 0)
    for start in range(0, len(data), 1 << 20):
        relay.from_client(data[start : start + (1 << 20)])
    assert isinstance(_question(relay), BinlogDumpGtid)
    assert relay.take_to_source() == b""


def test_long_statements_pass_unread() -> None:
    relay = _relay()
    for command in (Command.QUERY, Command.STMT_PREPARE):
        data = frame(bytes((command,)) + b"SELECT 'master', '" + bytes(1 << 20) + b"'", 0)
        relay.from_client(data)
        assert relay.take_to_source() == data
