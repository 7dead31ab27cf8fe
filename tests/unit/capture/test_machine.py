from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha1
from itertools import pairwise

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from binlane.capture.machine import DumpRequest, Ended, Output, SourceMachine, Streaming
from binlane.capture.settings import Start, StartAt
from binlane.client.account import seal
from binlane.client.dialogue import Account
from binlane.client.packet_flow import Send, StartTls
from binlane.client.settings import SslMode
from binlane.codec.packets.commands import BinlogDump, RegisterSlave, decode_query
from binlane.codec.packets.flags import NO_CAPABILITIES, Capability, Command, DumpFlag
from binlane.codec.packets.framing import PacketSplitter, frames
from binlane.codec.packets.handshake import HandshakeResponse, SslRequest
from binlane.codec.packets.replies import ErrPacket
from binlane.errors import ConfigError, PeerError
from binlane.grouping.event_group import EventGroup
from binlane.positions import FilePosition, GtidPosition
from tests.dumps import OK, SCRAMBLE, VARIABLES, dump_packets, greeting, preparation, rows

PEER = "mariadb://binlane@127.0.0.1:3306"
DONE = GtidPosition.parse("0-1-4")
SERVER_ID = 77


def never_seal(key: bytes, data: bytes) -> bytes:
    raise AssertionError("no password may be sealed here")


def machine_for(
    *,
    start: Start = DONE,
    password: str = "secret",
    ssl_mode: SslMode = SslMode.PREFERRED,
    is_local: bool = False,
    seal_with: Callable[[bytes, bytes], bytes] = never_seal,
) -> SourceMachine:
    account = Account(
        peer=PEER,
        user="binlane",
        password=password,
        ssl_mode=ssl_mode,
        is_local=is_local,
        seal=seal_with,
    )
    return SourceMachine(
        DumpRequest(account=account, start=start, server_id=SERVER_ID, heartbeat_period_s=2.5)
    )


@dataclass
class Conversation:
    """A machine and a source that says what a test wants, with sequence numbers as they must be."""

    machine: SourceMachine
    outputs: list[Output] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    sequence: int = 0

    def say(self, *payloads: bytes) -> list[Output]:
        """Send packets to the machine; what it sends back is in `sent`."""
        outputs = list(self.machine.receive(frames(payloads, self.sequence)))
        self.sequence = (self.sequence + len(payloads)) % 256
        for output in outputs:
            if isinstance(output, Send):
                for packet in PacketSplitter().feed(output.data):
                    self.sent.append(packet.payload)
                    self.sequence = packet.next_sequence
        self.outputs += outputs
        return outputs

    def log_in(self) -> HandshakeResponse:
        self.say(greeting())
        self.say(OK)
        return HandshakeResponse.decode(self.sent[0])

    def prepare(self, answers: Iterable[list[bytes]]) -> None:
        for answer in answers:
            self.say(*answer)

    def queries(self) -> list[str]:
        return [
            decode_query(payload, NO_CAPABILITIES).decode()
            for payload in self.sent[1:]
            if payload[0] == Command.QUERY
        ]


def streaming(machine: SourceMachine) -> Conversation:
    conversation = Conversation(machine)
    conversation.log_in()
    conversation.prepare(preparation())
    return conversation


def test_a_replica_logs_in_and_asks_for_the_log() -> None:
    conversation = Conversation(machine_for())
    login = conversation.log_in()
    assert (login.user, login.plugin) == ("binlane", "mysql_native_password")
    assert Capability.DEPRECATE_EOF not in login.capabilities
    conversation.prepare(preparation())
    variables, settings, checksum = conversation.queries()
    assert variables.startswith("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', ")
    assert settings == (
        "SET @master_heartbeat_period = 2500000000, "
        "@master_binlog_checksum = @@global.binlog_checksum, @mariadb_slave_capability = 4, "
        "@slave_connect_state = '0-1-4', @slave_gtid_strict_mode = 0, "
        "@slave_gtid_ignore_duplicates = 0"
    )
    assert checksum == "SELECT @master_binlog_checksum"
    register, dump = conversation.sent[-2:]
    assert RegisterSlave.decode(register).server_id == SERVER_ID
    assert BinlogDump.decode(dump) == BinlogDump(
        position=4, flags=DumpFlag.SEND_ANNOTATE_ROWS, server_id=SERVER_ID, file=""
    )
    (state,) = (output for output in conversation.outputs if isinstance(output, Streaming))
    assert state.facts.server_id == 1


