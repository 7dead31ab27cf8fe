"""Peers that break the protocol, at every state of a session: others are unharmed by them.

Each state is reached as an honest client reaches it, then come bytes that do not belong there. The
session ends, at the source too; nothing that was written is in a binlog twice, or missing.
"""

from __future__ import annotations

import random
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pymysql
import pytest

from binlane.log.codec.packets.commands import (
    BinlogDump,
    BinlogDumpGtid,
    RegisterSlave,
    encode_query,
)
from binlane.log.codec.packets.flags import Capability, Command, DumpFlag
from binlane.log.codec.packets.framing import FRAME_PAYLOAD_MAX, frame
from binlane.log.codec.packets.replies import ErrPacket, is_error
from tests.judged_port import set_up
from tests.lent_servers import LENT
from tests.raw_client import CAPABILITIES, RawClient
from tests.serve_process import ServeProcess, create_account, wait_until
from tests.servers import execute

ABILITIES = CAPABILITIES | Capability.LOCAL_FILES | Capability.MULTI_STATEMENTS
PREPARE_DUMP = "SET @mariadb_slave_capability = 4, @master_binlog_checksum = 'CRC32'"
# A session that says all of this many times over may not cost more than this many megabytes.
GROWTH_MB = 64


@pytest.fixture(scope="module", params=["judged", "relayed"])
def serve(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ServeProcess]:
    """A port, before a source that was set up for judging or was not."""
    options = ("--local-infile=ON", "--max-connections=400")
    with LENT.lend_source("mariadb", *options) as source:
        directory = tmp_path_factory.mktemp(request.param)
        serve = ServeProcess(directory, source, extra="[http]\nport = 0\n")
        if request.param == "judged":
            set_up(serve)
        else:
            create_account(source)
        with serve:
            serve.execute_as_root(
                "CREATE BINLOG 'b'" + (" FORMAT='STATEMENT'" if request.param == "judged" else ""),
                "CREATE DATABASE d",
                "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB)",
                "CREATE TABLE d.big (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB)",
                *["INSERT INTO d.big (v) VALUES (REPEAT('x', 1000000))"] * 4,
            )
            yield serve


# How a session comes to a state -----------------------------------------------------------------


def logged_in(serve: ServeProcess) -> RawClient:
    return RawClient(serve.port, ABILITIES, database="d")


def with_a_prepared_statement(serve: ServeProcess) -> RawClient:
    client = logged_in(serve)
    client.prepare("INSERT INTO t (v) VALUES (?)")
    return client


def asked_for_a_file(serve: ServeProcess) -> RawClient:
    client = logged_in(serve)
    client.send(frame(encode_query("LOAD DATA LOCAL INFILE 'f' INTO TABLE t (v)"), 0))
    time.sleep(0.02)
    return client


def changing_its_user(serve: ServeProcess) -> RawClient:
    client = logged_in(serve)
    client.send(frame(bytes((Command.CHANGE_USER,)) + b"nobody\0\0d\0\x2d\0no_such_plugin\0", 0))
    return client


def registered(serve: ServeProcess) -> RawClient:
    client = logged_in(serve)
    client.query(PREPARE_DUMP)
    client.ok(RegisterSlave(server_id=0, host="\0\xff../", user="'", password="x").encode())
    return client


_IDS = count(100)


def dumping(serve: ServeProcess) -> RawClient:
    client = registered(serve)
    # A replica that comes again would end its older dump.
    dump = BinlogDump(position=4, flags=DumpFlag(0), server_id=next(_IDS), file="b.000001")
    client.send(frame(dump.encode(), 0))
    return client


def amid_a_result_set(serve: ServeProcess) -> RawClient:
    client = logged_in(serve)
    client.send(frame(encode_query("SELECT a.v, b.v FROM big a, big b"), 0))
    return client


def within_a_large_command(serve: ServeProcess) -> RawClient:
    client = logged_in(serve)
    text = b"INSERT INTO t (v) VALUES ('"
    payload = bytes((Command.QUERY,)) + text
    client.send(frame(payload + b"x" * (FRAME_PAYLOAD_MAX - len(payload)), 0)[:-4])
    return client


def in_a_transaction(serve: ServeProcess) -> RawClient:
    client = logged_in(serve)
    client.query("BEGIN")
    client.query("INSERT INTO t (v) VALUES ('never committed')")
    return client


STATES: tuple[Callable[[ServeProcess], RawClient], ...] = (
    logged_in,
    with_a_prepared_statement,
    asked_for_a_file,
    changing_its_user,
    registered,
    dumping,
    amid_a_result_set,
    within_a_large_command,
    in_a_transaction,
)


