"""The tables of `system` on the port of a running `serve`."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pymysql
import pytest

from binlane.live.provision.private_server import PrivateServer
from tests.serve_process import ADMIN, ServeProcess, create_account, wait_until
from tests.servers import ServerFactory, execute

ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT COUNT(*) FROM n, system.binlogs"
)


@pytest.fixture
def source(servers: ServerFactory) -> PrivateServer:
    server = servers.start("source")
    create_account(server)
    execute(server, "CREATE DATABASE test", "CREATE DATABASE baz")
    return server


@pytest.fixture
def serve(source: PrivateServer, tmp_path: Path) -> Iterator[ServeProcess]:
    with ServeProcess(tmp_path / "serve", source) as process:
        yield process


@pytest.mark.rule("000:system-binlogs")
@pytest.mark.rule("000:system-log-databases")
@pytest.mark.rule("000:system-log-tables")
@pytest.mark.rule("000:system-ignore-databases")
@pytest.mark.rule("000:system-ignore-tables")
@pytest.mark.rule("000:log-id")
@pytest.mark.rule("000:show-master-status")
@pytest.mark.rule("000:show-master-status-lists")
@pytest.mark.rule("000:show-master-status-new")
def test_the_examples_of_the_seed(serve: ServeProcess) -> None:
    serve.execute(
        "CREATE BINLOG 'binny' LOG(`test`, `baz`.`bar`), IGNORE(`test`.`foo`), FORMAT='ROW'"
    )
    status = serve.execute("SHOW MASTER STATUS 'binny'")
    assert status == (("binny.000001", 4, "baz.bar, test", "test.foo"),)
    ((name, log_id, log_all_dbs),) = serve.execute(
        "SELECT name, log_id, log_all_dbs\n FROM system.binlogs\n WHERE name = 'binny';"
    )
    assert (name, log_all_dbs) == ("binny", 0)
    assert 0 < log_id < 2**64
    for which, expected in (("LOG", ["test", "baz.bar"]), ("IGNORE", ["test.foo"])):
        asked = f"""SELECT `database` AS {which}
            FROM system.binlog_{which.lower()}_databases
            WHERE log_id = {log_id}
            UNION
                SELECT CONCAT(`database`, '.', `table`)
                FROM system.binlog_{which.lower()}_tables
                WHERE log_id = {log_id};"""
        assert [row[0] for row in serve.execute(asked)] == expected
    serve.execute("ALTER BINLOG 'binny' LOG ALL")
    assert serve.execute("SELECT log_id, log_all_dbs FROM system.binlogs") == ((log_id, 1),)
    history = serve.execute(
        "SELECT h.`change`, h.log_list, h.gtid = b.gtid_complete FROM system.binlog_scope_history h "
        "JOIN system.binlogs b USING (log_id)"
    )
    assert history == (("create", "baz.bar, test", 1), ("alter", "", 1))
    with serve.connect() as session, session.cursor() as cursor:
        cursor.execute("SELECT name, position, state FROM system.binlogs WHERE 1 = 0")
        assert [str(column[1]) for column in cursor.description] == ["253", "8", "253"]


def test_a_query_without_end_keeps_nobody_waiting(serve: ServeProcess) -> None:
    serve.execute("CREATE BINLOG 'b'")
    with ThreadPoolExecutor(1) as thread:
        hostile = thread.submit(serve.execute, ENDLESS)
        for _ in range(3):
            assert serve.execute("SELECT COUNT(*) FROM system.binlogs") == ((1,),)
        assert not hostile.done()
        with pytest.raises(pymysql.MySQLError) as raised:
            hostile.result()
    assert raised.value.args[0] == 1969


def answering(serve: ServeProcess) -> int:
    """How many processes answer queries now."""
    found = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            is_one = b"system_tables/query_worker.py" in (path / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        found += is_one and parent == serve.process_id
    return found


@pytest.mark.parametrize("workers", [0, 2])
def test_many_queries_of_one_account_are_in_nobodys_way(
    source: PrivateServer, tmp_path: Path, workers: int
) -> None:
    execute(source, "CREATE USER monitor@'%' IDENTIFIED BY 'p', other@'%' IDENTIFIED BY 'p'")
    execute(source, "GRANT BINLOG MONITOR ON *.* TO monitor@'%', other@'%'")
    count = "SELECT COUNT(*) FROM system.binlogs"
    extra = f"[gateway]\nworkers = {workers}\n"
    with ExitStack() as stack:
        serve = stack.enter_context(ServeProcess(tmp_path / "serve", source, extra=extra))
        serve.execute("CREATE BINLOG 'b'")
        threads = stack.enter_context(ThreadPoolExecutor(6))
        sessions = [stack.enter_context(serve.connect("monitor", "p")) for _ in range(6)]
        hostile = [threads.submit(session.query, ENDLESS) for session in sessions]
        wait_until(lambda: answering(serve) == 2, 30)
        with serve.connect("other", "p") as session, session.cursor() as cursor:
            cursor.execute(count)
            assert cursor.fetchall() == ((1,),)
        assert serve.execute(count) == ((1,),)
        assert not any(each.done() for each in hostile)
        # Whoever waits is killed like whoever is under way.
        with serve.connect("monitor", "p") as session, session.cursor() as cursor:
            one: Any
            for one in reversed(sessions[1:]):
                cursor.execute(f"KILL QUERY {one.thread_id()}")
        for each in hostile[1:]:
            with pytest.raises(pymysql.MySQLError) as raised:
                each.result()
            assert raised.value.args[0] == 1317
        # And who goes away leaves nothing behind.
        sessions[0]._sock.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]  # as if cut off
        wait_until(lambda: answering(serve) == 0, 30)
        with pytest.raises(pymysql.MySQLError):
            hostile[0].result()
        assert "Traceback" not in serve.log


def test_what_belongs_to_the_source_stays_there(source: PrivateServer, serve: ServeProcess) -> None:
    serve.execute("CREATE BINLOG 'b'")
    for statement, errno, text in (
        ("SELECT * FROM system.binlogs, test.t", 1064, "`test`.`t` is none beside"),
        ("SELECT name FROM system.binlogs WHERE", 1064, "syntax"),
        ("INSERT INTO system.binlogs VALUES (1)", 1142, "denied"),
        ("SELECT * FROM system.other", 1146, "doesn't exist"),
    ):
        with pytest.raises(pymysql.MySQLError) as raised:
            serve.execute(statement)
        assert raised.value.args[0] == errno, statement
        assert text in raised.value.args[1]
    tables = serve.execute("SHOW TABLES FROM system")
    assert tables[0] == ("binlog_checks",)
    assert len(tables) == 10
    execute(source, "CREATE DATABASE system", "CREATE TABLE system.own (a INT)")
    execute(source, "INSERT INTO system.own VALUES (5)")
    assert serve.execute("SELECT * FROM system.own") == ((5,),)
    assert len(serve.execute("SHOW TABLES FROM system")) == 11
    assert serve.execute("DESCRIBE system.binlog_log_databases")[1][0] == "database"
    assert "CREATE TABLE `binlogs`" in serve.execute("SHOW CREATE TABLE system.binlogs")[0][1]


def test_who_may_ask(source: PrivateServer, serve: ServeProcess) -> None:
    serve.execute("CREATE BINLOG 'b' LOG(test)")
    execute(
        source,
        "CREATE USER plain@'%' IDENTIFIED BY 'p'",
        "CREATE USER monitor@'%' IDENTIFIED BY 'p'",
        "GRANT BINLOG MONITOR ON *.* TO monitor@'%'",
    )
    asked = ("SELECT name FROM system.binlogs", "SHOW BINLOGS", "EXPLAIN BINLOG SELECT 1")
    for statement in (*asked, "SHOW TABLES FROM system", "SHOW BINLOG EVENTS IN 'b.000001'"):
        with serve.connect("plain", "p") as session, session.cursor() as cursor:
            with pytest.raises(pymysql.MySQLError) as raised:
                cursor.execute(statement)
            assert raised.value.args[0] == 1227, statement
    for statement in asked:
        with serve.connect("monitor", "p") as session, session.cursor() as cursor:
            cursor.execute(statement)
            assert cursor.fetchall()[0][0] == "b"


def test_administrators_do_not_wait_for_grants(source: PrivateServer, serve: ServeProcess) -> None:
    """Whose account sees all by its privileges need not know what was granted to others meanwhile."""
    execute(source, "CREATE USER team@'%' IDENTIFIED BY 'p'")
    root = "SELECT COUNT(*) FROM system.binlogs"
    serve.execute_as_root("CREATE BINLOG 'b'", "GRANT READ ON BINLOG 'b' TO team@'%'")
    execute(source, f"REVOKE REPLICATION SLAVE ON *.* FROM {ADMIN}@'%'")
    dumps = "SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'"
    for (number,) in execute(source, dumps):
        execute(source, f"KILL {number}")
    # What the source does from now on is not read.
    execute(source, "CREATE USER late@'%' IDENTIFIED BY 'p'")
    with serve.connect("team", "p") as team, ThreadPoolExecutor(1) as thread:
        team_waits = thread.submit(team.query, "SHOW BINLOGS")
        assert [row[0] for row in serve.execute_as_root("SHOW BINLOGS")] == ["b"]
        assert serve.execute_as_root(root) == ((1,),)
        assert len(serve.execute_as_root("SHOW GRANTS ON BINLOG 'b'")) == 1
        assert not team_waits.done()
        with pytest.raises(pymysql.MySQLError) as raised:
            team_waits.result()
        assert raised.value.args[0] == 1205
