"""A feed: one connection to the source, and the binlogs that it feeds.

The main feed feeds all binlogs that keep up. One that lags has a feed of its own, from where it
stands, until it has what the main feed has given. All of this is the routing loop's; a connection
alone is made in a thread of its own, so that nobody waits for a source that does not answer.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from binlane.capture.backoff import Backoff
from binlane.capture.capture import Capture
from binlane.capture.settings import SourceSettings, Start
from binlane.errors import BinlaneError, PeerError
from binlane.grouping.event_group import EventGroup
from binlane.positions import Position
from binlane.service.outputs import Output
from binlane.service.router import OnFault, Router

# Two heartbeats may be late on a busy machine; a source that is silent for longer is dead.
_SILENT_PERIODS: Final = 2.5
_SILENT_MIN_S: Final = 1.0
_REFUSED_FIRST_S: Final = 1.0
_REFUSED_LONGEST_S: Final = 30.0
_LEVEL_LAG_S: Final = 2.0
# Too many connections, shutdown, lost packets, limits, interrupted, killed: they pass.
_TRANSIENT_ERRNOS: Final = frozenset(
    {1040, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1203, 1226, 1317, 1927}
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedFailure:
    """Why a feed gets nothing.

    Attributes:
        reason: In words.
        hint: What to do, where there is something to do.
        is_refusal: Whether somebody has to change something at the source, or here.
        since_s: Since when, as `time.time`.
    """

    reason: str
    hint: str
    is_refusal: bool
    since_s: float


class Feed:
    """One connection to the source at a time, and who gets what it gives.

    Attributes:
        name: For messages.
        outputs: The binlogs; each has everything up to `position`, or more.
        router: Routes into them.
        is_streaming: Whether groups can come.
        failure: Why they cannot; None while they can, and before the first attempt.
        due_s: When the next attempt is due, as `time.monotonic`.
    """

    def __init__(
        self,
        name: str,
        settings: SourceSettings,
        start: Start | Position,
        *,
        spill: Path,
        server_id: int,
        wake: Callable[[], None],
    ) -> None:
        """Prepare; `connect` begins.

        Args:
            name: For messages.
            settings: Of the source.
            start: From where on.
            spill: Where a group is kept that is too large for memory.
            server_id: binlane's id at the source, on this connection.
            wake: Wakes the loop, from any thread.
        """
        self.name = name
        self.outputs: list[Output] = []
        self.is_streaming = False
        self.failure: FeedFailure | None = None
        self.due_s = 0.0
        self._settings = settings
        self._start = start
        self._spill = spill
        self._server_id = server_id
        self._wake = wake
        self.router = Router(None)
        self._capture: Capture | None = None
        self._outcome: BinlaneError | OSError | Exception | None = None
        self._connecting: threading.Thread | None = None
        self._is_over = False
        self._backoff = Backoff()
        self._refusals = Backoff(first_s=_REFUSED_FIRST_S, longest_s=_REFUSED_LONGEST_S)
        self._heard_s = self._connected_s = 0.0
        self._has_progressed = False
        self._silent_max_s = max(
            _SILENT_PERIODS * settings.heartbeat_period_s, _SILENT_MIN_S
        )

    @property
    def position(self) -> Position | None:
        """Everything up to here was given; None before that is known."""
        return self.router.position

    @property
    def refusal(self) -> str:
        """Why somebody has to change something; empty while nobody has to."""
        return self.failure.reason if self.failure and self.failure.is_refusal else ""

    @property
    def is_connecting(self) -> bool:
        """Whether an attempt is under way."""
        return self._connecting is not None

    @property
    def lag_s(self) -> float:
        """How old the last group is that was given; 0 before one."""
        last = self.router.last_timestamp
        return 0.0 if last is None else max(0.0, time.time() - last)

    @property
    def is_level(self) -> bool:
        """Whether it has given about all that the source has."""
        return self.is_streaming and (self.lag_s <= _LEVEL_LAG_S or self._is_quiet)

    @property
    def _is_quiet(self) -> bool:
        """Whether nothing came for a while, so that nothing more was there."""
        return time.monotonic() - self._heard_s > _SILENT_MIN_S / 10

    def connect(self) -> None:
        """Begin an attempt; `finish_connecting` is due when the loop is woken."""
        assert not self.is_streaming and not self.is_connecting, "one connection at a time"
        start = self._start if self.position is None else self.position
        self._capture = Capture(
            self._settings, start, spill=self._spill, server_id=self._server_id
        )
        self._outcome = None
        self._connecting = threading.Thread(
            target=self._try, args=(self._capture,), name=f"connect {self.name}", daemon=True
        )
        self._connecting.start()

    def _try(self, capture: Capture) -> None:
        try:
            capture.connect()
        except Exception as error:  # noqa: BLE001  # given to the loop
            self._outcome = error
        self._is_over = True
        self._wake()

    def finish_connecting(self) -> bool:
        """Take the outcome of an attempt; whether the feed streams now."""
        if not self._is_over or self._connecting is None:
            return False
        self._connecting.join()
        self._connecting, self._is_over = None, False
        capture, error = self._capture, self._outcome
        assert capture is not None, "connect() made it"
        if error is not None:
            self.fail(error)
            return False
        if self.position is None:
            self.router.position = capture.position
        self.is_streaming = True
        self._heard_s = self._connected_s = time.monotonic()
        self._has_progressed = False
        if self.failure is not None:
            logger.info("%s: connected again", self._settings.url)
        self.failure = None
        return True

    def fileno(self) -> int:
        """Of the connection, for a selector."""
        assert self._capture is not None, "it streams"
        return self._capture.fileno()

    def read(self, on_fault: OnFault) -> None:
        """Route what came.

        Raises:
            BinlaneError: If the source gives no more; what came before was routed.
            OSError: Likewise.
        """
        assert self._capture is not None, "it streams"
        self._heard_s = time.monotonic()
        for item in self._capture.receive():
            self.router.take(item, tuple(self.outputs), on_fault)
            has_progressed = not isinstance(item, EventGroup) or not item.is_control
            self._has_progressed = self._has_progressed or has_progressed
        if self._has_progressed or self._heard_s - self._connected_s > self._silent_max_s:
            self._backoff.reset()
            self._refusals.reset()
        if self.position is None:
            self.router.position = self._capture.position

    def check_silence(self) -> None:
        """See that something came lately.

        Raises:
            TimeoutError: If nothing did, not even a heartbeat.
        """
        if time.monotonic() - self._heard_s > self._silent_max_s:
            raise TimeoutError(f"the source was silent for {self._silent_max_s:.1f} s")

    @property
    def silent_until_s(self) -> float:
        """When `check_silence` is due, as `time.monotonic`."""
        return self._heard_s + self._silent_max_s + 0.01

    def fail(self, error: Exception) -> None:
        """Note why nothing comes, and when to try again; the connection is closed."""
        self.close()
        is_refusal = not isinstance(error, OSError) and not (
            isinstance(error, PeerError) and error.errno in _TRANSIENT_ERRNOS
        )
        if not isinstance(error, BinlaneError | OSError):
            logger.error("%s: %s feed", self._settings.url, self.name, exc_info=error)
        reason = str(error) or type(error).__name__
        before = self.failure
        has_changed = before is None or (before.reason, before.is_refusal) != (reason, is_refusal)
        since_s = before.since_s if before else time.time()
        self.failure = FeedFailure(
            reason=reason,
            hint=getattr(error, "hint", ""),
            is_refusal=is_refusal,
            since_s=since_s,
        )
        backoff = self._refusals if is_refusal else self._backoff
        delay_s = backoff.next_delay_s(random.random())  # noqa: S311  # no secret
        self.due_s = time.monotonic() + delay_s
        if has_changed or not is_refusal:
            logger.log(
                logging.ERROR if is_refusal else logging.WARNING,
                "%s: %s; next try in %.1f s (attempt %d)%s",
                *(self._settings.url, reason, delay_s, backoff.attempts),
                f" ({self.failure.hint})" if self.failure.hint else "",
            )

    def try_now(self) -> None:
        """Let the next attempt be due at once."""
        self.due_s = 0.0
        self._refusals.reset()

    def restart_at(self, start: Start | Position) -> None:
        """Begin anew from somewhere else."""
        self.close()
        self._start, self.due_s = start, 0.0
        self.router = Router(None)

    def close(self) -> None:
        """Close the connection."""
        self.is_streaming = False
        if self._capture is not None and self._connecting is None:
            self._capture.close()
            self._capture = None

