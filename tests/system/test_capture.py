"""Capture from real servers: starts, cuts, restarts, refusals."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from binlane.capture.settings import SourceSettings, Start, StartAt
from binlane.capture.transport import Capture
from binlane.client.settings import ServerUrl
from binlane.codec.rows import RowsEvent
from binlane.errors import ConfigError, PeerError
from binlane.grouping.event_group import EventGroup, group_events
from binlane.grouping.walk import walk
from binlane.positions import FilePosition, GtidPosition
from binlane.service.private_server import SOURCE_OPTIONS, PrivateServer
from tests.servers import ServerFactory, execute

TIMEOUT_S = 30.0
BIG = 17 << 20


def settings_for(
    server: PrivateServer, *, url: str | None = None, password: str = ""
) -> SourceSettings:
    return SourceSettings(
        url=ServerUrl.parse(url or server.url),
        password=password,
        heartbeat_period_s=0.5,
        timeout_s=TIMEOUT_S,
    )


def position_of(server: PrivateServer) -> GtidPosition:
    ((text,),) = execute(server, "SELECT @@gtid_binlog_pos")
    return GtidPosition.parse(text)


async def read_until(
    capture: Capture,
    end: GtidPosition,
    *,
    between: Callable[[list[EventGroup]], Awaitable[None]] | None = None,
) -> list[EventGroup]:
    """All groups up to `end`; `between` is called after each batch with what came so far."""
    groups: list[EventGroup] = []
    async with asyncio.timeout(TIMEOUT_S), aclosing(capture.batches()) as batches:
        async for batch in batches:
            assert batch
            groups += batch
            if between is not None:
                await between(groups)
            if capture.position is not None and capture.position.includes(end):
                return groups
    raise AssertionError("batches never end by themselves")


def capture_until(
    server: PrivateServer, end: GtidPosition, start: Start = StartAt.OLDEST
) -> list[EventGroup]:
    return asyncio.run(read_until(Capture(settings_for(server), start), end))


def gtids(groups: list[EventGroup]) -> list[str]:
    return [str(group.gtid) for group in groups if group.gtid is not None]


def groups_of_files(server: PrivateServer) -> Iterator[EventGroup]:
    index = (server.data_directory / "binlog.index").read_text().split()
    for name in index:
        data = (server.data_directory / name).read_bytes()
        file = Path(name).name
        yield from group_events(walk([data], file=file), file=file)


@pytest.fixture
def shop(servers: ServerFactory) -> PrivateServer:
    """A source with a table and a few transactions, over two files."""
    server = servers.start("source")
    execute(
        server,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGBLOB)",
        "INSERT INTO shop.t (v) VALUES ('a'), ('b')",
        "FLUSH BINARY LOGS",
        "UPDATE shop.t SET v = 'c'",
        "DELETE FROM shop.t WHERE id = 2",
    )
    return server


def test_everything_from_the_oldest_file_on_is_what_the_files_hold(shop: PrivateServer) -> None:
    captured = capture_until(shop, position_of(shop))
    in_files = list(groups_of_files(shop))
    # The file in use is marked so on disk only; the last checkpoint may come after the last group.
    assert [
        [(group.file, event.position, event.body) for event in group.events] for group in captured
    ] == [
        [(group.file, event.position, event.body) for event in group.events]
        for group in in_files[: len(captured)]
    ]
    assert gtids(captured) == [f"0-1-{sequence}" for sequence in range(1, 6)]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (GtidPosition.parse("0-1-3"), ["0-1-4", "0-1-5", "0-1-6"]),
        (FilePosition("binlog.000002", 4), ["0-1-4", "0-1-5", "0-1-6"]),
        (StartAt.NOW, ["0-1-6"]),
    ],
)
def test_a_capture_begins_where_it_is_told(
    shop: PrivateServer, start: Start, expected: list[str]
) -> None:
    async def scenario() -> list[EventGroup]:
        capture = Capture(settings_for(shop), start)
        inserted = False

        async def insert_once(groups: list[EventGroup]) -> None:
            nonlocal inserted
            if not inserted:
                inserted = True
                assert capture.is_connected
                assert capture.position is not None
                assert capture.format_description is not None
                await asyncio.to_thread(execute, shop, "INSERT INTO shop.t (v) VALUES ('d')")

        return await read_until(capture, GtidPosition.parse("0-1-6"), between=insert_once)

    assert gtids(asyncio.run(scenario())) == expected


def test_a_position_that_the_source_has_not(shop: PrivateServer) -> None:
    with pytest.raises(ConfigError, match="no position") as caught:
        capture_until(shop, GtidPosition(), FilePosition("binlog.000099", 4))
    assert caught.value.key == "source.start"


def test_rotation_in_mid_stream(shop: PrivateServer) -> None:
    async def scenario() -> list[EventGroup]:
        capture = Capture(settings_for(shop), position_of(shop))
        steps = iter(["FLUSH BINARY LOGS", "INSERT INTO shop.t (v) VALUES ('e')"])

        async def next_step(groups: list[EventGroup]) -> None:
            statement = next(steps, None)
            if statement is not None:
                await asyncio.to_thread(execute, shop, statement)

        return await read_until(capture, GtidPosition.parse("0-1-6"), between=next_step)

    groups = asyncio.run(scenario())
    assert [(group.file, str(group.gtid)) for group in groups if group.gtid] == [
        ("binlog.000003", "0-1-6")
    ]
    heads = [group for group in groups if group.events[0].header.type_name == "FORMAT_DESCRIPTION"]
    assert [group.file for group in heads] == ["binlog.000002", "binlog.000003"]


def test_a_row_of_more_than_one_packet(servers: ServerFactory) -> None:
    server = servers.start(
        "source", [*SOURCE_OPTIONS, "--max-allowed-packet=64M", "--innodb-log-file-size=256M"]
    )
    execute(
        server,
        "CREATE TABLE mysql.big (id INT PRIMARY KEY, v LONGBLOB)",
        f"INSERT INTO mysql.big VALUES (1, REPEAT('x', {BIG}))",
        "INSERT INTO mysql.big VALUES (2, 'small')",
    )
    *_, big, small = capture_until(server, position_of(server))
    (rows,) = (event.body for event in big.events if isinstance(event.body, RowsEvent))
    assert rows.images.count(b"x") == BIG
    assert small.position == big.next_position


Relay = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1000):
        writer.write(data)
        await writer.drain()


def cut_after(size_bytes: int) -> Relay:
    """Pass on so many bytes, then end the connection."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = size_bytes
        while left and (data := await reader.read(min(left, 1000))):
            writer.write(data)
            left -= len(data)
        await writer.drain()

    return relay


