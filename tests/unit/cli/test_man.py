from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from binlane import __version__
from binlane.cli.main import COMMANDS, main
from tests.rules import ROOT


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("share") / "man1"
    assert main(["man", "--into", str(made)]) == 0
    return made


def test_each_command_has_a_page_with_its_options(folder: Path) -> None:
    named = {"binlane.1", "binlane-config-check.1", *(f"binlane-{name}.1" for name in COMMANDS)}
    assert {page.name for page in folder.iterdir()} == named
    route = (folder / "binlane-route.1").read_text()
    for text in (".SH NAME", "binlane\\-route \\- Make scoped", "\\-\\-binlogs DEFS.sql"):
        assert text in route


def test_troff_takes_every_page_as_it_is(folder: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for page in folder.iterdir():
        done = subprocess.run(
            ["groff", "-man", "-ww", "-Kutf8", "-Tutf8", str(page)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"LC_ALL": "C.UTF-8"},
        )
        assert (done.returncode, done.stderr) == (0, ""), page.name


def test_one_page_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["man", "config", "check"]) == 0
    assert capsys.readouterr().out.startswith(".TH binlane\\-config\\-check".upper())
    assert main(["man", "nonsense"]) == 2
    assert "hint: the commands are cat, " in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, completed", [("binlane ro", "route"), ("binlane land --snap", "--snapshot")]
)
def test_a_shell_completes_commands_and_options(words: str, completed: str) -> None:
    asked = {"_BINLANE_COMPLETE": "bash_complete", "COMP_WORDS": words}
    asked["COMP_CWORD"] = str(len(words.split()) - 1)
    done = subprocess.run(
        [sys.executable, "-m", "binlane"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | asked,
    )
    assert done.stdout.splitlines() == [f"plain,{completed}"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "binlane"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"_BINLANE_COMPLETE": f"{shell}_source"},
    )
    assert "binlane" in done.stdout


def test_the_version_says_what_sources_alone_lack(tmp_path: Path) -> None:
    # As in a wheel that was built without kernels.
    lacking = shutil.ignore_patterns("_compiled_*", "_portable_*", "__pycache__")
    shutil.copytree(ROOT / "src/binlane", tmp_path / "binlane", ignore=lacking)
    done = subprocess.run(
        [sys.executable, "-m", "binlane", "--version"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
    )
    first, *others = done.stdout.splitlines()
    assert first == f"binlane {__version__}"
    assert "without compiled kernels" in others[0]
