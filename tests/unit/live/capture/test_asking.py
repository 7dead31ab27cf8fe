from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha1
from struct import unpack_from

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from binlane.client.account import seal
from binlane.client.dialogue import Account
from binlane.client.packet_flow import PacketFlow, Send, StartTls
from binlane.client.settings import SslMode
from binlane.errors import ConfigError, PeerError
from binlane.live.capture.asking import DumpStart, LogRequest, ask_for_log
from binlane.live.capture.settings import Start, StartAt
from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.packets.commands import BinlogDump, RegisterSlave, decode_query
from binlane.log.codec.packets.flags import NO_CAPABILITIES, Capability, Command, DumpFlag
from binlane.log.codec.packets.framing import PacketSplitter, frames
from binlane.log.codec.packets.handshake import HandshakeResponse, SslRequest
from binlane.log.codec.packets.replies import ErrPacket
from binlane.log.codec.types import ChecksumAlgorithm, Flavor
from binlane.positions import FilePosition, GtidPosition, GtidSet
from tests.dumps import (
    MYSQL_VARIABLES,
    OK,
    SCRAMBLE,
    VARIABLES,
    greeting,
    preparation,
    rows,
)

PEER = "mariadb://binlane@127.0.0.1:3306"
DONE = GtidPosition.parse("0-1-4")
SERVER_ID = 77
UUID = MYSQL_VARIABLES["server_uuid"]
NO_CHECKSUMS = Format(
    server_version="9.7.4",
    flavor=Flavor.MYSQL,
    checksum=ChecksumAlgorithm.NONE,
    post_header_lengths=b"",
)


def never_seal(key: bytes, data: bytes) -> bytes:
    raise AssertionError("no password may be sealed here")


def flow_for(
    *,
    start: Start = DONE,
    password: str = "secret",
    ssl_mode: SslMode = SslMode.PREFERRED,
    is_local: bool = False,
    seal_with: Callable[[bytes, bytes], bytes] = never_seal,
) -> PacketFlow[DumpStart]:
    account = Account(
        peer=PEER,
        user="binlane",
        password=password,
        ssl_mode=ssl_mode,
        is_local=is_local,
        seal=seal_with,
    )
    request = LogRequest(account=account, start=start, server_id=SERVER_ID, heartbeat_period_s=2.5)
    return PacketFlow(ask_for_log(request), peer=PEER)


@dataclass
class Conversation:
    """A replica and a source that says what a test wants, with sequence numbers as they must be."""

    flow: PacketFlow[DumpStart]
    sent: list[bytes] = field(default_factory=list)
    sequence: int = 0

    def say(self, *payloads: bytes) -> list[Send | StartTls]:
        """Send packets to the replica; what it sends back is in `sent`."""
        packets = self.flow.packets(frames(payloads, self.sequence))
        outputs = [step for packet in packets for step in self.flow.converse(packet)]
        self.sequence = (self.sequence + len(payloads)) % 256
        for output in outputs:
            if isinstance(output, Send):
                for packet in PacketSplitter().feed(output.data):
                    self.sent.append(packet.payload)
                    self.sequence = packet.next_sequence
        return outputs

    def log_in(self) -> HandshakeResponse:
        self.say(greeting())
        self.say(OK)
        return HandshakeResponse.decode(self.sent[0])

    def prepare(self, answers: Iterable[list[bytes]]) -> None:
        for answer in answers:
            self.say(*answer)

    def result(self) -> DumpStart:
        assert self.flow.result is not None
        return self.flow.result

    def queries(self) -> list[str]:
        return [
            decode_query(payload, NO_CAPABILITIES).decode()
            for payload in self.sent[1:]
            if payload[0] == Command.QUERY
        ]


def asked(flow: PacketFlow[DumpStart], variables: dict[str, str] = VARIABLES) -> Conversation:
    conversation = Conversation(flow)
    conversation.log_in()
    conversation.prepare(preparation(variables))
    return conversation


