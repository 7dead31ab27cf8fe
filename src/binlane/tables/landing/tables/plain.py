"""Tables as plain Parquet: all files of a directory are the table's, to any reader of Parquet.

`_manifest.json` says which files are live, what their columns are and up to where in the log they
are complete; it is replaced as a whole, and that is the commit. Then the directory is brought to
what it says: new files lose the `_` before their names, which readers pass over, and dead ones are
deleted. If that is interrupted, whoever opens the table next goes on with it.

New files appear before dead ones go, so that whoever lists the directory in that moment may see rows
twice, never too few; at rest the directory is the table. A table without rows has one file without
rows, for its columns. Every file has all columns, since few readers look for them in several.
"""

from __future__ import annotations

import base64
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

from binlane.errors import StoreError
from binlane.names import TableName
from binlane.tables.landing.journal import read_json, write_json
from binlane.tables.landing.range_work import DataFile, FormatName, Mode
from binlane.tables.landing.table_files import write_file
from binlane.tables.landing.tables.bounds import LiveFile
from binlane.tables.landing.tables.formats import Snapshot, TableCommit, after, told_of
from binlane.tables.landing.tables.table_directories import Directories

MANIFEST: Final = "_manifest.json"
_VERSION: Final = 1
_OURS: Final = re.compile(r"[0-9a-z-]+-[0-9a-f]{32}\.parquet$")
"""Names of files that are left of a table that was being dropped."""