async def fall_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on long enough for a dump to begin, then keep the connection open and say nothing."""
    with suppress(TimeoutError):
        await asyncio.wait_for(pass_on(reader, writer), 1.0)
    await asyncio.Event().wait()


@asynccontextmanager
async def proxy(port: int, relays: list[Relay]) -> AsyncGenerator[int, None]:
    """A port before `port` whose nth connection passes answers on by `relays[n]`, later ones all."""
    handlers: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.update(filter(None, [asyncio.current_task()]))
        relay = relays.pop(0) if relays else pass_on
        source_reader, source_writer = await asyncio.open_connection("127.0.0.1", port)
        both = {
            asyncio.ensure_future(pass_on(reader, source_writer)),
            asyncio.ensure_future(relay(source_reader, writer)),
        }
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        source_writer.close()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*handlers)


async def logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    """Wait for a line of the log."""
    for _ in range(600):
        if any(text in record.getMessage() for record in caplog.records):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{text!r} was not logged")


def test_cut_connections_lose_and_double_nothing(
    shop: PrivateServer, caplog: pytest.LogCaptureFixture
) -> None:
    execute(shop, *(f"INSERT INTO shop.t (v) VALUES (REPEAT('{n}', 500))" for n in range(40)))
    end = position_of(shop)
    whole = capture_until(shop, end)
    relays = [cut_after(size) for size in (40, 700, 2500, 3000, 3700, 5001, 3002)]
    cuts = len(relays)

    async def scenario() -> list[EventGroup]:
        async with proxy(shop.port, relays) as port:
            settings = settings_for(shop, url=f"mariadb://root@127.0.0.1:{port}")
            return await read_until(Capture(settings, StartAt.OLDEST), end)

    groups = asyncio.run(scenario())
    assert [group for group in groups if group.gtid] == [group for group in whole if group.gtid]
    assert not relays
    retries = [
        record.getMessage() for record in caplog.records if "next try" in record.getMessage()
    ]
    assert len(retries) == cuts
    assert all("the source closed the connection" in line for line in retries)


@pytest.mark.parametrize("is_crash", [False, True])
def test_a_source_that_restarts(
    shop: PrivateServer, caplog: pytest.LogCaptureFixture, *, is_crash: bool
) -> None:
    async def scenario() -> list[EventGroup]:
        capture = Capture(settings_for(shop), GtidPosition.parse("0-1-4"))
        restarted = False

        async def restart(groups: list[EventGroup]) -> None:
            nonlocal restarted
            if gtids(groups) and not restarted:
                restarted = True
                if is_crash:
                    shop.kill()
                await asyncio.to_thread(shop.restart)
                await asyncio.to_thread(execute, shop, "INSERT INTO shop.t (v) VALUES ('f')")

        groups = await read_until(capture, GtidPosition.parse("0-1-6"), between=restart)
        assert capture.failure is None
        return groups

    with caplog.at_level(logging.INFO, logger="binlane.capture"):
        groups = asyncio.run(scenario())
    assert gtids(groups) == ["0-1-5", "0-1-6"]
    lines = [record.getMessage() for record in caplog.records]
    assert any("next try in" in line and "(attempt 1)" in line for line in lines)
    assert sum("connected to 10." in line for line in lines) == 2


def test_a_source_that_is_away_at_first_is_waited_for(
    shop: PrivateServer, caplog: pytest.LogCaptureFixture
) -> None:
    end = position_of(shop)
    shop.stop()

    async def scenario() -> list[EventGroup]:
        capture = Capture(settings_for(shop), GtidPosition.parse("0-1-4"))
        reading = asyncio.create_task(read_until(capture, end))
        await logged(caplog, "(attempt 3)")
        assert isinstance(capture.failure, ConnectionRefusedError)
        assert not capture.is_connected
        await asyncio.to_thread(shop.restart)
        return await reading

    assert gtids(asyncio.run(scenario())) == ["0-1-5"]


def test_a_silent_source_is_dead(shop: PrivateServer, caplog: pytest.LogCaptureFixture) -> None:
    """A connection that stays open and says nothing is given up, and another one is made."""
    end = GtidPosition.parse("0-1-6")

    async def scenario() -> list[EventGroup]:
        async with proxy(shop.port, [fall_silent]) as port:
            settings = settings_for(shop, url=f"mariadb://root@127.0.0.1:{port}")
            reading = asyncio.create_task(read_until(Capture(settings, StartAt.NOW), end))
            await logged(caplog, "was silent for")
            await asyncio.to_thread(execute, shop, "INSERT INTO shop.t (v) VALUES ('g')")
            return await reading

    assert gtids(asyncio.run(scenario())) == ["0-1-6"]


def test_a_wrong_password_is_not_tried_again(mariadb_server: PrivateServer) -> None:
    execute(mariadb_server, "CREATE USER 'cap1'@'%' IDENTIFIED BY 'right'")
    url = f"mariadb://cap1@127.0.0.1:{mariadb_server.port}"
    capture = Capture(settings_for(mariadb_server, url=url, password="wrong"))
    with pytest.raises(PeerError) as caught:
        asyncio.run(read_until(capture, GtidPosition()))
    assert caught.value.errno == 1045
    assert "password_file" in caught.value.hint


def test_an_account_without_the_privilege(mariadb_server: PrivateServer, tmp_path: Path) -> None:
    execute(mariadb_server, "CREATE USER 'cap2'@'%' IDENTIFIED BY 'right'")
    password_file = tmp_path / "secret"
    password_file.write_text("right\n")
    url = ServerUrl(user="cap2", port=mariadb_server.port)
    capture = Capture(SourceSettings(url=url, password_file=password_file))
    with pytest.raises(PeerError) as caught:
        asyncio.run(read_until(capture, GtidPosition()))
    assert caught.value.phase == "register"
    assert "REPLICATION SLAVE" in caught.value.hint


def test_the_privilege_suffices_also_over_the_socket(mariadb_server: PrivateServer) -> None:
    execute(
        mariadb_server,
        "CREATE USER 'cap3'@'%' IDENTIFIED BY 'right'",
        "GRANT REPLICATION SLAVE ON *.* TO 'cap3'@'%'",
        "CREATE DATABASE cap3",
    )
    url = f"mariadb://cap3@localhost?socket={mariadb_server.socket_path}"
    capture = Capture(settings_for(mariadb_server, url=url, password="right"), StartAt.OLDEST)
    end = position_of(mariadb_server)
    groups = asyncio.run(read_until(capture, end))
    assert gtids(groups)[-1] == str(end)


def test_a_password_file_that_is_not_there(mariadb_server: PrivateServer, tmp_path: Path) -> None:
    settings = SourceSettings(
        url=ServerUrl(user="root", port=mariadb_server.port), password_file=tmp_path / "none"
    )
    with pytest.raises(ConfigError) as caught:
        asyncio.run(read_until(Capture(settings), GtidPosition()))
    assert caught.value.key == "source.password_file"


def test_purged_files_are_told(shop: PrivateServer) -> None:
    execute(shop, "FLUSH BINARY LOGS", "PURGE BINARY LOGS TO 'binlog.000003'")
    with pytest.raises(PeerError) as caught:
        capture_until(shop, position_of(shop), GtidPosition.parse("0-1-1"))
    assert (caught.value.errno, caught.value.phase) == (1236, "dump")
    assert "purged" in caught.value.hint


@pytest.mark.parametrize(
    ("options", "key"),
    [
        (["--server-id=1"], "log_bin"),
        (["--log-bin", "--server-id=1", "--binlog-format=MIXED"], "binlog_format"),
        (
            ["--log-bin", "--server-id=1", "--binlog-format=ROW", "--binlog-row-image=MINIMAL"],
            "binlog_row_image",
        ),
    ],
)
def test_sources_that_cannot_be_the_ground_truth(
    servers: ServerFactory, options: list[str], key: str
) -> None:
    server = servers.start("source", options)
    with pytest.raises(ConfigError) as caught:
        capture_until(server, GtidPosition())
    assert caught.value.key == key


def test_a_source_without_names_in_its_log_is_warned_of(
    servers: ServerFactory, caplog: pytest.LogCaptureFixture
) -> None:
    server = servers.start("source", ["--log-bin=binlog", "--server-id=1", "--binlog-format=ROW"])
    execute(server, "CREATE DATABASE shop")
    assert gtids(capture_until(server, position_of(server))) == ["0-1-1"]
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "binlog_row_metadata = NO_LOG" in warnings[0].getMessage()


def make_certificate(directory: Path, host: str) -> tuple[Path, Path]:
    """A self-signed certificate for `host` and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, SHA256())
    )
    paths = directory / "cert.pem", directory / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths


