"""`watch` on files that do not grow: what its options choose, and how it prints."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from binlane.cli import main
from binlane.cli.watch import read_since
from binlane.errors import ConfigError
from binlane.positions import FilePosition, GtidPosition, GtidSet
from tests.fixture_sets import fixture_set

_UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.fixture(params=["md1011_metadata_full", "my97_metadata_full"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A recorded log of each flavor."""
    name, data = fixture_set(request.param).binlogs[0]
    path = tmp_path / name
    path.write_bytes(data)
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["watch", "--no-follow", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_operations_and_columns_are_chosen(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything = shown(capsys, str(log))
    inserts = shown(capsys, str(log), "--op=insert")
    assert inserts == [line for line in everything if " INSERT " in line]
    assert 0 < len(inserts) < len(everything)
    assert shown(capsys, str(log), "--columns=no_such_column", "--op=update") == []
    assert shown(capsys, str(log), "--count=2") == everything[:2]


def test_a_place_begins_where_it_says(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything = shown(capsys, str(log))
    gtids = [line.split()[2] for line in everything]
    first = gtids[0]
    since = f"{first.rpartition(':')[0]}:1-{first.rpartition(':')[2]}" if ":" in first else first
    rest = [line for line, gtid in zip(everything, gtids, strict=True) if gtid != first]
    assert shown(capsys, str(log), f"--since={since}") == rest
    assert shown(capsys, str(log), f"--since={log.name}:4") == everything
    assert shown(capsys, str(log), "--since=2037-01-01") == []
    assert shown(capsys, str(log), "--since=2001-01-01") == everything


def test_colors_are_for_terminals(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def on_terminal(*arguments: str) -> str:
        leader, follower = pty.openpty()
        command = [sys.executable, "-m", "binlane", "watch", "--no-follow", str(log), *arguments]
        with subprocess.Popen(command, stdout=follower, stderr=subprocess.DEVNULL) as process:
            os.close(follower)
            data = b""
            try:
                while chunk := os.read(leader, 1 << 16):
                    data += chunk
            except OSError:
                pass  # so a terminal says that nobody writes any more
            assert process.wait() == 0
        os.close(leader)
        return data.decode()

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    colored = on_terminal()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert plain != colored
    assert on_terminal("--color=never") == plain
    assert max(map(len, plain.splitlines())) <= 80
    assert max(map(len, on_terminal("--color=never", "--full").splitlines())) > 80
    monkeypatch.setenv("NO_COLOR", "1")
    assert on_terminal() == plain
    assert on_terminal("--color=always") == colored


def test_a_reader_that_has_enough_is_no_error(log: Path) -> None:
    command = [sys.executable, "-m", "binlane", "watch", "--from-beginning", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0-1-5", GtidPosition.parse("0-1-5")),
        (f"{_UUID}:1-5", GtidSet.parse(f"{_UUID}:1-5")),
        ("binlog.000003:256", FilePosition("binlog.000003", 256)),
        ("2026-11-20T14:00:00Z", datetime(2026, 11, 20, 14, tzinfo=UTC)),
    ],
)
def test_places_are_read(text: str, expected: object) -> None:
    assert read_since(text) == expected


def test_times_ago_are_read() -> None:
    found = read_since("2h")
    assert isinstance(found, datetime)
    assert timedelta(hours=1) < datetime.now(UTC) - found < timedelta(hours=3)
    with pytest.raises(ConfigError, match="no place in a log"):
        read_since("yesterday")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--op=upsert"], "there is no operation 'upsert'"),
        (["--tables=shop", "--do-db=shop"], "give one of them"),
        (["--tables=shop", "--rename=follow"], "--tables goes by names"),
        (["--since=1h", "--from-beginning"], "exclude each other"),
    ],
)
def test_wrong_usage(
    arguments: list[str], message: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", "--no-follow", str(log), *arguments]) == 2
    assert message in capsys.readouterr().err
