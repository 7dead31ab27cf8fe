"""Fair turns for questions: nobody's many questions are in the way of others' few."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class QueryTurns:
    """A few places, of which no account holds all; who waits gets one in turn, by account.

    The account that holds fewest is next; of several the one that has waited for longest.

    Args:
        places: The number of questions that run at the same time.
        each: The number of places that an account may hold.
    """

    def __init__(self, places: int, each: int) -> None:
        self._free, self._each = places, each
        self._held: Counter[str] = Counter()
        # By account, those first that had no turn for longest.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, account: str) -> AsyncIterator[None]:
        """Hold a place for the time of a `with` block, once it is the account's turn."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(account, deque()).append(mine)
        self._admit()
        try:
            await mine
            yield
        finally:
            if mine.done() and not mine.cancelled():
                self._free += 1
                self._held -= Counter((account,))
            else:
                self._leave(account, mine)
            self._admit()

    def _admit(self) -> None:
        """Give free places to those whose turn it is."""
        while self._free:
            account = min(self._waiting, key=lambda one: self._held[one], default=None)
            if account is None or self._held[account] >= self._each:
                return
            waiting = self._waiting.pop(account)
            mine = waiting.popleft()
            if waiting:
                self._waiting[account] = waiting  # behind all others
            if not mine.cancelled():
                mine.set_result(None)
                self._held[account] += 1
                self._free -= 1

    def _leave(self, account: str, mine: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(account, deque())
        if mine in waiting:
            waiting.remove(mine)
            if not waiting:
                del self._waiting[account]
