"""A landing that is killed at random times, with a busy source before it.

`BINLANE_LAND_KILLS` says how often in the long form, 200 by default.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.feeds import check_replay
from tests.land_kill import Story
from tests.servers import ServerFactory

pytestmark = pytest.mark.system

KILLS_SAMPLE = 4
KILLS_SPARK = 4
KILLS_ALL = int(os.environ.get("BINLANE_LAND_KILLS", "200"))


def test_tables_are_exact_after_a_sample_of_kills(servers: ServerFactory, tmp_path: Path) -> None:
    with Story(servers, tmp_path, seed=7, pause_s=0.1, arguments=("--cdf",)) as story:
        while story.kills.total() < KILLS_SAMPLE:
            story.kill()
    story.finish()
    story.check()
    fed = [path.parent for path in story.lake.glob("current/*/*/_delta_log")]
    kinds = sum((check_replay(str(path), []) for path in fed), Counter[str]())
    assert kinds["update_postimage"], "each version's feed makes it of the one before"


@pytest.mark.slow
def test_tables_are_exact_after_many_kills(servers: ServerFactory, tmp_path: Path) -> None:
    with Story(servers, tmp_path, seed=KILLS_ALL, pause_s=0.2) as story:
        while story.kills.total() < KILLS_ALL:
            story.kill()
    story.finish()
    story.check()
    print(story.kills, story.load.counts)  # noqa: T201 the figures of docs/reliability.md


@pytest.mark.slow
@pytest.mark.spark
def test_tables_are_exact_after_kills_of_a_driver_of_spark(
    servers: ServerFactory, tmp_path: Path
) -> None:
    spark = ("--engine", "spark", "--master", "local[2]", "--conf", "spark.binlane.smallBytes=0")
    kinds = ("file", "commit")
    with Story(servers, tmp_path, seed=5, pause_s=1.0, arguments=spark, kinds=kinds) as story:
        while story.kills.total() < KILLS_SPARK:
            story.kill()
    story.finish()
    story.check()