class PlainFormat:
    """The plain Parquet tables of one kind.

    Args:
        into: URI or path of the target.
        mode: The kind of tables that are kept.
        app_id: Name of the landing in the manifests.
    """

    format = FormatName.PARQUET
    may_lack_columns = False

    def __init__(self, into: str, mode: Mode, app_id: str) -> None:
        self._directories = Directories(into, mode, MANIFEST)
        self._app_id = app_id
        # Details of files, as JSON has them, that are not known from the path.
        self._details: dict[TableName, dict[str, dict[str, Any]]] = {}

    def uri(self, table: TableName) -> str:
        """The directory of a table."""
        return self._directories.uri(table)

    def names(self) -> Iterator[TableName]:
        """The tables there are."""
        return self._directories.names()

    def load(self, table: TableName) -> Snapshot | None:
        """A table as it is now; None if there is none."""
        folder = self._directories.uri(table)
        manifest = read_json(folder, MANIFEST)
        if manifest is None:
            return None
        if manifest["version"] != _VERSION:
            raise StoreError(
                f"its manifest has version {manifest['version']}",
                path=f"{folder}/{MANIFEST}",
                hint="use the binlane that wrote it",
            )
        self._settle(table, manifest)
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(manifest["schema"])))
        self._details[table] = {file["path"]: file for file in manifest["files"]}
        applied = manifest["applied"].get(self._app_id, 0)
        return Snapshot(
            schema=schema,
            applied=applied,
            images=manifest.get("images", {}).get(self._app_id, None if applied else 0),
            files={file["path"]: _live(file, schema) for file in manifest["files"]},
            version=manifest["commits"],
        )

    def create(self, table: TableName, schema: pa.Schema) -> None:
        """Make a table without rows."""
        if not self._directories.exists(table):
            self._see_ours(table)
            self._write(table, Snapshot(schema=schema, images=0), [], [], {})

    def commit(self, table: TableName, now: Snapshot, change: TableCommit) -> Snapshot:
        """Change a table, all at once."""
        if table not in self._details:
            self.load(table)
        known = self._details[table]
        added = {}
        for file in change.add:
            shown = file.path.removeprefix("_")
            added[shown] = LiveFile.of(file, path=shown)
            known[shown] = {
                "path": shown,
                "rows": file.rows,
                "size_bytes": file.size_bytes,
                "stats": file.stats,
            }
        later = after(now, change, added)
        show = [file.path for file in change.add]
        self._write(table, later, show, change.remove, told_of(change))
        for path in change.remove:
            known.pop(path, None)
        return later

    def drop(self, table: TableName) -> None:
        """Remove a table with all its files, if there is one."""
        self._details.pop(table, None)
        if not self._directories.exists(table):
            self._see_ours(table)
        self._directories.drop(table)

    def rename(self, old: TableName, new: TableName) -> None:
        """Give a table another name, in the place of one that has it."""
        for table in (old, new):
            self._details.pop(table, None)
        self._directories.rename(old, new)

    def vacuum(self, table: TableName, keep_hours: float) -> int:
        """Delete what tasks left that were never committed; dead files are gone already."""
        filesystem = self._directories.filesystem
        before = time.time() - keep_hours * 3600
        gone = 0
        selector = fs.FileSelector(self._directories.path(table), allow_not_found=True)
        for info in filesystem.get_file_info(selector):
            is_orphan = info.base_name.startswith("_") and info.base_name.endswith(".parquet")
            if is_orphan and info.mtime is not None and info.mtime.timestamp() < before:
                filesystem.delete_file(info.path)
                gone += 1
        return gone

    def storable(self, schema: pa.Schema) -> pa.Schema:
        """The schema that a table has that was made with another one; Parquet takes any."""
        return pa.schema(
            [
                field.with_type(pa.string()) if pa.types.is_null(field.type) else field
                for field in schema.remove_metadata()
            ]
        )

    def _write(
        self,
        table: TableName,
        now: Snapshot,
        show: Sequence[str],
        hide: Sequence[str],
        told: Mapping[str, str],
    ) -> None:
        """Commit a change: files that appear and files that go."""
        folder = self._directories.uri(table)
        known = self._details.setdefault(table, {})
        show, hide = list(show), list(hide)
        if not now.rows:
            name = f"_empty-{uuid.uuid4().hex}.parquet"
            write_file(now.schema.empty_table(), folder, name, [])
            show.append(name)
        hide += [path for path in self._markers(table) if f"_{path}" not in show]
        manifest = {
            "version": _VERSION,
            "commits": now.version,
            "applied": {self._app_id: now.applied},
            "images": {} if now.images is None else {self._app_id: now.images},
            "schema": base64.b64encode(now.schema.serialize()).decode(),
            "files": [known[path] for path in now.files],
            "show": show,
            "hide": hide,
            "last": told,
        }
        write_json(folder, MANIFEST, manifest)
        self._settle(table, manifest)

    def _see_ours(self, table: TableName) -> None:
        """See that a directory without a manifest shows no files, which readers take for the table's.

        Raises:
            StoreError: If it shows some.
        """
        selector = fs.FileSelector(self._directories.path(table), allow_not_found=True)
        names = [each.base_name for each in self._directories.filesystem.get_file_info(selector)]
        shown = sorted(name for name in names if name[0] not in "._" and not _OURS.match(name))
        if shown:
            raise StoreError(
                f"its directory has files that are somebody else's: {', '.join(shown[:3])}",
                path=self._directories.uri(table),
                hint="move them elsewhere",
            )

    def _markers(self, table: TableName) -> list[str]:
        """Files without rows that the directory shows."""
        selector = fs.FileSelector(self._directories.path(table), allow_not_found=True)
        names = (each.base_name for each in self._directories.filesystem.get_file_info(selector))
        return [name for name in names if name.startswith("empty-")]

    def _settle(self, table: TableName, manifest: Mapping[str, Any]) -> None:
        """Bring the directory to what its manifest says, as far as it is not."""
        filesystem, folder = self._directories.filesystem, self._directories.path(table)
        try:
            hidden = [f"{folder}/{name}" for name in manifest["show"]]
            for info in filesystem.get_file_info(hidden):
                if info.type is fs.FileType.File:
                    filesystem.move(info.path, f"{folder}/{info.base_name.removeprefix('_')}")
            dead = [f"{folder}/{name}" for name in manifest["hide"]]
            for info in filesystem.get_file_info(dead):
                if info.type is fs.FileType.File:
                    filesystem.delete_file(info.path)
        except OSError as error:
            raise StoreError(
                f"{table.plain} cannot be written: {error}",
                path=folder,
                hint="check who may write there; landing again goes on with it",
            ) from error


def _live(file: Mapping[str, Any], schema: pa.Schema) -> LiveFile:
    return LiveFile.of(
        DataFile(
            path=file["path"],
            rows=file["rows"],
            size_bytes=file["size_bytes"],
            schema=schema,
            stats=file["stats"],
        )
    )
