"""Changes of binlogs that are given their tables' rows, which the routing loop executes.

A fill begins with a staging binlog, which keeps what changes the tables while their rows are read. The
rows are then placed at one place of the source's log: binlog and staging stop there, the seed groups
follow, and the binlog goes on behind the place as one that has to catch up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from binlane.binlogs.routing.routed_group import RoutedGroup
from binlane.binlogs.routing.routing_memory import Memory, StoredObject
from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.binlogs.store.catalog import BinlogActivity
from binlane.binlogs.store.files import last_beginning
from binlane.binlogs.store.fills import Fill, FillKind, Seeding
from binlane.errors import BinlaneError, DefinitionError, StoreError
from binlane.live.loop.binlog_changes import (
    MAIN_TIMEOUT_S,
    SOURCE_TIMEOUT_S,
    being_filled,
    drop_staging,
    know,
    known_links,
    prepared,
    unreached,
)
from binlane.live.loop.loop import RoutingLoop
from binlane.live.loop.outputs import FillReport, Output
from binlane.live.loop.rows_settings import RowsSettings
from binlane.names import TableName
from binlane.positions import GtidPosition, Position, nothing_done
from binlane.statements.scope.definition import Definition, duplicate_binlog, unknown_binlog
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.servers import LoggingMode

_COME_BACK_S: Final = 60.0
"""Time after a start in which no replaced files are deleted: readers open again what a restart closed."""


class FillGoneError(BinlaneError):
    """A fill that is under way no more: its binlog was dropped, or it was taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingPlan:
    """The needs of a fill that begins.

    Attributes:
        scope: The tables whose rows are read.
        done: The source's position when the statement came.
        links: Between the source's tables at that time.
    """

    scope: Scope
    done: Position
    links: TableLinks = NO_LINKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """Parts of a source that replicas have not that begin with rows.

    Attributes:
        keys: Foreign keys of tables to outside parents, by name in small letters.
        objects: Views, triggers, routines, events and sequences.
    """

    keys: Mapping[TableName, frozenset[str]] = field(default_factory=dict)
    objects: frozenset[StoredObject] = frozenset()


