"""The long statements of a session's command, each read once, beside the event loop."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from binlane.gateway.long_texts import is_long, read_beside
from binlane.sql.facts import StatementFacts
from binlane.sql.reading import hold, let_go, read
from binlane.sql.servers import Dialect


class LongTexts:
    """Those of a session's command; `read` gives their facts at once, to whoever asks."""

    def __init__(self) -> None:
        self._held: list[tuple[StatementFacts, str]] = []

    async def read(self, texts: Iterable[str], database: str, dialect: Dialect) -> bool:
        """Read those texts that are long; whether one is. Arguments as of `reading.read`."""
        long = [text for text in texts if is_long(text)]
        for text in long:
            facts = await read_beside(partial(read, text, database=database, dialect=dialect))
            hold(facts, database)
            self._held.append((facts, database))
        return bool(long)

    def forget(self) -> None:
        """The command is over."""
        for facts, database in self._held:
            let_go(facts, database)
        self._held.clear()
