"""Streams of plain bytes out of files that gzip, xz or zstd compressed, told by their first bytes."""

from __future__ import annotations

import importlib
import io
import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import IO, Any, Final, NamedTuple, cast

from binlane.errors import StoreError

SUFFIXES: Final = (".gz", ".xz", ".zst")
_MAGIC_LENGTH_MAX: Final = 6
# Four packed bytes may say 128 KiB, and all that the packed bytes give comes at once: 32 MiB at most.
_ZSTD_BYTES: Final = 1 << 10


class Decompressed(NamedTuple):
    """A stream of plain bytes.

    Attributes:
        stream: Plain bytes; must be closed before the stream that it reads from.
        damage: Errors that reading `stream` raises where the compressed bytes are damaged.
    """

    stream: IO[bytes]
    damage: tuple[type[Exception], ...]


def decompressed(stream: io.BufferedReader, *, path: str) -> Decompressed | None:
    """The plain bytes of a compressed stream, None if it is not compressed.

    Args:
        stream: Compressed or plain bytes at their beginning; only peeked at.
        path: Path of the stream, for errors.

    Raises:
        StoreError: If the package that this compression needs is not installed.
    """
    magic = stream.peek(_MAGIC_LENGTH_MAX)[:_MAGIC_LENGTH_MAX]
    for start, opener in _OPENERS.items():
        if magic.startswith(start):
            return opener(stream, path)
    return None


def _open_gzip(stream: IO[bytes], _path: str) -> Decompressed:
    import gzip  # noqa: PLC0415  # most files are not compressed

    plain = cast("IO[bytes]", gzip.GzipFile(fileobj=stream))
    return Decompressed(plain, (EOFError, zlib.error, gzip.BadGzipFile))


def _open_xz(stream: IO[bytes], _path: str) -> Decompressed:
    import lzma  # noqa: PLC0415  # as above

    return Decompressed(lzma.LZMAFile(stream), (EOFError, lzma.LZMAError))


def _open_zstd(stream: IO[bytes], path: str) -> Decompressed:
    try:
        zstandard: Any = importlib.import_module("zstandard")
    except ModuleNotFoundError as error:
        raise StoreError(
            "the file is compressed by zstd, which needs a package that is not installed",
            path=path,
            hint="pip install zstandard, or unpack the file with `zstd -d`",
        ) from error
    plain = cast("IO[bytes]", _ZstdStream(stream, zstandard))
    return Decompressed(plain, (EOFError, zstandard.ZstdError))


class _ZstdStream(io.RawIOBase):
    """Plain bytes of zstd frames; unlike the package's own reader it notices a cut file."""

    def __init__(self, stream: IO[bytes], zstandard: Any) -> None:
        super().__init__()
        self._stream = stream
        self._new_frame: Callable[[], Any] = zstandard.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._packed = b""
        self._plain = b""

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size` of them; none at the end."""
        parts, count = [self._plain], len(self._plain)
        while (size < 0 or count < size) and (part := self._next_part()):
            parts.append(part)
            count += len(part)
        plain = b"".join(parts)
        end = len(plain) if size < 0 else size
        data, self._plain = plain[:end], plain[end:]
        return data

    def _next_part(self) -> bytes:
        """Give the plain bytes of the next packed ones; nothing at the end."""
        plain = b""
        while not plain:
            self._packed = self._packed or self._stream.read(_ZSTD_BYTES)
            if not self._packed and self._frame:
                raise EOFError("it ends inside a zstd frame")
            if not self._packed:
                break
            self._frame = self._frame or self._new_frame()
            plain = self._frame.decompress(self._packed)
            self._packed = self._frame.unused_data if self._frame.eof else b""
            self._frame = None if self._frame.eof else self._frame
        return plain

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Skip so many bytes from the beginning, where the stream must still stand."""
        assert whence == io.SEEK_SET, "only the beginning is known"
        remaining = offset
        while remaining and (data := self.read(remaining)):
            remaining -= len(data)
        return offset - remaining


_OPENERS: Final[Mapping[bytes, Callable[[IO[bytes], str], Decompressed]]] = MappingProxyType(
    {
        b"\x1f\x8b": _open_gzip,
        b"\xfd7zXZ\x00": _open_xz,
        b"\x28\xb5\x2f\xfd": _open_zstd,
    }
)
MAGICS: Final = tuple(_OPENERS)
"""Bytes with which compressed files begin."""
