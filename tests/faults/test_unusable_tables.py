"""A table cannot be written, and the landing dies at any write to the others: nothing of these is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.tables.landing.range_work import Mode
from tests.faults.test_landing_crashes import (
    Crash,
    Fuse,
    contents,
    fused_lander,
    some_or_all,
    writes,
)
from tests.log_batches import Binlogs, LogLander, new_lander
from tests.shop_log import ShopLog, Table

ORDERS, ITEMS = Table("orders", ("id", "state")), Table("items", ("id", "state"))
MODES = frozenset(Mode)


def batches() -> tuple[Binlogs, Binlogs]:
    first = ShopLog()
    for name in ("orders", "items"):
        first.statement(f"CREATE TABLE {name} (id INT PRIMARY KEY, state VARCHAR(50))")
    first.insert(ORDERS, (1, "a"))
    first.insert(ITEMS, (1, "a"))
    second = ShopLog(groups=first.groups)
    second.insert(ORDERS, (2, "a"))
    second.insert(ITEMS, (2, "a"))
    second.statement("ALTER TABLE orders ADD COLUMN note VARCHAR(50)")
    second.insert(Table("orders", ("id", "state", "note")), (3, "a", "b"))
    second.statement("ALTER TABLE items ADD COLUMN note VARCHAR(50)")
    second.insert(Table("items", ("id", "state", "note")), (3, "a", "b"))
    return [first.file("shop.000001")], [second.file("shop.000002")]


def damaged(into: Path, lander: Callable[[Path], LogLander]) -> LogLander:
    """A lander behind the first batch, with no table `orders` that can be read."""
    new_lander(into, modes=MODES).land(batches()[0])
    for path in into.glob("*/shop/orders/_delta_log/*.json"):
        path.write_text("{ no JSON")
    return lander(into)


def seen(into: Path) -> tuple[dict[str, list[str]], list[dict[str, str]]]:
    """What readers find of the other table, and what the journal tells of the one."""
    journal = json.loads(max((into / "_binlane").glob("journal-*.json")).read_text())
    told = [journal[name] for name in ("abandoned", "ended_histories", "gaps")]
    for path in into.glob("*/shop/orders/_delta_log"):
        path.rename(path.with_name("damaged"))
    return contents(into), [{name: why[:20] for name, why in each.items()} for each in told]


@some_or_all
def test_a_crash_at_any_write_beside_a_table_that_cannot_be_written(
    *, is_all: bool, tmp_path: Path
) -> None:
    whole = Fuse(None, is_done=False)
    damaged(tmp_path / "whole", lambda into: fused_lander(into, whole, MODES)).land(batches()[1])
    expected = seen(tmp_path / "whole")
    assert set(expected[0]) == {f"{mode.value}/shop/items" for mode in Mode}
    assert [list(each) for each in expected[1]] == [["shop.orders"]] * 3
    assert whole.count > 8
    for at in writes(whole, is_all=is_all):
        into = tmp_path / str(at)
        fuse = Fuse(at, is_done=False)
        dying = damaged(into, lambda into, fuse=fuse: fused_lander(into, fuse, MODES))  # type: ignore[misc] # mypy knows no defaults of lambdas
        with pytest.raises(Crash):
            dying.land(batches()[1])
        new_lander(into, modes=MODES).land(batches()[1])
        assert seen(into) == expected, f"write {at} of {whole.count}"
