"""DDL beside a session that is not heard of before the session's next transaction: nothing wrong is a text."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from binlane.binlogs.store.stored_groups import StoreReader
from tests.port_replicas import FollowedBinlogs
from tests.serve_process import ServeProcess
from tests.servers import connect

_TURNS = 12


class Toggle(NamedTuple):
    """DDL that makes a statement unsafe, and DDL that makes it safe again.

    Attributes:
        statement: The statement, with a place for a number.
        unsafe: Makes it unsafe.
        safe: Makes it what it was before.
        before: Makes what is needed first.
    """

    statement: str
    unsafe: tuple[str, ...]
    safe: tuple[str, ...]
    before: tuple[str, ...] = ()


def _function(result: str) -> tuple[str, ...]:
    head = "CREATE FUNCTION d.f() RETURNS VARCHAR(60) DETERMINISTIC"
    return "DROP FUNCTION IF EXISTS d.f", f"{head} RETURN {result}"


_TOGGLES = {
    "trigger": Toggle(
        "INSERT INTO d.w VALUES ({}, 'a')",
        ("CREATE TRIGGER d.t BEFORE INSERT ON d.w FOR EACH ROW SET NEW.v = UUID()",),
        ("DROP TRIGGER d.t",),
    ),
    "default": Toggle(
        "INSERT INTO d.w (id) VALUES ({})",
        ("ALTER TABLE d.w MODIFY v VARCHAR(60) DEFAULT (UUID())",),
        ("ALTER TABLE d.w MODIFY v VARCHAR(60) DEFAULT 'a'",),
    ),
    "function": Toggle(
        "INSERT INTO d.w VALUES ({}, d.f())",
        _function("UUID()"),
        _function("'a'"),
        _function("'a'"),
    ),
    "view": Toggle(
        "INSERT INTO d.w SELECT {}, v FROM d.x",
        ("CREATE OR REPLACE VIEW d.x AS SELECT id, UUID() AS v FROM d.o",),
        ("CREATE OR REPLACE VIEW d.x AS SELECT * FROM d.o",),
        (
            "CREATE TABLE d.o (id INT, v VARCHAR(60))",
            "INSERT INTO d.o VALUES (1, 'a')",
            "CREATE VIEW d.x AS SELECT * FROM d.o",
        ),
    ),
}


@pytest.mark.parametrize("is_beside", [True, False], ids=["beside the port", "through it"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize(
    "kind",
    ["trigger", *(pytest.param(kind, marks=pytest.mark.slow) for kind in [*_TOGGLES][1:])],
)
def test_ddl_that_makes_statements_unsafe(
    tmp_path: Path, kind: str, flavor: str, workers: int, *, is_beside: bool
) -> None:
    toggle = _TOGGLES[kind]
    unsafe: list[int] = []
    number = 0
    with ExitStack() as stack:
        binlogs = FollowedBinlogs(
            stack, tmp_path, ["MIXED"], flavor=flavor, workers=workers, begins=False
        )
        serve = binlogs.serve
        serve.execute_as_root(
            "CREATE DATABASE d",
            "CREATE TABLE d.w (id INT PRIMARY KEY, v VARCHAR(60))",
            *toggle.before,
        )
        other = connect(binlogs.source) if is_beside else serve.connect("root", "")
        client = stack.enter_context(serve.connect("root", ""))
        with stack.enter_context(other).cursor() as ddl, client.cursor() as cursor:
            for _ in range(_TURNS):
                for is_last in (False, False, False, True):
                    number += 1
                    if is_last:
                        for statement in toggle.unsafe:
                            ddl.execute(statement)
                        unsafe.append(number)
                    cursor.execute("BEGIN")
                    cursor.execute(toggle.statement.format(number))
                    cursor.execute("COMMIT")
                for statement in toggle.safe:
                    ddl.execute(statement)
        texts = _texts(serve)
    assert not [one for one in unsafe if toggle.statement.format(one) in texts]


def _texts(serve: ServeProcess) -> set[str]:
    serve.wait_until_complete("mixed")
    file = StoreReader(serve.data_dir).files("mixed")[-1].path.name
    rows = serve.execute_as_root(f"SHOW BINLOG EVENTS IN '{file}'")
    return {str(row[5]).rpartition("; ")[2] for row in rows if row[2] == "Query"}
