"""The last image of each row that a log changes, or the one before, on disk: a file that is made anew by whoever needs it.

Memory is bounded, however many rows change: what is in it is the file's cache and a filter that says
which keys were surely not changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from binlane.errors import StoreError

_CACHE_KIB: Final = 32 << 10
_BITS_A_KEY: Final = 16
_FILTER_BYTES_MAX: Final = 64 << 20


class ChangedRowsFile:
    """Changed rows by table and key.

    Of a table with a key a change replaces those before it. Of a table without a key, whose rows'
    images are their keys, the copies of an image are counted that came and went.

    Args:
        path: Path of the file, which is made anew.

    Raises:
        StoreError: From each call, if the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        for suffix in ("", "-journal"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).unlink()
        with _Failing(path):
            self._file = sqlite3.connect(path, isolation_level=None)
            for setting in (
                "journal_mode = OFF",
                "synchronous = OFF",
                "locking_mode = EXCLUSIVE",
                f"cache_size = -{_CACHE_KIB}",
            ):
                self._file.execute(f"PRAGMA {setting}")
            self._file.execute(
                "CREATE TABLE changed (number INTEGER, key BLOB, image BLOB, copies INTEGER,"
                " PRIMARY KEY (number, key)) WITHOUT ROWID"
            )
            self._file.execute("BEGIN")

    def close(self) -> None:
        """Close the file, and remove it."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def put(self, number: int, key: bytes, image: bytes | None) -> None:
        """A row has this image now; None: it is gone.

        Args:
            number: The number of a table with a key.
            key: The row's key as bytes.
            image: The image behind the change.
        """
        with _Failing(self._path):
            self._file.execute(
                "INSERT OR REPLACE INTO changed VALUES (?, ?, ?, 0)", (number, key, image)
            )

    def put_first(self, number: int, key: bytes, image: bytes | None) -> None:
        """As `put`, unless something is known of the row already: its first change counts."""
        with _Failing(self._path):
            self._file.execute(
                "INSERT OR IGNORE INTO changed VALUES (?, ?, ?, 0)", (number, key, image)
            )

    def count(self, number: int, image: bytes, copies: int) -> None:
        """Copies of a row came, or went.

        Args:
            number: The number of a table without a key.
            image: The row's image as bytes.
            copies: How many came; negative: went.
        """
        with _Failing(self._path):
            self._file.execute(
                "INSERT INTO changed VALUES (?, ?, NULL, ?)"
                " ON CONFLICT DO UPDATE SET copies = copies + excluded.copies",
                (number, image, copies),
            )

    def forget(self, number: int) -> None:
        """The table is empty from here on."""
        with _Failing(self._path):
            self._file.execute("DELETE FROM changed WHERE number = ?", (number,))

    def size(self, number: int) -> int:
        """The number of a table's keys that were changed."""
        with _Failing(self._path):
            found = self._file.execute("SELECT COUNT(*) FROM changed WHERE number = ?", (number,))
            return int(found.fetchone()[0])

    def copies(self, number: int, image: bytes) -> int:
        """The copies of an image that came, less those that went."""
        with _Failing(self._path):
            found = self._file.execute(
                "SELECT copies FROM changed WHERE number = ? AND key = ?", (number, image)
            ).fetchone()
            return 0 if found is None else int(found[0])

    def gone(self, number: int) -> int:
        """The copies of rows that went and had not come before, of a table without a key."""
        with _Failing(self._path):
            found = self._file.execute(
                "SELECT coalesce(sum(-copies), 0) FROM changed WHERE number = ? AND copies < 0",
                (number,),
            )
            return int(found.fetchone()[0])

    def has(self, number: int, key: bytes) -> bool:
        """True if a row of this key was changed."""
        with _Failing(self._path):
            found = self._file.execute(
                "SELECT 1 FROM changed WHERE number = ? AND key = ?", (number, key)
            )
            return found.fetchone() is not None

    def rows(self, number: int) -> Iterator[tuple[bytes, bytes, int]]:
        """Key, image and copies of a table's rows that are there, by growing key."""
        with _Failing(self._path):
            found = self._file.execute(
                "SELECT key, coalesce(image, key), copies FROM changed WHERE number = ?"
                " AND (image IS NOT NULL OR copies > 0) ORDER BY key",
                (number,),
            )
            yield from found

    def filter(self, number: int) -> KeyFilter:
        """A filter of a table's changed keys."""
        made = KeyFilter(self.size(number))
        with _Failing(self._path):
            for (key,) in self._file.execute("SELECT key FROM changed WHERE number = ?", (number,)):
                made.add(key)
        return made


class KeyFilter:
    """Says of a key whether it may be among those that were added, or surely is not.

    Args:
        size: The number of keys that will be added.
    """

    def __init__(self, size: int) -> None:
        length = 8
        while length < min(size * _BITS_A_KEY // 8, _FILTER_BYTES_MAX):
            length *= 2
        self._bits = bytearray(length)
        self._mask = 8 * length - 1
        self.is_empty = not size

    def add(self, key: bytes) -> None:
        """Add a key."""
        value = hash(key)
        for bit in (value & self._mask, (value >> 29) & self._mask):
            self._bits[bit >> 3] |= 1 << (bit & 7)

    def may_have(self, key: bytes) -> bool:
        """False if the key was surely not added."""
        value = hash(key)
        first, second = value & self._mask, (value >> 29) & self._mask
        bits = self._bits
        return bool(bits[first >> 3] >> (first & 7) & 1 and bits[second >> 3] >> (second & 7) & 1)


class _Failing:
    """Turns the file's errors into errors of the store."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Nothing to begin."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, sqlite3.Error):
            raise StoreError(
                f"it cannot be used: {error}",
                path=str(self._path),
                hint="check the room on the disk and who may write there",
            ) from None
