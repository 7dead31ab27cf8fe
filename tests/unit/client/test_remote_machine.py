"""Reading a server's log as the tools do: what is asked, and what is given of what comes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.client.dialogue import Account
from binlane.client.packet_flow import Send
from binlane.client.remote_machine import (
    RemoteEnd,
    RemoteEvent,
    RemoteMachine,
    RemoteOutput,
    RemoteRequest,
)
from binlane.client.settings import SslMode
from binlane.errors import PeerError
from binlane.log.codec.packets.commands import BinlogDump, decode_query
from binlane.log.codec.packets.flags import NO_CAPABILITIES, DumpFlag
from binlane.log.codec.packets.framing import PacketSplitter, frames
from binlane.log.codec.packets.handshake import Greeting
from binlane.log.codec.packets.replies import ErrPacket
from binlane.positions import GtidSet
from tests.dumps import OK, dump_packets, greeting

ACCOUNT = Account(
    peer="mysql://reader@127.0.0.1:3306",
    user="reader",
    password="secret",
    ssl_mode=SslMode.PREFERRED,
    is_local=False,
    seal=lambda _pem, data: data,
)
REQUEST = RemoteRequest(account=ACCOUNT, file="binlog.000001")
END = b"\xfe\0\0\0\0"


class Talk:
    """A machine, and a server that says what a test wants."""

    def __init__(self, request: RemoteRequest, hello: bytes) -> None:
        self.machine = RemoteMachine(request)
        self.sent: list[bytes] = []
        self._sequence = 0
        for payload in (hello, OK, OK):
            self.say(payload)

    def say(self, *payloads: bytes) -> list[RemoteOutput]:
        outputs = list(self.machine.receive(frames(payloads, self._sequence)))
        self._sequence = (self._sequence + len(payloads)) % 256
        for output in outputs:
            if isinstance(output, Send):
                for packet in PacketSplitter().feed(output.data):
                    self.sent.append(packet.payload)
                    self._sequence = packet.next_sequence
        return outputs

    @property
    def settings(self) -> str:
        return decode_query(self.sent[1], NO_CAPABILITIES).decode()


def mysql_greeting() -> bytes:
    return replace(Greeting.decode(greeting()), version="9.7.4").encode()


def test_mariadb_is_asked_for_events_as_they_stand_in_the_file() -> None:
    talk = Talk(replace(REQUEST, position=400), greeting())
    assert talk.settings == (
        "SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32', "
        "@binlane_tables_info = 1, @mariadb_slave_capability = 4"
    )
    assert BinlogDump.decode(talk.sent[-1]) == BinlogDump(
        position=400,
        flags=DumpFlag.NON_BLOCK | DumpFlag.SEND_ANNOTATE_ROWS,
        server_id=0,
        file="binlog.000001",
    )


def test_waiting_for_more_asks_for_heartbeats() -> None:
    talk = Talk(replace(REQUEST, waits=True, server_id=9), greeting())
    assert "@master_heartbeat_period = 15000000000" in talk.settings
    dump = BinlogDump.decode(talk.sent[-1])
    assert (dump.flags, dump.server_id) == (DumpFlag.SEND_ANNOTATE_ROWS, 9)


def test_mysql_is_asked_in_its_own_way() -> None:
    talk = Talk(REQUEST, mysql_greeting())
    assert "mariadb" not in talk.settings
    # To MySQL the flag of MariaDB's annotate events means another kind of heartbeats.
    assert BinlogDump.decode(talk.sent[-1]).flags == DumpFlag.NON_BLOCK


def test_mysql_leaves_gtids_out() -> None:
    source = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    excluded = GtidSet.parse(f"{source}:1-5")
    talk = Talk(replace(REQUEST, excluded=excluded), mysql_greeting())
    interval = (1).to_bytes(8, "little") + (6).to_bytes(8, "little")
    data = b"".join(
        (
            (1).to_bytes(8, "little"),
            bytes.fromhex(source.replace("-", "")),
            (1).to_bytes(8, "little"),
            interval,
        )
    )
    assert talk.sent[-1] == b"".join(
        (
            b"\x1e\x05\x00\0\0\0\0",
            (13).to_bytes(4, "little"),
            b"binlog.000001",
            (4).to_bytes(8, "little"),
            len(data).to_bytes(4, "little"),
            data,
        )
    )
    with pytest.raises(PeerError, match="takes no MySQL GTIDs"):
        Talk(replace(REQUEST, excluded=excluded), greeting())


def test_events_of_the_files_are_given_with_their_bytes() -> None:
    packets = dump_packets("crc_heartbeat_annotate")
    talk = Talk(REQUEST, greeting())
    outputs = talk.say(*packets)
    events = [output for output in outputs if isinstance(output, RemoteEvent)]
    assert events
    assert {event.file for event in events} >= {"binlog.000001"}
    for event in events:
        assert b"\0" + event.data in packets
        assert event.event.header.length == len(event.data)
    # The ROTATE that begins a dump stands in no file.
    assert len(events) < len(packets)


def test_the_end_and_errors() -> None:
    assert Talk(REQUEST, greeting()).say(END) == [RemoteEnd()]
    error = ErrPacket(errno=1236, sqlstate="HY000", message="no such file")
    with pytest.raises(PeerError, match="no such file") as caught:
        Talk(REQUEST, greeting()).say(error.encode())
    assert (caught.value.phase, caught.value.errno) == ("dump", 1236)
