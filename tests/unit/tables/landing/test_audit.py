"""What is lost, doubled or skipped between a log and its tables stops the landing, or is told."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from binlane.binlogs.filters.terms import parse_terms
from binlane.cli.main import main
from binlane.errors import BinlaneError, ConfigError, StoreError
from binlane.names import TableName
from binlane.tables.landing import table_files, tasks
from binlane.tables.landing.landing import land
from binlane.tables.landing.landing_progress import LandingReport
from binlane.tables.landing.landing_settings import LandingSettings
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.landing.tables import merging
from binlane.tables.landing.tables.opening import open_store
from binlane.tables.landing.tables.store_settings import TableStoreSettings
from binlane.tables.landing.tables.table_store import TableStore
from binlane.tables.landing.verification import Lake as Verified
from binlane.tables.landing.verification import verify_lake
from tests.fixture_sets import fixture_set
from tests.shop_log import ShopLog, Table
from tests.unit.tables.ranges.test_read import READABLE

ORDERS = Table("orders", ("id", "state"))
FORMATS = [FormatName.DELTA, FormatName.ICEBERG, FormatName.PARQUET]


class Lake:
    """A log, and the tables that it is landed in."""

    def __init__(self, folder: Path, table_format: FormatName = FormatName.DELTA) -> None:
        self.log = ShopLog()
        self.into = folder / "lake"
        self.binlogs = folder / "log"
        self.binlogs.mkdir()
        self.format = table_format
        self.log.statement("CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(50))")
        self.log.statement("CREATE TABLE items (id INT PRIMARY KEY, state VARCHAR(50))")

    def land(self, **settings: Any) -> LandingReport:
        """Land what is new."""
        name, data = self.log.file()
        (self.binlogs / name).write_bytes(data)
        given = LandingSettings(modes=frozenset(Mode), format=self.format, **settings)
        return land(str(self.binlogs), str(self.into), given)

    def journal(self) -> tuple[Path, dict[str, Any]]:
        """What the target remembers."""
        (path,) = (self.into / "_binlane").glob("journal-*.json")
        return path, json.loads(path.read_text())


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_each_row_is_counted_three_times(lake: Lake) -> None:
    lake.log.insert(ORDERS, (1, "a"), (2, "b"))
    lake.log.update(ORDERS, ((1, "a"), (1, "c")))
    report = lake.land()
    assert (report.tables["shop.orders"].rows, report.tables["shop.orders"].logged) == (4, 4)
    lake.log.delete(ORDERS, (2, "b"))
    lake.land()
    _, state = lake.journal()
    assert state["logged"] == {"shop.orders": 5}
    landed = {mode: +Counter(counts) for mode, counts in state["landed"].items()}
    assert landed == {mode.value: {"shop.orders": 5} for mode in Mode}


def changed(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> None:
    """Have a task decode other rows than the log has."""
    read_range = tasks.read_range  # type: ignore[attr-defined]  # what it imports

    def read(*given: Any, **named: Any) -> Iterator[Any]:
        for item in read_range(*given, **named):
            yield change(item) if isinstance(item, pa.RecordBatch) else item

    monkeypatch.setattr(tasks, "read_range", read)


def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with its first row once more."""
    (found,) = pa.Table.from_batches([batch, batch.slice(0, 1)]).combine_chunks().to_batches()
    return found


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda batch: batch.slice(1), 1),
        (twice, 3),
    ],
    ids=["lost", "doubled"],
)
def test_what_a_task_loses_or_doubles_is_landed_nowhere(
    lake: Lake,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[pa.RecordBatch], pa.RecordBatch],
    found: int,
) -> None:
    lake.log.insert(ORDERS, (1, "a"), (2, "b"))
    with monkeypatch.context() as patched:
        changed(patched, change)
        with pytest.raises(
            StoreError, match=f"2 row images of it are in the log from .* {found} were read"
        ):
            lake.land()
    assert not list((lake.into / "current").glob("shop/*/*.parquet"))
    assert lake.land().tables["shop.orders"].rows == 2


