"""Where the source's log ends, asked now and then: how many bytes of it are not taken yet."""

from __future__ import annotations

import logging
import time
from typing import Final

from binlane.capture.settings import SourceSettings
from binlane.client.session import ServerSession
from binlane.codec.format import flavor_of
from binlane.codec.types import Flavor
from binlane.errors import BinlaneError
from binlane.positions import FilePosition

STALE_S: Final = 60.0
"""For so long what was heard counts."""

_ANSWER_S: Final = 10.0
_AFTER_REFUSAL_S: Final = 300.0
_FILES: Final = "SHOW BINARY LOGS"
_END: Final = "SHOW MASTER STATUS"
_END_OF_MYSQL: Final = "SHOW BINARY LOG STATUS"
_NEWER_MYSQL: Final = (8, 2)

logger = logging.getLogger(__name__)


class SourceEnd:
    """The end of a source's log, on a connection of its own that is kept; used by one thread at a time.

    Attributes:
        end: Where the log ended at the last look; None before one.
        problem: Why that is not known; empty where it is.

    Args:
        settings: The source, and binlane's account there.
    """

    def __init__(self, settings: SourceSettings) -> None:
        self.end: FilePosition | None = None
        self.problem = ""
        self._settings = settings
        self._session: ServerSession | None = None
        self._looked_s = 0.0
        self._not_before_s = 0.0
        self._sizes: dict[str, int] = {}

    def look(self, places: frozenset[str]) -> None:
        """Ask the source, and wait for its answer; what it refuses is asked again minutes later.

        Args:
            places: Files in which somebody stands who wants to know how far the end is.
        """
        if time.monotonic() < self._not_before_s:
            return
        try:
            self._ask(places)
        except (BinlaneError, OSError, ValueError) as error:
            self.close()
            self.end, told = None, str(error) or type(error).__name__
            if told != self.problem:
                logger.info("how far the source's log goes is not known: %s", told)
            self.problem = told
            if getattr(error, "errno", None) is not None:
                self._not_before_s = time.monotonic() + _AFTER_REFUSAL_S
        else:
            self._looked_s, self.problem = time.monotonic(), ""

    def _ask(self, places: frozenset[str]) -> None:
        if self._session is None:
            settings = self._settings
            self._session = ServerSession(settings.url, settings.secret(), answer_s=_ANSWER_S)
        session = self._session
        row = next(iter(session.ask(_end_statement(session.version))), None)
        if row is None:
            raise BinlaneError("the source keeps no binary log")
        end = FilePosition(row[0] or "", int(row[1] or 0))
        if places - {end.file} and end.file not in self._sizes:
            # All but the last one grow no more, so that these hold until another one is the last.
            self._sizes = {name or "": int(size or 0) for name, size, *_ in session.ask(_FILES)}
        self.end = end

    def bytes_behind(self, place: FilePosition) -> int | None:
        """Bytes of the log behind a place, as far as it went at the last look; None where not known."""
        end, sizes = self.end, self._sizes
        if end is None or time.monotonic() - self._looked_s > STALE_S:
            return None
        if place.file == end.file or end < place:
            return max(0, end.position - place.position)
        if place.file not in sizes:
            return None
        between = (
            size
            for name, size in sizes.items()
            if place < FilePosition(name, 0) and FilePosition(name, 0) < FilePosition(end.file, 0)
        )
        return max(0, sizes[place.file] - place.position) + sum(between) + end.position

    def close(self) -> None:
        """Go away; the next look comes back."""
        if self._session is not None:
            self._session.close()
            self._session = None


def _end_statement(version: str) -> str:
    if flavor_of(version) is Flavor.MARIADB:
        return _END
    major, minor = (int(part) for part in version.split(".")[:2])
    return _END_OF_MYSQL if (major, minor) >= _NEWER_MYSQL else _END
