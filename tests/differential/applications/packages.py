"""Packages of Debian and PyPI, fetched when tests ask for them; nothing of theirs is kept here.

They land in `.run/applications`, unpacked by name, so that a second run fetches nothing. What a
package brings is read, never run.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from tests.rules import ROOT

_TIMEOUT_S: Final = 300


def unpacked(*, debian: str = "", pypi: str = "", is_source: bool = False) -> Path:
    """The folder with a package's files, of PyPI's those of its sources if `is_source`.

    Skips the test where it cannot be had.
    """
    name = debian or pypi
    folder = ROOT / ".run/applications" / name
    done = folder / ".unpacked"
    if done.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if debian:
            _run(["apt-get", "download", debian], folder)
            (package,) = folder.glob("*.deb")
            _run(["dpkg-deb", "-x", package.name, "."], folder)
        else:
            which = f"--no-binary={pypi}" if is_source else "--prefer-binary"
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", which, pypi]
            _run(command, folder)
            (package,) = (path for path in folder.iterdir() if path.is_file())
            _extract(package, folder)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        pytest.skip(f"the package {name} cannot be had here: {error}")
    package.unlink()
    done.touch()
    return folder


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_TIMEOUT_S)


def _extract(package: Path, folder: Path) -> None:
    if package.suffix == ".whl":
        with ZipFile(package) as archive:
            archive.extractall(folder)
    else:
        # Python's own has no filter before 3.11.4, and warns where none is named.
        _run(["tar", "--extract", "--no-same-owner", "--file", package.name], folder)
