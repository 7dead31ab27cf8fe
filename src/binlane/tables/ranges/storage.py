"""Places of a log's files, and their bytes.

A place is a path or a URI. Positions are those in the plain log: of a file that is compressed or
encrypted they are counted behind decompression and decryption, which begin at the file's beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Final, Self

from binlane.binlogs.store.byte_source import ChunkBytes, FileBytes
from binlane.binlogs.store.chunks import read_keys
from binlane.binlogs.store.log_chunks import behind, is_plain
from binlane.errors import CodecError, TruncatedError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC
from binlane.log.grouping.decryption import is_encrypted
from binlane.log.grouping.walk import Walker
from binlane.tables.ranges.filesystems import (
    ObjectBytes,
    is_remote,
    is_server,
    local_path,
    object_chunks,
    shown,
    size_of_file,
)

_HEAD_BYTES: Final = 4096


class LogBytes:
    """The bytes of a file of a log, as often as need be.

    Args:
        uri: URI or path of the file.
        position: Position in the log at which to start.
        stop: Position at which to end; None for the end of the file.
        is_plain: Whether the file is neither compressed nor encrypted.
        keys: Path of a key file, if the file is encrypted.

    Raises:
        StoreError: If the file cannot be opened.
    """

    def __init__(
        self,
        uri: str,
        *,
        position: int = 0,
        stop: int | None = None,
        is_plain: bool = True,
        keys: str | None = None,
    ) -> None:
        self._source = _source(uri, is_plain=is_plain, keys=keys)
        self._stop = stop
        self.bytes_read = 0
        self.reread(position)

    def read_into(self, view: memoryview) -> int:
        """Read at most as many bytes as fit; 0 at the end."""
        if self._stop is not None:
            view = view[: max(self._stop - self._at, 0)]
        if not view:
            return 0
        length = self._source.read_into(view)
        self._at += length
        self.bytes_read += length
        return length

    def reread(self, position: int) -> Self:
        """Go to another position, and give itself."""
        self._source.reread(position)
        self._at = position
        return self

    @property
    def position(self) -> int:
        """Position of the next byte in the log."""
        return self._at

    def close(self) -> None:
        """Close the file."""
        self._source.close()


class _Chunked:
    """Bytes that come in pieces from any position on, such as those of a dump.

    Args:
        chunks_from: Gives the bytes from a position on, in pieces.
    """

    def __init__(self, chunks_from: Callable[[int], Iterator[bytes]]) -> None:
        self._chunks_from = chunks_from
        self._chunks: Iterator[bytes] = iter(())
        self._bytes = ChunkBytes(())

    def read_into(self, view: memoryview) -> int:
        return self._bytes.read_into(view)

    def reread(self, position: int) -> _Chunked:
        self.close()
        self._chunks = self._chunks_from(position)
        self._bytes = ChunkBytes(self._chunks)
        return self

    def close(self) -> None:
        if isinstance(self._chunks, Generator):
            self._chunks.close()


def _source(uri: str, *, is_plain: bool, keys: str | None) -> FileBytes | ObjectBytes | _Chunked:
    """Whatever gives the bytes of a place."""
    if is_server(uri):
        from binlane.tables.ranges.served_logs import ServerPlace  # noqa: PLC0415 - files do without a client

        return _Chunked(ServerPlace.parse(uri).chunks)
    if is_remote(uri):
        if is_plain:
            return ObjectBytes(uri)
        return _Chunked(lambda position: behind(object_chunks(uri, keys=keys), position))
    ring = None if keys is None else read_keys(keys)
    path = local_path(uri)
    return FileBytes(path) if is_plain else FileBytes.of_log(path, keys=ring)


def small_chunks(source: LogBytes) -> Iterator[bytes]:
    """Small pieces, for the first events of a file that may be large."""
    piece = bytearray(_HEAD_BYTES)
    while length := source.read_into(memoryview(piece)):
        yield bytes(piece[:length])


def head_event(uri: str, *, is_plain: bool, keys: str | None = None) -> Event:
    """The FORMAT_DESCRIPTION of a file.

    Raises:
        CodecError: As `first_events`.
        StoreError: If the file cannot be read.
    """
    with closing(LogBytes(uri, is_plain=is_plain, keys=keys)) as source:
        return next(first_events(source, uri))


def first_events(source: LogBytes, uri: str) -> Iterator[Event]:
    """The events of a file, the first of which is its FORMAT_DESCRIPTION.

    Args:
        source: Bytes of the file, from their beginning.
        uri: URI of the file, for messages.

    Raises:
        TruncatedError: If the file ends before it does: its server is making it.
        CodecError: With URI and position, if the file does not begin with one.
        StoreError: If the file cannot be read.
    """
    chunks = small_chunks(source)
    chunk = b""
    for more in chunks:
        chunk += more
        if len(chunk) > len(MAGIC):
            break
    if len(chunk) <= len(MAGIC) and MAGIC.startswith(chunk):
        raise TruncatedError(
            "no event is there yet", hint="the file was cut, or its server is making it"
        ).at(named(uri), 0)
    events = Walker(chain((chunk,), chunks), file=named(uri)).events()
    first = next(events)
    if not isinstance(first.body, FormatDescriptionEvent):
        raise CodecError(
            f"FORMAT_DESCRIPTION is expected, {first.header.type_name} is there",
            hint="name a binlog file from its beginning",
        ).at(named(uri), len(MAGIC))
    yield first
    yield from events


def bytes_before(uri: str, position: int, count: int) -> bytes:
    """The last bytes of a plain file before a position; fewer if there are no more, none of a server.

    Raises:
        StoreError: If the file cannot be read.
    """
    if is_server(uri):
        return b""  # a dump begins where an event does
    with closing(LogBytes(uri, position=max(position - count, 0), stop=position)) as source:
        return b"".join(small_chunks(source))


def size_of(uri: str) -> int | None:
    """Bytes of a file; None if it is gone, or a server's."""
    if is_server(uri):
        return None
    if is_remote(uri):
        return size_of_file(uri)
    with suppress(OSError):
        return Path(local_path(uri)).stat().st_size
    return None


def named(uri: str) -> str:
    """A place as messages name it, without accounts, passwords and options."""
    if not is_server(uri):
        return shown(uri)
    from binlane.tables.ranges.served_logs import ServerPlace  # noqa: PLC0415 - as above

    return str(ServerPlace.parse(uri))


def is_plain_file(uri: str) -> bool:
    """True if positions in a file are positions in the log: it is neither compressed nor encrypted.

    Raises:
        StoreError: If the file cannot be read.
    """
    if is_server(uri):
        return True
    if not is_remote(uri):
        path = Path(local_path(uri))
        return path.stat().st_size < len(MAGIC) or is_plain(path)
    with closing(ObjectBytes(uri)) as source:
        buffer = bytearray(_HEAD_BYTES)
        head = bytes(buffer[: source.read_into(memoryview(buffer))])
    return MAGIC.startswith(head[: len(MAGIC)]) and not is_encrypted(head)
