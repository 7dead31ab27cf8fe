"""Reading a server's log: `read_remote` gives its events until its end.

A server that is gone is an error: whoever prints a log can ask again.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import replace

from binlane.client.connection import UNREACHED_HINT, UNTRUSTED_HINT, ServerConnection
from binlane.client.remote_machine import (
    RemoteBytes,
    RemoteEnd,
    RemoteEvent,
    RemoteMachine,
    RemoteRequest,
)
from binlane.client.settings import ServerUrl


def read_remote(
    url: ServerUrl,
    request: RemoteRequest,
    *,
    bind_address: str | None = None,
    hint: str = UNREACHED_HINT,
    ca_hint: str = UNTRUSTED_HINT,
) -> Generator[RemoteEvent, None, None]:
    """The events of a server's log; close the iterator to close the connection.

    Args:
        url: The address of the server.
        request: The place where to start, and how far to go.
        bind_address: Own address to connect from; any by default.
        hint: The advice where the server cannot be reached.
        ca_hint: The advice where its certificate is not trusted.

    Raises:
        PeerError: If the server cannot be reached, refuses something, or goes away.
        ConfigError: If a file of certificates cannot be used.
        CodecError: If an event is damaged, with the server's file and position.
    """
    machine = RemoteMachine(request)
    connection = ServerConnection(url, bind_address, hint=hint, ca_hint=ca_hint)
    with closing(connection):
        while True:
            for output in machine.receive(connection.read()):
                if isinstance(output, RemoteEvent):
                    yield output
                elif isinstance(output, RemoteEnd):
                    return
                elif not isinstance(output, RemoteBytes):
                    connection.do(output)


def read_file(url: ServerUrl, request: RemoteRequest) -> Generator[bytes, None, None]:
    """The bytes of one file of a server's log from a position on; closing it ends the connection.

    Args:
        url: The address of the server.
        request: The file, and from where on.

    Raises:
        PeerError: If the server cannot be reached, refuses something, or goes away.
        ConfigError: If a file of certificates cannot be used.
    """
    machine = RemoteMachine(replace(request, is_raw=True, waits=False))
    connection = ServerConnection(url, None)
    with closing(connection):
        while True:
            events: list[bytes] = []
            is_over = False
            for output in machine.receive(connection.read()):
                if isinstance(output, RemoteBytes):
                    events.append(output.data)
                elif isinstance(output, RemoteEnd):
                    is_over = True
                    break
                elif not isinstance(output, RemoteEvent):
                    connection.do(output)
            if events:
                yield b"".join(events)
            if is_over:
                return
