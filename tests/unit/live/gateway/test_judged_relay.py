"""A session whose statements are judged, without any connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import CodecError, StatementError
from binlane.live.gateway.answers import OkAnswer, RowsAnswer
from binlane.live.gateway.client_statements import QUERY, ClientCommand
from binlane.live.gateway.judge import (
    NOBODY,
    PASS,
    ClientStatement,
    Done,
    Give,
    Pass,
    Refuse,
    RunVerdict,
    StatementReply,
    TextReading,
    Unseen,
    Verdict,
)
from binlane.live.gateway.relay import Relay
from binlane.live.gateway.relay_questions import (
    Following,
    Judging,
    Learning,
    Question,
    Resetting,
    StatementQuestion,
)
from binlane.log.codec.packets.commands import encode_query
from binlane.log.codec.packets.execution import Execution
from binlane.log.codec.packets.flags import Capability, Command, ServerStatus
from binlane.log.codec.packets.framing import FRAME_PAYLOAD_MAX, PacketSplitter, frame, frames
from binlane.log.codec.packets.handshake import Greeting, HandshakeResponse, SslRequest
from binlane.log.codec.packets.replies import EofPacket, ErrPacket, OkPacket
from binlane.log.codec.packets.results import (
    ColumnDefinition,
    ResultSet,
)
from binlane.log.codec.packets.session_state import SessionState
from binlane.log.codec.types import ColumnType
from binlane.statements.sql.servers import Dialect
from tests.recording_judge import MARIADB, RecordingJudge
from tests.result_sets import encode_result_set

OFFERED = (
    Capability.PROTOCOL_41
    | Capability.LOCAL_FILES
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.MULTI_STATEMENTS
    | Capability.SESSION_TRACK
    | Capability.DEPRECATE_EOF
)
GREETING = Greeting(
    version="5.5.5-10.11.19-MariaDB",
    thread_id=77,
    auth_data=b"12345678abcdefghijkl\0",
    capabilities=OFFERED,
    character_set=45,
    status=ServerStatus.AUTOCOMMIT,
    plugin="mysql_native_password",
)
OLD = OFFERED & ~Capability.SESSION_TRACK & ~Capability.DEPRECATE_EOF
CLIENTS = (
    OLD,
    OLD | Capability.DEPRECATE_EOF,
    OLD | Capability.SESSION_TRACK,
    OFFERED,
)
STATE = SessionState(variables={"last_gtid": "0-1-7"}, database="d")


def _query(text: str) -> bytes:
    return frame(encode_query(text), 0)


def _payloads(data: bytes) -> list[bytes]:
    return [packet.payload for packet in PacketSplitter().feed(data)]


def _question(relay: Relay) -> Question | None:
    return relay.question


class Judged:
    """A session that has logged in, and has begun.

    Attributes:
        judge: Its judge.
        relay: Its state.
        client: What both sides have agreed on, as the client sees it.
        source: As the source sees it.
    """

    def __init__(self, client: Capability = OLD, **judge: Any) -> None:
        self.judge = RecordingJudge(**judge)
        self.client = client
        self.source = client | Capability.SESSION_TRACK
        relay = self.relay = Relay()
        relay.find_judge = lambda: self.judge
        relay.from_source(frame(GREETING.encode(), 0))
        login = HandshakeResponse(
            head=SslRequest(capabilities=client, payload_max=1 << 24, character_set=45),
            user="app",
            auth_response=b"\x55" * 20,
            plugin="mysql_native_password",
        )
        relay.from_client(frame(login.encode(), 1))
        (told,) = _payloads(relay.take_to_source())
        head = replace(login.head, capabilities=self.source)
        assert told == replace(login, head=head).encode()
        relay.from_source(frame(self.ok(), 2))
        relay.take_to_client()
        assert relay.question is None

    def ok(self, status: ServerStatus = ServerStatus.AUTOCOMMIT, **fields: Any) -> bytes:
        """An OK packet of the source, with session state."""
        return OkPacket(
            status=status | ServerStatus.SESSION_STATE_CHANGED,
            session_state=STATE.encode(),
            **fields,
        ).encode(self.source)

    def for_client(self, status: ServerStatus = ServerStatus.AUTOCOMMIT, **fields: Any) -> bytes:
        """The same as the client gets it."""
        return OkPacket(
            status=status | ServerStatus.SESSION_STATE_CHANGED,
            session_state=STATE.encode(),
            **fields,
        ).encode(self.client)

    def rows(self, status: ServerStatus = ServerStatus.AUTOCOMMIT, **fields: Any) -> list[bytes]:
        """A result set of the source."""
        payloads = encode_result_set(
            [ColumnDefinition(name="c")],
            [["x"], [None], ["y" * 300]],
            capabilities=self.source,
        )
        if Capability.DEPRECATE_EOF in self.source:
            end = self.ok(status, ends_rows=True, **fields)
        else:
            end = EofPacket(status=status, **fields).encode()
        return [*payloads[:-1], end]

    def client_rows(
        self, status: ServerStatus = ServerStatus.AUTOCOMMIT, **fields: Any
    ) -> list[bytes]:
        """The same as the client gets it."""
        end = self.rows(status, **fields)[-1]
        if Capability.DEPRECATE_EOF in self.source:
            end = self.for_client(status, ends_rows=True, **fields)
        return [*self.rows(status)[:-1], end]

    def says(self, data: bytes) -> bytes:
        """Have the client say something; what the source gets."""
        self.relay.from_client(data)
        return self.relay.take_to_source()

    def answers(self, *replies: bytes | list[bytes], first: int = 1) -> bytes:
        """Have the source answer, one reply a command; what the client gets."""
        for reply in replies:
            self.relay.from_source(frames([reply] if isinstance(reply, bytes) else reply, first))
        return self.relay.take_to_client()


ERR = ErrPacket(errno=1062, message="Duplicate entry", sqlstate="23000").encode()


@pytest.mark.parametrize("client", CLIENTS)
def test_ok_of_the_login_has_no_state_for_who_did_not_ask(client: Capability) -> None:
    judged = Judged(client)
    assert judged.relay.capabilities == client
    relay = Relay()
    relay.find_judge = RecordingJudge
    relay.from_source(frame(GREETING.encode(), 0))
    login = HandshakeResponse(
        head=SslRequest(capabilities=client, payload_max=1 << 24, character_set=45),
        user="app",
        auth_response=b"",
        plugin="mysql_native_password",
    )
    relay.from_client(frame(login.encode(), 1))
    relay.take_to_client()
    relay.from_source(frame(b"\xfeother\0", 2))
    relay.from_client(frame(bytes(20), 3))
    relay.from_source(frame(judged.ok(), 4))
    assert relay.take_to_client() == frame(b"\xfeother\0", 2) + frame(judged.for_client(), 4)


def test_source_without_a_session_tracker_is_not_asked_for_it() -> None:
    relay = Relay()
    relay.find_judge = RecordingJudge
    greeting = replace(GREETING, capabilities=OLD)
    relay.from_source(frame(greeting.encode(), 0))
    login = HandshakeResponse(
        head=SslRequest(capabilities=OLD, payload_max=1 << 24, character_set=45),
        user="app",
        auth_response=b"",
        plugin="mysql_native_password",
    )
    relay.from_client(frame(login.encode(), 1))
    assert relay.take_to_source() == frame(login.encode(), 1)
    relay.from_source(frame(OkPacket().encode(OLD), 2))
    assert relay.question is None
    assert relay.judge is NOBODY


def test_commands_wait_for_the_login() -> None:
    judged = Judged()
    relay = Relay()
    relay.find_judge = lambda: judged.judge
    relay.from_source(frame(GREETING.encode(), 0))
    login = HandshakeResponse(
        head=SslRequest(capabilities=OLD, payload_max=1 << 24, character_set=45),
        user="app",
        auth_response=b"",
        plugin="mysql_native_password",
    )
    # A client that does not wait to be let in.
    relay.from_client(frame(login.encode(), 1) + _query("DO 1") + _query("DO 2")[:3])
    assert len(_payloads(relay.take_to_source())) == 1
    relay.from_source(frame(b"\xfeother\0", 2))
    relay.from_client(_query("DO 2")[3:] + b"")
    assert relay.take_to_source() == b""
    assert judged.judge.statements == []
    relay.from_source(frame(judged.ok(), 4))
    assert relay.take_to_source() == _query("DO 1")
    relay.from_source(frame(judged.ok(), 1))
    assert relay.take_to_source() == _query("DO 2")


@pytest.mark.parametrize("client", CLIENTS)
def test_reply_is_read_and_passed_on(client: Capability) -> None:
    judged = Judged(client)
    assert judged.says(_query("  INSERT INTO t VALUES (1) ; ")) == _query(
        "  INSERT INTO t VALUES (1) ; "
    )
    fields: dict[str, Any] = {"affected_rows": 3, "insert_id": 70_000, "warnings": 2}
    fields["info"] = b"Records: 3  Duplicates: 0  Warnings: 2"
    assert judged.answers(judged.ok(**fields)) == frame(judged.for_client(**fields), 1)
    assert judged.judge.texts == ["INSERT INTO t VALUES (1)"]
    assert judged.judge.replies == [
        (
            StatementReply(
                affected_rows=3,
                insert_id=70_000,
                warnings=2,
                info="Records: 3  Duplicates: 0  Warnings: 2",
                status=ServerStatus.AUTOCOMMIT | ServerStatus.SESSION_STATE_CHANGED,
                tracked={"last_gtid": "0-1-7"},
                database="d",
            ),
        )
    ]
    assert judged.relay.is_idle


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("verdict", [Pass(), RunVerdict()])
def test_rows_pass(client: Capability, verdict: Verdict) -> None:
    judged = Judged(client, verdict=lambda _: verdict)
    judged.says(_query("SELECT c FROM t"))
    assert judged.answers(judged.rows()) == frames(judged.client_rows(), 1)
    replies = judged.judge.replies
    assert len(replies) == isinstance(verdict, RunVerdict)
    assert all(reply.is_result_set for packet in replies for reply in packet)
    assert judged.relay.is_idle


@pytest.mark.parametrize("client", CLIENTS)
def test_warnings_are_added_to_the_last_count(client: Capability) -> None:
    judged = Judged(client, after=lambda _: Done(warnings=2))
    more = ServerStatus.AUTOCOMMIT | ServerStatus.MORE_RESULTS
    judged.says(_query("CALL p()"))
    got = judged.answers([*judged.rows(more, warnings=1), judged.ok(warnings=1)])
    # The count of another number of rows stands in the middle.
    assert got == frames([*judged.client_rows(more, warnings=1), judged.for_client(warnings=3)], 1)
    judged.says(_query("SELECT c FROM t"))
    assert judged.answers(judged.rows()) == frames(judged.client_rows(warnings=2), 1)
    judged.says(_query("INSERT"))
    info = b"Records: 1  Duplicates: 0  Warnings: %d"
    assert judged.answers(judged.ok(info=info % 0)) == frame(
        judged.for_client(info=info % 2, warnings=2), 1
    )
    judged.says(_query("LOAD"))
    assert judged.answers(ERR) == frame(ERR, 1)
    assert [len(replies) for replies in judged.judge.replies] == [2, 1, 1, 1]
    assert judged.judge.replies[3][0].errno == 1062


def test_refused_statement_does_not_reach_the_source() -> None:
    error = StatementError("unsafe", errno=11314, sqlstate="HY000")
    judged = Judged(verdict=lambda _: Refuse(error))
    assert judged.says(_query("UPDATE t SET a = 1")) == b""
    expected = ErrPacket(errno=11314, message="unsafe", sqlstate="HY000").encode()
    assert judged.relay.take_to_client() == frame(expected, 1)
    long_text = "INSERT INTO t VALUES ('" + "x" * FRAME_PAYLOAD_MAX + "')"
    assert judged.says(_query(long_text)) == b""
    assert judged.relay.take_to_client() == frame(expected, 2)
    assert judged.judge.statements[1] == (ClientStatement("", is_complete=False),)
    assert judged.relay.is_idle


@pytest.mark.parametrize("is_prepared", [False, True])
def test_answers_of_binlanes_own(*, is_prepared: bool) -> None:
    columns = ("Level", ColumnDefinition.integer("Code"), "Message")
    answer = RowsAnswer(columns, [("Note", 1592, "Unsafe"), (None, None, None)])
    judged = Judged(verdict=lambda _: Give(answer))
    command = Execution(statement_id=1).encode() if is_prepared else encode_query("SHOW WARNINGS")
    assert judged.says(frame(command, 0)) == b""
    expected = encode_result_set(answer.heads, answer.rows, capabilities=OLD)
    if is_prepared:
        expected[-3:-1] = [
            b"\0\0\x04Note" + (1592).to_bytes(8, "little") + b"\x06Unsafe",
            b"\0\x1c",
        ]
    assert judged.relay.take_to_client() == frames(expected, 1)
    judged.judge.verdict = lambda _: Give(OkAnswer(warnings=1))
    judged.says(_query("SET sql_log_bin = 0"))
    (payload,) = _payloads(judged.relay.take_to_client())
    assert OkPacket.decode(payload).warnings == 1
    # Questions after that are answered in text again.
    judged.says(_query("SHOW BINLOGS"))
    judged.relay.answer(RowsAnswer(["Name"], [["orders"]]))
    assert b"\x06orders" in judged.relay.take_to_client()


def test_statements_of_a_packet_are_judged_together() -> None:
    judged = Judged()
    text = "BEGIN; INSERT INTO t VALUES (';') ; /* ; */ SELECT 1;"
    more = ServerStatus.AUTOCOMMIT | ServerStatus.MORE_RESULTS
    assert judged.says(_query(text)) == _query(text)
    assert judged.judge.statements == [
        (
            ClientStatement("BEGIN"),
            ClientStatement("INSERT INTO t VALUES (';') "),
            ClientStatement("/* ; */ SELECT 1"),
        )
    ]
    judged.answers([judged.ok(more), judged.ok(more), *judged.rows()])
    (replies,) = judged.judge.replies
    assert [reply.is_result_set for reply in replies] == [False, False, True]
    # The client may have it otherwise from then on.
    for option, count in ((1, 1), (0, 3)):
        judged.says(frame(bytes((Command.SET_OPTION,)) + option.to_bytes(2, "little"), 0))
        judged.answers(EofPacket().encode())
        judged.says(_query(text))
        assert len(judged.judge.statements[-1]) == count
        judged.answers(judged.ok())


def test_end_of_several_statements_in_an_error_is_no_promise_of_more() -> None:
    judged = Judged()
    judged.says(_query("DO 1; DO x"))
    judged.answers([judged.ok(ServerStatus.AUTOCOMMIT | ServerStatus.MORE_RESULTS), ERR])
    assert [reply.errno for reply in judged.judge.replies[0]] == [0, 1062]
    judged.judge.verdict = lambda _: Give(OkAnswer())
    judged.says(_query("DO 2"))
    (payload,) = _payloads(judged.relay.take_to_client())
    assert OkPacket.decode(payload).status == ServerStatus.AUTOCOMMIT


def test_own_statements_stand_before_a_command() -> None:
    run = RunVerdict(before=("SET @a = 1", "CALL before(3)"))
    judged = Judged(verdict=lambda _: run)
    assert judged.says(_query("INSERT") + _query("DO 9")) == b"".join(map(_query, run.before))
    assert judged.answers(judged.ok()) == b""
    assert judged.relay.take_to_source() == b""
    assert judged.answers([*judged.rows(ServerStatus.MORE_RESULTS), judged.ok()]) == b""
    assert judged.relay.take_to_source() == _query("INSERT")
    judged.judge.verdict = lambda _: RunVerdict()
    assert judged.answers(judged.ok(affected_rows=1)) == frame(
        judged.for_client(affected_rows=1), 1
    )
    assert [len(replies) for replies in judged.judge.replies] == [1]
    assert judged.relay.take_to_source() == _query("DO 9")


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_nothing_runs_behind_what_failed_before_it(failing: int) -> None:
    judged = Judged(verdict=lambda _: RunVerdict(before=("DO 1", "DO 2", "DO 3")))
    judged.says(_query("INSERT") + _query("DO 9"))
    replies = [ERR if number == failing else judged.ok() for number in range(3)]
    judged.judge.verdict = lambda _: RunVerdict()
    assert judged.answers(*replies) == frame(ERR, 1)
    assert judged.judge.replies == [()]
    assert judged.relay.take_to_source() == _query("DO 9")


def test_another_text_runs_in_the_place_of_a_command() -> None:
    run = RunVerdict(before=("DO 1",), text="SET a = 2")
    judged = Judged(verdict=lambda _: run)
    assert judged.says(_query("SET a = 1")) == _query("DO 1")
    judged.answers(judged.ok())
    assert judged.relay.take_to_source() == _query(run.text or "")
    assert judged.answers(judged.ok()) == frame(judged.for_client(), 1)
    judged.judge.verdict = lambda _: Pass()
    _prepare(judged, "SET a = ?", 5, 1)
    judged.judge.verdict = lambda _: replace(run, before=())
    execution = Execution(statement_id=5, types=(ColumnType.VAR_STRING,), values=(b"row",))
    assert judged.says(frame(execution.encode(), 0)) == _query(run.text or "")
    assert judged.answers(judged.ok()) == frame(judged.for_client(), 1)
    assert judged.judge.texts == ["SET a = 1", "SET a = 'row'"]


def test_what_follows_comes_before_the_next_command() -> None:
    async def then() -> None:
        """Nothing: nobody runs it here."""

    judged = Judged(after=lambda _: Done(then=then))
    judged.says(_query("DO 1") + frame(bytes((Command.PING,)), 0))
    assert judged.answers(judged.ok()) == frame(judged.for_client(), 1)
    assert judged.relay.question == Following(then)
    assert judged.relay.take_to_source() == b""
    judged.relay.ask("SELECT @@last_gtid")
    assert judged.relay.take_to_source() == _query("SELECT @@last_gtid")
    assert judged.answers(judged.rows()) == b""
    assert isinstance(judged.relay.take_reply(), ResultSet)
    judged.relay.go_on()
    assert judged.relay.take_to_source() == frame(bytes((Command.PING,)), 0)
    assert judged.answers(judged.ok()) == frame(judged.for_client(), 1)


def test_judgement_that_takes_its_time_is_a_question() -> None:
    judged = Judged(verdict=lambda _: None)
    assert judged.says(_query("INSERT") + _query("DO 2")) == b""
    question = _question(judged.relay)
    assert isinstance(question, Judging)
    assert question.statements == (ClientStatement("INSERT"),)
    judged.relay.ask("SELECT 1")
    judged.relay.take_to_source()
    assert judged.answers(judged.rows()) == b""
    assert judged.relay.take_reply() is not None
    judged.relay.decide(RunVerdict())
    assert judged.relay.take_to_source() == _query("INSERT")
    judged.answers(judged.ok())
    assert isinstance(_question(judged.relay), Judging)
    judged.relay.refuse(StatementError("no"))
    assert judged.relay.is_idle


def test_who_knows_the_binlogs_is_asked_first() -> None:
    judged = Judged()
    judged.says(_query("SHOW MASTER STATUS"))
    assert isinstance(_question(judged.relay), StatementQuestion)
    assert judged.judge.statements == []
    judged.relay.hand_on()
    assert judged.judge.texts == ["SHOW MASTER STATUS"]
    assert judged.relay.take_to_source() == _query("SHOW MASTER STATUS")
    judged.answers(judged.rows())
    assert len(judged.judge.replies) == 1


def test_commands_wait_for_replies_before_they_are_judged() -> None:
    judged = Judged(verdict=lambda _: Pass())
    commands = _query("SELECT 1") + _query("SELECT 2") + frame(bytes((Command.PING,)), 0)
    assert judged.says(commands) == _query("SELECT 1")
    assert judged.relay.is_waiting
    rows = frames(judged.rows(), 1)
    judged.relay.from_source(rows[:-1])
    assert judged.relay.take_to_source() == b""
    judged.relay.from_source(rows[-1:])
    assert judged.relay.take_to_source() == _query("SELECT 2") + frame(bytes((Command.PING,)), 0)
    assert judged.judge.texts == ["SELECT 1", "SELECT 2"]


def test_content_of_a_local_file_is_told() -> None:
    judged = Judged()
    judged.says(_query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t"))
    judged.answers(b"\xfbx")
    content = frame(b"1\t2\n" * 1000, 2) + frame(b"", 4 - 1)
    for start in range(0, len(content), 700):
        judged.says(content[start : start + 700])
    data = b"".join(part or b"<end>" for part in judged.judge.content)
    assert data == b"1\t2\n" * 1000 + b"<end>"
    judged.answers(judged.ok(affected_rows=1000), first=4)
    assert judged.judge.replies[0][0].affected_rows == 1000
    judged.judge.verdict = lambda _: Pass()
    judged.says(_query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t"))
    judged.answers(b"\xfbx")
    judged.says(content)
    assert b"".join(part or b"<end>" for part in judged.judge.content) == data


def test_database_that_was_chosen() -> None:
    judged = Judged()
    for reply in (judged.ok(), ERR):
        judged.says(frame(bytes((Command.INIT_DB,)) + b"shop", 0))
        judged.answers(reply)
    assert judged.judge.databases == ["shop"]


@pytest.mark.parametrize("command", [Command.RESET_CONNECTION, Command.CHANGE_USER])
def test_session_that_is_reset_begins_again(command: Command) -> None:
    judged = Judged()
    judged.says(frame(bytes((Command.STMT_PREPARE,)) + b"DO ?", 0))
    judged.answers([b"\0\x01\0\0\0\0\0\x01\0\0\0\0", b"", b""])
    payload = bytes((command,)) + (b"other\0\0\0" if command == Command.CHANGE_USER else b"")
    assert judged.says(frame(payload, 0)) == frame(payload, 0)
    first = 1
    if command == Command.CHANGE_USER:
        assert judged.answers(b"\xfeplugin\0") == frame(b"\xfeplugin\0", 1)
        assert judged.says(frame(b"secret", 2)) == frame(b"secret", 2)
        first = 3
    assert judged.says(_query("DO 1")) == b""
    assert judged.answers(judged.ok(), first=first) == frame(judged.for_client(), first)
    assert judged.relay.question == Resetting()
    assert judged.relay.user == ("other" if command == Command.CHANGE_USER else "app")
    judged.relay.go_on()
    assert judged.relay.take_to_source() == _query("DO 1")
    judged.answers(judged.ok())
    judged.says(frame(Execution(statement_id=1).encode(), 0))
    assert judged.judge.statements[-1] == ()  # the source has none of that number


def test_user_that_is_refused_changes_nothing() -> None:
    judged = Judged()
    judged.says(frame(bytes((Command.CHANGE_USER,)) + b"other\0\0\0", 0))
    judged.answers(ERR)
    assert judged.relay.user == "app"
    assert judged.relay.question == Resetting()


def _prepare(judged: Judged, text: str, statement_id: int, parameters: int) -> None:
    judged.says(frame(bytes((Command.STMT_PREPARE,)) + text.encode(), 0))
    head = b"\0" + statement_id.to_bytes(4, "little") + b"\0\0" + bytes((parameters, 0, 0, 0, 0))
    ends = [] if Capability.DEPRECATE_EOF in judged.source else [EofPacket().encode()]
    definitions = [ColumnDefinition(name="?").encode()] * parameters
    payloads = [head, *definitions, *(ends if parameters else [])]
    assert judged.answers(payloads) == frames(payloads, 1)


@pytest.mark.parametrize("client", CLIENTS)
def test_prepared_statement_is_judged_with_its_values(client: Capability) -> None:
    judged = Judged(client)
    _prepare(judged, "INSERT INTO t VALUES (?, '?', ?)", 5, 2)
    types = (ColumnType.LONG, ColumnType.VAR_STRING)
    first = Execution(statement_id=5, types=types, values=(-7, b"it's"))
    again = Execution(statement_id=5, types=types, values=(8, None), sends_types=False)
    for execution in (first, again):
        packet = frame(execution.encode(), 0)
        assert judged.says(packet) == packet
        judged.answers(judged.ok(affected_rows=1))
    # By MariaDB's name for the last one, and with a value sent before.
    data = bytes((Command.STMT_SEND_LONG_DATA,)) + b"\x05\0\0\0\x01\0long"
    packet = frame(replace(again, statement_id=0xFFFFFFFF).encode(), 0)
    assert judged.says(frame(data, 0) + packet) == frame(data, 0) + packet
    judged.answers(judged.ok())
    judged.says(frame(data, 0) + frame(bytes((Command.STMT_RESET,)) + b"\x05\0\0\0", 0))
    judged.answers(judged.ok())
    judged.says(packet)
    judged.answers(judged.ok())
    bulk = bytes((Command.STMT_BULK_EXECUTE,)) + b"\x05\0\0\0\x80\0"
    judged.says(frame(bulk, 0))
    judged.answers(judged.ok())
    judged.says(frame(bytes((Command.STMT_CLOSE,)) + b"\x05\0\0\0", 0))
    judged.says(packet)
    assert judged.judge.statements.pop() == ()  # it is closed
    assert [packet[0] for packet in judged.judge.statements] == [
        ClientStatement(r"INSERT INTO t VALUES (-7, '?', 'it\'s')", is_prepared=True),
        ClientStatement("INSERT INTO t VALUES (8, '?', NULL)", is_prepared=True),
        ClientStatement("INSERT INTO t VALUES (8, '?', 'long')", is_prepared=True),
        ClientStatement("INSERT INTO t VALUES (8, '?', NULL)", is_prepared=True),
        ClientStatement(
            "INSERT INTO t VALUES (?, '?', ?)",
            is_prepared=True,
            is_complete=False,
            is_bulk=True,
        ),
    ]


def test_statement_that_could_not_be_prepared_is_not_the_last_one() -> None:
    judged = Judged()
    _prepare(judged, "DO 1", 1, 0)
    judged.says(frame(bytes((Command.STMT_PREPARE,)) + b"SELEC", 0))
    judged.answers(ERR)
    judged.says(frame(Execution(statement_id=0xFFFFFFFF).encode(), 0))
    judged.answers(ERR)
    judged.says(frame(Execution(statement_id=1).encode(), 0))
    assert judged.judge.statements[0] == ()
    assert judged.judge.texts == ["DO 1"]


def test_statement_that_is_too_long_to_be_read_is_there() -> None:
    judged = Judged()
    text = bytes((Command.STMT_PREPARE,)) + b"DO 1".ljust(FRAME_PAYLOAD_MAX)
    assert judged.says(frame(text, 0)) == frame(text, 0)
    judged.answers(b"\0\7\0\0\0" + bytes(7))
    judged.says(frame(Execution(statement_id=7).encode(), 0))
    assert judged.judge.statements == [(ClientStatement("", is_prepared=True, is_complete=False),)]


def test_how_the_source_reads_is_learnt_where_that_matters() -> None:
    judged = Judged(reading=None)
    judged.says(_query("DO 1"))
    judged.answers(judged.ok())
    _prepare(judged, "DO ?", 1, 1)
    assert judged.says(_query("DO 1; DO 2")) == b""
    assert isinstance(_question(judged.relay), Learning)
    judged.judge.reading = MARIADB
    judged.relay.learned()
    assert judged.relay.take_to_source() == _query("DO 1; DO 2")
    assert judged.judge.texts == ["DO 1", "DO 1", "DO 2"]
    judged.answers(judged.ok())
    judged.judge.reading = None
    prepare = frame(bytes((Command.STMT_PREPARE,)) + b'DO "?", ?', 0)
    values = Execution(statement_id=2, types=(ColumnType.TINY,), values=(4,))
    assert judged.says(prepare) == b""
    # In another mode the first one stood in a string too; here it is a name.
    judged.judge.reading = TextReading(Dialect(flavor="mariadb", ansi_quotes=True), "utf8mb4")
    judged.relay.learned()
    assert judged.relay.take_to_source() == prepare
    judged.answers([b"\0\x02\0\0\0\0\0\x01\0\0\0\0", b"", b""])
    judged.says(frame(values.encode(), 0))
    assert judged.judge.texts[-1] == 'DO "?", 4'


def test_how_the_source_reads_is_not_always_known() -> None:
    judged = Judged(reading=None)
    _prepare(judged, "DO 1", 1, 0)
    judged.says(frame(Execution(statement_id=1).encode(), 0))
    judged.answers(judged.ok())
    _prepare(judged, "DO ?", 2, 1)
    values = Execution(statement_id=2, types=(ColumnType.TINY,), values=(4,))
    for packet in (frame(values.encode(), 0), _query("DO 3; DO 4;")):
        judged.says(packet)
        judged.relay.learned()
        assert judged.relay.take_to_source() == packet
        judged.answers(judged.ok())
    assert judged.judge.statements == [
        (ClientStatement("DO 1", is_prepared=True),),
        # First of all, as nobody knows how its values are written: does it pass whatever they are?
        (ClientStatement("DO ?", is_prepared=True, is_complete=False),),
        (ClientStatement("DO ?", is_prepared=True, is_complete=False),),
        (ClientStatement("DO 3; DO 4", is_complete=False),),
    ]


def test_an_execution_that_passes_unseen_needs_no_reading() -> None:
    judged = Judged(reading=None)
    _prepare(judged, "DO ?", 2, 1)
    values = frame(Execution(statement_id=2, types=(ColumnType.TINY,), values=(4,)).encode(), 0)
    many = _query("DO 3; DO 4")
    assert judged.says(values) == b""
    judged.judge.unseen_now = Unseen(is_plain=True)
    judged.judge.verdict = lambda _: PASS
    judged.relay.learned()
    assert judged.relay.take_to_source() == values
    judged.answers(judged.ok())
    assert judged.says(many) == b""
    judged.relay.learned()
    # Of several statements the reading has to be known: it is asked for again, and once.
    assert judged.relay.take_to_source() == b""
    assert _question(judged.relay) == Learning(ClientCommand(QUERY, many[4:], many), is_again=True)
    judged.relay.learned()
    assert judged.relay.take_to_source() == many


def test_cursor_has_no_rows_before_they_are_fetched() -> None:
    judged = Judged()
    _prepare(judged, "SELECT 1", 1, 0)
    judged.says(frame(Execution(statement_id=1, flags=1).encode(), 0))
    status = ServerStatus.AUTOCOMMIT | ServerStatus.CURSOR_EXISTS
    column = ColumnDefinition(name="1").encode()
    payloads = [b"\x01", column, EofPacket(status=status).encode()]
    assert judged.answers(payloads) == frames(payloads, 1)
    assert judged.judge.replies[0][0].is_result_set
    fetch = frame(bytes((Command.STMT_FETCH,)) + b"\x01\0\0\0\x05\0\0\0", 0)
    assert judged.says(fetch) == fetch
    payloads = [b"\0\0\x01a", EofPacket(status=ServerStatus.LAST_ROW_SENT).encode()]
    assert judged.answers(payloads) == frames(payloads, 1)
    assert judged.relay.is_idle


def _conversation(client: Capability, cuts: Sequence[int]) -> tuple[list[bytes], RecordingJudge]:
    """What both sides get of one conversation, its bytes cut at `cuts`, and who has judged it."""
    run = RunVerdict(before=("SET @a = 1",))
    judged = Judged(client, after=lambda _: Done(warnings=1))
    relay = judged.relay
    seen: list[bytes] = []

    def say(take: str, data: bytes) -> None:
        edges = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
        got = [b"", b""]
        for start, end in pairwise(edges):
            getattr(relay, take)(data[start:end])
            got[0] += relay.take_to_client()
            got[1] += relay.take_to_source()
        seen.extend(got)

    more = ServerStatus.AUTOCOMMIT | ServerStatus.MORE_RESULTS
    say("from_client", _query("SELECT 1; DO 2") + _query("x" * 400))
    say("from_source", frames([*judged.rows(more), judged.ok()], 1))
    say("from_source", frame(ERR, 1))
    judged.judge.verdict = lambda _: run
    say("from_client", _query("INSERT") + frame(bytes((Command.PING,)), 0))
    say("from_source", frame(judged.ok(), 1))
    say("from_source", frame(judged.ok(), 1))
    say("from_source", frame(judged.ok(), 1))
    judged.judge.verdict = lambda _: Pass()
    say("from_client", _query("SELECT 3"))
    say("from_source", frames(judged.rows(), 1))
    assert relay.is_idle
    return seen, judged.judge


@pytest.mark.parametrize("client", CLIENTS)
@given(st.lists(st.integers(min_value=0), max_size=8))
def test_any_pieces_give_the_same_conversation(client: Capability, cuts: list[int]) -> None:
    seen, judge = _conversation(client, cuts)
    expected, other = _conversation(client, [])
    assert seen == expected
    assert judge.replies == other.replies


def test_a_command_with_one_reply_has_no_more_results() -> None:
    session = Judged()
    session.relay.from_client(frame(bytes((Command.INIT_DB,)) + b"shop", 0))
    session.relay.from_source(frame(session.ok(ServerStatus.MORE_RESULTS), 1))
    assert session.relay.is_idle
    assert session.judge.databases == ["shop"]
    session.relay.from_source(frame(session.ok(), 2))  # nobody asked
    assert session.judge.databases == ["shop"]


def test_a_command_of_several_frames_is_numbered_through() -> None:
    session = Judged()
    payload = b"\x03SELECT '" + b"x" * FRAME_PAYLOAD_MAX + b"'"
    data = bytearray(frame(payload, 0))
    data[FRAME_PAYLOAD_MAX + 4 + 3] = 2
    with pytest.raises(CodecError, match="packet 2, and 1 is next"):
        session.relay.from_client(bytes(data))
    assert session.relay.take_to_source() == bytes(data[: FRAME_PAYLOAD_MAX + 4])


@pytest.mark.parametrize("step", [1 << 18, 1 << 25])
def test_a_command_of_several_frames_passes_as_it_comes(step: int) -> None:
    session = Judged(verdict=lambda _: RunVerdict(before=("SET @a = 1",)))
    payload = b"\x03SELECT '" + b"x" * FRAME_PAYLOAD_MAX + b"'"
    data = frame(payload, 0)
    session.relay.from_client(data[:step])
    assert session.judge.statements == [(ClientStatement("", is_complete=False),)]
    assert session.relay.take_to_source() == frame(encode_query("SET @a = 1"), 0)
    session.relay.from_source(frame(session.ok(), 1))
    sent = session.relay.take_to_source()
    assert sent == data[:step]
    most = 0
    for start in range(step, len(data), step):
        session.relay.from_client(data[start : start + step])
        most = max(most, session.relay.waiting_bytes)
        sent += session.relay.take_to_source()
    assert sent == data
    assert most <= 4
    session.relay.from_client(_query("SELECT 2"))
    assert session.relay.take_to_source() == b""
    session.relay.from_source(frame(session.ok(), 2))
    assert len(session.judge.replies) == 1
    assert session.judge.texts == ["", "SELECT 2"]


def test_a_value_that_is_too_long_is_not_kept() -> None:
    session = Judged()
    session.relay.from_client(frame(b"\x16INSERT INTO t VALUES (?)", 0))
    session.relay.from_source(frame(b"\0\1\0\0\0\0\0\1\0\0\0\0", 1))
    session.relay.from_source(frame(b"\x03def", 2) + frame(EofPacket().encode(), 3))
    chunk = frame(b"\x18\1\0\0\0\0\0" + b"x" * (1 << 20), 0)
    for _ in range(20):
        session.relay.from_client(chunk)
        assert session.relay.take_to_source()[-len(chunk) :] == chunk
    execution = Execution(statement_id=1, types=(ColumnType.BLOB,), values=(None,)).encode()
    session.relay.from_client(frame(execution, 0))
    (statement,) = session.judge.statements[-1]
    assert (statement.text, statement.is_complete) == ("INSERT INTO t VALUES (?)", False)
