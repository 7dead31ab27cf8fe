"""The file of a table's rows: blocks of keys and images, each with its sizes and a checksum."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import Final

import numpy as np

from binlane.binlogs.store.disk import unusable
from binlane.client.rows.table_rows import RowBatch
from binlane.errors import StoreError

_HEAD: Final = Struct("<4sIIQQ")
"""Magic, checksum of all that follows, rows, bytes of the keys, bytes of the images."""
_MAGIC: Final = b"BLSR"
Read = Callable[[int], bytes]
_END: Final = 8
_HAS_OWN_KEYS: Final = 1 << 31


class RowsFile:
    """Appends blocks to a file.

    Args:
        path: Path of the file, which is made if it is not there.
        size_bytes: The bytes of it that count; what stands behind is cut off.

    Raises:
        StoreError: If it cannot be written, or is shorter.
    """

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o600)
            if os.fstat(self._descriptor).st_size < size_bytes:
                raise StoreError(
                    "it has fewer bytes than were written",
                    path=str(path),
                    hint="remove the folder, and begin anew",
                )
            os.ftruncate(self._descriptor, size_bytes)
        except OSError as error:
            raise unusable(error, path) from None
        self._size_bytes = size_bytes

    def add(self, batch: RowBatch) -> None:
        """Append a block.

        Raises:
            StoreError: If it cannot be written.
        """
        own_keys = batch.keys is not batch.images
        parts = [
            np.ascontiguousarray(batch.image_ends, dtype="<i8").tobytes(),
            batch.images,
        ]
        if own_keys:
            parts += [
                np.ascontiguousarray(batch.key_ends, dtype="<i8").tobytes(),
                batch.keys,
            ]
        checksum = 0
        for part in parts:
            checksum = zlib.crc32(part, checksum)
        rows = len(batch) | (_HAS_OWN_KEYS if own_keys else 0)
        keys_size = len(batch.keys) if own_keys else 0
        head = _HEAD.pack(_MAGIC, checksum, rows, keys_size, len(batch.images))
        try:
            for part in (head, *parts):
                view = memoryview(part)
                while view:
                    written = os.pwrite(self._descriptor, view, self._size_bytes)
                    view, self._size_bytes = view[written:], self._size_bytes + written
        except OSError as error:
            raise unusable(error, self._path) from None

    def sync(self) -> int:
        """Force all to disk; return the file's bytes.

        Raises:
            StoreError: If that cannot be.
        """
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise unusable(error, self._path) from None
        return self._size_bytes

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def read_blocks(path: Path, size_bytes: int) -> Iterator[RowBatch]:
    """The blocks in the first bytes of a file.

    Raises:
        StoreError: If it cannot be read, or is damaged.
    """
    if not size_bytes:
        return
    try:
        with path.open("rb") as file:
            left = size_bytes
            while left:
                block, taken = _read_block(file.read, path, left)
                left -= taken
                yield block
    except OSError as error:
        raise unusable(error, path) from None


def _read_block(read: Read, path: Path, left: int) -> tuple[RowBatch, int]:
    head = read(_HEAD.size)
    if len(head) != _HEAD.size:
        raise _damaged(path)
    magic, checksum, marked, keys_size, images_size = _HEAD.unpack(head)
    rows, own_keys = marked & ~_HAS_OWN_KEYS, bool(marked & _HAS_OWN_KEYS)
    sizes = [rows * _END, images_size, *((rows * _END, keys_size) if own_keys else ())]
    if _HEAD.size + sum(sizes) > left:
        raise _damaged(path)
    parts, found = [], 0
    for size in sizes:
        part = read(size)
        if len(part) != size:
            raise _damaged(path)
        found = zlib.crc32(part, found)
        parts.append(part)
    if magic != _MAGIC or found != checksum:
        raise _damaged(path)
    image_ends = np.frombuffer(parts[0], dtype="<i8").astype(np.int64)
    images = parts[1]
    keys, key_ends = images, image_ends
    if own_keys:
        key_ends, keys = np.frombuffer(parts[2], dtype="<i8").astype(np.int64), parts[3]
    batch = RowBatch(keys=keys, key_ends=key_ends, images=images, image_ends=image_ends)
    return batch, _HEAD.size + sum(sizes)


def _damaged(path: Path) -> StoreError:
    return StoreError(
        "a block of rows is damaged", path=str(path), hint="remove the folder, and begin anew"
    )
