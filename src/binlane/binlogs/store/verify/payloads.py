"""The events inside of a TRANSACTION_PAYLOAD, checked by the kernel as they are decompressed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.event import EventHeader
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.payload import PayloadCompression, read_payload_head
from binlane.log.codec.types import ChecksumAlgorithm, EventType
from binlane.log.grouping.scanner import Scanner
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.window import Bytes, Window
from binlane.log.kernels import layout

_WINDOW_BYTES: Final = 1 << 20
_COMPRESSED: Final = np.array(
    [code for code in EventType if "ROWS_COMPRESSED" in code.name], np.int32
)


class PayloadPath:
    """Checks payloads, one after the other.

    Args:
        format_: Format of the file's events.
    """

    def __init__(self, format_: Format) -> None:
        plain = replace(format_, checksum=ChecksumAlgorithm.NONE)
        self._format = format_
        self._scanner = Scanner(plain, is_inner=True)
        self._source = _Decompressed()
        self._window = Window(self._source, size_bytes=_WINDOW_BYTES)

    def check(self, data: Bytes, start: int, end: int) -> None:
        """Check the inside of an event; no more than a window of it is in memory.

        Args:
            data: A buffer that holds the event.
            start: Position of the event's body in the buffer.
            end: Position behind the event's body.

        Raises:
            UnexpectedError: If the inside is faulty, or is not for the kernel.
        """
        body = data[start:end].data
        reader = Reader(body)
        try:
            compression, size = read_payload_head(reader)
        except CodecError:
            raise UnexpectedError from None
        self._source.open(body[reader.offset :], compression)
        window, scanner = self._window, self._scanner
        scanner.rewind(0)
        window.drop(window.end)
        window.base = 0
        self._scan(size)

    def _scan(self, size: int) -> None:
        window, scanner = self._window, self._scanner
        while window.base + window.end <= size and window.fill():
            while self._scan_window():
                pass
            done = scanner.offset
            scanner.forget(done)
            window.drop(done)
            if window.end >= HEADER_LENGTH:
                length = int.from_bytes(window.data[9:13].tobytes(), "little")
                if length > size - window.base:
                    raise UnexpectedError
                window.reserve(length)
        if window.end or window.base != size:
            raise UnexpectedError

    def _scan_window(self) -> bool:
        """Go on in the window; False where it is used up."""
        window, scanner = self._window, self._scanner
        state = scanner.state
        # All of it is one group, whatever stands in it.
        state[layout.GROUPS] = 0
        state[layout.IS_OPEN] = state[layout.IS_TRANSACTION] = 1
        status = scanner.scan(window.data, window.end)
        if status == layout.DAMAGED:
            raise UnexpectedError
        events = int(state[layout.EVENTS])
        if np.isin(scanner.events[layout.EVENT_TYPE, :events], _COMPRESSED).any():
            raise UnexpectedError
        state[[layout.EVENTS, layout.FIRST_EVENT]] = 0
        if status == layout.ASK:
            self._look()
            return True
        return bool(state[layout.GROUPS]) or events == scanner.events.shape[1]

    def _look(self) -> None:
        window, start = self._window, self._scanner.offset
        header = EventHeader.decode(window.bytes(start, start + HEADER_LENGTH))
        try:
            self._scanner.look_at(window.bytes(start, start + header.length), 0)
        except CodecError:
            raise UnexpectedError from None


class _Decompressed:
    """The bytes of the events in a payload."""

    def __init__(self) -> None:
        self._plain = memoryview(b"")
        self._stream: Any = None
        self._damage: tuple[type[Exception], ...] = ()

    def open(self, payload: memoryview, compression: int) -> None:
        """Begin with another payload."""
        self._stream = None
        if compression == PayloadCompression.NONE:
            self._plain = payload
            return
        import zstandard  # noqa: PLC0415  # few files need it

        self._damage = (zstandard.ZstdError,)
        self._stream = zstandard.ZstdDecompressor().stream_reader(payload)

    def read_into(self, view: memoryview) -> int:
        """Read bytes as a source of a window.

        Raises:
            UnexpectedError: If the payload is broken.
        """
        if self._stream is None:
            length = min(len(view), len(self._plain))
            view[:length] = self._plain[:length]
            self._plain = self._plain[length:]
            return length
        try:
            return int(self._stream.readinto(view))
        except self._damage:
            raise UnexpectedError from None
