"""Recorded decisions of the servers, run through the port: each binlog is as its format says.

A private server that logs rows stands behind the port; what it recorded itself, in the format of
the binlog, is in the project.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from tests.port_yardsticks.known import KNOWN
from tests.port_yardsticks.running import Compared, Yardsticks, sampled, yardsticks
from tests.yardsticks.records import FLAVORS, Record

_FEW = 120
_SEED = 14
_CASES = (
    ("analyze", "afterT"),
    ("ddl_create_select_limit", "auto"),
    ("ins:tg", "auto"),
    ("ps", "afterT"),
    ("savepoint", "afterT"),
    ("tmp_create_m", "afterT"),
    ("upd:tb", "auto"),
)
"""Names and contexts of records whose kind was once logged otherwise."""
_PROFILES = ("STATEMENT", "STATEMENT, READ-COMMITTED")


@pytest.fixture(scope="module", params=FLAVORS)
def ready(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Yardsticks]:
    with yardsticks(request.param, tmp_path_factory.mktemp("yardsticks")) as made:
        yield made


def _unexplained(ready: Yardsticks, records: Iterable[Record]) -> list[Compared]:
    compared = [ready.compare_twice(record) for record in records if ready.can_run(record)]
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
    assert _unexplained(ready, sampled(ready.flavor, _FEW, _SEED)) == []


def test_kinds_that_were_once_logged_otherwise(ready: Yardsticks) -> None:
    records = [
        record
        for record in sampled(ready.flavor, None, _SEED)
        if (record.name, record.context) in _CASES and record.profile in _PROFILES
    ]
    assert len(records) >= len(_CASES)
    assert _unexplained(ready, records) == []


@pytest.mark.slow
def test_all_sessions_are_logged_as_recorded(ready: Yardsticks) -> None:
    assert _unexplained(ready, sampled(ready.flavor, None, _SEED)) == []
