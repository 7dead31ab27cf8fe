"""Where the source's log ends, asked now and then: how many bytes of it are not taken yet."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from binlane.capture.settings import SourceSettings
from binlane.client.session import ServerSession
from binlane.codec.format import flavor_of
from binlane.codec.types import Flavor
from binlane.errors import BinlaneError
from binlane.positions import FilePosition

STALE_S: Final = 60.0
"""For so long what was heard counts."""

LOOK_S: Final = 10.0
"""How often the source is asked."""

_AGAIN_S: Final = 1.0
_ANSWER_S: Final = 10.0
_AFTER_REFUSAL_S: Final = 300.0
_FILES: Final = "SHOW BINARY LOGS"
_END: Final = "SHOW MASTER STATUS"
_END_OF_MYSQL: Final = "SHOW BINARY LOG STATUS"
_NEWER_MYSQL: Final = (8, 2)

logger = logging.getLogger(__name__)


Places = Callable[[], frozenset[str] | None]
"""Files of the source in which somebody stands who wants to know how far its log goes."""


class SourceEnd:
    """The end of a source's log, asked in a thread of its own on a connection of its own.

    Attributes:
        end: Where the log ended at the last look; None where that is not known.
        problem: Why that is not known; empty where it is, or was not asked yet.

    Args:
        settings: The source, and binlane's account there.
    """

    def __init__(self, settings: SourceSettings) -> None:
        self.end: FilePosition | None = None
        self.problem = ""
        self._settings = settings
        self._session: ServerSession | None = None
        self._looked_s = 0.0
        self._sizes: dict[str, int] = {}
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, places: Places) -> None:
        """Begin to ask.

        Args:
            places: Called in the thread; None keeps it from asking.
        """
        self._thread = threading.Thread(
            target=self._run, args=(places,), name="source end", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Ask no more; an answer that is under way is not waited for."""
        self._stopped.set()
        session = self._session
        if self._thread is None:
            self._close()
        elif session is not None:
            session.abort()

    def _run(self, places: Places) -> None:
        wait_s = 0.0
        while not self._stopped.wait(wait_s):
            wanted = places()
            wait_s = _AGAIN_S if wanted is None else self.look(wanted)
        self._close()

    def look(self, places: frozenset[str]) -> float:
        """Ask the source, and wait for its answer.

        Args:
            places: As `Places`.

        Returns:
            For how many seconds to ask no more.
        """
        try:
            self._ask(places)
        except (BinlaneError, OSError, ValueError) as error:
            self._close()
            self.end, told = None, str(error) or type(error).__name__
            if told != self.problem and not self._stopped.is_set():
                logger.info("how far the source's log goes is not known: %s", told)
            self.problem = told
            return LOOK_S if getattr(error, "errno", None) is None else _AFTER_REFUSAL_S
        self._looked_s, self.problem = time.monotonic(), ""
        return LOOK_S

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
        if place.file == end.file:
            return max(0, end.position - place.position)
        if place.file not in sizes:
            # The log may have gone on in another file since.
            return 0 if _log(place) == _log(end) and end < place else None
        between = (
            size
            for name, size in sizes.items()
            if place < FilePosition(name, 0) and FilePosition(name, 0) < FilePosition(end.file, 0)
        )
        return max(0, sizes[place.file] - place.position) + sum(between) + end.position

    def _close(self) -> None:
        """Go away; the next look comes back."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(OSError):
                session.close()


def _log(place: FilePosition) -> str:
    return place.file.rpartition(".")[0]


def _end_statement(version: str) -> str:
    if flavor_of(version) is Flavor.MARIADB:
        return _END
    major, minor = (int(part) for part in version.split(".")[:2])
    return _END_OF_MYSQL if (major, minor) >= _NEWER_MYSQL else _END