def test_tls(servers: ServerFactory, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "localhost")
    server = servers.start(
        "source", [*SOURCE_OPTIONS, f"--ssl-cert={certificate}", f"--ssl-key={key}"]
    )
    execute(
        server,
        "CREATE USER 'cap'@'%' IDENTIFIED BY 'right' REQUIRE SSL",
        "GRANT REPLICATION SLAVE ON *.* TO 'cap'@'%'",
    )
    end = position_of(server)

    def capture_by(options: str) -> list[str]:
        url = f"mariadb://cap@{options}"
        settings = settings_for(server, url=url.replace("PORT", str(server.port)), password="right")
        return gtids(asyncio.run(read_until(Capture(settings, StartAt.OLDEST), end)))

    for options in (
        "127.0.0.1:PORT",
        "127.0.0.1:PORT?ssl-mode=REQUIRED",
        f"127.0.0.1:PORT?ssl-mode=VERIFY_CA&ssl-ca={certificate}",
        f"localhost:PORT?ssl-mode=VERIFY_IDENTITY&ssl-ca={certificate}",
    ):
        assert capture_by(options) == ["0-1-1", "0-1-2"]
    for options in (
        "localhost:PORT?ssl-mode=VERIFY_CA",
        f"127.0.0.1:PORT?ssl-mode=VERIFY_IDENTITY&ssl-ca={certificate}",
    ):
        with pytest.raises(PeerError, match="certificate is not trusted"):
            capture_by(options)
    with pytest.raises(PeerError) as denied:
        capture_by("127.0.0.1:PORT?ssl-mode=DISABLED")
    assert denied.value.errno == 1045
    with pytest.raises(ConfigError, match="TLS files"):
        capture_by("127.0.0.1:PORT?ssl-ca=/none.pem")
