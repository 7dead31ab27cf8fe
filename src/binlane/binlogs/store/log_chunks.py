"""The bytes of a log, whether its file is compressed, encrypted, or as a server writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from binlane.binlogs.store.chunks import STDIN, open_chunks, unreadable
from binlane.log.codec.format import MAGIC
from binlane.log.grouping.decryption import is_encrypted, plain_chunks

if TYPE_CHECKING:
    from binlane.log.codec.encryption import KeyRing

_HEAD_BYTES: Final = 4096


def log_chunks(
    path: str | Path, *, position: int = 0, keys: KeyRing | None = None, file: str | None = None
) -> Iterator[bytes]:
    """The bytes of a log, decrypted where they are encrypted, in pieces of any size.

    Args:
        path: A path, or `-`, as `open_chunks` takes it.
        position: Start, in bytes of the plain log.
        keys: Keys of encrypted logs; None if the user gave none.
        file: The name that messages shall give, if not `path`.

    Raises:
        StoreError: If the file cannot be read.
        CorruptStoreError: If its compression is damaged.
        UnsupportedError: If the log is encrypted and its key is not there or another one.
    """
    if is_plain(path):
        return open_chunks(path, position=position)
    return behind(plain_chunks(open_chunks(path), file=file or str(path), keys=keys), position)


def is_plain(path: str | Path) -> bool:
    """True if positions in a file are positions in the log: neither compressed nor encrypted.

    Raises:
        StoreError: If the file cannot be read.
    """
    if str(path) == STDIN or not Path(path).is_file():
        return False
    try:
        with Path(path).open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError as error:
        raise unreadable(path, error) from error
    return head.startswith(MAGIC) and not is_encrypted(head)


def behind(chunks: Iterable[bytes], position: int) -> Iterator[bytes]:
    """The bytes from a position on."""
    for chunk in chunks:
        if position < len(chunk):
            yield chunk[position:]
        position = max(0, position - len(chunk))
