"""Checks that a log still holds the place where a reader stands, and errors if it does not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from binlane.errors import StoreError
from binlane.log.codec.format import CHECKSUM_LENGTH
from binlane.positions import Position
from binlane.tables.ranges.known_facts import KnownFacts
from binlane.tables.ranges.log_file_facts import LogFileFacts
from binlane.tables.ranges.log_range import Offset
from binlane.tables.ranges.log_sources import log_name
from binlane.tables.ranges.storage import bytes_before, named
from binlane.tables.ranges.stored_files import StoredLogFile

_ANEW: Final = "start anew with an empty checkpoint and target"


def check_place(files: Sequence[StoredLogFile], place: Offset, known: KnownFacts) -> None:
    """See that a log is the one in which an offset stands, and holds it.

    Raises:
        StoreError: If not: purged, reset, cut, another server's, another log; with what to do.
        CodecError: If the file does not begin as a binlog file.
    """
    file = next((file for file in files if file.name == place.file), None)
    if file is None:
        raise _not_there(files, place)
    if place.server is not None and file.server is not None and place.server != file.server:
        raise _another_server(file, place, file.server, place.server)
    if not place.fingerprint:
        return
    first = known.first(file)
    if first.fingerprint != place.fingerprint:
        raise _another(file, first, place)
    if not file.is_plain:
        return
    if place.position > file.size_bytes:
        raise StoreError(
            f"{file.name} ends at {file.size_bytes}; this reader stands at {place.position}",
            path=named(file.uri),
            hint="the file became shorter: was its disk lost in a crash, or is it a copy that "
            f"is not whole yet? Bring the whole file back, or {_ANEW}",
        )
    if place.check and place.check != bytes_before(file.uri, place.position, CHECKSUM_LENGTH).hex():
        raise StoreError(
            f"{file.name} is not the file any more in which this reader stands at "
            f"{place.position}: another event ends there",
            path=named(file.uri),
            hint=f"the log was reset or written anew: {_ANEW}",
        )


def check_gaps(files: Sequence[StoredLogFile]) -> None:
    """See that no file is missing between others.

    Raises:
        StoreError: If one is.
    """
    for before, after in pairwise(files):
        if after.number != before.number + 1:
            raise StoreError(
                f"files are missing between {before.name} and {after.name}",
                path=named(before.uri),
                hint=f"bring them back, or {_ANEW}",
            )


def purged(oldest: StoredLogFile, start: Position, begin: str) -> StoreError:
    """Return the error that the log no longer has the groups behind a GTID position."""
    return StoreError(
        f"what follows {start or 'the beginning'} is not in the log any more: it begins with "
        f"{oldest.name}, which starts behind {begin}",
        path=named(oldest.uri),
        hint="bring the files back that were purged, or start at the log's beginning",
    )


def _not_there(files: Sequence[StoredLogFile], place: Offset) -> StoreError:
    """The file in which an offset stands is gone."""
    first, last = files[0], files[-1]
    if log_name(place.file) != log_name(first.name):
        what = f"its files are named {first.name} …: this is another log"
        hint = f"name the log that holds {place.file}, or {_ANEW}"
    elif place.number < first.number:
        what = f"it begins with {first.name}: the file was purged"
        hint = (
            f"bring the file back from a backup, or {_ANEW}: a binlog of binlane that was compacted "
            "(ALTER BINLOG … COMPACT) has all rows of its tables at its new beginning"
        )
    elif place.number > last.number:
        what = f"it ends with {last.name}: its files were numbered anew"
        hint = f"the log was reset (RESET MASTER), or is another server's: {_ANEW}"
    else:
        what = f"there are {first.name} to {last.name}: the file is missing between them"
        hint = f"bring it back, or {_ANEW}"
    return StoreError(
        f"the log no longer holds {place}, where this reader stands; {what}",
        path=named(first.uri),
        hint=hint,
    )


def _another(file: StoredLogFile, first: LogFileFacts, place: Offset) -> StoreError:
    """Return the error that another file has taken the place of an offset's file."""
    if place.server_id is not None and first.server_id != place.server_id:
        return _another_server(file, place, f"{first.server_id}", f"{place.server_id}")
    return StoreError(
        f"{file.name} is not the file any more in which this reader stands at "
        f"{place.position}: it begins anew",
        path=named(file.uri),
        hint=f"the log was reset (RESET MASTER): {_ANEW}",
    )


def _another_server(file: StoredLogFile, place: Offset, found: str, wanted: str) -> StoreError:
    done = f" ({place.gtids} was done here)" if place.gtids else ""
    return StoreError(
        f"{file.name} is not the file any more in which this reader stands at {place.position}: "
        f"server {found} wrote it, that one server {wanted}: this is another server's log "
        "(a failover?)",
        path=named(file.uri),
        hint=f"find the same place in the new log by GTID{done}; {_ANEW}",
    )
