"""What the source alone knows of a transaction: whether it has begun, and whether it is still there.

A session with temporary tables of which the model loses track has rows until it ends. So each
session here has one, and its last statement reads that: it stands in the binlog as its text.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import pymysql
import pytest

from tests.judged_port import Answered, PortRecorder, judged
from tests.lent_servers import LENT
from tests.serve_process import ServeProcess
from tests.servers import ServerFactory, execute

_BINLOG: Final = "b"
_DEADLOCK: Final = 1213
_DUPLICATE: Final = 1062
_GTID_REFUSAL: Final = 1785
_MADE: Final = ("CREATE TEMPORARY TABLE x (a INT)", "INSERT INTO x VALUES (1)")
_INSERT: Final = "INSERT INTO t (v) VALUES (7)"
_READS_IT: Final = "INSERT INTO t (v) SELECT a FROM x"


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def serve(server_directory: Path, request: pytest.FixtureRequest) -> Iterator[ServeProcess]:
    """A port with a binlog of statements."""
    with ExitStack() as stack:
        servers = ServerFactory(LENT, server_directory, f"transactions-{request.param}", stack)
        start = servers.start if request.param == "mariadb" else servers.start_mysql
        source = start("source")
        execute(
            source,
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
            "CREATE TABLE d.locked (id INT PRIMARY KEY, v INT)",
            "INSERT INTO d.locked VALUES (1, 0), (2, 0)",
            "CREATE TABLE d.m (a INT PRIMARY KEY) ENGINE=MyISAM",
            "INSERT INTO d.m VALUES (1)",
        )
        serving = stack.enter_context(judged(server_directory / f"t-{request.param}", source))
        serving.execute_as_root(f"CREATE BINLOG '{_BINLOG}' FORMAT='STATEMENT'")
        yield serving


def _answered(serve: ServeProcess, statements: Sequence[str]) -> list[Answered]:
    with closing(PortRecorder(serve, [_BINLOG])) as recorder:
        return list(recorder.run(statements))


def _texts(answered: Answered) -> list[str]:
    """Texts, and the types of rows events, that the binlog got."""
    return [
        event.info.removeprefix("use `d`; ") if event.type == "Query" else event.type
        for event in answered.events[_BINLOG]
        if event.type not in {"Gtid", "Annotate_rows", "Xid", "Intvar"}
        and event.info not in {"BEGIN", "COMMIT"}
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "EXPLAIN SELECT * FROM t",
        "SHOW TABLES",
        "CHECKSUM TABLE t",
        "INSERT INTO m VALUES (2), (1)",
    ],
)
def test_a_transaction_that_has_begun_without_rows(serve: ServeProcess, statement: str) -> None:
    made = _answered(
        serve,
        [
            *(*_MADE, "SET autocommit = 0", statement, "DO 1", "COMMIT"),
            *("DELETE FROM m WHERE a = 2", "COMMIT", _INSERT, "COMMIT"),
        ],
    )
    failed = [one.error for one in made if one.error is not None]
    assert failed == ([_DUPLICATE] if statement.startswith("INSERT") else [])
    assert _texts(made[-2]) == [_INSERT]


def test_a_deadlock_rolls_back_the_transaction(serve: ServeProcess) -> None:
    other = pymysql.connect(
        host="127.0.0.1", port=serve.port, user="root", database="d", autocommit=False
    )
    with closing(other), other.cursor() as cursor, closing(PortRecorder(serve, [_BINLOG])) as port:
        session = port.run(
            [
                *_MADE,
                *("BEGIN", "UPDATE locked SET v = 1 WHERE id = 1"),
                "UPDATE locked SET v = 1 WHERE id = 2",
                _READS_IT,
            ]
        )
        for _ in range(4):
            next(session)
        # Whoever changed less is rolled back.
        cursor.execute("INSERT INTO t (v) VALUES (1), (2), (3), (4), (5), (6), (7), (8)")
        cursor.execute("UPDATE locked SET v = 2 WHERE id = 2")
        waits = threading.Thread(
            target=cursor.execute, args=("UPDATE locked SET v = 2 WHERE id = 1",)
        )
        waits.start()
        refused = next(session)
        waits.join()
        other.rollback()
        inserted, _ = session
    assert refused.error == _DEADLOCK
    assert _texts(inserted) == [_READS_IT]


def test_what_a_log_of_texts_could_not_hold(serve: ServeProcess) -> None:
    """MySQL's GTID consistency is that of the source's log: a statement without rows is not there."""
    made = _answered(
        serve,
        [
            *(*_MADE, "CREATE TEMPORARY TABLE y (a INT) ENGINE=MyISAM"),
            *("BEGIN", "DELETE FROM t WHERE id = -1", "INSERT INTO m VALUES (3)", "COMMIT"),
            *("BEGIN", "INSERT INTO t (v) VALUES (1)", "INSERT INTO y VALUES (1)", "COMMIT"),
            *("BEGIN", "INSERT INTO t (v) VALUES (1)", "INSERT INTO m VALUES (4)", "ROLLBACK"),
            *("DELETE FROM m WHERE a > 1", _READS_IT),
        ],
    )
    is_mysql = serve.source.program.scheme == "mysql"
    failed = [one.error for one in made if one.error is not None]
    assert failed == ([_GTID_REFUSAL] if is_mysql else [])
    assert _texts(made[-2]) == [_READS_IT]
