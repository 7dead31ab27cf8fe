"""The applications of `applications.toml`, and their scripts as text."""

from __future__ import annotations

import gzip
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from binlane.errors import StoreError
from tests.differential.applications.packages import unpacked


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application, and where its SQL stands.

    Attributes:
        name: As people call it.
        debian: The package that brings it, if that is Debian's.
        pypi: The same of PyPI.
        maven: The same of Maven Central: group, artifact and version, with colons between.
        is_source: Whether PyPI's sources have the SQL: what stands among a project's tests is in no
            wheel.
        patterns: Of its scripts' paths, in the order in which they are run.
        for_mysql: Whether it is meant for MySQL too.
    """

    name: str
    debian: str
    pypi: str
    maven: str
    is_source: bool
    patterns: tuple[str, ...]
    for_mysql: bool

    @property
    def package(self) -> str:
        """Its package, with the registry where that is not Debian."""
        group, _, name = self.maven.partition(":")
        if group:
            return f"{name.partition(':')[0]} (Maven)"
        return self.debian or f"{self.pypi} (PyPI)"

    def scripts(self) -> list[tuple[str, bytes]]:
        """Its scripts, by path; skips the test where the package cannot be had."""
        folder = self._folder()
        paths = dict.fromkeys(
            path
            for pattern in self.patterns
            for path in sorted(folder.glob(pattern), key=_in_order)
            if path.is_file() and path.resolve().is_relative_to(folder.resolve())
        )
        assert paths, f"{self.name} has no scripts any more at {self.patterns}"
        return [(str(path.relative_to(folder)), _bytes(path)) for path in paths]

    def read(self, path: str) -> bytes:
        """A file of its package, by the path that it has where the package is installed."""
        folder = self._folder()
        try:
            return _bytes(folder / path.lstrip("/"))
        except OSError as error:
            raise StoreError("it is not there", path=path) from error

    def _folder(self) -> Path:
        return unpacked(
            debian=self.debian, pypi=self.pypi, maven=self.maven, is_source=self.is_source
        )


def applications() -> Iterator[Application]:
    """All of them."""
    text = Path(__file__).with_name("applications.toml").read_text("utf-8")
    for told in tomllib.loads(text)["application"]:
        yield Application(
            name=told["name"],
            debian=told.get("debian", ""),
            pypi=told.get("pypi", ""),
            maven=told.get("maven", ""),
            is_source=told.get("source", False),
            patterns=tuple(told["scripts"]),
            for_mysql=told.get("mysql", True),
        )


def _in_order(path: Path) -> list[tuple[int, str]]:
    """A key by which 1.9 stands before 1.10."""
    parts = re.split(r"(\d+)", str(path))
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _bytes(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data
