"""An hour of everything at once: load, definitions, restarts and kills, with two replicas behind.

`BINLANE_SOAK_S` says for how many seconds, 3600 by default.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.live_story import Story
from tests.servers import ServerFactory

pytestmark = pytest.mark.system

WRITERS = 8
SOAK_S = float(os.environ.get("BINLANE_SOAK_S", "3600"))


@pytest.mark.slow
def test_soak(servers: ServerFactory, tmp_path: Path) -> None:
    chance = random.Random()
    with Story(servers, tmp_path, writers=WRITERS, seed=int(time.time()), pause_s=0.2) as story:
        end_s = time.monotonic() + SOAK_S
        while time.monotonic() < end_s:
            story.live(8.0)
            strike = chance.random()
            if strike < 0.7:
                story.kill_serve()
            elif strike < 0.8:
                story.end_serve()
            elif strike < 0.9:
                story.restart_source()
            else:
                story.kill_source()
    print(story.counts, story.load.counts, story.load.errors)  # noqa: T201 for docs/reliability.md
    story.check()
