"""A client's session that another process serves, as handlers see it here."""

from __future__ import annotations

from typing import Any

from binlane.codec.packets.commands import RegisterSlave
from binlane.codec.packets.flags import Capability
from binlane.codec.packets.results import ResultSet
from binlane.gateway.handler import SessionAge
from binlane.gateway.judge import Reply
from binlane.gateway.privileges import Privilege
from binlane.service.workers.link import Link
from binlane.service.workers.messages import SessionFacts


class RemoteSession:
    """A `SessionContext`; what it has the source do goes through its worker.

    Args:
        link: To the worker.
        facts: As it is.

    Attributes:
        facts: As it was when something was asked for it last.
    """

    def __init__(self, link: Link, facts: SessionFacts) -> None:
        self._link = link
        self.facts = facts

    @property
    def user(self) -> str:
        """Account name that it logged in with."""
        return self.facts.user

    @property
    def peer(self) -> str:
        """Address of the client."""
        return self.facts.peer

    @property
    def thread_id(self) -> int:
        """Its connection id on the source."""
        return self.facts.thread_id

    @property
    def is_tls(self) -> bool:
        """Whether the client speaks TLS."""
        return self.facts.is_tls

    @property
    def age(self) -> SessionAge:
        """How far it is."""
        return self.facts.age

    @property
    def server_version(self) -> str:
        """The source's."""
        return self.facts.server_version

    @property
    def capabilities(self) -> Capability:
        """What client and source have agreed on."""
        return self.facts.capabilities

    @property
    def variables(self) -> dict[str, str | None]:
        """User variables that bear on replication."""
        return self.facts.variables

    @property
    def replica(self) -> RegisterSlave | None:
        """How it introduced itself as a replica, if it did."""
        return self.facts.replica

    async def query_source(self, statement: str) -> ResultSet:
        """Run a statement in this session on the source; as of `SessionContext`, like all here."""
        found: ResultSet = await self._ask("query_source", statement)
        return found

    async def run_at_source(self, statement: str) -> Reply:
        """Run a statement that gives no rows in this session on the source."""
        reply: Reply = await self._ask("run_at_source", statement)
        return reply

    async def require(self, privilege: Privilege) -> None:
        """See that the source grants the session's account a privilege."""
        await self._ask("require", privilege)

    async def send(self, data: bytes | memoryview) -> None:
        """Send the client some bytes of a dump; returns when it takes more."""
        await self._link.call("send", self.facts.number, bytes(data))

    async def _ask(self, method: str, argument: object) -> Any:  # of any method
        return await self._link.call("session", self.facts.number, method, argument)
