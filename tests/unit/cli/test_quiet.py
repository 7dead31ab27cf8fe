"""`--quiet`: errors, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.cli.main import main
from tests.fixture_sets import fixture_set


@pytest.fixture
def log(tmp_path: Path) -> str:
    """A log in which a statement changes rows."""
    folder = tmp_path / "log"
    folder.mkdir()
    for name, data in fixture_set("md1011_format_mixed").binlogs:
        (folder / name).write_bytes(data)
    return str(folder)


def test_land_tells_which_tables_were_given_up(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["land", log, "--into", str(tmp_path / "lake"), "--tables", "shop.ai", "--quiet"]
    assert main(command) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert "shop.ai is given up: rows are changed by a statement" in said.err
    assert main(command) == 0
    assert capsys.readouterr() == ("", "")


def test_route_prints_no_notes(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(map(str, Path(log).iterdir()))
    command = ["route", *files, "--do-table", "shop.nosuch", "--out"]
    assert main([*command, str(tmp_path / "told")]) == 1
    assert "note: " in capsys.readouterr().err
    assert main([*command, str(tmp_path / "quiet"), "--quiet"]) == 1
    assert capsys.readouterr() == ("", "")
