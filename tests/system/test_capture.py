"""Capture from real servers of both flavors: starts, cuts, restarts, refusals, other histories."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from binlane.client.settings import ServerUrl
from binlane.errors import BinlaneError, ConfigError, PeerError
from binlane.live.capture.capture import Capture, is_transient
from binlane.live.capture.identity import SourceIdentity
from binlane.live.capture.settings import SourceSettings, Start, StartAt
from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB
from binlane.log.codec.rows import RowsEvent
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.raw import LargeGroup, RawRun
from binlane.log.grouping.walk import walk
from binlane.positions import FilePosition, GtidPosition, GtidSet, MysqlGtid, parse_position
from tests.certificates import make_certificate
from tests.servers import ServerFactory, connect, execute, mysql_program, purge_before

TIMEOUT_S = 30.0
BIG = 17 << 20
SERVER_ID = 4711
FLAVORS = ["mariadb", "mysql"]
Position = GtidPosition | GtidSet


def settings_for(
    server: PrivateServer, *, url: str | None = None, password: str = ""
) -> SourceSettings:
    return SourceSettings(
        url=ServerUrl.parse(url or server.url),
        password=password,
        heartbeat_period_s=0.5,
        timeout_s=TIMEOUT_S,
    )


def is_mysql(server: PrivateServer) -> bool:
    return server.url.startswith("mysql:")


def position_of(server: PrivateServer) -> Position:
    variable = "gtid_executed" if is_mysql(server) else "gtid_binlog_pos"
    ((text,),) = execute(server, f"SELECT @@global.{variable}")
    return parse_position(text, "mysql" if is_mysql(server) else "mariadb")


def position_at(server: PrivateServer, sequence: int) -> Position:
    """All of a server's own up to a number."""
    if not is_mysql(server):
        return GtidPosition.parse(f"0-1-{sequence}")
    ((uuid,),) = execute(server, "SELECT @@server_uuid")
    return GtidSet.parse(f"{uuid}:1-{sequence}")


def capture_of(
    server: PrivateServer,
    spill: Path,
    start: Start = StartAt.OLDEST,
    *,
    settings: SourceSettings | None = None,
    identity: SourceIdentity | None = None,
    uses_kernels: bool = True,
) -> Capture:
    return Capture(
        settings or settings_for(server),
        start,
        spill=spill,
        server_id=SERVER_ID,
        identity=identity,
        uses_kernels=uses_kernels,
    )


def decoded(item: RawRun | EventGroup | LargeGroup) -> list[EventGroup]:
    if isinstance(item, RawRun):
        return [item.group(number) for number in range(item.count)]
    if isinstance(item, LargeGroup):
        return list(group_events(item.events(), file=item.file))
    return [item]


def read_until(
    capture: Capture,
    end: Position,
    *,
    between: Callable[[list[EventGroup]], None] | None = None,
    failures: list[BaseException] | None = None,
) -> list[EventGroup]:
    """All groups up to `end`; connects again where that helps, and notes why in `failures`."""
    groups: list[EventGroup] = []
    deadline_s = time.monotonic() + TIMEOUT_S
    with closing(capture):
        while time.monotonic() < deadline_s:
            try:
                if not capture.is_connected:
                    capture.connect()
                with selectors.DefaultSelector() as selector:
                    selector.register(capture, selectors.EVENT_READ)
                    selector.select(0.2)
                for item in capture.receive():
                    groups += decoded(item)
                if capture.is_silent:
                    raise TimeoutError("the source was silent")
            except (BinlaneError, OSError) as error:
                if failures is None or not is_transient(error):
                    raise
                failures.append(error)
                capture.close()
                time.sleep(0.02)
                continue
            if between is not None:
                between(groups)
            if capture.position is not None and capture.position.includes(end):
                return groups
    raise AssertionError(f"{end} did not come, but {capture.position}")


def gtids(groups: list[EventGroup]) -> list[str]:
    return [str(group.gtid) for group in groups if group.gtid is not None]


def numbers(groups: list[EventGroup]) -> list[int]:
    """The sequences of the groups."""
    return [group.gtid.sequence for group in groups if group.gtid is not None]


def groups_of_files(server: PrivateServer) -> Iterator[EventGroup]:
    index = (server.data_directory / "binlog.index").read_text().split()
    for name in index:
        data = (server.data_directory / name).read_bytes()
        file = Path(name).name
        yield from group_events(walk([data], file=file), file=file)


