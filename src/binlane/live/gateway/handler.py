"""Interface through which the gateway asks the component that knows the binlogs."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from binlane.live.gateway.answers import Answer
from binlane.live.gateway.judge import Judge, StatementReply
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid, RegisterSlave
from binlane.log.codec.packets.flags import Capability
from binlane.log.codec.packets.results import ResultSet
from binlane.positions import FilePosition, Position

Send = Callable[[bytes | memoryview], Awaitable[None]]
"""Sends bytes to the client, which may be overwritten once it has run up to where it waits; returns
when the client takes more."""


class SessionAge(NamedTuple):
    """Progress of a session: answers of the source hold as long as it is the same.

    Attributes:
        logins: Number of COM_CHANGE_USER in the session.
        commands: Number of commands that were sent on to the source.
    """

    logins: int = 0
    commands: int = 0


class HandlerSession(Protocol):
    """A session as handlers see it."""

    @property
    def user(self) -> str:
        """Account name with which the client logged in."""
        ...

    @property
    def peer(self) -> str:
        """Address of the client."""
        ...

    @property
    def thread_id(self) -> int:
        """The session's connection id on the source, as KILL takes it."""
        ...

    @property
    def is_tls(self) -> bool:
        """True if the client speaks TLS."""
        ...

    @property
    def connection(self) -> socket.socket | None:
        """The client's connection, if another process may send on it: in clear, and nothing waits."""
        ...

    @property
    def age(self) -> SessionAge:
        """Progress of the session: it grows with each command that the client has the source run."""
        ...

    @property
    def server_version(self) -> str:
        """The source's."""
        ...

    @property
    def capabilities(self) -> Capability:
        """The capabilities that client and source have agreed on."""
        ...

    @property
    def variables(self) -> dict[str, str | None]:
        """User variables that bear on replication, by lower-case name without `@`."""
        ...

    @property
    def replica(self) -> RegisterSlave | None:
        """The client's introduction as a replica, if there was one."""
        ...

    async def query_source(self, statement: str) -> ResultSet:
        """Run a statement in this session on the source.

        Raises:
            StatementError: If the source refuses it.
            PeerError: If the source goes away.
        """
        ...

    async def run_at_source(self, statement: str) -> StatementReply:
        """Run a statement in this session on the source; rows that it gives are left out.

        Raises:
            StatementError: If the source refuses it.
            PeerError: If the source goes away.
        """
        ...

    async def require(self, privilege: SourcePrivilege) -> None:
        """See that the source grants the session's account a privilege.

        Raises:
            StatementError: Error 1227 if it does not.
        """
        ...


class Handler(Protocol):
    """Whoever knows the binlogs."""

    @property
    def has_tables_info(self) -> bool:
        """True if binlogs are written with tables info."""
        ...

    def judge(self, session: HandlerSession) -> Judge | None:
        """Give the judge of a session's statements; None lets all pass.

        Args:
            session: Session at its login: its `user` and `server_version` are known, no more.
        """
        ...

    async def answer(self, session: HandlerSession, statement: str) -> Answer | None:
        """Answer a statement on binlogs; None hands it on to the source.

        Raises:
            StatementError: To be told to the client.
        """
        ...

    async def register(self, session: HandlerSession) -> None:
        """Let a session introduce itself as a replica.

        Raises:
            StatementError: If its account may read no binlog.
        """
        ...

    async def gtid_position(self, session: HandlerSession) -> Position | None:
        """The watermark of the binlog that the session reads; None where it reads none.

        Raises:
            StatementError: To be told to the client.
        """
        ...

    async def gtid_position_now(self, session: HandlerSession) -> Position | None:
        """As `gtid_position`, but where the binlog stands, which may be behind the source."""
        ...

    async def binlog_format(self, session: HandlerSession) -> str | None:
        """The FORMAT of the binlog that the session reads; None as above, or where SET GLOBAL said.

        Raises:
            StatementError: To be told to the client.
        """
        ...

    async def gtid_purged(self, session: HandlerSession) -> Position | None:
        """Give the position before the first file of the session's binlog; None as in `gtid_position`.

        Raises:
            StatementError: If the client is to be told an error.
        """
        ...

    async def gtid_position_at(
        self, session: HandlerSession, place: FilePosition
    ) -> Position | None:
        """Give the GTID position before a place in a binlog file; None where the source is to answer.

        Raises:
            StatementError: If the client is to be told an error.
        """
        ...

    async def snapshot(self, session: HandlerSession, place: FilePosition) -> FilePosition | None:
        """Give the position of the session's binlog for a place in the source's log.

        Args:
            session: Session that asks for the position.
            place: Place in a file of the source, between two groups.

        Returns:
            All of the binlog before the position came before `place`, and nothing behind it; None where the
            session reads no binlog or several.

        Raises:
            StatementError: If the client is to be told an error.
        """
        ...

    async def answers(self, session: HandlerSession, statement: str) -> bool:
        """True if `answer` would answer a statement; nothing of it is executed.

        Raises:
            StatementError: If the client is to be told an error.
        """
        ...

    def killed(self, thread_id: int) -> None:
        """Note that the source has killed a session, or the statement of one."""
        ...

    async def dump(
        self, session: HandlerSession, command: BinlogDump | BinlogDumpGtid, send: Send
    ) -> bytes:
        """Serve a dump, if the account may read the binlog; cancelled when the client has gone.

        Args:
            session: Session whose `variables` say how the replica wants the dump.
            command: The COM_BINLOG_DUMP, or MySQL's by GTID.
            send: Takes packets numbered from 1.

        Returns:
            The last packet, EOF or ERR, which the gateway sends.

        Raises:
            StatementError: If nothing was sent and nothing can be.
        """
        ...
