"""A worker's session and handler, told from the definitions of the gateway."""

from __future__ import annotations

import asyncio
import inspect
import socket
from types import SimpleNamespace
from typing import Any, cast

from binlane.live.gateway.handler import Handler, HandlerSession, SessionAge
from binlane.live.service.workers.link import ProcessLink
from binlane.live.service.workers.messages import SESSION_VALUES, BinlogsNow, SessionFacts
from binlane.live.service.workers.passed_connections import pass_on, passed
from binlane.live.service.workers.remote_session import RemoteSession
from binlane.live.service.workers.worker_handler import KnownBinlogs, WorkerHandler
from binlane.log.codec.packets.commands import BinlogDump
from binlane.log.codec.packets.flags import Capability, DumpFlag

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
    assert set(SESSION_VALUES) == properties - {"connection"} == _VALUES.keys()
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
        handler = WorkerHandler(cast("ProcessLink", link), binlogs, cast("socket.socket", None))
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


def test_a_dump_goes_to_a_connection_that_was_passed_on() -> None:
    link = _Link()

    async def run() -> None:
        here, there = socket.socketpair(type=socket.SOCK_SEQPACKET)
        replica, client = socket.socketpair()
        binlogs = KnownBinlogs(cast("ProcessLink", link), BinlogsNow())
        handler = WorkerHandler(cast("ProcessLink", link), binlogs, there)
        session = RemoteSession(link=cast("ProcessLink", link), number=9, **_VALUES)
        session.connection = client
        await handler.dump(
            session, BinlogDump(position=4, flags=DumpFlag(0), server_id=1, file="b"), _never
        )
        assert [call[0] for call in link.calls] == ["handle"]
        remote = RemoteSession(link=cast("ProcessLink", link), number=1, **_VALUES)
        remote.connection = passed(here, 1)
        assert remote.connection is not None
        buffer = bytearray(b"a" * (4 << 20))
        sending = asyncio.create_task(remote.send(memoryview(buffer)))
        await asyncio.sleep(0)
        buffer[:] = b"b" * len(buffer)
        replica.setblocking(False)
        got = bytearray()
        while len(got) < len(buffer):
            got += await asyncio.get_running_loop().sock_recv(replica, 1 << 20)
        await sending
        for one in (here, there, replica, client, remote.connection):
            one.close()
        assert set(got) == {ord("a")}
        assert len(link.calls) == 1

    asyncio.run(run())


async def _never(data: bytes | memoryview) -> None:
    del data
    raise AssertionError("it goes the other way")


def test_connections_that_nobody_takes_are_closed() -> None:
    here, there = socket.socketpair(type=socket.SOCK_SEQPACKET)
    pairs = [socket.socketpair() for _ in range(3)]
    for number, (client, _) in enumerate(pairs, 1):
        pass_on(there, number, client)
        client.close()
    second = passed(here, 2)
    assert second is not None
    assert pairs[0][1].recv(1) == b""
    second.send(b"x")
    assert pairs[1][1].recv(1) == b"x"
    assert passed(here, 0) is None
    assert pairs[2][1].recv(1) == b""
    there.close()
    assert passed(here, 1) is None
    pass_on(here, 1, second)  # nobody is there, which is no fault
    for one in (here, second, *(each for _, each in pairs)):
        one.close()
