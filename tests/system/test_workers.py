"""A port that several processes serve is one port: to clients, to replicas and to what is logged."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.constants import COMMAND
from pymysql.cursors import Cursor

from binlane.binlogs.store.stored_groups import StoreReader
from binlane.live.provision.private_server import PrivateServer
from tests.judged_port import set_up
from tests.lent_servers import LENT
from tests.serve_process import PASSWORD, ServeProcess, is_alive, wait_until, worker_processes
from tests.servers import execute

WORKERS = 2
LIMIT = 12


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def source() -> Iterator[PrivateServer]:
    with LENT.lend_source("mariadb") as server:
        yield server


@pytest.fixture(scope="module")
def serve(place: Path, source: PrivateServer) -> Iterator[ServeProcess]:
    extra = f"[gateway]\nworkers = {WORKERS}\n[http]\nport = 0\n"
    serve = ServeProcess(place / "serve", source, extra=extra, listen=f"max_connections = {LIMIT}")
    set_up(serve)
    with serve:
        serve.execute_as_root(
            "CREATE BINLOG 'texts' FORMAT='STATEMENT'",
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b INT)",
        )
        yield serve
    assert "Traceback" not in serve.log


@contextmanager
def sessions(serve: ServeProcess, count: int = 2 * WORKERS) -> Iterator[list[Connection[Cursor]]]:
    """Some of root's, of all workers: whoever has the fewest takes the next."""
    with ExitStack() as stack:
        yield [stack.enter_context(serve.connect("root", "")) for _ in range(count)]


def ask(session: Connection[Cursor], statement: str) -> tuple[tuple[Any, ...], ...]:
    with session.cursor() as cursor:
        cursor.execute(statement)
        return tuple(cursor.fetchall())


def texts(serve: ServeProcess) -> list[str]:
    serve.wait_until_complete("texts")
    file = StoreReader(serve.data_dir).files("texts")[-1].path.name
    rows = serve.execute_as_root(f"SHOW BINLOG EVENTS IN '{file}'")
    return [row[5] for row in rows if row[2] in {"Query", "Annotate_rows"}]


def test_statements_of_all_processes_stand_there_as_texts(serve: ServeProcess) -> None:
    wanted = []
    with sessions(serve) as several:
        for number, session in enumerate(several):
            for statement in (
                f"INSERT INTO d.t (b) VALUES ({number})",
                f"SET @x = {number}",
                "INSERT INTO d.t (b) VALUES (@x), (LAST_INSERT_ID())",
                f"UPDATE d.t SET b = b + 1 WHERE b = {number}",
            ):
                ask(session, statement)
                wanted += [statement] if statement.startswith(("INSERT", "UPDATE")) else []
    assert [text for text in texts(serve) if text in wanted] == wanted
    assert not _rows_instead(serve)


def _rows_instead(serve: ServeProcess) -> list[str]:
    return [
        line
        for line in serve.get("/metrics")[1].splitlines()
        if "rows_instead" in line and not line.startswith("#") and not line.endswith(" 0")
    ]


def test_what_one_process_defines_all_know(serve: ServeProcess) -> None:
    with sessions(serve) as several:
        ask(several[0], "CREATE BINLOG 'scoped' LOG(d.t), FORMAT='STATEMENT'")
        ask(several[0], "CREATE TABLE d.other (a INT)")
        wait_until(lambda: all(map(_refuses, several)))
        for session in several:
            told = ask(session, "EXPLAIN BINLOG UPDATE d.t, d.other SET d.t.b = 1, d.other.a = 1")
            assert {row[0] for row in told} == {"scoped", "texts"}
        ask(several[-1], "DROP BINLOG 'scoped'")
        wait_until(lambda: not any(map(_refuses, several)))


def _refuses(session: Connection[Cursor]) -> bool:
    """Whether a statement that writes inside and outside of a scope is refused."""
    try:
        ask(session, "UPDATE d.t, d.other SET d.t.b = 1, d.other.a = 1")
    except pymysql.MySQLError:
        return True
    return False


def test_global_values_hold_in_all_processes(serve: ServeProcess) -> None:
    with sessions(serve, 1) as (one,):
        ask(one, "SET GLOBAL binlog_format = 'ROW'")
    try:
        with sessions(serve) as several:
            assert [ask(each, "SELECT @@binlog_format") for each in several] == [
                (("ROW",),) for _ in several
            ]
    finally:
        serve.execute_as_root("SET GLOBAL binlog_format = 'STATEMENT'")


def test_ddl_of_one_process_is_known_to_the_others(serve: ServeProcess) -> None:
    with sessions(serve) as several:
        ask(several[0], "CREATE TABLE d.keyed (a INT, b INT, UNIQUE (b)) ENGINE=InnoDB")
        for session in several:
            ask(session, f"INSERT INTO d.keyed VALUES (1, {id(session) % 10**6})")
        ask(several[0], "ALTER TABLE d.keyed ADD c INT NOT NULL AUTO_INCREMENT UNIQUE")
        for number, session in enumerate(several):
            ask(session, f"INSERT INTO d.keyed (a, b) VALUES (2, {-number - 1})")
    wanted = [f"INSERT INTO d.keyed (a, b) VALUES (2, {-number - 1})" for number in range(4)]
    assert [text for text in texts(serve) if text in wanted] == wanted


