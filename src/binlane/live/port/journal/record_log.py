"""Append-only files of records, of which what a killed process wrote can be read again.

A record is `crc32, length, kind, body`, little-endian; the checksum is of all behind it. A record
that is cut off or damaged ends what can be read of its file. Nothing is forced to disk: a process
that is killed leaves what it has written, and a machine that fails loses the end at most.

Records are written through a mapping of the file, without a call of the system for each (decision 0073):
what is in the mapping is the file's, for whoever reads it and when the process is killed. Before, zeros are
written there, so that the disk has room for what will come. Behind the last record of a killed process these
zeros are left.

A log is of one writer. Files are numbered, `000001.statements` and on, and go as wholes.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from mmap import ALLOCATIONGRANULARITY, mmap
from pathlib import Path
from struct import Struct
from typing import Any, Final, NamedTuple
from zlib import crc32

from binlane.binlogs.store.disk import Disk, DiskFile, LocalDisk, unusable
from binlane.errors import CorruptStoreError
from binlane.log.grouping.native import crc32_address
from binlane.log.kernels.load import kernels

_CHECKSUM_BYTES: Final = 4
_HEAD: Final = Struct("<IB")
_FRAME: Final = Struct("<IIB")
_DIGITS: Final = 6
_READ_BYTES: Final = 4096
_ROOM_BYTES: Final = 256 << 10
"""Bytes for which room is made at once."""
_LOCAL_DISK: Final = LocalDisk()

logger = logging.getLogger(__name__)


class RecordPlace(NamedTuple):
    """The place of a record.

    Attributes:
        file: Number of the record's file.
        offset: Position of the record's first byte.
        checksum: Checksum of the record; a file of the same number may be another one once a
            machine failed.
    """

    file: int
    offset: int
    checksum: int


class JournalRecord(NamedTuple):
    """A record as written in a file.

    Attributes:
        kind: A number from 0 to 255.
        body: The bytes that were given.
    """

    place: RecordPlace
    kind: int
    body: bytes


class RecordLog:
    """Numbered files of records in a folder.

    Attributes:
        sizes: Bytes of each file by its number, oldest first; 0 for the file being written.
        current_bytes: Size of the file that is being written.
        due_bytes: Size of the file at which another is begun; 0 for at once.
        damage: Damage that `records` found at the end of files, by number of the file.
    """

    def __init__(
        self, folder: Path, suffix: str, file_bytes: int, disk: Disk = _LOCAL_DISK
    ) -> None:
        """Find the files that are there; none is written before `begin_file`.

        Args:
            folder: The folder of the files; made if need be.
            suffix: The end of the files' names.
            file_bytes: Size at which a file is followed by another.
            disk: The disk that holds the folder.

        Raises:
            StoreError: If the folder cannot be used.
        """
        self._file: DiskFile | None = None
        # The mapped part of the file, the file's offset of its first byte, and of the end of the room.
        self._memory, self._memory_offset, self._room_end = mmap(-1, 1), 0, 0
        self._array: Any = None  # of the mapped part
        self._folder = folder
        self._suffix = suffix
        self._disk = disk
        self._file_bytes = file_bytes
        self.due_bytes = 0
        self._is_stale = False
        self.current_bytes = 0
        self.damage: dict[int, str] = {}
        try:
            if not folder.exists():
                disk.make_directory(folder)
            found = {
                int(path.stem): path.stat().st_size
                for path in folder.glob(f"*.{suffix}")
                if path.stem.isdigit()
            }
        except OSError as error:
            raise unusable(error, folder) from error
        self.sizes = dict(sorted(found.items()))
        self._number = max(self.sizes, default=0)

    def path(self, number: int) -> Path:
        """Give the path of a file."""
        return self._folder / f"{number:0{_DIGITS}}.{self._suffix}"

    @property
    def number(self) -> int:
        """Number of the file that is written, or of the last one that is there."""
        return self._number

    @property
    def size_bytes(self) -> int:
        """Size of all files together."""
        return sum(self.sizes.values()) + self.current_bytes

    @property
    def older(self) -> list[int]:
        """The numbers of the files that are not written any more."""
        return [number for number in tuple(self.sizes) if number != self._number]

    @property
    def is_file_due(self) -> bool:
        """True if a file is to be begun before the next record."""
        return self.current_bytes >= self.due_bytes

    def renew(self, *, is_stale: bool = False) -> None:
        """Have a file begun before the next record.

        Args:
            is_stale: True if nothing in the files before is of use any more: `drop_stale` deletes them.
        """
        self.due_bytes = 0
        self._is_stale |= is_stale

    def begin_body(self) -> None:
        """Say that the head of a new file is written: as much as it may follow it before another file is due."""
        self.due_bytes = max(self._file_bytes, 2 * self.current_bytes)

    def begin_file(self) -> None:
        """Go on in a new file.

        Raises:
            StoreError: If it cannot be made; what was written before goes on to be.
        """
        number = self._number + 1
        try:
            file = self._disk.create(self.path(number))
        except OSError as error:
            raise unusable(error, self.path(number)) from error
        if self._file is not None:
            self.close()
            self.sizes[self._number] = self.current_bytes
        self._file, self._number, self.current_bytes = file, number, 0
        self.due_bytes = self._file_bytes
        self.sizes[number] = 0

    def append(self, kind: int, body: bytes) -> RecordPlace:
        """Write a record behind the others of its file.

        Raises:
            StoreError: If it cannot be written; the next one is written over what is there of it.
        """
        offset, length, number = self.current_bytes, len(body), self._number
        end = offset + _FRAME.size + length
        checksum = crc32(body, crc32(_HEAD.pack(length, kind)))
        if end > self._room_end:
            try:
                self._make_room(end)
            except OSError as error:
                raise unusable(error, self.path(number)) from error
        at, memory = offset - self._memory_offset, self._memory
        # Its head comes last: until then the zeros at its place end the file.
        memory[at + _FRAME.size : end - self._memory_offset] = body
        _FRAME.pack_into(memory, at, checksum, length, kind)
        self.current_bytes = end
        # The same as `RecordPlace(number, offset, checksum)`, in a third of the time.
        return tuple.__new__(RecordPlace, (number, offset, checksum))

    def append_messages(
        self, said: tuple[Any, int, Any], older: Any, found: Any
    ) -> tuple[int, int]:
        """Write records that stand one after another behind their lengths and kinds, by `kernels.write_messages`.

        Args:
            said: The bytes, as an array that the kernel may change, the place of the first record among them, and
                the UUIDs of sources, as in the kernel.
            older: Threads, as in the kernel.
            found: Gets the numbers of the records, with places in the mapped part of the file.

        Returns:
            The number of the records that were written, and the file's offset of the mapped part. None are
            written where the file is at its end, or the first record is another one: then `append` has to go on.

        Raises:
            StoreError: If there is no room for them.
        """
        if self._file is None or self.current_bytes >= self.due_bytes:
            return 0, self._memory_offset
        data, start, sources = said
        # Each record gets a checksum.
        wanted = self.current_bytes + min(2 * (len(data) - start), _ROOM_BYTES // 2)
        if wanted > self._room_end:
            try:
                self._make_room(wanted)
            except OSError as error:
                raise unusable(error, self.path(self._number)) from error
        offset = self._memory_offset
        import numpy as np  # noqa: PLC0415 - only kernels need it

        if self._array is None:
            self._array = np.frombuffer(self._memory, np.uint8)
        ends = (self.current_bytes, self.due_bytes, self._room_end)
        room = np.array([each - offset for each in ends], np.int64)
        messages = data, start, len(data), sources
        count: int = kernels().write_messages(
            messages, (self._array, room, crc32_address()), older, found
        )
        self.current_bytes = offset + int(room[0])
        return count, offset

    def _make_room(self, end: int) -> None:
        """Map the file from the next record on, with room on the disk up to an offset or behind it."""
        file, offset = self._file, self.current_bytes
        assert file is not None, "a file was begun"
        due = max(self._file_bytes, self.due_bytes)
        # Behind what is due only the head of a file goes on, and may be long.
        end = max(end, min(offset + _ROOM_BYTES, due if offset < due else 2 * offset))
        file.write_at(bytes(end - offset), offset)
        self._array = None
        self._memory.close()
        self._memory_offset = offset - offset % ALLOCATIONGRANULARITY
        self._memory = file.mapped(self._memory_offset, end - self._memory_offset)
        self._room_end = end

    def rewrite_first(self, kind: int, body: bytes) -> None:
        """Put another record of the same length in the place of the first one of the file.

        Raises:
            StoreError: If it cannot be written.
        """
        if self._file is None or not self.current_bytes:
            return
        checksum = crc32(body, crc32(_HEAD.pack(len(body), kind)))
        try:
            self._file.write_at(_FRAME.pack(checksum, len(body), kind) + body, 0)
        except OSError as error:
            raise unusable(error, self.path(self._number)) from error

    def records(self, number: int, *, max_bytes: int = -1) -> Iterator[JournalRecord]:
        """Give the records of a file, up to its end or the first record that is damaged.

        Args:
            number: Number in the name of the file.
            max_bytes: Give only the whole records among the first so many bytes; all by default.

        Raises:
            StoreError: If the file cannot be read.
        """
        try:
            with self.path(number).open("rb") as file:
                data = file.read(max_bytes)
        except OSError as error:
            raise unusable(error, self.path(number)) from error
        offset = 0
        while offset < len(data):
            found = _record(data, offset)
            if found is None and (max_bytes >= 0 or data.count(0, offset) == len(data) - offset):
                return
            if found is None:
                self.damage[number] = f"{self.path(number)}: nothing can be read from {offset} on"
                return
            kind, body, checksum = found
            yield JournalRecord(RecordPlace(number, offset, checksum), kind, body)
            offset += _FRAME.size + len(body)

    def read(self, place: RecordPlace) -> tuple[int, bytes]:
        """The kind and the body of one record.

        Raises:
            CorruptStoreError: If there is none.
            StoreError: If the file cannot be read.
        """
        path = self.path(place.file)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = os.pread(descriptor, _READ_BYTES, place.offset)
                length = _FRAME.unpack_from(data)[1] if len(data) >= _FRAME.size else 0
                if _FRAME.size + length > _READ_BYTES:
                    left = os.fstat(descriptor).st_size - place.offset
                    data = os.pread(descriptor, min(_FRAME.size + length, left), place.offset)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise unusable(error, path) from error
        found = _record(data, 0)
        if found is None or found[2] != place.checksum:
            raise CorruptStoreError(
                f"no record at {place.offset}", path=str(path), hint="its records are not used"
            )
        return found[:2]

    def drop_stale(self) -> None:
        """Delete the files before the one being written if `renew` said that they are stale."""
        if self._is_stale:
            self._is_stale = False
            for number in self.older:
                self.remove(number)

    def remove(self, number: int) -> bool:
        """Delete a file that is not the one being written; False, and a warning, if that fails."""
        assert self._file is None or number != self._number, "it is being written"
        try:
            self._disk.remove(self.path(number))
        except FileNotFoundError:
            pass
        except OSError as error:
            logger.warning("the port's journal: %s", unusable(error, self.path(number)))
            return False
        self.sizes.pop(number, None)
        return True

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file, and of the room behind its last record."""
        if self._file is not None:
            self._array = None
            self._memory.close()
            self._room_end = 0
            with suppress(OSError):
                self._file.truncate(self.current_bytes)
            self._file.close()
            self._file = None


def _record(data: bytes, offset: int) -> tuple[int, bytes, int] | None:
    """Kind, body and checksum of the record at an offset; None if it is not whole."""
    start = offset + _FRAME.size
    if start > len(data):
        return None
    checksum, length, kind = _FRAME.unpack_from(data, offset)
    body = data[start : start + length]
    if len(body) < length or crc32(data[offset + _CHECKSUM_BYTES : start + length]) != checksum:
        return None
    return kind, body, checksum