RESET = {"mariadb": "RESET MASTER", "mysql": "RESET BINARY LOGS AND GTIDS"}


def reset(server: PrivateServer) -> None:
    execute(server, RESET["mysql" if is_mysql(server) else "mariadb"])


@pytest.fixture(scope="module", params=FLAVORS)
def own(request: pytest.FixtureRequest, server_directory: Path) -> Iterator[PrivateServer]:
    """A source of either flavor that only the tests here use."""
    is_mariadb = request.param == "mariadb"
    with PrivateServer.start(
        server_directory,
        name=f"capture-{request.param}",
        options=SOURCE_OPTIONS if is_mariadb else MYSQL_SOURCE_OPTIONS,
        program=MARIADB if is_mariadb else mysql_program(),
    ) as server:
        yield server


@pytest.fixture
def source(own: PrivateServer) -> Iterator[PrivateServer]:
    """It, with a log that begins."""
    execute(own, "DROP DATABASE IF EXISTS shop")
    reset(own)
    try:
        yield own
    finally:
        if not own.is_running:
            own.restart()


@pytest.fixture
def shop(source: PrivateServer) -> PrivateServer:
    """A source with a table and a few transactions, over two files."""
    execute(
        source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGBLOB)",
        "INSERT INTO shop.t (v) VALUES ('a'), ('b')",
        "FLUSH BINARY LOGS",
        "UPDATE shop.t SET v = 'c'",
        "DELETE FROM shop.t WHERE id = 2",
    )
    return source


def insert(server: PrivateServer, count: int = 1) -> None:
    execute(server, *["INSERT INTO shop.t (v) VALUES ('x')"] * count)


@pytest.mark.parametrize("uses_kernels", [True, False])
def test_everything_from_the_oldest_file_on_is_what_the_files_hold(
    shop: PrivateServer, tmp_path: Path, *, uses_kernels: bool
) -> None:
    capture = capture_of(shop, tmp_path, uses_kernels=uses_kernels)
    groups = read_until(capture, position_of(shop))
    assert [
        (group.file, group.position, [event.raw for event in group.events])
        for group in groups
        if group.gtid
    ] == [
        (group.file, group.position, [event.raw for event in group.events])
        for group in groups_of_files(shop)
        if group.gtid
    ]
    heads = [(group.file, group.position) for group in groups if group.is_control]
    assert heads == [("binlog.000001", 4), ("binlog.000002", 4)] or is_mysql(shop)
    assert numbers(groups) == [1, 2, 3, 4, 5]


def test_whatever_mysql_logs_of_rows(servers: ServerFactory, tmp_path: Path) -> None:
    server = servers.start_mysql("source", "--binlog-rows-query-log-events=ON")
    document = '{"a": 1, "b": "' + 40 * "x" + '"}'
    with connect(server) as connection, connection.cursor() as cursor:
        for statement in (
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT, j JSON)",
            f"INSERT INTO shop.t (v, j) VALUES ('a', '{document}')",
            "SET binlog_row_value_options = PARTIAL_JSON",
            "UPDATE shop.t SET j = JSON_SET(j, '$.a', 2)",
            "SET binlog_transaction_compression = ON",
            "INSERT INTO shop.t (v) VALUES (REPEAT('b', 5000))",
            "SET binlog_transaction_compression = OFF",
            "SET gtid_next = 'AUTOMATIC:tag_1'",
            *["INSERT INTO shop.t (v) VALUES ('tagged')"] * 12,
            "SET gtid_next = AUTOMATIC",
            "XA START 'x1'",
            "INSERT INTO shop.t (v) VALUES ('xa')",
            "XA END 'x1'",
            "XA PREPARE 'x1'",
            "XA COMMIT 'x1'",
        ):
            cursor.execute(statement)
    in_files = [group for group in groups_of_files(server) if group.gtid]
    kinds = {event.header.type_name for group in in_files for event in group.events}
    assert {
        "GTID_TAGGED_LOG",
        "PARTIAL_UPDATE_ROWS",
        "ROWS_QUERY",
        "TRANSACTION_PAYLOAD",
        "XA_PREPARE_LOG",
    } <= kinds
    end = position_of(server)
    assert isinstance(end, GtidSet)
    assert {run.tag for run in end.runs} == {"", "tag_1"}
    for start, given in ((StartAt.OLDEST, in_files), (middle_of(in_files), in_files[8:])):
        for uses_kernels in (True, False):
            capture = capture_of(server, tmp_path, start, uses_kernels=uses_kernels)
            groups = read_until(capture, end)
            assert [
                (group.position, [event.raw for event in group.events])
                for group in groups
                if group.gtid
            ] == [(group.position, [event.raw for event in group.events]) for group in given]
            assert capture.position == end


