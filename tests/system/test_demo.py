"""The product's whole line, as `./run demo` walks it: every check of the demo must hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import mysql_program


def demo(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "binlane", "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env=os.environ | environment,
    )


@pytest.mark.spark
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_the_whole_line(flavor: str, tmp_path: Path) -> None:
    servers = [] if flavor == "mariadb" else _mysql()
    done = demo("--transactions", "60", *servers, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✗" not in done.stdout
    claims = [line for line in done.stdout.splitlines() if line.startswith("  ✓")]
    for claim in (
        "both binlogs are defined",
        "CHECKSUM TABLE shop.orders is equal on source and replica",
        "CHECKSUM TABLE shop.items is equal on source and replica",
        "no other table is on the replica",
        "what binlogs would hold in part is refused before it runs",
        "one transaction is statements in one binlog and rows in another",
        "no byte of crm is in the files of `orders`",
        "binlane verify finds no fault",
        "Spark sees no table of crm",
        "current/shop/orders is row for row what the server selects",
        "current/shop/inventory is row for row what the server selects",
    ):
        assert any(claim in line for line in claims), claim
    assert f"{len(claims)} of {len(claims)} checks held" in done.stdout
    assert done.stderr == ""
    assert not list(tmp_path.glob("binlane-demo-*"))
    text = done.stdout.partition("(some of it)")[2].partition("✓")[0]
    assert "INSERT INTO `shop`.`orders`" in text


def _mysql() -> list[str]:
    folder = mysql_program().folder
    return ["--mysql"] if folder is None else [f"--mysql={folder}"]


def test_a_failure_says_which_step_and_where_the_logs_are(tmp_path: Path) -> None:
    # Nothing that the demo needs is found there, and no server starts.
    done = demo(PATH=str(tmp_path), TMPDIR=str(tmp_path))
    assert done.returncode == 3
    assert done.stderr.startswith("binlane: ")
    assert "hint: " in done.stderr
    assert "Data and logs are in" in done.stdout
