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
_REPEATABLE = ("STATEMENT", "MIXED")
_OTHERWISE_LEAST = {"mariadb": 15, "mysql": 6}
_OTHERWISE = {
    # What changed nothing at the source, or was rolled back there.
    *(("delete_nomatch", "auto"), ("update_noop", "trx"), ("del:tm", "afterN")),
    *(("ins_autoinc:tai", "afterN_rb"), ("call_T", "afterN_rb"), ("iodku_2keys", "afterN_rb")),
    # What cannot be rolled back, with the transaction in the server's log, and before it in ours.
    *(("ins:tat", "afterT"), ("upd:tmai", "afterT_rb"), ("ins_autoinc:tmai", "afterTsp_rb")),
    *(("multi_upd_TN", "trx"), ("multi_del_TN", "afterN"), ("ins_T_func_N", "afterT")),
    *(("ins_N_sel_T", "afterT"), ("load_data_m", "afterT_rb")),
    # What reads tables that others may change meanwhile.
    ("multi_del_T_readN", "auto"),
}
"""Names and contexts of records that binlogs of statements have otherwise than a server's log."""


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


def test_replicas_are_as_the_source_where_binlogs_are_not_as_recorded(ready: Yardsticks) -> None:
    records = [
        record
        for record in sampled(ready.flavor, None, _SEED)
        if (record.name, record.context) in _OTHERWISE
        and record.profile in _REPEATABLE
        and ready.can_run(record)
    ]
    with ready.followed():
        compared = [ready.compare(record) for record in records]
    assert sum(bool(each.exception) for each in compared) >= _OTHERWISE_LEAST[ready.flavor]
    assert {each.record.name: each.on_replica for each in compared if each.on_replica} == {}


@pytest.mark.slow
def test_all_sessions_are_logged_as_recorded(ready: Yardsticks) -> None:
    assert _unexplained(ready, sampled(ready.flavor, None, _SEED)) == []