def middle_of(groups: list[EventGroup]) -> GtidSet:
    """The first eight, the tagged ones among them."""
    return GtidSet.of(group.gtid for group in groups[:8] if isinstance(group.gtid, MysqlGtid))


def second_file(server: PrivateServer) -> str:
    return (server.data_directory / "binlog.index").read_text().split()[-1].removeprefix("./")


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("position", [4, 5, 6]),
        ("file", [4, 5, 6]),
        ("inside", [5, 6]),
        ("now", [6]),
        ("oldest", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_a_capture_begins_where_it_is_told(
    shop: PrivateServer, tmp_path: Path, start: str, expected: list[int]
) -> None:
    file = second_file(shop)
    place = next(
        group.next_position for group in groups_of_files(shop) if group.gtid and group.file == file
    )
    starts: dict[str, Start] = {
        "position": position_at(shop, 3),
        "file": FilePosition(file, 4),
        "inside": FilePosition(file, place),
        "now": StartAt.NOW,
        "oldest": StartAt.OLDEST,
    }
    capture = capture_of(shop, tmp_path, starts[start])
    capture.connect()
    insert(shop)
    assert numbers(read_until(capture, position_at(shop, 6))) == expected
    assert capture.file_position is not None
    assert capture.file_position.file == file


@pytest.mark.parametrize("place", [FilePosition("binlog.000099", 4)])
def test_a_place_that_the_source_has_not(
    shop: PrivateServer, tmp_path: Path, place: FilePosition
) -> None:
    with pytest.raises(ConfigError, match="no position") as caught:
        capture_of(shop, tmp_path, place).connect()
    assert caught.value.key == "source.start"
    assert not is_transient(caught.value)


def test_rotation_in_mid_stream(shop: PrivateServer, tmp_path: Path) -> None:
    capture = capture_of(shop, tmp_path, position_of(shop))
    steps = iter(["FLUSH BINARY LOGS", "INSERT INTO shop.t (v) VALUES ('e')"])

    def next_step(groups: list[EventGroup]) -> None:
        statement = next(steps, None)
        if statement is not None:
            execute(shop, statement)

    groups = read_until(capture, position_at(shop, 6), between=next_step)
    third = second_file(shop)
    assert [(group.file, number) for group, number in zip(groups[-1:], [6], strict=True)] == [
        (third, 6)
    ]
    assert numbers(groups) == [6]
    assert groups[-1].file == third
    heads = [group for group in groups if group.events[0].header.type_name == "FORMAT_DESCRIPTION"]
    assert len({group.file for group in heads}) == 2


def test_a_row_of_more_than_one_packet(servers: ServerFactory, tmp_path: Path) -> None:
    server = servers.start(
        "source", [*SOURCE_OPTIONS, "--max-allowed-packet=64M", "--innodb-log-file-size=256M"]
    )
    execute(
        server,
        "CREATE TABLE mysql.big (id INT PRIMARY KEY, v LONGBLOB)",
        f"INSERT INTO mysql.big VALUES (1, REPEAT('x', {BIG}))",
        "INSERT INTO mysql.big VALUES (2, 'small')",
    )
    *_, big, small = read_until(capture_of(server, tmp_path), position_of(server))
    (rows,) = (event.body for event in big.events if isinstance(event.body, RowsEvent))
    assert rows.images.count(b"x") == BIG
    assert small.position == big.next_position


def test_a_transaction_that_is_too_large_to_be_held(source: PrivateServer, tmp_path: Path) -> None:
    execute(
        source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGBLOB)",
        "BEGIN",
        *["INSERT INTO shop.t (v) VALUES (REPEAT('x', 400000))"] * 100,
        "COMMIT",
    )
    insert(source)
    capture = capture_of(source, tmp_path)
    large: list[tuple[int, int]] = []
    end = position_of(source)
    with closing(capture):
        capture.connect()
        while capture.position is None or not capture.position.includes(end):
            for item in capture.receive():
                if isinstance(item, LargeGroup):
                    (path,) = tmp_path.iterdir()
                    (group,) = decoded(item)
                    assert item.end == group.next_position
                    assert path.stat().st_size == group.size_bytes
                    large.append((group.size_bytes, len(group.events)))
    assert len(large) == 1
    assert large[0][0] > 32 << 20
    assert list(tmp_path.iterdir()) == []


