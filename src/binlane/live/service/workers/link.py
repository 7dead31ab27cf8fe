"""Calls between two processes of one binlane, either of which may call the other.

Each message is a pickle behind its length: both ends are the same program, started by it.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import socket
from collections.abc import Awaitable, Callable
from enum import IntEnum
from struct import Struct
from typing import Any, Final

from binlane.errors import BinlaneError, PeerError

_LENGTH: Final = Struct("<I")
_BUFFER_MAX: Final = 8 << 20

logger = logging.getLogger(__name__)

Serve = Callable[[str, tuple[Any, ...]], Awaitable[Any]]
"""Does what is asked for: by its name, with its arguments."""


class _Kind(IntEnum):
    CALL = 0
    TELL = 1
    RESULT = 2
    ERROR = 3
    CANCEL = 4


class ProcessLink:
    """One end; all of it is the event loop's.

    Args:
        reader: Gives the bytes from the other end.
        writer: Takes the bytes to the other end.
        serve: Executes the calls that the other end may make.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, serve: Serve
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._serve = serve
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._working: dict[int, asyncio.Task[None]] = {}
        self._is_over = False

    @classmethod
    async def over(cls, connection: socket.socket, serve: Serve) -> ProcessLink:
        """The end of a connection."""
        reader, writer = await asyncio.open_connection(sock=connection)
        writer.transport.set_write_buffer_limits(high=_BUFFER_MAX)
        return cls(reader, writer, serve)

    async def run(self) -> None:
        """Serve the other end until it is gone; what was asked of it then fails."""
        try:
            while True:
                kind, number, body = pickle.loads(await self._read())  # noqa: S301  # our own
                self._take(_Kind(kind), number, body)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._is_over = True
            for task in self._working.values():
                task.cancel()
            await asyncio.gather(*self._working.values(), return_exceptions=True)
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(_gone())
            self._writer.close()

    async def call(self, what: str, *arguments: object) -> Any:  # as `Serve`
        """Call the other end and return its result.

        Raises:
            BinlaneError: What it raises; PeerError if it is gone, or failed by a mistake of ours.
            ConnectionError: The same: a client's connection is lost, or is to be closed.
        """
        if self._is_over:
            raise _gone()
        self._number += 1
        number = self._number
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._send(_Kind.CALL, number, (what, arguments))
        try:
            await self._drain()
            return await future
        except asyncio.CancelledError:
            self._send(_Kind.CANCEL, number, None)
            raise
        finally:
            del self._waiting[number]

    def tell(self, what: str, *arguments: object) -> None:
        """Send a message to the other end without waiting for an answer."""
        self._send(_Kind.TELL, 0, (what, arguments))

    def close(self) -> None:
        """End the link; messages that were sent arrive."""
        self._writer.close()

    async def _read(self) -> bytes:
        (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
        return await self._reader.readexactly(length)

    def _send(self, kind: _Kind, number: int, body: object) -> None:
        if self._is_over:
            return
        data = pickle.dumps((int(kind), number, body), pickle.HIGHEST_PROTOCOL)
        self._writer.write(_LENGTH.pack(len(data)) + data)

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError:
            raise _gone() from None

    def _take(self, kind: _Kind, number: int, body: Any) -> None:  # a message
        if kind in {_Kind.CALL, _Kind.TELL}:
            task = asyncio.create_task(self._work(kind, number, *body))
            key = number if kind is _Kind.CALL else -id(task)
            self._working[key] = task
            task.add_done_callback(lambda _: self._working.pop(key, None))
        elif kind is _Kind.CANCEL:
            if number in self._working:
                self._working[number].cancel()
        else:
            future = self._waiting.get(number)
            if future is not None and not future.done():
                if kind is _Kind.RESULT:
                    future.set_result(body)
                else:
                    future.set_exception(body)

    async def _work(self, kind: _Kind, number: int, what: str, arguments: tuple[Any, ...]) -> None:
        try:
            result = await self._serve(what, arguments)
            if kind is _Kind.CALL:
                self._send(_Kind.RESULT, number, result)
        except (BinlaneError, ConnectionError) as error:
            error.with_traceback(None)
            if kind is _Kind.CALL:
                self._send(_Kind.ERROR, number, error)
            else:
                logger.warning("%s: %s", what, error)
        except Exception as error:
            logger.exception("%s failed", what)
            if kind is _Kind.CALL:
                problem = PeerError(f"binlane failed: {error!r}", peer="binlane", phase=what)
                self._send(_Kind.ERROR, number, problem)


def _gone() -> PeerError:
    return PeerError("a process of binlane has ended", peer="binlane", phase="a call")
