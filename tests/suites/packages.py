"""Suites of other projects, fetched when tests ask for them; nothing of theirs is kept here.

They come from the registries' own clients and land in `.run/suites`, unpacked by name and version,
so that a second run fetches nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from tests.rules import ROOT
from tests.suites.programs import needed

FOLDER: Final = ROOT / ".run/suites"
_MAVEN_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_TIMEOUT_S: Final = 300


def debian(*packages: str, version: str) -> Path:
    """The folder into which packages of Debian are unpacked; nothing is installed.

    Args:
        packages: Names; the first one gives the folder its name.
        version: Of all whose name begins with that of the first; the others are apt's choice.
    """

    def fetch(folder: Path) -> None:
        names = [f"{name}={version}" if name.startswith(packages[0]) else name for name in packages]
        run(["apt-get", "download", *names], folder)
        for package in folder.glob("*.deb"):
            run(["dpkg-deb", "-x", package.name, "."], folder)
            package.unlink()

    return fetched(f"{packages[0]}-{version.rpartition(':')[2]}", fetch)


def pypi_source(name: str, version: str) -> Path:
    """The folder with the source of a package of PyPI, tests included where it has them."""

    def fetch(folder: Path) -> None:
        arguments = ["--quiet", "--no-deps", f"--no-binary={name}", f"{name}=={version}"]
        run([sys.executable, "-m", "pip", "download", *arguments], folder)
        _extract_only_file(folder)

    return fetched(f"{name}-{version}", fetch)


def go_module(path: str, version: str, package: str = "", *, without: str = "") -> Path:
    """The folder with a module of Go and the program of its tests, `NAME.test`.

    Args:
        path: Of the module.
        version: Of the module.
        package: The one whose tests are wanted, which gives the program its name; the module's own
            and last name by default.
        without: A pattern of lines that these tests do without: imports of other databases' drivers.
    """
    name = path.rpartition("/")[2]

    def fetch(folder: Path) -> None:
        # As its own client does it: into a cache of this folder's, from where it is copied.
        go = {
            "GOPATH": str(folder / "go"),
            "GOCACHE": str(folder / "cache"),
            "GOFLAGS": "-mod=mod -buildvcs=false",
        }
        run(["go", "mod", "download", f"{path}@{version}"], folder, go)
        shutil.copytree(folder / "go/pkg/mod" / f"{path}@{version}", folder, dirs_exist_ok=True)
        run(["chmod", "--recursive", "u+w", "."], folder)
        for test in (folder / package).glob("*_test.go") if without else ():
            test.write_text(re.sub(f"^.*{without}.*\n", "", test.read_text(), flags=re.MULTILINE))
        program = f"{package or name}.test"
        run(["go", "test", "-c", "-o", program, f"./{package}"], folder, go)

    needed("go")
    return fetched(f"{name}-{version}", fetch)


def npm_package(name: str, version: str) -> Path:
    """The folder with a package of npm and all that it needs, below `node_modules`."""

    def fetch(folder: Path) -> None:
        (folder / "package.json").write_text("{}")
        run(["npm", "install", "--ignore-scripts", "--save-exact", f"{name}@{version}"], folder)

    needed("npm")
    return fetched(f"{name}-{version}", fetch)


def maven_jar(group: str, artifact: str, version: str) -> Path:
    """The archive of an artifact of Maven's, by Maven itself."""

    def fetch(folder: Path) -> None:
        name = f"{group}:{artifact}:{version}"
        options = ["--quiet", "--batch-mode", f"-Dmaven.repo.local={folder / 'repository'}"]
        run(
            ["mvn", *options, _MAVEN_COPY, f"-Dartifact={name}", "-DoutputDirectory=."],
            folder,
        )

    needed("mvn")
    return fetched(f"{artifact}-{version}", fetch) / f"{artifact}-{version}.jar"


def fetched(name: str, fetch: Callable[[Path], None]) -> Path:
    """A folder below `FOLDER` that is filled once; skips the test where it cannot be."""
    folder = FOLDER / name
    done = folder / ".unpacked"
    if not done.exists():
        # What an earlier try left is of no use.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            fetch(folder)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            pytest.skip(f"{name} cannot be had here: {error}")
        done.touch()
    return folder


def run(
    command: Sequence[str], folder: Path, variables: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Run a program in a folder, with further variables of the environment.

    Raises:
        SubprocessError: If it fails or takes too long.
    """
    subprocess.run(
        command,
        cwd=folder,
        env=os.environ | variables,
        check=True,
        capture_output=True,
        timeout=_TIMEOUT_S,
    )


def _extract_only_file(folder: Path) -> None:
    (package,) = (path for path in folder.iterdir() if path.is_file())
    # Python's own has no filter before 3.11.4, and warns where none is named.
    run(["tar", "--extract", "--no-same-owner", "--file", package.name], folder)
    package.unlink()
