"""Runs of groups as bytes are filtered as groups are that are decoded."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from binlane.binlogs.filters import filtered_runs as runs
from binlane.binlogs.filters.events import GroupFilter
from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.filtered_runs import RunFilter
from binlane.binlogs.filters.statement_concern import concern_of
from binlane.binlogs.filters.terms import FilterTerms, parse_terms
from binlane.binlogs.store.byte_source import FileBytes
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import CONTROL_TYPES, EventGroup, group_events
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.placing import place
from binlane.log.grouping.raw import RawRun, raw_groups
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from tests.fixture_sets import fixture_names, fixture_set
from tests.routed_files import written
from tests.unit.binlogs.route.test_both_paths import compiled

NAMES = [
    name
    for prefix in ("md1011", "md118", "my97")
    for name in fixture_names(prefix)
    if not name.endswith("_encrypted")
]


def tables_of(name: str) -> list[TableName]:
    found = {
        TableName(each.body.database, each.body.table)
        for file, data in fixture_set(name).binlogs
        for each in expanded_all(walk([data], file=file), file=file)
        if isinstance(each.body, TableMapEvent)
    }
    return sorted(found)


def choices(name: str) -> Iterator[FilterTerms]:
    """Filters that cut a set's transactions and statements."""
    tables = list(map(str, tables_of(name)))
    chance = random.Random(name)
    half = chance.sample(tables, len(tables) // 2)
    yield parse_terms({"do_table": half or ["none.of_them"]}, rename="name")
    yield parse_terms({"ignore_table": half or ["none.of_them"]})
    yield parse_terms({"ignore_table": tables[:1]}, keeps_empty_groups=True)
    yield parse_terms({"wild_do_table": ["%.%t%"]}, kinds=["insert", "delete", "ddl"])


def seen(event: Event) -> tuple[object, ...]:
    # A run's bytes are those of the log, but for a flag; what was written anew has no more than that.
    return event.header.type_code, event.body, event.position, event.header.timestamp


def by_groups(data: bytes, file: str, terms: FilterTerms, notes: list[str]) -> list[list[object]]:
    """What is left of each group by the reference."""
    found = GroupFilter(FilterState(terms), notes.append)
    result: list[list[object]] = []
    format_ = None
    for group in group_events(walk([data], file=file), file=file):
        first = group.events[0].body
        format_ = first.format if isinstance(first, FormatDescriptionEvent) else format_
        if group.events[0].header.type_code in CONTROL_TYPES or not group.is_complete:
            continue
        assert format_ is not None
        kept = found.group(group, format_)
        result += [[seen(event) for event in kept.events]] if kept else []
    notes += found.state.left_out.texts
    return result


def by_runs(path: str, file: str, terms: FilterTerms, notes: list[str]) -> list[list[object]]:
    """The same by way of runs, where there are some."""
    groups = GroupFilter(FilterState(terms), notes.append)
    found = RunFilter(groups)
    result: list[list[object]] = []
    with closing(FileBytes(path)) as source:
        for item in raw_groups(source, file=path, name=file, window_bytes=4096):
            parts: list[EventGroup | None] = []
            if isinstance(item, RawRun):
                format_ = item.format
                for part in found.parts(item):
                    if isinstance(part.item, RawRun):
                        parts += [part.item.group(number) for number in range(part.item.count)]
                    else:
                        parts.append(part.item)
            elif (
                isinstance(item, EventGroup)
                and item.events[0].header.type_code not in CONTROL_TYPES
                and item.is_complete
            ):
                parts.append(groups.group(item, format_))
            result += [[seen(event) for event in group.events] for group in parts if group]
    notes += groups.state.left_out.texts
    return result


SAMPLED = {
    "md1011_txn",
    "md1011_fk",
    "md1011_ddl",
    "md1011_format_mixed",
    "md1011_xa",
    "md1011_incident",
}
SAMPLED |= {
    "my97_txn",
    "my97_compressed",
    "my97_ddl",
    "my97_json_partial",
    "md118_gtid",
    "my97_incident",
}
CASES = [name if name in SAMPLED else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]


@compiled
@pytest.mark.parametrize("name", CASES)
def test_both_ways_give_the_same(name: str, tmp_path: Path) -> None:
    paths = written(name, tmp_path)
    for terms in choices(name):
        for path, (file, data) in zip(paths, fixture_set(name).binlogs, strict=True):
            notes: list[list[str]] = [[], []]
            expected = by_groups(data, file, terms, notes[0])
            assert by_runs(path, file, terms, notes[1]) == expected, terms
            assert notes[0] == notes[1]


def test_an_emptied_group_is_a_transaction_without_changes() -> None:
    name = "md1011_txn"
    tables = list(map(str, tables_of(name)))
    terms = parse_terms({"ignore_table": tables}, keeps_empty_groups=True)
    for file, data in fixture_set(name).binlogs:
        whole = by_groups(data, file, parse_terms({}), [])
        left = by_groups(data, file, terms, [])
        assert len(whole) == len(left) > 1
        types = {kind for group in left for kind, *_ in group}  # type: ignore[misc, has-type]  # groups are lists of tuples
        assert types.isdisjoint({EventType.TABLE_MAP, EventType.WRITE_ROWS_V1})


@compiled
@pytest.mark.rule("003:tables-info")
@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn", "my97_ddl"])
def test_logs_with_tables_info_are_filtered_by_it(name: str, tmp_path: Path) -> None:
    tables = tables_of(name)
    for number, (file, data) in enumerate(fixture_set(name).binlogs):
        extended = with_tables_info(data, file)
        path = tmp_path / f"{number}-{file}"
        path.write_bytes(extended)
        for terms in choices(name):
            notes: list[list[str]] = [[], []]
            expected = by_groups(extended, file, terms, notes[0])
            assert by_runs(str(path), file, terms, notes[1]) == expected, terms
            assert notes[0] == notes[1]
    assert tables


def with_tables_info(data: bytes, file: str) -> bytes:
    """A log with the tables of each statement's text as its tables info."""
    made, format_ = bytearray(MAGIC), None
    for event in walk([data], file=file):
        body = event.body
        if isinstance(body, FormatDescriptionEvent):
            lengths = bytearray(body.post_header_lengths)
            lengths[EventType.QUERY - 1] = 17
            body = replace(body, post_header_lengths=bytes(lengths))
            format_ = body.format
        elif isinstance(body, QueryEvent):
            names = concern_of(body).tables
            parts = [part.encode() for name in names for part in (name.database, name.table)]
            info = b"".join(bytes((len(part),)) + part for part in parts)
            body = replace(body, tables_info=info)
        assert format_ is not None, "a log begins with its format"
        made += place(replace(event, body=body), len(made), format_)
    return bytes(made)


@compiled
def test_texts_that_are_all_different_take_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_SHAPES_BYTES_MAX", 2000)
    for name in ("md1011_format_statement", "my97_format_statement"):
        paths = written(name, tmp_path / name)
        terms = next(iter(choices(name)))
        for path, (file, data) in zip(paths, fixture_set(name).binlogs, strict=True):
            assert by_runs(path, file, terms, []) == by_groups(data, file, terms, [])
