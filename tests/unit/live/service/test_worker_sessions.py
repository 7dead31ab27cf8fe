"""A worker's session and handler, told from the definitions of the gateway."""

from __future__ import annotations

import asyncio
import inspect
from types import SimpleNamespace
from typing import Any, cast

from binlane.live.gateway.handler import Handler, HandlerSession, SessionAge
from binlane.live.service.workers.link import ProcessLink
from binlane.live.service.workers.messages import SESSION_VALUES, BinlogsNow, SessionFacts
from binlane.live.service.workers.remote_session import RemoteSession
from binlane.live.service.workers.worker_handler import KnownBinlogs, WorkerHandler
from binlane.log.codec.packets.flags import Capability

_VALUES: dict[str, Any] = {
    "user": "app",
    "peer": "1.2.3.4:5",
    "thread_id": 7,
    "is_tls": True,
    "age": SessionAge(1, 2),
    "server_version": "10.11.19-MariaDB",
    "capabilities": Capability.PROTOCOL_41,
    "variables": {"slave_uuid": "x"},
    "replica": None,
}


class _Link:
    """Remembers calls, and gives a text."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    async def call(self, what: str, *arguments: object) -> object:
        self.calls.append((what, *arguments))
        return "found"

    def tell(self, what: str, *arguments: object) -> None:
        self.calls.append((what, *arguments))


def _methods(of: type) -> set[str]:
    return {name for name, member in vars(of).items() if inspect.iscoroutinefunction(member)}


def test_all_that_handlers_see_of_a_session_goes_along() -> None:
    properties = {name for name, each in vars(HandlerSession).items() if isinstance(each, property)}
    assert set(SESSION_VALUES) == properties == _VALUES.keys()
    facts = SessionFacts.of(cast("HandlerSession", SimpleNamespace(**_VALUES)), 3)
    assert vars(facts) == {"number": 3, **_VALUES}
    assert _methods(HandlerSession) <= _methods(RemoteSession)
    assert _methods(Handler) <= _methods(WorkerHandler)


def test_a_session_asks_its_worker() -> None:
    link = _Link()
    facts = SessionFacts(number=3, **_VALUES)
    session = RemoteSession.begin(cast("ProcessLink", link), facts)
    assert (session.user, session.thread_id) == ("app", 7)
    found: object = asyncio.run(session.query_source("SELECT 1"))
    assert found == "found"
    session.update(SessionFacts(number=3, **{**_VALUES, "user": "other"}))
    assert session.user == "other"
    asyncio.run(session.send(memoryview(b"events")))
    assert link.calls == [("session", 3, "query_source", "SELECT 1"), ("send", 3, b"events")]


def test_a_handler_asks_the_process_that_keeps_the_binlogs() -> None:
    link = _Link()

    async def ask() -> None:
        binlogs = KnownBinlogs(cast("ProcessLink", link), BinlogsNow())
        handler = WorkerHandler(cast("ProcessLink", link), binlogs)
        session = RemoteSession(link=cast("ProcessLink", link), number=9, **_VALUES)
        found: object = await handler.gtid_position(session)
        assert found == "found"
        assert await handler.answers(session, "SHOW BINLOGS")
        for call in link.calls:
            facts = call[2]
            assert isinstance(facts, SessionFacts)
            assert vars(facts) == {"number": 1, **_VALUES}
        assert [(call[1], *call[3:]) for call in link.calls] == [
            ("gtid_position",),
            ("answers", "SHOW BINLOGS"),
        ]

    asyncio.run(ask())
