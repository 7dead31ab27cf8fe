"""Whose turn it is to log in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from binlane.live.gateway import lobby as lobby_module
from binlane.live.gateway.lobby import Guest, Lobby


class Visit:
    """A client that wants to log in, and what became of it.

    Attributes:
        outcome: `waiting`, `placed`, `refused` or `turned out`.
    """

    def __init__(self, lobby: Lobby, host: str) -> None:
        self._lobby = lobby
        self._ends = asyncio.Event()
        self.outcome = "waiting"
        self.has_gone = False
        self.guest: Guest
        self.task = asyncio.create_task(self._visit(host))

    async def _visit(self, host: str) -> None:
        self.guest = Guest(host, lambda: self.has_gone, asyncio.current_task())
        try:
            if not await self._lobby.enter(self.guest):
                self.outcome = "refused"
                return
            self.outcome = "placed"
            await self._ends.wait()
        except asyncio.CancelledError:
            if not self.guest.is_turned_out:
                raise
            self.outcome = "turned out"
        finally:
            self._lobby.leave(self.guest)

    async def leave(self) -> None:
        self._ends.set()
        await self.task


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def visits(lobby: Lobby, *hosts: str) -> list[Visit]:
    made = []
    for host in hosts:
        made.append(Visit(lobby, host))
        await settled()
    return made


def outcomes(visits: list[Visit]) -> list[str]:
    return [visit.outcome for visit in visits]


Story = Callable[[Lobby], Coroutine[Any, Any, None]]


def tell(
    story: Story,
    *,
    sessions: int = 10,
    places: int = 2,
    waiting: int = 3,
    timeout_s: float = 60.0,
) -> None:
    async def with_lobby() -> None:
        lobby = Lobby(
            sessions_max=sessions, places=places, waiting_max=waiting, timeout_s=timeout_s
        )
        try:
            await story(lobby)
        finally:
            lobby.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    asyncio.run(with_lobby())


def test_the_newest_goes_first() -> None:
    async def story(lobby: Lobby) -> None:
        came = await visits(lobby, "a", "a", "a", "a")
        assert outcomes(came) == ["placed", "placed", "waiting", "waiting"]
        await came[0].leave()
        await settled()
        assert outcomes(came[1:]) == ["placed", "waiting", "placed"]

    tell(story)


def test_a_host_with_many_is_in_its_own_way_only() -> None:
    async def story(lobby: Lobby) -> None:
        came = await visits(lobby, "a", "a", "b", "a")
        await came[0].leave()
        await settled()
        assert outcomes(came) == ["placed", "placed", "placed", "waiting"]

    tell(story)


def test_who_waits_too_many_sends_the_oldest_of_the_largest_crowd_away() -> None:
    async def story(lobby: Lobby) -> None:
        came = await visits(lobby, "a", "a", "b", "a", "a", "a", "a")
        turned_out = [number for number, o in enumerate(outcomes(came)) if o == "turned out"]
        assert turned_out == [3, 4]

    tell(story, waiting=3)


def test_whoever_says_nothing_makes_room_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lobby_module, "PATIENCE_S", 0.01)

    async def story(lobby: Lobby) -> None:
        came = await visits(lobby, "b", "a", "a", "a")
        await asyncio.sleep(0.2)
        assert outcomes(came)[1:2] == ["turned out"]
        assert outcomes(came)[2:] == ["placed", "placed"] or "turned out" in outcomes(came)[2:]

    tell(story)


def test_nobody_has_to_leave_while_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lobby_module, "PATIENCE_S", 0.0)

    async def story(lobby: Lobby) -> None:
        came = await visits(lobby, "a", "a")
        await asyncio.sleep(0.05)
        assert outcomes(came) == ["placed", "placed"]

    tell(story)


def test_who_has_gone_is_not_waited_for() -> None:
    async def story(lobby: Lobby) -> None:
        came = await visits(lobby, "a", "a", "a", "a")
        came[3].has_gone = True
        await came[0].leave()
        await settled()
        assert outcomes(came) == ["placed", "placed", "placed", "turned out"]

    tell(story)


def test_sessions_are_limited_with_those_who_log_in() -> None:
    async def story(lobby: Lobby) -> None:
        came = await visits(lobby, "a", "a", "a")
        lobby.log_in(came[0].guest)
        await settled()
        assert outcomes(came) == ["placed", "placed", "waiting"]
        lobby.log_in(came[1].guest)
        await settled()
        assert outcomes(came) == ["placed", "placed", "refused"]
        lobby.end_session()
        assert outcomes(await visits(lobby, "a")) == ["placed"]

    tell(story, sessions=2)


def test_a_login_that_takes_too_long_is_turned_out() -> None:
    async def story(lobby: Lobby) -> None:
        first, second, waiting = await visits(lobby, "a", "a", "a")
        lobby.log_in(first.guest)
        lobby.timeout_s = 60.0
        await settled()
        later = await visits(lobby, "b")
        await asyncio.sleep(0.1)
        assert outcomes([first, second, waiting]) == ["placed", "turned out", "turned out"]
        assert outcomes(later) == ["placed"]

    tell(story, timeout_s=0.05)


def test_a_shorter_time_for_logins_holds_for_those_who_come() -> None:
    async def story(lobby: Lobby) -> None:
        slow = await visits(lobby, "a")
        lobby.timeout_s = 0.01
        quick = await visits(lobby, "b")
        await asyncio.sleep(0.1)
        assert outcomes([*slow, *quick]) == ["placed", "turned out"]

    tell(story)
