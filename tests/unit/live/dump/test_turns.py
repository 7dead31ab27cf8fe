"""Dumps take turns, and leave the event loop to others in between."""

from __future__ import annotations

import asyncio

from binlane.live.dump.dump_sending import DumpTurns


def test_one_at_a_time_in_order_with_others_in_between() -> None:
    turns, seen = DumpTurns(), list[str]()

    async def dump(name: str) -> None:
        for _ in range(3):
            await turns.take()
            seen.append(name)

    async def other() -> None:
        for _ in range(12):
            seen.append(".")
            await asyncio.sleep(0)

    async def test() -> None:
        async with asyncio.timeout(10):
            await asyncio.gather(*map(dump, "abc"), other())

    asyncio.run(test())
    told = "".join(seen)
    assert told.replace(".", "") == "abcabcabc"
    assert all(pair not in told for pair in ("ab", "bc", "ca")), told


def test_whoever_leaves_keeps_nobody_waiting() -> None:
    async def test() -> None:
        turns = DumpTurns()
        async with asyncio.timeout(10):
            waiting = [asyncio.ensure_future(turns.take()) for _ in range(5)]
            await asyncio.sleep(0)
            for each in waiting[:4]:
                each.cancel()
            await waiting[4]
            await turns.take()

    asyncio.run(test())
