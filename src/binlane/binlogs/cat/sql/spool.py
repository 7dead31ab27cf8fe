"""Lines in a temporary file that are read in the reverse order of writing."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from binlane.errors import StoreError

_LENGTH_BYTES: Final = 8
_BLOCK_BYTES: Final = 1 << 20


class Spool:
    """Lines in a file, each with its length behind it, so that they can be read from the end.

    Attributes:
        size: Bytes so far; a place to cut back to.

    Args:
        directory: Directory of the file; the system's directory for temporary files by default.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self.size = 0
        try:
            # Without a name: it is gone as soon as this process is.
            self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115  # closed below
        except OSError as error:
            raise self._error(error) from error
        # The file is closed, too, if its writer gives up.
        weakref.finalize(self, self._file.close)

    def add(self, line: str) -> None:
        """Write one line.

        Raises:
            StoreError: If there is no room.
        """
        data = line.encode("utf-8", "surrogateescape")
        data += len(data).to_bytes(_LENGTH_BYTES, "little")
        try:
            self._file.write(data)
        except OSError as error:
            raise self._error(error) from error
        self.size += len(data)

    def cut(self, size: int) -> None:
        """Forget everything that was written after `size` was this."""
        self._file.seek(size)
        self._file.truncate()
        self.size = size

    def backwards(self) -> Iterator[str]:
        """All lines, last one first.

        Raises:
            StoreError: If what is still in memory cannot be written.
        """
        try:
            self._file.flush()
        except OSError as error:
            raise self._error(error) from error
        end = self.size
        while end:
            start = max(0, end - _BLOCK_BYTES)
            block = self._read(start, end)
            length = int.from_bytes(block[-_LENGTH_BYTES:], "little")
            if length + _LENGTH_BYTES > len(block):
                start = end - _LENGTH_BYTES - length
                block = self._read(start, end)
            stop = len(block)
            while stop:
                length = int.from_bytes(block[stop - _LENGTH_BYTES : stop], "little")
                first = stop - _LENGTH_BYTES - length
                if stop < _LENGTH_BYTES or first < 0:
                    break
                yield block[first : stop - _LENGTH_BYTES].decode("utf-8", "surrogateescape")
                stop = first
            end = start + stop

    def close(self) -> None:
        """Give the file's room back."""
        self._file.close()

    def _read(self, start: int, end: int) -> bytes:
        self._file.seek(start)
        return self._file.read(end - start)

    def _error(self, error: OSError) -> StoreError:
        return StoreError(
            f"the temporary file cannot be written: {error.strerror or error}",
            path=str(self._directory or tempfile.gettempdir()),
            hint="make room there, or set TMPDIR to another directory",
        )
