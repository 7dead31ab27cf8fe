"""A data directory and the binlogs in it, owned by one process.

DATA/binlane.lock        who owns it
DATA/binlane.sqlite3     definitions, scope history, watermarks
DATA/binlogs/<name>/     <name>.000001 …, <name>.index
DATA/groups/<name>/      <name>.000001.idx …, where in large files groups begin
DATA/children/           rows of children of outside parents, of binlogs with FOLLOW CASCADES
DATA/fills/<id>/         rows that are read for a binlog, until they are in it
DATA/spill/              groups that are too large for memory while they come
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, Self

from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.catalog import BinlogActivity, BinlogRecord, Catalog, Mark, ScopeChange
from binlane.binlogs.store.child_catching_up import CHILDREN_DIRECTORY, ChildReadings
from binlane.binlogs.store.child_shadow import follow_children, foresee_children
from binlane.binlogs.store.disk import DirectoryLock, Disk, LocalDisk, unusable
from binlane.binlogs.store.file_facts import FileFacts
from binlane.binlogs.store.files import (
    BINLOGS_DIRECTORY,
    FileHead,
    file_name,
    stored_format,
    write_head,
    write_index,
)
from binlane.binlogs.store.fills import Fill, Seeding, StoreSeeds
from binlane.binlogs.store.forcing import Forcing
from binlane.binlogs.store.grants import ReadGrant
from binlane.binlogs.store.group_index import GROUPS_DIRECTORY, GroupIndexWriter, remove_indexes
from binlane.binlogs.store.lost import LostBinlog
from binlane.binlogs.store.mark_keeper import BinlogMarks, MarkKeeper
from binlane.binlogs.store.recovery import RecoveredBinlog, recover, remove_directory
from binlane.binlogs.store.settings import StoreSettings
from binlane.errors import CorruptStoreError, StoreError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.positions import Position
from binlane.statements.scope.definition import Definition, duplicate_binlog, unknown_binlog

SPILL_DIRECTORY: Final = "spill"
ROWS_DIRECTORY: Final = "fills"
_LOCAL_DISK: Final = LocalDisk()
_DEFAULT_SETTINGS: Final = StoreSettings()
_FORMAT: Final = "binlog_format"


class Store:
    """An open data directory. One thread changes it; any thread may read what binlogs publish.

    Files alone are forced to disk in threads of their own, side by side, and waited for.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        settings: StoreSettings,
        disk: Disk,
        catalog: Catalog,
        lock: DirectoryLock,
    ) -> None:
        self._directory = data_dir / BINLOGS_DIRECTORY
        self._groups = data_dir / GROUPS_DIRECTORY
        self.child_readings = ChildReadings(data_dir / CHILDREN_DIRECTORY)
        self._settings = settings
        self._disk = disk
        self._catalog = catalog
        self._lock = lock
        self._binlogs: Mapping[str, Binlog] = MappingProxyType({})
        self._said = catalog.variables()
        self._variables = self._known_variables()
        self._grants = catalog.grants.rows()
        self.seeds = StoreSeeds(catalog.fills)
        self._forcing = Forcing()
        self._marks = MarkKeeper(catalog)
        self._marks_taken_s = time.monotonic()

    @classmethod
    def open(
        cls,
        data_dir: Path,
        settings: StoreSettings = _DEFAULT_SETTINGS,
        *,
        disk: Disk = _LOCAL_DISK,
        keeps_lost: bool = False,
    ) -> Self:
        """Own a data directory, made if need be, and make all its binlogs whole.

        Args:
            data_dir: The directory that the store owns.
            settings: Settings by which binlogs are written.
            disk: The disk that holds the directory.
            keeps_lost: True if a binlog that cannot be made whole is kept as a `LostBinlog`, for
                `reopen_binlog`.

        Raises:
            StoreLockedError: If another process owns it.
            CorruptStoreError: If anything is missing or damaged that was on disk for sure.
            StoreError: If it cannot be used.
        """
        try:
            for directory in (data_dir, data_dir / BINLOGS_DIRECTORY):
                if not directory.exists():
                    directory.parent.mkdir(parents=True, exist_ok=True)
                    disk.make_directory(directory)
                # Always: a process before may have ended between the two.
                disk.sync_directory(directory.parent)
            lock = DirectoryLock(data_dir)
        except OSError as error:
            raise unusable(error, data_dir) from error
        try:
            catalog = Catalog.open(Catalog.path_in(data_dir))
        except StoreError:
            lock.release()
            raise
        store = cls(data_dir, settings=settings, disk=disk, catalog=catalog, lock=lock)
        # Groups that a process that died had put aside come again.
        shutil.rmtree(store.spill_folder, ignore_errors=True)
        try:
            store._recover(keeps_lost=keeps_lost)
        except BaseException:
            store._release()
            raise
        return store

    @property
    def spill_folder(self) -> Path:
        """Folder for groups that are too large for memory."""
        return self._directory.parent / SPILL_DIRECTORY

    def rows_folder(self, log_id: int) -> Path:
        """Folder for rows that are read for a binlog."""
        return self._directory.parent / ROWS_DIRECTORY / str(log_id)

    @property
    def binlogs(self) -> Mapping[str, Binlog]:
        """The binlogs by name, in the order of their names; replaced, never changed."""
        return self._binlogs

    def use(self, settings: StoreSettings) -> None:
        """Write by other settings from now on."""
        self._settings = settings
        for binlog in self._binlogs.values():
            binlog.settings = settings

    def create_binlog(
        self,
        definition: Definition,
        *,
        start: Position,
        format_description: FormatDescriptionEvent,
        server_id: int,
        timestamp: int,
        fill: Fill | None = None,
    ) -> Binlog:
        """Make a binlog; it exists when this returns.

        Args:
            definition: Definition with an id of `next_log_id()`.
            start: The source's position from which on it shall hold its scope.
            format_description: FORMAT_DESCRIPTION of the source itself.
            server_id: Server id of the source, for the headers of the events that describe the
                files.
            timestamp: Time of those events, in seconds since 1970.
            fill: Says that it is to be given its tables' rows first; its `log_id` is not read.

        Raises:
            DefinitionError: If there is one of this name.
            StoreFullError: If there is no room; nothing is left of it then.
            StoreError: If the disk fails.
        """
        name = definition.name
        if name in self._binlogs:
            raise duplicate_binlog(name)
        for record in self._catalog.binlogs():
            if record.definition.name == name:
                self._clear_away(record.definition)
        head = FileHead(
            format_description=stored_format(
                format_description, has_tables_info=self._settings.has_tables_info
            ),
            begin=start,
            server_id=server_id,
            size_bytes=0,
        )
        # The source's time may be that of an event long ago.
        created = int(time.time())
        self._catalog.begin_create(definition, start, created=created)
        try:
            binlog = self._open(definition, self._write_first_file(name, head, timestamp))
            mark = Mark(end=binlog.end, position=start)
            if fill is not None:
                fill = replace(fill, log_id=definition.log_id, created=created)
            self._catalog.finish_create(definition, mark, created=created, fill=fill)
        except OSError as error:
            self._discard(definition)
            raise unusable(error, self._directory) from error
        except StoreError:
            self._discard(definition)
            raise
        self.seeds.read()
        self._set_binlogs({**self._binlogs, name: binlog})
        return binlog

    def alter_binlog(self, definition: Definition) -> None:
        """Give a binlog another scope or logging mode, from its present position on.

        Raises:
            DefinitionError: If there is no binlog of this name.
            StoreError: If the disk fails.
        """
        binlog = self._find(definition.name)
        assert binlog.definition.log_id == definition.log_id, "a binlog keeps its id"
        binlog.sync(force=True)
        self._foresee(binlog, definition)
        with self._marks.later(definition.log_id):
            self._catalog.alter(definition, binlog.mark, altered=int(time.time()))
        self._define(binlog, definition)

    def _foresee(self, binlog: Binlog, definition: Definition) -> None:
        """Have the rows of a binlog's children be right by its next definition."""
        scopes = {
            (each.log_list, each.ignore_list)
            for each in self._catalog.history()
            if each.log_id == definition.log_id
        }
        foresee_children(binlog, self.child_readings, definition, had_others=len(scopes) > 1)

    def _define(self, binlog: Binlog, definition: Definition) -> None:
        binlog.definition = definition
        follow_children(binlog, self.child_readings)

    def finish_fill(self, definition: Definition, seeding: Seeding) -> None:
        """Note that a binlog has its rows, and logs by a definition from its present position on.

        Raises:
            StoreError: If the disk fails.
        """
        binlog = self._find(definition.name)
        binlog.sync(force=True)
        self._foresee(binlog, definition)
        with self._marks.later(definition.log_id):
            self._catalog.finish_fill(definition, binlog.mark, seeding)
        self._define(binlog, definition)
        self.seeds.read()
        binlog.seedings = self.seeds.of(definition.log_id)

    def reopen_binlog(self, name: str) -> Binlog:
        """Make a binlog whole again whose disk failed, from what the disk has of it.

        Groups that were appended and not published may be gone: groups go on behind its `position`.

        Raises:
            DefinitionError: If there is none of this name.
            CorruptStoreError: If anything is missing or damaged that was on disk for sure.
            StoreError: If the disk still fails.
        """
        before = self._find(name)
        before.abandon()
        if before.children is not None:
            before.children.close()
        directory = self._directory / name
        record = next(each for each in self._catalog.binlogs() if each.definition.name == name)
        binlog = self._recovered(before.definition, directory, _mark_of(record, directory))
        self._set_binlogs({**self._binlogs, name: binlog})
        return binlog

    def activities(self) -> dict[str, tuple[BinlogActivity, str]]:
        """The activity of each binlog, by name, with the cause of its being stopped."""
        return {
            record.definition.name: (record.activity, record.reason)
            for record in self._catalog.binlogs()
            if record.is_live
        }

    def set_activity(self, name: str, activity: BinlogActivity, reason: str = "") -> None:
        """Note whether a binlog is to take what the source gives, also after a restart.

        Raises:
            DefinitionError: If there is none of this name.
            StoreError: If it cannot be saved.
        """
        self._catalog.set_activity(self._find(name).definition.log_id, activity, reason)

    @property
    def source_identity(self) -> str:
        """Give the last saved identity of the source, a text; empty if none was ever saved."""
        return self._catalog.source_identity()

    def drop_binlog(self, name: str) -> None:
        """Remove a binlog and its files.

        Raises:
            DefinitionError: If there is none of this name.
            StoreError: If the disk fails; what is left is removed when the store is next opened.
        """
        binlog = self._find(name)
        self._catalog.begin_drop(binlog.definition, binlog.position, dropped=int(time.time()))
        self._set_binlogs({key: log for key, log in self._binlogs.items() if key != name})
        log_id = binlog.definition.log_id
        self._grants = tuple(each for each in self._grants if each.log_id != log_id)
        binlog.abandon()
        if binlog.children is not None:
            binlog.children.remove()
        try:
            self._clear_away(binlog.definition)
        finally:
            self.seeds.read()

    def sync_each(self, binlogs: Iterable[Binlog], *, force: bool = False) -> dict[str, StoreError]:
        """Publish what was appended to some binlogs; their files are forced to disk side by side.

        Marks are not saved by this call: `take_marks` is to be called when they are due.

        Args:
            binlogs: Binlogs of this store, to be published.
            force: Force files to disk whatever the settings say.

        Returns:
            Errors, by the names of the binlogs that they concern.
        """
        faults: dict[str, StoreError] = {}
        written: list[Binlog] = []
        for binlog in binlogs:
            try:
                binlog.write()
                written.append(binlog)
            except StoreError as error:
                faults[binlog.name] = error
        waiting = [binlog for binlog in written if binlog.wants_force(always=force)]
        faults.update(self._forcing.force(waiting))
        for binlog in written:
            if faults and binlog.name in faults:
                continue
            binlog.publish()
            try:
                binlog.finish()
            except StoreError as error:
                faults[binlog.name] = error
        return faults

    @property
    def marks_due_s(self) -> float:
        """Time at which the marks are to be taken again, as `time.monotonic`."""
        return self._marks_taken_s + self._settings.watermark_interval_s

    @property
    def marks_are_due(self) -> bool:
        """True if the marks were last taken at least `watermark_interval_s` ago."""
        return time.monotonic() >= self.marks_due_s

    def take_marks(self, *, identity: str | None = None) -> Callable[[], None] | None:
        """Take the marks of all binlogs, whose files were forced to disk.

        Args:
            identity: Identity of the source, as `Catalog.save_marks` takes it.

        Returns:
            A function that saves the marks, to be called in any thread; None if they were saved as
            they are. The function raises StoreError if it cannot save them; they are taken again
            then.
        """
        self._marks_taken_s = time.monotonic()
        number = self._marks.number()
        taken = {log: log.marks.take(log.mark) for log in self._binlogs.values() if not log.failure}
        marks = {log: mark for log, (mark, _) in taken.items() if mark is not None}
        if not marks:
            return None

        def save() -> None:
            try:
                for log in marks:
                    log.marks.note_closed(taken[log][1])
                ids = {log.definition.log_id: mark for log, mark in marks.items()}
                self._marks.save(ids, number=number, identity=identity)
            except StoreError:
                for log in marks:
                    log.marks.lose()
                raise

        return save

    @property
    def has_tables_info(self) -> bool:
        """True if its binlogs are written with tables info."""
        return self._settings.has_tables_info

    @property
    def variables(self) -> Mapping[str, str]:
        """The binlogs' variables by name, of SET GLOBAL, else of the settings; any thread may ask."""
        return self._variables

    def set_variables(self, values: Mapping[str, str | None]) -> None:
        """Give the binlogs' variables values, also after a restart; any thread may do so.

        Args:
            values: Values by name; None takes one back, so that the settings hold again.

        Raises:
            StoreError: If they cannot be saved; they are as before then.
        """
        self._catalog.set_variables(values)
        said = {**self._said, **values}
        self._said = {name: value for name, value in said.items() if value is not None}
        self._variables = self._known_variables()

    def _known_variables(self) -> Mapping[str, str]:
        default = self._settings.binlog_format
        return self._said if default is None else {_FORMAT: default.value, **self._said}

    @property
    def grants(self) -> tuple[ReadGrant, ...]:
        """Grants of READ on binlogs; any thread may ask."""
        return self._grants

    @property
    def accounts_known(self) -> Position | None:
        """Up to where account statements of the source were applied to grants, as last saved.

        None if there never were any grants.
        """
        return self._catalog.grants.known()

    def set_grants(self, grants: Iterable[ReadGrant], known: Position | None) -> None:
        """Have these grants and no others.

        Args:
            grants: Grants in any order; one for each binlog and account.
            known: Account statements of the source up to here were applied to them.

        Raises:
            StoreError: If that cannot be saved; they are as before then.
        """
        ordered = tuple(sorted(grants, key=lambda each: (each.log_id, each.account)))
        self._catalog.grants.replace(ordered, known)
        self._grants = ordered

    def note_accounts_known(self, known: Position) -> None:
        """Note that account statements up to a position were applied; any thread may do so.

        Raises:
            StoreError: If that cannot be saved.
        """
        self._catalog.grants.save_known(known)

    def history(self) -> list[ScopeChange]:
        """All changes of definitions, oldest first; any thread may ask."""
        return self._catalog.history()

    def next_log_id(self) -> int:
        """An id that no binlog has or had, for a new definition."""
        return self._catalog.next_log_id()

    def close(self) -> None:
        """Close all binlogs and give the directory up.

        Raises:
            StoreError: If a binlog cannot be written; all others are closed all the same.
        """
        faults = []
        for binlog in self._binlogs.values():
            try:
                binlog.close()
            except StoreError as error:
                faults.append(error)
            if binlog.children is not None:
                binlog.children.close()
        self._binlogs = MappingProxyType({})
        self._release()
        if faults:
            raise faults[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _recover(self, *, keeps_lost: bool) -> None:
        records = self._catalog.binlogs()
        for record in records:
            definition, directory = record.definition, self._directory / record.definition.name
            if not record.is_live:
                self._clear_away(definition)
                continue
            mark = _mark_of(record, directory)
            try:
                binlog = self._recovered(definition, directory, mark)
            except StoreError as error:
                if not keeps_lost:
                    raise
                binlog = LostBinlog(directory, record, mark, error)
            self._set_binlogs({**self._binlogs, definition.name: binlog})
        known = {record.definition.name for record in records}
        for path in sorted(self._directory.iterdir()):
            if path.name not in known:
                raise CorruptStoreError(
                    "no definition is stored for this binlog",
                    path=str(path),
                    hint=f"restore {Catalog.path_in(self._directory.parent)} from a copy, "
                    "or move this directory away",
                )

    def _recovered(self, definition: Definition, directory: Path, mark: Mark) -> Binlog:
        try:
            return self._open(definition, recover(directory, mark, self._disk))
        except OSError as error:
            raise unusable(error, directory) from error

    def _write_first_file(self, name: str, head: FileHead, timestamp: int) -> RecoveredBinlog:
        directory, first = self._directory / name, file_name(name, 1)
        self._disk.make_directory(directory)
        self._disk.sync_directory(self._directory)
        head = write_head(self._disk, directory / first, head, timestamp=timestamp)
        write_index(self._disk, directory, [first])
        return RecoveredBinlog(
            directory=directory,
            files=(first,),
            head=head,
            end=head.size_bytes,
            position=head.begin,
        )

    def _clear_away(self, definition: Definition) -> None:
        """Remove a binlog that is not live, as far as it is still there."""
        directory = self._directory / definition.name
        try:
            remove_directory(directory, self._disk)
        except OSError as error:
            raise unusable(error, directory) from error
        remove_indexes(self._groups / definition.name)
        shutil.rmtree(self.rows_folder(definition.log_id), ignore_errors=True)
        self._catalog.remove(definition.log_id)

    def _discard(self, definition: Definition) -> None:
        """Undo a creation as far as the disk lets us; opening the store does the rest."""
        with suppress(OSError, StoreError):
            remove_directory(self._directory / definition.name, self._disk)
            self._catalog.remove(definition.log_id)

    def _open(self, definition: Definition, found: RecoveredBinlog) -> Binlog:
        log_id = definition.log_id
        facts = FileFacts(self._catalog, log_id, found.position.flavor)
        binlog = Binlog(
            definition,
            found,
            settings=self._settings,
            disk=self._disk,
            marks=BinlogMarks(partial(self._save_mark, log_id), facts),
            groups=GroupIndexWriter(self._groups / definition.name),
        )
        follow_children(binlog, self.child_readings)
        binlog.seedings = self.seeds.end_arrivals(log_id, found.position)
        return binlog

    def _save_mark(self, log_id: int, mark: Mark) -> None:
        self._marks.save({log_id: mark})

    def _set_binlogs(self, binlogs: Mapping[str, Binlog]) -> None:
        self._binlogs = MappingProxyType(dict(sorted(binlogs.items())))

    def _find(self, name: str) -> Binlog:
        if name not in self._binlogs:
            raise unknown_binlog(name, self._binlogs)
        return self._binlogs[name]

    def _release(self) -> None:
        self._forcing.close()
        for binlog in self._binlogs.values():
            binlog.abandon()
        self._catalog.close()
        self._lock.release()


def _mark_of(record: BinlogRecord, directory: Path) -> Mark:
    if record.mark is None:
        raise CorruptStoreError(
            "the catalog holds no watermark for this binlog",
            path=str(directory),
            hint="restore the catalog from a copy",
        )
    return record.mark
