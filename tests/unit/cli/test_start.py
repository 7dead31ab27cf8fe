"""What `cat` of a small log leaves unimported: each of these costs its start a millisecond or more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixture_sets import fixture_set

FOR_OTHER_WORK = {
    *("numba", "numpy", "pyarrow", "rich", "asyncio", "cryptography", "zstandard"),
    *("gzip", "lzma", "shutil", "tempfile", "json", "importlib.metadata"),
}
OF_OTHER_LOGS = {
    f"binlane.log.codec.{name}"
    for name in (
        *("encryption", "fragments", "group_replication", "heartbeat", "json_binary", "json_diff"),
        *("load_data", "old_load", "payload", "variables"),
    )
}
OF_MYSQL = {"binlane.binlogs.cat.text.mysql", "binlane.log.codec.mysql_transaction"}
OF_MARIADB = {"binlane.binlogs.cat.text.mariadb"}
PROGRAM = """
import sys
from binlane.cli import main
code = main(["cat", "-vv", sys.argv[1]])
print(code, *sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("name", "foreign"),
    [("md1011_group_commit", OF_MYSQL), ("my97_group_commit", OF_MARIADB)],
)
def test_a_small_log_imports_what_it_holds(name: str, foreign: set[str], tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(fixture_set(name).binlogs[0][1])

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True
    )
    code, *imported = done.stderr.split()

    assert code == "0"
    assert not set(imported) & (FOR_OTHER_WORK | OF_OTHER_LOGS | foreign)
