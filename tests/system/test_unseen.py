"""Sessions at the source stay what clients make them; of its log `test_source_log` tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor, DictCursor

from binlane.live.provision.private_server import (
    PrivateServer,
)
from binlane.log.codec.packets.flags import Command
from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.port_replicas import FollowedBinlogs
from tests.serve_process import ServeProcess, wait_until
from tests.servers import connect, execute

SERVER_ID = 731


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def serve(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    directory = tmp_path_factory.mktemp("unseen")
    with LENT.lend_source(request.param, f"--server-id={SERVER_ID}") as source:
        execute(source, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)")
        execute(source, "INSERT INTO shop.orders VALUES (1), (2)")
        with judged(directory / "serve", source) as process:
            yield process


def _reset(client: Any) -> None:
    client._execute_command(int(Command.RESET_CONNECTION), b"")
    client._read_packet()


def _at_shop(serve: ServeProcess) -> Connection[Cursor]:
    client = serve.connect("root", "")
    client.select_db("shop")
    return client


def run(client: Connection[Cursor], statement: str) -> tuple[tuple[Any, ...], ...]:
    """Run a statement; a refusal is what some ways of being followed late begin with."""
    with client.cursor() as cursor:
        try:
            cursor.execute(statement)
        except pymysql.MySQLError:
            return ()
        return tuple(cursor.fetchall())


def hides_the_table(client: Connection[Cursor]) -> bool:
    """Whether a temporary table that hides another one takes what is done to that name."""
    run(client, "DELETE FROM orders")
    (left,) = run(client, "SELECT COUNT(*) FROM orders")
    return left == (0,)


HIDING = "CREATE TEMPORARY TABLE orders SELECT 9 AS id"
LATE = {
    "scoped rows": (["CREATE BINLOG 'late' LOG(shop.orders), FORMAT='ROW'"], []),
    "an error": ([], ["SELEC 1"]),
    "a comment": ([], ["/*M!999999 x */"]),
    "not logged": ([], ["SET sql_log_bin = 0"]),
    "statements": (["CREATE BINLOG 'late' FORMAT='STATEMENT'"], []),
    "its format": (["CREATE BINLOG 'late' FORMAT='MIXED'"], ["SET binlog_format = 'ROW'"]),
    "its transaction": (["CREATE BINLOG 'late' FORMAT='STATEMENT'"], ["SET autocommit = 0"]),
}


@pytest.mark.parametrize("way", LATE)
@pytest.mark.parametrize("is_before", [True, False], ids=["before", "behind"])
def test_a_temporary_table_is_there_however_its_session_is_followed(
    serve: ServeProcess, way: str, *, is_before: bool
) -> None:
    definitions, statements = LATE[way]
    if way == "its transaction" and serve.source.program.scheme == "mysql":
        pytest.skip("MySQL makes no temporary table in a transaction of a statement binlog (3748)")
    with closing(_at_shop(serve)) as client:
        if is_before and definitions:
            serve.execute_as_root(*definitions)
        for statement in statements if is_before else ():
            run(client, statement)
        told(client, [HIDING])
        if definitions and not is_before:
            serve.execute_as_root(*definitions)
        for statement in () if is_before else statements:
            run(client, statement)
        assert hides_the_table(client)
        run(client, "COMMIT")
        _reset(client)
        run(client, "USE shop")
        told(client, [HIDING])
        assert hides_the_table(client)
    for _ in definitions:
        serve.execute_as_root("DROP BINLOG 'late'")
    assert execute(serve.source, "SELECT id FROM shop.orders ORDER BY id") == ((1,), (2,))


def test_texts_go_on_behind_a_temporary_table_without_autocommit(serve: ServeProcess) -> None:
    """MariaDB, whose own log is one of rows, begins no transaction with it."""
    if serve.source.program.scheme == "mysql":
        pytest.skip("MySQL makes no temporary table in a transaction of a statement binlog (3748)")
    serve.execute_as_root("CREATE BINLOG 'texts' FORMAT='STATEMENT'")
    with closing(_at_shop(serve)) as client:
        told(client, ["SET autocommit = 0", "CREATE TEMPORARY TABLE own (id INT) ENGINE=InnoDB"])
        told(client, ["DROP TEMPORARY TABLE own", "INSERT INTO orders VALUES (7)", "COMMIT"])
        told(client, ["DELETE FROM orders WHERE id = 7", "COMMIT"])
    serve.wait_until_complete("texts")
    events = serve.execute_as_root("SHOW BINLOG EVENTS IN 'texts.000001'")
    serve.execute_as_root("DROP BINLOG 'texts'")
    texts = [str(row[5]).rpartition("; ")[2] for row in events if row[2] == "Query"]
    assert "INSERT INTO orders VALUES (7)" in texts
    assert "DELETE FROM orders WHERE id = 7" in texts


def test_a_session_is_told_what_the_source_has(serve: ServeProcess) -> None:
    serve.execute_as_root("CREATE BINLOG 'texts' FORMAT='STATEMENT'")
    with (
        closing(_at_shop(serve)) as client,
        closing(connect(serve.source, user="root", database="shop")) as direct,
    ):
        for statement in ("CREATE TABLE t (a INT)", "INSERT INTO t VALUES (RAND() * 0 + 1)"):
            run(client, statement)
        for question in (
            "SELECT @@server_id, @@GLOBAL.server_id, @@session.pseudo_thread_id = CONNECTION_ID()",
            "SHOW VARIABLES LIKE 'server_id'",
            "SHOW VARIABLES LIKE 'gtid_domain_id'",
            "SHOW VARIABLES LIKE 'gtid_next'",
            "SHOW VARIABLES LIKE 'session_track%'",
        ):
            assert run(client, question) == run(direct, question), question
        run(client, "DROP TABLE t")
    serve.execute_as_root("DROP BINLOG 'texts'")


def test_the_source_s_gtids_are_its_own(serve: ServeProcess) -> None:
    serve.execute_as_root("CREATE BINLOG 'texts' FORMAT='STATEMENT'")
    with closing(_at_shop(serve)) as client:
        for statement in (
            "CREATE TABLE g (a INT)",
            "INSERT INTO g VALUES (1)",
            "CREATE TEMPORARY TABLE own SELECT 2 AS a",
            "INSERT INTO g SELECT a FROM own",
            "DROP TABLE g",
        ):
            run(client, statement)
    serve.wait_until_complete("texts")
    serve.execute_as_root("DROP BINLOG 'texts'")
    if serve.source.program.scheme == "mariadb":
        ((state,),) = execute(serve.source, "SELECT @@GLOBAL.gtid_binlog_state")
        assert {one.split("-")[1] for one in state.split(",")} == {str(SERVER_ID)}
    else:
        ((executed,),) = execute(serve.source, "SELECT @@GLOBAL.gtid_executed")
        assert executed.count(":") == executed.count("-") - 4  # a UUID and one run, no tag
    procedures = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'binlane'"
    assert execute(serve.source, procedures) == ((0,),)


def told(client: Connection[Cursor], statements: Sequence[str]) -> None:
    with client.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_sessions_mark_behind_a_restart_of_the_source(tmp_path: Path) -> None:
    with ExitStack() as stack:
        binlogs = FollowedBinlogs(stack, tmp_path, ["STATEMENT"])
        serve, source = binlogs.serve, binlogs.source
        execute(source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT)")
        statements = (
            "CREATE TEMPORARY TABLE d.own SELECT 1 AS a",
            "INSERT INTO d.t SELECT a FROM d.own",
        )
        for _ in range(2):
            for _ in range(3):
                with closing(serve.connect("root", "")) as client:
                    told(client, statements)
            source.restart()
            wait_until(lambda: _is_there(serve))
        wait_until(lambda: _is_connected(binlogs.replicas["STATEMENT"]))
        assert binlogs.problems() == []
        # A mark for the last session's end may come too late, when its table is gone anyway.
        assert [line for line in serve.log.splitlines() if "as its text" in line] == []


def _is_there(serve: ServeProcess) -> bool:
    try:
        serve.execute_as_root("SELECT 1")
    except pymysql.MySQLError:
        return False
    return True


def test_replicas_drop_the_temporary_tables_of_a_killed_port(tmp_path: Path) -> None:
    with ExitStack() as stack:
        binlogs = FollowedBinlogs(stack, tmp_path, ["STATEMENT"])
        serve, source = binlogs.serve, binlogs.source
        execute(source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT)")
        client = serve.connect("root", "")
        told(client, ("CREATE TEMPORARY TABLE d.own (a INT)", "INSERT INTO d.own VALUES (1)"))
        replica = binlogs.replicas["STATEMENT"]
        serve.wait_until_complete("statement")
        wait_until(lambda: _open(replica) == 1)
        serve.kill()
        serve.start()
        serve.execute_as_root("INSERT INTO d.t VALUES (7)")
        wait_until(lambda: _is_connected(replica))
        assert binlogs.problems() == []
        assert _open(replica) == 0


def _is_connected(replica: PrivateServer) -> bool:
    with closing(connect(replica, cursorclass=DictCursor)) as connection:
        cursor = connection.cursor()
        cursor.execute("SHOW SLAVE STATUS")
        status: Any = cursor.fetchone()
        return bool(status["Slave_IO_Running"] == "Yes")


def _open(replica: PrivateServer) -> int:
    ((_, count),) = execute(replica, "SHOW GLOBAL STATUS LIKE 'Slave_open_temp_tables'")
    return int(count)