def hostile_bytes() -> Iterator[bytes]:
    chance = random.Random(15)
    execute_head = struct.pack("<BIBI", Command.STMT_EXECUTE, 1, 0, 1)
    yield b""
    yield b"\x01"
    yield frame(b"", 0)
    yield frame(b"", 3) * 3
    yield b"\xff\xff\xff\x00\x03"
    yield b"\xff\xff\xff\x05" + bytes(5000)
    yield frame(encode_query("SELECT 1"), 9)
    yield frame(encode_query("INSERT INTO t (v) VALUES ('counted')"), 0) * 20
    yield frame(encode_query("SHOW BINLOGS"), 0) * 50
    yield frame(encode_query("INSERT INTO t (v) VALUES ('half"), 0)[:-3]
    yield frame(bytes((Command.PING,)), 0) * 2000
    yield frame(encode_query(b"SELECT '\xff\xfe\xc3'"), 0)
    yield frame(encode_query(b"\0" * 300), 0)
    yield frame(execute_head + b"\0\1" + struct.pack("<H", 0xFD) + b"\xfe" + b"\xff" * 8, 0)
    yield frame(execute_head + b"\0\1" + struct.pack("<H", 0xFD) + b"\xfd\xff\xff\xff", 0)
    yield frame(struct.pack("<BIBI", Command.STMT_EXECUTE, 999, 0, 0xFFFFFFFF), 0)
    yield frame(bytes((Command.STMT_SEND_LONG_DATA,)) + b"\xff" * 3, 0)
    yield frame(bytes((Command.CHANGE_USER,)) + b"\xff" * 200, 0)
    yield frame(bytes((Command.REGISTER_SLAVE,)) + b"\xff" * 9, 0)
    for command in (0x00, 0x05, 0x0B, 0x13, 0x1E, 0x22, 0x7F, 0xFE, 0xFF):
        yield frame(bytes((command,)) + chance.randbytes(3), 0)
    for length in (3, 30, 3000):
        yield chance.randbytes(length)
        yield frame(chance.randbytes(length), chance.randrange(256))


def memory_mb(serve: ServeProcess) -> int:
    lines = Path(f"/proc/{serve.process_id}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) >> 10


def sessions(serve: ServeProcess) -> int:
    """Of clients, at the source."""
    listed = "SELECT COUNT(*) FROM information_schema.processlist WHERE user <> 'binlane'"
    return int(execute(serve.source, listed)[0][0]) - 1


def is_unharmed(serve: ServeProcess) -> None:
    """See that all is cleaned up, and that everything is there once."""
    wait_until(lambda: sessions(serve) == 0)
    serve.wait_until_complete("b")
    gtids = serve.gtids("b")
    assert len(gtids) == len(set(gtids))
    log = serve.log
    assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:3000]
    assert serve.get("/healthz") == (200, "ok\n")


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_what_does_not_belong_there(
    serve: ServeProcess, state: Callable[[ServeProcess], RawClient]
) -> None:
    with state(serve) as client:
        client.ends()
    memory = memory_mb(serve)
    for data in hostile_bytes():
        for ends in (RawClient.ends, RawClient.reset):
            client = state(serve)
            with suppress(ConnectionError):
                client.send(data)
            ends(client)
            client.close()
    is_unharmed(serve)
    assert memory_mb(serve) < memory + GROWTH_MB


@pytest.mark.parametrize(
    "command",
    [
        BinlogDump(position=4, flags=DumpFlag(0), server_id=0, file="../../etc/passwd"),
        BinlogDump(position=4, flags=DumpFlag(0), server_id=0, file="b.000001/../x"),
        BinlogDump(position=4, flags=DumpFlag(0), server_id=1, file="/etc/passwd"),
        BinlogDump(position=4, flags=DumpFlag(0), server_id=1, file="\udcff\udcfe"),
        BinlogDump(position=4, flags=DumpFlag(0), server_id=1, file="x" * 100_000),
        BinlogDump(position=0xFFFFFFFF, flags=DumpFlag(0xFFFF), server_id=1, file="b.000001"),
        BinlogDump(position=5, flags=DumpFlag(1), server_id=1, file="b.000001"),
        BinlogDumpGtid(flags=DumpFlag(0), server_id=1, done=b"\xff" * 8),
        BinlogDumpGtid(flags=DumpFlag(0), server_id=1, done=bytes(1 << 20)),
    ],
    ids=["up", "beside", "absolute", "bytes", "long", "end", "amid", "lies", "zeros"],
)
def test_dumps_that_cannot_be(serve: ServeProcess, command: BinlogDump | BinlogDumpGtid) -> None:
    with logged_in(serve) as client:
        client.query(PREPARE_DUMP)
        (reply,) = client.say(command.encode())
        assert is_error(reply)
        error = ErrPacket.decode(reply)
        assert error.errno in (1, 1236)
        assert "root:" not in error.message
        assert not is_error(client.say(encode_query("SELECT 1"))[0])