@pytest.mark.parametrize("table_format", FORMATS)
def test_rows_that_are_taken_for_landed_and_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_format: FormatName
) -> None:
    lake = Lake(tmp_path, table_format)
    lake.log.insert(ORDERS, (1, "a"))
    lake.land()
    lake.log.insert(ORDERS, (2, "b"), (3, "c"))
    behind = table_files.behind
    with monkeypatch.context() as patched:
        patched.setattr(
            table_files,
            "behind",
            lambda images, seq: behind(images, seq).slice(int(images.num_rows > 1)),
        )
        with pytest.raises(
            StoreError, match=r"the log has 3 row images of it up to GTID .* have 2"
        ):
            lake.land()
    assert lake.land().tables["shop.orders"].rows == 2


def test_a_journal_that_is_ahead_of_its_tables(lake: Lake) -> None:
    lake.log.insert(ORDERS, (1, "a"))
    lake.land()
    path, state = lake.journal()
    state["done"] = 1 << 60
    path.write_text(json.dumps(state))
    lake.log.insert(ORDERS, (2, "b"))
    with pytest.raises(StoreError, match="has 2 row images of it, and its changes table has 1"):
        lake.land()
    # What is lost is lost, to who goes on all the same.
    lake.land(is_audited=False)
    path, state = lake.journal()
    state["done"] = 0
    path.write_text(json.dumps(state))
    lake.log.insert(ORDERS, (3, "c"))
    assert lake.land().tables["shop.orders"].rows == 1


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_table_that_says_more_than_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_format: FormatName
) -> None:
    lake = Lake(tmp_path, table_format)
    lake.log.insert(ORDERS, (1, "a"))
    lake.land()
    lake.log.insert(ORDERS, (2, "b"))
    with monkeypatch.context() as patched:
        patched.setattr(TableStore, "applied", lambda *_given: 1 << 60)
        with pytest.raises(StoreError, match="has 2 row images of it, and its changes table has 1"):
            lake.land()
    lake.land()