# Connections that end.

Relay = Callable[[socket.socket, socket.socket], None]


def pass_on(source: socket.socket, target: socket.socket) -> None:
    while data := source.recv(1000):
        target.sendall(data)


def cut_after(size_bytes: int) -> Relay:
    """Pass on so many bytes, then end the connection."""

    def relay(source: socket.socket, target: socket.socket) -> None:
        left = size_bytes
        while left and (data := source.recv(min(left, 1000))):
            target.sendall(data)
            left -= len(data)

    return relay


def fall_silent(source: socket.socket, target: socket.socket) -> None:
    """Pass on long enough for a dump to begin, then keep the connection open and say nothing."""
    deadline_s = time.monotonic() + 1.0
    while (left_s := deadline_s - time.monotonic()) > 0:
        source.settimeout(left_s)
        with suppress(TimeoutError):
            target.sendall(source.recv(1000))
    time.sleep(4)


@contextmanager
def proxy(port: int, relays: list[Relay]) -> Iterator[int]:
    """A port before `port` whose nth connection passes answers on by `relays[n]`, later ones all."""

    def run(relay: Relay, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            relay(one, other)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def serve(client: socket.socket, relay: Relay) -> None:
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            asking = threading.Thread(target=run, args=(pass_on, client, server))
            asking.start()
            run(relay, server, client)
            asking.join()

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            relay = relays.pop(0) if relays else pass_on
            threads.append(threading.Thread(target=serve, args=(client, relay)))
            threads[-1].start()

    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads.append(threading.Thread(target=accept))
        threads[0].start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


def behind(server: PrivateServer, port: int) -> SourceSettings:
    return settings_for(server, url=server.url.replace(str(server.port), str(port)))


def test_cut_connections_lose_and_double_nothing(shop: PrivateServer, tmp_path: Path) -> None:
    execute(shop, *(f"INSERT INTO shop.t (v) VALUES (REPEAT('{n}', 500))" for n in range(40)))
    end = position_of(shop)
    whole = read_until(capture_of(shop, tmp_path), end)
    sizes = (40, 700, 4000, 9001, 13_000, 14_000, 12_002, 17_500)
    failures: list[BaseException] = []
    with proxy(shop.port, [cut_after(size) for size in sizes]) as port:
        url = behind(shop, port).url.text + "?ssl-mode=DISABLED"
        capture = capture_of(shop, tmp_path, settings=settings_for(shop, url=url))
        groups = read_until(capture, end, failures=failures)
    assert [group for group in groups if group.gtid] == [group for group in whole if group.gtid]
    assert failures
    assert all("the server closed the connection" in str(failure) for failure in failures)


@pytest.mark.parametrize("is_crash", [False, True])
def test_a_source_that_restarts(shop: PrivateServer, tmp_path: Path, *, is_crash: bool) -> None:
    capture = capture_of(shop, tmp_path, position_at(shop, 4))
    failures: list[BaseException] = []
    restarted = False

    def restart(groups: list[EventGroup]) -> None:
        nonlocal restarted
        if gtids(groups) and not restarted:
            restarted = True
            if is_crash:
                shop.kill()
            shop.restart()
            insert(shop)

    groups = read_until(capture, position_at(shop, 6), between=restart, failures=failures)
    assert numbers(groups) == [5, 6]
    assert failures


def test_a_source_that_is_away_at_first_is_waited_for(shop: PrivateServer, tmp_path: Path) -> None:
    shop.stop()
    capture = capture_of(shop, tmp_path, GtidPosition.parse("0-1-4"))
    with pytest.raises(PeerError, match="cannot be reached: Connection refused") as caught:
        capture.connect()
    assert is_transient(caught.value)
    assert not capture.is_connected


def test_a_silent_source_is_dead(shop: PrivateServer, tmp_path: Path) -> None:
    """A connection that stays open and says nothing is given up, and another one is made."""
    failures: list[BaseException] = []
    with proxy(shop.port, [fall_silent]) as port:
        capture = capture_of(shop, tmp_path, position_of(shop), settings=behind(shop, port))
        inserted: list[int] = []

        def insert_later(groups: list[EventGroup]) -> None:
            del groups
            if failures and not inserted:
                inserted.append(1)
                insert(shop)

        groups = read_until(capture, position_at(shop, 6), between=insert_later, failures=failures)
    assert numbers(groups) == [6]
    assert isinstance(failures[0], TimeoutError)


# Accounts.


def account(server: PrivateServer, name: str, *grants: str) -> None:
    execute(server, f"CREATE USER {name}@'%' IDENTIFIED BY 'right'", *grants)


@pytest.fixture(params=FLAVORS)
def shared(request: pytest.FixtureRequest) -> PrivateServer:
    """A server of either flavor that the whole run shares."""
    server = request.getfixturevalue(f"{request.param}_server")
    assert isinstance(server, PrivateServer)
    return server


def test_a_wrong_password(shared: PrivateServer, tmp_path: Path) -> None:
    account(shared, "cap1")
    settings = settings_for(shared, url=shared.url.replace("root", "cap1"), password="wrong")
    with pytest.raises(PeerError) as caught:
        capture_of(shared, tmp_path, settings=settings).connect()
    assert caught.value.errno == 1045
    assert "password_file" in caught.value.hint
    assert not is_transient(caught.value)


def test_an_account_without_the_privilege(shared: PrivateServer, tmp_path: Path) -> None:
    account(shared, "cap2")
    password_file = tmp_path / "secret"
    password_file.write_text("right\n")
    settings = SourceSettings(
        url=ServerUrl.parse(shared.url.replace("root", "cap2")), password_file=password_file
    )
    with pytest.raises(ConfigError, match="cap2@% lacks REPLICATION SLAVE") as caught:
        capture_of(shared, tmp_path, settings=settings).connect()
    assert "GRANT REPLICATION SLAVE ON *.* TO 'cap2'@'%'" in caught.value.hint


@pytest.mark.parametrize(
    "name, place",
    [
        ("cap30", "localhost?socket=SOCKET"),
        ("cap31", "127.0.0.1:PORT"),
        ("cap32", "127.0.0.1:PORT?ssl-mode=DISABLED"),
    ],
)
def test_the_privilege_suffices_whatever_the_way(
    shared: PrivateServer, tmp_path: Path, name: str, place: str
) -> None:
    account(shared, name, f"GRANT REPLICATION SLAVE ON *.* TO {name}@'%'")
    where = place.replace("SOCKET", str(shared.socket_path)).replace("PORT", str(shared.port))
    url = f"{shared.url.partition(':')[0]}://{name}@{where}"
    end = position_of(shared)
    capture = capture_of(shared, tmp_path, settings=settings_for(shared, url=url, password="right"))
    assert read_until(capture, end)
    assert capture.position == end


def test_what_changes_between_two_connects_is_told(shared: PrivateServer, tmp_path: Path) -> None:
    """None of it ends anything: each is an error of `connect`, and is gone when it is mended."""
    account(shared, "cap4", "GRANT REPLICATION SLAVE ON *.* TO cap4@'%'")
    url = shared.url.replace("root", "cap4")
    settings = settings_for(shared, url=url, password="right")
    with closing(capture_of(shared, tmp_path, StartAt.NOW, settings=settings)) as capture:
        capture.connect()
        for wrong, message, mended in (
            ("ALTER USER cap4@'%' ACCOUNT LOCK", "locked", "ALTER USER cap4@'%' ACCOUNT UNLOCK"),
            (
                "REVOKE REPLICATION SLAVE ON *.* FROM cap4@'%'",
                "lacks REPLICATION SLAVE",
                "GRANT REPLICATION SLAVE ON *.* TO cap4@'%'",
            ),
            (
                "ALTER USER cap4@'%' IDENTIFIED BY 'other'",
                "Access denied",
                "ALTER USER cap4@'%' IDENTIFIED BY 'right'",
            ),
            (
                "SET GLOBAL binlog_format = MIXED",
                "binlog_format = MIXED",
                "SET GLOBAL binlog_format = ROW",
            ),
        ):
            execute(shared, wrong)
            try:
                with pytest.raises(BinlaneError, match=message) as caught:
                    capture.connect()
                assert not is_transient(caught.value)
            finally:
                execute(shared, mended)
            capture.connect()


def test_a_password_file_that_is_not_there(mariadb_server: PrivateServer, tmp_path: Path) -> None:
    settings = SourceSettings(
        url=ServerUrl(user="root", port=mariadb_server.port), password_file=tmp_path / "none"
    )
    with pytest.raises(ConfigError) as caught:
        capture_of(mariadb_server, tmp_path, settings=settings).connect()
    assert caught.value.key == "source.password_file"


# Sources that are other than they were.


def test_purged_files_are_told(shop: PrivateServer, tmp_path: Path) -> None:
    execute(shop, "FLUSH BINARY LOGS")
    purge_before(shop, second_file(shop))
    with pytest.raises(PeerError) as caught:
        read_until(capture_of(shop, tmp_path, position_at(shop, 1)), position_of(shop))
    if is_mysql(shop):
        assert "purged" in caught.value.message
        assert caught.value.phase == "position"
    else:
        assert (caught.value.errno, caught.value.phase) == (1236, "dump")
        assert "purged" in caught.value.hint
    assert not is_transient(caught.value)


def taken(server: PrivateServer, spill: Path) -> tuple[Position, SourceIdentity]:
    """The position and the identity after everything was taken."""
    capture = capture_of(server, spill)
    read_until(capture, position_of(server))
    assert capture.identity is not None
    assert isinstance(capture.position, GtidPosition | GtidSet)
    return capture.position, capture.identity


def test_a_source_that_was_reset_is_told(shop: PrivateServer, tmp_path: Path) -> None:
    position, identity = taken(shop, tmp_path)
    reset(shop)
    with pytest.raises(PeerError, match="not what it was") as caught:
        capture_of(shop, tmp_path, position, identity=identity).connect()
    assert caught.value.phase == "position"
    assert "START BINLOG 'name' FROM" in caught.value.hint


def test_a_source_that_was_reset_and_passed_what_was_taken_is_told(
    shop: PrivateServer, tmp_path: Path
) -> None:
    position, identity = taken(shop, tmp_path)
    time.sleep(1.1)  # files are told apart by their second
    reset(shop)
    insert(shop, 30)
    capture = capture_of(shop, tmp_path, position, identity=identity)
    with pytest.raises(PeerError, match=r"lacks binlog|another one than before"):
        capture.connect()
    # In the same file, too, and behind the place in it.
    execute(shop, "FLUSH BINARY LOGS")
    insert(shop, 60)
    with pytest.raises(PeerError, match="another one than before"):
        capture.connect()
    # It was wanted: another start, and nothing to remember.
    assert read_until(capture_of(shop, tmp_path), position_of(shop))


def test_the_same_source_is_gone_on_with(shop: PrivateServer, tmp_path: Path) -> None:
    position, identity = taken(shop, tmp_path)
    for change in (["FLUSH BINARY LOGS"], [], ["FLUSH BINARY LOGS"]):
        execute(shop, *change, "INSERT INTO shop.t (v) VALUES ('x')")
        capture = capture_of(shop, tmp_path, position, identity=identity)
        groups = read_until(capture, position_of(shop))
        assert len(gtids(groups)) == len(set(gtids(groups))) > 0
    # What was taken may be purged.
    purge_before(shop, second_file(shop))
    capture = capture_of(shop, tmp_path, position_of(shop), identity=identity)
    insert(shop)
    assert len(gtids(read_until(capture, position_of(shop)))) == 1


def test_an_older_copy_of_the_source_is_told(shop: PrivateServer, tmp_path: Path) -> None:
    identity_before = taken(shop, tmp_path)[1]
    file, end = second_file(shop), identity_before.file_position.position
    insert(shop, 10)
    position, identity = taken(shop, tmp_path)
    assert identity.created == identity_before.created
    # The copy's file ends where it was copied; its server began another one, and counts on.
    shop.stop()
    log = shop.data_directory / file
    log.write_bytes(log.read_bytes()[:end])
    shop.restart()
    with pytest.raises(PeerError, match="not what it was"):
        capture_of(shop, tmp_path, position, identity=identity).connect()
    insert(shop, 20)
    with pytest.raises(PeerError, match="not what it was"):
        capture_of(shop, tmp_path, position, identity=identity).connect()


def test_another_server_with_the_same_gtids_takes_over(
    servers: ServerFactory, tmp_path: Path
) -> None:
    old = servers.start("old")
    execute(old, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    position, identity = taken(old, tmp_path)
    options = [*SOURCE_OPTIONS, "--server-id=2", "--log-slave-updates=ON"]
    new = servers.start("new", options)
    execute(
        new,
        f"CHANGE MASTER TO master_host='127.0.0.1', master_port={old.port}, master_user='root', "
        "master_use_gtid=slave_pos",
        "START SLAVE",
        f"SELECT MASTER_GTID_WAIT('{position}', 20)",
        "STOP SLAVE",
        "INSERT INTO shop.t VALUES (1)",
    )
    capture = capture_of(new, tmp_path, position, identity=identity)
    assert gtids(read_until(capture, position_of(new))) == ["0-2-3"]
    # Another one that knows nothing of these GTIDs does not.
    stranger = servers.start("stranger", [*SOURCE_OPTIONS, "--server-id=3"])
    execute(stranger, *["CREATE DATABASE shop", "DROP DATABASE shop"] * 3)
    with pytest.raises(PeerError, match="0-1-2 is not in its log"):
        capture_of(stranger, tmp_path, position, identity=identity).connect()


def test_gtids_out_of_order_are_told(servers: ServerFactory, tmp_path: Path) -> None:
    options = [option for option in SOURCE_OPTIONS if "strict" not in option]
    server = servers.start("source", options)
    execute(
        server,
        "CREATE DATABASE shop",
        "CREATE DATABASE shop2",
        "SET gtid_seq_no = 1",
        "CREATE DATABASE shop3",
    )
    capture = capture_of(server, tmp_path)
    with pytest.raises(PeerError, match="0-1-1 comes after 0-1-2") as caught:
        read_until(capture, GtidPosition.parse("0-1-9"))
    assert "gtid_strict_mode=ON" in caught.value.hint
    assert str(capture.position) == "0-1-2"


# What sources may be.


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
    servers: ServerFactory, tmp_path: Path, options: list[str], key: str
) -> None:
    server = servers.start("source", options)
    with pytest.raises(ConfigError) as caught:
        capture_of(server, tmp_path).connect()
    assert caught.value.key == key


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_source_without_checksums(servers: ServerFactory, tmp_path: Path, flavor: str) -> None:
    """In the file that its start began, too, whose FORMAT_DESCRIPTION has a creation time."""
    option = "--binlog-checksum=NONE"
    server = (
        servers.start_mysql("source", option)
        if flavor == "mysql"
        else servers.start("source", [*SOURCE_OPTIONS, option])
    )
    execute(server, "CREATE DATABASE shop", "CREATE TABLE shop.t (v INT)")
    insert_one = "INSERT INTO shop.t VALUES (1)"
    for start in (StartAt.OLDEST, position_at(server, 1), StartAt.NOW):
        capture = capture_of(server, tmp_path, start)
        capture.connect()
        execute(server, insert_one)
        end = position_of(server)
        assert numbers(read_until(capture, end))
        assert capture.facts is not None
        assert [finding.key for finding in capture.facts.warnings()] == ["binlog_checksum"]
    execute(server, "SET GLOBAL binlog_checksum = CRC32", insert_one)
    assert numbers(read_until(capture_of(server, tmp_path), position_of(server)))


def test_tls(servers: ServerFactory, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "localhost")
    server = servers.start(
        "source", [*SOURCE_OPTIONS, f"--ssl-cert={certificate}", f"--ssl-key={key}"]
    )
    execute(
        server,
        "CREATE USER 'cap'@'%' IDENTIFIED BY 'right' REQUIRE SSL",
        "GRANT REPLICATION SLAVE ON *.* TO 'cap'@'%'",
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (v LONGBLOB)",
        *["INSERT INTO shop.t VALUES (REPEAT('x', 30000))"] * 20,
    )
    end = position_of(server)

    def capture_by(options: str) -> list[int]:
        url = f"mariadb://cap@{options}"
        settings = settings_for(server, url=url.replace("PORT", str(server.port)), password="right")
        return numbers(read_until(capture_of(server, tmp_path / "spill", settings=settings), end))

    for options in (
        "127.0.0.1:PORT",
        "127.0.0.1:PORT?ssl-mode=REQUIRED",
        f"127.0.0.1:PORT?ssl-mode=VERIFY_CA&ssl-ca={certificate}",
        f"localhost:PORT?ssl-mode=VERIFY_IDENTITY&ssl-ca={certificate}",
    ):
        assert capture_by(options) == list(range(1, 25))
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
