"""Tries an installed wheel where neither numba nor Spark is: `python -m tests.wheel`.

`just wheel` runs it. The kernels that the wheel brings must be found and used, and give what the
reference decoder gives.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import redirect_stdout
from importlib.metadata import metadata
from importlib.util import find_spec
from io import BytesIO, TextIOWrapper
from pathlib import Path
from unittest.mock import patch

import binlane
from binlane.binlogs.store import byte_source
from binlane.cli import cat_fast
from binlane.cli.main import main as command
from binlane.log.kernels.load import Target, compiled_module, compiled_name, kernel_modules, kernels
from tests.fixture_sets import fixture_set


def main() -> None:
    """Scan and print one log, first as a small one, which goes without kernels, then with them."""
    assert Path(binlane.__file__).is_relative_to(sys.prefix), binlane.__file__
    assert find_spec("numba") is None
    about = metadata("binlane")
    assert about["License-Expression"] == "Apache-2.0"
    assert about.get_all("License-File") == ["LICENSE"]
    for name in kernel_modules():
        module = compiled_module(name)
        assert module is not None, f"{name} is not compiled"
        assert module.__name__ == compiled_name(name, Target.PORTABLE)
    with tempfile.TemporaryDirectory() as folder:
        (name, data), *_ = fixture_set("md1011_engines_row").files.items()
        log = Path(folder, name)
        log.write_bytes(data)
        by_reference = rows(log), text(log)
        assert by_reference[0]
        assert not used()
        with (
            patch.object(byte_source, "FAST_BYTES_MIN", 0),
            patch.object(cat_fast, "_WORTH_BYTES", 0),
        ):
            assert (rows(log), text(log)) == by_reference
        assert {"scan", "locate", "print_events"} <= used()
    print("the wheel's kernels are used, and give what the reference decoder gives")


def used() -> set[str]:
    """The kernels that were asked for."""
    return {name for name in vars(kernels()) if not name.startswith("_")}


def rows(log: Path) -> list[object]:
    """All rows of a log."""
    return [row for batch in binlane.scan(log, columns=[]) for row in batch.to_pylist()]


def text(log: Path) -> bytes:
    """A log as text."""
    output = TextIOWrapper(BytesIO(), encoding="utf-8")
    with redirect_stdout(output):
        assert command(["cat", "--quiet", "-vv", str(log)]) == 0
        output.flush()
    binary = output.buffer
    assert isinstance(binary, BytesIO)
    return binary.getvalue()


if __name__ == "__main__":
    main()
