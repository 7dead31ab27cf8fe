"""Rows that are read through a filter: the same by every way, and those that `cat` prints."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path

import pytest

from binlane import api
from binlane.binlogs.filters.events import EventFilter
from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.losses import Losses
from binlane.binlogs.filters.terms import FilterTerms, parse_terms
from binlane.errors import ConfigError
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.log_notes import Statement
from binlane.tables.columnar.selection import Selection
from binlane.tables.columnar.table_schema import ReadOptions, table_of
from binlane.tables.ranges.log_history import FilterAt
from binlane.tables.ranges.planner import Planner, PlanOptions
from binlane.tables.ranges.read import read_range
from tests.fixture_sets import fixture_set
from tests.routed_files import written

SETS = ("md1011_ddl", "md1011_txn", "md1011_fk", "my97_ddl", "my97_compressed")
GIVEN: tuple[tuple[dict[str, list[str]], str], ...] = (
    ({"do_table": ["shop.t1", "shop.a", "shop.parent"]}, "follow"),
    ({"do_table": ["shop.t1", "shop.a", "shop.parent"]}, "name"),
    ({"ignore_table": ["shop.t2", "shop.b"]}, "follow"),
    ({"wild_do_table": ["crm.%", "%.t%"]}, "follow"),
)
Seen = Counter[tuple[TableName, int]]


def expected(name: str, terms: FilterTerms) -> tuple[Seen, Losses]:
    """How many rows events of each table stand where, and what was left out of named ones."""
    found, seen = EventFilter(FilterState(terms), lambda _: None), Seen()
    tables: dict[int, TableName] = {}
    for number, (file, data) in enumerate(fixture_set(name).binlogs):
        for event in expanded_all(walk([data], file=file), file=file):
            for kept in found.feed(event, file=file):
                body = kept.body
                if isinstance(body, TableMapEvent):
                    tables[body.table_id] = TableName(body.database, body.table)
                elif isinstance(body, RowsEvent) and body.table_id in tables:
                    seen[tables[body.table_id], number << 40 | kept.position] += 1
    return seen, found.state.left_out


def places(batches: object, number: int, seen: Seen) -> None:
    for batch in batches:  # type: ignore[attr-defined]
        for position in set(batch.column("_position").to_pylist()):
            seen[table_of(batch.schema), number << 40 | position] = 1


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("by_kernels", [False, True])
def test_ranges_have_the_rows_that_pass(name: str, by_kernels: bool, tmp_path: Path) -> None:  # noqa: FBT001  # of parametrize
    paths = written(name, tmp_path)
    for given, rename in GIVEN:
        terms, seen = parse_terms(given, rename=rename), Seen()
        options = PlanOptions(cache="", piece_bytes=1, filter_at=FilterAt(FilterState(terms)))
        planner = Planner(list(paths), options)
        want = ReadOptions(selection=Selection(filter_terms=terms), has_statements=True)
        pieces = planner.ranges(planner.begin(), planner.end(), size_bytes=700)
        assert len(pieces) > len(paths)
        left_out, (rows, lost) = Losses(), expected(name, terms)
        for piece in pieces:
            counters = ReadCounters()
            items = read_range(piece, want, by_kernels=by_kernels, counters=counters)
            batches = [item for item in items if hasattr(item, "schema")]
            places(batches, piece.number - 1, seen)
            left_out.add(counters.left_out)
        assert (set(seen), left_out) == (set(rows), lost), (given, rename)


@pytest.mark.parametrize(("name", "table"), [("md1011_ddl", "shop.t1"), ("md1011_txn", "shop.a")])
def test_scan_takes_the_options_of_cat(name: str, table: str, tmp_path: Path) -> None:
    paths = written(name, tmp_path)
    terms, seen = parse_terms({"do_table": [table], "ignore_db": ["crm"]}), Seen()
    with warnings.catch_warnings(record=True, action="always") as warned:
        for batch in api.scan(paths, do_table=table, ignore_db=["crm"]):
            number = int(batch.column("_file")[0].as_py().rpartition(".")[2]) - 1
            places([batch], number, seen)
    rows, lost = expected(name, terms)
    assert set(seen) == set(rows)
    notes = [str(each.message) for each in warned]
    told = "binlog.000001:2481: a change of shop.t1 is left out: another table has this name now"
    assert any(note.startswith(told) for note in notes) == (name == "md1011_ddl") == bool(notes)
    assert notes[len(notes) - len(lost.texts) :] == lost.texts
    with pytest.raises(ConfigError, match="no argument do_tables"):
        api.scan(paths, do_tables="shop.t1")


def test_a_scan_tells_that_a_log_has_nothing_of_what_is_named(tmp_path: Path) -> None:
    paths = written("md1011_txn", tmp_path)
    with pytest.warns(
        UserWarning, match=r"has nothing of what the filter names; did you mean shop.a\\?"
    ):
        assert not list(api.scan(paths, do_table="shop.aa"))


@pytest.mark.parametrize("by_kernels", [False, True])
def test_a_filter_s_readers_are_told_of_views(by_kernels: bool, tmp_path: Path) -> None:  # noqa: FBT001  # of parametrize
    # A view may take a name of a table, so who goes on with the filter must know of it.
    paths = written("md1011_format_row", tmp_path)
    options = PlanOptions(
        cache="", filter_at=FilterAt(FilterState(parse_terms({"do_db": ["shop"]})))
    )
    planner = Planner(list(paths), options)
    pieces = planner.ranges(planner.begin(), planner.end())
    for terms in (parse_terms({"do_db": ["shop"]}), None):
        want = ReadOptions(selection=Selection(filter_terms=terms), has_statements=True)
        items = [item for each in pieces for item in read_range(each, want, by_kernels=by_kernels)]
        texts = [item.text for item in items if isinstance(item, Statement)]
        assert any(" VIEW " in text for text in texts) == (terms is not None)
