"""Spans and the reference make the same files, byte by byte, of every recorded log."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from binlane.binlogs.store.byte_source import FileBytes
from binlane.log.codec.event import Event
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.raw import RawRun, raw_groups
from binlane.log.grouping.walk import walk
from binlane.log.kernels.load import is_compiled
from tests.fixture_sets import fixture_names, fixture_set
from tests.routed_files import outputs, routed, written

_SCOPES = (
    *("LOG ALL", "LOG(shop.t)", "IGNORE(shop.t)", "LOG(crm)", "LOG(shop)", "LOG(shop.a)"),
    *("LOG ALL, ROW_IMAGE=MINIMAL", "LOG(shop), ROW_IMAGE=NOBLOB"),
)
SETS = [
    name
    for name in (*fixture_names("md"), *fixture_names("my97"))
    if not name.endswith(("encrypted", "netstream", "bigrow", "bigcommit"))
]
SAMPLED = {"md1011_txn", "md1011_xa", "md1011_format_mixed", "my97_txn", "my97_compressed"}
CASES = [
    *((name, 8192) for name in SETS),
    *((name, 1 << 30) for name in sorted(SAMPLED)),
    *(pytest.param(name, 1 << 30, marks=pytest.mark.slow) for name in SETS if name not in SAMPLED),
]
compiled = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)


@compiled
@pytest.mark.parametrize("name, file_bytes", CASES)
def test_both_paths_make_the_same_files(name: str, file_bytes: int, tmp_path: Path) -> None:
    paths = written(name, tmp_path / "in")
    fields: tuple[dict[str, Any], ...] = (
        {"uses_kernels": False},
        {},
        {"window_bytes": 64, "held_bytes_max": 200},
    )
    (reference, expected), *others = (
        (
            routed(paths, tmp_path / f"{n}", *_SCOPES, max_binlog_size=file_bytes, **each),
            outputs(tmp_path / f"{n}"),
        )
        for n, each in enumerate(fields)
    )
    for report, made in others:  # groups that are held, and groups that are too large for it
        assert made == expected
        assert report.counts == reference.counts
        assert report.notes == reference.notes


@pytest.mark.parametrize(
    "name",
    [
        *("md1011_txn", "md118_txn", "my97_txn", "my97_compressed"),
        *("md1011_xa", "my97_xa", "md1011_compressed", "md1011_format_statement"),
    ],
)
@pytest.mark.parametrize("window_bytes", [64, 700, 1 << 20])
def test_raw_groups_are_the_groups(name: str, window_bytes: int, tmp_path: Path) -> None:
    for path, (file, data) in zip(written(name, tmp_path), fixture_set(name).binlogs, strict=True):
        expected = [
            group
            for group in group_events(walk([data], file=file), file=file)
            if not group.is_control
        ]
        found: list[EventGroup] = []
        with closing(FileBytes(path)) as source:
            items = raw_groups(source, file=path, name=file, window_bytes=window_bytes)
            for item in items:
                if isinstance(item, RawRun):
                    found += map(item.group, range(item.count))
                    assert item.next_position == found[-1].next_position
                    gtids = [item.gtid(number) for number in range(item.count)]
                    assert gtids == [group.gtid for group in found[-item.count :]]
                elif isinstance(item, EventGroup) and not item.is_control:
                    found.append(item)
        assert [_raw(group) for group in found] == [_raw(group) for group in expected]
        assert found == expected


def _raw(group: EventGroup) -> list[bytes | None]:
    events: tuple[Event, ...] = group.events
    return [event.raw for event in events]