@pytest.mark.parametrize(
    "state",
    ["0-1-" + "9" * 400, "0-1-1," * 30_000 + "0-1-1", "x", "0-1-1\0", "-1-1-1", "0-1-\u0661"],
    ids=["huge", "many", "word", "nul", "negative", "digits"],
)
def test_gtid_positions_that_cannot_be(serve: ServeProcess, state: str) -> None:
    with logged_in(serve) as client:
        client.query(PREPARE_DUMP)
        client.query(f"SET @slave_connect_state = '{state}'")
        command = BinlogDump(position=4, flags=DumpFlag(1), server_id=1, file="")
        reply = client.say(command.encode())
        assert is_error(reply[-1]), state[:50]
        assert len(ErrPacket.decode(reply[-1]).message) < 600


def test_two_replicas_with_one_id_and_one_with_none(serve: ServeProcess) -> None:
    clients = [dumping(serve) for _ in range(3)]
    serve.execute_as_root("INSERT INTO d.t (v) VALUES ('for all')")
    for client in clients:
        client.ends()
        client.close()
    is_unharmed(serve)


def test_a_session_beside_all_this_goes_on(serve: ServeProcess) -> None:
    """What an honest client sees while others break the protocol."""
    stop = threading.Event()
    slowest: list[float] = []
    failed: list[BaseException] = []

    def honest() -> None:
        try:
            with serve.connect("root", "") as session, session.cursor() as cursor:
                while not stop.is_set():
                    began_s = time.monotonic()
                    cursor.execute("INSERT INTO d.t (v) VALUES ('honest')")
                    cursor.execute("SELECT COUNT(*) FROM d.t")
                    slowest.append(time.monotonic() - began_s)
        except BaseException as error:  # noqa: BLE001 - the test raises it
            failed.append(error)

    thread = threading.Thread(target=honest)
    thread.start()
    try:
        for data in hostile_bytes():
            client = logged_in(serve)
            with client, suppress(ConnectionError):
                client.send(data)
                client.ends()
    finally:
        stop.set()
        thread.join()
    assert not failed
    assert max(slowest) < 5


def test_replicas_that_read_nothing_hold_up_nobody(serve: ServeProcess) -> None:
    stuck = [dumping(serve) for _ in range(20)]
    memory = memory_mb(serve)
    # Not through the port: binlogs of statements get rows too.
    execute(serve.source, *["INSERT INTO d.big (v) VALUES (REPEAT('y', 4000000))"] * 5)
    serve.wait_until_complete("b")
    with registered(serve) as replica:
        dump = BinlogDump(position=4, flags=DumpFlag.NON_BLOCK, server_id=8, file="b.000001")
        replica.send(frame(dump.encode(), 0))
        received, tail = 0, b""
        while not tail.endswith(b"\xfe\0\0\2\0"):
            data = replica.receive()
            received, tail = received + len(data), (tail + data)[-5:]
    assert received > 20_000_000
    serve.execute_as_root("FLUSH BINARY LOGS 'b'")
    assert memory_mb(serve) < memory + GROWTH_MB
    for each in stuck:
        each.reset()
    is_unharmed(serve)


def test_nobody_writes_lines_into_the_log(serve: ServeProcess) -> None:
    forged = "\n<0>2026-01-01 00:00:00,000 ERROR binlane.service: all is lost\r\x1b[2J"
    for user in (f"app{forged}", forged):
        with pytest.raises(pymysql.MySQLError):
            serve.connect(user, "wrong")
    execute(serve.source, f"CREATE USER '{forged}' IDENTIFIED BY 'right'")
    serve.connect(forged, "right").close()
    with RawClient(serve.port) as client:
        client.query(PREPARE_DUMP)
        register = RegisterSlave(server_id=7, host=forged, user=forged, password=forged)
        client.say(register.encode())
        for file in (f"nothing{forged}.000001", f"b.000001{forged}", f"b{forged}.000001"):
            dump = BinlogDump(position=4, flags=DumpFlag.NON_BLOCK, server_id=7, file=file)
            assert list(client.dump(dump.encode()))
    for statement in (
        f"CREATE BINLOG '{forged}' LOG(",
        f"DROP BINLOG '{forged}'",
        f"SELEC {forged}",
    ):
        with pytest.raises(pymysql.MySQLError):
            serve.execute_as_root(statement)
    execute(serve.source, f"DROP USER '{forged}'")
    wait_until(lambda: serve.log.count("all is lost") >= 3)
    assert "\x1b" not in serve.log
    assert "\r" not in serve.log
    assert not [line for line in serve.log.split("\n") if line and not line.startswith("20")]
