"""Places of a landing's files below the target's URI, and paths from names of tables."""

from __future__ import annotations

import re
import uuid
from contextlib import suppress
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from pyarrow import fs

from binlane.errors import ConfigError
from binlane.names import TableName
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.ranges.filesystems import shown

FOLDER: Final = "_binlane"
"""Folder of the files that landing keeps beside the tables."""
_HINT: Final = "name a directory, or a URI such as s3://bucket/lake"
_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")
_IN_URIS: Final = "%:/?#[]@!$&'()*+,;="
_PLAIN: Final = frozenset("_-$ .")
_ENCODED: Final = re.compile("@([0-9a-f]{4})")


@lru_cache(maxsize=64)
def resolve(uri: str) -> tuple[fs.FileSystem, str]:
    """File system and path of a URI or local path.

    Raises:
        ConfigError: If nothing can be reached under it.
    """
    try:
        uri.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"{uri!r} is no place for tables: it is not UTF-8", key="into", hint=_HINT
        ) from None
    try:
        # Names of tables may hold blanks and letters of any script.
        escaped = quote(uri, safe=_IN_URIS) if "://" in uri else uri
        filesystem, path = fs.FileSystem.from_uri(escaped)
    except ValueError as error:
        if _SCHEME.match(uri):
            what = str(error).partition(":")[0]
            raise ConfigError(
                f"{shown(uri)} is no place for tables: {what}", key="into", hint=_HINT
            ) from None
        filesystem, path = fs.LocalFileSystem(), uri
    except OSError as error:
        raise ConfigError(f"{uri} cannot be reached: {error}", key="into") from error
    if not path:
        raise ConfigError(f"{shown(uri)} names no place", key="into", hint=_HINT)
    return filesystem, str(path).rstrip("/")


def table_uri(into: str, mode: Mode, table: TableName) -> str:
    """The directory of a table."""
    return f"{into.rstrip('/')}/{mode.value}/{segment(table.database)}/{segment(table.table)}"


def staging_uri(into: str, run_id: str) -> str:
    """Return the folder of a landing for files that only its own batch needs."""
    return f"{into.rstrip('/')}/{FOLDER}/staging/{run_id}"


def snapshot_uri(into: str, snapshot_id: str) -> str:
    """Return the folder in which the rows of a table's snapshot wait until they are landed."""
    return f"{into.rstrip('/')}/{FOLDER}/snapshots/{snapshot_id}"


def segment(name: str) -> str:
    """A name as one segment of a path, as the servers name files: `@0022` for a quotation mark.

    Unlike the servers' form it leaves letters of any script, and blanks and hyphens, as they are. A
    percent-encoded name would be decoded by delta-rs.
    """
    if set(name) <= {"."}:
        return name.replace(".", "@002e")
    if name == "_delta_log":  # no directory of a table: Delta's readers would take it for a log
        return "@005fdelta_log"
    return "".join(
        character if character.isalnum() or character in _PLAIN else _code_units(character)
        for character in name
    )


def _code_units(character: str) -> str:
    data = character.encode("utf-16-be")
    return "".join(f"@{data[i : i + 2].hex()}" for i in range(0, len(data), 2))


def name_of(path_segment: str) -> str:
    """Exact inverse of `segment`."""
    decoded = _ENCODED.sub(lambda match: chr(int(match[1], 16)), path_segment)
    return decoded.encode("utf-16", "surrogatepass").decode("utf-16")


def file_name(table_format: FormatName, run_id: str) -> str:
    """The path of a new file of a table, relative to the table's directory.

    Readers of a plain directory pass over names that begin with `_`; a commit takes that away.
    """
    hidden = "_" if table_format is FormatName.PARQUET else ""
    return f"{hidden}{run_id}-{uuid.uuid4().hex}.parquet"


def forget_batch(into: str, run_id: str) -> None:
    """Remove the staged runs of a batch, which nobody needs once its tables are committed."""
    filesystem, path = resolve(staging_uri(into, run_id))
    with suppress(FileNotFoundError):
        filesystem.delete_dir(path)


def sweep(into: str, dead_run_id: str) -> None:
    """Remove what a driver left that died, all of whose works are to be done again.

    Args:
        into: URI or path of the target, which the caller holds.
        dead_run_id: Names the driver; empty if the last one ended well.
    """
    if dead_run_id:
        filesystem, path = resolve(f"{into}/{FOLDER}/staging")
        with suppress(FileNotFoundError):
            filesystem.delete_dir_contents(path)
