"""A table that cannot be read or written is given up alone, with a reason; the others are landed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from binlane.errors import StoreError
from binlane.log.codec.event import Event
from binlane.log.codec.rows import RowsEvent
from binlane.names import TableName
from binlane.tables.landing.landing import land
from binlane.tables.landing.landing_progress import LandingReport
from binlane.tables.landing.landing_settings import LandingSettings
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.landing.tables.iceberg import open_catalog
from binlane.tables.landing.verification import Lake, verify_lake
from tests.landed import plain_rows
from tests.shop_log import ShopLog, Table

ORDERS = Table("orders", ("id", "state"))
ITEMS = Table("items", ("id", "state"))
OF_ALL_FORMATS = pytest.mark.parametrize(
    "table_format", list(FormatName), ids=lambda each: each.value
)
SHOP_ORDERS = TableName("shop", "orders")


class Shop:
    """A log that grows, and where it is landed."""

    def __init__(self, folder: Path, table_format: FormatName, modes: frozenset[Mode]) -> None:
        self.folder = folder
        self.lake = folder / "lake"
        self.format = table_format
        self.modes = modes
        self.log = ShopLog()
        self._files = 0
        (folder / "log").mkdir()

    def land(self, *, batch_bytes: int = 1 << 28) -> LandingReport:
        """Land what there is in the log, behind what there was."""
        self._files += 1
        name, data = self.log.file(f"shop.{self._files:06}")
        (self.folder / "log" / name).write_bytes(data)
        self.log = ShopLog(groups=self.log.groups)
        return self.again(batch_bytes=batch_bytes)

    def again(self, *, batch_bytes: int = 1 << 28) -> LandingReport:
        settings = LandingSettings(
            modes=self.modes, format=self.format, batch_bytes=batch_bytes, is_taking_over=True
        )
        return land(str(self.folder / "log"), str(self.lake), settings)

    def ids(self, mode: Mode, table: str) -> list[int]:
        """The keys in a table: of all of its rows, those that hold, or those that were inserted."""
        rows = plain_rows(self.lake, self.format, mode, TableName("shop", table)).to_pylist()
        if mode is Mode.HISTORY:
            rows = [row for row in rows if row["is_current"]]
        return sorted(row["id"] for row in rows)

    def directory(self, mode: Mode) -> Path:
        """Of the table `orders`."""
        folder = self.lake / mode.value / "shop"
        (found,) = [path for path in folder.iterdir() if path.name.startswith("orders")]
        return found


def shop(folder: Path, table_format: FormatName, modes: frozenset[Mode] = frozenset(Mode)) -> Shop:
    """A shop with rows in two tables that are landed."""
    made = Shop(folder, table_format, modes)
    for name in ("orders", "items"):
        made.log.statement(f"CREATE TABLE {name} (id INT PRIMARY KEY, state VARCHAR(50))")
    made.log.insert(ORDERS, (1, "a"))
    made.log.insert(ITEMS, (1, "a"))
    assert made.land().given_up == ()
    return made


def without_metadata(directory: Path) -> None:
    """What says which files are the table's is damaged."""
    for path in [
        *directory.glob("_delta_log/*.json"),
        *directory.glob("_manifest.json"),
        *directory.glob("metadata/*.metadata.json"),
    ]:
        path.write_text("{ no JSON")


def without_rows(directory: Path) -> None:
    """The files with the rows are gone."""
    for path in directory.rglob("*.parquet"):
        path.unlink()


def no_directory(directory: Path) -> None:
    """Something else has its name."""
    shutil.rmtree(directory)
    directory.write_text("a file")


@OF_ALL_FORMATS
@pytest.mark.parametrize("damage", [without_metadata, without_rows, no_directory])
def test_a_table_that_is_damaged_is_given_up_alone(
    damage: Callable[[Path], None], table_format: FormatName, tmp_path: Path
) -> None:
    made = shop(tmp_path, table_format, frozenset({Mode.CURRENT}))
    damage(made.directory(Mode.CURRENT))
    made.log.update(ORDERS, ((1, "a"), (1, "b")))
    made.log.insert(ORDERS, (2, "a"))
    made.log.insert(ITEMS, (2, "a"))
    report = made.land()
    assert report.given_up == ("shop.orders",)
    assert "could not be read or written" in report.tables["shop.orders"].why_not
    assert made.ids(Mode.CURRENT, "items") == [1, 2]
    made.log.insert(ORDERS, (3, "a"))
    made.log.insert(ITEMS, (3, "a"))
    report = made.land()
    assert made.ids(Mode.CURRENT, "items") == [1, 2, 3]
    assert "could not be read or written" in report.tables["shop.orders"].why_not
    assert not report.tables["shop.orders"].is_current
    if damage is no_directory and table_format is not FormatName.ICEBERG:
        made.lake.joinpath("current/shop/orders").unlink()
    made.log.statement("TRUNCATE TABLE orders")
    made.log.insert(ORDERS, (4, "a"))
    report = made.land()
    assert report.tables["shop.orders"].why_not == ""
    assert made.ids(Mode.CURRENT, "orders") == [4]


