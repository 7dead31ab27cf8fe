"""What works where only the small dependencies are installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"numba", "llvmlite", "numpy", "pyarrow", "pyspark", "py4j"}:
            raise ImportError(f"{name} is not for this")

sys.meta_path.insert(0, Blocked())
"""


@pytest.mark.parametrize(
    "program",
    [
        "import binlane; assert binlane.__version__",
        "import binlane.kernels.load as load; assert load.kernel_modules()",
        "from binlane.cli.main import main; sys.exit(main(sys.argv[1:]))",
    ],
    ids=["import", "kernels", "check"],
)
def test_without_numba_arrow_and_spark(program: str, tmp_path: Path) -> None:
    schema, script = tmp_path / "schema.sql", tmp_path / "script.sql"
    schema.write_text("CREATE DATABASE shop; USE shop; CREATE TABLE t (id INT) ENGINE=InnoDB;\n")
    script.write_text("INSERT INTO t VALUES (1);\n")
    check = ["check", "--server", "mariadb", "--schema", str(schema), str(script)]
    command = [sys.executable, "-c", _WITHOUT + program, *check]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_numba_is_blocked_where_it_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT + "import numba"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "numba is not for this" in done.stderr


def test_serve_loads_no_http_before_it_is_asked_for() -> None:
    program = "import sys, binlane.service.serve; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
