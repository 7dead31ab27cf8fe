"""A binlog that began with its tables' rows is asked by `query`, `blame` and `watch`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.servers import execute
from tests.with_rows import FLAVORS, RowsStage

_CHANGES = (
    "UPDATE shop.orders SET price = price + 1 WHERE id = 7",
    "DELETE FROM shop.orders WHERE id = 8",
    "RENAME TABLE shop.orders TO shop.bills",
    "UPDATE shop.bills SET price = 0 WHERE id = 7",
    "RENAME TABLE shop.bills TO shop.orders",
    "UPDATE shop.orders SET price = 2 WHERE id = 7",
)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_rows_of_the_beginning_are_asked_like_others(tmp_path: Path, flavor: str) -> None:
    with RowsStage(tmp_path, flavor) as stage:
        stage.fill_tables(20)
        stage.serve.execute_as_root("CREATE BINLOG 'orders' LOG(shop.orders, shop.bills) WITH ROWS")
        stage.wait_until_filled()
        execute(stage.source, *_CHANGES)
        stage.serve.wait_until_complete("orders")
        for log in (
            f"{stage.serve.data_dir}#orders",
            f"{flavor}://root@127.0.0.1:{stage.serve.port}#orders",
        ):
            _check_query(log, tmp_path)
            _check_blame(log, tmp_path)
            _check_watch(log, tmp_path)


def _check_query(log: str, folder: Path) -> None:
    columns = "_op, _before.price AS old, price, _gtid, _timestamp, _statement"
    rows = _objects(
        folder, "query", f"SELECT {columns} FROM shop.orders WHERE id = 7", log, "--format=jsonl"
    )
    assert [(row["_op"], row["old"], row["price"]) for row in rows] == [
        ("insert", None, 7.25),
        ("update", 7.25, 8.25),
        ("update", 0.0, 2.0),
    ]
    first, *others = rows
    assert first["_timestamp"]
    assert first["_statement"] is None
    assert not {_origin(first["_gtid"])} & {_origin(row["_gtid"]) for row in others}
    (counted,) = _objects(
        folder,
        *("query", "SELECT count(*) AS n FROM shop.orders WHERE _op = 'insert'", log),
        "--format=jsonl",
    )
    assert counted["n"] == 20


def _check_blame(log: str, folder: Path) -> None:
    for name in ("shop.orders", "shop.bills"):
        told = _objects(folder, "blame", name, "--key", "7", "--format=json", log)
        rows = [each for each in told if "row" in each]
        assert [(each["type"], each["table"]) for each in rows] == [
            *(("insert", "orders"), ("update", "orders"), ("update", "bills"), ("update", "orders"))
        ]
        assert told[-1]["type"] == "now"
        assert told[-1]["values"]["price"] == "2.00"


def _check_watch(log: str, folder: Path) -> None:
    told = _objects(folder, "watch", log, "--no-follow", "--format=json", "--tables", "shop.orders")
    rows = [each for each in told if "row" in each]
    assert [each["type"] for each in rows] == [*["insert"] * 20, "update", "delete", "update"]
    assert {each["after"]["id"] for each in rows[:20]} == set(range(20))
    renames = [each for each in told if "RENAME" in json.dumps(each)]
    assert len(renames) == 2, told


def _origin(gtid: str) -> str:
    """The UUID of a GTID of MySQL's, the domain of one of MariaDB's."""
    return gtid.partition(":" if ":" in gtid else "-")[0]


def _objects(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "binlane", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "MYSQL_PWD": "", "XDG_CACHE_HOME": str(folder / "cache")},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
