"""Who reads the source's own log sees it whole and in order while there are binlogs of statements."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB
from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.port_replicas import replica_status
from tests.serve_process import ServeProcess, wait_until
from tests.servers import execute, mysql_program
from tests.source_readers import DebeziumReader, GoReader, MixedLoad, Reader, tables_of

_REPLICA: Final = {
    "mariadb": ("--server-id=40", "--gtid-strict-mode=ON", "--log-bin=own", "--log-slave-updates"),
    "mysql": ("--server-id=40", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"),
}
_FOLLOW: Final = {
    "mariadb": "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_USER='root', MASTER_PORT={}, {}",
    "mysql": (
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_USER='root', "
        "SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, SOURCE_PORT={}, {}"
    ),
}
_WAYS: Final = {
    ("mariadb", "file"): "MASTER_USE_GTID=no, MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4",
    ("mariadb", "gtid"): "MASTER_USE_GTID=slave_pos",
    ("mysql", "file"): (
        "SOURCE_AUTO_POSITION=0, SOURCE_LOG_FILE='binlog.000001', SOURCE_LOG_POS=4"
    ),
    ("mysql", "gtid"): "SOURCE_AUTO_POSITION=1",
}
_START: Final = {"mariadb": "START SLAVE", "mysql": "START REPLICA"}


class _Watched:
    """A source, a port before it with binlogs of statements, and a load through that."""

    def __init__(self, stack: ExitStack, directory: Path, flavor: str) -> None:
        self.flavor = flavor
        self._stack = stack
        self._directory = directory
        options = SOURCE_OPTIONS if flavor == "mariadb" else MYSQL_SOURCE_OPTIONS
        self.source = self.server(
            (*options, "--local-infile=1", "--log-bin-trust-function-creators=1")
        )
        self.serve: ServeProcess = stack.enter_context(judged(directory / "serve", self.source))
        self.serve.execute_as_root(
            "CREATE BINLOG 'statement' FORMAT='STATEMENT'",
            "CREATE BINLOG 'mixed' LOG(shop), FORMAT='MIXED'",
        )
        self.load = MixedLoad(self.serve)

    def server(self, options: tuple[str, ...]) -> PrivateServer:
        """A server of the source's version."""
        program: Any = MARIADB if self.flavor == "mariadb" else mysql_program()
        return self._stack.enter_context(LENT.lend(options, program))

    def read(self, reader: Reader) -> Reader:
        """Let a reader begin; the stack ends it."""
        self._stack.callback(reader.end, signal.SIGKILL)
        reader.start()
        return reader

    def texts(self) -> int:
        """How many statements of the load stand in the binlog of statements as they are."""
        self.serve.wait_until_complete("statement")
        events = self.serve.execute_as_root("SHOW BINLOG EVENTS IN 'statement.000001'")
        return sum("INSERT INTO items" in str(row[5]) and row[2] == "Query" for row in events)


@pytest.fixture(params=["mariadb", "mysql"])
def watched(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[_Watched]:
    with ExitStack() as stack:
        yield _Watched(stack, tmp_path, request.param)


def test_stock_replicas_of_the_source(watched: _Watched) -> None:
    replicas = []
    with watched.load:
        for number, way in enumerate(("file", "gtid"), start=41):
            replica = watched.server((*_REPLICA[watched.flavor], f"--server-id={number}"))
            how = _WAYS[watched.flavor, way]
            follow = _FOLLOW[watched.flavor].format(watched.source.port, how)
            execute(replica, follow, _START[watched.flavor])
            replicas.append(replica)
        watched.load.wait_for_rounds(15)
    assert watched.texts() > 20
    wanted = tables_of(watched.source)

    def is_equal(replica: PrivateServer) -> bool:
        status = replica_status(replica)
        assert not status["Last_SQL_Error"], status["Last_SQL_Error"]
        assert not status["Last_IO_Error"], status["Last_IO_Error"]
        exists = execute(replica, "SHOW DATABASES LIKE 'shop'")
        return bool(exists) and tables_of(replica) == wanted

    for replica in replicas:
        wait_until(partial(is_equal, replica))


@pytest.mark.slow
def test_go_mysql_at_the_source(watched: _Watched, tmp_path: Path) -> None:
    ways = ("syncer-file", "syncer-gtid", "canal-file", "canal-gtid")
    readers = [watched.read(GoReader(tmp_path / way, watched.source, way)) for way in ways]
    with watched.load:
        for _ in range(3):
            watched.load.wait_for_rounds(8)
            for reader in readers:
                reader.end(signal.SIGKILL)
            watched.load.wait_for_rounds(3)
            for reader in readers:
                reader.start()
        watched.load.wait_for_rounds(8)
    assert watched.texts() > 40
    wanted = tables_of(watched.source)
    for reader in readers:
        reader.wait_until_equal(wanted)
    told = [[one for one in reader.changes() if one[0] in wanted] for reader in readers]
    assert all(one == told[0] for one in told)


@pytest.mark.slow
def test_debezium_at_the_source(watched: _Watched, tmp_path: Path) -> None:
    with watched.load:
        watched.load.wait_for_rounds(5)
        # Debezium takes no snapshot of a table that is altered meanwhile.
        watched.load.has_ddl = False
        watched.load.wait_for_rounds(4)
        reader = DebeziumReader(tmp_path / "debezium", watched.source)
        watched.read(reader)
        wait_until(lambda: reader.is_behind_snapshot, 120)
        watched.load.has_ddl = True
        for _ in range(2):
            watched.load.wait_for_rounds(10)
            reader.end(signal.SIGTERM)
            watched.load.wait_for_rounds(3)
            reader.start()
        watched.load.wait_for_rounds(8)
    assert watched.texts() > 40
    reader.wait_until_equal(tables_of(watched.source))
