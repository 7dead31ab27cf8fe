"""TLS at the port, with real servers behind it and real clients before it."""

from __future__ import annotations

import logging
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from binlane.client.settings import SslMode
from binlane.live.gateway.port_counts import LoginOutcome
from binlane.live.gateway.settings import TlsMode
from binlane.live.provision.private_server import MYSQL_SOURCE_OPTIONS, PrivateServer
from binlane.log.codec.packets.flags import Capability
from binlane.log.codec.packets.framing import frame
from binlane.log.codec.packets.handshake import SslRequest
from tests.listening import HOST, ListeningPort, wait_until
from tests.servers import ServerFactory, execute, mariadb118_program

APP = {"user": "tls_app", "password": "secret"}
ANY = {"check_hostname": False}
ON = {"tls": TlsMode.ON}
REQUEST = frame(
    SslRequest(
        capabilities=Capability.PROTOCOL_41 | Capability.SSL, payload_max=1 << 24, character_set=45
    ).encode(),
    1,
)

# As MariaDB 10.11 and MySQL 9.7 say it.
BAD_HANDSHAKE = b"\2\xff\x13\x04#08S01Bad handshake"
ALERT = bytes.fromhex("15030300020216")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls") / "data"


@pytest.fixture(scope="module")
def port(mariadb_server: PrivateServer, data: Path) -> Iterator[ListeningPort]:
    """A port with TLS before a MariaDB without."""
    execute(
        mariadb_server,
        "CREATE USER tls_app@'%' IDENTIFIED BY 'secret'",
        "GRANT ALL ON *.* TO tls_app@'%'",
    )
    settings = {**ON, "login_timeout_s": 1.0}
    with ListeningPort(mariadb_server, data, gateway=settings) as listening:
        yield listening


