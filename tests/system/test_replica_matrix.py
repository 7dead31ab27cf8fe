"""Replicas of several servers and ways behind random sessions, with kills of binlane: all are equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.replica_matrix import tried

FLAVORS = ("mariadb", "mysql")


@pytest.mark.parametrize("flavor", FLAVORS)
def test_replicas_are_equal(tmp_path: Path, flavor: str) -> None:
    matrix, load, found = tried(
        tmp_path, seed=1, flavor=flavor, length=None, seconds=6.0, kills=True
    )
    assert found == []
    assert load.counts["done"] > 300
    assert matrix.kills


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 17))
@pytest.mark.parametrize("flavor", FLAVORS)
def test_replicas_are_equal_in_the_long_run(tmp_path: Path, flavor: str, seed: int) -> None:
    _, load, found = tried(
        tmp_path,
        seed=seed,
        flavor=flavor,
        is_whole=True,
        through=3,
        beside=3,
        length=None,
        seconds=90.0,
        kills=True,
    )
    assert found == []
    assert load.counts["done"] > 3000
