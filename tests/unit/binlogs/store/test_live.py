"""Word to those who wait for more of a binlog."""

from __future__ import annotations

import asyncio
from pathlib import Path

from binlane.binlogs.store.binlog_files import Published
from binlane.binlogs.store.files import BinlogFile
from binlane.binlogs.store.live import LiveBinlog
from binlane.positions import GtidPosition

TIMEOUT_S = 30.0


class Empty:
    """A binlog that has published nothing."""

    name = "orders"
    published = Published(
        closed=(),
        last=BinlogFile(
            directory=Path(),
            name="orders.000001",
            size_bytes=4,
            begin_gtids="",
            flavor=GtidPosition.flavor,
        ),
        position=GtidPosition(),
    )


def test_who_waits_is_woken_by_the_next_change() -> None:
    async def test() -> None:
        live = LiveBinlog(Empty())
        waiting = [
            asyncio.create_task(live.wait_for_change(live.version, TIMEOUT_S)) for _ in range(2)
        ]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        live.notify()
        await asyncio.gather(*waiting)
        assert (live.version, live.is_dropped) == (1, False)

    asyncio.run(asyncio.wait_for(test(), TIMEOUT_S))


def test_a_change_that_was_before_is_not_waited_for() -> None:
    async def test() -> None:
        live = LiveBinlog(Empty())
        version = live.version
        live.drop()
        await live.wait_for_change(version, None)
        assert live.is_dropped

    asyncio.run(asyncio.wait_for(test(), TIMEOUT_S))


def test_waiting_ends_with_its_time() -> None:
    live = LiveBinlog(Empty())
    asyncio.run(live.wait_for_change(live.version, 0.001))
    assert live.version == 0


def test_many_are_woken_in_turn_with_others_in_between() -> None:
    async def test() -> None:
        live = LiveBinlog(Empty())
        waiting = [
            asyncio.create_task(live.wait_for_change(live.version, TIMEOUT_S)) for _ in range(50)
        ]
        await asyncio.sleep(0)
        live.notify()
        turns = 0
        while not all(task.done() for task in waiting):
            done = sum(task.done() for task in waiting)
            await asyncio.sleep(0)
            assert sum(task.done() for task in waiting) - done < 25
            turns += 1
        assert turns > 3

    asyncio.run(asyncio.wait_for(test(), TIMEOUT_S))