def test_client_that_verifies(port: ListeningPort, data: Path) -> None:
    ca = data / "tls/ca.pem"
    with port.connect(**APP, ssl={"ca": str(ca)}) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT REPEAT('x', 1000000), CURRENT_USER()")
        assert cursor.fetchone() == ("x" * 1_000_000, "tls_app@%")
    with pytest.raises(pymysql.err.OperationalError, match="CERTIFICATE_VERIFY_FAILED"):
        port.connect(**APP, ssl={"ca": ssl.get_default_verify_paths().cafile or "", **ANY})
    done = subprocess.run(
        [
            *("mariadb", "--no-defaults", f"-h{HOST}", f"-P{port.port}", "-utls_app", "-psecret"),
            *(f"--ssl-ca={ca}", "--ssl-verify-server-cert", "-e", "status; SHOW BINLOGS"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Cipher in use is TLS_" in done.stdout


def test_plain_client_goes_on(port: ListeningPort) -> None:
    assert port.execute("SELECT 1", **APP, ssl_disabled=True) == ((1,),)


@pytest.mark.parametrize(
    "words, alert, told",
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"", b"Malformed communication packet"),
        (REQUEST + b"no TLS at all", b"", BAD_HANDSHAKE),
        (REQUEST + b"\x16\x03\x01\xff\xff", ALERT, BAD_HANDSHAKE),
        (REQUEST * 3, b"", BAD_HANDSHAKE),
    ],
    ids=["another protocol", "no TLS", "half a hello", "again and again"],
)
def test_whoever_breaks_tls_is_told_and_counted(
    port: ListeningPort, words: bytes, alert: bytes, told: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    before = port.logins[LoginOutcome.BROKEN]
    heard = b""
    with closing(socket.create_connection((HOST, port.port), timeout=20)) as client:
        client.recv(1 << 16)  # the greeting
        client.sendall(words)
        while data := client.recv(1 << 16):
            heard += data
    assert heard.startswith(alert)
    assert told in heard
    assert port.logins[LoginOutcome.BROKEN] == before + 1
    assert port.execute("SELECT 1", **APP, ssl=ANY) == ((1,),)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


@pytest.mark.parametrize(
    "words", [REQUEST, REQUEST + b"\x16\x03\x01\2\0\1"], ids=["silent", "half a hello"]
)
def test_handshake_that_is_not_finished_ends_in_time(port: ListeningPort, words: bytes) -> None:
    before = port.logins[LoginOutcome.TOO_LATE]
    with closing(socket.create_connection((HOST, port.port), timeout=20)) as client:
        client.recv(1 << 16)  # the greeting
        client.sendall(words)
        while client.recv(1 << 16):
            pass
    wait_until(lambda: port.logins[LoginOutcome.TOO_LATE] > before, what="it is counted")


def test_client_that_cuts_its_connection(port: ListeningPort) -> None:
    for cut in (socket.SHUT_WR, socket.SHUT_RDWR):
        connection = port.connect(**APP, ssl=ANY)
        connection._sock.shutdown(cut)  # type: ignore[attr-defined]  # without close_notify
        wait_until(
            lambda: (
                port.execute(
                    "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'tls_app'",
                    **APP,
                )
                == ((1,),)
            ),
            what="its session is over",
        )
        connection._force_close()  # type: ignore[attr-defined]  # as above


def test_tls_required(mariadb_server: PrivateServer, tmp_path: Path, port: ListeningPort) -> None:
    required = {"tls": TlsMode.REQUIRED}
    with ListeningPort(mariadb_server, tmp_path / "data", gateway=required) as listening:
        with pytest.raises(pymysql.err.OperationalError) as caught:
            listening.connect(**APP, ssl_disabled=True)
        assert caught.value.args[0] == 3159
        assert listening.execute("SELECT 1", **APP, ssl=ANY) == ((1,),)


def test_source_is_told_the_clients_address(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start("proxied", ("--log-bin=binlog", "--proxy-protocol-networks=127.0.0.1"))
    execute(source, "CREATE USER far@'127.0.0.9'")
    proxied = {**ON, "source_proxy_protocol": True}
    with ListeningPort(source, tmp_path / "data", gateway=proxied) as listening:
        options = {"user": "far", "bind_address": "127.0.0.9", "ssl": ANY}
        assert listening.execute("SELECT CURRENT_USER()", **options) == (("far@127.0.0.9",),)
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            listening.connect(user="far")


def cipher(listening: ListeningPort, **options: object) -> str:
    """Of the source's half."""
    return str(listening.execute("SHOW STATUS LIKE 'Ssl_cipher'", **APP, **options)[0][1])


@pytest.mark.parametrize("has_tls", [True, False])
def test_mysql(servers: ServerFactory, tmp_path: Path, *, has_tls: bool) -> None:
    options = MYSQL_SOURCE_OPTIONS if has_tls else (*MYSQL_SOURCE_OPTIONS, "--tls-version=")
    source = servers.start_mysql("source", *options)
    execute(
        source,
        "CREATE USER tls_app@'%' IDENTIFIED BY 'secret'",
        "GRANT ALL ON *.* TO tls_app@'%'",
    )
    with ListeningPort(source, tmp_path / "data", gateway=ON) as listening:
        # The first login has to show the password, the next one a proof.
        for _ in range(2):
            assert bool(cipher(listening, ssl=ANY)) is has_tls
        execute(source, "FLUSH PRIVILEGES")
        assert not cipher(listening, ssl_disabled=True)
        with pytest.raises(pymysql.err.OperationalError, match="1045"):
            listening.connect(user="tls_app", password="wrong", ssl=ANY)
    if not has_tls:
        return
    by_tls = {**ON, "source_ssl_mode": SslMode.REQUIRED}
    with ListeningPort(source, tmp_path / "by_tls", gateway=by_tls) as listening:
        execute(source, "FLUSH PRIVILEGES")
        with pytest.raises(pymysql.err.OperationalError, match="needs a client with TLS"):
            listening.connect(**APP, ssl_disabled=True)
        assert cipher(listening, ssl=ANY)
        assert cipher(listening, ssl_disabled=True)
    verified = {**by_tls, "source_ssl_mode": SslMode.VERIFY_CA}
    with (
        ListeningPort(source, tmp_path / "verified", gateway=verified) as listening,
        pytest.raises(pymysql.err.OperationalError, match="not trusted"),
    ):
        listening.connect(**APP, ssl=ANY)
    trusted = {**verified, "source_ssl_ca": str(source.data_directory / "ca.pem")}
    with ListeningPort(source, tmp_path / "trusted", gateway=trusted) as listening:
        assert cipher(listening, ssl=ANY)


@pytest.mark.parametrize(
    "place", ["SOURCE_AUTO_POSITION=1", "SOURCE_LOG_FILE='all.000001', SOURCE_LOG_POS=4"]
)
def test_mysql_replica_by_its_defaults(servers: ServerFactory, tmp_path: Path, place: str) -> None:
    source = servers.start_mysql("source")
    execute(
        source,
        "CREATE USER replica@'%' IDENTIFIED BY 'secret'",
        "GRANT REPLICATION SLAVE ON *.* TO replica@'%'",
    )
    replica = servers.start_mysql("replica", "--server-id=20")
    with ListeningPort(source, tmp_path / "data", gateway=ON) as listening:
        listening.execute("CREATE BINLOG 'all'")
        ((done,),) = execute(source, "SELECT @@GLOBAL.gtid_executed")
        execute(
            source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "INSERT INTO d.t VALUES (7)"
        )
        execute(
            replica,
            "RESET BINARY LOGS AND GTIDS",
            f"SET GLOBAL gtid_purged = '{done}'",
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{HOST}', SOURCE_PORT={listening.port},"
            f" SOURCE_USER='replica', SOURCE_PASSWORD='secret', {place}",
            "START REPLICA",
        )

        def has_row() -> bool:
            try:
                return execute(replica, "SELECT a FROM d.t") == ((7,),)
            except pymysql.err.MySQLError:
                return False

        wait_until(has_row, what="the replica has the row")
        assert [each.is_tls for each in listening.statements.dumps.replicas.values()] == [True]
        execute(replica, "STOP REPLICA")


@pytest.mark.parametrize(
    "place", ["MASTER_USE_GTID=slave_pos", "MASTER_LOG_FILE='all.000001', MASTER_LOG_POS=4"]
)
def test_mariadb118_replica_by_its_defaults(
    servers: ServerFactory, tmp_path: Path, place: str
) -> None:
    program = mariadb118_program()
    if program is None:
        pytest.skip("BINLANE_MARIADB118 names no MariaDB 11.8")
    source = servers.start("source")
    execute(
        source,
        "CREATE USER replica@'%' IDENTIFIED BY 'secret'",
        "GRANT REPLICATION SLAVE ON *.* TO replica@'%'",
    )
    replica = servers.start("replica", ("--server-id=20",), program=program)
    with ListeningPort(source, tmp_path / "data", gateway=ON) as listening:
        listening.execute("CREATE BINLOG 'all'")
        ((begin,),) = execute(source, "SELECT @@GLOBAL.gtid_binlog_pos")
        execute(
            source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "INSERT INTO d.t VALUES (7)"
        )
        execute(
            replica,
            f"SET GLOBAL gtid_slave_pos = '{begin}'",
            f"CHANGE MASTER TO MASTER_HOST='{HOST}', MASTER_PORT={listening.port},"
            f" MASTER_USER='replica', MASTER_PASSWORD='secret', {place}",
            "START SLAVE",
        )

        def has_row() -> bool:
            try:
                return execute(replica, "SELECT a FROM d.t") == ((7,),)
            except pymysql.err.MySQLError:
                return False

        wait_until(has_row, what="the replica has the row")
        assert [each.is_tls for each in listening.statements.dumps.replicas.values()] == [True]
        execute(replica, "STOP SLAVE")
