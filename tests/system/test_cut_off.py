"""Replicas by file and position that are cut off anywhere go on by themselves, and get all."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.live.provision.server_programs import MARIADB, ServerProgram
from tests.port_replicas import replica_status
from tests.recording_proxy import RecordingProxy
from tests.serve_process import ADMIN, PASSWORD, ServeProcess, create_account, wait_until
from tests.servers import QUICK, connect, execute, mariadb118_program

SMALL_ROWS_EVENTS = "--binlog-row-event-max-size=256"
"""The least: statements of a few rows are several events."""
TABLES = ("t", "u", "m")
CUTS = 12


def write(source: PrivateServer) -> None:
    """Statements of one and several tables and many rows events, a few in a transaction."""
    chance = random.Random(7)
    with connect(source, autocommit=False) as session, session.cursor() as cursor:
        for _ in range(25):
            for _ in range(chance.randint(1, 5)):
                table = chance.choice(TABLES)
                values = ", ".join(["(REPEAT('x', 150))"] * chance.randint(1, 9))
                cursor.execute(f"INSERT INTO shop.{table} (v) VALUES {values}")
                cursor.execute(f"UPDATE shop.{table} SET v = CONCAT(v, 'y') WHERE id % 3 = 1")
                cursor.execute(
                    "UPDATE shop.t JOIN shop.u USING (id) SET t.v = LEFT(t.v, 99), u.v = t.v"
                )
            session.commit()


def sums(server: PrivateServer) -> list[Any]:
    try:
        return [execute(server, f"CHECKSUM TABLE shop.{table}")[0][1] for table in TABLES]
    except pymysql.MySQLError:
        return []


def stay(_: PrivateServer) -> None:
    """The replica tries again by itself."""


def start_again(replica: PrivateServer) -> None:
    execute(replica, "STOP SLAVE", "START SLAVE")


def start_receiving_again(replica: PrivateServer) -> None:
    execute(replica, "STOP SLAVE IO_THREAD", "START SLAVE IO_THREAD")


@pytest.fixture(scope="module")
def serve(
    server_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    """A binlog `all` of statements of many events."""
    options = (*QUICK, *SOURCE_OPTIONS, SMALL_ROWS_EVENTS)
    with PrivateServer.start(server_directory, name="cut-off", options=options) as source:
        create_account(source)
        with ServeProcess(tmp_path_factory.mktemp("cut-off"), source) as process:
            process.execute("CREATE BINLOG 'all'")
            execute(source, "CREATE DATABASE shop")
            for table, engine in zip(TABLES, ("InnoDB", "InnoDB", "MyISAM"), strict=True):
                columns = "(id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)"
                execute(source, f"CREATE TABLE shop.{table} {columns} ENGINE={engine}")
            write(source)
            process.wait_until_complete("all")
            yield process


@pytest.fixture(scope="module", params=["10.11", "11.8"])
def replica(request: pytest.FixtureRequest, server_directory: Path) -> Iterator[PrivateServer]:
    program: ServerProgram | None = MARIADB
    directory = server_directory
    if request.param == "11.8":
        program, directory = mariadb118_program(), server_directory / "11.8"
    if program is None:
        pytest.skip("BINLANE_MARIADB118 names no MariaDB 11.8")
    options = (*QUICK, "--server-id=77", "--slave-net-timeout=10")
    with PrivateServer.start(
        directory, name="cut-off-replica", options=options, program=program
    ) as server:
        yield server


@pytest.mark.parametrize("meanwhile", [stay, start_again, start_receiving_again])
def test_a_mariadb_goes_on_inside_of_a_statement(
    serve: ServeProcess, replica: PrivateServer, meanwhile: Callable[[PrivateServer], None]
) -> None:
    with RecordingProxy(serve.port) as proxy:
        # Logging in takes fewer bytes than the first of them.
        chance = random.Random(3)
        proxy.cuts = [chance.randint(2_000, 9_000) for _ in range(CUTS)]
        execute(
            replica,
            *("STOP SLAVE", "RESET SLAVE ALL", "DROP DATABASE IF EXISTS shop"),
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={proxy.port},"
            f" MASTER_USER='{ADMIN}', MASTER_PASSWORD='{PASSWORD}', MASTER_CONNECT_RETRY=1,"
            " MASTER_SSL=0, MASTER_USE_GTID=no, MASTER_LOG_FILE='all.000001', MASTER_LOG_POS=4",
            "START SLAVE",
        )
        wanted = sums(serve.source)

        def is_over() -> bool:
            if proxy.cuts and len(proxy.cuts) % 4 == 0:
                proxy.cuts.pop()
                meanwhile(replica)
            status = replica_status(replica)
            assert status["Last_IO_Errno"] != 1595, status
            assert not status["Last_SQL_Errno"], status
            return not proxy.cuts and sums(replica) == wanted

        wait_until(is_over)
        execute(replica, "STOP SLAVE")
