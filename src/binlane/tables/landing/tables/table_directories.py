"""The directories of a target's tables: `URI/<kind>/<database>/<table>`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pyarrow import fs

from binlane.names import TableName
from binlane.tables.landing.range_work import Mode
from binlane.tables.landing.target_files import name_of, resolve, table_uri


def drop_empty_above(filesystem: fs.FileSystem, path: str) -> None:
    """Remove the directories of a table's database and kind that have no other tables."""
    if isinstance(filesystem, fs.LocalFileSystem):
        with suppress(OSError):  # it is not empty
            for directory in list(Path(path).parents)[:2]:
                directory.rmdir()


class Directories:
    """The directories of the tables of one kind.

    Args:
        into: URI or path of the target.
        mode: The kind of tables that are kept.
        marker: A file or directory in those directories that are tables.
    """

    def __init__(self, into: str, mode: Mode, marker: str) -> None:
        self._into = into.rstrip("/")
        self._mode = mode
        self._marker = marker
        self.filesystem, self._root = resolve(self._into)

    def uri(self, table: TableName) -> str:
        """The directory of a table."""
        return table_uri(self._into, self._mode, table)

    def path(self, table: TableName) -> str:
        """The table's directory as a path in the file system."""
        return table_uri(self._root, self._mode, table)

    def names(self) -> Iterator[TableName]:
        """The tables there are."""
        root = f"{self._root}/{self._mode.value}"
        for database in self._below(root):
            for table in self._below(f"{root}/{database}"):
                name = TableName(name_of(database), name_of(table))
                if self.exists(name):
                    yield name

    def exists(self, table: TableName) -> bool:
        """True if the table's directory has the marker."""
        info = self.filesystem.get_file_info(f"{self.path(table)}/{self._marker}")
        return bool(info.type is not fs.FileType.NotFound)

    def drop(self, table: TableName) -> None:
        """Remove a table with all its files, if there is one.

        The marker that makes it a table goes first, so that half a table is none.
        """
        path = self.path(table)
        if self.filesystem.get_file_info(path).type is fs.FileType.NotFound:
            return
        marker = self.filesystem.get_file_info(f"{path}/{self._marker}")
        if marker.type is fs.FileType.File:
            self.filesystem.delete_file(marker.path)
        elif marker.type is fs.FileType.Directory:
            self.filesystem.delete_dir(marker.path)
        self.filesystem.delete_dir(path)
        drop_empty_above(self.filesystem, path)

    def rename(self, old: TableName, new: TableName) -> None:
        """Give a table another name; if it has it already, nothing happens."""
        if not self.exists(old):
            return
        self.drop(new)
        source, target = self.path(old), self.path(new)
        self.filesystem.create_dir(target.rpartition("/")[0], recursive=True)
        if isinstance(self.filesystem, fs.LocalFileSystem):
            self.filesystem.move(source, target)
            return
        # Object stores have no directories to rename.
        fs.copy_files(
            source,
            target,
            source_filesystem=self.filesystem,
            destination_filesystem=self.filesystem,
        )
        self.drop(old)

    def _below(self, path: str) -> Iterator[str]:
        selector = fs.FileSelector(path, allow_not_found=True)
        for info in self.filesystem.get_file_info(selector):
            if info.type is fs.FileType.Directory:
                yield info.base_name