def test_a_replica_logs_in_and_asks_for_the_log() -> None:
    conversation = Conversation(flow_for())
    login = conversation.log_in()
    assert (login.user, login.plugin) == ("binlane", "mysql_native_password")
    assert Capability.DEPRECATE_EOF not in login.capabilities
    conversation.prepare(preparation())
    variables, account, grants, settings, checksum = conversation.queries()
    assert (account, grants) == ("SELECT CURRENT_USER()", "SHOW GRANTS")
    assert variables.startswith("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', ")
    assert settings == (
        "SET @master_heartbeat_period = 2500000000, "
        "@master_binlog_checksum = @@global.binlog_checksum, @mariadb_slave_capability = 4, "
        "@slave_connect_state = '0-1-4', @slave_gtid_strict_mode = 0, "
        "@slave_gtid_ignore_duplicates = 0"
    )
    assert checksum == "SELECT @master_binlog_checksum"
    assert RegisterSlave.decode(conversation.sent[-1]).server_id == SERVER_ID
    result = conversation.result()
    assert BinlogDump.decode(result.command) == BinlogDump(
        position=4, flags=DumpFlag.SEND_ANNOTATE_ROWS, server_id=SERVER_ID, file=""
    )
    assert (result.position, result.until) == (DONE, None)
    assert (result.facts.server_id, result.facts.account) == (1, "binlane@%")


def test_the_answer_to_the_challenge_is_one_that_the_server_can_check() -> None:
    login = Conversation(flow_for()).log_in()
    stored = sha1(sha1(b"secret").digest()).digest()
    mask = sha1(SCRAMBLE + stored).digest()
    stage_1 = bytes(a ^ b for a, b in zip(login.auth_response, mask, strict=True))
    assert sha1(stage_1).digest() == stored


def test_from_now_on_is_where_the_log_of_the_source_ends() -> None:
    conversation = asked(flow_for(start=StartAt.NOW))
    assert "@slave_connect_state = '0-1-4'" in conversation.queries()[3]


def test_from_the_oldest_file_on_no_gtid_is_sent() -> None:
    conversation = asked(flow_for(start=StartAt.OLDEST))
    assert "slave_connect_state" not in conversation.queries()[3]
    assert BinlogDump.decode(conversation.result().command).file == ""


def mysql_dump(command: bytes) -> tuple[int, int, str, GtidSet]:
    """Flags, server id, file and GTIDs of a COM_BINLOG_DUMP_GTID."""
    assert command[0] == Command.BINLOG_DUMP_GTID
    flags, server_id, length = unpack_from("<HII", command, 1)
    file = command[11 : 11 + length].decode()
    position, size = unpack_from("<QI", command, 11 + length)
    done = command[23 + length :]
    assert (position, size) == (4, len(done))
    body = PreviousGtidsEvent.decode(Reader(done), NO_CHECKSUMS)
    return flags, server_id, file, body.position


@pytest.mark.parametrize(
    ("start", "done"),
    [
        (StartAt.NOW, MYSQL_VARIABLES["gtid_executed"]),
        (StartAt.OLDEST, MYSQL_VARIABLES["gtid_purged"]),
        (GtidSet.parse(f"{UUID}:1-5:tagx:1"), f"{UUID}:1-5:tagx:1"),
    ],
)
def test_mysql_is_asked_by_a_gtid_set(start: Start, done: str) -> None:
    conversation = asked(flow_for(start=start), MYSQL_VARIABLES)
    settings = conversation.queries()[3]
    assert "@source_binlog_checksum = @@global.binlog_checksum" in settings
    assert "@source_heartbeat_period = 2500000000" in settings
    assert "mariadb" not in settings
    result = conversation.result()
    assert result.position == GtidSet.parse(done)
    assert mysql_dump(result.command) == (6, SERVER_ID, "", GtidSet.parse(done))


def test_what_was_done_before_a_place_in_a_file_of_mysql_is_read_there() -> None:
    place = FilePosition("binlog.000007", 1234)
    conversation = Conversation(flow_for(start=place))
    conversation.log_in()
    conversation.prepare(preparation(MYSQL_VARIABLES)[:-1])  # nothing is registered
    result = conversation.result()
    assert (result.position, result.until) == (None, place)
    assert BinlogDump.decode(result.command) == BinlogDump(
        position=4, flags=DumpFlag.NON_BLOCK, server_id=0, file="binlog.000007"
    )


