"""The thread that has binlogs filled, one after the other: it asks a process for rows, and places them.

Whatever ends it, be it a kill, it goes on: the rows that were read are in a folder of the store, the
place that was chosen and the groups that are placed stand in the catalog and in the binlog.
"""

from __future__ import annotations

import contextlib
import logging
import random
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final, Self, TypeVar

from binlane.binlogs.routing.routed_group import RoutedGroup
from binlane.binlogs.seeds.seed_groups import SeedTransaction, seed_group
from binlane.binlogs.seeds.spool_reading import ReadingLimits, ReadingProgress
from binlane.binlogs.store.catalog import BinlogActivity
from binlane.binlogs.store.fills import Fill, FillKind, Seeding
from binlane.binlogs.store.stored_groups import read_groups
from binlane.errors import BinlaneError
from binlane.live.capture.backoff import Backoff
from binlane.live.capture.settings import SourceSettings
from binlane.live.fills.definition_groups import (
    GroupMaker,
    database_texts,
    done_gtids,
    stated_table,
)
from binlane.live.fills.reading_process import ReadingProcess, RowsError
from binlane.live.fills.reading_work import (
    GivingWork,
    ReadingWork,
    RowsEnd,
    RowsRead,
    RowsRefused,
    RowsTold,
    TableDefinitions,
)
from binlane.live.loop.binlogs import Binlogs
from binlane.live.loop.command_queue import Command
from binlane.live.loop.fill_changes import (
    FillGoneError,
    Lacking,
    StagingLostError,
    StagingPlan,
    staging_scope,
)
from binlane.live.loop.outputs import FillReport, Output
from binlane.names import TableName
from binlane.positions import AnyGtid, Position, nothing_done
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import AlterBinlog, alter
from binlane.statements.sql.servers import LoggingMode

PLACING: Final = "placing rows"
"""The step of a fill in which the rows go into the binlog."""

RECONCILING: Final = "reconciling rows"
"""The step of a fill in which the changes meanwhile are worked into the rows."""

_LOOK_S: Final = 0.5
_SETTLE_S: Final = 60.0
"""Longest wait for a place; other binlogs' rows are read then."""
_LEFT_S: Final = 5.0  # between looks at replaced files that readers keep
_TROUBLES_MOST: Final = 3
_BATCH_BYTES: Final = 4 << 20
_FIRST_S: Final = 1.0
_LONGEST_S: Final = 60.0

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


class _StoppingError(Exception):
    """The process is to end."""


