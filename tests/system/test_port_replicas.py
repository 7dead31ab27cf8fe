"""Replicas of binlogs of each format, behind random sessions at once: their tables are the source's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.port_replicas import tried


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize("is_safe", [True, False], ids=["safe", "any"])
def test_replicas_are_equal(tmp_path: Path, flavor: str, *, is_safe: bool) -> None:
    load, found = tried(
        tmp_path, seed=1, through=3, beside=1, length=40, is_safe=is_safe, flavor=flavor
    )
    assert found == []
    assert load.counts["done"] > 80


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize("is_safe", [True, False], ids=["safe", "any"])
def test_replicas_are_equal_after_much(
    tmp_path: Path, flavor: str, seed: int, *, is_safe: bool
) -> None:
    load, found = tried(
        tmp_path, seed=seed, through=6, beside=2, length=300, is_safe=is_safe, flavor=flavor
    )
    assert found == []
    assert load.counts["done"] > 1000
