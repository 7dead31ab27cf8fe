from __future__ import annotations

from pathlib import Path

import pytest

from binlane.errors import ConfigError
from binlane.tables.spark import spark_session as session


def fake_java(home: Path, version: str) -> Path:
    """A directory with a `java` that says this version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-20' >&2\n")
    program.chmod(0o755)
    return home


def test_java_home_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "mine", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert session.find_java_home() == home


def test_a_java_that_is_too_old_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.20")))
    new = fake_java(tmp_path / "new", "17.0.15")
    monkeypatch.setenv("PATH", f"{new / 'bin'}:/bin")
    assert session.find_java_home() == new


def test_no_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(session, "_JAVA_FOLDERS", (str(tmp_path),))
    with pytest.raises(ConfigError, match="needs Java 17 or later") as caught:
        session.find_java_home()
    assert "apt-get install openjdk-17-jre-headless" in caught.value.hint
