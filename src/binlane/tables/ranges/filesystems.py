"""Files on any file system that `pyarrow.fs` opens: `s3://`, `gs://`, `hdfs://` and the like.

The options of a file system stand in the query of a URI (`?endpoint_override=…&region=…`) or in its
environment. Messages give a URI without query and account.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from io import BufferedReader, RawIOBase
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from binlane.binlogs.store.chunks import read_keys, stream_chunks
from binlane.errors import ConfigError, StoreError
from binlane.log.grouping.decryption import plain_chunks

_READ_BYTES_MIN: Final = 1 << 16
_READ_BYTES_MAX: Final = 8 << 20


def is_server(place: str) -> bool:
    """True if a place is a server, or a file of its log."""
    return place.startswith(("mariadb://", "mysql://"))


def is_remote(uri: str) -> bool:
    """True if a place is a URI of a file system other than the local one."""
    return "://" in uri and not uri.startswith("file://")


def local_path(uri: str) -> str:
    """The path of a place on the local file system."""
    return uri.removeprefix("file://")


def shown(uri: str) -> str:
    """A URI as messages name it: without account and options."""
    if not is_remote(uri):
        return uri
    try:
        parts = urlsplit(uri)
    except ValueError:  # whatever stands in it
        return f"{uri.partition('://')[0]}://…"
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", parts.fragment))


def child(uri: str, name: str) -> str:
    """The URI of what lies in a directory."""
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}"))


def parent(uri: str) -> tuple[str, str]:
    """The URI of a directory, and the name in it."""
    parts = urlsplit(uri)
    folder, _, name = parts.path.rpartition("/")
    return urlunsplit(parts._replace(path=folder)), name


def listed(uri: str) -> dict[str, int] | None:
    """Names and sizes of the files in a directory; None if it is none.

    Raises:
        ConfigError: If nothing opens such a URI.
        StoreError: If the file system cannot be reached.
    """
    from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - local files do without

    system, path = opened(uri)
    try:
        found = system.get_file_info(FileSelector(path, recursive=False))
    except FileNotFoundError:
        return None
    except (OSError, NotImplementedError) as error:
        if system.get_file_info(path).type is FileType.File:
            return None
        raise unreadable(uri, error) from None
    return {info.base_name: info.size for info in found if info.type is FileType.File}


def size_of_file(uri: str) -> int | None:
    """Bytes of a file; None if there is none.

    Raises:
        ConfigError: If nothing opens such a URI.
        StoreError: If the file system cannot be reached.
    """
    from pyarrow.fs import FileType  # noqa: PLC0415 - as above

    system, path = opened(uri)
    try:
        info = system.get_file_info(path)
    except OSError as error:
        raise unreadable(uri, error) from None
    return info.size if info.type is FileType.File else None


def opened(uri: str) -> tuple[Any, str]:
    """The file system of a URI, and the path in it.

    Raises:
        ConfigError: If nothing opens such a URI.
    """
    parts = urlsplit(uri)
    system, base = _system(urlunsplit(parts._replace(path="/-", fragment="")))
    return system, base.removesuffix("/-") + parts.path


@lru_cache(maxsize=64)
def _system(uri: str) -> tuple[Any, str]:
    from pyarrow import ArrowException  # noqa: PLC0415 - as above
    from pyarrow.fs import FileSystem  # noqa: PLC0415 - as above

    try:
        system, path = FileSystem.from_uri(uri)
    except (ArrowException, ValueError, OSError) as error:
        raise ConfigError(
            # Arrow's own text goes on with the whole URI.
            f"{shown(uri).removesuffix('/-')} cannot be opened: {str(error).partition(':')[0]}",
            key="path",
            hint="write a path, or a URI that pyarrow.fs opens: s3://bucket/logs/?region=…",
        ) from None
    return system, path


class ObjectBytes:
    """The bytes of a plain file, by large ranged reads; the first is small.

    Args:
        uri: The URI of the plain file.

    Raises:
        StoreError: If the file cannot be opened.
    """

    def __init__(self, uri: str) -> None:
        self._uri = uri
        system, path = opened(uri)
        try:
            self._file = system.open_input_file(path)
            self._size: int = self._file.size()
        except OSError as error:
            raise unreadable(uri, error) from None
        self._at = 0
        self._held = memoryview(b"")
        self._read_bytes = _READ_BYTES_MIN

    def read_into(self, view: memoryview) -> int:
        """Read at most as many bytes as fit; 0 at the end.

        Raises:
            StoreError: If they cannot be read.
        """
        if not self._held:
            count = min(self._read_bytes, self._size - self._at)
            if count <= 0:
                return 0
            try:
                self._held = memoryview(self._file.read_at(count, self._at))
            except OSError as error:
                raise unreadable(self._uri, error) from None
            self._at += len(self._held)
            self._read_bytes = min(4 * self._read_bytes, _READ_BYTES_MAX)
        length = min(len(view), len(self._held))
        view[:length] = self._held[:length]
        self._held = self._held[length:]
        return length

    def reread(self, position: int) -> ObjectBytes:
        """Go to another position, and give itself."""
        self._at = position
        self._held = memoryview(b"")
        self._read_bytes = _READ_BYTES_MIN
        return self

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def object_chunks(uri: str, *, keys: str | None) -> Iterator[bytes]:
    """The bytes of a log, decompressed and decrypted, from its beginning.

    Raises:
        StoreError: If it cannot be read.
        CorruptStoreError: If its compression is damaged.
        UnsupportedError: If it is encrypted, and its key is missing.
    """
    with closing(ObjectBytes(uri)) as source:
        ring = None if keys is None else read_keys(keys)
        chunks = stream_chunks(BufferedReader(_Raw(source)), shown(uri))
        yield from plain_chunks(chunks, file=shown(uri), keys=ring)


class _Raw(RawIOBase):
    """A file as Python's own readers take it."""

    def __init__(self, source: ObjectBytes) -> None:
        super().__init__()
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._source.read_into(memoryview(buffer))


def unreadable(uri: str, error: Exception) -> StoreError:
    """A file or file system cannot be reached."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return StoreError(
        f"cannot be read: {reason}",
        path=shown(uri),
        hint="check the name, who may read it, and the file system's options in URI and environment",
    )
