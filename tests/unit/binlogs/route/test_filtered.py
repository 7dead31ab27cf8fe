"""Files routed through a filter: the same by every way, and what the filter lets through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binlane.binlogs.filters.terms import FilterTerms, parse_terms
from binlane.errors import ConfigError
from binlane.log.codec.event import Event
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import CONTROL_TYPES
from binlane.log.grouping.walk import walk
from tests.routed_files import outputs, routed, written
from tests.unit.binlogs.filters.test_runs import choices
from tests.unit.binlogs.route.test_both_paths import compiled

SETS = (
    "md1011_txn",
    "md1011_xa",
    "md1011_format_mixed",
    "md1011_ddl",
    "my97_txn",
    "my97_compressed",
)


@compiled
@pytest.mark.parametrize("name", SETS)
def test_all_ways_make_the_same_files(name: str, tmp_path: Path) -> None:
    paths = written(name, tmp_path / "in")
    ways: tuple[dict[str, Any], ...] = (
        {"uses_kernels": False},
        {},
        {"window_bytes": 64, "held_bytes_max": 200},
    )
    for round_, terms in enumerate(choices(name)):
        found = []
        for number, way in enumerate(ways):
            out = tmp_path / f"{round_}-{number}"
            report = routed(paths, out, "LOG ALL", "LOG(shop.t)", filter_terms=terms, **way)
            found.append((outputs(out), report.counts, report.notes))
        assert found[1] == found[0]
        assert found[2][:2] == found[0][:2]


def events(out: Path) -> list[Event]:
    found: list[Event] = []
    for path, data in sorted(outputs(out).items()):
        if not path.endswith((".index", ".json")):
            found += walk([data], file=path)
    return [event for event in found if event.header.type_code not in CONTROL_TYPES]


def test_what_is_left_out_is_done_all_the_same(tmp_path: Path) -> None:
    paths = written("md1011_txn", tmp_path / "in")
    terms = parse_terms({"do_table": ["no.table"]})
    report = routed(paths, tmp_path / "out", "LOG ALL", filter_terms=terms)
    assert report.fault is None
    assert events(tmp_path / "out") == []
    again = routed(paths, tmp_path / "out", "LOG ALL", filter_terms=terms)
    assert again.counts["b1"].event_groups == 0


def test_a_run_that_goes_on_remembers_what_was_renamed(tmp_path: Path) -> None:
    paths = written("md1011_ddl", tmp_path / "in")
    terms: FilterTerms = parse_terms({"wild_do_table": ["%.r%", "%.t1"]})
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    routed(paths, whole, "LOG ALL", filter_terms=terms)
    for number in range(len(paths)):
        routed(paths[: number + 1], parts, "LOG ALL", filter_terms=terms)
    assert [each.body for each in events(parts)] == [each.body for each in events(whole)]
    with pytest.raises(ConfigError, match="another filter"):
        routed(paths, parts, "LOG ALL")


def test_empty_groups_are_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    paths = written("md1011_txn", tmp_path / "in")
    terms = parse_terms({"do_table": ["no.table"]}, keeps_empty_groups=True)
    routed(paths, tmp_path / "out", "LOG ALL", filter_terms=terms)
    routed(paths, tmp_path / "all", "LOG ALL")
    kept, whole = events(tmp_path / "out"), events(tmp_path / "all")
    count = [
        sum(each.header.type_code == EventType.GTID for each in made) for made in (kept, whole)
    ]
    assert count[0] == count[1] > 1
