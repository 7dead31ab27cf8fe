"""Temporary tables of sessions that a kill has ended: replicas of statements keep none of them."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.binlogs.store.settings import StoreSettings
from tests.port_replicas import FollowedBinlogs, replica_status
from tests.serve_process import wait_until, worker_processes
from tests.servers import execute

pytestmark = pytest.mark.system

_USES = (
    "CREATE TEMPORARY TABLE d.tt (a INT PRIMARY KEY)",
    "INSERT INTO d.tt VALUES (1), (2)",
    "INSERT INTO d.t (b) SELECT a FROM d.tt",
)


def _ask(session: Connection[Cursor], *statements: str) -> tuple[tuple[Any, ...], ...]:
    with session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return tuple(cursor.fetchall())


def _open_tables(binlogs: FollowedBinlogs) -> int:
    """Temporary tables that the replica of statements has open."""
    ((_, number),) = execute(
        binlogs.replicas["STATEMENT"], "SHOW GLOBAL STATUS LIKE 'Slave_open_temp_tables'"
    )
    return int(number)


def _problems(binlogs: FollowedBinlogs) -> list[str]:
    """How replicas differ, once they have come again behind a kill."""
    wait_until(
        lambda: not any(replica_status(each)["Last_IO_Error"] for each in binlogs.replicas.values())
    )
    return binlogs.problems()


def _prepared(binlogs: FollowedBinlogs) -> None:
    binlogs.serve.execute_as_root(
        "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b INT)"
    )


def test_a_binlog_that_lags_behind_a_start_of_the_source(tmp_path: Path) -> None:
    with ExitStack() as stack:
        binlogs = FollowedBinlogs(stack, tmp_path, ["STATEMENT", "ROW"])
        serve = binlogs.serve
        _prepared(binlogs)
        time.sleep(1.5 * StoreSettings().watermark_interval_s)  # which source this is, is saved
        serve.execute_as_root("STOP BINLOG 'statement'")
        binlogs.source.restart()
        with serve.connect("root", "") as session:
            _ask(session, *_USES)
            serve.kill()
            serve.start()
        serve.execute_as_root("START BINLOG 'statement'")
        assert _problems(binlogs) == []
        assert _open_tables(binlogs) == 0
        binlogs.source.restart()
        for _ in range(4):
            # Their threads have the numbers of those before.
            with serve.connect("root", "") as session:
                _ask(session, "CREATE TABLE IF NOT EXISTS d.tt (a INT PRIMARY KEY)")
                _ask(session, "INSERT INTO d.t (b) SELECT COUNT(*) FROM d.tt")
        assert _problems(binlogs) == []
        assert _open_tables(binlogs) == 0


def test_a_worker_that_is_killed(tmp_path: Path) -> None:
    with ExitStack() as stack:
        binlogs = FollowedBinlogs(stack, tmp_path, ["STATEMENT", "ROW"], workers=3)
        serve = binlogs.serve
        _prepared(binlogs)
        several = [stack.enter_context(serve.connect("root", "")) for _ in range(9)]
        for session in several:
            _ask(session, *_USES)
        assert _problems(binlogs) == []
        assert _open_tables(binlogs) == len(several)
        os.kill(worker_processes(serve)[0], signal.SIGKILL)
        left = [session for session in several if _is_there(session)]
        assert 0 < len(left) < len(several)
        for session in left:
            _ask(session, "INSERT INTO d.tt VALUES (3)", "INSERT INTO d.t (b) SELECT a FROM d.tt")
        assert _problems(binlogs) == []
        assert _open_tables(binlogs) == 0
        with serve.connect("root", "") as session:
            _ask(session, *_USES)
            assert _problems(binlogs) == []
            assert _open_tables(binlogs) == 1
        wait_until(lambda: _open_tables(binlogs) == 0)


def _is_there(session: Connection[Cursor]) -> bool:
    """Whether a session has not ended."""
    try:
        _ask(session, "INSERT INTO d.t (b) VALUES (10)")
    except pymysql.OperationalError:
        return False
    return True


def test_a_session_that_ends_in_the_middle_of_a_query(tmp_path: Path) -> None:
    with ExitStack() as stack:
        binlogs = FollowedBinlogs(stack, tmp_path, ["STATEMENT"])
        serve = binlogs.serve
        _prepared(binlogs)
        for query in ("SELECT SLEEP(60)", "SELECT SLEEP(60) FROM d.tt"):
            with serve.connect("root", "") as session:
                _ask(session, *_USES)
                ((thread_id,),) = _ask(session, "SELECT CONNECTION_ID()")
                with ThreadPoolExecutor() as pool:
                    asked = pool.submit(_ask, session, query)
                    time.sleep(0.5)
                    execute(binlogs.source, f"KILL {thread_id}")
                    assert isinstance(asked.exception(), pymysql.OperationalError)
            assert _problems(binlogs) == []
            wait_until(lambda: _open_tables(binlogs) == 0)
