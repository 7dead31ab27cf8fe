"""A server's place in its log such that a reader who begins later sees all that precedes the place.

A server's position moves on before the engine has committed what was written, so the position alone
proves nothing. MariaDB tells the place of a consistent snapshot itself. On MySQL a transaction owns
its GTID from before it is written until the engine has committed it: once none of the transactions
that own one behind a position does so any more, all that precedes the position is visible.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from binlane.client.session import ServerSession
from binlane.errors import PeerError
from binlane.log.codec.format import flavor_of
from binlane.log.codec.types import Flavor
from binlane.positions import GtidPosition, GtidSet, Position, file_number

FILE_BITS: Final = 40
_OPEN: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
_MARIADB_OPEN: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
_PAUSE_S: Final = 0.002
_PAUSE_LONGEST_S: Final = 0.25
_OWNED_S: Final = 600.0
_QUIET_S: Final = 30.0
_ACCESS_DENIED: Final = 1227
_DENIED: Final = frozenset({1227, 1401})
_CLIENT_HINT: Final = "GRANT REPLICATION CLIENT ON *.* TO the account"

SESSION: Final = (
    "SET SESSION sql_mode = '', time_zone = '+00:00', sql_quote_show_create = 1",
    "SET NAMES utf8mb4",
    "SET SESSION net_write_timeout = 3600, net_read_timeout = 3600",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
)
"""Settings of a session that reads tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPlace:
    """A place in a server's log.

    Attributes:
        file: Base name of the file.
        position: In it, in bytes: where the next event group begins.
    """

    file: str
    position: int

    @property
    def seq(self) -> int:
        """The place as `_seq` counts: later changes have higher numbers, earlier ones lower."""
        return (file_number(self.file) << FILE_BITS) + self.position

    def __str__(self) -> str:
        """Return the place as people write it."""
        return f"{self.file}:{self.position}"


class NeverQuietError(PeerError):
    """A server wrote on all the time, so that no snapshot has an exact place."""


def set_up(session: ServerSession) -> None:
    """Make a session's reads independent of how the server is set up."""
    for statement in SESSION:
        session.ask(statement)
    # Text in the character set of its column, as the log has it.
    session.ask("SET SESSION character_set_results = NULL")


def settled_place(session: ServerSession) -> SnapshotPlace:
    """A place in the log of which all that precedes is visible to every read from now on.

    Raises:
        PeerError: If the account may not ask, or a transaction does not end.
    """
    if flavor_of(session.version) is Flavor.MARIADB:
        place = _open_mariadb(session)
        session.ask("COMMIT")
        return place
    place = written_place(session)
    _await_owners(session)
    return place


def open_snapshot(session: ServerSession) -> SnapshotPlace:
    """Begin a transaction that sees exactly what precedes a place in the log.

    Raises:
        NeverQuietError: If MySQL wrote on at every attempt.
        PeerError: If the account may not ask, or a transaction does not end.
    """
    if flavor_of(session.version) is Flavor.MARIADB:
        return _open_mariadb(session)
    deadline = time.monotonic() + _QUIET_S
    while time.monotonic() < deadline:
        before = settled_place(session)
        session.ask(_OPEN)
        if written_place(session) == before:
            return before
        session.ask("COMMIT")
        time.sleep(_PAUSE_S)
    raise NeverQuietError(
        f"the server never stopped writing for {_QUIET_S:.0f} s, so a snapshot would have no exact position in the log",
        peer=str(session.url),
        phase="snapshot",
        hint="run it when the server is quieter, or give the table a primary key",
    )


def place_behind(session: ServerSession) -> SnapshotPlace:
    """A place in the log that is behind all that was visible to reads until now.

    Raises:
        PeerError: If the account may not ask.
    """
    if flavor_of(session.version) is Flavor.MARIADB:
        return settled_place(session)
    return written_place(session)


def settled_gtids(session: ServerSession) -> Position:
    """The GTIDs of a place in the log of which all that precedes is visible to reads from now on.

    Raises:
        PeerError: If the account may not ask, or the server has no GTIDs.
    """
    if flavor_of(session.version) is Flavor.MARIADB:
        return _gtids_at(session, settled_place(session))
    return _executed(session)


def open_snapshot_at(session: ServerSession) -> Position:
    """Begin a transaction that sees exactly what the position has done.

    Raises:
        NeverQuietError: If MySQL wrote on at every attempt.
        PeerError: If the account may not ask, or the server has no GTIDs.
    """
    place = open_snapshot(session)
    if flavor_of(session.version) is Flavor.MARIADB:
        return _gtids_at(session, place)
    # Nobody owned a GTID before the transaction began, and nobody wrote since.
    executed = _executed(session)
    if written_place(session) != place:
        session.ask("COMMIT")
        return open_snapshot_at(session)
    return executed


def gtids_behind(session: ServerSession) -> Position:
    """A position that covers all that was visible to reads until now.

    Raises:
        PeerError: If the account may not ask, or a transaction does not end.
    """
    if flavor_of(session.version) is Flavor.MARIADB:
        return settled_gtids(session)
    # What is visible, and not called executed yet, is owned.
    _await_owners(session)
    return _executed(session)


