"""A whole conversation with a server on a connection of its own, from greeting to result."""

from __future__ import annotations

from contextlib import closing
from typing import TypeVar

from binlane.client.connection import ServerConnection
from binlane.client.dialogue import Dialogue
from binlane.client.packet_flow import PacketFlow
from binlane.client.settings import ServerUrl

_Result = TypeVar("_Result")


def hold(url: ServerUrl, dialogue: Dialogue[_Result]) -> _Result:
    """Connect, and hold a conversation until it ends.

    Args:
        url: The address of the server.
        dialogue: Begins with the login; its result is not None.

    Raises:
        PeerError: If the server cannot be reached, or refuses something.
        ConfigError: If a file of certificates cannot be used.
    """
    flow = PacketFlow(dialogue, peer=str(url))
    with closing(ServerConnection(url, None)) as connection:
        while True:
            for payload in flow.packets(connection.read()):
                for step in flow.converse(payload):
                    connection.do(step)
                if flow.result is not None:
                    return flow.result
