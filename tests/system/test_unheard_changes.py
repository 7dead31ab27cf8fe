"""DDL beside a session that is not heard of before the session's next transaction: nothing wrong is a text."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from binlane.binlogs.store.stored_groups import StoreReader
from tests.port_replicas import FollowedBinlogs
from tests.serve_process import ServeProcess
from tests.servers import connect

_TURNS = 12
_TRIGGER = "CREATE TRIGGER d.t BEFORE INSERT ON d.w FOR EACH ROW SET NEW.v = UUID()"


@pytest.mark.parametrize("is_beside", [True, False], ids=["beside the port", "through it"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_trigger_that_makes_statements_unsafe(
    tmp_path: Path, flavor: str, workers: int, *, is_beside: bool
) -> None:
    unsafe: list[int] = []
    number = 0
    with ExitStack() as stack:
        binlogs = FollowedBinlogs(
            stack, tmp_path, ["MIXED"], flavor=flavor, workers=workers, begins=False
        )
        serve = binlogs.serve
        serve.execute_as_root(
            "CREATE DATABASE d", "CREATE TABLE d.w (id INT PRIMARY KEY, v VARCHAR(60))"
        )
        other = connect(binlogs.source) if is_beside else serve.connect("root", "")
        client = stack.enter_context(serve.connect("root", ""))
        with stack.enter_context(other).cursor() as ddl, client.cursor() as cursor:
            for _ in range(_TURNS):
                for is_last in (False, False, False, True):
                    number += 1
                    if is_last:
                        ddl.execute(_TRIGGER)
                        unsafe.append(number)
                    cursor.execute("BEGIN")
                    cursor.execute(f"INSERT INTO d.w VALUES ({number}, 'a')")
                    cursor.execute("COMMIT")
                ddl.execute("DROP TRIGGER d.t")
        texts = _texts(serve)
    assert not [one for one in unsafe if f"INSERT INTO d.w VALUES ({one}, 'a')" in texts]


def _texts(serve: ServeProcess) -> set[str]:
    serve.wait_until_complete("mixed")
    file = StoreReader(serve.data_dir).files("mixed")[-1].path.name
    rows = serve.execute_as_root(f"SHOW BINLOG EVENTS IN '{file}'")
    return {str(row[5]).rpartition("; ")[2] for row in rows if row[2] == "Query"}
