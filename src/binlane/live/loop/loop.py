"""The routing loop: the one thread that owns the store.

Every write and every change of a definition happens here, one after another, between event groups.
It waits for its feeds and for commands. What concerns one binlog stops that binlog, what concerns
the source stops the binlogs of that feed; either is tried again until it works, and neither ends
the loop.

Others hand in commands, which a future answers, and read what `outputs` and binlogs publish.
"""

from __future__ import annotations

import logging
import secrets
import selectors
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import reduce
from itertools import count
from types import MappingProxyType
from typing import Final, TypeVar

from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.catalog import BinlogActivity
from binlane.binlogs.store.child_catching_up import ChildrenBehindError
from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.store import Store
from binlane.errors import BinlaneError, StoreError
from binlane.live.capture.capture import Capture
from binlane.live.capture.settings import SourceSettings, Start, StartAt
from binlane.live.loop.account_changes import AccountWatch
from binlane.live.loop.command_queue import Command, CommandQueue
from binlane.live.loop.feeds import (
    Feed,
    FeedSharing,
    FeedSource,
    OpenLog,
    identity_text,
    read_identity,
)
from binlane.live.loop.outputs import Output, know_fill
from binlane.live.loop.router import HistoryPendingError
from binlane.live.loop.substitution import EndingError, Substitution
from binlane.live.loop.table_histories import TableHistories
from binlane.positions import Position
from binlane.statements.scope.definition import is_internal

_LOOK_AGAIN_S: Final = 0.1
"""Longest interval of looks at a command that waits for something."""

_HELD_S: Final = 0.003
"""Interval of looks at groups that wait for what a session says."""

_BETWEEN_READS_S: Final = 0.005
"""A source that says something all the time is listened to this often: many groups at once cost
about what one does."""

_BETWEEN_READS_MOST_S: Final = 0.05
_SHARE: Final = 4
"""Reads begin so many times as far apart as one takes, within these bounds."""
_LONGEST_WAIT_S: Final = 60.0
_TOGETHER_S: Final = 0.05
_NEAR_S: Final = 2
_SERVER_ID_BASE: Final = 0x62000000
_SERVER_ID_RANDOM: Final = 1 << 24

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

WakeReaders = Callable[[list[LiveBinlog]], None]