class FillChanges:
    """The changes, each a command that the routing loop's thread executes.

    Attributes:
        loop: The loop that executes them.
        changed: Set when there is another fill, or one less.
    """

    def __init__(self, loop: RoutingLoop) -> None:
        self.loop = loop
        self.changed = threading.Event()
        self._settings = RowsSettings()
        self._dropping_from_s: float | None = None

    @property
    def settings(self) -> RowsSettings:
        """The settings by which tables are read, with the domain of the GTIDs of rows."""
        return self._settings

    @settings.setter
    def settings(self, settings: RowsSettings) -> None:
        self._settings = settings
        self.loop.store.seeds.gtid_domain_id = settings.gtid_domain_id

    # Commands that begin.

    def create(
        self, name: str, make: Callable[[int], Definition], plan: StagingPlan, waited_s: float
    ) -> Position | None:
        """Make a binlog that is to be filled; gives where its staging begins, None to be asked again."""
        loop = self.loop
        if name in loop.outputs:
            raise duplicate_binlog(name)
        begin = self._begin(plan, waited_s)
        if begin is None:
            return None
        log_id = loop.store.next_log_id()
        fill = Fill(log_id=log_id, kind=FillKind.CREATE)
        definition = make(log_id)
        self._stage(fill, log_id + 1, plan, begin)
        assert loop.main.router.format is not None, "_begin() saw to it"
        header, description = loop.main.router.format
        binlog = loop.store.create_binlog(
            definition,
            start=nothing_done(begin.flavor),
            format_description=description,
            server_id=header.server_id,
            timestamp=header.timestamp,
            fill=fill,
        )
        know(binlog, plan.links, is_followed=False)
        loop.add_output(binlog).is_filling = True
        self.changed.set()
        return begin

    def begin(
        self, name: str, kind: FillKind, statement: str, plan: StagingPlan, waited_s: float
    ) -> Position | None:
        """Begin to fill a binlog that is there; as `create`."""
        output = self._output(name)
        log_id = output.binlog.definition.log_id
        if self.loop.store.seeds.fill_of(log_id) is not None:
            raise being_filled(output)
        begin = self._begin(plan, waited_s)
        if begin is None:
            return None
        now = int(time.time())
        fill = Fill(log_id=log_id, kind=kind, statement=statement, created=now)
        self._stage(fill, self.loop.store.next_log_id(), plan, begin)
        self.loop.store.seeds.begin(fill)
        output.fill = FillReport()
        self.changed.set()
        return begin

    def _begin(self, plan: StagingPlan, waited_s: float) -> Position | None:
        """The place at which a staging binlog may begin; None if that is to be asked again."""
        main = self.loop.main
        position = main.position
        if not main.is_streaming or main.router.format is None or position is None:
            if main.refusal or waited_s > SOURCE_TIMEOUT_S:
                raise unreached(main.refusal)
            return None
        if position.includes(plan.done):
            return position
        return plan.done if waited_s >= MAIN_TIMEOUT_S else None

    def _stage(self, fill: Fill, log_id: int, plan: StagingPlan, begin: Position) -> None:
        """Make the staging binlog of a fill."""
        loop = self.loop
        assert loop.main.router.format is not None, "_begin() saw to it"
        header, description = loop.main.router.format
        if fill.staging in loop.outputs:
            drop_staging(self.loop, fill)
        staging = loop.store.create_binlog(
            Definition(
                name=fill.staging, scope=plan.scope, logging_mode=LoggingMode.ROW, log_id=log_id
            ),
            start=begin,
            format_description=description,
            server_id=header.server_id,
            timestamp=header.timestamp,
        )
        know(staging, plan.links, is_followed=False)
        output = loop.add_output(staging)
        if loop.main.position is begin:
            loop.attach(output, loop.main)
        else:
            loop.catch_up([output])

    def restage(self, fill: Fill, plan: StagingPlan, waited_s: float) -> Position | None:
        """Begin a fill's staging anew; as `create`."""
        self._known(fill)
        begin = self._begin(plan, waited_s)
        if begin is not None:
            self._stage(fill, self.loop.store.next_log_id(), plan, begin)
        return begin

    # Commands of whoever fills.

    def settle(self, fill: Fill, high: Position, waited_s: float) -> Seeding | None:
        """Choose the place for the rows: here and now, once binlog and staging have all up to `high`.

        Args:
            fill: The fill, all of whose rows are read.
            high: A position that covers all that was visible to the reading.
            waited_s: For how many seconds the command has waited.

        Returns:
            The place, with the GTIDs of the groups; None if the time has not come.
        """
        del waited_s
        loop, output = self.loop, self._known(fill)
        staging = self._staging(fill)
        both = [staging] if fill.kind is FillKind.CREATE else [staging, output]
        place = loop.main.position
        if place is None or not place.includes(high):
            return None
        for each in both:
            is_here = each.is_on_main and each.taken.includes(place) and place.includes(each.taken)
            if not is_here or loop.main.router.holds(each) or each.failure:
                return None
        if staging.binlog.prepared:
            return None
        loop.sync(both)
        for each in both:
            each.binlog.sync(force=True)
        binlog = output.binlog
        seeding = loop.store.seeds.place(fill, place, binlog.end.file)
        binlog.seedings = loop.store.seeds.of(fill.log_id)
        for each in both:
            loop.detach(each)
        output.is_filling = True
        staging.stop()
        return seeding

    def append(self, seeding: Seeding, groups: Sequence[RoutedGroup]) -> bool:
        """Add seed groups to a binlog, published when this returns."""
        output = self._placing(seeding)
        binlog = output.binlog
        try:
            self._begin_file(output, seeding)
            for group in groups:
                if group.gtid is not None and not seeding.has(group.gtid):
                    self._end_rows(output, seeding)
                binlog.append_new(group, begin=seeding.begin_of_file(binlog.reached))
                if group.gtid is not None:
                    binlog.advance(group.gtid)
            binlog.sync()
        except StoreError as error:
            self.loop.fail(output, error)
            raise
        counts = output.counts
        counts.event_groups += len(groups)
        counts.events += sum(len(group.events) for group in groups)
        self.loop.sync([output])
        return True

    @staticmethod
    def _begin_file(output: Output, seeding: Seeding) -> None:
        """Begin the file of the rows, unless that is done.

        A reader that has nothing begins in the file of a beginning. Before other rows a MariaDB
        applies all that comes before them.
        """
        binlog = output.binlog
        is_new = not binlog.head.begin and binlog.size_bytes == binlog.head.size_bytes
        is_done = binlog.end.file != seeding.first_file or seeding.held_in(binlog.reached)
        if is_new or is_done:
            return
        if seeding.is_beginning:
            binlog.rotate(int(time.time()), begin=nothing_done(seeding.place.flavor))
        elif seeding.flavor == GtidPosition.flavor:
            output.begin_anew()

    @staticmethod
    def _end_rows(output: Output, seeding: Seeding) -> None:
        """Begin a file behind the rows, unless that is done.

        A MariaDB replica with `slave_parallel_threads` applies domains side by side, so changes of
        the rows before the rows. Before a file that says that its server was started it waits until
        all is applied, in each mode.
        """
        binlog = output.binlog
        if seeding.flavor != GtidPosition.flavor or seeding.held_in(binlog.reached) is None:
            return
        is_behind = seeding.held_in(binlog.head.begin) == seeding.held_in(binlog.reached)
        if not (is_behind and binlog.head.format_description.created):
            output.begin_anew(seeding.begin_of_file(binlog.reached))

    def finish(
        self,
        fill: Fill,
        seeding: Seeding,
        change: Callable[[Definition], Definition],
        lacking: Lacking,
    ) -> bool | None:
        """Let a binlog go on behind the place of its rows, by another definition.

        Args:
            fill: The fill, all of whose rows are placed.
            seeding: The place of the rows.
            change: Gives the definition that holds from here on.
            lacking: What replicas do not have that begin with these rows.

        Returns:
            None if it is to be asked again, once rows of children were read.
        """
        loop, output = self.loop, self._placing(seeding)
        binlog, staging = output.binlog, loop.outputs.get(fill.staging)
        links = NO_LINKS if staging is None else staging.binlog.memory.links
        definition = change(binlog.definition)
        is_followed = fill.kind is not FillKind.CREATE and not definition.scope.is_unscoped
        known = known_links(binlog, links, is_followed=is_followed)
        if not prepared(loop, output, known, definition):
            return None
        last = seeding.held_in(binlog.reached)
        try:
            self._end_rows(output, seeding)
        except StoreError as error:
            loop.fail(output, error)
            raise
        binlog.advance_to(seeding.place)
        binlog.remember(_lacking(binlog.memory, fill.kind, lacking, definition.scope))
        know(binlog, links, is_followed=is_followed)
        loop.store.finish_fill(definition, replace(seeding, last=last or seeding.first - 1))
        if fill.kind is FillKind.COMPACT:
            children, binlog.children = binlog.children, None
            if children is not None:
                children.remove()  # they are read anew from the beginning, which has all tables
            self._drop_before(output)
            binlog.children = children
        output.is_filling, output.fill = False, None
        loop.sync([output])
        loop.tell(output)
        drop_staging(self.loop, fill)
        loop.catch_up([output])
        self.changed.set()
        return True

    def drop_replaced(self, _waited_s: float) -> bool:
        """Delete the files that later beginnings replace; True if some stay because they may be read."""
        outputs = self._begun_with_rows()
        if self._dropping_from_s is None:
            has_some = any(last_beginning(each.binlog.files()) for each in outputs)
            self._dropping_from_s = time.monotonic() + (_COME_BACK_S if has_some else 0.0)
        if time.monotonic() < self._dropping_from_s:
            return True
        stay = [self._drop_before(output) for output in outputs]
        return any(stay)

    def _begun_with_rows(self) -> list[Output]:
        """Those whose last beginning is whole."""
        filled = {fill.log_id for fill in self.loop.store.seeds.fills if fill.place is not None}
        return [
            output
            for output in self.loop.outputs.values()
            if any(each.is_beginning for each in output.binlog.seedings)
            and output.binlog.definition.log_id not in filled
        ]

    @staticmethod
    def _drop_before(output: Output) -> bool:
        """Delete the files before the last beginning, up to the first that a reader has open.

        Whoever reads it wants the next, too. Gives whether some stay for that reason.
        """
        files = output.binlog.files()
        beginning = last_beginning(files)
        read = output.live.files_read
        first = next((n for n in range(beginning) if files[n].name in read), beginning)
        if first:
            output.binlog.purge(files[first].name)
        return first < beginning

    def undo(self, fill: Fill) -> bool:
        """Read on: the rows cannot be had at the place that was chosen, and none is placed yet."""
        loop, output = self.loop, self._known(fill)
        loop.store.seeds.unplace(fill.log_id)
        output.binlog.seedings = loop.store.seeds.of(fill.log_id)
        output.is_filling = fill.kind is FillKind.CREATE
        staging = self._staging(fill)
        staging.go_on(None, forgets_source=False)
        loop.catch_up([staging] if output.is_filling else [staging, output])
        return True

    def cancel(self, fill: Fill, report: FillReport | None) -> bool:
        """Give up a fill of a binlog that goes on without it."""
        loop, output = self.loop, self._known(fill)
        if fill.place is not None:
            loop.store.seeds.unplace(fill.log_id)
            output.binlog.seedings = loop.store.seeds.of(fill.log_id)
        loop.store.seeds.cancel(fill.log_id)
        drop_staging(self.loop, fill)
        output.fill = report
        if output.is_filling:
            output.is_filling = False
            loop.catch_up([output])
        self.changed.set()
        return True

    def give_up(self, name: str, _waited_s: float) -> bool:
        """Give up a fill as its user wants it.

        Raises:
            DefinitionError: If there is none, or it can only go on.
        """
        output = self._output(name)
        fill = self.loop.store.seeds.fill_of(output.binlog.definition.log_id)
        if fill is None and output.fill is None:
            raise DefinitionError(
                f"no rows are read for binlog '{name}'",
                hint="SHOW BINLOGS tells for which they are",
            )
        if fill is not None and fill.holds_back:
            raise being_filled(output)
        if fill is not None:
            self.cancel(fill, None)
        output.fill = None
        return True

    def _known(self, fill: Fill) -> Output:
        """The binlog of a fill.

        Raises:
            FillGoneError: If the fill is under way no more.
        """
        if self.loop.store.seeds.fill_of(fill.log_id) is not None:
            for output in self.loop.outputs.values():
                if output.binlog.definition.log_id == fill.log_id:
                    return output
        raise FillGoneError("the binlog was dropped, or its rows are not wanted any more")

    def _placing(self, seeding: Seeding) -> Output:
        fill = self.loop.store.seeds.fill_of(seeding.log_id)
        if fill is None or fill.place != seeding.place:
            raise FillGoneError("the binlog was dropped, or its rows are not wanted any more")
        return self._known(fill)

    def _staging(self, fill: Fill) -> Output:
        staging = self.loop.outputs.get(fill.staging)
        if staging is None:
            raise StagingLostError("what changed the tables meanwhile was not kept")
        if not staging.is_stopped and staging.state.activity is BinlogActivity.STOPPED:
            raise StagingLostError(f"what changes the tables is not kept: {staging.state.reason}")
        return staging

    def _output(self, name: str) -> Output:
        output = self.loop.outputs.get(name)
        if output is None:
            raise unknown_binlog(name, self.loop.outputs)
        return output

    def check_domain(self, done: Position) -> None:
        """See that the source has no GTIDs of the domain that rows have.

        Raises:
            DefinitionError: If it has.
        """
        self.loop.store.seeds.check_domain(done)


class StagingLostError(BinlaneError):
    """The changes of tables were not all kept while their rows were read."""


def _lacking(memory: Memory, kind: FillKind, lacking: Lacking, scope: Scope) -> Memory:
    """Routing's memory with what replicas lack that begin with rows."""
    for table, names in lacking.keys.items():
        memory = memory.with_left_keys(table, names)
    if kind is FillKind.ADD:
        return memory
    for each in sorted(lacking.objects, key=lambda one: (one.kind.value, one.name)):
        if scope.includes_database(each.name.database) and each not in memory.left_out:
            # Replicas that were there before a later beginning have them.
            is_new = kind is FillKind.CREATE
            memory = memory.with_left_out(each) if is_new else memory.with_unsure(each)
    return memory


def staging_scope(before: Scope | None, after: Scope) -> Scope:
    """The tables that come into a binlog with their rows.

    Args:
        before: The scope as it was; None where all tables of the scope come.
        after: The scope as it is to be.
    """
    if before is None:
        return after
    return replace(
        after,
        log_databases=after.log_databases - before.log_databases,
        log_tables=after.log_tables - before.log_tables,
        ignore_tables=after.ignore_tables | before.log_tables,
    )