class RowFills:
    """Has the fills of a store done.

    Attributes:
        binlogs: The binlogs that are filled.
        source: The server whose tables are read.
    """

    def __init__(self, binlogs: Binlogs, source: SourceSettings) -> None:
        self.binlogs = binlogs
        self.source = source
        self._changes = binlogs.fills
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="rows", daemon=True)
        self._due: dict[int, _Retry] = {}

    def start(self) -> None:
        """Begin; the binlogs are routed already."""
        self._thread.start()

    def stop(self) -> None:
        """End; what is done stays done."""
        self._is_stopping = True
        self._changes.changed.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_stopping:
            try:
                self._turn()
            except _StoppingError:
                return
            except Exception:
                logger.exception("rows: failed")
                self._wait(_FIRST_S)

    def _wait(self, seconds: float) -> None:
        self._changes.changed.wait(seconds)
        self._changes.changed.clear()

    def _turn(self) -> None:
        """Do the fills that are due, each until it is done or cannot go on."""
        fills, now_s = self._changes.loop.store.seeds.fills, time.monotonic()
        has_files_left = self.ask(self._changes.drop_replaced)
        known = {fill.log_id for fill in fills}
        self._due = {log_id: each for log_id, each in self._due.items() if log_id in known}
        ready = [
            f for f in fills if f.log_id not in self._due or self._due[f.log_id].due_s <= now_s
        ]
        if not ready:
            self._wait(_FIRST_S if self._due else _LEFT_S if has_files_left else _LONGEST_S)
            return
        for fill in ready[1:]:
            output = self.output_of(fill)
            if output is not None and output.fill == FillReport():
                output.fill = FillReport(step="waiting for the rows of another binlog")
        for fill in ready:
            if self._is_stopping:
                return
            self._fill(fill)

    def _fill(self, fill: Fill) -> None:
        retry = self._due.setdefault(fill.log_id, _Retry())
        try:
            with _OneFill(self, fill, retry) as one:
                one.run()
            self._due.pop(fill.log_id, None)
        except (FillGoneError, CancelledError):
            self._due.pop(fill.log_id, None)
        except (BinlaneError, OSError) as error:
            self._failed(fill, retry, error)

    def _failed(self, fill: Fill, retry: _Retry, error: Exception) -> None:
        """Tell why a fill does not go on; give it up where trying again does not help."""
        output = self.output_of(fill)
        if output is None:
            return
        text, hint = str(error), getattr(error, "hint", "")
        known = output.fill or FillReport()
        is_final = getattr(error, "is_final", False)
        gives_up = is_final and fill.kind is not FillKind.CREATE
        report = replace(known, failure=text, hint=hint, is_over=gives_up)
        if known.failure != text:
            logger.error(
                "binlog %s: rows cannot be read: %s%s",
                *(output.name, text, f" ({hint})" if hint else ""),
                extra={"binlog": output.name},
            )
        output.fill = report
        retry.put_off()
        if gives_up:
            now = self.fill_now(fill)
            with contextlib.suppress(FillGoneError):
                self.ask(lambda _waited_s: self._changes.cancel(now, report))

    def output_of(self, fill: Fill) -> Output | None:
        """The binlog of a fill; None if it is gone."""
        for output in self._changes.loop.outputs.values():
            if output.binlog.definition.log_id == fill.log_id:
                return output
        return None

    def fill_now(self, fill: Fill) -> Fill:
        """A fill as it is now.

        Raises:
            FillGoneError: If it is under way no more.
        """
        now = self._changes.loop.store.seeds.fill_of(fill.log_id)
        if now is None or now.created != fill.created:
            raise FillGoneError("the binlog was dropped, or its rows are not wanted any more")
        return now

    def check(self) -> None:
        """See that the process is not to end.

        Raises:
            _StoppingError: If the process is to end.
        """
        if self._is_stopping:
            raise _StoppingError

    def ask(self, command: Command[_T], *, longest_s: float | None = None) -> _T:
        """Have the routing thread execute something, and wait for that as long as all goes on.

        Args:
            command: What the routing thread executes as soon as it can.
            longest_s: Wait no longer, in seconds; None for ever.

        Raises:
            TimeoutError: If it was not done in that time, and will not be.
        """
        future, begun_s = self._changes.loop.submit(command), time.monotonic()
        while True:
            try:
                return future.result(timeout=_LOOK_S)
            except FutureTimeoutError:
                is_late = longest_s is not None and time.monotonic() - begun_s > longest_s
                if (self._is_stopping or is_late) and future.cancel():
                    if is_late:
                        raise TimeoutError("the routing thread cannot do it yet") from None
                    raise _StoppingError from None


class _Retry:
    """The next attempt at a fill, and the number of times that its tables changed.

    Attributes:
        due_s: The time of the next attempt, as `time.monotonic`.
        troubles: How many times tables changed so that reading began anew.
    """

    def __init__(self) -> None:
        self.due_s = 0.0
        self.troubles = 0
        self._backoff = Backoff(first_s=_FIRST_S, longest_s=_LONGEST_S)

    def put_off(self) -> None:
        """Try again later."""
        self.due_s = time.monotonic() + self._backoff.next_delay_s(random.random())  # noqa: S311


@dataclass(slots=True)
class _Placed:
    """The groups of a seeding on their way into the binlog."""

    number: int = 0
    rows: int = 0


