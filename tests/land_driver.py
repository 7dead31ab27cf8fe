"""Landings in processes that tests kill: every work goes to a process of its own.

Else works of a few bytes, which is what a source writes in a second, are done by the driver itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from binlane.cli.main import main
from binlane.tables.landing import engine
from binlane.tables.landing.landing import land
from binlane.tables.landing.landing_settings import LandingSettings


def land_alone(log: Path, lake: Path, settings: LandingSettings, *, spreads: bool) -> None:
    """Land in a process that was forked for that, and end it.

    Args:
        log: The source.
        lake: The target.
        settings: How.
        spreads: Whether works go to other processes.
    """
    if spreads:
        engine.SMALL_BYTES = 0  # type: ignore[misc]  # for this process alone
    land(str(log), str(lake), settings)
    os._exit(0)


if __name__ == "__main__":
    engine.SMALL_BYTES = 0  # type: ignore[misc]  # for this process alone
    sys.exit(main())
