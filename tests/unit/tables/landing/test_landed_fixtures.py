"""Current tables, row for row, against the SELECTs of the servers that wrote the logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.tables.landing.range_work import Mode
from binlane.tables.landing.tables.table_directories import Directories
from tests.fixture_sets import fixture_set
from tests.landed import current_rows, final_rows
from tests.log_batches import land_all

# With the metadata that MariaDB logs by default, whole tables of these types cannot be told:
# signs, character sets and ENUM members are not in the log.
SETS = [
    "md1011_checksum_none",
    "md1011_checksum_toggle",
    "md1011_crash_inuse",
    "md1011_ddl",
    "md1011_group_commit",
    "md1011_gtid",
    "md1011_identifiers",
    "md1011_load_data_row",
    "md1011_metadata_full",
    "md1011_partitions",
    "md1011_rotation",
    "md1011_rowimage_full",
    "md1011_small_row_events",
    "md1011_stored",
    "md1011_types_geometry",
    "md1011_types_json_mariadb",
    "md1011_types_temporal",
    "md1011_wide",
    "md118_bigcommit",
    "md118_gtid",
    "md118_legacy_event_pos",
    "md118_metadata_full",
    "md118_types_temporal",
]
NOT_CURRENT = {
    "md1011_partitions": {"shop.ex", "shop.pr"},  # EXCHANGE PARTITION
}
GIVEN_UP = {
    "md1011_versioned": ("shop.sv", "it is system-versioned"),
    "md1011_format_mixed": ("shop.ai", "no row images: INSERT INTO ai"),
    "md1011_incident": ("shop.m", "changes are missing here: INCIDENT"),
    "md1011_engines_row": ("shop.e_innodb", "a transaction with rows is rolled back here in part"),
}


@pytest.mark.parametrize("name", SETS)
def test_current_tables_equal_the_server(name: str, tmp_path: Path) -> None:
    fixture = fixture_set(name)
    progress = land_all(tmp_path, [fixture.binlogs]).look()
    tables = Directories(str(tmp_path), Mode.CURRENT, "_delta_log")
    assert progress.rows > 0
    kept = {table.plain: table for table in tables.names()}
    assert set(kept) == set(fixture.final_tables()) - NOT_CURRENT.get(name, set())
    for plain, table in kept.items():
        path = Path(tables.uri(table))
        assert current_rows(path) == final_rows(fixture.final(plain), path), plain


def test_what_is_not_kept_says_why(tmp_path: Path) -> None:
    progress = land_all(tmp_path, [fixture_set("md1011_partitions").binlogs]).look()
    assert "EXCHANGE PARTITION" in progress.tables["shop.pr"].why_not
    assert not (tmp_path / "current/shop/pr").exists()
    assert (tmp_path / "changes/shop/pr").exists()


@pytest.mark.parametrize("name", GIVEN_UP)
def test_what_the_log_does_not_tell_gives_up_the_tables_that_it_concerns(
    name: str, tmp_path: Path
) -> None:
    table, why = GIVEN_UP[name]
    progress = land_all(tmp_path, [fixture_set(name).binlogs]).look()
    assert why in progress.tables[table].why_not, progress.tables
    assert table in progress.given_up
    assert not progress.tables[table].is_current


def test_a_table_whose_images_lack_columns_is_given_up(tmp_path: Path) -> None:
    progress = land_all(tmp_path, [fixture_set("md1011_rowimage_minimal").binlogs]).look()
    assert "row images lack columns" in progress.tables["shop.pk"].why_not
    assert not progress.tables["shop.pk"].is_current


def test_zero_dates_are_counted(tmp_path: Path) -> None:
    progress = land_all(tmp_path, [fixture_set("md1011_types_temporal").binlogs]).look()
    assert progress.tables["shop.tm"].invalid_dates > 0
    assert progress.tables["shop.auto_ts"].invalid_dates == 0
