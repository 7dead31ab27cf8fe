"""Sizes, heads and end times of a binlog's closed files, known without looking at each of them.

The catalog remembers them; a file that it does not know (an older store, a crash before it was
noted) is looked at once: its size, its head, and the ROTATE at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from binlane.binlogs.store.catalog import Catalog, ClosedFile
from binlane.binlogs.store.files import BinlogFile, file_name, file_number, read_head
from binlane.log.codec.event import EventHeader
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH
from binlane.log.codec.types import EventType

_ROTATE_POSITION_LENGTH: Final = 8


class FileFacts:
    """The catalog's notes on the closed files of one binlog.

    Args:
        catalog: The catalog that keeps the notes.
        log_id: Id of the binlog in the catalog.
        flavor: Flavor of the binlog's GTID positions.
    """

    def __init__(self, catalog: Catalog, log_id: int, flavor: str) -> None:
        self._catalog = catalog
        self._log_id = log_id
        self._flavor = flavor

    def known(self, directory: Path, *, after: int = 0) -> dict[str, BinlogFile]:
        """The files that are noted, by name, whose numbers are above `after`."""
        binlog = directory.name
        return {
            (name := file_name(binlog, number)): BinlogFile(
                directory=directory,
                name=name,
                size_bytes=size_bytes,
                begin_gtids=begin_gtids,
                flavor=self._flavor,
                ended=ended,
            )
            for number, size_bytes, begin_gtids, ended in self._catalog.files(
                self._log_id, after=after
            )
        }

    def save(self, files: Iterable[BinlogFile]) -> None:
        """Note closed files.

        Raises:
            StoreError: If the catalog cannot be written.
        """
        self._catalog.save_files(
            self._log_id,
            [
                ClosedFile(file.number, file.size_bytes, file.begin_gtids, file.ended or 0)
                for file in files
            ],
        )

    def forget(self, *, before: int) -> None:
        """Forget files that were purged: those with numbers below `before`.

        Raises:
            StoreError: If the catalog cannot be written.
        """
        self._catalog.forget_files(self._log_id, before=before)


def closed_files(
    directory: Path, names: Sequence[str], known: dict[str, BinlogFile]
) -> tuple[BinlogFile, ...]:
    """The closed files of a binlog; those that are not known are looked at.

    Raises:
        CorruptStoreError: If one that is not known is damaged.
    """
    return tuple(known.get(name) or closed_file(directory / name) for name in names)


def closed_file(path: Path) -> BinlogFile:
    """Read the facts of a file that is written no more.

    Raises:
        CorruptStoreError: If it does not begin as a file of a store does.
    """
    head = read_head(path)
    return BinlogFile(
        directory=path.parent,
        name=path.name,
        size_bytes=path.stat().st_size,
        begin_gtids=str(head.begin),
        flavor=head.begin.flavor,
        ended=_ended(path),
    )


def _ended(path: Path) -> int:
    """Time at which a closed file ended: that of its ROTATE, else of its last change; seconds since 1970."""
    number = file_number(path.name, binlog=path.parent.name)
    following = file_name(path.parent.name, (number or 0) + 1)
    length = HEADER_LENGTH + _ROTATE_POSITION_LENGTH + len(following.encode()) + CHECKSUM_LENGTH
    with path.open("rb") as stream:
        size_bytes = path.stat().st_size
        stream.seek(max(0, size_bytes - length))
        data = stream.read(length)
    if len(data) == length:
        header = EventHeader.decode(data[:HEADER_LENGTH])
        if header.type_code == EventType.ROTATE and header.length == length:
            return header.timestamp
    return int(path.stat().st_mtime)