def test_a_dump_through_a_worker_is_the_file(serve: ServeProcess, tmp_path: Path) -> None:
    long = "x" * 100_000
    with sessions(serve, 1) as (one,):
        ask(one, "CREATE TABLE d.long (a INT AUTO_INCREMENT PRIMARY KEY, b LONGTEXT)")
        for _ in range(40):
            ask(one, f"INSERT INTO d.long (b) VALUES ('{long}')")
    serve.wait_until_complete("texts")
    serve.execute_as_root("FLUSH BINARY LOGS 'texts'")
    files = StoreReader(serve.data_dir).files("texts")
    path = files[-2].path
    subprocess.run(
        [
            *("mariadb-binlog", "--read-from-remote-server", "--raw", f"--result-file={tmp_path}/"),
            *("--host=127.0.0.1", f"--port={serve.port}", "--user=binlane", f"-p{PASSWORD}"),
            path.name,
        ],
        check=True,
        capture_output=True,
    )
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    assert path.stat().st_size > 40 * len(long)


def _port(serve: ServeProcess) -> Any:
    """What is told of the port."""
    return json.loads(serve.get("/api/status")[1])["port"]


def test_so_many_and_no_more_may_be_logged_in(serve: ServeProcess) -> None:
    with (
        sessions(serve, LIMIT),
        pytest.raises(pymysql.MySQLError) as refused,
        sessions(serve, 1),
    ):
        pass
    assert refused.value.args[0] == 1040
    wait_until(lambda: _port(serve)["sessions"] == 0)


def test_a_process_that_is_killed_takes_its_own_sessions_along(serve: ServeProcess) -> None:
    before = worker_processes(serve)
    with sessions(serve) as several:
        for session in several:
            ask(session, "INSERT INTO d.t (b) VALUES (100)")
        os.kill(before[0], signal.SIGKILL)
        outcomes: list[int | None] = []
        for number, session in enumerate(several):
            try:
                ask(session, f"INSERT INTO d.t (b) VALUES ({200 + number})")
            except pymysql.OperationalError:
                outcomes.append(None)
            else:
                outcomes.append(200 + number)
    assert outcomes.count(None) == 2
    there = {
        row[0] for row in serve.execute_as_root("SELECT b FROM d.t WHERE b BETWEEN 200 AND 203")
    }
    assert there == {each for each in outcomes if each is not None}
    wait_until(lambda: len(set(worker_processes(serve)) - set(before)) == 1)
    wait_until(lambda: serve.log.count("another one is started") == 1)
    assert [one["restarts"] for one in _port(serve)["workers"]] == [1, 0]
    with sessions(serve, 6) as several:
        for session in several:
            ask(session, "INSERT INTO d.t (b) VALUES (300)")
    assert texts(serve).count("INSERT INTO d.t (b) VALUES (300)") == 6


def test_workers_are_forked_and_what_takes_their_place_is_started(serve: ServeProcess) -> None:
    serve.stop()
    serve.start()
    before = worker_processes(serve)
    assert {_command(each) for each in before} == {_command(serve.process_id)}
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: len(set(worker_processes(serve)) - set(before)) == 1)
    (other,) = set(worker_processes(serve)) - set(before)
    wait_until(lambda: b"binlane.live.service.workers.spares" in _command(other))
    wait_until(lambda: other in [one["process_id"] for one in _port(serve)["workers"]])
    with sessions(serve, 4) as several:
        for session in several:
            ask(session, "SELECT 1")


def _command(process_id: int) -> bytes:
    return Path(f"/proc/{process_id}/cmdline").read_bytes()


def test_a_kill_of_the_whole_frees_the_port(serve: ServeProcess) -> None:
    workers = worker_processes(serve)
    with sessions(serve) as several:
        for session in several:
            ask(session, "INSERT INTO d.t (b) VALUES (400)")
        serve.kill()
        serve.start()
    wait_until(lambda: not any(map(is_alive, workers)))
    serve.execute_as_root("INSERT INTO d.t (b) VALUES (401)")
    assert "INSERT INTO d.t (b) VALUES (401)" in texts(serve)
    assert execute(serve.source, "SELECT COUNT(*) FROM d.t WHERE b = 400") == ((4,),)


def test_it_ends_when_it_is_told_to(serve: ServeProcess) -> None:
    workers = worker_processes(serve)
    with sessions(serve), serve.connect("root", "") as replica:
        raw: Any = replica
        ask(replica, "SET @mariadb_slave_capability = 4, @master_binlog_checksum = 'CRC32'")
        raw._execute_command(
            COMMAND.COM_BINLOG_DUMP, struct.pack("<IHI", 4, 0, 77) + b"texts.000001"
        )
        raw._read_packet()
        # As a service manager does that tells all processes.
        for each in workers:
            os.kill(each, signal.SIGTERM)
        assert serve.stop() == 0
        with pytest.raises(pymysql.OperationalError, match="Lost connection"):
            all(not packet.is_eof_packet() for packet in iter(raw._read_packet, None))
    wait_until(lambda: not any(map(is_alive, workers)))
    with socket.socket() as free:
        assert free.connect_ex(("127.0.0.1", serve.port))
