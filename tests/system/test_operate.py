"""`binlane serve` as a service: what it tells its manager, how it ends, what it reads again."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest

from binlane.binlogs.store.verify import verify
from binlane.live.gateway.settings import GatewaySettings
from binlane.live.provision.certificates import TLS_DIRECTORY, port_context
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.live.service.setting_keys import KEYS, setting_of
from tests.notify_listener import NotifyListener
from tests.serve_process import PASSWORD, ServeProcess, create_account, wait_until
from tests.servers import connect, execute

HTTP = "[http]\nport = 0\n"
_DUMP_ENDS_S: Final = 20.0
FAST = "heartbeat_period_s = 0.2\ntimeout_s = 2\n"


@pytest.fixture(scope="module")
def source(server_directory: Path) -> Iterator[PrivateServer]:
    with PrivateServer.start(server_directory, name="operate", options=SOURCE_OPTIONS) as server:
        create_account(server)
        execute(server, "CREATE DATABASE operate", "CREATE TABLE operate.t (a LONGTEXT)")
        yield server


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[NotifyListener]:
    with NotifyListener(tmp_path / "notify") as listener:
        yield listener


def end(serve: ServeProcess, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
    """Ask for the end; exit status and seconds."""
    begun_s = time.monotonic()
    os.kill(serve.process_id, number)
    return serve.wait(), time.monotonic() - begun_s


def test_a_manager_is_told(source: PrivateServer, listener: NotifyListener, tmp_path: Path) -> None:
    os.kill(source.process_id, signal.SIGSTOP)
    try:
        serve = ServeProcess(
            tmp_path / "serve",
            source,
            extra=HTTP,
            capture=FAST,
            environment={"NOTIFY_SOCKET": listener.address, "WATCHDOG_USEC": "800000"},
        )
        with serve:
            wait_until(lambda: "(HTTP)" in serve.log)
            time.sleep(0.6)
            listener.take()
            assert serve.get("/healthz")[0] == 503
            assert "READY=1" not in listener.told
            assert any("not connected to the source" in line for line in listener.told)
            os.kill(source.process_id, signal.SIGCONT)
            listener.wait_for("READY=1")
            # How the source logs is asked beside that.
            wait_until(lambda: serve.get("/healthz") == (200, "ok\n"))
            listener.wait_for("STATUS=0 binlogs, 0 sessions")
            listener.told.clear()
            os.kill(serve.process_id, signal.SIGHUP)
            listener.wait_for("RELOADING=1")
            listener.wait_for("READY=1")
            assert listener.told[listener.told.index("RELOADING=1") + 1][:15] == "MONOTONIC_USEC="
            listener.wait_for("WATCHDOG=1")
            assert end(serve)[0] == 0
            listener.wait_for("STOPPING=1")
    finally:
        os.kill(source.process_id, signal.SIGCONT)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_it_ends_in_time_under_load(
    source: PrivateServer, tmp_path: Path, number: signal.Signals
) -> None:
    with ServeProcess(tmp_path / "serve", source, capture=FAST) as serve:
        serve.execute("CREATE BINLOG 'b'")
        is_over = threading.Event()

        def write() -> None:
            with connect(source) as session, session.cursor() as cursor:
                while not is_over.is_set():
                    cursor.execute("INSERT INTO operate.t VALUES (REPEAT('x', 100000))")

        writer = threading.Thread(target=write)
        writer.start()
        idle = [serve.connect("root", "") for _ in range(5)]
        dumps = [slow_dump(serve) for _ in range(3)]
        busy = threading.Thread(target=sleep_through, args=(serve,))
        busy.start()
        try:
            time.sleep(1)
            status, seconds = end(serve, number)
        finally:
            is_over.set()
            writer.join()
            busy.join()
        assert (status, seconds < 10) == (0, True), seconds
        assert "Traceback" not in serve.log
        assert list(verify([serve.data_dir])) == []
        for session in (*idle, *dumps):
            session.close()


def slow_dump(serve: ServeProcess) -> pymysql.connections.Connection[pymysql.cursors.Cursor]:
    """A replica that asks for a binlog and reads nothing of it."""
    session = serve.connect()
    stream: socket.socket = session._sock  # type: ignore[attr-defined]  # pymysql hides it
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    name = b"b.000001"
    body = b"\x12" + (4).to_bytes(4, "little") + bytes(2) + (77).to_bytes(4, "little") + name
    stream.sendall(len(body).to_bytes(3, "little") + b"\0" + body)
    return session


def sleep_through(serve: ServeProcess) -> None:
    """A statement that is under way for longer than anybody waits."""
    try:
        serve.execute_as_root("SELECT SLEEP(60)")
    except pymysql.MySQLError:
        return


def test_it_ends_in_time_while_the_source_answers_nothing(
    source: PrivateServer, tmp_path: Path
) -> None:
    with ServeProcess(tmp_path / "serve", source, capture="timeout_s = 60\n") as serve:
        serve.execute("CREATE BINLOG 'b' FORMAT='MIXED'")
        sessions = [serve.connect("root", "") for _ in range(3)]
        os.kill(source.process_id, signal.SIGSTOP)
        try:
            waiting = []
            for session in sessions:
                thread = threading.Thread(target=ask_in_vain, args=(session,))
                thread.start()
                waiting.append(thread)
            time.sleep(1)
            status, seconds = end(serve)
        finally:
            os.kill(source.process_id, signal.SIGCONT)
        for thread in waiting:
            thread.join()
        assert (status, seconds < 10) == (0, True), (seconds, serve.log)
        assert list(verify([serve.data_dir])) == []


def ask_in_vain(session: pymysql.connections.Connection[pymysql.cursors.Cursor]) -> None:
    try:
        with session.cursor() as cursor:
            cursor.execute("INSERT INTO operate.t VALUES ('x')")
    except pymysql.MySQLError:
        return


def test_a_second_signal_waits_for_nobody(source: PrivateServer, tmp_path: Path) -> None:
    with ServeProcess(tmp_path / "serve", source, capture=FAST) as serve:
        busy = threading.Thread(target=sleep_through, args=(serve,))
        busy.start()
        time.sleep(1)
        os.kill(serve.process_id, signal.SIGTERM)
        time.sleep(0.5)
        status, seconds = end(serve)
        busy.join()
        assert (status, seconds < 2) == (0, True), seconds


CHANGED = """
[binlog]
max_binlog_size = 4096
sync_binlog = 0
binlog_expire_logs_seconds = 86400
max_binlog_total_size = "64K"
[rows]
rows_per_s = 1000
gtid_domain_id = 5
chunk_size = "1M"
max_size = "1G"
[log]
level = "warning"
format = "json"
"""


def test_sighup_takes_over_what_can_be_changed(source: PrivateServer, tmp_path: Path) -> None:
    serve = ServeProcess(tmp_path / "serve", source, capture=FAST, extra="[http]\nport = 0\n")
    with serve:
        serve.execute("CREATE BINLOG 'b'")
        limits = "max_connections = 2\nconnect_timeout = 7\naddress = '127.0.0.2'\n"
        limits += "binlog_access = 'granted'\n"
        port_context(GatewaySettings(), tmp_path / "other")
        certificate, key = (
            tmp_path / "other" / TLS_DIRECTORY / f"server-{kind}.pem" for kind in ("cert", "key")
        )
        limits += f"tls_cert = '{certificate}'\ntls_key = '{key}'\ntls_names = ['b.example']\n"
        assert shown_certificate(serve) != certificate.read_text()
        secret = tmp_path / "http-secret"
        secret.write_text("token\n")
        http = f"[http]\nport = 0\nhosts = ['page.example']\npassword_file = '{secret}'\n"
        assert serve.get("/metrics")[0] == 200
        reread(serve, limits, CHANGED + http)
        wait_until(lambda: "listen.address = 127.0.0.2 needs a restart" in serve.log)
        told = [json.loads(line) for line in serve.log.splitlines() if line.startswith("{")]
        assert shown_certificate(serve) == certificate.read_text()
        assert serve.get("/metrics")[0] == 401
        assert serve.get("/metrics", Authorization="Bearer token", Host="page.example")[0] == 200
        wait_until(lambda: serve.get("/healthz") == (200, "ok\n"))
        # A warning is all that is logged from then on.
        assert {line["setting"] for line in told} <= {"listen.address", "listen.port"}
        with serve.connect("root", ""), serve.connect("root", ""):
            wait_until(lambda: refusal(serve) == 1040)
        for _ in range(40):
            execute(source, "INSERT INTO operate.t VALUES (REPEAT('x', 5000))")
        wait_until(lambda: len(serve.execute("SHOW BINARY LOGS FOR 'b'")) > 5)
        files = serve.execute("SHOW BINARY LOGS FOR 'b'")
        assert 5 < len(files) <= 15
        assert all(int(size) < 12_000 for _, size, *_ in files)
        # What the log says of the others is what the table of settings says.
        reread(serve, "", "[http]\nport = 0\n[log]\nlevel = 'info'\n")
        wait_until(lambda: "SIGHUP: log.level is info now" in serve.log)
        marked = {
            setting_of(s, key) for s, keys in KEYS.items() for key in keys if keys[key].at_sighup
        }
        listed = {
            line.split("SIGHUP: ")[1].split()[0]
            for line in serve.log.splitlines()
            if " now" in line
        }
        assert listed <= marked
        assert marked - listed <= {"binlog.expire_logs_days"}
        assert serve.stop() == 0


def test_sighup_decides_anew_who_may_read(source: PrivateServer, tmp_path: Path) -> None:
    execute(
        source,
        f"CREATE USER reader IDENTIFIED BY '{PASSWORD}'",
        "GRANT REPLICATION SLAVE ON *.* TO reader",
    )
    with ServeProcess(tmp_path / "serve", source, capture=FAST, extra=HTTP) as serve:
        serve.execute("CREATE BINLOG 'b'")
        with serve.connect("reader", PASSWORD) as session:
            begin_dump(session)
            reread(serve, "binlog_access = 'granted'\n", "[log]\nformat = 'json'\n")
            with pytest.raises(pymysql.MySQLError) as ended:
                read_for_ever(session)
            assert ended.value.args[0] == 1227
        with (
            serve.connect("reader", PASSWORD) as session,
            pytest.raises(pymysql.MySQLError, match="READ on a binlog"),
        ):
            begin_dump(session)
        told = [json.loads(line) for line in serve.log.splitlines() if line.startswith("{")]
        (ends,) = [line for line in told if "the dump of b ends" in line["message"]]
        assert (ends["binlog"], ends["peer"][:10]) == ("b", "127.0.0.1:")
        assert "http.port is not set any more, which needs a restart" in serve.log
        refusals = [line for line in told if "dump refused" in line["message"]]
        assert {line["user"] for line in refusals} == {"reader"}
        reread(serve, "", "")
        wait_until(lambda: "SIGHUP: listen.binlog_access is privileges now" in serve.log)
        with serve.connect("reader", PASSWORD) as session:
            begin_dump(session)
        assert serve.stop() == 0
        assert "Traceback" not in serve.log


def begin_dump(session: pymysql.connections.Connection[pymysql.cursors.Cursor]) -> None:
    """Ask for the binlog `b` as a replica does, and read its first event."""
    with session.cursor() as cursor:
        cursor.execute("SET @master_binlog_checksum = 'CRC32', @mariadb_slave_capability = 4")
    raw: Any = session
    raw._execute_command(0x12, struct.pack("<IHI", 4, 0, 78) + b"b.000001")
    raw._read_packet()


def read_for_ever(session: pymysql.connections.Connection[pymysql.cursors.Cursor]) -> None:
    """Read what a dump sends; raises the error that ends it."""
    raw: Any = session
    raw._sock.settimeout(_DUMP_ENDS_S)
    while True:
        raw._read_packet()


def refusal(serve: ServeProcess) -> int:
    """The error of a login; 0 of one that succeeds."""
    try:
        serve.connect("root", "").close()
    except pymysql.OperationalError as error:
        return int(error.args[0])
    return 0


def test_a_broken_file_at_sighup_changes_nothing(source: PrivateServer, tmp_path: Path) -> None:
    with ServeProcess(tmp_path / "serve", source, capture=FAST) as serve:
        for wrong, told in [
            ("max_connections = 0\n", "0 lets nobody in (listen.max_connections)"),
            ("max_conections = 5\n", "did you mean listen.max_connections?"),
            ("max_connections = \n", "is no TOML"),
        ]:
            reread(serve, wrong, "[binlog]\nmax_binlog_size = 4096\n")
            wait_until(lambda told=told: told in serve.log)  # type: ignore[misc]
        (serve.directory / "binlane.toml").unlink()
        os.kill(serve.process_id, signal.SIGHUP)
        wait_until(lambda: "cannot read" in serve.log)
        assert "is 4096 now" not in serve.log
        assert serve.execute("SHOW BINLOGS") == ()
        assert serve.stop() == 0


def shown_certificate(serve: ServeProcess) -> str:
    """What clients are shown, as PEM."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    session: Any = pymysql.connect(host="127.0.0.1", port=serve.port, user="root", ssl=context)
    with session:
        return ssl.DER_cert_to_PEM_cert(session._sock.getpeercert(binary_form=True))


def reread(serve: ServeProcess, listen: str, extra: str) -> None:
    """Have other settings read."""
    serve.configure(listen=listen, extra=extra)
    os.kill(serve.process_id, signal.SIGHUP)
