"""What is shipped for running binlane: a unit of systemd, and a container file."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from binlane.cli.main import binlane
from binlane.live.service.setting_keys import KEYS, variable_of
from tests.rules import ROOT

UNIT = ROOT / "packaging/systemd/binlane.service"
CONTAINER = ROOT / "packaging/container/Containerfile"
VARIABLES = {variable_of(section, key) for section in KEYS for key in KEYS[section]}


def options(command: str) -> set[str]:
    found = binlane.get_command(click.Context(binlane), command)
    assert found is not None
    return {name for option in found.params for name in option.opts}


def test_the_unit_starts_what_there_is() -> None:
    (start,) = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(), re.MULTILINE)
    program, command, *arguments = shlex.split(start)
    assert Path(program).name == "binlane"
    assert {word for word in arguments if word.startswith("--")} <= options(command)


@pytest.mark.parametrize("path", [UNIT, CONTAINER], ids=lambda path: path.name)
def test_variables_are_those_of_settings(path: Path) -> None:
    named = set(re.findall(r"\bBINLANE_[A-Z_]+", path.read_text()))
    assert named
    assert named <= VARIABLES


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / UNIT.name
    # Of what it starts only the program has to exist.
    unit.write_text(UNIT.read_text().replace("/opt/binlane/bin/binlane", sys.executable))
    said = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (said.returncode, said.stderr) == (0, "")


def test_the_container_file_copies_what_there_is() -> None:
    text = CONTAINER.read_text()
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []
    locks = re.findall(r"-r (\S+)", text)
    assert [name for name in locks if not (ROOT / name).exists()] == []
    kept = (ROOT / ".dockerignore").read_text()
    assert [name for name in names if f"!{name}" not in kept] == []
