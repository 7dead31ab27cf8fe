"""The first events of a file of a store, read without reading more of the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from binlane.binlogs.store.files import FileHead
from binlane.errors import CodecError, CorruptStoreError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.grouping.walk import Walker

_HEAD_CHUNK_BYTES: Final = 4096


def read_head(path: Path) -> FileHead:
    """Read the first events of a file of a store.

    Raises:
        CorruptStoreError: If FORMAT_DESCRIPTION or the position done before is not at its beginning.
    """
    description: Event | None = None
    fault = "it ends there"
    try:
        for event in Walker(_small_chunks(path), file=str(path)).events():
            if isinstance(event.body, FormatDescriptionEvent):
                description = event
            elif description and isinstance(event.body, GtidListEvent | PreviousGtidsEvent):
                return FileHead(
                    format_description=cast("FormatDescriptionEvent", description.body),
                    begin=event.body.position,
                    server_id=description.header.server_id,
                    size_bytes=event.next_position,
                )
            else:
                fault = f"{event.header.type_name} stands at {event.position}"
                break
    except CodecError as error:
        fault = error.message
    raise CorruptStoreError(
        f"the file does not begin with FORMAT_DESCRIPTION and GTID_LIST or PREVIOUS_GTIDS: {fault}",
        path=str(path),
        hint="`binlane verify` lists every fault; restore the file from a copy",
    )


def _small_chunks(path: Path) -> Iterator[bytes]:
    """Small pieces, for the first events of a file that may be large."""
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_HEAD_CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise CorruptStoreError(
            f"cannot be read: {error.strerror or error}",
            path=str(path),
            hint="restore the file from a copy",
        ) from error
