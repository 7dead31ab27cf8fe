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
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from binlane.binlogs.routing.compressing import compressed, knows_compressed
from binlane.binlogs.routing.memory import Memory
from binlane.binlogs.routing.queries import without_tables_info
from binlane.binlogs.routing.routed_group import BinlogPart, RoutedGroup, prepared_with
from binlane.binlogs.routing.row_images import ImageCutter, Uncut
from binlane.binlogs.store.catalog import Mark
from binlane.binlogs.store.disk import NO_ROOM, Disk, DiskFile
from binlane.binlogs.store.file_facts import FileFacts, closed_files
from binlane.binlogs.store.files import (
    CLOSED,
    IN_USE,
    IN_USE_POSITION,
    BinlogFile,
    file_name,
    file_number,
    read_index,
    rotate_bytes,
    stored_format,
    write_head,
    write_index,
)
from binlane.binlogs.store.group_index import GroupIndexWriter
from binlane.binlogs.store.incidents import Incident, incident_of, merged, there, with_another
from binlane.binlogs.store.purging import beyond_size, ended_before
from binlane.binlogs.store.recovery import RecoveredBinlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.errors import StoreError, StoreFullError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import CHECKSUM_LENGTH, Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.placing import place_group
from binlane.positions import AnyGtid, FilePosition, Position
from binlane.statements.scope.definition import Definition
from binlane.statements.sql.servers import RowImage, smaller

