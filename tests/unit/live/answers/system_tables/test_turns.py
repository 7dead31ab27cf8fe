"""Whose question is next."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack

import pytest

from binlane.live.answers.system_tables.query_turns import QueryTurns


class Places:
    """Questions that are under way, or wait, by the names that they were given."""

    def __init__(self, places: int, each: int) -> None:
        self.turns = QueryTurns(places, each)
        self.under_way: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._over: dict[str, asyncio.Event] = {}

    async def ask(self, *names: str) -> None:
        """Ask, each for the account that is the first letter of its name."""
        for name in names:
            self._over[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._hold(name))
            await settle()

    async def end(self, name: str) -> None:
        self._over[name].set()
        await settle()

    async def _hold(self, name: str) -> None:
        async with self.turns.turn(name[0]):
            self.under_way.append(name)
            try:
                await self._over[name].wait()
            finally:
                self.under_way.remove(name)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_one_account_leaves_room_for_others() -> None:
    async def run() -> None:
        places = Places(3, 2)
        await places.ask(*(f"a{number}" for number in range(12)))
        assert places.under_way == ["a0", "a1"]
        await places.ask("b0")
        assert places.under_way == ["a0", "a1", "b0"]
        await places.ask("c0", "b1")
        await places.end("a0")
        assert places.under_way == ["a1", "b0", "c0"], "the others' turn comes before a's next"
        await places.end("a1")
        assert places.under_way == ["b0", "c0", "a2"]
        await places.end("b0")
        assert places.under_way == ["c0", "a2", "b1"]

    asyncio.run(run())


def test_who_goes_away_has_no_turn() -> None:
    async def run() -> None:
        places = Places(1, 1)
        await places.ask("a0", "b0", "c0", "c1")
        places.tasks["b0"].cancel()
        places.tasks["a0"].cancel()
        await settle()
        assert places.under_way == ["c0"]
        places.tasks["c0"].cancel()
        places.tasks["c1"].cancel()
        await places.ask("d0")
        assert places.under_way == ["d0"]

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(20))
def test_no_place_is_lost_nor_given_twice(seed: int) -> None:
    async def run() -> None:
        chosen = random.Random(seed)
        places = Places(3, 2)
        number = 0
        for _ in range(200):
            match chosen.choice(["ask", "end", "cancel"]):
                case "ask":
                    number += 1
                    await places.ask(f"{chosen.choice('abcd')}{number}")
                case "end" if places.under_way:
                    name = chosen.choice(places.under_way)
                    await places.end(name)
                    del places.tasks[name]
                case "cancel" if places.tasks:
                    places.tasks.pop(chosen.choice(list(places.tasks))).cancel()
                    await settle()
            held = Counter(name[0] for name in places.under_way)
            waiting = {name[0] for name in places.tasks} - {a for a in held if held[a] == 2}
            waiting = {
                a
                for a in waiting
                if any(n[0] == a and n not in places.under_way for n in places.tasks)
            }
            assert len(places.under_way) <= 3
            assert max(held.values(), default=0) <= 2
            assert len(places.under_way) == 3 or not waiting, "a place is free for who waits"
        async with AsyncExitStack() as stack:
            for task in places.tasks.values():
                task.cancel()
            await settle()
            for account in "xyz":
                await asyncio.wait_for(stack.enter_async_context(places.turns.turn(account)), 1)

    asyncio.run(run())
