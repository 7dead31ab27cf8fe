"""A real `serve` that is killed at random times, with a busy source and replicas around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live_story import Story
from tests.servers import ServerFactory

pytestmark = pytest.mark.system

KILLS_SAMPLE = 4
KILLS_ALL = 1_000


def test_nothing_is_lost_doubled_or_damaged_in_a_sample(
    servers: ServerFactory, tmp_path: Path
) -> None:
    with Story(servers, tmp_path, writers=3, seed=3, pause_s=0.05) as story:
        kills = 0
        while kills < KILLS_SAMPLE:
            story.live(1.0)
            kills += story.kill_serve()
        story.end_serve()
    story.check()
    assert story.load.counts.total() > 100
    assert story.counts["definitions"] > 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_lost_doubled_or_damaged(
    servers: ServerFactory, tmp_path: Path, seed: int
) -> None:
    with Story(servers, tmp_path, writers=4, seed=seed, pause_s=0.3) as story:
        kills = 0
        while kills < KILLS_ALL / 10:
            story.live(0.5)
            kills += story.kill_serve()
    story.check()
    print(story.counts, story.load.counts)  # noqa: T201 the figures of docs/reliability.md


@pytest.mark.slow
def test_nothing_of_a_mysql_source_is_lost_doubled_or_damaged(
    servers: ServerFactory, tmp_path: Path
) -> None:
    with Story(servers, tmp_path, writers=4, seed=1, pause_s=0.05, is_mysql=True) as story:
        kills = 0
        while kills < KILLS_ALL / 20:
            story.live(0.5)
            kills += story.kill_serve()
        story.kill_source()
        story.live(1)
    story.check()
    print(story.counts, story.load.counts)  # noqa: T201 the figures of docs/reliability.md
