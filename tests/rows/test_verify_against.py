"""`verify --against` the source's log: rows that a binlog begins with, and tables that came in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.serve_process import wait_until
from tests.servers import execute
from tests.with_rows import FLAVORS, RowsStage

_DEFINITIONS: Final = (
    "CREATE BINLOG 'rows' LOG(shop.orders, shop.items, shop.came)",
    "CREATE BINLOG 'plain' LOG(shop.orders, shop.came)",
)
_ARRIVALS: Final = (
    "CREATE TABLE shop.new (id INT PRIMARY KEY, v INT)",
    "INSERT INTO shop.new VALUES (1, 2), (3, 4)",
    "RENAME TABLE shop.new TO shop.came",
    "UPDATE shop.came SET v = 9 WHERE id = 1",
    (
        "CREATE TABLE shop.more (id INT PRIMARY KEY, name VARCHAR(80), price DECIMAL(9, 2),"
        " at DATETIME(3), note TEXT, extra INT)"
    ),
    "INSERT INTO shop.more SELECT o.*, 5 FROM shop.orders o",
    "RENAME TABLE shop.orders TO shop.old, shop.more TO shop.orders",
    "UPDATE shop.orders SET extra = 6 WHERE id = 4",
)


def _verify(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "binlane", "verify", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_rows_that_no_log_has_are_told_as_such(tmp_path: Path, flavor: str) -> None:
    with RowsStage(tmp_path, flavor) as stage:
        serve = stage.serve
        stage.fill_tables(20)
        serve.execute_as_root(f"{_DEFINITIONS[0]} WITH ROWS", _DEFINITIONS[1])
        wait_until(lambda: {row[7] for row in serve.execute_as_root("SHOW BINLOGS")} == {"OPEN"})
        execute(stage.source, *_ARRIVALS)
        for name in ("rows", "plain"):
            serve.wait_until_complete(name)
        assert serve.stop() == 0
        execute(stage.source, "FLUSH BINARY LOGS")
        full = sorted(map(str, (stage.source.directory / "data").glob("binlog.0*")))
        assert _verify(str(serve.data_dir)).stdout == ""
        definitions = tmp_path / "definitions.sql"
        definitions.write_text(";\n".join(_DEFINITIONS))
        done = _verify(str(serve.data_dir), "--binlogs", str(definitions), "--against", *full)
        assert (done.stdout, done.returncode) == ("", 0), done.stdout
        notes = done.stderr.splitlines()
        assert sum("rows of its tables as they were" in note for note in notes) == 1, notes
        assert sum("came into the scope with its rows" in note for note in notes) == 2, notes
        done = _verify(str(serve.data_dir), "--against", *full)
        # Two scoped binlogs are not all of the log; what is missing is told, and nothing else.
        told = [line.split(": ", 1)[1] for line in done.stdout.splitlines()]
        assert len(told) == 4, told
        assert all("is in no binlog" in line for line in told), told
