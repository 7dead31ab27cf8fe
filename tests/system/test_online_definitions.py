"""Definitions that change under load: each binlog holds exactly its scope, told by the source's log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pymysql
import pytest

from binlane.binlogs.store.stored_groups import StoreReader, read_groups
from binlane.binlogs.store.verify import verify
from binlane.cli.main import main
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.rows import TableMapEvent
from binlane.positions import GtidPosition, GtidSet
from tests.listening import ListeningPort
from tests.servers import ServerFactory, connect, execute

TABLES = ("t0", "t1", "t2", "t3")
_INFO = "effective after GTID "


@pytest.fixture(params=["mariadb", "mysql"])
def source(servers: ServerFactory, request: pytest.FixtureRequest) -> PrivateServer:
    server = servers.start_mysql("m") if request.param == "mysql" else servers.start("source")
    execute(server, "CREATE DATABASE shop")
    for table in TABLES:
        execute(
            server, f"CREATE TABLE shop.{table} (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(40))"
        )
    return server


class Load:
    """A client for each table that commits one transaction after the other."""

    def __init__(self, source: PrivateServer) -> None:
        self._source = source
        self._is_stopping = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(t,)) for t in TABLES]

    def _write(self, table: str) -> None:
        with connect(self._source) as session, session.cursor() as cursor:
            while not self._is_stopping.is_set():
                cursor.execute(f"INSERT INTO shop.{table} (v) VALUES ('{table}-secret')")
                time.sleep(0.002)  # routing has to share this process with us

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopping.set()
        for thread in self._threads:
            thread.join()


@dataclass
class Client:
    """Runs statements on binlogs, and notes from where on they hold."""

    port: ListeningPort
    lock: threading.Lock = field(default_factory=threading.Lock)
    holds: dict[str, list[tuple[int, frozenset[str]]]] = field(default_factory=dict)

    def create(self, name: str, *tables: str) -> None:
        listed = ", ".join(f"shop.{table}" for table in tables)
        info = self.port.info(f"CREATE BINLOG '{name}' LOG({listed})")
        with self.lock:
            self.holds[name] = [(_sequence(info), frozenset(tables))]

    def add(self, name: str, table: str) -> None:
        info = self.port.info(f"ALTER BINLOG '{name}' ADD LOG(shop.{table})")
        with self.lock:
            self.holds[name].append((_sequence(info), frozenset({table})))


def _sequence(info: str) -> int:
    assert info.startswith(_INFO), info
    return last_of(info.removeprefix(_INFO))


def last_of(position: str) -> int:
    """The last sequence of a position of one domain or one server."""
    if ":" in position:
        return GtidSet.parse(position).runs[0].intervals[-1][1]
    (gtid,) = GtidPosition.parse(position)
    return gtid.sequence


def at_once(*works: Callable[[], None]) -> None:
    """Run all at the same time; the first error of any is raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        barrier.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def changes(paths: list[Path]) -> Iterator[tuple[str, int, str]]:
    """GTID, its sequence and the table of each group that changes rows."""
    for group in read_groups(paths):
        tables = [e.body.table for e in group.events if isinstance(e.body, TableMapEvent)]
        if tables and group.gtid is not None:
            yield str(group.gtid), group.gtid.sequence, tables[0]


def source_files(source: PrivateServer) -> list[Path]:
    names = [row[0] for row in execute(source, "SHOW BINARY LOGS")]
    (directory,) = execute(source, "SELECT @@datadir")[0]
    return [Path(str(directory)) / str(name) for name in names]


def raws(paths: list[Path]) -> list[list[bytes | None]]:
    return [
        [event.raw for event in group.events]
        for group in read_groups(paths)
        if not group.is_control
    ]


def test_definitions_of_many_clients_under_load_are_exact(
    source: PrivateServer, tmp_path: Path
) -> None:
    with ListeningPort(source, tmp_path / "data") as port, Load(source):
        client = Client(port)
        at_once(*(lambda n=n: client.create(f"b{n}", f"t{n % 4}") for n in range(6)))
        at_once(
            *(lambda table=table: client.add("b0", table) for table in ("t1", "t2", "t3")),
            lambda: client.add("b1", "t0"),
            lambda: client.create("late", "t2"),
        )
        with pytest.raises(pymysql.MySQLError, match="exists already"):
            at_once(*(lambda: client.create("twice", "t0") for _ in range(3)))
        assert port.execute("SHOW BINLOGS")[0][4] == "shop.t0, shop.t1, shop.t2, shop.t3"
        for name in client.holds:
            port.execute(f"SHOW MASTER STATUS '{name}'")
        ends = {row[0]: row[3] for row in port.execute("SHOW BINLOGS")}
        states = {str(row[7]) for row in port.execute("SHOW BINLOGS")}
    assert states == {"OPEN"}
    assert list(verify([tmp_path / "data"])) == []
    logged = list(changes(source_files(source)))
    reader = StoreReader(tmp_path / "data")
    for name, steps in client.holds.items():
        begin = min(sequence for sequence, _ in steps)
        expected = [
            (gtid, table)
            for gtid, sequence, table in logged
            if sequence > begin and any(sequence > at and table in names for at, names in steps)
        ]
        paths = [file.path for file in reader.files(name)]
        found = [(gtid, table) for gtid, _, table in changes(paths)]
        # The load went on while the port closed: what came then is expected of nobody.
        last = last_of(str(ends[name]))
        assert len(found) >= len([each for each in expected if _number(each[0]) <= last]) > 0
        assert found == expected[: len(found)], name


def _number(gtid: str) -> int:
    return int(gtid.replace(":", "-").rpartition("-")[2])


def test_route_gives_byte_for_byte_what_the_live_binlogs_hold(
    source: PrivateServer, tmp_path: Path
) -> None:
    with ListeningPort(source, tmp_path / "data") as port:
        client = Client(port)
        with Load(source):
            client.create("a", "t0", "t1")
            client.create("b", "t2")
            client.add("a", "t3")
            client.add("b", "t1")
        for name in client.holds:
            port.execute(f"SHOW MASTER STATUS '{name}'")
    clauses = {
        "a": ("LOG(shop.t0, shop.t1)", "ADD LOG(shop.t3)"),
        "b": ("LOG(shop.t2)", "ADD LOG(shop.t1)"),
    }
    steps = sorted(
        (sequence, number, name, clauses[name][number])
        for name, held in client.holds.items()
        for number, (sequence, _) in enumerate(held)
    )
    prefix = "0-1-"
    if "mysql" in source.url:
        prefix = f"{execute(source, 'SELECT @@server_uuid')[0][0]}:"
    script = ["CREATE BINLOG 'none' IGNORE ALL;"]
    for sequence, number, name, clause in steps:
        verb = "ALTER" if number else "CREATE"
        script += [f"-- @at-gtid {prefix}{sequence}", f"{verb} BINLOG '{name}' {clause};"]
    definitions, out = tmp_path / "defs.sql", tmp_path / "out"
    definitions.write_text("\n".join(script) + "\n")
    files = [str(path) for path in source_files(source)]
    assert main(["route", *files, "--binlogs", str(definitions), "--out", str(out)]) == 0
    reader = StoreReader(tmp_path / "data")
    for name in clauses:
        live = raws([file.path for file in reader.files(name)])
        routed = raws(sorted((out / name).glob(f"{name}.0*")))
        assert len(live) > 10
        assert live == routed
