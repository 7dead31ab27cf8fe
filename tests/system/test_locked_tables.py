"""Tables that somebody has locked: the port waits for no lock of its own client, nor others for it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Final

import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.serve_process import ServeProcess, wait_until
from tests.servers import ServerFactory, connect, execute

_WAITING: Final = 6
"""Clients that wait for tables: more than the port has connections of its own to ask by."""
_KNOWN: Final = "the port knows all that was logged so far"
_OWN_LOCKS: Final = (
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a TINYINT) ENGINE=InnoDB",
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.a = NEW.a + 1",
    "SET sql_mode = 'ANSI_QUOTES', sql_quote_show_create = 0",
    "LOCK TABLES t WRITE",
    "ALTER TABLE t DISABLE KEYS",
    _KNOWN,
    "SHOW WARNINGS",
    "SELECT ROW_COUNT()",
    "INSERT INTO t (a) VALUES (1), (2)",
    "SELECT ROW_COUNT(), LAST_INSERT_ID(), @@warning_count",
    "ALTER TABLE t ADD b INT DEFAULT 5",
    "/*!40000 ALTER TABLE t DISABLE KEYS */",
    _KNOWN,
    "UPDATE t SET b = b + 1 WHERE a > 1",
    "SELECT ROW_COUNT(), LAST_INSERT_ID()",
    "REPAIR TABLE t",
    _KNOWN,
    "INSERT INTO t (a, b) SELECT 4, 4",
    "ALTER TABLE t ENABLE KEYS",
    "SELECT 1 UNION SELECT 2",
    "SELECT FOUND_ROWS()",
    "DELETE FROM t WHERE a = 2",
    "SELECT * FROM t ORDER BY id",
    "UNLOCK TABLES",
    "SELECT * FROM t ORDER BY id",
)


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def port(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    """A port with a binlog of statements, before a source of its own."""
    directory = tmp_path_factory.mktemp("locked")
    with ExitStack() as stack:
        factory = ServerFactory(LENT, directory, "locked", stack)
        trust = "--log-bin-trust-function-creators=1"
        if request.param == "mariadb":
            source = factory.start("source", (*SOURCE_OPTIONS, trust))
        else:
            source = factory.start_mysql("source", trust)
        found = stack.enter_context(judged(directory / "serve", source))
        found.execute_as_root("CREATE BINLOG 'statements' FORMAT='STATEMENT'")
        yield found


@pytest.fixture
def serve(port: ServeProcess) -> Iterator[ServeProcess]:
    """The port, with two databases at the source."""
    execute(port.source, "CREATE DATABASE locked", "CREATE DATABASE beside")
    yield port
    execute(port.source, "DROP DATABASE locked", "DROP DATABASE beside")


def test_a_client_is_not_kept_from_what_it_has_locked(serve: ServeProcess) -> None:
    with connect(serve.source) as direct, serve.connect("root", "") as client:
        beside = _ran(direct, "beside", serve)
        assert _ran(client, "locked", serve) == beside


def _ran(session: Connection[Cursor], database: str, serve: ServeProcess) -> list[Any]:
    found: list[Any] = []
    with session.cursor() as cursor:
        cursor.execute(f"USE {database}")
        for statement in _OWN_LOCKS:
            if statement is _KNOWN:
                serve.wait_until_complete("statements")
                continue
            count = cursor.execute(statement)
            rows = [[str(cell).replace(database, "") for cell in row] for row in cursor.fetchall()]
            found.append((statement, count, rows))
    return found


def test_locks_of_others_keep_those_alone_who_need_them(serve: ServeProcess) -> None:
    source, names = serve.source, [f"t{number}" for number in range(_WAITING)]
    execute(source, *(f"CREATE TABLE locked.{name} (a INT) ENGINE=InnoDB" for name in names))
    execute(source, *(f"CREATE TABLE beside.{name} (a INT) ENGINE=InnoDB" for name in names))
    serve.wait_until_complete("statements")
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(2 * _WAITING + 2))
        holder = stack.enter_context(connect(source))
        locked = ", ".join(f"locked.{name} WRITE" for name in names)
        with holder.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {locked}")
            for name in names:  # nobody else reads its definition now
                cursor.execute(f"ALTER TABLE locked.{name} DISABLE KEYS")
        waiting = [pool.submit(_insert, serve, f"locked.{name}") for name in names]
        beside = [pool.submit(_insert, serve, f"beside.{name}") for name in names]
        for one in beside:
            one.result(timeout=60)
        # Those who wait do so in their own sessions, as they would without the port.
        wait_until(lambda: _waiting_for_locks(source) >= _WAITING)
        assert not any(one.done() for one in waiting)
        with holder.cursor() as cursor:
            cursor.execute("UNLOCK TABLES")
        for one in waiting:
            one.result(timeout=60)
    for name in names:
        assert execute(source, f"SELECT a FROM locked.{name}") == ((1,),)


def test_an_alter_that_waits_for_a_transaction_keeps_nobody_else(serve: ServeProcess) -> None:
    source = serve.source
    execute(source, "CREATE TABLE locked.t (a INT) ENGINE=InnoDB")
    execute(source, "CREATE TABLE beside.t (a INT) ENGINE=InnoDB")
    serve.wait_until_complete("statements")
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(2))
        holder = stack.enter_context(connect(source))
        with holder.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("INSERT INTO locked.t VALUES (0)")
            altering = pool.submit(execute, source, "ALTER TABLE locked.t ADD b INT")
            wait_until(lambda: _waiting_for_locks(source) >= 1)
            waiting = pool.submit(_insert, serve, "locked.t")
            wait_until(lambda: _waiting_for_locks(source) >= 2)
            _insert(serve, "beside.t")
            cursor.execute("COMMIT")
        altering.result(timeout=60)
        waiting.result(timeout=60)
    assert sorted(execute(source, "SELECT a FROM locked.t")) == [(0,), (1,)]


def _insert(serve: ServeProcess, table: str) -> None:
    serve.execute_as_root(f"INSERT INTO {table} (a) VALUES (1)")


def _waiting_for_locks(source: PrivateServer) -> int:
    ((count,),) = execute(
        source,
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST"
        " WHERE STATE LIKE 'Waiting for table %' AND USER = 'root'",
    )
    return int(count)
