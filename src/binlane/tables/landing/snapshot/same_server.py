"""Checks that the server asked for rows is the one whose log is landed, and its place is in the log.

Rows of another server, or a place that the log does not come to, would make wrong tables that look
right.
"""

from __future__ import annotations

from collections.abc import Sequence

from binlane.client.rows.settled_places import SnapshotPlace
from binlane.client.session import ServerSession
from binlane.errors import ConfigError, PeerError
from binlane.positions import file_number
from binlane.tables.ranges.stored_files import StoredLogFile

_HINT = "name the server whose log is landed: --snapshot SERVER"
_ACCESS_DENIED = 1227


def check_same_server(
    session: ServerSession, files: Sequence[StoredLogFile], written_by: int | None
) -> None:
    """See that a log's files are the server's.

    Args:
        session: A session on the server.
        files: The files of the log, in order.
        written_by: Id of the server that wrote the last file.

    Raises:
        ConfigError: If the files are not the server's.
        PeerError: If the account may not ask for the server's facts.
    """
    ((own_id,),) = session.ask("SELECT @@GLOBAL.server_id")
    if str(written_by) != own_id:
        raise _another(
            session, f"{files[-1].name} was written by server id {written_by}, not {own_id}"
        )
    try:
        shown = session.ask("SHOW BINARY LOGS")
    except PeerError as error:
        if error.errno != _ACCESS_DENIED:
            raise
        raise PeerError(
            "the account may not ask which files the server's log has",
            peer=str(session.url),
            phase="snapshot",
            errno=error.errno,
            hint="GRANT REPLICATION CLIENT ON *.* TO the account",
        ) from None
    sizes = {row[0]: int(row[1] or 0) for row in shown}
    last = shown[-1][0] or ""
    for number, file in enumerate(files):
        theirs, ours = sizes.get(file.name), file.size_bytes
        if theirs is None or not file.is_plain:
            continue
        is_growing = file.name == last or number == len(files) - 1
        if ours > theirs if is_growing else ours != theirs:
            raise _another(session, f"{file.name} has {ours} bytes, the server's has {theirs}")
    newest = files[-1]
    if not sizes.keys() & {file.name for file in files} and newest.number >= file_number(last):
        raise _another(session, f"the log is at {newest.name}, the server at {last}")


def check_place(place: SnapshotPlace, files: Sequence[StoredLogFile], landed: int) -> None:
    """See that the log comes to a place, from where it is landed now.

    Args:
        place: The place of a snapshot's rows.
        files: The files of the log, in order.
        landed: The `_seq` up to which the log is landed.

    Raises:
        ConfigError: If the log does not come to the place.
    """
    number = file_number(place.file)
    if landed > place.seq:
        raise ConfigError(
            f"the log is landed beyond the server's place {place}",
            key="snapshot",
            hint=_HINT,
        )
    if files[0].number > number:
        raise ConfigError(
            f"the server is at {place}, and the log begins with {files[0].name}",
            key="snapshot",
            hint=_HINT,
        )
    names = {file.number: file.name for file in files}
    if names.get(number, place.file) != place.file:
        raise ConfigError(
            f"the server is at {place}, the log has {names[number]}", key="snapshot", hint=_HINT
        )


def _another(session: ServerSession, what: str) -> ConfigError:
    return ConfigError(
        f"{session.url} is not the server whose log is landed: {what}", key="snapshot", hint=_HINT
    )