@pytest.mark.parametrize(
    ("variables", "start", "reason"),
    [
        (VARIABLES, GtidPosition.parse("0-1-5"), "0-1-5 is not in its log"),
        (VARIABLES, GtidPosition.parse("0-1-4,2-1-1"), "2-1-1 is not in its log"),
        (VARIABLES, GtidPosition.parse("0-2-3"), "0-2-3 is not in its log"),
        (VARIABLES | {"gtid_binlog_state": ""}, DONE, "0-1-4 is not in its log"),
        (
            MYSQL_VARIABLES,
            GtidSet.parse(f"{UUID}:1-10"),
            f"{UUID}:10 is not in its gtid_executed",
        ),
        (MYSQL_VARIABLES, GtidSet.parse(f"{UUID}:1-2"), f"the source purged {UUID}:3"),
    ],
)
def test_a_source_that_cannot_go_on_with_what_was_taken(
    variables: dict[str, str], start: Start, reason: str
) -> None:
    conversation = Conversation(flow_for(start=start))
    conversation.log_in()
    facts = preparation(variables)[:3]
    # It is asked a second time: MySQL counts a transaction as executed after it sent it.
    with pytest.raises(PeerError, match=reason) as caught:
        conversation.prepare([*facts, [OK], *facts])
    assert conversation.queries()[3] == "DO SLEEP(0.2)"
    assert caught.value.phase == "position"
    assert "START BINLOG 'name' FROM" in caught.value.hint


def test_a_source_that_counts_a_transaction_a_moment_later() -> None:
    start = GtidSet.parse(f"{UUID}:1-10:tagx:1-2")
    later = MYSQL_VARIABLES | {"gtid_executed": str(start)}
    conversation = Conversation(flow_for(start=start))
    conversation.log_in()
    conversation.prepare([*preparation(MYSQL_VARIABLES)[:3], [OK], *preparation(later)])
    assert conversation.result().position == start


def test_a_server_that_took_over_has_what_it_replicated() -> None:
    variables = VARIABLES | {"gtid_binlog_state": "1-7-3", "gtid_slave_pos": "0-1-4"}
    assert asked(flow_for(), variables).result().position == DONE


def test_a_position_of_the_other_flavor() -> None:
    with pytest.raises(ConfigError, match="the source is mysql, 0-1-4 is not one of its positions"):
        asked(flow_for(), MYSQL_VARIABLES)


def test_a_file_and_position_become_a_gtid_position() -> None:
    conversation = Conversation(flow_for(start=FilePosition("it's.000007", 1234)))
    conversation.log_in()
    conversation.prepare(preparation(VARIABLES, rows(["0-1-3"])))
    assert conversation.queries()[3] == "SELECT binlog_gtid_pos('it''s.000007', 1234)"
    assert "@slave_connect_state = '0-1-3'" in conversation.queries()[4]


def test_a_file_and_position_that_the_source_has_not() -> None:
    conversation = Conversation(flow_for(start=FilePosition("gone.000007", 1234)))
    conversation.log_in()
    with pytest.raises(ConfigError, match=r"no position gone\.000007:1234") as caught:
        conversation.prepare(preparation(VARIABLES, rows([None])))
    assert caught.value.key == "source.start"


@pytest.mark.parametrize(
    ("errno", "hint"), [(1045, "REPLICATION SLAVE"), (1698, "socket"), (1040, "")]
)
def test_a_refused_login_says_why_and_what_to_do(errno: int, hint: str) -> None:
    conversation = Conversation(flow_for())
    conversation.say(greeting())
    with pytest.raises(PeerError, match="the server says: no") as caught:
        conversation.say(ErrPacket(errno=errno, message="no").encode())
    assert (caught.value.errno, caught.value.phase) == (errno, "login")
    assert hint in caught.value.hint


def test_a_server_that_refuses_before_the_login() -> None:
    with pytest.raises(PeerError) as caught:
        Conversation(flow_for()).say(b"\xff\x10\x04Too many connections")
    assert (caught.value.errno, caught.value.phase) == (1040, "connect")


def test_what_is_no_server_is_told_so() -> None:
    with pytest.raises(PeerError, match="protocol version 72"):
        Conversation(flow_for()).say(b"HTTP/1.1 400 Bad Request")


def test_a_missing_privilege_is_told_at_the_registration() -> None:
    conversation = Conversation(flow_for())
    conversation.log_in()
    *answers, _ = preparation()
    conversation.prepare(answers)
    denied = ErrPacket(errno=1227, message="Access denied", sqlstate="42000")
    with pytest.raises(PeerError) as caught:
        conversation.say(denied.encode())
    assert caught.value.phase == "register"
    assert "GRANT REPLICATION SLAVE" in caught.value.hint