@OF_ALL_FORMATS
@pytest.mark.parametrize("batch_bytes", [1 << 28, 1], ids=["at_once", "by_groups"])
def test_changes_and_histories_that_cannot_be_written_are_told(
    batch_bytes: int, table_format: FormatName, tmp_path: Path
) -> None:
    made = shop(tmp_path, table_format)
    for mode in (Mode.CHANGES, Mode.HISTORY):
        without_metadata(made.directory(mode))
    for number in (2, 3):
        made.log.insert(ORDERS, (number, "a"))
        made.log.insert(ITEMS, (number, "a"))
    report = made.land(batch_bytes=batch_bytes)
    assert report.given_up == ("shop.orders",)
    assert "could not be written" in report.tables["shop.orders"].gap
    assert report.tables["shop.orders"].no_history.startswith("it could not be read")
    for mode in Mode:
        assert made.ids(mode, "items") == [1, 2, 3]
    assert made.ids(Mode.CURRENT, "orders") == [1, 2, 3]
    report = made.again()
    assert "could not be written" in report.tables["shop.orders"].gap


def test_a_change_table_that_can_be_written_again_goes_on_and_tells_its_gap(
    tmp_path: Path,
) -> None:
    made = shop(tmp_path, FormatName.PARQUET, frozenset({Mode.CHANGES}))
    manifest = made.directory(Mode.CHANGES) / "_manifest.json"
    text = manifest.read_text()
    manifest.write_text("{ no JSON")
    made.log.insert(ORDERS, (2, "a"))
    assert made.land().given_up == ("shop.orders",)
    manifest.write_text(text)
    made.log.insert(ORDERS, (3, "a"))
    report = made.land()
    assert report.given_up == ()
    assert "could not be written" in report.tables["shop.orders"].gap
    assert made.ids(Mode.CHANGES, "orders") == [1, 3]
    lake = Lake(sources=[str(made.folder / "log")], into=str(made.lake))
    assert list(verify_lake(lake)) == []


@OF_ALL_FORMATS
def test_tables_that_are_gone_from_the_target_are_told(
    table_format: FormatName, tmp_path: Path
) -> None:
    made = shop(tmp_path, table_format)
    for mode in Mode:
        if table_format is FormatName.ICEBERG:
            catalog = open_catalog(str(made.lake), {})
            suffix = "" if mode is Mode.CURRENT else f"_{mode.value}"
            catalog.drop_table(("shop", f"orders{suffix}"))
            catalog.close()
        shutil.rmtree(made.directory(mode))
    made.log.insert(ORDERS, (2, "a"))
    made.log.insert(ITEMS, (2, "a"))
    report = made.land()
    assert report.given_up == ("shop.orders",)
    assert "somebody has removed it" in report.tables["shop.orders"].why_not
    assert "somebody has removed" in report.tables["shop.orders"].gap
    assert made.ids(Mode.CHANGES, "orders") == [2]
    for mode in Mode:
        assert made.ids(mode, "items") == [1, 2]


def test_a_name_that_the_catalog_has_for_another_table_is_refused_alone(tmp_path: Path) -> None:
    made = shop(tmp_path, FormatName.ICEBERG)
    made.log.insert(Table("orders_changes", ("id", "state")), (1, "a"))
    made.log.insert(ITEMS, (2, "a"))
    report = made.land()
    assert report.given_up == ("shop.orders_changes",)
    assert "in the catalog" in report.tables["shop.orders_changes"].why_not
    assert made.ids(Mode.CURRENT, "items") == [1, 2]


@OF_ALL_FORMATS
def test_a_child_of_a_foreign_key_that_cannot_be_read_is_given_up_alone(
    table_format: FormatName, tmp_path: Path
) -> None:
    made = Shop(tmp_path, table_format, frozenset({Mode.CURRENT}))
    made.log.statement("CREATE TABLE parents (id INT PRIMARY KEY, state VARCHAR(50))")
    made.log.statement(
        "CREATE TABLE orders (id INT PRIMARY KEY, p_id INT,"
        " FOREIGN KEY (p_id) REFERENCES parents (id) ON DELETE CASCADE)"
    )
    parents, children = Table("parents", ("id", "state")), Table("orders", ("id", "p_id"))
    made.log.insert(parents, (1, "a"), (2, "b"))
    made.log.insert(children, (5, 1), (6, 2))
    assert made.land().given_up == ()
    without_rows(made.directory(Mode.CURRENT))
    made.log.delete(parents, (1, "a"))
    report = made.land()
    assert report.given_up == ("shop.orders",)
    assert "could not be read" in report.tables["shop.orders"].why_not
    assert made.ids(Mode.CURRENT, "parents") == [2]


