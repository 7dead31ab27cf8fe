"""Who may connect but not log in, and what they cannot do: end `serve`, or keep others out."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pymysql
import pytest

from binlane.live.gateway.settings import GatewaySettings
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.log.codec.packets.flags import Capability, Command
from binlane.log.codec.packets.framing import frame
from binlane.log.codec.packets.handshake import HandshakeResponse, SslRequest
from tests.serve_process import ServeProcess, create_account, wait_until
from tests.servers import ServerFactory, execute

CONNECT_ERRORS_MAX = 5
DESCRIPTORS = 1024
OPTIONS = (*SOURCE_OPTIONS, "--bind-address=0.0.0.0", f"--max-connect-errors={CONNECT_ERRORS_MAX}")


def own_address() -> str:
    """An address of this machine by which servers count connection errors; loopback if none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # sends nothing
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


@pytest.fixture(scope="module")
def source(server_directory: Path) -> Iterator[PrivateServer]:
    with PrivateServer.start(server_directory, name="strangers", options=OPTIONS) as server:
        create_account(server)
        yield server


@pytest.fixture(scope="module")
def serve(
    source: PrivateServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    with ServeProcess(
        tmp_path_factory.mktemp("strangers"),
        source,
        extra="[http]\nport = 0\n",
        source_host=own_address(),
        prefix=("prlimit", f"--nofile={DESCRIPTORS}"),
    ) as process:
        process.execute("CREATE BINLOG 'b'")
        yield process


def stranger(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes(8))
    return connection


def greeted(port: int) -> socket.socket:
    """One that the source has greeted."""
    connection = stranger(port)
    assert connection.recv(1), "no greeting"
    return connection


def is_closed_by_server(connection: socket.socket) -> bool:
    """Read to the end, which has to come."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def threads_connected(source: PrivateServer) -> int:
    return int(execute(source, "SHOW STATUS LIKE 'Threads_connected'")[0][1])


def goes_on(serve: ServeProcess, source: PrivateServer) -> None:
    """See that logins, capture, new files and the HTTP port work."""
    serve.execute("FLUSH BINARY LOGS 'b'")
    execute(source, "CREATE OR REPLACE DATABASE going_on")
    serve.wait_until_complete("b")
    assert serve.get("/healthz") == (200, "ok\n")
    assert "Traceback" not in serve.log


def test_half_open_logins_keep_nobody_out(serve: ServeProcess, source: PrivateServer) -> None:
    with ExitStack() as stack:
        for _ in range(500):
            stack.enter_context(closing(stranger(serve.port)))
        goes_on(serve, source)
        assert threads_connected(source) < GatewaySettings().logins_max + 10
    goes_on(serve, source)
    assert serve.log.count("no login") < 5


def test_connections_that_end_before_a_login_do_not_lock_binlane_out(
    serve: ServeProcess, source: PrivateServer
) -> None:
    for number in range(4 * CONNECT_ERRORS_MAX):
        with closing(stranger(serve.port)) as connection:
            if number % 2:
                connection.recv(1)
    goes_on(serve, source)
    # What the source says to a host that it has locked out comes in place of its greeting.
    with closing(greeted(serve.port)) as connection:
        assert connection.recv(4)[3:] == b"\x0a"


@pytest.mark.skipif(own_address() == "127.0.0.1", reason="only a loopback address is here")
def test_the_source_would_lock_out_a_host_that_sends_such_connections(
    servers: ServerFactory,
) -> None:
    """What the test above tries is real."""
    server = servers.start("source", OPTIONS)
    for _ in range(2 * CONNECT_ERRORS_MAX):
        with closing(socket.create_connection((own_address(), server.port))) as connection:
            connection.recv(1)

    def is_locked_out() -> bool:
        with closing(socket.create_connection((own_address(), server.port))) as connection:
            return connection.recv(5)[4] == 0xFF

    wait_until(is_locked_out)


def test_unfinished_http_requests_keep_nobody_out(
    serve: ServeProcess, source: PrivateServer
) -> None:
    with ExitStack() as stack:
        for _ in range(1_100):
            connection = stack.enter_context(closing(stranger(serve.http_port)))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        goes_on(serve, source)
    goes_on(serve, source)


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"POST /healthz HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 5000,
        b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n",
        b"GET /healthz HTTP/1.1\r\n"
        + b"".join(b"X-%d: y\r\n" % n for n in range(20_000))
        + b"\r\n",
        bytes(range(256)) * 100,
    ],
    ids=["empty", "version", "long", "body", "chunks", "headers", "garbage"],
)
def test_hostile_http_requests(
    serve: ServeProcess, source: PrivateServer, request_bytes: bytes
) -> None:
    with closing(stranger(serve.http_port)) as connection:
        with suppress(OSError):  # serve may have closed it before
            connection.sendall(request_bytes)
            connection.shutdown(socket.SHUT_WR)
        assert is_closed_by_server(connection)
    assert serve.get("/healthz") == (200, "ok\n")
    assert "Traceback" not in serve.log


def login(user: str, *, capabilities: Capability, size: int = 0) -> bytes:
    head = SslRequest(capabilities=capabilities, payload_max=1 << 24, character_set=33)
    return HandshakeResponse(
        head=head, user=user, auth_response=bytes(20), plugin="x" * size
    ).encode()


CAPABILITIES = (
    Capability.PROTOCOL_41
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.LONG_PASSWORD
)


def hostile_logins() -> Iterator[bytes]:
    chance = random.Random(11)
    yield b"\x00"
    yield b"\xff\xff\xff\x01"
    yield b"\xff\xff\xff\x01" + b"A" * 200_000
    yield frame(b"", 1)
    yield frame(b"", 1) * 50
    yield frame(login("u", capabilities=CAPABILITIES)[:7], 1)
    yield frame(login("u", capabilities=CAPABILITIES), 77)
    yield frame(login("u" * 60_000, capabilities=CAPABILITIES), 1)
    yield frame(login("u\nINFO forged: line", capabilities=CAPABILITIES), 1)
    yield frame(login("u", capabilities=CAPABILITIES, size=130_000), 1)
    yield frame(login("u", capabilities=CAPABILITIES | Capability.SSL), 1)
    yield frame(login("u", capabilities=CAPABILITIES | Capability.CONNECT_ATTRS) + b"\xfe" * 9, 1)
    yield b"GET / HTTP/1.1\r\n\r\n"
    for length in (1, 2, 3, 4, 5, 31, 32, 33, 64, 1000, 70_000):
        yield chance.randbytes(length)
        yield frame(chance.randbytes(length), 1)


def test_hostile_logins(serve: ServeProcess, source: PrivateServer) -> None:
    for data in hostile_logins():
        with closing(greeted(serve.port)) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it is closed already
            assert is_closed_by_server(connection)
    goes_on(serve, source)
    assert not any(line.startswith("INFO forged") for line in serve.log.splitlines())


def hostile_commands() -> Iterator[bytes]:
    chance = random.Random(12)
    yield frame(b"", 0)
    yield b"\xff\xff\xff\x00\x03SELECT 1"
    for command in Command:
        for length in (0, 1, 17):
            yield frame(bytes((command,)) + chance.randbytes(length), 0)
    yield from (frame(bytes((unknown,)), 0) for unknown in (0x2A, 0x64, 0xFA, 0xFE, 0xFF))
    for text in (b"CREATE BINLOG '\xff\xfe\x00'", b"SHOW BINLOGS " + b"(" * 100_000, b"/*!" * 5000):
        yield frame(bytes((Command.QUERY,)) + text, 0)


def test_hostile_commands(serve: ServeProcess, source: PrivateServer) -> None:
    execute(source, "CREATE OR REPLACE USER plain@'%' IDENTIFIED BY 'p'")
    for data in hostile_commands():
        with serve.connect("plain", "p") as session:
            connection = session._sock  # type: ignore[attr-defined]  # its raw bytes
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            assert is_closed_by_server(connection)
    goes_on(serve, source)


def test_more_sessions_than_allowed_get_the_servers_error(
    source: PrivateServer, tmp_path: Path
) -> None:
    listen = "max_connections = 3\nconnect_timeout = 1\n"
    with ServeProcess(tmp_path / "serve", source, listen=listen) as serve, ExitStack() as stack:
        wait_until(lambda: "connected to" in serve.log)
        sessions = [serve.connect() for _ in range(3)]
        stack.callback(sessions[2].close)
        with pytest.raises(pymysql.err.OperationalError) as refused:
            serve.connect()
        assert refused.value.args == (1040, "Too many connections")
        sessions[0].close()

        def can_log_in() -> bool:
            try:
                serve.connect().close()
            except pymysql.err.OperationalError as error:
                assert error.args[0] == 1040  # noqa: PT017  # the source has yet to see the end
                return False
            return True

        wait_until(can_log_in)
        sessions[1].close()

        def is_sent_away_for_its_silence() -> bool:
            with closing(stranger(serve.port)) as silent:
                assert is_closed_by_server(silent)
            return "no login in 1 s" in serve.log

        wait_until(is_sent_away_for_its_silence)
        assert serve.stop() == 0


def test_few_descriptors_mean_few_sessions(source: PrivateServer, tmp_path: Path) -> None:
    prefix = ("prlimit", "--nofile=128")
    with ServeProcess(tmp_path / "serve", source, prefix=prefix) as serve, ExitStack() as stack:
        assert "128 open files are allowed: max_connections is 10, not 100" in serve.log
        for _ in range(200):
            stack.enter_context(closing(stranger(serve.port)))
        serve.execute("CREATE BINLOG 'b'", *["FLUSH BINARY LOGS 'b'"] * 5)
        assert serve.stop() == 0
