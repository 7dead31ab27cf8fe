"""Clients that come at once are accepted at once, and each by the process that has the fewest."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from binlane.live.gateway.client_counts import ClientCounts
from binlane.live.gateway.listening import PortListener, bound
from binlane.live.gateway.settings import GatewaySettings


def test_those_who_wait_are_accepted_in_few_turns() -> None:
    async def run() -> None:
        (listening,) = bound(GatewaySettings(port=0))
        clients = [socket.create_connection(listening.getsockname()) for _ in range(40)]
        came: list[tuple[socket.socket, Any]] = []
        listener = PortListener(
            [listening],
            ClientCounts(),
            lambda connection, address: came.append((connection, address)),
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first = len(came)
        for _ in range(5):
            await asyncio.sleep(0)
        listener.close()
        assert 10 < first < 40, "others have their turn"
        assert [address for _, address in came] == [each.getsockname() for each in clients]
        for each in (*clients, *(connection for connection, _ in came)):
            each.close()

    asyncio.run(run())


def test_who_has_more_clients_stops_between_two() -> None:
    async def run() -> None:
        (listening,) = bound(GatewaySettings(port=0))
        clients = [socket.create_connection(listening.getsockname()) for _ in range(10)]
        memory = bytearray(ClientCounts.bytes_for(2))
        crowd = ClientCounts(memory, 0)
        ClientCounts(memory, 1).tell(clients=3, sessions=0)
        came: list[socket.socket] = []

        def connected(connection: socket.socket, address: object) -> None:
            del address
            came.append(connection)
            crowd.tell(clients=len(came), sessions=0)

        listener = PortListener([listening], crowd, connected)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first = len(came)
        await asyncio.sleep(0.3)
        listener.close()
        assert first == 4
        assert len(came) == 10, "the other one does not come"
        for each in (*clients, *came):
            each.close()

    asyncio.run(run())