@OF_ALL_FORMATS
def test_a_table_of_somebody_else_is_left_to_him(table_format: FormatName, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([7], pa.int32()), "state": ["mine"]})
    path = tmp_path / "lake/current/shop/orders"
    if table_format is FormatName.DELTA:
        write_deltalake(str(path), rows)
    elif table_format is FormatName.PARQUET:
        path.mkdir(parents=True)
        pq.write_table(rows, path / "mine.parquet")
    else:
        catalog = open_catalog(str(tmp_path / "lake"), {})
        catalog.create_namespace("shop")
        catalog.create_table(("shop", "orders"), rows.schema).append(rows)
        catalog.close()
    made = Shop(tmp_path, table_format, frozenset({Mode.CURRENT}))
    made.log.insert(ORDERS, (1, "a"))
    made.log.insert(ITEMS, (1, "a"))
    made.log.statement("DROP TABLE orders")
    made.log.statement("CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(50))")
    made.log.insert(ORDERS, (2, "a"))
    report = made.land()
    assert report.given_up == ("shop.orders",)
    assert "somebody else's" in report.tables["shop.orders"].why_not
    assert made.ids(Mode.CURRENT, "items") == [1]
    made.again()
    if table_format is FormatName.PARQUET:
        assert pq.read_table(path / "mine.parquet").to_pylist() == rows.to_pylist()
    else:
        found = plain_rows(made.lake, table_format, Mode.CURRENT, SHOP_ORDERS)
        assert found.to_pylist() == rows.to_pylist()


def undecodable(log: ShopLog, table: Table) -> None:
    """An INSERT whose row ends inside of a value, in an event whose checksum is right."""
    log.insert(table, (90, "lost"))
    (at,) = [at for at, body in enumerate(log.bodies[-3:], len(log.bodies) - 3) if _is_rows(body)]
    body = log.bodies[at]
    assert isinstance(body, RowsEvent)
    log.bodies[at] = replace(body, images=body.images[:-2])


def _is_rows(body: object) -> bool:
    return isinstance(body, RowsEvent) and not isinstance(body, Event)


@OF_ALL_FORMATS
@pytest.mark.parametrize("batch_bytes", [1 << 28, 1], ids=["at_once", "by_groups"])
def test_rows_that_cannot_be_decoded_concern_their_table_only(
    batch_bytes: int, table_format: FormatName, tmp_path: Path
) -> None:
    made = shop(tmp_path, table_format)
    made.log.insert(ORDERS, (2, "a"))
    undecodable(made.log, ORDERS)
    made.log.insert(ITEMS, (2, "a"))
    made.log.insert(ORDERS, (3, "a"))
    report = made.land(batch_bytes=batch_bytes)
    assert report.given_up == ("shop.orders",)
    orders = report.tables["shop.orders"]
    assert "rows of it cannot be decoded" in orders.why_not
    assert "rows of it cannot be decoded" in orders.gap
    assert "shop.000002:" in orders.gap
    for mode in Mode:
        assert made.ids(mode, "items") == [1, 2]
    assert made.ids(Mode.CHANGES, "orders") == [1, 2, 3]
    assert made.ids(Mode.HISTORY, "orders") == []
    assert "rows of it cannot be decoded" in made.again().tables["shop.orders"].gap


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A file system that is soon full; the test is skipped where none can be made."""
    folder.mkdir()
    try:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@OF_ALL_FORMATS
def test_a_full_disk_gives_no_table_up(table_format: FormatName, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "3m"):
        made = shop(tmp_path / "disk", table_format)
        for number in range(2, 60):
            made.log.insert(ORDERS, *((number * 1000 + n, "x" * n) for n in range(50)))
            made.log.insert(ITEMS, (number, "a"))
        name, data = made.log.file("shop.000002")
        (made.folder / "log" / name).write_bytes(data)
        filler = made.lake / "filler"
        filler.write_bytes(bytes(shutil.disk_usage(made.lake).free - 20_000))
        with pytest.raises(StoreError, match="No space left"):
            made.again()
        filler.unlink()
        report = made.again()
        assert report.given_up == ()
        for mode in Mode:
            assert made.ids(mode, "items") == [1, *range(2, 60)]