def test_a_merge_that_loses_a_row(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.log.insert(ORDERS, (1, "a"), (2, "b"))
    run = merging._run
    monkeypatch.setattr(merging, "_run", lambda work: run(work).slice(1))
    report = lake.land()
    assert "make 2 rows of it, and it has 1" in report.tables["shop.orders"].lacks
    assert any("shop.orders" in note and "it has 1" in note for note in report.notes)


def test_a_source_that_changed_rows_without_logging_them(lake: Lake) -> None:
    lake.log.insert(ORDERS, (1, "a"))
    lake.land()
    lake.log.insert(ORDERS, (1, "b"))
    table = lake.land().tables["shop.orders"]
    assert table.is_current
    assert "sql_log_bin" in table.lacks


def test_tables_that_are_made_anew_emptied_and_exchanged(lake: Lake) -> None:
    items = Table("items", ("id", "state"))
    for number in range(3):
        lake.log.insert(ORDERS, (10 * number + 1, "a"), (10 * number + 2, "b"))
        lake.log.insert(items, (number, "x"))
        lake.log.statement("RENAME TABLE orders TO o, items TO orders, o TO items")
        if number == 1:
            lake.log.statement("TRUNCATE TABLE items")
        lake.land()
        lake.log.statement("DROP TABLE items")
        lake.log.statement("CREATE TABLE items (id INT PRIMARY KEY, state VARCHAR(50))")
        lake.land()
    _, state = lake.journal()
    assert state["logged"] == {"shop.orders": 6, "shop.items": 3}


def test_names_under_which_a_table_may_have_come_or_not(lake: Lake) -> None:
    lake.log.insert(ORDERS, (1, "a"))
    # Renames nothing, and so replaces nothing.
    lake.log.statement("RENAME TABLE IF EXISTS gone TO orders")
    lake.log.insert(ORDERS, (2, "b"))
    lake.land()
    # A table without rows comes in the place of one that had some.
    lake.log.statement("RENAME TABLE orders TO o, items TO orders, o TO items")
    lake.land()
    lake.log.insert(ORDERS, (3, "c"))
    lake.land()
    assert told(lake) == []
    _, state = lake.journal()
    assert state["landed"]["current"] == {"shop.orders": 1, "shop.items": 2}


def test_what_is_not_landed_is_told(lake: Lake) -> None:
    lake.log.insert(ORDERS, (1, "a"))
    lake.log.statement("ALTER TABLE orders DROP PARTITION p1")
    lake.log.insert(ORDERS, (2, "b"))
    report = lake.land(tables="shop.orders")
    told = "not in current, which gave the table up"
    assert report.tables["shop.orders"].left_out[told] == 1
    _, state = lake.journal()
    assert state["left_out"]["shop.orders"][told] == 1


def test_rows_of_others_are_counted(lake: Lake) -> None:
    lake.log.insert(ORDERS, (1, "a"))
    lake.log.insert(Table("items", ("id", "state")), (1, "x"), (2, "y"))
    report = lake.land(tables="shop.orders")
    assert report.outside == 2
    assert "shop.items" not in report.tables


def test_a_target_of_an_earlier_binlane_is_gone_on_with(tmp_path: Path) -> None:
    lake = Lake(tmp_path, FormatName.PARQUET)
    lake.log.insert(ORDERS, (1, "a"))
    lake.land()
    path, state = lake.journal()  # of one which counted nothing
    for name in ("landed", "logged", "left_out"):
        del state[name]
    path.write_text(json.dumps(state))
    for manifest in lake.into.rglob("_manifest.json"):
        known = json.loads(manifest.read_text())
        del known["images"]
        manifest.write_text(json.dumps(known))
    for number in (2, 3):
        lake.log.insert(ORDERS, (number, "b"))
        assert lake.land().tables["shop.orders"].rows == 1
    _, state = lake.journal()
    assert state["landed"]["current"] == {"shop.orders": 2}


def test_without_the_audit_nothing_is_counted(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.log.insert(ORDERS, (1, "a"), (2, "b"))
    changed(monkeypatch, lambda batch: batch.slice(1))
    report = lake.land(is_audited=False)
    assert (report.tables["shop.orders"].rows, report.tables["shop.orders"].logged) == (1, 0)


def told(lake: Lake, *, has_values: bool = True) -> list[str]:
    """What verifying tables against their log gives."""
    of = Verified(into=str(lake.into), sources=[str(lake.binlogs)])
    return list(verify_lake(of, has_values=has_values))


@pytest.fixture
def landed(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """Tables that were landed in several batches, with statements between rows."""
    lake = Lake(tmp_path, getattr(request, "param", FormatName.DELTA))
    items = Table("items", ("id", "state"))
    lake.log.insert(ORDERS, (1, "a"), (2, "b"), (3, None))
    lake.land()
    lake.log.update(ORDERS, ((1, "a"), (1, "c")))
    lake.log.insert(items, (1, "x"))
    lake.log.statement("RENAME TABLE orders TO o, items TO orders, o TO items")
    lake.log.insert(items, (4, "d"))
    lake.land()
    lake.log.delete(items, (2, "b"))
    lake.log.statement("ALTER TABLE items ADD COLUMN more VARCHAR(50)")
    lake.land()
    return lake


def test_tables_of_a_filter(lake: Lake) -> None:
    terms = parse_terms({"do_table": ["shop.orders"]})
    items = Table("items", ("id", "state"))
    for number in range(3):
        lake.log.insert(ORDERS, (number, "a"))
        lake.log.insert(items, (number, "x"))
        report = lake.land(filter_terms=terms)
    assert (report.tables["shop.orders"].logged, report.outside) == (1, 1)
    lake.log.statement("RENAME TABLE orders TO sold, items TO orders")
    lake.log.insert(ORDERS, (9, "x"))
    lake.log.insert(Table("sold", ("id", "state")), (9, "x"))
    lake.land(filter_terms=terms)
    assert told(lake) == []


@pytest.mark.parametrize("landed", FORMATS, indirect=True)
def test_tables_as_they_should_be(landed: Lake) -> None:
    assert told(landed) == []


def rewritten(landed: Lake, mode: Mode, change: Callable[[pa.Table], pa.Table]) -> None:
    """Give the rows of `shop.items` other values behind the landing's back, its commits as well."""
    _, state = landed.journal()
    settings = TableStoreSettings(run_id="x")
    store = open_store(str(landed.into), mode, landed.format, state["app_id"], settings)
    store.replace(TableName("shop", "items"), change(store.read(TableName("shop", "items"))))


def other(rows: pa.Table) -> pa.Table:
    """The rows, of which the first has another state."""
    states = ["z", *rows.column("state").to_pylist()[1:]]
    place = rows.column_names.index("state")
    return rows.set_column(place, rows.schema.field("state"), pa.array(states, pa.string()))


@pytest.mark.parametrize("landed", [FormatName.DELTA, FormatName.PARQUET], indirect=True)
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda rows: rows.slice(1), "1 rows missing, such as id=1"),
        (lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]), "1 rows that the log does not"),
        (other, "1 rows that the log does not make, such as id=1, state='z'"),
    ],
    ids=["lost", "doubled", "other"],
)
def test_a_row_that_is_not_as_the_log_has_it(
    landed: Lake, change: Callable[[pa.Table], pa.Table], what: str
) -> None:
    rewritten(landed, Mode.CURRENT, lambda rows: change(rows.sort_by("id")))
    assert told(landed, has_values=False) == []
    assert f"shop.items (current): {what}" in "\n".join(told(landed))


