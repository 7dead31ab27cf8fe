"""A feed: one connection to the source, and the binlogs that it feeds.

The main feed feeds all binlogs that keep up. One that lags has a feed of its own, from where it
stands, until it has what the main feed has given. All of this is the routing loop's; a connection
alone is made in a thread of its own, so that nobody waits for a source that does not answer.
"""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from binlane.errors import BinlaneError
from binlane.live.capture.backoff import Backoff
from binlane.live.capture.capture import Capture, is_transient
from binlane.live.capture.identity import SourceIdentity, UntakenError
from binlane.live.capture.settings import SourceSettings, Start, StartAt
from binlane.live.capture.source_facts import SourceFacts
from binlane.live.loop.account_changes import AccountWatch
from binlane.live.loop.outputs import Output
from binlane.live.loop.router import Histories, OnFault, Router
from binlane.live.loop.substitution import Substitution
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.grouping.raw import Item
from binlane.positions import FilePosition, Position

_REFUSED_FIRST_S: Final = 1.0
_REFUSED_LONGEST_S: Final = 30.0
_LEVEL_LAG_S: Final = 2.0
_QUIET_S: Final = 0.1
_REFUSES_WITHIN_S: Final = 0.5

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedFailure:
    """The reason why a feed gets nothing.

    Attributes:
        error: The exception that was raised.
        is_refusal: True if somebody has to change something, at the source or here.
        is_of_dump: True if it came behind a connect that had gone well, so that another one says
            nothing of it.
        since_s: The time since when nothing comes, as `time.time`.
    """

    error: Exception
    is_refusal: bool
    is_of_dump: bool
    since_s: float

    @property
    def reason(self) -> str:
        """The error's message, or its type's name."""
        return str(self.error) or type(self.error).__name__

    @property
    def hint(self) -> str:
        """The error's advice on what to do; empty if there is none."""
        return self.error.hint if isinstance(self.error, BinlaneError) else ""


class SourceLog(Protocol):
    """The log of a source from a position on, one connection after the other, as `Capture` is."""

    server_id: int
    facts: SourceFacts | None

    @property
    def position(self) -> Position | None:
        """Every group up to here was given; None before the source first told it."""
        ...

    @property
    def file_position(self) -> FilePosition | None:
        """Place of the group behind the given ones in the source's files."""
        ...

    @property
    def format_description(self) -> FormatDescriptionEvent | None:
        """FORMAT_DESCRIPTION of the source's current file; None before it came."""
        ...

    @property
    def identity(self) -> SourceIdentity | None:
        """The source's identity to remember with `position`."""
        ...

    @property
    def has_progressed(self) -> bool:
        """True if something came since the last connect."""
        ...

    @property
    def is_silent(self) -> bool:
        """True if the source said nothing for so long that it must be dead."""
        ...

    @property
    def silent_s(self) -> float:
        """The longest silence of a source that lives, in seconds."""
        ...

    def connect(self) -> None:
        """Log in and ask for the log; it waits.

        Raises:
            BinlaneError: If the source cannot be reached, refuses, or is another one.
            OSError: Likewise.
        """
        ...

    def receive(self) -> Iterable[Item]:
        """Give the groups that came.

        Raises:
            BinlaneError: If the source gives no more, behind the groups before.
            OSError: Likewise.
        """
        ...

    def fileno(self) -> int:
        """Return the connection's descriptor."""
        ...

    def close(self) -> None:
        """Close the connection, if there is one."""
        ...