def await_prepared(session: ServerSession, *, wait_s: float = _OWNED_S) -> bool:
    """Wait until none of the XA transactions that are prepared now is prepared any more.

    Their rows stand in the log where they were prepared, which may be before everything that
    somebody keeps, and become visible later.

    Returns:
        False if the account may not ask: then nobody knows.

    Raises:
        PeerError: If one does not end in `wait_s` seconds.
    """
    try:
        waited = _prepared(session)
    except PeerError as error:
        if error.errno in _DENIED:
            return False
        raise
    deadline = time.monotonic() + wait_s
    pauses = _pauses()
    while waited:
        time.sleep(next(pauses))
        waited &= _prepared(session)
        if waited and time.monotonic() > deadline:
            raise PeerError(
                f"the XA transaction {min(waited)} is prepared and does not end",
                peer=str(session.url),
                phase="snapshot",
                hint="see XA RECOVER on the server, and commit it or roll it back there",
            )
    return True


def _pauses() -> Iterator[float]:
    """Seconds between questions to a server: each answer locks what all of its commits need."""
    pause_s = _PAUSE_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, _PAUSE_LONGEST_S)


def _prepared(session: ServerSession) -> set[str]:
    return {row[-1] or "" for row in session.ask("XA RECOVER")}


def _gtids_at(session: ServerSession, place: SnapshotPlace) -> Position:
    file = place.file.encode().hex()
    ((text,),) = session.ask(f"SELECT BINLOG_GTID_POS(CAST(0x{file} AS CHAR), {place.position})")
    if text is None:
        raise PeerError(
            f"the server knows no GTID position at {place}",
            peer=str(session.url),
            phase="snapshot",
            hint="see SHOW BINARY LOGS on the server: the file must be there",
        )
    return GtidPosition.parse(text)


def _executed(session: ServerSession) -> GtidSet:
    ((mode, text),) = session.ask("SELECT @@GLOBAL.gtid_mode, @@GLOBAL.gtid_executed")
    if mode != "ON":
        raise PeerError(
            f"the server has gtid_mode={mode}, so that changes of its tables have no names",
            peer=str(session.url),
            phase="snapshot",
            hint="set gtid_mode=ON on the server",
        )
    return GtidSet.parse(text or "")


def _open_mariadb(session: ServerSession) -> SnapshotPlace:
    session.ask(_MARIADB_OPEN)
    rows = session.ask("SHOW STATUS LIKE 'binlog_snapshot_%'")
    found = {(name or "").lower(): value or "" for name, value in rows}
    file = found.get("binlog_snapshot_file", "")
    if not file:
        raise _no_log(session)
    return SnapshotPlace(file=file, position=int(found["binlog_snapshot_position"]))


def written_place(session: ServerSession) -> SnapshotPlace:
    """The end of the server's log, which may lie behind all that is visible.

    Raises:
        PeerError: If the account may not ask, or the server writes no log.
    """
    number = tuple(int(part) for part in re.findall(r"\d+", session.version)[:2])
    is_new = flavor_of(session.version) is Flavor.MYSQL and number >= (8, 2)
    statement = "SHOW BINARY LOG STATUS" if is_new else "SHOW MASTER STATUS"
    try:
        rows = session.ask(statement)
    except PeerError as error:
        if error.errno == _ACCESS_DENIED:
            raise PeerError(
                "the account may not ask where the server's log is",
                peer=str(session.url),
                phase="snapshot",
                errno=error.errno,
                hint=_CLIENT_HINT,
            ) from None
        raise
    if not rows:
        raise _no_log(session)
    return SnapshotPlace(file=rows[0][0] or "", position=int(rows[0][1] or 0))


def _no_log(session: ServerSession) -> PeerError:
    return PeerError(
        "the server writes no binlog",
        peer=str(session.url),
        phase="snapshot",
        hint="name the server whose log is landed",
    )


def _await_owners(session: ServerSession) -> None:
    """Wait until none of the transactions that own a GTID now owns it any more."""
    waited = _owned(session)
    deadline = time.monotonic() + _OWNED_S
    pauses = _pauses()
    while waited:
        time.sleep(next(pauses))
        waited &= _owned(session)
        if time.monotonic() > deadline:
            raise PeerError(
                f"the transaction {min(waited)} does not end",
                peer=str(session.url),
                phase="snapshot",
                hint="see SHOW PROCESSLIST on the server, and end it there",
            )


def _owned(session: ServerSession) -> set[str]:
    """GTIDs that transactions own, each as `uuid:number`."""
    ((text,),) = session.ask("SELECT @@GLOBAL.gtid_owned")
    owned: set[str] = set()
    uuid = ""
    # uuid:5#12:6#13,↵uuid:7#14; a tag stands like a number without an owner.
    for part in re.split(r"[\s,]+", text or ""):
        pieces = part.split(":")
        if len(pieces) > 1:
            uuid = pieces[0]
        tag = ""
        for piece in pieces[1:]:
            if "#" in piece:
                owned.add(f"{uuid}:{tag}{piece.partition('#')[0]}")
            else:
                tag = f"{piece}:"
    return owned
