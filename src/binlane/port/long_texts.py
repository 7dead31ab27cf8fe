"""Long texts of clients, read in a thread of their own: meanwhile other sessions go on.

A text of some megabytes takes seconds to read. All sessions share one thread for that, so that the
event loop waits for one other thread at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from binlane.sql.facts import StatementFacts
from binlane.sql.reading import hold, let_go, read
from binlane.sql.servers import Dialect
from binlane.sql.tokens import LONG

_threads: Final = ThreadPoolExecutor(1, thread_name_prefix="long texts")


def is_long(text: str) -> bool:
    """Whether a text is not to be read in the event loop."""
    return len(text) > LONG


class LongTexts:
    """Those of a session's command; `read` gives their facts at once, to whoever asks."""

    def __init__(self) -> None:
        self._held: list[tuple[StatementFacts, str]] = []

    async def read(self, texts: Iterable[str], database: str, dialect: Dialect) -> bool:
        """Read those texts that are long; whether one is. Arguments as of `reading.read`."""
        long = [text for text in texts if is_long(text)]
        for text in long:
            work = partial(read, text, database=database, dialect=dialect)
            facts = await asyncio.get_running_loop().run_in_executor(_threads, work)
            hold(facts, database)
            self._held.append((facts, database))
        return bool(long)

    def forget(self) -> None:
        """The command is over."""
        for facts, database in self._held:
            let_go(facts, database)
        self._held.clear()
