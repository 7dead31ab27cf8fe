"""A TCP port in front of another one that keeps every byte that clients get."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

_CHUNK: Final = 1 << 16


class RecordingProxy:
    """Relays connections to a port of this machine, for the time of a `with` block.

    Attributes:
        port: Where it listens on 127.0.0.1.
        cuts: Bytes to a client behind which its connection is cut, one of them after the other.
        is_open: Whether new connections are relayed; else they are closed at once.
        is_open_behind_cuts: The same once all cuts are done.
    """

    def __init__(self, target: int) -> None:
        self.cuts: list[int] = []
        self.is_open = self.is_open_behind_cuts = True
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._told = bytearray()
        self._sockets: list[socket.socket] = [self._listener]

    def take(self) -> bytes:
        """What clients were sent since this was last asked."""
        with self._lock:
            told, self._told = bytes(self._told), bytearray()
        return told

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if not self.is_open:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [client, server]
                for source, sink, is_kept in ((client, server, False), (server, client, True)):
                    work = threading.Thread(
                        target=self._pump, args=(source, sink, is_kept), daemon=True
                    )
                    work.start()

    def _pump(self, source: socket.socket, sink: socket.socket, is_kept: bool) -> None:  # noqa: FBT001
        relayed = 0
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                if is_kept:
                    with self._lock:
                        self._told += data
                    relayed += len(data)
                    if self.cuts and relayed > self.cuts[0]:
                        self._cut(source, sink, data[: len(data) - relayed + self.cuts.pop(0)])
                        return
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def _cut(self, source: socket.socket, sink: socket.socket, last: bytes) -> None:
        if not self.cuts:
            self.is_open = self.is_open_behind_cuts
        sink.sendall(last)
        for each in (source, sink):
            each.shutdown(socket.SHUT_RDWR)
