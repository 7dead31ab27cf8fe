"""The bytes of any file, compressed or not, in pieces; imports little, so that `cat` starts at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from binlane.binlogs.store.decompression import SUFFIXES, decompressed
from binlane.errors import ConfigError, CorruptStoreError, StoreError

if TYPE_CHECKING:
    from binlane.log.codec.encryption import KeyRing

CHUNK_BYTES: Final = 1 << 20
STDIN: Final = "-"


def base_name(path: str | Path) -> str:
    """The name of a file as logs give it: without directory and compression suffix."""
    name = Path(path).name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def read_keys(path: str | Path) -> KeyRing:
    """The keys of a key file, for `--encryption-keys`.

    Raises:
        StoreError: If the file cannot be read.
        ConfigError: If it is no key file of MariaDB or MySQL.
    """
    from binlane.log.codec.encryption import KeyRing  # noqa: PLC0415  # few files are encrypted

    try:
        return KeyRing.parse(b"".join(open_chunks(path)))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}", key=error.key, hint=error.hint) from None


def open_chunks(path: str | Path, *, position: int = 0) -> Iterator[bytes]:
    """The bytes of a file in pieces of at most 1 MiB.

    Args:
        path: A file, plain or compressed by gzip, xz or zstd (told by its first bytes); `-` is
            standard input.
        position: Start, in bytes of the uncompressed file.

    Raises:
        StoreError: If the file cannot be read.
        CorruptStoreError: If its compression is damaged.
    """
    with ExitStack() as stack:
        try:
            is_stdin = str(path) == STDIN
            plain = sys.stdin.buffer if is_stdin else stack.enter_context(Path(path).open("rb"))
        except OSError as error:
            raise unreadable(path, error) from error
        yield from stream_chunks(cast("BufferedReader", plain), str(path), position=position)


def stream_chunks(plain: BufferedReader, path: str, *, position: int = 0) -> Iterator[bytes]:
    """The bytes of a stream in pieces of at most 1 MiB.

    Args:
        plain: The stream at its beginning; compressed or not.
        path: Path of the stream, for errors.
        position: Start, in bytes of the uncompressed stream.

    Raises:
        StoreError: If the stream cannot be read.
        CorruptStoreError: If its compression is damaged.
    """
    damage: tuple[type[Exception], ...] = ()
    try:
        with ExitStack() as stack:
            stream: IO[bytes] = plain
            if unpacked := decompressed(plain, path=path):
                stream, damage = stack.enter_context(unpacked.stream), unpacked.damage
            if position:
                stream.seek(position)
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
    except damage as error:
        raise CorruptStoreError(
            f"the compressed file is damaged: {error}",
            path=path,
            hint="fetch it again from its source",
        ) from error
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: str | Path, error: OSError) -> StoreError:
    """A file cannot be opened or read."""
    return StoreError(
        f"cannot be read: {error.strerror or error}",
        path=str(path),
        hint="check the name and who may read it",
    )
