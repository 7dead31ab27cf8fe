"""A progress bar on a terminal, for work that takes longer than a moment; never in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from binlane.tables.landing.landing_progress import LandingProgress

_QUIET_S: Final = 1.0
_REFRESH_S: Final = 0.1


class LandingMeter:
    """Shows the progress of a landing on a terminal; elsewhere it does nothing."""

    def __init__(self, *, is_quiet: bool) -> None:
        self._is_seen = sys.stderr.isatty() and not is_quiet
        self._next_s = time.monotonic() + _QUIET_S
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, progress: LandingProgress) -> None:
        """Show the progress so far."""
        now = time.monotonic()
        if not self._is_seen or now < self._next_s:
            return
        self._next_s = now + _REFRESH_S
        bar = self._bar = self._bar or self._begin()
        assert self._task is not None, "begun with the bar"
        behind = progress.seconds_behind()
        bar.update(
            self._task,
            completed=progress.size_bytes,
            total=progress.size_bytes + progress.bytes_behind,
            rows=f"{sum(each.snapshot_rows for each in progress.tables.values()):,} rows"
            if progress.reading
            else f"{progress.rows:,} rows, {progress.batches} batches",
            behind=progress.reading or (f"{behind:.0f} s behind" if behind else "up to date"),
        )
        bar.refresh()

    def close(self) -> None:
        """Take the line away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _begin(self) -> Progress:
        from rich.console import Console  # noqa: PLC0415  # for long work only
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        bar = Progress(
            BarColumn(bar_width=20),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[rows]}, {task.fields[behind]}"),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
        )
        self._task = bar.add_task("", total=None, rows="", behind="")
        bar.start()
        return bar


class Meter:
    """Counts bytes that were read, and shows them once that has taken a second."""

    def __init__(self, total_bytes: int | None) -> None:
        """Start to measure time.

        Args:
            total_bytes: The bytes of all that will be read; None if that is not known.
        """
        self._total_bytes = total_bytes
        self._done_bytes = 0
        self._next_s = time.monotonic() + _QUIET_S
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, size_bytes: int) -> None:
        """Count; show from time to time."""
        self._done_bytes += size_bytes
        now = time.monotonic()
        if now < self._next_s:
            return
        self._next_s = now + _REFRESH_S
        bar = self._bar = self._bar or self._begin()
        assert self._task is not None, "begun with the bar"
        bar.update(self._task, completed=self._done_bytes)
        bar.refresh()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _begin(self) -> Progress:
        from rich.console import Console  # noqa: PLC0415  # for long work only
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            DownloadColumn,
            Progress,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        bar = Progress(
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
        )
        self._task = bar.add_task("", total=self._total_bytes)
        bar.start()
        return bar


def meter_for(paths: Iterable[str], *, writes_to_terminal: bool, is_quiet: bool) -> Meter | None:
    """Return a meter if standard error is a terminal that nothing else writes to, else None."""
    is_seen = sys.stderr.isatty() and sys.stdin.isatty() and not writes_to_terminal
    if is_quiet or not is_seen:
        return None
    sizes = [path.stat().st_size for name in paths if (path := Path(name)).is_file()]
    return Meter(sum(sizes) or None)
