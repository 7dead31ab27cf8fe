"""Commands that would keep other sessions waiting: long statements, and many in one packet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Final

from binlane.live.gateway.long_texts import is_long, read_beside
from binlane.statements.session.log_events import query
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import hold, let_go, read
from binlane.statements.sql.servers import Dialect

TURN: Final = 4
"""So many statements of a packet are judged, or followed, before other sessions have their turn."""


async def turn_ends(done: int) -> None:
    """Let other sessions go on, if that many statements of a packet make a turn."""
    if done and not done % TURN:
        await asyncio.sleep(0)


class LongTexts:
    """The long statements of a session's command, each read once, beside the event loop.

    `reading.read` gives their facts at once, to whoever asks, until they are forgotten.

    Attributes:
        held: Parsed facts of the texts, each with the default database that it was read with.
    """

    def __init__(self) -> None:
        self.held: list[tuple[StatementFacts, str]] = []

    async def read(self, texts: Iterable[str], database: str, dialect: Dialect) -> bool:
        """Read those texts that are long; True if one is. Arguments are the same as in `reading.read`."""
        long = [text for text in texts if is_long(text)]
        for text in long:
            facts = await read_beside(partial(read, text, database=database, dialect=dialect))
            hold(facts, database)
            self.held.append((facts, database))
        return bool(long)

    def forget(self) -> None:
        """The command is over."""
        if self.held:
            query.cache_clear()
        for facts, database in self.held:
            let_go(facts, database)
        self.held.clear()
