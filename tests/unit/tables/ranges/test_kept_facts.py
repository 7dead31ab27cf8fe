"""Facts that are kept: the same as before, found again, and thrown away where they do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.tables.ranges.kept_facts import KeptFacts
from binlane.tables.ranges.planner import Planner, PlanOptions
from binlane.tables.ranges.survey import first_facts, survey
from tests.fixture_sets import fixture_set
from tests.unit.tables.ranges.test_plan import all_ranges, bytes_read, groups_of, write, write_large
from tests.unit.tables.ranges.test_survey import log_file

SETS = ["md1011_ddl", "my97_ddl", "md1011_metadata_full", "my97_xa", "md1011_xa", "md1011_incident"]


@pytest.mark.parametrize("name", SETS)
def test_what_is_kept_comes_back(name: str, tmp_path: Path) -> None:
    kept = KeptFacts(tmp_path / "cache")
    for file, data in fixture_set(name).binlogs:
        path = tmp_path / file
        path.write_bytes(data)
        facts = survey(log_file(path), first_facts(log_file(path)), piece_bytes=300)
        assert kept.read(str(path), piece_bytes=300) is None
        kept.write(str(path), facts, piece_bytes=300)
        assert kept.read(str(path), piece_bytes=300) == facts


def test_a_second_run_reads_no_file_to_cut_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    write_large(log, 1, 16 << 20)
    write(log, 2, 2)
    options = PlanOptions(cache=str(tmp_path / "cache"))
    first = Planner(str(log), options)
    expected = first.ranges(first.begin(), first.end(), cores=3)
    tables = list(first.table_maps())
    before = bytes_read()
    second = Planner(str(log), options)
    assert [
        (each.start, each.stop) for each in second.ranges(second.begin(), second.end(), cores=3)
    ] == [(each.start, each.stop) for each in expected]
    assert list(second.table_maps()) == tables
    assert bytes_read() - before < 1 << 20


def test_facts_that_do_not_fit_are_thrown_away(tmp_path: Path) -> None:
    log, cache = tmp_path / "log", tmp_path / "cache"
    log.mkdir()
    for number in (1, 2):
        write(log, number, 5)
    options = PlanOptions(cache=str(cache), piece_bytes=1)
    all_ranges(Planner(str(log), options))
    kept = sorted(cache.iterdir())
    assert [path.name[:12] for path in kept] == ["shop.000001-"]
    write(log, 1, 7, width=5)  # the same first event, and others behind it
    assert len(groups_of(all_ranges(Planner(str(log), options)))) == 12
    for damage in (b"", b"x", kept[0].read_bytes()[:-7], kept[0].read_bytes().replace(b"1", b"2")):
        kept[0].write_bytes(damage)
        assert len(groups_of(all_ranges(Planner(str(log), options)))) == 12


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    for number in (1, 2):
        write(log, number, 5)
    (tmp_path / "cache").write_bytes(b"a file where a directory should be")
    for cache in (str(tmp_path / "cache"), "/proc/nowhere", ""):
        assert len(groups_of(all_ranges(Planner(str(log), PlanOptions(cache=cache))))) == 10