def test_a_source_without_a_log_is_refused() -> None:
    conversation = Conversation(flow_for())
    conversation.log_in()
    with pytest.raises(ConfigError, match="writes no binlog"):
        conversation.prepare(preparation(VARIABLES | {"log_bin": "OFF"}))


def test_another_plugin_is_answered_with_its_own_challenge() -> None:
    conversation = Conversation(flow_for())
    conversation.say(greeting("auth_gssapi_client"))
    assert HandshakeResponse.decode(conversation.sent[0]).plugin == "mysql_native_password"
    conversation.say(b"\xfemysql_native_password\0" + bytes(range(21, 41)) + b"\0")
    assert len(conversation.sent[1]) == 20
    conversation.say(OK)
    assert len(conversation.queries()) == 1


def test_a_plugin_that_binlane_does_not_know() -> None:
    conversation = Conversation(flow_for())
    conversation.say(greeting())
    with pytest.raises(PeerError, match="'client_ed25519'") as caught:
        conversation.say(b"\xfeclient_ed25519\0" + SCRAMBLE + b"\0")
    assert "mysql_native_password" in caught.value.hint


def test_tls_begins_before_the_account_is_named() -> None:
    conversation = Conversation(flow_for(ssl_mode=SslMode.REQUIRED))
    outputs = conversation.say(greeting(offers_tls=True))
    assert [type(output) for output in outputs] == [Send, StartTls, Send]
    request, login = conversation.sent
    assert Capability.SSL in SslRequest.decode(request).capabilities
    assert HandshakeResponse.decode(login).user == "binlane"
    conversation.say(OK)
    assert len(conversation.queries()) == 1


def test_a_server_without_tls_is_refused_where_tls_is_required() -> None:
    with pytest.raises(PeerError, match="offers no TLS"):
        Conversation(flow_for(ssl_mode=SslMode.REQUIRED)).say(greeting())


@pytest.mark.parametrize(
    ("ssl_mode", "is_local"), [(SslMode.DISABLED, False), (SslMode.PREFERRED, True)]
)
def test_tls_is_not_used_where_it_is_not_wanted(ssl_mode: SslMode, *, is_local: bool) -> None:
    conversation = Conversation(flow_for(ssl_mode=ssl_mode, is_local=is_local))
    outputs = conversation.say(greeting(offers_tls=True))
    assert [type(output) for output in outputs] == [Send]


def test_caching_sha2_password_that_the_server_knows() -> None:
    conversation = Conversation(flow_for())
    conversation.say(greeting("caching_sha2_password"))
    assert len(HandshakeResponse.decode(conversation.sent[0]).auth_response) == 32
    conversation.say(b"\x01\x03")
    conversation.say(OK)
    assert len(conversation.queries()) == 1


def test_caching_sha2_password_over_a_private_connection() -> None:
    conversation = Conversation(flow_for(is_local=True))
    conversation.say(greeting("caching_sha2_password"))
    conversation.say(b"\x01\x04")
    assert conversation.sent[1] == b"secret\0"


def test_caching_sha2_password_in_the_open_is_sealed() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    conversation = Conversation(flow_for(seal_with=seal))
    conversation.say(greeting("caching_sha2_password"))
    conversation.say(b"\x01\x04")
    assert conversation.sent[1] == b"\x02"
    conversation.say(b"\x01" + pem)
    oaep = OAEP(mgf=MGF1(SHA1()), algorithm=SHA1(), label=None)
    hidden = key.decrypt(conversation.sent[2], oaep)
    assert bytes(a ^ b for a, b in zip(hidden, SCRAMBLE, strict=False)) == b"secret\0"


def test_a_public_key_that_is_none() -> None:
    conversation = Conversation(flow_for(seal_with=seal))
    conversation.say(greeting("caching_sha2_password"))
    conversation.say(b"\x01\x04")
    with pytest.raises(PeerError, match="public key cannot be used"):
        conversation.say(b"\x01no key")


def test_packets_out_of_order_are_told() -> None:
    conversation = Conversation(flow_for())
    conversation.sequence = 3
    with pytest.raises(PeerError, match="packet 3 came where packet 0 is expected"):
        conversation.say(greeting())