def test_the_answer_to_the_challenge_is_one_that_the_server_can_check() -> None:
    login = Conversation(machine_for()).log_in()
    stored = sha1(sha1(b"secret").digest()).digest()
    mask = sha1(SCRAMBLE + stored).digest()
    stage_1 = bytes(a ^ b for a, b in zip(login.auth_response, mask, strict=True))
    assert sha1(stage_1).digest() == stored


@given(st.lists(st.integers(0, 5000), max_size=12))
def test_any_chunking_of_a_dump_gives_the_same_groups(cuts: list[int]) -> None:
    packets = [data for data in dump_packets("gtid_connect") if data[0] == 0]
    data = frames(packets, 1)
    whole = [
        output
        for output in streaming(machine_for()).machine.receive(data)
        if isinstance(output, EventGroup)
    ]
    assert [str(group.gtid) for group in whole if group.gtid] == ["0-1-5", "0-1-6", "0-1-7"]
    machine = streaming(machine_for()).machine
    places = [0, *sorted(cut % len(data) for cut in cuts), len(data)]
    in_pieces = [
        output
        for start, end in pairwise(places)
        for output in machine.receive(data[start:end])
        if isinstance(output, EventGroup)
    ]
    assert in_pieces == whole


def test_groups_before_a_fault_in_the_same_read_are_given() -> None:
    machine = streaming(machine_for()).machine
    packets = [data for data in dump_packets("gtid_connect") if data[0] == 0]
    purged = ErrPacket(errno=1236, message="Could not find the log file").encode()
    groups: list[Output] = []
    with pytest.raises(PeerError) as caught:
        groups.extend(machine.receive(frames([*packets, purged], 1)))
    assert caught.value.errno == 1236
    assert "purged" in caught.value.hint
    given_gtids = [str(group.gtid) for group in groups if isinstance(group, EventGroup)]
    assert [gtid for gtid in given_gtids if gtid != "None"] == ["0-1-5", "0-1-6", "0-1-7"]
    assert machine.stream is not None
    assert machine.stream.position == GtidPosition.parse("0-1-7")


def test_from_now_on_is_where_the_log_of_the_source_ends() -> None:
    conversation = streaming(machine_for(start=StartAt.NOW))
    assert "@slave_connect_state = '0-1-4'" in conversation.queries()[1]


def test_from_the_oldest_file_on_no_gtid_is_sent() -> None:
    conversation = streaming(machine_for(start=StartAt.OLDEST))
    assert "slave_connect_state" not in conversation.queries()[1]
    assert BinlogDump.decode(conversation.sent[-1]).file == ""


def test_a_file_and_position_become_a_gtid_position() -> None:
    conversation = Conversation(machine_for(start=FilePosition("it's.000007", 1234)))
    conversation.log_in()
    conversation.prepare(preparation(VARIABLES, rows(["0-1-3"])))
    assert conversation.queries()[1] == "SELECT binlog_gtid_pos('it''s.000007', 1234)"
    assert "@slave_connect_state = '0-1-3'" in conversation.queries()[2]


def test_a_file_and_position_that_the_source_has_not() -> None:
    conversation = Conversation(machine_for(start=FilePosition("gone.000007", 1234)))
    conversation.log_in()
    with pytest.raises(ConfigError, match=r"no position gone\.000007:1234") as caught:
        conversation.prepare(preparation(VARIABLES, rows([None])))
    assert caught.value.key == "source.start"


@pytest.mark.parametrize(
    ("errno", "hint"), [(1045, "REPLICATION SLAVE"), (1698, "socket"), (1040, "")]
)
def test_a_refused_login_says_why_and_what_to_do(errno: int, hint: str) -> None:
    conversation = Conversation(machine_for())
    conversation.say(greeting())
    with pytest.raises(PeerError, match="the server says: no") as caught:
        conversation.say(ErrPacket(errno=errno, message="no").encode())
    assert (caught.value.errno, caught.value.phase) == (errno, "login")
    assert hint in caught.value.hint


def test_a_server_that_refuses_before_the_login() -> None:
    with pytest.raises(PeerError) as caught:
        Conversation(machine_for()).say(b"\xff\x10\x04Too many connections")
    assert (caught.value.errno, caught.value.phase) == (1040, "connect")


def test_what_is_no_server_is_told_so() -> None:
    with pytest.raises(PeerError, match="protocol version 72"):
        Conversation(machine_for()).say(b"HTTP/1.1 400 Bad Request")


def test_a_missing_privilege_is_told_at_the_registration() -> None:
    conversation = Conversation(machine_for())
    conversation.log_in()
    *answers, _ = preparation()
    conversation.prepare(answers)
    denied = ErrPacket(errno=1227, message="Access denied", sqlstate="42000")
    with pytest.raises(PeerError) as caught:
        conversation.say(denied.encode())
    assert caught.value.phase == "register"
    assert "GRANT REPLICATION SLAVE" in caught.value.hint


