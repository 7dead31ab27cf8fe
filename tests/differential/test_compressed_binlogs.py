"""The servers' tools print of compressed binlogs what they print of plain ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.routed_files import routed, written
from tests.servers import of_mysql


def _printed(program: list[str], folder: Path) -> list[str]:
    """Rows and statements; events have other places and other types."""
    files = sorted(map(str, folder.glob("*.0*")))
    command = [*program, "--no-defaults", "-v", "--base64-output=decode-rows", *files]
    if program == ["mariadb-binlog"]:
        command.insert(2, "--verify-binlog-checksum")
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return [line for line in lines if line.startswith("###") or not line.startswith("#")]


@pytest.mark.parametrize("image", ["", "ROW_IMAGE='MINIMAL'", "ROW_IMAGE='NOBLOB'"])
@pytest.mark.parametrize(
    "name",
    [
        *("md1011_load_data_row", "md1011_types_string", "md1011_metadata_full"),
        *("md118_format_statement", "my97_txn", "my97_types_string", "my97_metadata_full"),
    ],
)
def test_tools_print_the_same(name: str, image: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    clauses = [f"LOG ALL, {image}" if image else "", "COMPRESS='ON'" + (image and f", {image}")]
    routed(written(name, tmp_path / "in"), out, *clauses)
    program = of_mysql("mysqlbinlog") if name.startswith("my97") else ["mariadb-binlog"]
    plain, compressed = (_printed(program, out / binlog) for binlog in ("b1", "b2"))
    assert plain == compressed
    assert any(line.startswith("### INSERT") for line in plain) or "statement" in name
    sizes = [sum(file.stat().st_size for file in (out / b).glob("*.0*")) for b in ("b1", "b2")]
    assert sizes[1] <= sizes[0]