class OpenLog(Protocol):
    """Makes what gives a source's log; `Capture` is one."""

    def __call__(
        self,
        settings: SourceSettings,
        start: Start | Position,
        /,
        *,
        spill: Path,
        server_id: int,
        identity: SourceIdentity | None,
    ) -> SourceLog:
        """Prepare; nothing is opened."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSource:
    """The source of a feed, and binlane's place at it.

    Attributes:
        settings: The settings of the source.
        server_id: binlane's id at the source, on this feed's connections.
        spill: Folder for groups that are too large for memory, of this feed alone.
        open_log: Makes what gives the source's log.
    """

    settings: SourceSettings
    server_id: int
    spill: Path
    open_log: OpenLog = Capture


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSharing:
    """The services of the routing loop that all of its feeds use.

    Attributes:
        wake: Wakes the loop, from any thread.
        is_ending: Tells if no more is to be routed; asked before each group that takes long.
        substitution: Puts statements in the places of rows; None where there are no sessions.
        histories: Gives the rows of tables that come into scopes; None where nobody has them.
    """

    wake: Callable[[], None]
    is_ending: Callable[[], bool]
    substitution: Substitution | None = None
    histories: Histories | None = None


@dataclass(slots=True)
class _Reception:
    """The bytes that came by one connection.

    Attributes:
        heard_s: The time when bytes last came, as `time.monotonic`; 0 before the first.
        gave_groups: True if a group was among the last bytes.
        begun_s: The time when the source's log began to come; None before.
        has_given: True if something came that only a good connection gives.
    """

    heard_s: float = 0.0
    gave_groups: bool = False
    begun_s: float | None = None
    has_given: bool = False


class Feed:
    """One connection to the source at a time, and who gets what it gives.

    Attributes:
        name: Shown in messages of the log.
        outputs: The binlogs; each has everything up to `position`, or more.
        start: The position where the feed began.
        identity: The source's identity, for the next connection to it.
        router: Routes the source's groups into the outputs.
        is_streaming: True while the source's groups can come.
        failure: The reason why no groups can come, or could not until it is sure that they can;
            None while they can, and before the first attempt.
        due_s: The time when the next attempt is due, as `time.monotonic`.
        facts: The source's facts at the last connect; None before the first.
        connected_s: The time of that connect, as `time.time`.
        file_position: Everything before it in the source's log was given; None before the first.
        last_failure: The last `failure`, also once it is over.
    """

    def __init__(
        self,
        name: str,
        source: FeedSource,
        start: Start | Position,
        sharing: FeedSharing,
        *,
        identity: SourceIdentity | None = None,
        accounts: AccountWatch | None = None,
    ) -> None:
        """Prepare; `connect` begins.

        Args:
            name: Shown in messages of the log.
            source: The source, and binlane's place at it.
            start: The position where the feed begins.
            sharing: Services of the routing loop.
            identity: The identity of the source whose position that is; None at the first time.
            accounts: Follows account statements in what comes; of one feed alone, which has all.
        """
        self.name = name
        self.outputs: list[Output] = []
        self.is_streaming = False
        self.failure: FeedFailure | None = None
        self.due_s = 0.0
        self.facts: SourceFacts | None = None
        self.connected_s = 0.0
        self.file_position: FilePosition | None = None
        self.last_failure: FeedFailure | None = None
        self.identity = identity
        self._source = source
        self._sharing = sharing
        self._capture: SourceLog | None = None
        self._connecting: threading.Thread | None = None
        self._outcome: list[Exception | None] = []
        self._backoff = Backoff()
        self._refusals = Backoff(first_s=_REFUSED_FIRST_S, longest_s=_REFUSED_LONGEST_S)
        self._reception = _Reception()
        self._accounts = accounts
        self._begin_at(start)

    def _begin_at(self, start: Start | Position) -> None:
        self.start = start
        position = None if isinstance(start, StartAt | FilePosition) else start
        sharing = self._sharing
        self.router = Router(
            position,
            sharing.substitution,
            is_ending=sharing.is_ending,
            histories=sharing.histories,
        )

    @property
    def position(self) -> Position | None:
        """Everything up to here was given; None before that is known."""
        return self.router.position

    @property
    def refusal(self) -> str:
        """The reason why somebody has to change something; empty while nobody has to."""
        return self.failure.reason if self.failure and self.failure.is_refusal else ""

    @property
    def gives(self) -> bool:
        """True if the source's log comes: it began to, and nothing speaks against it.

        A source may begin a dump and refuse it behind its first words.
        """
        begun_s = self._reception.begun_s
        if not self.is_streaming or self.failure is not None or begun_s is None:
            return False
        return self._reception.has_given or time.monotonic() - begun_s >= _REFUSES_WITHIN_S

    @property
    def lacks_untaken(self) -> bool:
        """True if the feed gets nothing since transactions without a GTID stand in the source's log."""
        return self.failure is not None and isinstance(self.failure.error, UntakenError)

    @property
    def is_connecting(self) -> bool:
        """True if an attempt to connect is under way."""
        return self._connecting is not None

    @property
    def is_quiet(self) -> bool:
        """True if all was taken that came: what came last was no group, or is some time ago."""
        reception = self._reception
        return not reception.gave_groups or time.monotonic() - reception.heard_s > _QUIET_S

    @property
    def is_level(self) -> bool:
        """True if the feed has given about all that the source has."""
        if not self.is_streaming:
            return False
        last = self.router.last_timestamp
        return self.is_quiet or last is None or time.time() - last <= _LEVEL_LAG_S

    @property
    def heard_s(self) -> float | None:
        """The time when bytes last came, as `time.monotonic`; None before the first."""
        return self._reception.heard_s or None

    def connect(self) -> None:
        """Begin an attempt; `finish_connecting` is due when the loop is woken."""
        assert not self.is_streaming, "one connection at a time"
        source = self._source
        capture = source.open_log(
            source.settings,
            self.start if self.position is None else self.position,
            spill=source.spill,
            server_id=source.server_id,
            identity=self.identity,
        )
        self._capture = capture
        self._connecting = threading.Thread(
            target=self._try, args=(capture,), name=f"connect {self.name}", daemon=True
        )
        self._connecting.start()

    def _try(self, capture: SourceLog) -> None:
        error: Exception | None = None
        try:
            capture.connect()
        except Exception as caught:  # noqa: BLE001  # given to the loop
            error = caught
        self._outcome.append(error)
        self._sharing.wake()

    def finish_connecting(self) -> Exception | None:
        """Take the outcome of an attempt, if there is one: it streams, or gives why not."""
        if not self._outcome or self._connecting is None:
            return None
        self._connecting.join()
        self._connecting, error = None, self._outcome.pop()
        capture = self._capture
        assert capture is not None, "connect() made it"
        if error is not None:
            return error
        if self.position is None:
            self.router.position = capture.position
        self.is_streaming, self._reception = True, _Reception(heard_s=time.monotonic())
        self.facts = facts = capture.facts
        self.connected_s, self.file_position = time.time(), capture.file_position
        substitution = self._sharing.substitution
        if facts is not None and substitution is not None and self.position is not None:
            substitution.connected(self.position, is_new=self.identity is None)
        if self._accounts is not None and self.position is not None:
            self._accounts.connected(self.position)
        if facts is not None:
            logger.info(
                "%s: %s feed: connected to %s, as server id %d",
                *(self._source.settings.url, self.name, facts.version, capture.server_id),
            )
        if self.failure is not None and not self.failure.is_of_dump:
            self.failure = None
        return None

    def fileno(self) -> int:
        """Return the connection's file descriptor, for a selector."""
        assert self._capture is not None, "it streams"
        return self._capture.fileno()

    def read(self, on_fault: OnFault) -> None:
        """Route the groups that came.

        Raises:
            BinlaneError: If the source gives no more; what came before was routed.
            OSError: Likewise.
            EndingError: If no more is to be routed.
        """
        capture, router, reception = self._capture, self.router, self._reception
        assert capture is not None, "it streams"
        reception.heard_s, reception.gave_groups = time.monotonic(), False
        for item in capture.receive():
            if self._accounts is not None:
                self._accounts.noted(item, capture.position)
            router.take(item, capture.position, tuple(self.outputs), on_fault)
            reception.gave_groups = True
        self.file_position = capture.file_position
        if reception.begun_s is None and capture.format_description is not None:
            reception.begun_s = time.monotonic()
        if capture.has_progressed:
            reception.has_given = True
            self.failure = None
            self._backoff.reset()
            self._refusals.reset()
        if router.position is None:
            router.position = capture.position
        self.identity = capture.identity

    def work_off(self, on_fault: OnFault) -> bool:
        """Route what was held, as far as all is known; whether there was any of that."""
        router = self.router
        return router.is_holding and router.work_off(tuple(self.outputs), on_fault)

    def check_silence(self) -> None:
        """See that bytes came lately.

        Raises:
            TimeoutError: If nothing did, not even a heartbeat.
        """
        capture = self._capture
        if capture is not None and capture.is_silent:
            raise TimeoutError(f"the source was silent for {capture.silent_s:.1f} s")

    @property
    def look_at_s(self) -> float:
        """The time when something is due here, unless bytes come first, as `time.monotonic`."""
        if self.is_streaming and self._capture is not None:
            return self._reception.heard_s + self._capture.silent_s + 0.01
        return self.due_s

    def fail(self, error: Exception) -> None:
        """Note why nothing comes, and when to try again; the connection is closed."""
        is_of_dump = self.is_streaming
        self.close()
        before, is_refusal = self.failure, not is_transient(error)
        self.failure = FeedFailure(
            error=error,
            is_refusal=is_refusal,
            is_of_dump=is_of_dump and is_refusal,
            since_s=time.time() if before is None else before.since_s,
        )
        self.last_failure = self.failure
        backoff = self._refusals if is_refusal else self._backoff
        delay_s = backoff.next_delay_s(random.random())  # noqa: S311  # no secret
        self.due_s = time.monotonic() + delay_s
        if is_refusal and before is not None and before.reason == self.failure.reason:
            return  # it was told
        is_bug = not isinstance(error, BinlaneError | OSError)
        logger.log(
            logging.ERROR if is_refusal else logging.WARNING,
            "%s: %s feed: %s; next try in %.1f s (attempt %d)%s",
            *(self._source.settings.url, self.name, self.failure.reason, delay_s, backoff.attempts),
            f" ({self.failure.hint})" if self.failure.hint else "",
            exc_info=error if is_bug else None,
        )

    def try_now(self) -> None:
        """Let the next attempt be due at once."""
        self.due_s = 0.0

    def restart_at(self, start: Start | Position) -> None:
        """Begin anew from somewhere else, after `fail` or `close`, whatever source that is."""
        self._begin_at(start)
        self.identity, self.due_s = None, 0.0

    def end(self) -> None:
        """Close the connection for good."""
        self.close()
        with suppress(OSError):
            self._source.spill.rmdir()

    def close(self) -> None:
        """Close the connection, unless it is just being made."""
        self.is_streaming = False
        if self._capture is not None and self._connecting is None:
            self._capture.close()
            self._capture = None


def identity_text(identity: SourceIdentity | None) -> str | None:
    """An identity as the store keeps it."""
    if identity is None:
        return None
    place = identity.file_position
    return json.dumps([identity.server, place.file, place.position, identity.created])


def read_identity(text: str) -> SourceIdentity | None:
    """An identity that the store kept; None if it kept none."""
    if not text:
        return None
    server, file, position, created = json.loads(text)
    return SourceIdentity(
        server=server, file_position=FilePosition(file, position), created=created
    )
