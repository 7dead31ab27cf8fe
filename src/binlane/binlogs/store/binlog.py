"""One binlog as its owner writes it: whole event groups, files that rotate, a published end.

The order of writes is the crash safety: a file's bytes before the index that names it, files before
the mark that vouches for them. The work of `recovery` after a crash follows from it.

A file's Query events are of one form, with tables info or without (seed 003). An event that has no
room in the extended form begins a file of the plain one.

A binlog goes on in its last file after a restart of binlane, without a STOP event: STOP and a new
file tell replicas that the source has stopped and its temporary tables are gone, which is not so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from binlane.binlogs.routing.routed_group import BinlogPart, RoutedGroup, prepared_with
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.store.binlog_files import BinlogFiles, Published
from binlane.binlogs.store.catalog import Mark
from binlane.binlogs.store.child_shadow import ChildShadow
from binlane.binlogs.store.disk import NO_ROOM, Disk
from binlane.binlogs.store.files import BinlogFile, FileHead, purgeable, stored_format
from binlane.binlogs.store.fills import Seeding
from binlane.binlogs.store.group_form import (
    EndState,
    ImageCutters,
    LogicalClock,
    compressed_groups,
    in_form,
)
from binlane.binlogs.store.group_index import GroupIndexWriter
from binlane.binlogs.store.incidents import StoredIncident, incidents_of, merged, there
from binlane.binlogs.store.mark_keeper import BinlogMarks
from binlane.binlogs.store.open_file import AnyBytes, DiskFaults
from binlane.binlogs.store.recovery import RecoveredBinlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.errors import StoreError, StoreFullError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.format import Format
from binlane.log.codec.types import EventType
from binlane.log.grouping.placing import place_group
from binlane.positions import AnyGtid, FilePosition, Position
from binlane.statements.scope.definition import Definition
from binlane.statements.sql.servers import RowImage, smaller

_LOG = logging.getLogger(__name__)
_REOPEN_HINT: Final = "check the disk, then start binlane again: it makes the binlog whole"


class Binlog:
    """A binlog that is being written. One thread writes; any thread may read what is published.

    Every call that changes the binlog raises StoreFullError and StoreError as `append` does.

    Attributes:
        definition: Name, id, scope and logging mode.
        settings: Settings by which it is written; may be replaced between event groups.
        marks: The catalog's knowledge of the binlog.
        cutters: Cut the row images that the definition does not want.
        children: The rows of children whose parents are outside, if they are followed.
        source_created: Time of creation in the source's last FORMAT_DESCRIPTION.
        seedings: The places of rows of tables in it, whose GTIDs the source does not know.
    """

    children: ChildShadow | None = None
    seedings: tuple[Seeding, ...] = ()

    def __init__(
        self,
        definition: Definition,
        recovered: RecoveredBinlog,
        *,
        settings: StoreSettings,
        disk: Disk,
        marks: BinlogMarks,
        groups: GroupIndexWriter | None = None,
    ) -> None:
        """Go on with the last file.

        Args:
            definition: Name, id, scope and logging mode.
            recovered: The files, and the state behind their last group.
            settings: Settings by which it is written.
            disk: Disk that holds the files.
            marks: Saves marks and the facts of closed files.
            groups: Writes indexes of the places of groups; None without them.

        Raises:
            CorruptStoreError: If a closed file must be looked at and is damaged.
            OSError: If the last file cannot be opened.
        """
        self.definition = definition
        self.settings = settings
        self._directory = recovered.directory
        self.marks = marks
        description = recovered.head.format_description
        created = recovered.source_created
        self.source_created = description.created if created is None else created
        self._source_format = description.with_tables_info(has_tables_info=False).format
        self.cutters = ImageCutters(definition.name)
        base = recovered.clock if recovered.clock_base is None else recovered.clock_base
        self._clock = LogicalClock(recovered.clock, base)
        self._contents = EndState(
            recovered.position,
            recovered.prepared,
            Memory.decode(recovered.memory),
            recovered.incidents,
        )
        self._published_contents = self._contents.copy()
        self._unsearched = recovered.unsearched
        self._next_memory: Memory | None = None
        self._is_memory_due = False
        self._is_purge_due = False
        self._failure = ""
        self._telling = DiskFaults(self._check_open, self._fault)
        closed = marks.closed(self._directory, recovered.files[:-1])
        self._files = BinlogFiles(recovered, closed, disk, groups)

    @property
    def name(self) -> str:
        """The binlog's name."""
        return self.definition.name

    @property
    def position(self) -> Position:
        """The watermark: the published files hold all of the scope up to here."""
        return self.published.position

    @property
    def end(self) -> FilePosition:
        """Give the end of the last published event group."""
        return self.published.end

    @property
    def published(self) -> Published:
        """Files, end and position that belong together."""
        return self._files.published

    @property
    def format(self) -> Format:
        """Format of the events, as the FORMAT_DESCRIPTION of its last file decides it."""
        return self._files.open.format

    @property
    def has_tables_info(self) -> bool:
        """True if Query events of its last file name the tables that they concern."""
        return self._files.open.format.has_tables_info

    @property
    def may_have_tables_info(self) -> bool:
        """True if Query events of its last file, or of a later one, may name the tables that they concern."""
        return self._files.open.format.has_tables_info or self.settings.has_tables_info

    @property
    def source_format(self) -> Format:
        """Format of the events that it is given, as far as that was told; else that of a server."""
        return self._source_format

    @property
    def head(self) -> FileHead:
        """Head of the last file."""
        return self._files.open.head

    @property
    def size_bytes(self) -> int:
        """Position in the last file at which the next event group will begin."""
        return self._files.open.size_bytes

    @property
    def room_bytes(self) -> int:
        """Bytes that the last file may still grow before another begins; one group always fits."""
        file = self._files.open
        size_bytes = file.size_bytes
        room = self.settings.max_binlog_size_bytes - size_bytes
        return max(room, 0 if size_bytes > file.head.size_bytes else 1)

    @property
    def has_unsynced(self) -> bool:
        """True if bytes were appended or written that were not forced to disk since."""
        return self._files.open.has_unsynced

    @property
    def reached(self) -> Position:
        """Position of the source: everything up to here was appended or is out of scope, published or not."""
        return self._contents.position

    @property
    def prepared(self) -> frozenset[str]:
        """The XA transactions that were prepared in it and not finished."""
        return self._contents.prepared

    @property
    def memory(self) -> Memory:
        """Routing's memory of the groups in it and of those that it has no part of."""
        return self._next_memory or self._contents.memory

    @property
    def failure(self) -> str:
        """Why it is closed to writing until it is opened anew; empty while it is not."""
        return self._failure

    @property
    def incidents(self) -> tuple[StoredIncident, ...]:
        """INCIDENT events in the published files that nobody has dealt with; any thread may ask."""
        return self._published_contents.incidents

    @property
    def unsearched(self) -> FilePosition | None:
        """Before here there may be others, which an older binlane wrote; None: there are none."""
        return self._unsearched

    @property
    def clock(self) -> int:
        """The last logical timestamp in it; 0 if there is none."""
        return self._clock.last

    @property
    def clock_base(self) -> int:
        """The number that is added to the logical timestamps of a MySQL source."""
        return self._clock.base

    def files(self) -> tuple[BinlogFile, ...]:
        """The files of the binlog, oldest first, with their published sizes."""
        return self.published.files

    def remember(self, memory: Memory) -> None:
        """Take the memory that holds behind the group that is appended or passed next.

        A recovery cuts off all bytes behind the mark of here until a `sync` has saved group and
        memory: so no group is ever there without the memory that it left.
        """
        if memory == self.memory:
            return
        if not self._is_memory_due and not self.memory.may_be_lost_for(memory):
            self.sync(force=True)
            self._is_memory_due = True
            self._save()
        self._next_memory = memory

    def take(self, part: BinlogPart) -> None:
        """Add a part that routing gives, to be published by the next `sync`.

        Raises:
            StoreFullError: As `append`.
            StoreError: As `append`.
        """
        if part.rotates_at is not None:
            self.rotate(part.rotates_at)
        if part.memory is not None:
            self.remember(part.memory)
        if part.group is not None:
            self.append_new(part.group)
        elif part.data:
            data, image = part.data, self.definition.row_image
            if part.cutter is None and image is not RowImage.FULL:
                data = self.cutters.cut_placed(data, image, self.size_bytes, self.format)
            with self._telling:
                self._files.add(self._as_written(data), groups=part.groups)
            self._clock.last = max(self._clock.last, part.clock)
            if part.cutter is not None:
                self.cutters.note_uncut(part.cutter)
        self._clock.base = self._clock.base if part.clock_base is None else part.clock_base
        if part.prepared is not None:
            self._contents.prepared = part.prepared
        if part.gtid is not None:
            self.advance(part.gtid)
        if part.done is not None:
            self.advance_to(part.done)

    def append(self, group: RoutedGroup) -> None:
        """Add an event group, to be published by the next `sync`.

        One that the binlog's position covers is not written again, so that after an error all groups
        may be given again; one without GTID (an INCIDENT of the source) may then stand there twice.

        Raises:
            StoreFullError: There is no room. Nothing since the last `sync` is kept: give those
                groups again, in order, when there is.
            StoreError: The disk failed; the binlog is closed to writing until it is opened anew.
        """
        self._check_open()
        if group.gtid is None or not self.reached.covers(group.gtid):
            self.append_new(group)
            if group.gtid is not None:
                self.advance(group.gtid)

    def append_new(self, group: RoutedGroup, *, begin: Position | None = None) -> None:
        """Add an event group of which the caller knows that it is not there; `advance_to` follows.

        A file that begins with it says that `begin` is done before it, as `rotate` has it.
        """
        with self._telling:
            timestamp = group.events[-1].header.timestamp
            if not self.room_bytes:
                self._rotate(timestamp, begin=begin)
            image = smaller(self.definition.row_image, group.image)
            cut = self.cutters.cut(group.events, image, self.source_format)
            events = in_form(cut, self.source_format, has_tables_info=self.has_tables_info)
            if events is None:
                # A file has one form: this one is plain until it is full.
                plain_form = self._following_description(has_tables_info=False)
                self._rotate(timestamp, plain_form, begin)
                events = in_form(cut, self.source_format, has_tables_info=False)
            assert events is not None, "the plain form has room for all"
            offset, contents = self._files.open.size_bytes, self._contents
            plain = place_group(
                events, offset, self.format, clock=self._clock.base, is_alone=group.is_alone
            )
            placed = self._as_written(plain)
            self._files.add(placed, groups=1, events=group.events)
            if any(event.header.type_code == EventType.INCIDENT for event in events):
                place = FilePosition(self.end.file, offset)
                added = incidents_of(events, placed, place, group.gtid)
                contents.incidents = merged([contents.incidents, added])
            self._clock.note(group.events[0])
            if group.is_alone:
                # To the groups behind it, all clocks before are as far away as those of another
                # file.
                self._clock.begin_anew()
            contents.prepared = prepared_with(contents.prepared, group)
            self._take_memory()

    def acknowledge(self, last: StoredIncident) -> None:
        """Somebody has dealt with an INCIDENT, and all before it."""
        self._check_open()
        self.sync(force=True)
        left = [each for each in self.incidents if each.place > last.place]
        self._know_incidents(left, self._unsearched)

    def found(self, earlier: Sequence[StoredIncident], unsearched: FilePosition | None) -> None:
        """Note what was found in files that nothing was known of.

        Args:
            earlier: INCIDENTs before all that are known.
            unsearched: Before here there may be others still; None: there are none.
        """
        self._check_open()
        self.sync(force=True)
        names = {file.name for file in self.files()}
        self._know_incidents([*there(earlier, names), *self.incidents], unsearched)

    def _know_incidents(
        self, incidents: Sequence[StoredIncident], unsearched: FilePosition | None
    ) -> None:
        """Have another list of them, on disk when this returns."""
        before = self.incidents, self._unsearched
        self._set_incidents(merged([incidents]))
        self._unsearched = unsearched
        try:
            self._save()
        except StoreError:
            self._set_incidents(before[0])
            self._unsearched = before[1]
            raise

    def _set_incidents(self, incidents: tuple[StoredIncident, ...]) -> None:
        self._contents.incidents = self._published_contents.incidents = incidents

    def _as_written(self, placed: AnyBytes) -> AnyBytes:
        """Groups that were made for where the binlog ends, compressed if they are to be."""
        if not self.definition.is_compressed:
            return placed
        return compressed_groups(placed, self.size_bytes, self.format)

    def advance_to(self, position: Position) -> None:
        """Note that everything up to a position of the source was appended or is out of scope."""
        if self._next_memory is not None:
            self._take_memory()
        contents = self._contents
        reached = contents.position
        is_ahead = position is reached or position.includes(reached)
        contents.position = position if is_ahead else reached.union(position)

    def advance(self, gtid: AnyGtid) -> None:
        """Note that nothing of a group is in scope: the watermark moves with the next `sync`."""
        self._take_memory()
        if not self._contents.position.covers(gtid):
            self._contents.position = self._contents.position.advance(gtid)

    def sync(self, *, force: bool = False) -> None:
        """Write what was appended, force it to disk as `sync_binlog` says, and publish it.

        Args:
            force: Force to disk and save the watermark, whatever the settings say.
        """
        self.write()
        force |= self._is_memory_due
        if self.wants_force(always=force):
            self.force()
        self.publish()
        if force or self.marks.is_due(self.settings.watermark_interval_s):
            self._is_memory_due = False
            self._save()
        self.purge_if_due()

    def write_appended(self) -> None:
        """Have the bytes of all groups that were appended in the file, published or not."""
        with self._telling:
            self._files.open.write()

    def write(self) -> None:
        """Write what was appended, as the first step of a `sync` whose steps follow one by one."""
        if self._next_memory is not None:
            self._take_memory()
        with self._telling:
            self._files.open.write()

    def wants_force(self, *, always: bool = False) -> bool:
        """True if the bytes written must be forced to disk before they are published.

        Args:
            always: Force to disk whatever the settings say.
        """
        every, file = self.settings.sync_binlog, self._files.open
        is_due = always or self._is_memory_due or (0 < every <= file.unsynced_groups)
        return is_due and file.has_unsynced

    def force(self) -> None:
        """Force what was written to disk; alone of all steps it may run beside others' in a thread."""
        with self._telling:
            self._files.open.sync()

    def publish(self) -> None:
        """Let readers know what was written."""
        self._files.publish(self._contents.position)
        self._published_contents = self._contents.copy()

    def finish(self) -> None:
        """Save the mark where what is remembered has changed, and purge: the step behind `publish`."""
        if self._is_memory_due:
            self._is_memory_due = False
            self._save()
        if self._is_purge_due or self.children is not None:
            self.purge_if_due()

    def purge_if_due(self) -> None:
        """Purge as the settings say, where a file ended since."""
        if self.children is not None:
            self.children.catch_up(self.memory.links, is_due=False)
        if self._is_purge_due and not (self.children and self.children.is_reading):
            self._is_purge_due = False
            self._purge_as_set()

    @property
    def mark(self) -> Mark:
        """The mark of the published end; `sync` with `force` makes sure that it is on disk."""
        contents = self._published_contents
        return Mark(
            end=self.end,
            position=self.position,
            clock=self._clock.last,
            clock_base=self._clock.base,
            prepared=contents.prepared,
            memory=contents.memory.encode(),
            is_cut=self._is_memory_due,
            incidents=contents.incidents,
            unsearched=self._unsearched,
        )

    def rotate(self, timestamp: int, *, begin: Position | None = None) -> None:
        """Begin a new file.

        Args:
            timestamp: Time of the events at the ends of both files, in seconds since 1970.
            begin: The position that the file says is done before it; None for the one that is.
        """
        with self._telling:
            self._rotate(timestamp, begin=begin)

    def set_format(self, source: FormatDescriptionEvent, *, timestamp: int) -> None:
        """Take over how the source describes its log from now on.

        A new file begins if the source writes events of another layout, or has restarted (its
        `created` is not 0): replicas must know either from a FORMAT_DESCRIPTION.
        """
        # The clock of a MySQL source begins anew in each of its files.
        self._clock.begin_anew()
        self.note_source(source.format)
        wanted = stored_format(source, has_tables_info=self.settings.has_tables_info)
        current = self._files.open.head.format_description
        has_restarted = source.created not in {0, self.source_created}
        if has_restarted or replace(wanted, created=current.created) != current:
            self.source_created = source.created or self.source_created
            with self._telling:
                self._rotate(timestamp, wanted)

    def begin_anew(self, timestamp: int, *, begin: Position | None = None) -> None:
        """Begin a file as a server that was started: replicas drop temporary tables; as `rotate`."""
        with self._telling:
            following = self._following_description()
            self._rotate(timestamp, replace(following, created=max(timestamp, 1)), begin)

    def note_source(self, format_: Format) -> None:
        """Know the format of the events that it is given."""
        self._source_format = format_

    def take_form(self, timestamp: int) -> None:
        """Begin a new file if Query events of the last one are not as the settings want them."""
        if self.has_tables_info is not self.settings.has_tables_info:
            self.rotate(timestamp)

    def purge(self, first: str) -> None:
        """Delete the files before `first`, which is one of `files()`."""
        self._purge([file.name for file in self.files()].index(first))

    def _purge(self, count: int) -> None:
        """Delete the first `count` of all files; the last one always stays."""
        if not count:
            return
        self.sync(force=True)  # so that no mark speaks of a file that is gone
        if self.children is not None:
            self.children.catch_up(self.memory.links)
        gone = self.published.closed[:count]
        with self._telling:
            try:
                self._files.purge(count)
            finally:
                self._set_incidents(there(self.incidents, {file.name for file in self.files()}))
        self.marks.forget(before=self.published.oldest.number)
        _LOG.info("binlog %s: purged %s to %s", self.name, gone[0].name, gone[-1].name)

    def _purge_as_set(self) -> None:
        """Purge what the settings say has had its time; due behind each rotation."""
        self._purge(purgeable(self.files(), self.settings, now=time.time()))

    def close(self) -> None:
        """Publish, force to disk, save the watermark and mark the last file as closed."""
        try:
            if not self._failure:
                self.sync(force=True)
                with self._telling:
                    self._files.open.mark_closed()
        finally:
            self._files.open.close()

    def abandon(self) -> None:
        """Let go of the files as they are: the binlog is dropped, or the store did not open."""
        self._files.open.close()

    def _take_memory(self) -> None:
        """The group is there that the next memory is behind of."""
        if self._next_memory is not None:
            self._contents.memory, self._next_memory = self._next_memory, None

    def _save(self) -> None:
        """Save the mark; the file comes to disk before it, whatever `sync_binlog` says."""
        mark = self.mark
        if not self.marks.is_saved(mark):
            with self._telling:
                self._files.open.sync()
            self.marks.save(mark)

    def _rotate(
        self,
        timestamp: int,
        description: FormatDescriptionEvent | None = None,
        begin: Position | None = None,
    ) -> None:
        """End this file and begin the next; only the index makes it so."""
        head = replace(
            self._files.open.head,
            format_description=description or self._following_description(),
            begin=self.reached if begin is None else begin,
        )
        self.marks.note_ended(self._files.rotate(head, timestamp, self.reached))
        # Not before: where the disk fails, what is rolled back is given again.
        self._published_contents = self._contents.copy()
        self._is_purge_due = True

    def _following_description(
        self, *, has_tables_info: bool | None = None
    ) -> FormatDescriptionEvent:
        """FORMAT_DESCRIPTION of the next file, where the source has told nothing new."""
        if has_tables_info is None:
            has_tables_info = self.settings.has_tables_info
        described = replace(self._files.open.head.format_description, created=0)
        return described.with_tables_info(has_tables_info=has_tables_info)

    def _fault(self, error: OSError) -> StoreError:
        """Turn what the disk says into an error that tells what to do, with a binlog that is whole."""
        reason, files = error.strerror or str(error), self._files
        if error.errno in NO_ROOM and not files.open.is_sync_lost and files.roll_back():
            self._contents, self._next_memory = self._published_contents.copy(), None
            return StoreFullError(
                f"no room behind {self.end}: {reason}",
                path=str(self._directory),
                hint="make room on the disk; the event groups that did not fit can then be added",
            )
        self._failure = f"binlog {self.name} cannot be written behind {self.end}: {reason}"
        return StoreError(self._failure, path=str(self._directory), hint=_REOPEN_HINT)

    def _check_open(self) -> None:
        if self._failure:
            raise StoreError(self._failure, path=str(self._directory), hint=_REOPEN_HINT)
