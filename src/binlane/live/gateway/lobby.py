"""Admission to the login: a few clients at a time, the newest first, each host as much as the others.

A connection that has not logged in costs the source one of its own, since the greeting is the
source's. Strangers who connect and say nothing must take none from others, neither there nor here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

from binlane.live.gateway.client_counts import ClientCounts

PATIENCE_S: Final = 1.0
"""For so long nobody has to make room for those who wait."""


@dataclass(slots=True, eq=False)
class Guest:
    """A client that has not logged in yet.

    Attributes:
        host: Address from which the client comes.
        has_gone: Tells if the client has closed its connection.
        task: Task that serves the client; it is cancelled if the client is turned out.
        deadline_s: End of the time for its login, in the event loop's time; set as it enters.
        admitted: Set once the client may log in, or is not to wait any longer; None as long as nobody waits.
        entered_s: Time at which it got its place, in the event loop's time; None while it waits for one.
        is_refused: True if there is no session left for the client.
        is_turned_out: True if the client has to leave: its time is over, or others wait.
    """

    host: str
    has_gone: Callable[[], bool]
    task: asyncio.Task[None] | None = None
    deadline_s: float = inf
    admitted: asyncio.Future[None] | None = None
    entered_s: float | None = None
    is_refused: bool = False
    is_turned_out: bool = False


class Lobby:
    """Clients between their connection and their login.

    Places are few. Who finds none waits; of those who wait the newest goes first, of the hosts
    that hold the fewest places: whoever is waiting for long is likely to be gone or hostile, and a
    host that sends many is in its own way only. While somebody waits, whoever has held a place for
    longest, of the host that holds most, has to leave it, though not before `PATIENCE_S`. Nobody may
    take longer for a login than all are given.

    Attributes:
        sessions: Clients that have logged in and are still there.
        timeout_s: Longest time of a login, waiting for a place included, for those who come from now on.
    """

    def __init__(
        self,
        *,
        sessions_max: int,
        places: int,
        waiting_max: int,
        timeout_s: float,
        crowd: ClientCounts | None = None,
    ) -> None:
        """Open the lobby.

        Args:
            sessions_max: Clients that may be logged in at a time, those in a place included.
            places: Clients that may be logging in at a time.
            waiting_max: Clients that may wait for a place; for one more the oldest has to go.
            timeout_s: Longest time of a login, as in the attribute.
            crowd: The processes that serve the port, whose sessions count too; None for this one
                alone.
        """
        self._crowd = crowd or ClientCounts()
        self._sessions_max = sessions_max
        self._places_max = places
        self._waiting_max = waiting_max
        self._places: list[Guest] = []
        self._waiting: list[Guest] = []
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.sessions = 0
        self.timeout_s = timeout_s

    def resize(self, *, sessions_max: int, places: int, waiting_max: int) -> None:
        """Change the lobby's size, as in `__init__`; guests that are in stay."""
        self._sessions_max, self._places_max = sessions_max, places
        self._waiting_max = waiting_max
        self._admit()

    async def enter(self, guest: Guest) -> bool:
        """Wait for a place.

        Returns:
            Whether it may log in; False where all sessions are taken.
        """
        if self.enter_at_once(guest):
            return not guest.is_refused
        guest.admitted = asyncio.get_running_loop().create_future()
        self._waiting.append(guest)
        self._admit()
        if len(self._waiting) > self._waiting_max:
            oldest = _crowding(self._waiting)
            self._waiting.remove(oldest)
            _turn_out(oldest)
        try:
            await guest.admitted
        finally:
            if guest in self._waiting:
                self._waiting.remove(guest)
        return not guest.is_refused

    def enter_at_once(self, guest: Guest) -> bool:
        """Give a guest a place, or refuse it, if it need not wait for that; False if it has to `enter`.

        A guest that has a place keeps it.
        """
        if guest.entered_s is not None or guest.is_refused:
            return True
        now = asyncio.get_running_loop().time()
        guest.deadline_s = now + self.timeout_s
        self._see_to_deadlines(guest.deadline_s)
        if self._waiting or not self._has_free_place:
            return False
        self._seat(guest, now)
        return True

    def log_in(self, guest: Guest) -> None:
        """A guest has become a session, which `end_session` ends."""
        self._places.remove(guest)
        self.sessions += 1
        self._admit()

    def end_session(self) -> None:
        """A client that was logged in has gone."""
        self.sessions -= 1
        self._admit()

    def leave(self, guest: Guest) -> None:
        """A guest has gone without having logged in; does nothing to one that never had a place."""
        if guest in self._places:
            self._places.remove(guest)
            self._admit()

    def close(self) -> None:
        """Let nobody go any more who holds a place."""
        for timer in (self._timer, self._deadline):
            if timer is not None:
                timer.cancel()

    def _admit(self) -> None:
        """Give free places to those who wait; see that some become free if there are none."""
        if not self._waiting:
            return
        now = asyncio.get_running_loop().time()
        for guest in self._waiting:
            if guest.has_gone():
                _turn_out(guest)
        self._waiting = [guest for guest in self._waiting if not guest.is_turned_out]
        while self._waiting and self._has_free_place:
            guest = self._next()
            self._waiting.remove(guest)
            self._seat(guest, now)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            self._make_room(now)

    def _seat(self, guest: Guest, now: float) -> None:
        """Give a guest the place that is free, or tell it that all sessions are taken."""
        if self.sessions + self._crowd.others >= self._sessions_max:
            guest.is_refused = True
        else:
            guest.entered_s = now
            self._places.append(guest)
        if guest.admitted is not None and not guest.admitted.done():
            guest.admitted.set_result(None)

    @property
    def _has_free_place(self) -> bool:
        sessions, taken = self.sessions + self._crowd.others, len(self._places)
        if sessions >= self._sessions_max:
            return True  # to be refused in
        return taken < self._places_max and sessions + taken < self._sessions_max

    def _next(self) -> Guest:
        held = Counter(guest.host for guest in self._places)
        return min(reversed(self._waiting), key=lambda guest: held[guest.host])

    def _make_room(self, now: float) -> None:
        """Turn out as many as there are who wait, of those whose time is over."""
        staying = [guest for guest in self._places if not guest.is_turned_out]
        late = [guest for guest in staying if _patience_ends_s(guest) <= now]
        wanted = len(self._waiting) - (len(self._places) - len(staying))
        for _ in range(min(wanted, len(late))):
            guest = _crowding(late)
            late.remove(guest)
            staying.remove(guest)
            _turn_out(guest)
        if staying:
            first_s = min(map(_patience_ends_s, staying))
            # A late guest that stays is not in the way: each one that leaves brings us here again.
            if first_s > now:
                self._timer = asyncio.get_running_loop().call_at(first_s, self._admit)

    def _see_to_deadlines(self, first_s: float) -> None:
        """See that the deadlines are looked at in time.

        One timer is for all guests: most have logged in long before it.

        Args:
            first_s: The first deadline, in the event loop's time.
        """
        if self._deadline is not None:
            if first_s >= self._deadline.when():
                return
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_at(first_s, self._end_late)

    def _end_late(self) -> None:
        """Turn those out whose time for a login is over."""
        self._deadline = None
        now = asyncio.get_running_loop().time()
        guests = [*self._places, *self._waiting]
        for guest in guests:
            if guest.deadline_s <= now:
                _turn_out(guest)
        left = [guest.deadline_s for guest in guests if not guest.is_turned_out]
        if left:
            self._see_to_deadlines(min(left))


def _patience_ends_s(guest: Guest) -> float:
    assert guest.entered_s is not None, "it holds a place"
    return guest.entered_s + PATIENCE_S


def _crowding(guests: list[Guest]) -> Guest:
    """The oldest guest of the host that has most of them."""
    of_host = Counter(guest.host for guest in guests)
    return max(guests, key=lambda guest: of_host[guest.host])


def _turn_out(guest: Guest) -> None:
    if not guest.is_turned_out:
        guest.is_turned_out = True
        assert guest.task is not None, "guests are served"
        guest.task.cancel()
