"""What works where only the small dependencies are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fixture_sets import fixture_set

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
        "import binlane.log.kernels.load as load; assert load.kernel_modules()",
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


_ALL = """
import sys
from importlib import import_module
from pathlib import Path

import binlane

sys.modules["numba"] = None
root = Path(binlane.__file__).parent
for path in sorted(root.rglob("*.py")):
    name = ".".join(("binlane", *path.relative_to(root).with_suffix("").parts))
    if name.endswith("__main__") or ".kernels." in name:
        continue  # of the kernels, what the others use is enough
    import_module(name.removesuffix(".__init__"))
"""


def test_numba_is_needed_by_nothing_but_kernels() -> None:
    done = subprocess.run([sys.executable, "-c", _ALL], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_nobody_looks_for_numba_while_it_is_disabled() -> None:
    program = "from binlane.log.kernels.load import can_jit; print(can_jit())"
    is_there = str(find_spec("numba") is not None)
    for value, expected in (("0", is_there), ("1", "False")):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": value}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected


def test_serve_loads_no_http_before_it_is_asked_for() -> None:
    program = "import sys, binlane.live.service.service; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


_PLAIN = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in {"deltalake", "obstore", "pyiceberg", "sqlalchemy", "pyspark", "py4j", "pymysql"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from binlane.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "options, extra",
    [
        ("land LOG --into LAKE", "delta"),
        ("land LOG --into LAKE --cdf", "delta"),
        ("land LOG --into LAKE --format iceberg", "iceberg"),
        ("land LOG --into LAKE --format parquet --engine spark", "spark"),
        ("demo", "demo"),
        ("land LOG --into LAKE --format parquet --quiet", None),
    ],
)
def test_a_plain_install_names_the_extra_that_is_missing(
    options: str, extra: str | None, tmp_path: Path
) -> None:
    log, lake = tmp_path / "log.000001", tmp_path / "lake"
    log.write_bytes(dict(fixture_set("md118_txn").binlogs)["binlog.000001"])
    words = options.replace("LOG", str(log)).replace("LAKE", str(lake)).split()
    command = [sys.executable, "-c", _PLAIN, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    if extra is None:
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert list((lake / "current").glob("*/*/*.parquet"))
        return
    assert done.returncode == 2, done.stderr
    message, hint = done.stderr.splitlines()
    assert "is not installed" in message
    assert f"pip install 'binlane[{extra}]'" in hint
    assert not lake.exists()


def test_a_large_file_is_verified_where_nothing_can_compile(tmp_path: Path) -> None:
    large = tmp_path / "binlog.000001"
    _, data = fixture_set("md1011_txn").binlogs[0]
    # Beyond its end nothing is there: 33 MiB make numba worth its time where it is.
    with large.open("wb") as out:
        out.write(data)
        out.truncate(33 << 20)
    program = (
        "import sys; sys.modules['numba'] = None; "
        "import binlane.log.kernels.load as load; load._compiled_file = lambda name: None; "
        "from binlane.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "verify", str(large)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "1 fault found" in done.stderr
    assert "Traceback" not in done.stderr
