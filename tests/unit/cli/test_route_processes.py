"""`route --processes`: the example of the documentation, and values that are none."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from binlane.cli.main import main
from binlane.log.kernels.load import is_compiled
from tests.routed_files import outputs, written
from tests.rules import ROOT

DEFINITIONS = (
    "CREATE BINLOG 'orders' LOG(shop.orders, shop.items);\nCREATE BINLOG 'rest' IGNORE(crm);\n"
)
COMPILED = is_compiled(("copying", "scan"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with an archive and definitions, as the documentation has them."""
    written("md1011_rotation", tmp_path / "archive")
    for number, path in enumerate(sorted((tmp_path / "archive").iterdir()), 1):
        path.rename(path.with_name(f"binlog.{number:06}"))
    (tmp_path / "defs.sql").write_text(DEFINITIONS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_example_in_the_documentation(here: Path) -> None:
    page = (ROOT / "docs/how-to/route.md").read_text()
    section = page.split("## Many files at the same time")[1]
    command = shlex.split(section.split("```console\n$ .venv/bin/binlane ")[1].split("\n", 1)[0])
    at = command.index("archive/binlog.0*")
    paths = [str(path) for path in sorted(Path("archive").glob("binlog.0*"))]
    command[at : at + 1] = paths
    assert "--processes" in command
    assert len(paths) > 1
    assert main(command) == 0
    one = ["route", *paths, "--binlogs", "defs.sql", "--out", "one", "--quiet"]
    assert main(one) == 0
    assert outputs(here / "scoped") == outputs(here / "one")
    assert (here / "scoped" / "binlane-writers.lock").exists() == COMPILED


@pytest.mark.parametrize(
    "options, told",
    [
        (["--processes", "0"], "neither auto nor a number"),
        (["--processes", "many"], "neither auto nor a number"),
        (["--master", "local[2]"], "add --engine spark"),
    ],
)
def test_values_that_are_none(
    options: list[str], told: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del here
    given = ["route", "archive/binlog.000001", "--binlogs", "defs.sql", "--out", "out"]
    assert main([*given, *options]) != 0
    assert told in capsys.readouterr().err


def test_a_filter_is_told_to_need_one_process(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(path) for path in sorted((here / "archive").iterdir())]
    options = ["--do-db=shop", "--processes", "2"]
    assert main(["route", *paths, "--binlogs", "defs.sql", "--out", "out", *options]) == 0
    assert "one after another" in capsys.readouterr().err
