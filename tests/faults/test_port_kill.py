"""A port that judges is killed at random times under load: no statement is lost, doubled or mixed up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.port_story import PortStory

pytestmark = pytest.mark.system

FLAVORS = ("mariadb", "mysql")
KILLS_SAMPLE = 4
KILLS_ALL = 200
KILLS_WORKERS = 6


@pytest.mark.parametrize("flavor", FLAVORS)
def test_nothing_is_lost_doubled_or_misattributed_in_a_sample(tmp_path: Path, flavor: str) -> None:
    with PortStory(tmp_path, seed=3, flavor=flavor) as story:
        with story.load:
            while story.counts["kills of serve"] < KILLS_SAMPLE:
                story.live(1.0)
                story.kill_session()
                story.kill_serve()
            story.live(1.0)
        assert story.problems() == []
        assert story.load.counts["done"] > 100


@pytest.mark.parametrize("flavor", ["mariadb", pytest.param("mysql", marks=pytest.mark.slow)])
def test_a_source_that_is_restarted_and_killed(tmp_path: Path, flavor: str) -> None:
    with PortStory(tmp_path, seed=5, flavor=flavor) as story:
        with story.load:
            for end in (story.restart_source, story.kill_source, story.kill_source):
                story.live(1.0)
                end()
                story.live(1.0)
                story.kill_session()
            story.live(1.0)
        assert story.problems() == []


@pytest.mark.slow
@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_lost_doubled_or_misattributed(tmp_path: Path, seed: int, flavor: str) -> None:
    with PortStory(tmp_path, seed=100 + seed, through=6, beside=2, flavor=flavor) as story:
        with story.load:
            while story.counts["kills of serve"] < KILLS_ALL / 10:
                story.live(1.5)
                story.kill_session()
                story.kill_serve()
            story.live(1.0)
        assert story.problems() == []
        print(story.counts, story.load.counts)  # noqa: T201 the figures of docs/reliability.md


@pytest.mark.slow
@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("seed", range(3))
def test_workers_that_are_killed_misattribute_nothing(
    tmp_path: Path, seed: int, flavor: str
) -> None:
    with PortStory(
        tmp_path, seed=300 + seed, through=6, beside=2, workers=3, flavor=flavor
    ) as story:
        with story.load:
            while story.counts["kills of serve"] < KILLS_WORKERS:
                for _ in range(2):
                    story.live(2.0)
                    story.kill_session()
                    story.kill_worker()
                story.live(2.0)
                story.kill_serve()
            story.live(1.0)
        assert story.problems() == []
        print(story.counts, story.load.counts)  # noqa: T201 as above


@pytest.mark.slow
@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("seed", range(5))
def test_a_source_that_is_killed_often(tmp_path: Path, seed: int, flavor: str) -> None:
    with PortStory(tmp_path, seed=200 + seed, through=6, beside=2, flavor=flavor) as story:
        with story.load:
            for _ in range(6):
                story.live(1.5)
                story.kill_source()
                story.live(1.0)
                story.kill_serve()
        assert story.problems() == []
