"""What ranges carry of the log before them, and what is never opened since nobody wants it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.xa import finished_by, prepared_by
from binlane.names import TableName
from binlane.tables.ranges.cutting import Cuts
from binlane.tables.ranges.log_file_facts import FilePiece, LogFileFacts
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.planner import Planner, PlanOptions
from binlane.tables.ranges.stored_files import read_groups_of
from tests import build
from tests.fixture_sets import fixture_set
from tests.shop_log import ShopLog, Table
from tests.unit.tables.ranges.test_plan import FINE, bytes_read

ORDERS = Table("orders", ("id", "state"))
ITEMS = Table("items", ("id", "state"))
CREATE = "CREATE TABLE {} (id INT PRIMARY KEY, state ENUM('new', 'old'))"


def changes(piece: LogRange) -> Iterator[EventGroup]:
    return (group for group in read_groups_of(piece) if not group.is_control)


@pytest.mark.parametrize("name", ["md1011_xa", "my97_xa"])
def test_a_range_names_the_groups_whose_transactions_it_finishes(name: str, tmp_path: Path) -> None:
    for file, data in fixture_set(name).binlogs:
        (tmp_path / file).write_bytes(data)
    planner = Planner(str(tmp_path), FINE)
    finished = 0
    for size_bytes in (1, 3000):
        for piece in planner.ranges(planner.begin(), planner.end(), size_bytes=size_bytes):
            own: set[str] = set()
            wanted: list[str] = []
            for group in changes(piece):
                own |= set(filter(None, map(prepared_by, group.events)))
                wanted += [xid for xid in map(finished_by, group.events) if xid and xid not in own]
            found = [
                prepared_by(group.events[-1]) for each in piece.prepared for group in changes(each)
            ]
            assert found == wanted
            finished += len(found)
    assert finished > 2


def test_the_catalog_is_that_of_the_ranges_beginning(tmp_path: Path) -> None:
    made = ShopLog()
    made.insert(ORDERS, (1, "new"))
    for name in ("orders", "items"):
        made.statement(CREATE.format(name))
    made.insert(ORDERS, (2, "new"))
    made.statement("ALTER TABLE orders ADD COLUMN note TEXT")
    made.insert(ITEMS, (3, "new"))
    first, data = made.file()
    (tmp_path / first).write_bytes(data)
    other = ShopLog()
    other.insert(ORDERS, (4, "new"))
    other.statement("DROP TABLE orders")
    other.insert(ORDERS, (5, "new"))
    second, data = other.file("shop.000002")
    (tmp_path / second).write_bytes(data)
    planner = Planner(str(tmp_path), FINE)
    found = []
    for piece in planner.ranges(planner.begin(), planner.end(), size_bytes=1):
        catalog = pickle.loads(pickle.dumps(piece)).catalog
        known = {}
        for name in ("orders", "items"):
            definition = catalog.definition(TableName("shop", name))
            known[name] = 0 if definition is None else len(definition.columns)
        found.append((piece.number, known["orders"], known["items"]))
    assert found == [
        (1, 0, 0),
        (1, 0, 0),  # CREATE TABLE orders
        (1, 2, 0),  # CREATE TABLE items
        (1, 2, 0),  # rows of orders: only what such a range needs
        (1, 2, 2),  # ALTER: a statement may name any table
        (1, 0, 2),
        (2, 3, 0),
        (2, 3, 2),
        (2, 0, 0),
    ]


@dataclass(frozen=True)
class OnlyTable:
    """A wish for the rows of one table."""

    table: TableName

    def wants_file(self, name: str) -> bool:
        return name != "shop.000002"

    def wants_piece(self, name: str, facts: LogFileFacts, piece: FilePiece) -> bool:
        assert name != "shop.000002"
        tables = facts.tables(piece)
        return tables is None or self.table in tables


def test_what_nobody_wants_is_never_opened(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    images = ORDERS.image((1, "n" * 50)) * 8000
    for number in (1, 2):
        made = ShopLog()
        for table, count in ((ORDERS, 20), (ITEMS, 10), (ORDERS, 20)):
            for _ in range(count):
                made.insert(table)
                *_, _, xid = made.bodies
                made.bodies[-2:] = [build.rows(2, images), xid]
        name, data = made.file(f"shop.{number:06}")
        (log / name).write_bytes(data)
    options = PlanOptions(cache=str(tmp_path / "cache"))
    planner = Planner(str(log), options)
    begin, end = planner.begin(), planner.end()
    everything = planner.ranges(begin, end)
    before = bytes_read()
    again = Planner(str(log), options)
    wish = OnlyTable(TableName("shop", "items"))
    (pieces,) = again.parts(begin, end, Cuts(wish=wish))
    read = sum(len(list(changes(piece))) for piece in pieces)
    whole = sum((piece.stop or 0) - piece.start for piece in everything)
    assert 10 <= read <= 20
    assert {piece.number for piece in pieces} == {1}
    assert bytes_read() - before < whole // 3
    assert again.all_parts(Cuts(wish=wish)) == [pieces]