class RoutingLoop:
    """The thread, its feeds and its binlogs.

    Attributes:
        store: The store that the loop owns.
        main: The feed of the binlogs that have caught up.
        outputs: The binlogs by name; replaced, never changed.
        accounts: Keeps grants with the source's accounts.
        histories: The tables that come into binlogs, with their rows.
        marks_failure: The reason why watermarks cannot be saved; empty while they can.
        crash: The exception that ended the thread, if that was no stop.
    """

    def __init__(
        self,
        store: Store,
        settings: SourceSettings,
        *,
        wake_readers: WakeReaders,
        substitution: Substitution | None = None,
        access_changed: Callable[[], None] = lambda: None,
        open_log: OpenLog = Capture,
    ) -> None:
        """Prepare; `start` begins.

        Args:
            store: The open store, the loop's from now on.
            settings: The settings of the source.
            wake_readers: Has `wake` called of binlogs whose readers wait; any thread may call it.
            substitution: Puts statements in the places of rows; None where there are no sessions
                that say which.
            access_changed: Told when some account may read other binlogs than before; in the thread.
            open_log: Makes what gives the source's log.
        """
        self.store = store
        self.marks_failure = ""
        self.crash: BaseException | None = None
        self._settings = settings
        self._open_log = open_log
        self._substitution = substitution
        self._wake_readers = wake_readers
        self._commands = CommandQueue()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._commands, selectors.EVENT_READ)
        self._is_stopping = False
        self._turn_began_s: float | None = None
        self._read_s = 0.0
        self._between_s = _BETWEEN_READS_S
        self._saver: threading.Thread | None = None
        self._saved_position: Position | None = None
        self._saved_accounts: Position | None = None
        self.outputs: Mapping[str, Output] = MappingProxyType({})
        self.accounts = AccountWatch(store, access_changed)
        self._postponed: set[Output] = set()  # until rows were read and placed
        self.histories = TableHistories(settings, store, open_log, self._commands.wake)
        self._sharing = FeedSharing(
            wake=self._commands.wake,
            is_ending=lambda: self._is_stopping,
            substitution=substitution,
            histories=self.histories,
        )
        store.child_readings.wake = self._commands.wake
        self._feeds: list[Feed] = []
        self._numbers = count()
        self._descriptors: dict[Feed, int] = {}
        self._thread = threading.Thread(target=self._run, name="routing")
        opened = self._take_over()
        first = StartAt.NOW if self.outputs else settings.start
        done = self._common_start(opened)
        self.main = self.new_feed(
            "main", first if done is None else done, settings.server_id, accounts=self.accounts
        )
        if not opened:
            self.main.identity = None  # nothing is left of a source that was another one
        for output in opened:
            self.attach(output, self.main)

    def _common_start(self, opened: Iterable[Output]) -> Position | None:
        """Return the position from which the main feed has all that binlogs and grants lack, if any."""
        known = self.accounts.known if self.accounts.is_watching else None
        reached = [output.taken for output in opened]
        return _common(reached if known is None else [*reached, known])

    def _take_over(self) -> list[Output]:
        """Keep the store's binlogs; those that the main feed is to feed."""
        activities, seeds = self.store.activities(), self.store.seeds
        fills = {fill.staging: fill for fill in seeds.fills}
        opened = []
        for name, binlog in tuple(self.store.binlogs.items()):
            if is_internal(name) and name not in fills:
                self.store.drop_binlog(name)  # a process ended while it was made or unmade
                continue
            output = self.add_output(binlog)
            activity, _ = activities[name]
            fill = seeds.fill_of(binlog.definition.log_id)
            know_fill(output, fill)
            if name in fills and fills[name].place is not None:
                activity = BinlogActivity.STOPPED
            if activity is BinlogActivity.STOPPED:
                output.stop()
            if binlog.failure:
                output.note_failure(binlog.failure)
                logger.error("binlog %s: STOPPED: %s", name, binlog.failure, extra={"binlog": name})
            elif activity is BinlogActivity.OPEN and not output.is_filling:
                opened.append(output)
        return opened

    # Calls of other threads.

    def start(self) -> None:
        """Start the routing thread."""
        self._thread.start()

    def stop(self) -> None:
        """End between two event groups, with everything stored that was routed; wait for that."""
        self._is_stopping = True
        self._commands.wake()
        if self._thread.is_alive():
            self._thread.join()
        self._selector.close()
        self._commands.close()

    def submit(self, command: Command[_T]) -> Future[_T]:
        """Have a command executed between two event groups."""
        return self._commands.submit(command)

    def feed_of(self, output: Output) -> Feed | None:
        """Return the feed of a binlog; None for one that is stopped."""
        return next((feed for feed in tuple(self._feeds) if output in feed.outputs), None)

    @property
    def busy_s(self) -> float:
        """Time that the thread's present work has taken, in seconds; 0 while the thread waits."""
        began_s = self._turn_began_s
        return 0.0 if began_s is None else time.monotonic() - began_s

    @property
    def feeds(self) -> Sequence[Feed]:
        """All feeds, as they are now."""
        return tuple(self._feeds)

    # Calls of commands, in the thread.

    def new_feed(
        self,
        name: str,
        start: Start | Position,
        server_id: int | None = None,
        *,
        accounts: AccountWatch | None = None,
    ) -> Feed:
        """A feed of binlogs that lag, or the main one."""
        source = FeedSource(
            settings=self._settings,
            server_id=server_id or _SERVER_ID_BASE + secrets.randbelow(_SERVER_ID_RANDOM),
            spill=self.store.spill_folder / f"{next(self._numbers)}",
            open_log=self._open_log,
        )
        identity = read_identity(self.store.source_identity)
        feed = Feed(name, source, start, self._sharing, identity=identity, accounts=accounts)
        self._feeds.append(feed)
        return feed

    def add_output(self, binlog: Binlog) -> Output:
        """Begin to keep a binlog."""
        lost = frozenset[int]() if self._substitution is None else self._substitution.lost_threads
        output = Output.of(binlog, lost)
        outputs = {**self.outputs, binlog.name: output}
        self.outputs = MappingProxyType(dict(sorted(outputs.items())))
        return output

    def end_threads(self, threads: frozenset[int]) -> bool:
        """Have replicas drop the temporary tables of connections that nobody follows any more."""
        for output in self.outputs.values():
            output.temporary.end(threads)
        return True

    def remove_output(self, output: Output) -> None:
        """Keep a binlog no more; its dumps end."""
        self.detach(output)
        self._postponed.discard(output)
        self.histories.forget(output.name)
        self.outputs = MappingProxyType(
            {name: each for name, each in self.outputs.items() if each is not output}
        )
        if output.live.drop():
            self._wake_readers([output.live])

    def attach(self, output: Output, feed: Feed) -> None:
        """Let a feed feed a binlog."""
        feed.outputs.append(output)
        self._postponed.discard(output)
        is_main = feed is self.main if hasattr(self, "main") else True
        output.attach(lambda: feed.refusal, is_main=is_main)

    def detach(self, output: Output) -> None:
        """Let nobody feed a binlog."""
        feed = self.feed_of(output)
        if feed is not None:
            feed.outputs.remove(output)
        output.detach()

    def catch_up(self, outputs: Iterable[Output]) -> None:
        """Let binlogs go on from where they stand, by the main feed or one of their own."""
        lagging = [output for output in outputs if not self._joins_main(output)]
        start = _common([output.taken for output in lagging])
        if start is None:
            return
        names = ", ".join(output.name for output in lagging)
        logger.info(
            "binlog %s: catching up from %s",
            *(names, start or "the beginning"),
            extra={"binlog": names, "gtid": str(start)},
        )
        feed = self.new_feed(names, start)
        if any(output.forgets_source for output in lagging):
            feed.identity = None
        for output in lagging:
            self.attach(output, feed)
            self.note_activity(output, BinlogActivity.CATCHING_UP, output.failure)

    def sync(self, outputs: Iterable[Output]) -> None:
        """Publish what was appended, and wake readers; what fails is that binlog's."""
        logs = list(outputs)
        faults = self.store.sync_each([output.binlog for output in logs])
        woken = []
        for output in logs:
            if faults and output.name in faults:
                self.fail(output, faults[output.name])
            if not output.take_news():
                continue
            if output.live.changed():
                woken.append(output.live)
            if output.failure and output.name not in faults:
                self._recovered(output)
        if woken:
            self._wake_readers(woken)

    def tell(self, output: Output) -> None:
        """Wake readers of a binlog, whose published part has changed."""
        if output.live.changed():
            self._wake_readers([output.live])

    def fail(self, output: Output, error: Exception) -> None:
        """Stop one binlog, and try again later."""
        if isinstance(error, HistoryPendingError | ChildrenBehindError):
            self.detach(output)
            self._postponed.add(output)
            self.note_activity(output, BinlogActivity.CATCHING_UP)
            return
        is_known = isinstance(error, BinlaneError | OSError)
        reason = str(error) if is_known else f"internal error: {error!r}"
        hint = getattr(error, "hint", "")
        if output.failure != reason:
            logger.error(
                "binlog %s: STOPPED: %s%s",
                *(output.name, reason, f" ({hint})" if hint else ""),
                exc_info=None if is_known else error,
                extra={"binlog": output.name},
            )
            self.note_activity(output, BinlogActivity.CATCHING_UP, reason)
        output.fail(reason, has_lost_trust=not is_known)
        self.detach(output)

    def note_activity(self, output: Output, activity: BinlogActivity, reason: str = "") -> None:
        """Save how a binlog is to fare after a restart, where that can be saved."""
        try:
            self.store.set_activity(output.name, activity, reason)
        except StoreError as error:
            # It then begins with the others, from where it stands.
            logger.warning(
                "binlog %s: its state cannot be saved: %s",
                *(output.name, error),
                extra={"binlog": output.name},
            )

    def _recovered(self, output: Output) -> None:
        """Note that an output that had failed works again."""
        logger.info(
            "binlog %s: goes on behind %s",
            *(output.name, output.binlog.position),
            extra={"binlog": output.name, "gtid": str(output.binlog.position)},
        )
        output.recover()

    def _joins_main(self, output: Output) -> bool:
        """Let the main feed feed a binlog that has all that it gave; whether that is so."""
        main = self.main
        if main.position is None or not main.is_streaming:
            return False
        if not output.binlog.reached.includes(main.position):
            return False
        # By the main feed it would wait until that has come to where the binlog is.
        ahead_s = (output.last_timestamp or 0) - (main.router.last_timestamp or 0)
        if ahead_s > _NEAR_S and not main.is_quiet:
            return False
        self.detach(output)
        self.attach(output, main)
        if output.failure:
            self._recovered(output)
        self.note_activity(output, BinlogActivity.OPEN)
        return True

    # The thread.

    def _run(self) -> None:
        try:
            with suppress(EndingError):
                while not self._is_stopping:
                    self._turn()
            self._end()
        except BaseException as error:
            logger.exception("routing loop: failed")
            self.crash = error
            self._wake_readers([])

    def _turn(self) -> None:
        self._turn_began_s = None
        ready = self._selector.select(self._time_left_s())
        if any(key.data is not None for key, _ in ready):
            # More may come of a source that was read just before.
            self._commands.pause(self._read_s + self._between_s - time.monotonic())
        self._turn_began_s = time.monotonic()
        for key, _ in ready:
            if key.data is None:
                self._commands.clear()
            elif key.data.is_streaming:
                self._read(key.data)
        for feed in tuple(self._feeds):
            if feed.work_off(self.fail):
                self.sync(feed.outputs)
            self._tend(feed)
        self.histories.place_piece(self.sync, self.fail)
        self._commands.execute()
        self._note_passed()
        self._revive_due()
        if len(self._feeds) > 1:
            self._join_main()
        if self.store.marks_are_due:
            self._save_marks()

    def _read(self, feed: Feed) -> None:
        """Route the groups that a feed gives, and publish them."""
        self._read_s = begun_s = time.monotonic()
        try:
            feed.read(self.fail)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is this feed's
            self._fail_feed(feed, error)
        self.sync(feed.outputs)
        # A turn that costs much is worth waiting for more, and leaves the sessions' thread its
        # time.
        took_s = time.monotonic() - begun_s
        self._between_s = _BETWEEN_READS_S
        if feed.is_level:
            wanted_s = max(_BETWEEN_READS_S, _SHARE * took_s)
            self._between_s = min(_BETWEEN_READS_MOST_S, wanted_s)
            now_s = time.time()
            for output in feed.outputs:
                if not feed.router.holds(output):
                    output.note_complete(now_s)

    def _fail_feed(self, feed: Feed, error: Exception) -> None:
        self._unregister(feed)
        feed.fail(error)
        if feed.refusal:
            self._part(feed)

    def _part(self, feed: Feed) -> None:
        """Let binlogs that need what the source lacks not keep back those that do not."""
        reached = [output.taken for output in feed.outputs]
        if not reached and feed is self.main and feed.start is not StartAt.NOW:
            feed.restart_at(StartAt.NOW)
        if not reached:
            return
        furthest = reduce(lambda one, other: one.union(other), reached)
        common = _common(reached)
        if common is not None and feed.position is not None and not feed.position.includes(common):
            # The source has no more what only accounts were to be read for.
            identity = feed.identity
            feed.restart_at(common)
            feed.identity = identity
            return
        behind = [each for each in feed.outputs if not each.binlog.reached.includes(furthest)]
        if not 0 < len(behind) < len(reached):
            return
        for output in behind:
            self.detach(output)
        feed.restart_at(furthest)

    def _tend(self, feed: Feed) -> None:
        """Connect a feed when it is due, see that it is alive, end one that feeds nobody."""
        if feed.is_connecting:
            error = feed.finish_connecting()
            if error is not None:
                self._fail_feed(feed, error)
            elif feed.is_streaming:
                # By number: whatever happens to the connection, it can be taken out again.
                self._descriptors[feed] = feed.fileno()
                self._selector.register(self._descriptors[feed], selectors.EVENT_READ, feed)
                self._read(feed)  # what came behind the answers may be here already
        elif not feed.outputs and feed is not self.main:
            self._unregister(feed)
            feed.end()
            self._feeds.remove(feed)
        elif feed.is_streaming:
            try:
                feed.check_silence()
            except TimeoutError as error:
                self._fail_feed(feed, error)
        elif time.monotonic() >= feed.due_s:
            feed.connect()

    def _unregister(self, feed: Feed) -> None:
        descriptor = self._descriptors.pop(feed, None)
        if descriptor is not None:
            self._selector.unregister(descriptor)

    def _is_waiting(self, output: Output) -> bool:
        return output.is_reading_children or self.histories.is_pending(output.name)

    def _revive_due(self) -> None:
        """Try again with binlogs that failed, and begin with those that are behind."""
        now_s, ready = time.monotonic(), []
        fed = {output for feed in self._feeds for output in feed.outputs}
        waiting = [
            output
            for output in self.outputs.values()
            if output not in fed
            and not output.is_stopped
            and not self._is_waiting(output)
            and (not output.is_filling or output.failure)
        ]
        if not any(output.due_s <= now_s for output in waiting):
            return
        for output in waiting:
            if output.due_s > now_s + _TOGETHER_S:
                continue
            try:
                if output.has_lost_trust or output.binlog.failure:
                    output.reopen(self.store.reopen_binlog(output.name))
                if output.is_filling:
                    self._recovered(output)
                else:
                    ready.append(output)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is this binlog's
                self.fail(output, error)
        self.catch_up(ready)

    def _join_main(self) -> None:
        for feed in self._feeds:
            if feed is not self.main:
                for output in tuple(feed.outputs):
                    self._joins_main(output)

    def _save_marks(self) -> None:
        """Have watermarks saved, beside the loop: that takes several waits for the disk."""
        if self._saver is not None and self._saver.is_alive():
            return
        logs = {output.binlog: output for output in self.outputs.values() if not output.failure}
        unsynced = [binlog for binlog in logs if binlog.has_unsynced]
        for name, error in self.store.sync_each(unsynced, force=True).items():
            self.fail(self.outputs[name], error)
        position = _common(
            [each.of_source(each.binlog.position) for each in self.outputs.values() if each.is_kept]
        )
        save = self.store.take_marks(identity=identity_text(self.main.identity))
        known = self.accounts.known if self.accounts.is_watching else None
        if save is not None or known not in (None, self._saved_accounts):
            arguments = save, position or self.main.position, known
            self._saver = threading.Thread(target=self._save, args=arguments, name="marks")
            self._saver.start()

    def _note_passed(self) -> None:
        """Have sessions forget what no binlog asks for any more, whatever happens to it."""
        position, self._saved_position = self._saved_position, None
        if position is not None and self._substitution is not None:
            self._substitution.passed(position)

    def _save(
        self, save: Callable[[], None] | None, position: Position | None, known: Position | None
    ) -> None:
        try:
            if known is not None:
                self.store.note_accounts_known(known)
                self._saved_accounts = known
            if save is not None:
                save()
        except StoreError as error:
            if self.marks_failure != str(error):
                logger.error("watermarks cannot be saved: %s (%s)", error, error.hint)  # noqa: TRY400
            self.marks_failure = str(error)
        else:
            self.marks_failure = ""
            self._saved_position = position

    def _time_left_s(self) -> float:
        """Return how long there is nothing to do unless somebody says something, in seconds."""
        now_s = time.monotonic()
        due_s = [now_s + _LONGEST_WAIT_S, self.store.marks_due_s, self.histories.due_s]
        due_s += [feed.look_at_s for feed in self._feeds if not feed.is_connecting]
        if self._commands.are_waiting:
            due_s.append(now_s + _LOOK_AGAIN_S)
        if any(feed.router.is_holding for feed in self._feeds):
            due_s.append(now_s + _HELD_S)
        due_s += [
            each.due_s
            for each in self.outputs.values()
            if each.failure
            or (each in self._postponed and not (each.is_stopped or self._is_waiting(each)))
        ]
        return max(0.0, min(due_s) - now_s)

    def _end(self) -> None:
        self.histories.end()
        for feed in self._feeds:
            feed.close()
        self.sync(output for output in self.outputs.values() if not output.failure)
        if self._saver is not None:
            self._saver.join()


def _common(positions: list[Position]) -> Position | None:
    """Return the intersection of all positions; None without any."""
    return reduce(lambda both, other: both.intersection(other), positions) if positions else None
