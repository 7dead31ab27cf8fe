"""What concerns one binlog, or the source, stops what it concerns, and goes on once its cause is gone."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from binlane.binlogs.store.disk import DiskFile, LocalDisk
from binlane.binlogs.store.stored_groups import StoreReader, read_groups
from binlane.binlogs.store.verify import verify
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.control import IncidentEvent
from tests.listening import HOST, ListeningPort, wait_until
from tests.servers import ServerFactory, connect, execute, purge_before


class _File:
    def __init__(self, file: DiskFile, disk: FailingDisk, path: Path) -> None:
        self.truncate, self.close, self.mapped = file.truncate, file.close, file.mapped
        self._file, self._disk, self._path = file, disk, path

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        if len(data) > 1:  # the flag of a file in use needs no room
            self._disk.may("write", self._path)
        self._file.write_at(data, position)

    def sync(self) -> None:
        self._disk.may("sync", self._path)
        self._file.sync()


class FailingDisk(LocalDisk):
    """The local disk, of which one binlog's directory fails while it is told to.

    Attributes:
        failing: What fails, of which binlog, how; None while nothing does.
        answers: Cleared while it does not answer.
    """

    failing: tuple[str, str, int] | None = None

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.answers.set()

    def open(self, path: Path) -> DiskFile:  # type: ignore[override]  # a Disk all the same
        return _File(super().open(path), self, path)

    def may(self, what: str, path: Path) -> None:
        self.answers.wait()
        if self.failing is not None and self.failing[:2] == (what, path.parent.name):
            number = self.failing[2]
            raise OSError(number, os.strerror(number))


@pytest.fixture
def source(servers: ServerFactory) -> PrivateServer:
    server = servers.start("source")
    execute(
        server,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(40))",
    )
    return server


@pytest.fixture
def disk() -> FailingDisk:
    return FailingDisk()


@pytest.fixture
def port(source: PrivateServer, tmp_path: Path, disk: FailingDisk) -> Iterator[ListeningPort]:
    with ListeningPort(source, tmp_path / "data", disk=disk) as listening:
        yield listening
    assert list(verify([tmp_path / "data"])) == []


def insert(source: PrivateServer, count: int = 1) -> None:
    with connect(source) as session, session.cursor() as cursor:
        for _ in range(count):
            cursor.execute("INSERT INTO shop.t (v) VALUES ('x')")


def gtids(tmp_path: Path, name: str) -> list[str]:
    paths = [file.path for file in StoreReader(tmp_path / "data").files(name)]
    return [str(group.gtid) for group in read_groups(paths) if group.gtid is not None]


def complete(port: ListeningPort, *names: str) -> None:
    for name in names:
        wait_until(lambda: port.state(name) == "OPEN", what=f"{name} is open")  # noqa: B023
        port.execute(f"SHOW MASTER STATUS '{name}'")


def test_a_disk_that_does_not_answer_is_told(
    source: PrivateServer,
    port: ListeningPort,
    disk: FailingDisk,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("binlane.live.loop.binlogs.BUSY_S", 0.5)
    port.execute("CREATE BINLOG 'a'")
    complete(port, "a")
    assert port.binlogs.routing_problem == ""
    disk.answers.clear()
    try:
        insert(source)
        told = "the routing thread has been at one thing for "
        wait_until(lambda: port.binlogs.routing_problem.startswith(told), what="it is told")
    finally:
        disk.answers.set()
    complete(port, "a")
    assert port.binlogs.routing_problem == ""


@pytest.mark.parametrize("what", ["write", "sync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_stops_one_binlog_until_it_works_again(
    source: PrivateServer,
    port: ListeningPort,
    disk: FailingDisk,
    tmp_path: Path,
    what: str,
    number: int,
) -> None:
    port.execute("CREATE BINLOG 'bad'", "CREATE BINLOG 'good'")
    insert(source, 3)
    complete(port, "bad", "good")
    disk.failing = (what, "bad", number)
    insert(source, 3)
    wait_until(lambda: port.state("bad").startswith("STOPPED: "), what="it is stopped")
    assert os.strerror(number) in port.state("bad")
    insert(source, 3)
    complete(port, "good")
    assert len(gtids(tmp_path, "good")) == 9
    with pytest.raises(pymysql.MySQLError, match="not complete"):
        port.execute("SHOW MASTER STATUS 'bad'")
    disk.failing = None
    complete(port, "bad")
    insert(source)
    complete(port, "bad", "good")
    assert gtids(tmp_path, "bad") == gtids(tmp_path, "good")
    assert len(gtids(tmp_path, "bad")) == 10


def test_stop_binlog_is_remembered_and_start_binlog_catches_up(
    source: PrivateServer, tmp_path: Path
) -> None:
    with ListeningPort(source, tmp_path / "data") as port:
        port.execute("CREATE BINLOG 'a'", "CREATE BINLOG 'b'")
        insert(source, 2)
        complete(port, "a", "b")
        assert port.info("STOP BINLOG 'a'").startswith("stopped after GTID 0-1-")
        assert port.state("a") == "STOPPED: STOP BINLOG"
        insert(source, 2)
        complete(port, "b")
    with ListeningPort(source, tmp_path / "data") as port:
        insert(source, 2)
        complete(port, "b")
        assert port.state("a") == "STOPPED: STOP BINLOG"
        assert (len(gtids(tmp_path, "a")), len(gtids(tmp_path, "b"))) == (2, 6)
        port.execute("START BINLOG 'a'")
        complete(port, "a")
        assert gtids(tmp_path, "a") == gtids(tmp_path, "b")
        with pytest.raises(pymysql.MySQLError, match="unknown binlog 'nope'"):
            port.execute("START BINLOG 'nope'")
        with pytest.raises(pymysql.MySQLError, match="no MariaDB GTID"):
            port.execute("START BINLOG 'a' FROM 'here'")
    assert list(verify([tmp_path / "data"])) == []


def test_a_binlog_that_is_damaged_at_the_start_is_stopped_until_it_is_whole(
    source: PrivateServer, tmp_path: Path
) -> None:
    with ListeningPort(source, tmp_path / "data") as port:
        port.execute("CREATE BINLOG 'bad'", "CREATE BINLOG 'good'")
        insert(source, 2)
        complete(port, "bad", "good")
    path = tmp_path / "data/binlogs/bad/bad.000001"
    path.rename(tmp_path / "kept")
    with ListeningPort(source, tmp_path / "data") as port:
        insert(source, 2)
        complete(port, "good")
        assert port.state("bad").startswith("STOPPED: the file is missing")
        with pytest.raises(pymysql.MySQLError, match="not complete"):
            port.execute("SHOW MASTER STATUS 'bad'")
        (tmp_path / "kept").rename(path)
        complete(port, "bad")
        assert gtids(tmp_path, "bad") == gtids(tmp_path, "good")
    path.rename(tmp_path / "kept")
    with ListeningPort(source, tmp_path / "data") as port:
        port.execute("DROP BINLOG 'bad'")
        assert [row[0] for row in port.execute("SHOW BINLOGS")] == ["good"]
    assert list(verify([tmp_path / "data"])) == []


def replica_of(
    servers: ServerFactory, port: ListeningPort, source: PrivateServer, how: str
) -> PrivateServer:
    execute(
        source,
        "SET sql_log_bin = 0",
        "CREATE USER IF NOT EXISTS replica@'%' IDENTIFIED BY 'secret'",
        "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO replica@'%'",
    )
    replica = servers.start("replica", ("--server-id=40",))
    execute(
        replica,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(40))",
        f"CHANGE MASTER TO MASTER_HOST='{HOST}', MASTER_PORT={port.port}, MASTER_USER='replica', "
        f"MASTER_PASSWORD='secret', MASTER_CONNECT_RETRY=1, {how}",
        "START SLAVE",
    )
    return replica


def status(replica: PrivateServer) -> dict[str, Any]:
    with connect(replica, cursorclass=pymysql.cursors.DictCursor) as connection:
        cursor = connection.cursor()
        cursor.execute("SHOW SLAVE STATUS")
        found: Any = cursor.fetchone()
        return dict(found)


def test_what_a_start_leaves_out_stops_replicas(
    source: PrivateServer, port: ListeningPort, servers: ServerFactory, tmp_path: Path
) -> None:
    port.execute("CREATE BINLOG 'a' LOG(shop)")
    insert(source, 2)
    complete(port, "a")
    replica = replica_of(
        servers, port, source, "MASTER_LOG_FILE='a.000001', MASTER_LOG_POS=4, MASTER_USE_GTID=no"
    )
    wait_until(lambda: len(execute(replica, "SELECT * FROM shop.t")) == 2, what="it follows")
    port.execute("STOP BINLOG 'a'")
    insert(source, 2)
    missing = str(execute(source, "SELECT @@gtid_binlog_pos")[0][0])
    insert(source, 2)
    assert port.info(f"START BINLOG 'a' FROM '{missing}'") == f"goes on after GTID {missing}"
    complete(port, "a")
    wait_until(lambda: status(replica)["Last_SQL_Errno"] == 1590, what="it stops")
    assert f"nothing between 0-1-4 and {missing}" in str(status(replica)["Last_SQL_Error"])
    paths = [file.path for file in StoreReader(tmp_path / "data").files("a")]
    bodies = [event.body for group in read_groups(paths) for event in group.events]
    assert sum(isinstance(body, IncidentEvent) for body in bodies) == 1
    assert len(gtids(tmp_path, "a")) == 4
    # Who has what is missing here begins behind the gap and never sees it.
    execute(
        replica,
        "STOP SLAVE",
        "INSERT INTO shop.t VALUES (3, 'x'), (4, 'x')",
        f"SET GLOBAL gtid_slave_pos = '{missing}'",
        "CHANGE MASTER TO MASTER_USE_GTID=slave_pos",
        "START SLAVE",
    )
    wait_until(lambda: len(execute(replica, "SELECT * FROM shop.t")) == 6, what="it goes on")
    assert status(replica)["Last_SQL_Errno"] == 0


def test_what_the_source_purged_stops_who_needs_it_and_nobody_else(
    source: PrivateServer, port: ListeningPort, tmp_path: Path
) -> None:
    port.execute("CREATE BINLOG 'a'", "CREATE BINLOG 'b'", "STOP BINLOG 'a'")
    insert(source, 2)
    execute(source, "FLUSH BINARY LOGS")
    insert(source, 2)
    complete(port, "b")
    last = str(execute(source, "SHOW BINARY LOGS")[-1][0])
    (position,) = execute(source, "SELECT @@gtid_binlog_pos")[0]

    def is_purged() -> bool:
        purge_before(source, last)
        return len(execute(source, "SHOW BINARY LOGS")) == 1

    wait_until(is_purged, what="the source purges")
    port.execute("START BINLOG 'a'")
    wait_until(lambda: port.state("a").startswith("STOPPED: "), what="it is told")
    insert(source)
    complete(port, "b")
    port.execute(f"START BINLOG 'a' FROM '{position}'")
    complete(port, "a")
    assert (len(gtids(tmp_path, "a")), len(gtids(tmp_path, "b"))) == (1, 5)


def test_a_setting_that_is_wrong_for_a_while_loses_nothing(
    source: PrivateServer, port: ListeningPort, tmp_path: Path
) -> None:
    port.execute("CREATE BINLOG 'a'")
    insert(source, 2)
    complete(port, "a")
    execute(source, "SET GLOBAL binlog_row_image = MINIMAL")
    for row in execute(source, "SHOW PROCESSLIST"):
        if str(row[4]).startswith("Binlog Dump"):
            execute(source, f"KILL {row[0]}")
    wait_until(lambda: "binlog_row_image" in port.state("a"), what="it is told")
    with connect(source) as session, session.cursor() as cursor:
        cursor.execute("SET SESSION binlog_row_image = FULL")
        cursor.execute("INSERT INTO shop.t (v) VALUES ('y')")
    execute(source, "SET GLOBAL binlog_row_image = FULL")
    complete(port, "a")
    assert len(gtids(tmp_path, "a")) == 3


def test_drop_binlog_ends_its_dumps(
    source: PrivateServer, port: ListeningPort, servers: ServerFactory
) -> None:
    port.execute("CREATE BINLOG 'a' LOG(shop)")
    insert(source, 2)
    replica = replica_of(
        servers, port, source, "MASTER_LOG_FILE='a.000001', MASTER_LOG_POS=4, MASTER_USE_GTID=no"
    )
    wait_until(lambda: len(execute(replica, "SELECT * FROM shop.t")) == 2, what="it follows")
    port.execute("DROP BINLOG 'a'")
    wait_until(lambda: bool(status(replica)["Last_IO_Errno"]), what="its dump ends")
    assert port.execute("SHOW BINLOGS") == ()
    port.execute("CREATE BINLOG 'a' LOG(shop)")
    complete(port, "a")


def test_a_binlog_that_is_far_behind_comes_to_the_others_under_load(
    source: PrivateServer, port: ListeningPort, tmp_path: Path
) -> None:
    port.execute("CREATE BINLOG 'a'", "CREATE BINLOG 'b'")
    for _ in range(3):
        port.execute("STOP BINLOG 'a'")
        insert(source, 200)
        port.execute("START BINLOG 'a'")
        deadline_s = time.monotonic() + 60
        while port.state("a") != "OPEN":
            assert time.monotonic() < deadline_s
            insert(source, 5)
    complete(port, "a", "b")
    assert gtids(tmp_path, "a") == gtids(tmp_path, "b")
