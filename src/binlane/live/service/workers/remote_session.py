"""A client's session that another process serves, as handlers see it here."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from binlane.live.gateway.handler import HandlerSession
from binlane.live.service.workers.link import ProcessLink
from binlane.live.service.workers.messages import SESSION_VALUES, SessionFacts

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _asked(
    method: Callable[Concatenate[HandlerSession, _P], Coroutine[Any, Any, _R]],
) -> Callable[Concatenate[RemoteSession, _P], Coroutine[Any, Any, _R]]:
    """Make a method that calls the same one of the worker's session."""

    @wraps(method)
    async def ask(session: RemoteSession, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        assert not kwargs, "arguments go by position"
        return cast(
            "_R", await session.link.call("session", session.number, method.__name__, *args)
        )

    return ask


@dataclass(kw_only=True, eq=False)
class RemoteSession(SessionFacts):
    """A `HandlerSession`; what it has the source do goes through its worker.

    Attributes:
        link: The link to the worker.
        connection: The client's connection, if the worker has passed it on for a dump.
    """

    link: ProcessLink
    connection: socket.socket | None = None

    query_source = _asked(HandlerSession.query_source)
    run_at_source = _asked(HandlerSession.run_at_source)
    require = _asked(HandlerSession.require)

    @classmethod
    def begin(cls, link: ProcessLink, facts: SessionFacts) -> RemoteSession:
        """Make a session of its first values."""
        return cls(link=link, **vars(facts))

    def update(self, facts: SessionFacts) -> None:
        """Take over newer values."""
        for name in SESSION_VALUES:
            setattr(self, name, getattr(facts, name))

    async def send(self, data: bytes | memoryview) -> None:
        """Send the client some bytes of a dump; returns when it takes more."""
        if self.connection is None:
            await self.link.call("send", self.number, bytes(data))
            return
        try:
            sent = self.connection.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            # Another dump may use the buffer behind a view meanwhile.
            rest = bytes(data[sent:])
            await asyncio.get_running_loop().sock_sendall(self.connection, rest)