_LOG = logging.getLogger(__name__)
_PENDING_BYTES_MAX: Final = 4 << 20
_DIRECT_BYTES_MIN: Final = 64 << 10
_REOPEN_HINT: Final = "check the disk, then start binlane again: it makes the binlog whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The published state of a binlog; replaced as a whole, so that any thread may read it.

    Attributes:
        closed: The files that are written no more, oldest first.
        last: The file that is still being written.
        position: Position of the source up to which the files are complete.
    """

    closed: tuple[BinlogFile, ...]
    last: BinlogFile
    position: Position

    @property
    def files(self) -> tuple[BinlogFile, ...]:
        """All files, oldest first."""
        return (*self.closed, self.last)

    @property
    def oldest(self) -> BinlogFile:
        """The first file that is left."""
        return self.closed[0] if self.closed else self.last

    @property
    def begin(self) -> Position:
        """Position at the head of the first file: no replica can ask for a group before it."""
        return self.oldest.begin

    @property
    def end(self) -> FilePosition:
        """Give the end of the last whole event group."""
        return FilePosition(self.last.name, self.last.size_bytes)

    def bytes_behind(self, place: FilePosition) -> int | None:
        """Bytes of the files behind a place; None where its file is not one of them."""
        if place.file == self.last.name:
            return max(0, self.last.size_bytes - place.position)
        total = self.last.size_bytes
        for file in reversed(self.closed):
            total += file.size_bytes
            if file.name == place.file:
                return max(0, total - place.position)
        return None


class Binlog:
    """A binlog that is being written. One thread writes; any thread may read what is published.

    Attributes:
        definition: Name, id, scope and logging mode.
        settings: Settings by which it is written; may be replaced between event groups.
        uncut: Events with rows that stayed full although ROW_IMAGE asks for less, by reason.
    """

    def __init__(  # noqa: PLR0913 what it writes, where, and who is told
        self,
        directory: Path,
        definition: Definition,
        found: RecoveredBinlog,
        *,
        settings: StoreSettings,
        disk: Disk,
        save_mark: Callable[[Mark], None],
        facts: FileFacts | None = None,
        groups: GroupIndexWriter | None = None,
    ) -> None:
        self.definition = definition
        self._directory = directory
        self.settings = settings
        self._disk = disk
        self._save_mark = save_mark
        self._head = found.head
        self._source_created = found.head.format_description.created
        self._format = found.head.format_description, found.head.format_description.format
        self._source_format: Format | None = None
        self._file: DiskFile = disk.open(directory / found.files[-1])
        self._cutters: dict[RowImage, ImageCutter] = {}
        self.uncut: Counter[Uncut] = Counter()
        self._pending = bytearray()
        self._written = found.end
        self._position = found.position
        self._clock = found.clock
        self._prepared = self._published_prepared = found.prepared
        self._memory = self._published_memory = Memory.decode(found.memory)
        self._incidents = self._published_incidents = found.incidents
        self._unsearched = found.unsearched
        self._next_memory: Memory | None = None
        self._is_memory_due = False
        self._clock_base = found.clock if found.clock_base is None else found.clock_base
        self._groups_unsynced = 0
        self._has_unsynced = False
        self._saved: Mark | None = None
        self._saved_at = time.monotonic()
        self._failure = ""
        self._is_sync_lost = False
        self._is_purge_due = False
        self._tail = b""
        self._groups = groups
        if groups:
            groups.begin(
                directory / found.files[-1],
                start=found.head.size_bytes,
                flavor=found.position.flavor,
            )
            groups.resume(end=found.end)
        self._facts = facts
        *names, last = found.files
        known = facts.known(directory) if facts else {}
        closed = closed_files(directory, names, known)
        self._facts_unsaved = [file for file in closed if file.name not in known]
        self._published = Published(
            closed=closed,
            last=self._new_file(last, found.head.begin, found.end),
            position=found.position,
        )

    @property
    def name(self) -> str:
        """The binlog's name."""
        return self.definition.name

    @property
    def begin(self) -> Position:
        """Position at the head of its first file: no replica can ask for a group before it."""
        return self._published.begin

    @property
    def position(self) -> Position:
        """The watermark: the published files hold all of the scope up to here."""
        return self._published.position

    @property
    def end(self) -> FilePosition:
        """Give the end of the last published event group."""
        return self._published.end

    @property
    def published(self) -> Published:
        """Files, end and position that belong together."""
        return self._published

    @property
    def format(self) -> Format:
        """Format of the events, as the FORMAT_DESCRIPTION of its last file decides it."""
        description, found = self._format
        if description is not self._head.format_description:
            description = self._head.format_description
            found = description.format
            self._format = description, found
        return found

    @property
    def has_tables_info(self) -> bool:
        """True if Query events of its last file name the tables that they concern."""
        return self.format.has_tables_info

    @property
    def may_have_tables_info(self) -> bool:
        """True if Query events of its last file, or of a later one, may name the tables that they concern."""
        return self.has_tables_info or self.settings.has_tables_info

    @property
    def source_format(self) -> Format:
        """Format of the events that it is given, as far as that was told; else that of a server."""
        if self._source_format is not None:
            return self._source_format
        return self._head.format_description.with_tables_info(has_tables_info=False).format

    @property
    def cutter(self) -> ImageCutter | None:
        """The cutter of its row images; None while they are full ones."""
        return self._cutter_for(self.definition.row_image)

    def _cutter_for(self, image: RowImage) -> ImageCutter | None:
        """The cutter to these row images; None for full ones."""
        if image is RowImage.FULL:
            return None
        found = self._cutters.get(image)
        if found is None:
            found = self._cutters[image] = ImageCutter(image)
        return found

    @property
    def server_id(self) -> int:
        """Server id in the headers of the events that binlane itself writes: the source's."""
        return self._head.server_id

    @property
    def size_bytes(self) -> int:
        """Position in the last file at which the next event group will begin."""
        return self._written + len(self._pending)

    @property
    def room_bytes(self) -> int:
        """Bytes that the last file may still grow before another begins; one group always fits."""
        room = self.settings.max_binlog_size_bytes - self.size_bytes
        return max(room, 0 if self._holds_groups else 1)

    @property
    def has_unsynced(self) -> bool:
        """True if bytes were appended or written that were not forced to disk since."""
        return bool(self._pending) or self._has_unsynced

    @property
    def reached(self) -> Position:
        """Position of the source: everything up to here was appended or is out of scope, published or not."""
        return self._position

    @property
    def prepared(self) -> frozenset[str]:
        """The XA transactions that were prepared in it and not finished."""
        return self._prepared

    @property
    def memory(self) -> Memory:
        """Routing's memory of the groups in it and of those that it has no part of."""
        return self._next_memory or self._memory

    @property
    def failure(self) -> str:
        """Why it is closed to writing until it is opened anew; empty while it is not."""
        return self._failure

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """INCIDENT events in the published files that nobody has dealt with; any thread may ask."""
        return self._published_incidents

    @property
    def unsearched(self) -> FilePosition | None:
        """Before here there may be others, which an older binlane wrote; None: there are none."""
        return self._unsearched

    @property
    def clock_base(self) -> int:
        """The number that is added to the logical timestamps of a MySQL source."""
        return self._clock_base

    def files(self) -> tuple[BinlogFile, ...]:
        """The files of the binlog, oldest first, with their published sizes."""
        return self._published.files

    def remember(self, memory: Memory) -> None:
        """Take the memory that holds behind the group that is appended or passed next.

        A recovery cuts off all bytes behind the mark of here until a `sync` has saved group and
        memory: so no group is ever there without the memory that it left.

        Raises:
            StoreError: As `append`.
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
            data = self._cut_placed(part.data) if part.cutter is None else part.data
            self._append_placed(data, groups=part.groups, clock=part.clock)
            if part.cutter is not None:
                self._note_uncut(part.cutter)
        if part.gtid is not None:
            self.advance(part.gtid)
        if part.done is not None:
            self.advance_to(part.done)

    def append(self, group: RoutedGroup) -> None:
        """Add an event group, to be published by the next `sync`.

        A group that the binlog's position covers is there already and is not written again, so
        that after an error or a restart all groups may be given again. A group without GTID (an
        INCIDENT of the source) cannot be told and may then stand there twice.

        Raises:
            StoreFullError: There is no room. Nothing since the last `sync` is kept: give those
                groups again, in order, when there is.
            StoreError: The disk failed; the binlog is closed to writing until it is opened anew.
        """
        self._check_open()
        if group.gtid is None or not self._position.covers(group.gtid):
            self.append_new(group)
            if group.gtid is not None:
                self.advance(group.gtid)

    def append_new(self, group: RoutedGroup) -> None:
        """Add an event group of which the caller knows that it is not there; `advance_to` follows.

        Raises:
            StoreFullError: As `append`.
            StoreError: As `append`.
        """
        with self._failing():
            timestamp = group.events[-1].header.timestamp
            if self.size_bytes >= self.settings.max_binlog_size_bytes and self._holds_groups:
                self._rotate(timestamp)
            cut = self._cut(group)
            events = self._in_form(cut)
            if events is None:
                # A file has one form: this one is plain until it is full.
                self._rotate(timestamp, self._following_description(has_tables_info=False))
                events = self._in_form(cut)
            assert events is not None, "the plain form has room for all"
            begin = self.size_bytes
            plain = place_group(
                events, begin, self.format, clock=self._clock_base, is_alone=group.is_alone
            )
            placed = self._as_written(plain)
            self._pending += placed
            if any(event.header.type_code == EventType.INCIDENT for event in events):
                self._note_incidents(group.gtid, events, placed, begin)
            self._groups_unsynced += 1
            self._note_clock(group.events[0])
            if group.is_alone:
                # To the groups behind it, all clocks before are as far away as those of another
                # file.
                self._clock_base = self._clock
            self._prepared = prepared_with(self._prepared, group)
            self._take_memory()
            if self._groups:
                self._groups.note(group.events)
            if len(self._pending) >= _PENDING_BYTES_MAX:
                self._write()

    def _note_incidents(
        self,
        gtid: AnyGtid | None,
        events: Sequence[Event],
        placed: bytes | bytearray | memoryview,
        begin: int,
    ) -> None:
        """Note what replicas will stop at, in a group that begins at a place of the last file."""
        at = 0
        for event in events:
            there_ = replace(event, position=begin + at)
            incident = incident_of(there_, str(gtid or ""), self.end.file, binlog=self.name)
            if incident is not None:
                self._incidents = with_another(self._incidents, incident)
            at += EventHeader.decode(memoryview(placed)[at:]).length

    def acknowledge(self, last: Incident) -> None:
        """Somebody has dealt with an INCIDENT, and all before it.

        Raises:
            StoreError: As `append`.
        """
        self._check_open()
        self.sync(force=True)
        left = [each for each in self._published_incidents if each.place > last.place]
        self._know_incidents(left, self._unsearched)

    def found(self, earlier: Sequence[Incident], unsearched: FilePosition | None) -> None:
        """Note what was found in files that nothing was known of.

        Args:
            earlier: INCIDENTs before all that are known.
            unsearched: Before here there may be others still; None: there are none.

        Raises:
            StoreError: As `append`.
        """
        self._check_open()
        self.sync(force=True)
        names = {file.name for file in self.files()}
        self._know_incidents([*there(earlier, names), *self._published_incidents], unsearched)

    def _know_incidents(
        self, incidents: Sequence[Incident], unsearched: FilePosition | None
    ) -> None:
        """Have another list of them, on disk when this returns."""
        before = self._published_incidents, self._unsearched
        self._incidents = self._published_incidents = merged([incidents])
        self._unsearched = unsearched
        try:
            self._save()
        except StoreError:
            self._incidents = self._published_incidents = before[0]
            self._unsearched = before[1]
            raise

    def _cut_placed(self, data: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
        """Give the bytes for `_append_placed`, with the row images that the binlog is to have."""
        cutter = self.cutter
        if cutter is None:
            return data
        cut = cutter.placed(data, self.size_bytes, self.format)
        self._note_uncut(cutter)
        return cut

    def _cut(self, group: RoutedGroup) -> tuple[Event, ...]:
        """Events with the row images that the binlog is to have, of those that their session wants."""
        cutter = self._cutter_for(smaller(self.definition.row_image, group.image))
        if cutter is None:
            return group.events
        cut = cutter.events(group.events, self.source_format)
        self._note_uncut(cutter)
        return cut

    def _note_uncut(self, cutter: ImageCutter) -> None:
        """Count what a cutter had to leave full since it was asked last; tell the first of a kind."""
        for reason in cutter.uncut.keys() - self.uncut.keys():
            _LOG.warning(
                "binlog %s: row images stay full that were to be %s: %s "
                "(further ones are only counted)",
                *(self.name, cutter.image.value, reason.value),
                extra={"binlog": self.name},
            )
        self.uncut += cutter.uncut
        cutter.uncut.clear()

    def _in_form(self, events: Sequence[Event]) -> tuple[Event, ...] | None:
        """Events as the last file has them; None where they have no room in its form."""
        if not self.has_tables_info:
            return without_tables_info(events)
        from binlane.binlogs.routing.tables_info import with_tables_info  # noqa: PLC0415  # parses SQL

        return with_tables_info(events, self.source_format)

    def _append_placed(
        self, data: bytes | bytearray | memoryview, *, groups: int, clock: int = 0
    ) -> None:
        """Add bytes of whole event groups that were made for the place where the binlog ends.

        Args:
            data: The events, whose positions begin at `size_bytes`.
            groups: Number of event groups in the bytes.
            clock: The last logical timestamp in them; 0 where the source is no MySQL.

        Raises:
            StoreFullError: As `append`.
            StoreError: As `append`.
        """
        with self._failing():
            data = self._as_written(data)
            if len(data) >= _DIRECT_BYTES_MIN:
                self._write()
                self._has_unsynced = True
                self._file.write_at(data, self._written)
                self._written += len(data)
                self._tail = bytes(data[-CHECKSUM_LENGTH:])
            else:
                self._pending += data
            self._groups_unsynced += groups
            self._clock = max(self._clock, clock)
            if self._groups:
                self._groups.note_unknown()
            if len(self._pending) >= _PENDING_BYTES_MAX:
                self._write()

    def _as_written(self, placed: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
        """Groups that were made for where the binlog ends, compressed if they are to be."""
        if not self.definition.is_compressed or not knows_compressed(self.format):
            return placed
        return compressed(placed, self.size_bytes, self.format)

    def advance_to(self, position: Position) -> None:
        """Note that everything up to a position of the source was appended or is out of scope."""
        self._take_memory()
        is_ahead = position is self._position or position.includes(self._position)
        self._position = position if is_ahead else self._position.union(position)

    def advance(self, gtid: AnyGtid) -> None:
        """Note that nothing of a group is in scope: the watermark moves with the next `sync`."""
        self._take_memory()
        if not self._position.covers(gtid):
            self._position = self._position.advance(gtid)

    def sync(self, *, force: bool = False) -> None:
        """Write what was appended, force it to disk as `sync_binlog` says, and publish it.

        Args:
            force: Force to disk and save the watermark, whatever the settings say.

        Raises:
            StoreError: As `append`.
        """
        self.write()
        force |= self._is_memory_due
        if self.wants_force(always=force):
            self.force()
        self.publish()
        is_due = time.monotonic() - self._saved_at >= self.settings.watermark_interval_s
        if force or is_due:
            self._is_memory_due = False
            self._save()
        self.purge_if_due()

    def write(self) -> None:
        """Write what was appended, as the first step of a `sync` whose steps follow one by one.

        Raises:
            StoreError: As `append`.
        """
        self._take_memory()
        with self._failing():
            self._write()

    def wants_force(self, *, always: bool = False) -> bool:
        """True if the bytes written must be forced to disk before they are published.

        Args:
            always: Force to disk whatever the settings say.
        """
        every = self.settings.sync_binlog
        is_due = always or self._is_memory_due or (every > 0 and self._groups_unsynced >= every)
        return is_due and self._has_unsynced

    def force(self) -> None:
        """Force what was written to disk; alone of all steps it may run beside others' in a thread.

        Raises:
            StoreError: As `append`.
        """
        with self._failing():
            self._sync_file()

    def publish(self) -> bool:
        """Let readers know what was written; whether there is anything new."""
        return self._publish()

    def save_memory(self) -> None:
        """Save the mark where what is remembered has changed, as the step behind `publish`.

        Raises:
            StoreError: As `append`.
        """
        if self._is_memory_due:
            self._is_memory_due = False
            self._save()

    def purge_if_due(self) -> None:
        """Purge as the settings say, where a file ended since.

        Raises:
            StoreError: As `append`.
        """
        if self._is_purge_due:
            self._is_purge_due = False
            self._purge_as_set()

    def take_mark(self) -> tuple[Mark | None, list[BinlogFile]]:
        """Take the facts that the catalog was not given yet: the mark, and closed files.

        All that was published must have been forced to disk.
        """
        mark = self._mark()
        if mark == self._saved:
            return None, []
        files, self._facts_unsaved = self._facts_unsaved, []
        self._saved, self._saved_at = mark, time.monotonic()
        return mark, files

    @property
    def mark(self) -> Mark:
        """The mark of the published end; `sync` with `force` makes sure that it is on disk."""
        return self._mark()

    def note_closed(self, files: Sequence[BinlogFile]) -> None:
        """Note in the catalog what `take_mark` gave; any thread may.

        Raises:
            StoreError: If it cannot be written.
        """
        if self._facts and files:
            self._facts.save(files)

    def lose_mark(self) -> None:
        """Let `take_mark` give the mark again: the one that it gave could not be saved."""
        self._saved = None

    def rotate(self, timestamp: int) -> None:
        """Begin a new file.

        Args:
            timestamp: Time of the events that end one file and begin the next, in seconds since
                1970.

        Raises:
            StoreError: As `append`.
        """
        with self._failing():
            self._rotate(timestamp)

    def set_format(self, source: FormatDescriptionEvent, *, timestamp: int) -> None:
        """Take over how the source describes its log from now on.

        A new file begins if the source writes events of another layout, or has restarted (its
        `created` is not 0): replicas must know either from a FORMAT_DESCRIPTION.

        Raises:
            StoreError: As `append`.
        """
        # The clock of a MySQL source begins anew in each of its files.
        self._clock_base = self._clock
        self.note_source(source.format)
        wanted = stored_format(source, has_tables_info=self.settings.has_tables_info)
        current = self._head.format_description
        has_restarted = source.created not in {0, self._source_created}
        if has_restarted or replace(wanted, created=current.created) != current:
            self._source_created = source.created or self._source_created
            with self._failing():
                self._rotate(timestamp, wanted)

    def begin_anew(self, timestamp: int) -> None:
        """Begin a new file as a server does that was started: replicas drop their temporary tables.

        Args:
            timestamp: Seconds since 1970, as for `rotate`.

        Raises:
            StoreError: As `append`.
        """
        with self._failing():
            following = self._following_description()
            self._rotate(timestamp, replace(following, created=max(timestamp, 1)))

    def note_source(self, format_: Format) -> None:
        """Know the format of the events that it is given."""
        self._source_format = format_

    def take_form(self, timestamp: int) -> None:
        """Begin a new file if Query events of the last one are not as the settings want them.

        Args:
            timestamp: Seconds since 1970, as for `rotate`.

        Raises:
            StoreError: As `append`.
        """
        if self.has_tables_info is not self.settings.has_tables_info:
            self.rotate(timestamp)

    def purge(self, first: str) -> None:
        """Delete the files before `first`, which is one of `files()`.

        Raises:
            StoreError: As `append`.
        """
        files = self.files()
        names = [file.name for file in files]
        assert first in names, f"{first} is no file of {self.name}"
        self._purge(files, names.index(first))

    def purge_before(self, timestamp: float) -> None:
        """Delete the files that ended before a time, up to the first that did not.

        Args:
            timestamp: Seconds since 1970, as events have them.

        Raises:
            StoreError: As `append`.
        """
        self._purge(self.files(), ended_before(self._published.closed, timestamp))

    def _purge(self, files: tuple[BinlogFile, ...], count: int) -> None:
        """Delete the first `count` of all files; the last one always stays."""
        assert count < len(files), "the live file is never purged"
        if not count:
            return
        self.sync(force=True)  # so that no mark speaks of a file that is gone
        with self._failing():
            published = self._published
            gone, closed = published.closed[:count], published.closed[count:]
            write_index(
                self._disk, self._directory, [*(f.name for f in closed), published.last.name]
            )
            self._published = replace(published, closed=closed)
            left = there(self._published_incidents, {file.name for file in self.files()})
            self._incidents = self._published_incidents = left
            for file in gone:
                self._disk.remove(file.path)
            self._disk.sync_directory(self._directory)
        if self._groups:
            self._groups.remove(file.name for file in gone)
        if self._facts:
            self._facts.forget(before=self._published.oldest.number)
        _LOG.info("binlog %s: purged %s to %s", self.name, gone[0].name, gone[-1].name)

    def _purge_as_set(self) -> None:
        """Purge what the settings say has had its time; due behind each rotation."""
        settings, files = self.settings, self.files()
        count = 0
        if settings.expire_logs_s:
            count = ended_before(files[:-1], time.time() - settings.expire_logs_s)
        if settings.max_binlog_total_size_bytes:
            count = max(count, beyond_size(files, settings.max_binlog_total_size_bytes))
        self._purge(files, count)

    def close(self) -> None:
        """Publish, force to disk, save the watermark and mark the last file as closed."""
        try:
            if not self._failure:
                self.sync(force=True)
                with self._failing():
                    self._file.write_at(CLOSED, IN_USE_POSITION)
                    self._force()
        finally:
            self._file.close()

    def abandon(self) -> None:
        """Let go of the files as they are: the binlog is dropped, or the store did not open."""
        self._file.close()

    def _take_memory(self) -> None:
        """The group is there that the next memory is behind of."""
        self._memory, self._next_memory = self._next_memory or self._memory, None

    @property
    def _holds_groups(self) -> bool:
        return self.size_bytes > self._head.size_bytes

    def _note_clock(self, first: Event) -> None:
        if isinstance(first.body, MysqlGtidEvent) and first.body.sequence_number:
            self._clock = max(self._clock, first.body.sequence_number + self._clock_base)

    def _write(self) -> None:
        if self._pending:
            self._has_unsynced = True
            self._file.write_at(self._pending, self._written)
            self._written += len(self._pending)
            self._tail = bytes(self._pending[-CHECKSUM_LENGTH:])
            self._pending = bytearray()

    def _sync_file(self) -> None:
        if self._has_unsynced:
            self._force()
        self._has_unsynced, self._groups_unsynced = False, 0

    def _force(self) -> None:
        """Force the file to disk. Where that fails once, what was written may be lost for good.

        The system may drop the pages that it could not write and call the next attempt a success,
        so there is none: recovery reads what the disk has.
        """
        try:
            self._file.sync()
        except OSError:
            self._is_sync_lost = True
            raise

    def _save(self) -> None:
        """Save the mark; the file comes to disk before it, whatever `sync_binlog` says."""
        mark = self._mark()
        if mark != self._saved:
            with self._failing():
                self._sync_file()
            if self._facts and self._facts_unsaved:
                self._facts.save(self._facts_unsaved)
                self._facts_unsaved = []
            self._save_mark(mark)
            self._saved = mark
        self._saved_at = time.monotonic()

    def _mark(self) -> Mark:
        return Mark(
            end=self.end,
            position=self.position,
            clock=self._clock,
            clock_base=self._clock_base,
            prepared=self._published_prepared,
            memory=self._published_memory.encode(),
            is_cut=self._is_memory_due,
            incidents=self._published_incidents,
            unsearched=self._unsearched,
        )

    def _publish(self) -> bool:
        """Make what is written known, if there is anything new."""
        before = self._published
        self._published_memory = self._memory
        if self._written == before.last.size_bytes and self._position == before.position:
            return False
        last = replace(before.last, size_bytes=self._written)
        self._published = replace(before, last=last, position=self._position)
        self._published_prepared = self._prepared
        self._published_incidents = self._incidents
        if self._groups and self._tail and self._groups.is_due(self._written):
            self._groups.reach(self._written, self._position, self._tail)
        return True

    def _rotate(self, timestamp: int, description: FormatDescriptionEvent | None = None) -> None:
        """End this file and begin the next; only the index makes it so."""
        closed, last = self._published.closed, self._published.last
        following = self._following_name()
        self._pending += rotate_bytes(
            self._head, following, position=self.size_bytes, timestamp=timestamp
        )
        self._write()
        self._file.write_at(CLOSED, IN_USE_POSITION)
        self._force()
        ended = replace(last, size_bytes=self._written, ended=timestamp)
        closed = (*closed, ended)
        path = self._directory / following
        wanted = replace(
            self._head,
            format_description=description or self._following_description(),
            begin=self._position,
        )
        head = write_head(self._disk, path, wanted, timestamp=timestamp)
        opened = self._disk.open(path)
        try:
            write_index(self._disk, self._directory, [*(f.name for f in closed), following])
        except OSError:
            opened.close()
            raise
        self._file.close()
        self._file, self._head, self._written = opened, head, head.size_bytes
        self._has_unsynced, self._groups_unsynced = False, 0
        self._published = Published(
            closed=closed,
            last=self._new_file(following, head.begin, head.size_bytes),
            position=self._position,
        )
        # Not before: where the disk fails, what is rolled back is given again.
        self._published_prepared, self._published_memory = self._prepared, self._memory
        self._published_incidents = self._incidents
        if self._groups:
            self._groups.begin(path, start=head.size_bytes, flavor=head.begin.flavor)
        self._facts_unsaved.append(ended)
        self._is_purge_due = True

    def _following_description(
        self, *, has_tables_info: bool | None = None
    ) -> FormatDescriptionEvent:
        """FORMAT_DESCRIPTION of the next file, where the source has told nothing new."""
        if has_tables_info is None:
            has_tables_info = self.settings.has_tables_info
        described = replace(self._head.format_description, created=0)
        return described.with_tables_info(has_tables_info=has_tables_info)

    def _new_file(self, name: str, begin: Position, size_bytes: int) -> BinlogFile:
        return BinlogFile(
            directory=self._directory,
            name=name,
            size_bytes=size_bytes,
            begin_gtids=str(begin),
            flavor=begin.flavor,
        )

    def _following_name(self) -> str:
        number = file_number(self.end.file, binlog=self.name)
        assert number is not None, "the binlog named its files itself"
        return file_name(self.name, number + 1)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Turn what the disk says into errors that tell what to do, with a binlog that is whole."""
        self._check_open()
        try:
            yield
        except OSError as error:
            raise self._failed(error) from error

    def _check_open(self) -> None:
        if self._failure:
            raise StoreError(self._failure, path=str(self._directory), hint=_REOPEN_HINT)

    def _failed(self, error: OSError) -> StoreError:
        reason = error.strerror or str(error)
        if error.errno in NO_ROOM and not self._is_sync_lost and self._roll_back():
            return StoreFullError(
                f"no room for more than {self.end}: {reason}",
                path=str(self._directory),
                hint="make room on the disk; the event groups that did not fit can then be added",
            )
        self._failure = f"binlog {self.name} cannot be written behind {self.end}: {reason}"
        return StoreError(self._failure, path=str(self._directory), hint=_REOPEN_HINT)

    def _roll_back(self) -> bool:
        """Go back to what is published; False if the disk does not let us."""
        end = self.end
        self._pending = bytearray()  # the write that failed may hold on to the old one
        try:
            if read_index(self._directory)[-1] != end.file:
                return False
            self._file.truncate(end.position)
            self._file.write_at(IN_USE, IN_USE_POSITION)
            unborn = self._directory / self._following_name()
            if unborn.exists():
                self._disk.remove(unborn)
        except (OSError, StoreError):
            return False
        self._written, self._position = end.position, self.position
        self._prepared = self._published_prepared
        self._incidents = self._published_incidents
        self._memory, self._next_memory = self._published_memory, None
        self._has_unsynced = True
        return True
