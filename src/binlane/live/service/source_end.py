"""The end of the source's log and how it is written, asked now and then beside the capture.

So it is known how many bytes are not taken yet, and that rows are or may be missing, also where
somebody changes the source's variables while its log comes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from binlane.client.session import ServerSession
from binlane.errors import BinlaneError, PeerError
from binlane.live.capture.settings import SourceSettings
from binlane.live.capture.source_facts import (
    FACTS_STATEMENT,
    SourceFacts,
    SourceFinding,
    Weight,
    log_end_statement,
)
from binlane.positions import FilePosition

STALE_S: Final = 60.0
"""Time for which an answer of the source counts."""

LOOK_S: Final = 10.0
"""Interval of questions to the source."""

_AGAIN_S: Final = 1.0
_FIRST_S: Final = 0.05
_ANSWER_S: Final = 10.0
_AFTER_REFUSAL_S: Final = 300.0
_FILES: Final = "SHOW BINARY LOGS"

logger = logging.getLogger(__name__)


Places = Callable[[], frozenset[str] | None]
"""Files of the source in which somebody stands who wants to know how far its log goes."""


class SourceEnd:
    """The end of a source's log, asked in a thread of its own on a connection of its own.

    Attributes:
        end: The end of the log at the last look; None where that is not known.
        problem: The reason why the end is not known; empty where it is, or was not asked yet.
        has_looked: True if the source was asked, be it in vain.
        findings: The settings that are not as they should be, at the last look.

    Args:
        settings: The source, and binlane's account there.
    """

    def __init__(self, settings: SourceSettings) -> None:
        self.end: FilePosition | None = None
        self.problem = ""
        self.has_looked = False
        self.findings: tuple[SourceFinding, ...] = ()
        self._end_due_s = 0.0
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
            if wanted is not None:
                wait_s = self.look(wanted)
            else:
                wait_s = _AGAIN_S if self.has_looked else _FIRST_S
        self._close()

    def look(self, places: frozenset[str]) -> float:
        """Ask the source, and wait for its answer.

        Args:
            places: Names of the source's files in which readers stand who want to know how far its
                log goes.

        Returns:
            For how many seconds to ask no more.
        """
        try:
            self._ask(places)
        except (BinlaneError, OSError, ValueError) as error:
            self._close()
            self._lose_end(error)
        self.has_looked = True
        return LOOK_S

    def _ask(self, places: frozenset[str]) -> None:
        is_due = time.monotonic() >= self._end_due_s
        if is_due and self._end_due_s:
            # A session has the privileges that its account had at the login.
            self._close()
            self._end_due_s = 0.0
        if self._session is None:
            settings = self._settings
            self._session = ServerSession(settings.url, settings.secret(), answer_s=_ANSWER_S)
        session = self._session
        rows = session.ask(FACTS_STATEMENT)
        facts = SourceFacts.of({str(name).lower(): value or "" for name, value in rows})
        found = [one for one in facts.findings() if one.weight is not Weight.FINE]
        told: tuple[str | None, ...] = ()
        if is_due:
            try:
                told = next(iter(session.ask(log_end_statement(session.version))), ())
            except PeerError as error:
                if error.errno is None:
                    raise
                # Whoever may not ask may do so later; the rest is asked all the same.
                self._end_due_s = time.monotonic() + _AFTER_REFUSAL_S
                self._lose_end(error)
            else:
                if not told:
                    raise BinlaneError("the source keeps no binary log")
        if told:
            filters = facts.log_filters(told[2] or "", told[3] or "")
            found += [filters] if filters.weight is not Weight.FINE else []
            self._note_end(session, told, places)
        self._note(found)

    def _note(self, found: list[SourceFinding]) -> None:
        """Keep new findings, and log those that were not there before."""
        known = {(one.key, one.value) for one in self.findings}
        for one in found:
            if (one.key, one.value) not in known and not self._stopped.is_set():
                is_bad = one.weight in {Weight.STOPS, Weight.GAPS}
                logger.log(
                    logging.ERROR if is_bad else logging.WARNING,
                    "%s: %s%s",
                    *(self._settings.url, one.reason, f" ({one.hint})" if one.hint else ""),
                )
        for one in self.findings:
            if (one.key, one.value) not in {(each.key, each.value) for each in found}:
                logger.info("%s: resolved: %s", self._settings.url, one.reason)
        self.findings = tuple(found)

    def _lose_end(self, error: Exception) -> None:
        self.end, told = None, str(error) or type(error).__name__
        if told != self.problem and not self._stopped.is_set():
            logger.info("the end of the source's log is not known: %s", told)
        self.problem = told

    def _note_end(
        self, session: ServerSession, told: tuple[str | None, ...], places: frozenset[str]
    ) -> None:
        end = FilePosition(told[0] or "", int(told[1] or 0))
        if places - {end.file} and end.file not in self._sizes:
            # All but the last one grow no more, so that these hold until another one is the last.
            self._sizes = {name or "": int(size or 0) for name, size, *_ in session.ask(_FILES)}
        self.end, self.problem, self._looked_s = end, "", time.monotonic()

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
