"""Connections of clients that one process passes to another, which then sends to them by itself."""

from __future__ import annotations

import socket
from contextlib import suppress
from struct import Struct
from typing import Final

_NUMBER: Final = Struct("<I")


def pass_on(to: socket.socket, number: int, connection: socket.socket) -> None:
    """Pass a session's connection on, which this process keeps, too; where that fails, do nothing.

    Args:
        to: Socket to the other process, of type SEQPACKET.
        number: Number of the session among those of its worker.
        connection: The connection of the session's client.
    """
    to.setblocking(False)  # the standard library's; it passes no flags on
    with suppress(OSError):
        socket.send_fds(to, [_NUMBER.pack(number)], [connection.fileno()])


def passed(by: socket.socket, number: int) -> socket.socket | None:
    """Take the connection of a session; those that were passed before it are closed.

    Args:
        by: Socket to the other process.
        number: Number of the session among those of its worker; 0 for none.

    Returns:
        The connection; None if none was passed.
    """
    by.setblocking(False)  # as above
    while True:
        try:
            told, descriptors, *_ = socket.recv_fds(by, _NUMBER.size, 1)
        except OSError:
            return None
        if not descriptors:
            return None  # the other process has ended, or this one has no descriptor left
        connection = socket.socket(fileno=descriptors[0])
        if told == _NUMBER.pack(number):
            connection.setblocking(False)  # the standard library's
            return connection
        connection.close()
