"""Sees statements that wait for a table that is read for long, so that the reader can let go of it.

A SELECT keeps ALTER TABLE, LOCK TABLES and their like waiting until its end, and while one of these
waits nobody else gets at the table. Reading in ranges holds a table for a moment only; a table without
a key is read by one SELECT, however long that takes.
"""

from __future__ import annotations

from typing import Final

from binlane.client.session import ServerSession
from binlane.errors import BinlaneError, PeerError
from binlane.names import TableName

LOCK_TIMEOUT: Final = 1205
"""The error of a statement that waited too long for a lock."""
LOCK_WAIT_S: Final = 10
"""Longest wait of a reader for a table that a session holds locked, or that DDL is about to have."""


class TableWantedError(BinlaneError):
    """A statement waits for a table that is being read."""

    def __init__(self, name: TableName) -> None:
        super().__init__(
            f"{name.plain} was let go of, because a statement waits for it: it has no key, so it is"
            " read in one piece",
            hint="it is read again; give it a primary key, and nobody waits for its reading",
        )


class WaitingStatements:
    """Looks for statements that wait for a table, in a session of its own.

    Args:
        session: The session that reads the table.
        name: The table that is read.
    """

    def __init__(self, session: ServerSession, name: TableName) -> None:
        self._reading = session
        self._name = name
        self._session: ServerSession | None = None

    def close(self) -> None:
        """Close the session that looks."""
        if self._session is not None:
            self._session.close()

    def look(self) -> None:
        """See that no statement waits for the table.

        Raises:
            TableWantedError: If one does: close the session that reads, and the statement goes on.
            PeerError: If the server goes away.
        """
        if self._session is None:
            self._session = self._reading.another()
            self._session.ask("SET SESSION lock_wait_timeout = 1")
        try:
            # It would have to wait behind that statement.
            self._session.ask(f"SELECT 1 FROM {self._name} LIMIT 0")  # noqa: S608  # a quoted name
        except PeerError as error:
            if error.errno == LOCK_TIMEOUT:
                raise TableWantedError(self._name) from None
            raise
