"""TLS of one connection, between two layers and over a socket, without a server."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest

from binlane.live.gateway.settings import GatewaySettings
from binlane.live.gateway.side import Side
from binlane.live.gateway.tls import TlsError, TlsLayer, TlsRole
from binlane.live.provision.certificates import port_context

_TIMEOUT_S = 20.0


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> tuple[TlsRole, TlsRole]:
    """A server, and a client that verifies it."""
    data = tmp_path_factory.mktemp("tls")
    server = port_context(GatewaySettings(), data)
    assert server is not None
    client = ssl.create_default_context(cafile=str(data / "tls/ca.pem"))
    return (
        TlsRole(context=server, is_server=True),
        TlsRole(context=client, is_server=False, host="localhost"),
    )


def exchanged(one: TlsLayer, other: TlsLayer, piece: int = 1 << 20) -> tuple[bytes, bytes]:
    """Carry bytes between two ends until they are silent; what each has understood."""
    heard = [b"", b""]
    ends = (one, other)
    while any(said := [end.take() for end in ends]):
        for index, data in enumerate(said):
            for start in range(0, len(data), piece):
                heard[1 - index] += ends[1 - index].receive(data[start : start + piece])
    return heard[0], heard[1]


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_what_is_said_is_heard(roles: tuple[TlsRole, TlsRole], piece: int) -> None:
    server, client = map(TlsLayer, roles)
    client.begin()
    server.begin()
    early = server.sent(b"before the keys")
    assert early == b""
    assert exchanged(server, client, piece) == (b"", b"before the keys")
    assert server.is_ready
    assert client.is_ready
    large = bytes(range(256)) * 300
    to_client, to_server = server.sent(b"x"), client.sent(large)
    assert client.receive(to_client) == b"x"
    pieces = range(0, len(to_server), piece)
    assert b"".join(server.receive(to_server[at : at + piece]) for at in pieces) == large
    data = client.end()
    assert server.receive(data) == b""
    assert server.has_ended


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\x16\x03\x01\x00\x05\xff\xff\xff\xff\xff"]
)
def test_garbage_is_an_error(roles: tuple[TlsRole, TlsRole], data: bytes) -> None:
    server = TlsLayer(roles[0])
    with pytest.raises(TlsError):
        server.receive(data)


def test_what_waits_for_keys_is_not_what_is_written_over_it(
    roles: tuple[TlsRole, TlsRole],
) -> None:
    server, client = map(TlsLayer, roles)
    client.begin()
    room = bytearray(b"said before the keys")
    assert server.sent(memoryview(room)) == b""
    room[:] = bytes(len(room))
    assert exchanged(server, client) == (b"", b"said before the keys")
    room[:] = b"said with the keys: x"[: len(room)]
    record = server.sent(memoryview(room))
    room[:] = bytes(len(room))
    assert client.receive(record) == b"said with the keys: "


def test_damaged_record_is_an_error(roles: tuple[TlsRole, TlsRole]) -> None:
    server, client = map(TlsLayer, roles)
    client.begin()
    exchanged(server, client)
    data = bytearray(client.sent(b"text"))
    data[-1] ^= 1
    with pytest.raises(TlsError):
        server.receive(bytes(data))
    assert server.take()  # says so


def test_client_that_trusts_somebody_else(roles: tuple[TlsRole, TlsRole]) -> None:
    other = TlsRole(
        context=ssl.create_default_context(cadata=None), is_server=False, host="localhost"
    )
    server, client = TlsLayer(roles[0]), TlsLayer(other)
    client.begin()
    with pytest.raises(TlsError, match="not trusted"):
        exchanged(server, client)
    with pytest.raises(TlsError, match="unknown ca"):
        server.receive(client.take())


def test_hello_that_came_with_the_wish_is_not_lost(roles: tuple[TlsRole, TlsRole]) -> None:
    async def run() -> None:
        one, other = socket.socketpair()
        here = Side.of(one)
        there = Side.of(other)
        here.tls_role, there.tls_role = roles
        there.start_tls()
        there.write(b"hello")
        async with asyncio.timeout(_TIMEOUT_S):
            here.start_tls(await here.read())
            back = asyncio.ensure_future(there.read())
            assert await here.read() == b"hello"
            await here.send(b"x" * 100_000)
            count = len(await back)
            while count < 100_000:
                count += len(await there.read())
            here.close()
            assert await there.read() == b""
        assert (here.failure, there.failure) == ("", "")
        there.close()
        await asyncio.sleep(0.05)

    asyncio.run(run())


def test_failure_is_told_and_ends(roles: tuple[TlsRole, TlsRole]) -> None:
    async def run() -> None:
        one, other = socket.socketpair()
        here = Side.of(one)
        there = Side.of(other)
        here.tls_role = roles[0]
        here.start_tls()
        there.write(b"no TLS at all")
        async with asyncio.timeout(_TIMEOUT_S):
            assert await here.read() == b""
        assert here.failure.startswith("TLS failed: ")
        here.write(b"nobody could read it")
        here.write_in_clear(b"why")
        async with asyncio.timeout(_TIMEOUT_S):
            assert await there.read() == b"why"
        there.write(b"more")
        await asyncio.sleep(0.02)
        here.close()
        there.close()
        await asyncio.sleep(0.05)

    asyncio.run(run())


async def _joined(roles: tuple[TlsRole, TlsRole]) -> tuple[Side, Side]:
    """Two ends that have agreed on keys."""
    one, other = socket.socketpair()
    here = Side.of(one)
    there = Side.of(other)
    here.tls_role, there.tls_role = roles
    here.start_tls()
    there.start_tls()
    there.write(b"x")
    async with asyncio.timeout(_TIMEOUT_S):
        assert await here.read() == b"x"
    return here, there


def test_nothing_is_said_behind_a_record_that_was_damaged(roles: tuple[TlsRole, TlsRole]) -> None:
    async def run() -> None:
        here, there = await _joined(roles)
        assert there._tls is not None
        record = bytearray(there._tls.sent(b"text"))
        record[-1] ^= 1
        there._there.write(record)
        async with asyncio.timeout(_TIMEOUT_S):
            assert await here.read() == b""
        assert here.failure
        here.write(b"an error of OpenSSL, if it got there")
        here.close()
        there.close()
        await asyncio.sleep(0.02)

    asyncio.run(run())


def test_connection_that_is_cut_inside_of_a_record(roles: tuple[TlsRole, TlsRole]) -> None:
    async def run() -> None:
        here, there = await _joined(roles)
        assert there._tls is not None
        there._there.write(there._tls.sent(b"whole") + there._tls.sent(b"not whole")[:-1])
        there._there.close()
        async with asyncio.timeout(_TIMEOUT_S):
            assert await here.read() == b"whole"
            assert await here.read() == b""
        assert here.failure == ""
        here.close()
        await asyncio.sleep(0.02)

    asyncio.run(run())


def test_peer_that_takes_nothing_makes_others_wait(roles: tuple[TlsRole, TlsRole]) -> None:
    async def run() -> None:
        here, there = await _joined(roles)
        there.pause(is_paused=True)
        piece, sent = bytes(64 << 10), 0
        async with asyncio.timeout(_TIMEOUT_S):
            while not here.is_congested:
                here.write(memoryview(piece))
                sent += len(piece)
                await asyncio.sleep(0)
            sending = asyncio.ensure_future(here.send(memoryview(piece)))
            await asyncio.sleep(0.02)
            assert not sending.done()
            assert here._there.get_write_buffer_size() < 1 << 20
            found = 0
            there.pause(is_paused=False)
            while found < sent + len(piece):
                found += len(await there.read())
            await sending
        here.close()
        there.close()
        await asyncio.sleep(0.02)

    asyncio.run(run())
