"""The files that LOAD DATA statements in a log have loaded, written out so that they can be again."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

from binlane.errors import CodecError, StoreError


class LoadFiles:
    """The files of LOAD DATA by id, written as their blocks come.

    Args:
        directory: Directory of the files; the system's for temporary files by default.
    """

    def __init__(self, directory: Path | None) -> None:
        self._given = directory
        self._paths: dict[int, Path] = {}

    @property
    def _directory(self) -> Path:
        if self._given is not None:
            return self._given
        import tempfile  # noqa: PLC0415  # few logs load files

        return Path(tempfile.gettempdir())

    def write(self, file_id: int, data: bytes, *, is_first: bool) -> None:
        """Append a block to its file.

        Raises:
            StoreError: If the file cannot be written.
            CodecError: If a further block has no first one.
        """
        if not is_first:
            with Path(self.path_of(file_id)).open("ab") as file:
                file.write(data)
            return
        try:
            path = self._create(file_id, data)
        except OSError as error:
            raise StoreError(
                f"the file of a LOAD DATA statement cannot be written: {error.strerror or error}",
                path=str(self._directory),
                hint="name another directory with --local-load",
            ) from error
        self._paths[file_id] = path

    def _create(self, file_id: int, data: bytes) -> Path:
        """A new file of our own, named as the official tools do: the first name that is free."""
        for number in count():
            path = self._directory / f"SQL_LOAD_MB-{file_id:x}-{number:x}"
            try:
                descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            except FileExistsError:
                continue
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            return path
        raise AssertionError("names do not run out")

    def path_of(self, file_id: int) -> str:
        """Give the path of a file that was written.

        Raises:
            CodecError: If the log has no block of the file.
        """
        path = self._paths.get(file_id)
        if path is None:
            raise CodecError(
                f"file {file_id} of LOAD DATA has no first block",
                hint="start at its BEGIN_LOAD_QUERY event",
            )
        return str(path)