def test_a_source_without_a_log_is_refused() -> None:
    conversation = Conversation(machine_for())
    conversation.log_in()
    with pytest.raises(ConfigError, match="writes no binlog"):
        conversation.prepare(preparation(VARIABLES | {"log_bin": "OFF"}))


def test_another_plugin_is_answered_with_its_own_challenge() -> None:
    conversation = Conversation(machine_for())
    conversation.say(greeting("auth_gssapi_client"))
    assert HandshakeResponse.decode(conversation.sent[0]).plugin == "mysql_native_password"
    conversation.say(b"\xfemysql_native_password\0" + bytes(range(21, 41)) + b"\0")
    assert len(conversation.sent[1]) == 20
    conversation.say(OK)
    assert len(conversation.queries()) == 1


def test_a_plugin_that_binlane_does_not_know() -> None:
    conversation = Conversation(machine_for())
    conversation.say(greeting())
    with pytest.raises(PeerError, match="'client_ed25519'") as caught:
        conversation.say(b"\xfeclient_ed25519\0" + SCRAMBLE + b"\0")
    assert "mysql_native_password" in caught.value.hint


def test_tls_begins_before_the_account_is_named() -> None:
    conversation = Conversation(machine_for(ssl_mode=SslMode.REQUIRED))
    outputs = conversation.say(greeting(offers_tls=True))
    assert [type(output) for output in outputs] == [Send, StartTls, Send]
    request, login = conversation.sent
    assert Capability.SSL in SslRequest.decode(request).capabilities
    assert HandshakeResponse.decode(login).user == "binlane"
    conversation.say(OK)
    assert len(conversation.queries()) == 1


def test_a_server_without_tls_is_refused_where_tls_is_required() -> None:
    with pytest.raises(PeerError, match="offers no TLS"):
        Conversation(machine_for(ssl_mode=SslMode.REQUIRED)).say(greeting())


@pytest.mark.parametrize(
    ("ssl_mode", "is_local"), [(SslMode.DISABLED, False), (SslMode.PREFERRED, True)]
)
def test_tls_is_not_used_where_it_is_not_wanted(ssl_mode: SslMode, *, is_local: bool) -> None:
    conversation = Conversation(machine_for(ssl_mode=ssl_mode, is_local=is_local))
    outputs = conversation.say(greeting(offers_tls=True))
    assert [type(output) for output in outputs] == [Send]


def test_caching_sha2_password_that_the_server_knows() -> None:
    conversation = Conversation(machine_for())
    conversation.say(greeting("caching_sha2_password"))
    assert len(HandshakeResponse.decode(conversation.sent[0]).auth_response) == 32
    conversation.say(b"\x01\x03")
    conversation.say(OK)
    assert len(conversation.queries()) == 1


def test_caching_sha2_password_over_a_private_connection() -> None:
    conversation = Conversation(machine_for(is_local=True))
    conversation.say(greeting("caching_sha2_password"))
    conversation.say(b"\x01\x04")
    assert conversation.sent[1] == b"secret\0"


def test_caching_sha2_password_in_the_open_is_sealed() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    conversation = Conversation(machine_for(seal_with=seal))
    conversation.say(greeting("caching_sha2_password"))
    conversation.say(b"\x01\x04")
    assert conversation.sent[1] == b"\x02"
    conversation.say(b"\x01" + pem)
    oaep = OAEP(mgf=MGF1(SHA1()), algorithm=SHA1(), label=None)
    hidden = key.decrypt(conversation.sent[2], oaep)
    assert bytes(a ^ b for a, b in zip(hidden, SCRAMBLE, strict=False)) == b"secret\0"


def test_a_public_key_that_is_none() -> None:
    conversation = Conversation(machine_for(seal_with=seal))
    conversation.say(greeting("caching_sha2_password"))
    conversation.say(b"\x01\x04")
    with pytest.raises(PeerError, match="public key cannot be used"):
        conversation.say(b"\x01no key")


def test_packets_out_of_order_are_told() -> None:
    conversation = Conversation(machine_for())
    conversation.sequence = 3
    with pytest.raises(PeerError, match="packet 3 came where packet 0 is expected"):
        conversation.say(greeting())


def test_a_source_that_shuts_down_ends_the_dump() -> None:
    conversation = streaming(machine_for())
    assert conversation.say(b"\xfe\0\0\x02\0") == [Ended()]
