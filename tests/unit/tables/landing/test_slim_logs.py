"""Tables of binlogs with COMPRESS='ON', and of those with ROW_IMAGE='MINIMAL'."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from tests.fixture_sets import fixture_set
from tests.landed import current_rows, delta_rows, final_rows
from tests.log_batches import LogLander, land_all
from tests.routed_files import routed, written

_SETS = ["md1011_metadata_full", "my97_metadata_full"]


def _landed(name: str, folder: Path, clauses: str) -> LogLander:
    out = folder / "data"
    routed(written(name, folder / "log"), out, clauses)
    files = [(path.name, path.read_bytes()) for path in sorted(out.rglob("b1.0*"))]
    return land_all(folder / "lake", [files])


@pytest.mark.parametrize("name", _SETS)
def test_a_compressed_binlog_is_landed_as_its_source(name: str, tmp_path: Path) -> None:
    fixture = fixture_set(name)
    progress = _landed(name, tmp_path, "LOG ALL, COMPRESS='ON'").look()
    tables = {table for table, told in progress.tables.items() if told.is_current}
    assert tables >= set(fixture.final_tables())
    for table in fixture.final_tables():
        path = tmp_path / "lake/current" / table.replace(".", "/")
        assert current_rows(path) == final_rows(fixture.final(table), path), table
    assert not any(told.has_absent for told in progress.tables.values())


@pytest.mark.parametrize("compress", ["ON", "OFF"])
@pytest.mark.parametrize("name", _SETS)
def test_columns_that_minimal_images_lack_are_told(
    name: str, tmp_path: Path, compress: str
) -> None:
    clauses = f"LOG ALL, ROW_IMAGE='MINIMAL', COMPRESS='{compress}'"
    progress = _landed(name, tmp_path, clauses).look()
    table = progress.tables["shop.m1"]
    assert "row images lack columns" in table.why_not
    assert table.has_absent
    rows = delta_rows(tmp_path / "lake/changes/shop/m1")
    images = {op.as_py() for op in pc.unique(rows.column("_op"))}
    assert "update_after" in images
    inserted = rows.filter(pc.field("_op") == "insert")
    assert inserted.num_rows
    # m3 has no key: MariaDB's rules leave nothing out of its rows.
    if name.startswith("md"):
        assert progress.tables["shop.m3"].is_current
        assert not progress.tables["shop.m3"].has_absent
