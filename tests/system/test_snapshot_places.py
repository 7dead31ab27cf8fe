"""Places in a server's log: all that precedes one is visible to who reads behind it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from binlane.api import scan
from binlane.client.rows.settled_places import (
    SnapshotPlace,
    open_snapshot,
    place_behind,
    settled_place,
)
from binlane.client.session import ServerSession
from binlane.client.settings import ServerUrl
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.positions import file_number
from binlane.tables.landing.range_work import sequence
from tests.servers import ServerFactory, connect, execute

_TIMES = 40
# The engine's part of a commit takes long, so that a log may be far ahead of it.
_SLOW_COMMITS = ("--innodb-flush-log-at-trx-commit=1", "--sync-binlog=0")


@pytest.fixture(params=["mariadb", "mysql"])
def source(request: pytest.FixtureRequest, servers: ServerFactory) -> PrivateServer:
    if request.param == "mariadb":
        server = servers.start("source", (*SOURCE_OPTIONS, *_SLOW_COMMITS))
    else:
        server = servers.start_mysql("source", *_SLOW_COMMITS)
    execute(
        server,
        "CREATE DATABASE p",
        "CREATE TABLE p.t (id INT PRIMARY KEY AUTO_INCREMENT, c INT) ENGINE=InnoDB",
    )
    return server


@contextmanager
def writers(server: PrivateServer, count: int, pause_s: float) -> Iterator[None]:
    ends = threading.Event()

    def write() -> None:
        with connect(server) as connection, connection.cursor() as cursor:
            while not ends.wait(pause_s):
                cursor.execute("INSERT INTO p.t (c) VALUES (1)")

    threads = [threading.Thread(target=write) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ends.set()
        for thread in threads:
            thread.join()


def test_what_precedes_a_settled_place_is_visible(source: PrivateServer) -> None:
    seen: list[tuple[SnapshotPlace, set[int], SnapshotPlace]] = []
    with writers(source, 4, 0), ServerSession(ServerUrl.parse(source.url), "") as session:
        # However slow the writers are: many of the places are to have something new before them.
        while len(seen) < _TIMES or len({place for place, _, _ in seen}) < _TIMES // 2:
            place = settled_place(session)
            ids = visible(session)
            seen.append((place, ids, place_behind(session)))
    logged = written(source)
    for low, ids, high in seen:
        before = {id_ for id_, seq in logged.items() if seq < low.seq}
        assert before <= ids
        assert ids <= {id_ for id_, seq in logged.items() if seq < high.seq}


def test_a_snapshot_sees_exactly_what_precedes_its_place(source: PrivateServer) -> None:
    seen: list[tuple[SnapshotPlace, set[int]]] = []
    with writers(source, 2, 0.02), ServerSession(ServerUrl.parse(source.url), "") as session:
        session.ask("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for _ in range(_TIMES // 4):
            place = open_snapshot(session)
            seen.append((place, visible(session)))
            session.ask("COMMIT")
    logged = written(source)
    for place, ids in seen:
        assert ids == {id_ for id_, seq in logged.items() if seq < place.seq}


def visible(session: ServerSession) -> set[int]:
    found: set[int] = set()
    for (cells,) in session.stream("SELECT id FROM p.t"):
        found.update(int(cell or 0) for cell in cells)
    return found


def written(server: PrivateServer) -> dict[int, int]:
    """`_seq` of each row in the log."""
    files = sorted(server.data_directory.glob("binlog.0*"))
    found: dict[int, int] = {}
    for batch in scan(files, tables=["p"]):
        for row in batch.select(["id", "_file", "_position"]).to_pylist():
            found[row["id"]] = sequence(file_number(row["_file"]), row["_position"])
    return found
