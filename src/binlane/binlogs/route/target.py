"""The directory that a run fills: a binlog of the store for each definition, and the record.

DIR/<name>/<name>.000001 …, <name>.index    what was routed
DIR/binlane-route.json                      up to where, so that the next run goes on
DIR/binlane.lock                            who writes there now
DIR/binlane-writers.lock                    held by that one's workers while they write
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from binlane.binlogs.route.route_record import RECORD_FILE, Reached, Record, text_of
from binlane.binlogs.route.schedule import Schedule
from binlane.binlogs.route.source_files import SourceFile
from binlane.binlogs.route.stretch import RoutedStretch, state_of
from binlane.binlogs.route.writers_lock import WRITERS_FILE, wait_for_writers
from binlane.binlogs.routing.row_images import Uncut
from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.catalog import Mark
from binlane.binlogs.store.disk import DRAFT_SUFFIX, LOCK_FILE, DirectoryLock, Disk, unusable
from binlane.binlogs.store.files import (
    CLOSED,
    IN_USE_POSITION,
    BinlogFile,
    FileHead,
    file_name,
    stored_format,
    write_head,
    write_index,
)
from binlane.binlogs.store.mark_keeper import BinlogMarks
from binlane.binlogs.store.recovery import RecoveredBinlog, cut_to, remove_directory
from binlane.binlogs.store.settings import StoreSettings
from binlane.errors import ConfigError
from binlane.positions import FilePosition, Position
from binlane.statements.scope.definition import Definition

_OWN_FILES: Final = frozenset({RECORD_FILE, RECORD_FILE + DRAFT_SUFFIX, LOCK_FILE, WRITERS_FILE})


class RouteTarget:
    """An open target directory.

    Attributes:
        binlogs: The binlogs of the target by their names.
        record: The work done before this run; None if there was none.
    """

    def __init__(
        self,
        directory: Path,
        schedule: Schedule,
        *,
        settings: StoreSettings,
        disk: Disk,
    ) -> None:
        """Own a directory, made if need be, and make it what the record says.

        Raises:
            ConfigError: If it holds anything else, or binlogs of other definitions.
            StoreError: If it cannot be used.
        """
        self._directory = directory
        self._settings = settings
        self._disk = disk
        self._marks: dict[str, Mark] = {}
        self._closed = _ClosedFiles()
        self.binlogs: dict[str, Binlog] = {}
        try:
            if not directory.exists():
                directory.parent.mkdir(parents=True, exist_ok=True)
                disk.make_directory(directory)
            # Always: a run before may have ended between the two.
            disk.sync_directory(directory.parent)
            self.record = Record.read(directory)
            done = self.record.reached.done if self.record else None
            self._definitions = {each.name: each for each in schedule.at(done)}
            self._check_contents()
            self._lock = DirectoryLock(directory)
        except OSError as error:
            raise unusable(error, directory) from error
        try:
            wait_for_writers(directory)
            self._open_binlogs()
        except OSError as error:
            self.abandon()
            raise unusable(error, directory) from error
        except BaseException:
            self.abandon()
            raise

    def begin(self, source: SourceFile, done: Position) -> None:
        """Make the binlogs that are not there yet.

        Args:
            source: The file that comes first.
            done: Position that is done before them.

        Raises:
            StoreError: If they cannot be made.
        """
        for name, definition in self._definitions.items():
            if name not in self.binlogs:
                try:
                    self.binlogs[name] = self._made(definition, source, done)
                except OSError as error:
                    raise unusable(error, self._directory) from error

    def define(self, definitions: Sequence[Definition], source: SourceFile, done: Position) -> None:
        """Go on with other definitions; binlogs that have none any more get nothing more.

        Raises:
            StoreError: If a binlog cannot be made or closed.
        """
        self._definitions = {definition.name: definition for definition in definitions}
        for name in [name for name in self.binlogs if name not in self._definitions]:
            self.binlogs.pop(name).close()
        for name, binlog in self.binlogs.items():
            binlog.definition = self._definitions[name]
        self.begin(source, done)

    def keep(self, reached: Reached) -> None:
        """Have everything on disk up to a place of the files, and note it.

        Raises:
            StoreError: If that fails; what was kept before stands.
        """
        for binlog in self.binlogs.values():
            binlog.advance_to(reached.done)
            binlog.sync(force=True)
        record = Record(
            reached=reached,
            definitions={name: text_of(self._definitions[name]) for name in self.binlogs},
            marks={name: self._marks[name] for name in self.binlogs},
        )
        try:
            record.write(self._directory, self._disk)
        except OSError as error:
            raise unusable(error, self._directory) from error

    def take(self, stretches: Sequence[RoutedStretch]) -> None:
        """Take stretches that were written into the binlogs' files, and cut off what is behind.

        Args:
            stretches: The stretches in their order; none where all that was written goes.

        Raises:
            StoreError: If the files cannot be used.
        """
        try:
            for name, binlog in self.binlogs.items():
                self.binlogs[name] = self._taken(name, binlog, stretches)
        except OSError as error:
            raise unusable(error, self._directory) from error

    def _taken(self, name: str, binlog: Binlog, stretches: Sequence[RoutedStretch]) -> Binlog:
        directory, closed = self._directory / name, binlog.published.closed
        state = stretches[-1].end.binlogs[name] if stretches else state_of(binlog)
        binlog.abandon()
        ended = [file for each in stretches for file in each.ended[name]]
        for file in ended:
            # Whoever began it may have marked it as in use after whoever ended it.
            whole = self._disk.open(file.path)
            try:
                whole.write_at(CLOSED, IN_USE_POSITION)
                whole.sync()
            finally:
                whole.close()
        closed = (*closed, *ended)
        write_index(self._disk, directory, [*(file.name for file in closed), *state.files])
        mark = Mark(
            end=FilePosition(state.files[-1], state.end),
            position=state.position,
            clock=state.clock,
            clock_base=state.clock_base,
            prepared=state.prepared,
            memory=state.memory,
        )
        found = cut_to(directory, mark, self._disk)
        self._closed.save(closed)
        opened = self._opened(
            binlog.definition, replace(found, source_created=state.source_created)
        )
        opened.cutters = binlog.cutters
        uncut = sum((each.uncut[name] for each in stretches), Counter[Uncut]())
        opened.cutters.count_uncut(uncut, binlog.definition.row_image)
        return opened

    def close(self) -> None:
        """Close the binlogs, whose files are whole then.

        Raises:
            StoreError: If one cannot be written.
        """
        try:
            for binlog in self.binlogs.values():
                binlog.close()
        finally:
            self._lock.release()

    def abandon(self) -> None:
        """Let go of everything as it is: files that are being written stay marked so."""
        for binlog in self.binlogs.values():
            binlog.abandon()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def _check_contents(self) -> None:
        """Leave alone what no run has made."""
        found = sorted(path.name for path in self._directory.iterdir())
        has_record = (self._directory / RECORD_FILE).exists()
        known = _OWN_FILES | self._definitions.keys()
        others = [name for name in found if name not in known]
        # Without a record, binlogs are what a run left that ended before its first one.
        half_made = [] if has_record else [name for name in found if not self._is_half_made(name)]
        strange = others if has_record else [name for name in half_made if name not in _OWN_FILES]
        if strange:
            raise ConfigError(
                f"{self._directory} holds something else: {', '.join(strange[:3])}",
                key="--out",
                hint="name an empty directory, or one that was filled by the same definitions",
            )

    def _is_half_made(self, name: str) -> bool:
        """True if a directory holds nothing but a binlog that this command began to make."""
        path = self._directory / name
        if name not in self._definitions or not (self._directory / LOCK_FILE).exists():
            return False
        return path.is_dir() and all(
            each.name.startswith(f"{name}.") and each.is_file() for each in path.iterdir()
        )

    def _open_binlogs(self) -> None:
        record = self.record
        if record is None:
            for name in self._definitions:
                remove_directory(self._directory / name, self._disk)
            return
        wanted = {name: text_of(each) for name, each in self._definitions.items()}
        _check_definitions(record.definitions, wanted, self._directory)
        for name, mark in record.marks.items():
            found = cut_to(self._directory / name, mark, self._disk)
            self.binlogs[name] = self._opened(self._definitions[name], found)

    def _made(self, definition: Definition, source: SourceFile, done: Position) -> Binlog:
        directory = self._directory / definition.name
        self._disk.make_directory(directory)
        self._disk.sync_directory(self._directory)
        name = file_name(definition.name, 1)
        header = source.first.header
        head = FileHead(
            format_description=stored_format(
                source.description, has_tables_info=self._settings.has_tables_info
            ),
            begin=done,
            server_id=header.server_id,
            size_bytes=0,
        )
        head = write_head(self._disk, directory / name, head, timestamp=header.timestamp)
        write_index(self._disk, directory, [name])
        found = RecoveredBinlog(
            directory=directory, files=(name,), head=head, end=head.size_bytes, position=done
        )
        return self._opened(definition, found)

    def _opened(self, definition: Definition, found: RecoveredBinlog) -> Binlog:
        return Binlog(
            definition,
            found,
            settings=self._settings,
            disk=self._disk,
            marks=BinlogMarks(partial(self._marks.__setitem__, definition.name), self._closed),
        )


class _ClosedFiles:
    """Facts of files that are written no more, so that nobody has to look at each of them again."""

    def __init__(self) -> None:
        self._files: dict[Path, dict[str, BinlogFile]] = {}

    def known(self, directory: Path) -> dict[str, BinlogFile]:
        """The files of a binlog's directory, by their names."""
        return self._files.get(directory, {})

    def save(self, files: Iterable[BinlogFile]) -> None:
        """Note files."""
        for file in files:
            self._files.setdefault(file.directory, {})[file.name] = file

    def forget(self, *, before: int) -> None:
        """Nothing is purged here."""
        raise AssertionError(before)


def _check_definitions(
    before: Mapping[str, str], wanted: Mapping[str, str], directory: Path
) -> None:
    for name in before.keys() | wanted.keys():
        if before.get(name) != wanted.get(name):
            there = before.get(name, "not defined")
            raise ConfigError(
                f"binlog {name} is {there} in {directory}, and {wanted.get(name, 'not defined')} now",
                key="--binlogs",
                hint="route into another directory, or give the definitions it was filled by",
            )
