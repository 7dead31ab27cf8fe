"""One of a session's connections, at both of its ends."""

from __future__ import annotations

import asyncio
import gc
import socket
from weakref import ref

import pytest

from binlane.live.gateway.side import Side, keep_alive

_TIMEOUT_S = 20.0
_MORE_THAN_A_SOCKET_TAKES = 4 << 20


async def _pair() -> tuple[Side, Side]:
    one, other = socket.socketpair()
    first = Side.of(one)
    second = Side.of(other)
    return first, second


class Received:
    """What a side hands on.

    Attributes:
        parts: In order; an empty one is the end.
    """

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._is_more = asyncio.Event()

    def take(self, data: bytes) -> None:
        """Take a part."""
        self.parts.append(data)
        self._is_more.set()

    async def until(self, count: int) -> None:
        """Wait for so many bytes."""
        async with asyncio.timeout(_TIMEOUT_S):
            while sum(map(len, self.parts)) < count:
                self._is_more.clear()
                await self._is_more.wait()


def test_what_arrives_is_kept_or_handed_on() -> None:
    async def run() -> None:
        here, there = await _pair()
        there.write(b"kept")
        assert await here.read() == b"kept"
        there.write(b"kept too")
        await asyncio.sleep(0.05)
        received = Received()
        here.receive(received.take)
        assert received.parts == [b"kept too"]
        there.write(b"later")
        await received.until(13)
        assert b"".join(received.parts) == b"kept toolater"
        assert not here.has_gone()
        here.receive(None)
        there.write(b"again")
        assert await here.read() == b"again"
        there.close()
        assert await here.read() == b""
        assert here.has_gone()
        here.receive(received.take)
        assert received.parts[-1] == b""
        here.close()

    asyncio.run(run())


def test_end_is_told_once() -> None:
    async def run() -> None:
        here, there = await _pair()
        received = Received()
        here.receive(received.take)
        there.close()
        await asyncio.sleep(0.05)
        here.close()
        await asyncio.sleep(0.05)
        assert received.parts == [b""]

    asyncio.run(run())


def test_peer_that_takes_nothing_makes_others_wait() -> None:
    async def run() -> None:
        here, there = await _pair()
        freed: list[int] = []
        here.freed = lambda: freed.append(1)
        there.pause(is_paused=True)
        large = bytes(8 << 20)
        sending = asyncio.ensure_future(here.send(large))
        await asyncio.sleep(0.05)
        assert here.is_congested
        assert not sending.done()
        received = Received()
        there.receive(received.take)
        there.pause(is_paused=False)
        await received.until(len(large))
        async with asyncio.timeout(_TIMEOUT_S):
            await sending
        assert freed
        assert not here.is_congested
        here.close()
        there.close()

    asyncio.run(run())


def test_nothing_more_is_kept_than_needed() -> None:
    async def run() -> None:
        here, there = await _pair()
        there.write(bytes(32 << 20))
        await asyncio.sleep(0.1)
        found = 0
        async with asyncio.timeout(_TIMEOUT_S):
            while found < 32 << 20:
                part = await here.read()
                assert len(part) <= 1 << 20
                found += len(part)
        here.close()
        there.close()

    asyncio.run(run())


def test_peer_that_is_lost() -> None:
    async def run() -> None:
        here, there = await _pair()
        there.pause(is_paused=True)
        sending = asyncio.ensure_future(here.send(bytes(8 << 20)))
        await asyncio.sleep(0.05)
        there._there.abort()
        async with asyncio.timeout(_TIMEOUT_S):
            with pytest.raises(ConnectionResetError):
                await sending
        here.write(b"nothing comes of it")
        with pytest.raises(ConnectionResetError):
            await here.send(b"x")
        assert here.has_gone()
        here.close()

    asyncio.run(run())


def test_a_peer_that_is_silent_is_asked_whether_it_is_there() -> None:
    async def run() -> None:
        server = socket.create_server(("127.0.0.1", 0))
        keep_alive(server)
        there = socket.create_connection(server.getsockname())
        connection, _ = server.accept()
        side = Side.of(connection)
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        asked = [connection.getsockopt(socket.IPPROTO_TCP, name) for name in names]
        assert asked[0] + asked[1] * asked[2] <= 120
        there.close()
        side.close()
        server.close()

    asyncio.run(run())


def test_a_close_that_had_bytes_to_send_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binlane.live.gateway.side._LINGER_S", 0.2)
    failures: list[dict[str, object]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: failures.append(what))
        here, there = await _pair()
        here.write(bytes(1 << 22))
        assert here.is_congested
        here.close()
        received = Received()
        there.receive(received.take)
        await received.until(1 << 22)
        await asyncio.sleep(0.4)
        there.close()

    asyncio.run(run())
    assert not failures


def test_nothing_holds_a_closed_connection_that_had_nothing_to_send() -> None:
    async def run() -> None:
        here, there = await _pair()
        here.close()
        assert await there.read() == b""
        held = ref(here)
        del here
        await asyncio.sleep(0)
        gc.collect()
        assert held() is None
        there.close()

    asyncio.run(run())


def test_a_buffer_may_be_used_again_once_it_was_written() -> None:
    async def run() -> None:
        here, there = await _pair()
        buffer = bytearray(b"a" * _MORE_THAN_A_SOCKET_TAKES)
        there.write(memoryview(buffer))
        assert there.is_congested
        buffer[:] = b"b" * len(buffer)
        received = Received()
        here.receive(received.take)
        await received.until(len(buffer))
        assert set(b"".join(received.parts)) == {ord("a")}
        here.close()
        there.close()

    asyncio.run(run())
