"""Ordinary clients on the listening port, with a real server behind it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql._auth import scramble_native_password
from pymysql.constants import CLIENT

from binlane.errors import ConfigError
from binlane.live.gateway.settings import GatewaySettings
from binlane.live.gateway.transport import Gateway
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.packets.flags import Command
from tests.listening import HOST, ListeningPort, wait_until
from tests.servers import ServerFactory, execute


@pytest.fixture(scope="module")
def port(
    mariadb_server: PrivateServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ListeningPort]:
    """A port before the shared source, with a database `relay` and some accounts."""
    execute(
        mariadb_server,
        "CREATE DATABASE relay",
        "CREATE TABLE relay.t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)",
        "CREATE PROCEDURE relay.two() BEGIN SELECT 1; SELECT 2, 3; END",
        "CREATE PROCEDURE relay.opens() BEGIN DECLARE c CURSOR FOR SELECT 1; OPEN c; SELECT 5; END",
        "CREATE USER app@'%' IDENTIFIED BY 'secret'",
        "GRANT ALL ON relay.* TO app@'%'",
        "CREATE USER other@'%' IDENTIFIED BY 'changed'",
        "GRANT REPLICATION SLAVE ON *.* TO other@'%'",
        "SET GLOBAL max_allowed_packet = 67108864",
        "SET GLOBAL local_infile = 1",
    )
    with ListeningPort(mariadb_server, tmp_path_factory.mktemp("gateway") / "data") as listening:
        yield listening
    execute(mariadb_server, "DROP DATABASE relay", "DROP USER app@'%', other@'%'")


def test_session_is_the_clients_own(port: ListeningPort) -> None:
    connection: Any
    with port.connect(user="app", password="secret", database="relay") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT CURRENT_USER(), DATABASE(), CONNECTION_ID()")
        assert cursor.fetchone() == ("app@%", "relay", connection.thread_id())


def test_wrong_password_is_the_servers_own_error(
    port: ListeningPort, mariadb_server: PrivateServer
) -> None:
    texts = []
    for at in (port.port, mariadb_server.port):
        with pytest.raises(pymysql.err.OperationalError) as caught:
            pymysql.connect(host=HOST, port=at, user="app", password="wrong")
        texts.append(caught.value.args)
    assert texts[0] == texts[1]
    assert texts[0][0] == 1045


def test_transactions_and_warnings(port: ListeningPort) -> None:
    with port.connect(database="relay", autocommit=False) as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO t (v) VALUES ('a'), ('b')")
        assert (cursor.rowcount, bool(cursor.lastrowid)) == (2, True)
        connection.rollback()
        cursor.execute("SELECT COUNT(*) FROM t WHERE v IN ('a', 'b')")
        assert cursor.fetchone() == (0,)
        cursor.execute("SELECT CAST('12x' AS SIGNED)")
        cursor.execute("SHOW WARNINGS")
        assert cursor.fetchall()[0][1] == 1292


def test_several_results(port: ListeningPort) -> None:
    options = {"database": "relay", "client_flag": CLIENT.MULTI_STATEMENTS}
    with port.connect(**options) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT 1; INSERT INTO t (v) VALUES ('m'); SELECT 2, 3; CALL two()")
        found = [cursor.fetchall()]
        while cursor.nextset():
            found.append(cursor.fetchall())
        rows = [rows for rows in found if rows]
        assert rows == [((1,),), ((2, 3),), ((1,),), ((2, 3),)]
        cursor.execute("SELECT 4; SELEC 5")
        with pytest.raises(pymysql.err.ProgrammingError, match="1064"):
            cursor.nextset()
    assert port.execute("SELECT 6") == ((6,),)


def test_results_behind_a_cursor_of_a_procedure(port: ListeningPort) -> None:
    with port.connect(database="relay") as connection, connection.cursor() as cursor:
        cursor.execute("CALL opens()")
        assert cursor.fetchall() == ((5,),)
        cursor.execute("SHOW BINLOGS")
        cursor.execute("SELECT 9")
        assert cursor.fetchone() == (9,)


def test_large_statement_and_large_row(port: ListeningPort) -> None:
    length = 17 << 20
    with port.connect(database="relay", max_allowed_packet=64 << 20) as connection:
        cursor = connection.cursor()
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute("INSERT INTO t (v) VALUES (%s)", ("x" * length,))
        cursor.execute("SELECT LENGTH(v), v FROM t WHERE id = %s", (cursor.lastrowid,))
        row = cursor.fetchone()
        assert row is not None
        assert row == (length, "x" * length)
        cursor.execute("DELETE FROM t WHERE LENGTH(v) > 1000")
        cursor.execute("SHOW BINLOGS")


def test_local_file(port: ListeningPort, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("".join(f"{number}\tSHOW BINLOGS\n" for number in range(1000, 30_000)))
    with port.connect(database="relay", local_infile=True) as connection:
        cursor = connection.cursor()
        cursor.execute(f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE t")
        assert cursor.rowcount == 29_000
        cursor.execute("SHOW BINLOGS")
        assert cursor.fetchall() == ()


def test_privileges_are_the_sources(port: ListeningPort) -> None:
    with port.connect(user="app", password="secret") as connection:
        cursor = connection.cursor()
        with pytest.raises(pymysql.err.OperationalError, match="1227"):
            cursor.execute("SHOW BINLOGS")
    with port.connect(user="other", password="changed") as connection:
        cursor = connection.cursor()
        cursor.execute("SHOW BINLOGS")
        with pytest.raises(pymysql.err.OperationalError) as caught:
            cursor.execute("CREATE BINLOG 'mine'")
    assert caught.value.args[0] == 1227
    assert "BINLOG ADMIN" in caught.value.args[1]


def test_change_of_user(port: ListeningPort) -> None:
    connection: Any
    with port.connect() as connection:
        scrambled = scramble_native_password(b"changed", connection.salt)
        request = b"other\0" + bytes((len(scrambled),)) + scrambled + b"\0\x2d\0"
        connection._execute_command(Command.CHANGE_USER, request + b"mysql_native_password\0\0")
        packet = connection._read_packet()
        if packet.is_auth_switch_request():
            salt = packet.get_all_data().split(b"\0", 1)[1]
            connection.write_packet(scramble_native_password(b"changed", salt))
            packet = connection._read_packet()
        assert packet.is_ok_packet()
        cursor = connection.cursor()
        cursor.execute("SELECT CURRENT_USER()")
        assert cursor.fetchone() == ("other@%",)
        cursor.execute("SHOW BINLOGS")
        with pytest.raises(pymysql.err.OperationalError, match="BINLOG ADMIN"):
            cursor.execute("DROP BINLOG 'x'")


@pytest.mark.parametrize("has_cursor", [False, True])
def test_binary_prepared_statement(port: ListeningPort, *, has_cursor: bool) -> None:
    connection: Any
    with port.connect() as connection:

        def packets(count: int) -> list[bytes]:
            return [connection._read_packet().get_all_data() for _ in range(count)]

        connection._execute_command(Command.STMT_PREPARE, "SELECT ? UNION SELECT 8")
        prepared, *_ = packets(1 + 2 + 2)
        statement = prepared[1:5]
        null_bits_and_types = b"\0\x01\x08\0"
        connection._execute_command(
            Command.STMT_EXECUTE,
            statement
            + bytes((has_cursor,))
            + b"\x01\0\0\0"
            + null_bits_and_types
            + (7).to_bytes(8, "little"),
        )
        packets(3)
        if has_cursor:
            connection._execute_command(Command.STMT_FETCH, statement + b"\x05\0\0\0")
        *rows, _ = packets(3)
        assert [int.from_bytes(row[2:10], "little") for row in rows] == [7, 8]
        connection._execute_command(Command.STMT_CLOSE, statement)
        cursor = connection.cursor()
        cursor.execute("SHOW BINLOGS")
        cursor.execute("SELECT 9")
        assert cursor.fetchone() == (9,)


def test_kill_reaches_the_session_that_the_client_means(port: ListeningPort) -> None:
    victim: Any
    with port.connect() as victim, port.connect() as killer:
        killer.cursor().execute(f"KILL {victim.thread_id()}")
        with pytest.raises(pymysql.err.OperationalError):
            victim.cursor().execute("SELECT 1")


def test_command_line(port: ListeningPort) -> None:
    script = """
        PREPARE s FROM 'SELECT ? + 1'; SET @a = 41; EXECUTE s USING @a;
        CREATE BINLOG 'cli' LOG(relay.t); SHOW BINLOGS; DROP BINLOG 'cli'; SHOW BINLOGS;
        SELECT 'end';
    """
    done = subprocess.run(
        ["mariadb", "--no-defaults", f"-h{HOST}", f"-P{port.port}", "-uroot", "-N", "relay"],
        input=script,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "42"
    assert lines[1].startswith("cli\tcli.000001\t")
    assert lines[2:] == ["end"]


def test_client_that_insists_on_tls_is_told(port: ListeningPort) -> None:
    with pytest.raises(pymysql.err.OperationalError, match="SSL"):
        port.connect(ssl={"check_hostname": False}, ssl_verify_cert=False)


def test_client_of_another_protocol_is_dropped(port: ListeningPort) -> None:
    with socket.create_connection((HOST, port.port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(1000))
        while client.recv(4096):
            pass
    assert port.execute("SELECT 1") == ((1,),)


def test_port_that_is_taken(port: ListeningPort) -> None:
    async def start() -> None:
        await Gateway(GatewaySettings(port=port.port), port.statements).start()

    with pytest.raises(ConfigError, match="cannot listen on"):
        asyncio.run(start())


def test_source_that_is_gone(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start("gone")
    with ListeningPort(source, tmp_path / "data") as listening:
        with listening.connect() as connection:
            source.stop()
            with pytest.raises(pymysql.err.OperationalError):
                connection.cursor().execute("SELECT 1")
        with pytest.raises(pymysql.err.OperationalError) as caught:
            listening.connect()
        assert caught.value.args[0] == 1053
        # Its client takes numbers of its own range for a packet that is malformed.
        command = [
            "mariadb",
            "--no-defaults",
            f"--host={HOST}",
            f"--port={listening.port}",
            "-uapp",
        ]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
        assert "1053" in said
        assert "binlane cannot reach its source" in said
        source.restart()
        wait_until(lambda: _logs_in(listening), what="the source is back")


def test_closing_lets_statements_end(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start("closing")
    with ThreadPoolExecutor() as threads:
        with ListeningPort(source, tmp_path / "data") as listening:
            idle = listening.connect()
            rows = threads.submit(listening.execute, "SELECT SLEEP(1), 'done'")
            running = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"
            wait_until(lambda: bool(execute(source, running)), what="the statement runs")
        assert rows.result() == ((0, "done"),)
    with pytest.raises(pymysql.err.OperationalError):
        idle.cursor().execute("SELECT 1")


def _logs_in(listening: ListeningPort) -> bool:
    try:
        return listening.execute("SELECT 1") == ((1,),)
    except pymysql.err.OperationalError:
        return False
