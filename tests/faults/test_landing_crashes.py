"""Landing dies at any write to its tables, and the same micro-batch comes again."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from binlane.tables.landing.range_work import Mode
from binlane.tables.landing.tables.delta import DeltaFormat
from tests.feeds import check_replay
from tests.landed import delta_rows
from tests.log_batches import Binlogs, LogLander, new_lander
from tests.shop_log import ShopLog, Table

ORDERS = Table("orders", ("id", "state"))
SEEN = (Mode.CURRENT, Mode.CHANGES)
WIDER = Table("orders", ("id", "state", "note"))


class Crash(Exception):  # noqa: N818 - what kill -9 would do
    """The process dies here."""


class Fuse:
    """Counts operations on tables and dies before or behind one of them."""

    def __init__(self, at: int | None, *, is_done: bool) -> None:
        self.count = 0
        self._at, self._is_done = at, is_done

    def run(self, operation: Callable[[], Any]) -> Any:
        self.count += 1
        is_last = self.count == self._at
        if is_last and not self._is_done:
            raise Crash
        result = operation()
        if is_last:
            raise Crash
        return result


class FusedTables(DeltaFormat):
    """Delta tables whose every write may be the last."""

    def __init__(self, into: str, mode: Mode, app_id: str, fuse: Fuse) -> None:
        super().__init__(into, mode, app_id, feed=mode is Mode.CURRENT or None)
        self._fuse = fuse

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in {"create", "commit", "drop", "rename"}:
            return found
        return lambda *arguments: self._fuse.run(lambda: found(*arguments))


def fused_lander(into: Path, fuse: Fuse, modes: Collection[Mode] = SEEN) -> LogLander:
    return new_lander(
        into, new_tables=lambda into, mode, app: FusedTables(into, mode, app, fuse), modes=modes
    )


def eventful_batch() -> Binlogs:
    """Rows and every kind of statement in one micro-batch."""
    keyless = Table("plain", ("id", "state"), key=())
    log = ShopLog()
    log.insert(ORDERS, (1, "a"), (2, "b"))
    log.insert(keyless, (1, "x"), (1, "x"))
    log.statement("ALTER TABLE orders ADD COLUMN note VARCHAR(50) DEFAULT 'd'")
    log.update(WIDER, ((1, "a", "d"), (1, "a", "changed")))
    log.statement("RENAME TABLE orders TO tmp, plain TO orders, tmp TO plain")
    log.insert(Table("orders", ("id", "state"), key=()), (1, "x"))
    log.delete(Table("plain", ("id", "state", "note")), (2, "b", "d"))
    log.statement("CREATE OR REPLACE TABLE gone (id INT PRIMARY KEY, state VARCHAR(50))")
    log.insert(Table("gone", ("id", "state")), (9, "z"))
    log.statement("CREATE TABLE empty LIKE gone")
    log.statement("TRUNCATE TABLE gone")
    log.insert(Table("gone", ("id", "state")), (10, "z"))
    log.statement("ALTER TABLE plain RENAME COLUMN note TO remark")
    log.insert(Table("plain", ("id", "state", "remark")), (5, "e", "f"))
    return [log.file()]


def contents(into: Path) -> dict[str, list[str]]:
    """All rows of all tables with all columns, as sorted texts."""
    return {
        str(path.parent.relative_to(into)): sorted(
            json.dumps(row, default=str, sort_keys=True)
            for row in delta_rows(path.parent).to_pylist()
        )
        for path in into.glob("*/*/*/_delta_log")
    }


def writes(whole: Fuse, *, is_all: bool, first: int = 1) -> range:
    """Of a whole run those at which one dies; every other one but for the long form."""
    return range(1, whole.count + 1) if is_all else range(first, whole.count + 1, 2)


some_or_all = pytest.mark.parametrize(
    "is_all", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "all"]
)


@some_or_all
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_a_crash_at_any_write_and_the_same_batch_again(
    *, is_done: bool, is_all: bool, tmp_path: Path
) -> None:
    batch = eventful_batch()
    whole = Fuse(None, is_done=False)
    fused_lander(tmp_path / "whole", whole).land(batch)
    expected = contents(tmp_path / "whole")
    assert set(expected) == {
        *(f"current/shop/{name}" for name in ("orders", "plain", "gone", "empty")),
        *(f"changes/shop/{name}" for name in ("orders", "plain", "gone")),
    }
    assert whole.count > 20
    # Before every other one, and behind those between them.
    for at in writes(whole, is_all=is_all, first=1 + is_done):
        into = tmp_path / str(at)
        with pytest.raises(Crash):
            fused_lander(into, Fuse(at, is_done=is_done)).land(batch)
        fused_lander(into, Fuse(None, is_done=False)).land(batch)
        assert contents(into) == expected, f"write {at} of {whole.count}"
        fused_lander(into, Fuse(None, is_done=False)).land(batch)
        assert contents(into) == expected, f"once more behind write {at}"
        for name in ("orders", "plain", "gone"):
            check_replay(str(into / "current/shop" / name), [])


@some_or_all
def test_a_crash_at_any_write_of_histories(*, is_all: bool, tmp_path: Path) -> None:
    batch, modes = eventful_batch(), (Mode.HISTORY,)
    whole = Fuse(None, is_done=False)
    fused_lander(tmp_path / "whole", whole, modes).land(batch)
    expected = contents(tmp_path / "whole")
    assert "history/shop/gone" in expected
    assert whole.count > 8
    for at in writes(whole, is_all=is_all):
        into = tmp_path / str(at)
        with pytest.raises(Crash):
            fused_lander(into, Fuse(at, is_done=True), modes).land(batch)
        new_lander(into, modes=modes).land(batch)
        assert contents(into) == expected, f"write {at} of {whole.count}"


def linked_batch() -> Binlogs:
    """Rows of three tables, of which foreign keys take some with others, over two levels."""
    parents, children = Table("parents", ("id", "state")), Table("children", ("id", "parent_id"))
    heirs = Table("heirs", ("id", "child_id"))
    log = ShopLog()
    log.statement("CREATE TABLE parents (id INT PRIMARY KEY, state VARCHAR(50))")
    log.statement(
        "CREATE TABLE children (id INT PRIMARY KEY, parent_id INT, FOREIGN KEY (parent_id) "
        "REFERENCES parents (id) ON DELETE CASCADE)"
    )
    log.statement(
        "CREATE TABLE heirs (id INT PRIMARY KEY, child_id INT, FOREIGN KEY (child_id) "
        "REFERENCES children (id) ON DELETE SET NULL)"
    )
    log.insert(parents, (1, "a"), (2, "b"))
    log.insert(children, (1, 1), (2, 1), (3, 2))
    log.insert(heirs, (1, 1), (2, 2), (3, 3))
    log.statement("CREATE TABLE pause (id INT)")  # what was before is in the tables
    log.delete(parents, (1, "a"))
    log.insert(parents, (1, "anew"))
    log.insert(children, (1, 2))
    log.delete(parents, (2, "b"))
    log.insert(children, (3, 1))
    return [log.file()]


@some_or_all
def test_a_crash_at_any_write_of_what_foreign_keys_do(*, is_all: bool, tmp_path: Path) -> None:
    batch, modes = linked_batch(), (Mode.CURRENT, Mode.HISTORY)
    whole = Fuse(None, is_done=False)
    fused_lander(tmp_path / "whole", whole, modes).land(batch)
    expected = contents(tmp_path / "whole")
    rows = {name: [json.loads(row) for row in rows] for name, rows in expected.items()}
    assert [row["id"] for row in rows["current/shop/children"]] == [3]
    heirs = [(row["id"], row["child_id"]) for row in rows["current/shop/heirs"]]
    assert sorted(heirs) == [(1, None), (2, None), (3, None)]
    assert len(rows["history/shop/heirs"]) == 6
    for at in writes(whole, is_all=is_all):
        into = tmp_path / str(at)
        with pytest.raises(Crash):
            fused_lander(into, Fuse(at, is_done=True), modes).land(batch)
        new_lander(into, modes=modes).land(batch)
        assert contents(into) == expected, f"write {at} of {whole.count}"
