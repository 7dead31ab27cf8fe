"""All recorded decisions of both servers, one by one."""

from __future__ import annotations

from functools import cache

import pytest

from tests.yardsticks.agreement import Agreement, agreement
from tests.yardsticks.known import DATA, expected_mismatches
from tests.yardsticks.records import FLAVORS


@cache
def _agreement(flavor: str) -> Agreement:
    return agreement(flavor)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_sessions_decide_and_log_as_the_server_did(flavor: str) -> None:
    found = _agreement(flavor)
    unexpected = [
        (mismatch.record.name, mismatch.record.profile, mismatch.record.context, mismatch)
        for mismatch in found.mismatches
        if mismatch.record.name not in expected_mismatches(flavor)
    ]
    assert found.total == {"mariadb": 6075, "mysql": 5805}[flavor]
    assert unexpected == []


@pytest.mark.parametrize("flavor", FLAVORS)
def test_every_exception_still_is_one(flavor: str) -> None:
    differing = {mismatch.record.name for mismatch in _agreement(flavor).mismatches}
    assert set(DATA[flavor]) <= differing
