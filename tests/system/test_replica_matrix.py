"""Replicas of several servers and ways behind random sessions, with kills of binlane: all are equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.binlogs.store.stored_groups import StoreReader, read_groups
from binlane.binlogs.store.verify import verify
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup
from tests.replica_matrix import BINLOGS, tried

FLAVORS = ("mariadb", "mysql")


@pytest.mark.parametrize("flavor", FLAVORS)
def test_replicas_are_equal(tmp_path: Path, flavor: str) -> None:
    matrix, load, found = tried(
        tmp_path, seed=1, flavor=flavor, length=None, seconds=6.0, kills=True
    )
    assert found == []
    assert load.counts["done"] > 300
    assert matrix.kills


@pytest.mark.parametrize(
    "flavor, kinds",
    [
        ("mariadb", {EventType.WRITE_ROWS_COMPRESSED_V1, EventType.QUERY_COMPRESSED}),
        ("mysql", {EventType.TRANSACTION_PAYLOAD}),
    ],
)
def test_replicas_of_compressed_binlogs_are_equal(
    tmp_path: Path, flavor: str, kinds: set[EventType]
) -> None:
    matrix, load, found = tried(
        tmp_path,
        seed=5,
        flavor=flavor,
        length=None,
        seconds=6.0,
        kills=True,
        option="COMPRESS='ON'",
    )
    assert found == []
    assert load.counts["done"] > 300
    data_dir = matrix.serve.data_dir
    assert [*verify([data_dir])] == []
    for name in BINLOGS:
        groups = [*read_groups([file.path for file in StoreReader(data_dir).files(name)])]
        assert any(event.header.type_code in kinds for group in groups for event in group.events)
        if flavor == "mysql":
            # MySQL itself compresses all transactions of rows but those of CREATE TABLE … SELECT.
            plain = [group for group in groups if _has_plain_rows(group)]
            assert all(b"CREATE TABLE" in query for query in map(_second_query, plain))


def _has_plain_rows(group: EventGroup) -> bool:
    kinds = {EventType.WRITE_ROWS, EventType.XA_PREPARE_LOG}
    return any(event.header.type_code in kinds for event in group.events)


def _second_query(group: EventGroup) -> bytes:
    """The statement behind BEGIN or XA START; empty where there is none."""
    queries = [event.body.query for event in group.events if isinstance(event.body, QueryEvent)]
    return queries[1] if len(queries) > 1 else b""


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