def test_a_change_that_is_missing_is_counted(landed: Lake) -> None:
    rewritten(landed, Mode.CHANGES, lambda rows: rows.slice(1))
    (line,) = told(landed, has_values=False)
    assert line.startswith(
        "shop.items (changes): it has 2 row images of the log, and should have 3"
    )


def test_a_file_that_is_gone(landed: Lake) -> None:
    _, state = landed.journal()
    store = open_store(
        str(landed.into),
        Mode.CURRENT,
        landed.format,
        state["app_id"],
        TableStoreSettings(run_id="x"),
    )
    table = TableName("shop", "items")
    for path in store.there(table).files:
        Path(f"{store.uri(table)}/{path}").unlink()
    assert any(line.startswith("shop.items (current): cannot be read") for line in told(landed))


def test_a_log_that_lacks_what_was_landed(landed: Lake, tmp_path: Path) -> None:
    (path,) = landed.binlogs.iterdir()
    path.rename(path.with_name("shop.000002"))
    with pytest.raises(BinlaneError, match=r"the log begins at shop.000002:4"):
        told(landed)
    lone = Verified(into=str(tmp_path / "nothing"), sources=[str(landed.binlogs)])
    with pytest.raises(ConfigError, match="no log was landed into"):
        list(verify_lake(lone))


def test_the_command_that_verifies_tables(landed: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["verify", str(landed.into), "--values", "--against", str(landed.binlogs)]
    assert main(arguments) == 0
    rewritten(landed, Mode.CURRENT, lambda rows: rows.slice(1))
    assert main(arguments) == 1
    assert "shop.items (current): 1 rows missing" in capsys.readouterr().out
    assert main(["verify", str(landed.into)]) == 2
    assert main(["verify", "--values", str(landed.binlogs / "shop.000001")]) == 2


RECORDED = (
    "md1011_xa",
    "my97_xa",
    "md1011_ddl",
    "my97_ddl",
    "md1011_compressed",
    "my97_compressed",
    "my97_fk",
)


@pytest.mark.parametrize("name", RECORDED)
def test_tables_of_a_recorded_log(name: str, tmp_path: Path) -> None:
    verified(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", READABLE)
def test_tables_of_all_recorded_logs(name: str, tmp_path: Path) -> None:
    verified(name, tmp_path)


def verified(name: str, folder: Path) -> None:
    """Land a recorded log in many small batches, and hold its tables against it."""
    lake = Lake(folder)
    for file, data in fixture_set(name).binlogs:
        (lake.binlogs / file).write_bytes(data)
    many = LandingSettings(modes=frozenset(Mode), batch_bytes=40_000, task_bytes=9_000)
    land(str(lake.binlogs), str(lake.into), many)
    assert told(lake) == []
