"""The progress bar: only where somebody sees it, and only for work that takes a while."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from binlane.cli.progress_meter import Meter, meter_for


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Have standard error and input be terminals; a fixture could not, pytest sets them anew."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_nothing_in_a_pipe() -> None:
    assert meter_for((), writes_to_terminal=False, is_quiet=False) is None


def test_a_meter_on_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    terminal = on_a_terminal(monkeypatch)
    file = tmp_path / "binlog.000001"
    file.write_bytes(bytes(10))
    paths = (str(file), "-")
    assert meter_for(paths, writes_to_terminal=True, is_quiet=False) is None
    assert meter_for(paths, writes_to_terminal=False, is_quiet=True) is None
    assert isinstance(meter_for(paths, writes_to_terminal=False, is_quiet=False), Meter)
    assert terminal.getvalue() == ""


def test_short_work_shows_nothing_long_work_a_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = on_a_terminal(monkeypatch)
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    meter = Meter(4096)
    now = 100.9
    meter(1024)
    assert terminal.getvalue() == ""
    now = 101.1
    meter(1024)
    assert "2.0/4.1 kB" in terminal.getvalue()
    meter.close()
