"""Landing through a filter: the tables that it follows, as the server had them at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binlane import api
from binlane.binlogs.filters.events import EventFilter
from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.terms import parse_terms
from binlane.binlogs.routing.cut_group import MARKS
from binlane.errors import ConfigError
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.tables.landing.landing import scope_of
from binlane.tables.landing.range_work import Mode
from binlane.tables.landing.tables.table_directories import Directories
from tests.fixture_sets import fixture_set
from tests.landed import current_rows, final_rows
from tests.routed_files import written

GIVEN: tuple[dict[str, Any], ...] = (
    {"do_table": ["shop.t2"]},
    {"ignore_table": ["shop.t1", "shop.ctas"]},
    {"do_db": ["shop"], "wild_ignore_table": ["shop.c%"]},
)


def filtered(name: str, given: dict[str, Any]) -> EventFilter:
    """A filter at the end of a set."""
    found = EventFilter(FilterState(parse_terms(given)), lambda _: None)
    for file, data in fixture_set(name).binlogs:
        for event in expanded_all(walk([data], file=file), file=file):
            list(found.feed(event, file=file))
    return found


def followed(name: str, given: dict[str, Any]) -> set[str]:
    """The final tables of a set that a filter follows there."""
    found = filtered(name, given)
    tables = fixture_set(name).final_tables()
    return {table for table in tables if found.state.includes(TableName(*table.split(".", 1)))}


@pytest.mark.parametrize("number", range(len(GIVEN)))
def test_current_tables_are_those_that_are_followed(number: int, tmp_path: Path) -> None:
    name, given = "md1011_ddl", GIVEN[number]
    paths = written(name, tmp_path / "in")
    # Batches and ranges end between renames; each landing goes on with what the one before knew.
    for count in range(1, len(paths) + 1):
        api.land(
            paths[:count],
            tmp_path / "lake",
            mode="current",
            batch_bytes=900,
            task_bytes=300,
            **given,
        )
    tables = Directories(str(tmp_path / "lake"), Mode.CURRENT, "_delta_log")
    kept = {table.plain: table for table in tables.names()}
    assert set(kept) == followed(name, given) != set()
    for plain, table in kept.items():
        path = Path(tables.uri(table))
        assert current_rows(path) == final_rows(fixture_set(name).final(plain), path), plain
    with pytest.raises(ConfigError, match="was landed with filter"):
        api.land(paths, tmp_path / "lake", mode="current")


def test_what_a_filter_leaves_out_of_what_it_names_is_in_the_report(tmp_path: Path) -> None:
    paths = written("md1011_ddl", tmp_path / "in")
    report = api.land(paths, tmp_path / "lake", mode="current", do_table=["shop.t1"])
    assert "binlog.000001:2481: a change of shop.t1 is left out" in "\n".join(report.notes)
    found = filtered("md1011_ddl", {"do_table": ["shop.t1"]})
    assert list(report.notes[-1:]) == found.state.left_out.texts != []


def test_a_log_that_has_nothing_of_what_a_filter_names_is_an_error(tmp_path: Path) -> None:
    paths = written("md1011_txn", tmp_path / "in")
    with pytest.raises(ConfigError, match="has nothing of what the filter names") as found:
        api.land(paths, tmp_path / "lake", mode="current", do_table=["shop.aa"])
    assert found.value.hint == "did you mean shop.a?"


def test_tables_that_the_log_does_not_have_are_told(tmp_path: Path) -> None:
    paths = written("md1011_txn", tmp_path / "in")
    there = api.land(paths, tmp_path / "all", mode="current").tables
    name = next(iter(there))
    with pytest.raises(ConfigError, match=f"no such table in the log: {name}s") as found:
        api.land(paths, tmp_path / "none", mode="current", tables=[f"{name}s"])
    assert found.value.hint == f"did you mean {name}?"
    assert list(api.land(paths, tmp_path / "none", mode="current", tables=[name]).tables) == [name]
    report = api.land(paths, tmp_path / "some", mode="current", tables=[name, "no.where"])
    assert list(report.tables) == [name]
    assert any("no such table in the log: no.where" in note for note in report.notes)


@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
def test_tables_that_nobody_named_leave_nothing(table_format: str, tmp_path: Path) -> None:
    """Not the parent of a named child either, whose rows are read."""
    paths = written("md1011_fk", tmp_path / "in")
    lake = tmp_path / "lake"
    modes = "current,changes,history"
    report = api.land(paths, lake, mode=modes, tables=["shop.ch_c"], table_format=table_format)
    assert list(report.tables) == ["shop.ch_c"]
    assert report.outside > 0
    found = {path.relative_to(lake).as_posix() for path in lake.rglob("*") if path.is_dir()}
    tables = {name for name in found if name.count("/") == 2 and name.split("/")[1] == "shop"}
    assert {name.split("/")[2].partition("-")[0] for name in tables} == {"ch_c"}
    empty = [
        name
        for name in found
        if not name.startswith("_binlane") and not any((lake / name).iterdir())
    ]
    assert not empty


def test_marks_are_no_tables_of_users() -> None:
    assert not scope_of("").includes(MARKS)
    assert not scope_of("IGNORE(crm)").includes(MARKS)
    assert scope_of("binlane.marks").includes(MARKS)


def test_a_log_of_statements_about_what_a_filter_names_is_no_error(tmp_path: Path) -> None:
    paths = written("md1011_format_statement", tmp_path / "in")
    assert not api.land(paths, tmp_path / "lake", mode="changes", do_table=["shop.ai"]).rows
