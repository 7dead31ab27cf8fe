"""Recorded decisions of the servers, run through the port: each binlog is as its format says.

A private server that logs rows stands behind the port; what it recorded itself, in the format of
the binlog, is in the project.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.port_yardsticks.known import KNOWN
from tests.port_yardsticks.running import Compared, Yardsticks, sampled, yardsticks
from tests.yardsticks.records import FLAVORS

_FEW = 120
_SEED = 14


@pytest.fixture(scope="module", params=FLAVORS)
def ready(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Yardsticks]:
    with yardsticks(request.param, tmp_path_factory.mktemp("yardsticks")) as made:
        yield made


def _unexplained(ready: Yardsticks, size: int | None) -> list[Compared]:
    compared = [
        ready.compare(record)
        for record in sampled(ready.flavor, size, _SEED)
        if ready.can_run(record)
    ]
    assert "Traceback" not in ready.log
    return [
        each
        for each in compared
        if each.differences
        and not each.is_impossible
        and not each.exception
        and each.record.name not in KNOWN
    ]


def test_some_sessions_are_logged_as_recorded(ready: Yardsticks) -> None:
    assert _unexplained(ready, _FEW) == []


@pytest.mark.slow
def test_all_sessions_are_logged_as_recorded(ready: Yardsticks) -> None:
    assert _unexplained(ready, None) == []
