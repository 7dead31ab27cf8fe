"""The files of a binlog as its writer keeps them: the open one, the index, and the published state.

The order of writes is the crash safety: a file's bytes come before the index that names it. The
work of `recovery` after a crash follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from binlane.binlogs.store.disk import Disk
from binlane.binlogs.store.files import (
    BinlogFile,
    FileHead,
    file_name,
    file_number,
    read_index,
    write_head,
    write_index,
)
from binlane.binlogs.store.group_index import GroupIndexWriter
from binlane.binlogs.store.open_file import AnyBytes, OpenFile
from binlane.binlogs.store.recovery import RecoveredBinlog
from binlane.errors import StoreError
from binlane.log.codec.event import Event
from binlane.positions import FilePosition, Position


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


class BinlogFiles:
    """The files of one binlog. One thread writes; any thread may read `published`.

    Every call but those of properties may raise OSError: the disk has failed then.

    Attributes:
        open: The last file, at whose end groups are added.
        published: The files and their end as readers see them.
    """

    def __init__(
        self,
        recovered: RecoveredBinlog,
        closed: tuple[BinlogFile, ...],
        disk: Disk,
        groups: GroupIndexWriter | None,
    ) -> None:
        """Go on with the last of some files.

        Args:
            recovered: The files, which are whole.
            closed: The files but for the last one, oldest first.
            disk: Disk that holds the files.
            groups: Writes indexes of the places of groups; None without them.
        """
        self._directory = recovered.directory
        self._disk = disk
        self._groups = groups
        path = self._directory / recovered.files[-1]
        head, position = recovered.head, recovered.position
        if groups:
            groups.begin(path, start=head.size_bytes, flavor=position.flavor)
            groups.resume(end=recovered.end)
        self.open = OpenFile(disk, path, head, end=recovered.end)
        last = self._new_file(path.name, head.begin, recovered.end)
        self.published = Published(closed=closed, last=last, position=position)

    def add(self, data: AnyBytes, *, groups: int, events: Sequence[Event] | None = None) -> None:
        """Add whole event groups that were made for the place where the last file ends.

        Args:
            data: Bytes of the groups, one after the other.
            groups: Number of event groups in the bytes.
            events: Events of the group; None for groups of which only the bytes are known.
        """
        self.open.add(data, groups=groups)
        if self._groups is not None:
            if events is None:
                self._groups.note_unknown()
            else:
                self._groups.note(events)

    def publish(self, position: Position) -> None:
        """Let readers know what was written, up to a position of the source."""
        before, end = self.published, self.open.written_bytes
        last = before.last
        if end != last.size_bytes:
            last = last.grown(end)
        elif position is before.position or position == before.position:
            return
        self.published = Published(closed=before.closed, last=last, position=position)
        if self._groups and self.open.tail and self._groups.is_due(end):
            self._groups.reach(end, position, self.open.tail)

    def rotate(self, head: FileHead, timestamp: int, position: Position) -> BinlogFile:
        """End the last file and begin the next; only the index makes it so.

        Args:
            head: Head of the next file; its size is not read.
            timestamp: Time of the events that end one file and begin the next, in seconds since
                1970.
            position: Position of the source up to which the files are complete.

        Returns:
            The file that ended.
        """
        name = self._following_name()
        path = self._directory / name
        self.open.end_with(name, timestamp)
        ended = replace(self.published.last, size_bytes=self.open.written_bytes, ended=timestamp)
        closed = (*self.published.closed, ended)
        head = write_head(self._disk, path, head, timestamp=timestamp)
        opened = OpenFile(self._disk, path, head, end=head.size_bytes)
        try:
            write_index(self._disk, self._directory, [*(f.name for f in closed), name])
        except OSError:
            opened.close()
            raise
        self.open.close()
        self.open = opened
        last = self._new_file(name, head.begin, head.size_bytes)
        self.published = Published(closed=closed, last=last, position=position)
        if self._groups:
            self._groups.begin(path, start=head.size_bytes, flavor=head.begin.flavor)
        return ended

    def purge(self, count: int) -> None:
        """Delete the first files, of which no mark may speak any more; the last one always stays."""
        published = self.published
        assert count <= len(published.closed), "the live file is never purged"
        gone, closed = published.closed[:count], published.closed[count:]
        write_index(self._disk, self._directory, [*(f.name for f in closed), published.last.name])
        self.published = replace(published, closed=closed)
        for file in gone:
            self._disk.remove(file.path)
        self._disk.sync_directory(self._directory)
        if self._groups:
            self._groups.remove(file.name for file in gone)

    def roll_back(self) -> bool:
        """Go back to what is published; False if the disk does not let us."""
        end = self.published.end
        self.open.forget_pending()
        try:
            if read_index(self._directory)[-1] != end.file:
                return False
            self.open.cut(end.position)
            unborn = self._directory / self._following_name()
            if unborn.exists():
                self._disk.remove(unborn)
        except (OSError, StoreError):
            return False
        return True

    def _new_file(self, name: str, begin: Position, size_bytes: int) -> BinlogFile:
        return BinlogFile(
            directory=self._directory,
            name=name,
            size_bytes=size_bytes,
            begin_gtids=str(begin),
            flavor=begin.flavor,
        )

    def _following_name(self) -> str:
        binlog = self._directory.name
        number = file_number(self.published.last.name, binlog=binlog)
        assert number is not None, "the binlog named its files itself"
        return file_name(binlog, number + 1)