class _OneFill:
    """One fill at work, with its process.

    Args:
        fills: The fills of the store.
        fill: The fill as it was when the work began.
        retry: Knows of the earlier attempts at it.
    """

    def __init__(self, fills: RowFills, fill: Fill, retry: _Retry) -> None:
        self._fills = fills
        self._changes = fills.binlogs.fills
        self._store = self._changes.loop.store
        self._fill = fill
        self._retry = retry
        self._process: ReadingProcess | None = None
        self._rows_before: dict[TableName, int] = {}
        self._expected: dict[TableName, int] = {}
        self._has_begun_here = True
        self._lacking = Lacking()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.close()

    def run(self) -> None:
        """Read, choose the place, and place the rows.

        Raises:
            BinlaneError: If that does not work now, or ever.
            FillGoneError: If the fill is not wanted any more.
        """
        if (output := self._fills.output_of(self._fill)) is None:
            raise FillGoneError("the binlog was dropped")
        output.fill = replace(output.fill or FillReport(), failure="", hint="")
        self._process = ReadingProcess()
        while True:
            self._fill = self._fills.fill_now(self._fill)
            if self._fill.place is not None:
                seeding = self._store.seeds.of(self._fill.log_id)[-1]
            else:
                try:
                    seeding = self._settle(self._read())
                except StagingLostError as error:
                    self._begin_anew(error.message)
                    continue
            self._fill = self._fills.fill_now(self._fill)
            if self._place(seeding):
                return

    @property
    def _folder(self) -> Any:
        return self._store.rows_folder(self._fill.log_id)

    @property
    def _output(self) -> Output:
        output = self._fills.output_of(self._fill)
        if output is None:
            raise FillGoneError("the binlog was dropped")
        return output

    @property
    def _staging(self) -> Output:
        staging = self._changes.loop.outputs.get(self._fill.staging)
        if staging is None:
            raise StagingLostError("what changed the tables meanwhile is gone")
        return staging

    def _begin_anew(self, why: str) -> None:
        """Read everything once more, with another staging binlog."""
        output, fill = self._output, self._fill
        logger.warning(
            "binlog %s: rows are read anew: %s",
            *(output.name, why),
            extra={"binlog": output.name},
        )
        shutil.rmtree(self._folder, ignore_errors=True)
        definition = output.binlog.definition
        after = self._definition()(definition).scope
        before = definition.scope if fill.kind is FillKind.ADD else None
        done = nothing_done(output.binlog.reached.flavor)
        plan = StagingPlan(
            scope=staging_scope(before, after), done=done, links=output.binlog.memory.links
        )
        self._fills.ask(partial(self._changes.restage, fill, plan))

    # Reading.

    def _read(self) -> Position:
        """Read all tables; gives a position that covers all that was visible."""
        source, settings = self._fills.source, self._changes.settings
        work = ReadingWork(
            url=source.url,
            password=source.secret(),
            folder=self._folder,
            scope=self._staging.binlog.definition.scope,
            limits=ReadingLimits(
                rows_per_s=settings.rows_per_s or None,
                chunk_bytes=settings.chunk_bytes,
                size_max_bytes=settings.size_max_bytes or None,
            ),
        )
        self._report(step=FillReport().step)
        self._child.send(work)
        for told in self._told():
            if isinstance(told, ReadingProgress):
                self._progressed(told)
            elif isinstance(told, RowsRefused):
                raise RowsError(told.message, hint=told.hint, is_final=told.is_final)
            elif isinstance(told, RowsRead):
                self._check_refusals(told)
                return told.high or nothing_done(self._staging.binlog.reached.flavor)
        raise RowsError("the process that reads rows said nothing more")

    @staticmethod
    def _check_refusals(told: RowsRead) -> None:
        if told.refusals:
            name, why = next(iter(told.refusals.items()))
            more = len(told.refusals) - 1
            raise RowsError(
                f"{name.plain}: {why}" + (f" (and {more} more tables)" if more else ""),
                hint="leave the table out of the LOG list, or give it to IGNORE",
                is_final=True,
            )

    def _progressed(self, told: ReadingProgress) -> None:
        self._rows_before[told.table] = told.rows
        self._expected[told.table] = max(told.rows_expected, told.rows)
        if told.note:
            logger.warning(
                "binlog %s: %s: %s",
                *(self._output.name, told.table.plain, told.note),
                extra={"binlog": self._output.name},
            )
        self._report(
            table=told.table.plain,
            rows=sum(self._rows_before.values()),
            rows_expected=sum(self._expected.values()),
        )

    def _report(self, **changes: Any) -> None:
        output = self._output
        output.fill = replace(output.fill or FillReport(), **changes)

    # The place.

    def _settle(self, high: Position) -> Seeding:
        """Choose the place for the rows, as soon as it can be chosen."""
        self._report(step="waiting for the binlog to have all of the source", table="")
        settle = partial(self._changes.settle, self._fill, high)
        try:
            return self._fills.ask(settle, longest_s=_SETTLE_S)
        except TimeoutError:
            output = self._output
            raise RowsError(
                f"the rows are read, and wait for the binlog, which is {output.state.activity.value}"
                if output.state.activity is not BinlogActivity.OPEN
                else "the rows are read, and wait for XA transactions that are prepared",
                hint="they are placed once that is over",
            ) from None

    # Placing.

    def _place(self, seeding: Seeding) -> bool:
        """Place the rows; False if tables changed, so that reading goes on."""
        staging = self._staging.binlog
        self._report(step=RECONCILING, table="", rows=0)
        self._child.send(
            GivingWork(
                url=self._fills.source.url,
                password=self._fills.source.secret(),
                folder=self._folder,
                staging=staging.published.last.path.parent,
                files={each.name: each.size_bytes for each in staging.published.files},
                scope=staging.definition.scope,
                format=staging.source_format,
            )
        )
        placed = _Placed()
        told = self._told()
        first = next(told)
        if isinstance(first, RowsRefused):
            return self._cannot_place(first)
        groups = self._groups(first, told, seeding)
        held = seeding.held_in(self._output.binlog.position)
        done = 0 if held is None else held - seeding.first + 1
        self._has_begun_here = held is None
        for batch in _batches(islice(groups, done, None)):
            made = [each for each, _ in batch]
            self._fills.ask(partial(self._append, seeding, made))
            placed.rows += sum(rows for _, rows in batch)
            self._report(step=PLACING, rows=placed.rows)
        change = self._definition()
        lacking = self._lacking
        self._fills.ask(
            lambda _waited_s: self._changes.finish(self._fill, seeding, change, lacking)
        )
        logger.info(
            "binlog %s: has its tables' rows as of %s",
            *(self._name_of(seeding), seeding.place),
            extra={"gtid": str(seeding.place)},
        )
        shutil.rmtree(self._folder, ignore_errors=True)
        return True

    def _append(self, seeding: Seeding, groups: list[RoutedGroup], _waited_s: float) -> bool:
        return self._changes.append(seeding, groups)

    def _name_of(self, seeding: Seeding) -> str:
        for output in self._changes.loop.outputs.values():
            if output.binlog.definition.log_id == seeding.log_id:
                return output.name
        return str(seeding.log_id)

    def _cannot_place(self, told: RowsRefused) -> bool:
        """Go back to reading, where tables changed; a few times, and then say so."""
        if not told.tables and not told.starts_over:
            raise RowsError(told.message, hint=told.hint, is_final=told.is_final)
        fill = self._fill
        self._fills.ask(lambda _waited_s: self._changes.undo(fill))
        if told.starts_over:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._retry.troubles += 1
        logger.warning(
            "binlog %s: rows are read anew: %s",
            *(self._output.name, told.message),
            extra={"binlog": self._output.name},
        )
        if self._retry.troubles % _TROUBLES_MOST == 0:
            raise RowsError(
                f"tables changed {self._retry.troubles} times while their rows were read, the last "
                f"time: {told.message}",
                hint="it is tried again; begin when no CREATE, ALTER, RENAME or DROP runs",
            )
        return False

    def _groups(
        self, first: RowsTold, told: Iterator[RowsTold], seeding: Seeding
    ) -> Iterator[tuple[RoutedGroup, int]]:
        """All groups of a seeding with the number of their rows, the same each time."""
        assert isinstance(first, TableDefinitions), "it comes first"
        source, binlog = seeding.source, self._output.binlog
        maker = GroupMaker(
            format=binlog.source_format, server_id=source.server_id, timestamp=int(time.time())
        )
        sequence = seeding.first
        scope = self._definition()(binlog.definition).scope
        for text in database_texts(first.databases):
            yield maker.statement(source.gtid(sequence), text), 0
            sequence += 1
        left_keys: dict[TableName, frozenset[str]] = {}
        for name, text in first.tables.items():
            stated = stated_table(maker.query(text, name.database), scope)
            if stated.left_keys:
                left_keys[scope.key(name)] = stated.left_keys
            yield maker.group(source.gtid(sequence), stated.query), 0
            sequence += 1
        self._lacking = Lacking(keys=left_keys, objects=first.others)
        for each in told:
            if isinstance(each, RowsRefused):
                raise RowsError(each.message, hint=each.hint, is_final=each.is_final)
            if isinstance(each, RowsEnd):
                break
            assert isinstance(each, SeedTransaction), f"{each} is no rows"
            group = seed_group(
                each,
                source.gtid(sequence),
                timestamp=maker.timestamp,
                server_id=source.server_id,
                format_=maker.format,
            )
            yield group, each.rows
            sequence += 1
        if seeding.is_beginning:
            for gtid in done_gtids(seeding.place):
                if gtid not in self._behind(source.gtid(sequence - 1)):
                    yield maker.nothing(gtid), 0

    def _behind(self, last: AnyGtid) -> set[AnyGtid]:
        """GTIDs of groups that stand behind the last rows already: those of a process before."""
        if self._has_begun_here:
            return set()
        found: set[AnyGtid] = set()
        published = self._output.binlog.published
        for group in read_groups([file.path for file in published.files[-2:]]):
            if group.gtid == last:
                found = set()
            elif group.gtid is not None:
                found.add(group.gtid)
        return found

    def _definition(self) -> Any:
        """Return the function that makes a binlog's definition the one that holds with the rows."""
        if self._fill.kind is not FillKind.ADD:
            return _same
        statement = parse_binlog_statement(self._fill.statement)
        assert isinstance(statement, AlterBinlog), "ALTER BINLOG … ADD LOG began it"
        return partial(_altered, statement=statement)

    @property
    def _child(self) -> ReadingProcess:
        assert self._process is not None, "run() started it"
        return self._process

    def _told(self) -> Iterator[RowsTold]:
        """Yield all that the process tells, as long as all goes on."""
        while True:
            self._fills.check()
            self._fills.fill_now(self._fill)
            if self._child.connection.poll(_LOOK_S):
                yield self._child.receive()


def _same(definition: Definition) -> Definition:
    return definition


def _altered(definition: Definition, *, statement: AlterBinlog) -> Definition:
    return alter(definition, statement, default=LoggingMode.ROW)


def _batches(
    groups: Iterable[tuple[RoutedGroup, int]],
) -> Iterator[list[tuple[RoutedGroup, int]]]:
    """Groups in batches that the routing thread adds at once."""
    batch: list[tuple[RoutedGroup, int]] = []
    size = 0
    for group, rows in groups:
        batch.append((group, rows))
        size += sum(len(getattr(event.body, "images", b"")) + 100 for event in group.events)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
