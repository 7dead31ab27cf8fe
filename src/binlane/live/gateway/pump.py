"""The connections of one event loop, served beside asyncio's transports.

An epoll instance of its own is one reader of the loop. Where kernels are compiled, one of them receives
what there is and serves the sessions of which nobody has to know more than their frames
(`kernels.passing`); all else is handed to each connection's protocol. A loop of `waiting_loop` waits in that
kernel: what passes does not wake it.
"""

from __future__ import annotations

import asyncio
import select
import selectors
import socket
from collections.abc import Callable
from math import ceil
from struct import Struct
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

from binlane.live.gateway.judge import PassedEnds, UnseenEnds
from binlane.live.gateway.kernel_messages import KernelMessages
from binlane.live.gateway.known_statements import known_statements
from binlane.live.gateway.passing_sessions import (
    PassedSession,
    Passing,
    PassingStatements,
    RecordedCommand,
    Terms,
)
from binlane.log.kernels.load import is_compiled, kernels
from binlane.log.kernels.passing_layout import (
    BYTES_LEFT,
    CLIENT,
    COUNT,
    ENDED,
    EVENTS_MAX,
    EXECUTION,
    FIELDS,
    HANDED,
    HANDED_FIELDS,
    HELD,
    HELD_BYTES,
    HELD_MAX,
    IS_CONTINUED,
    IS_READ,
    IS_UNSENT,
    KIND,
    LOGGED_THREAD,
    NUMBER,
    NUMBERED,
    PACKETS_LEFT,
    PEER,
    PENDING,
    PLACE,
    READ_MAX,
    RECORD_COUNT,
    RECORD_HEAD,
    RECORDED,
    RECORDS_MAX,
    RECORDS_OF_ONE,
    REST,
    RULES,
    SOURCE,
    STATEMENT_FIELDS,
    STATEMENT_ID,
    STATEMENTS,
    STATEMENTS_MAX,
    STATEMENTS_OF_ONE,
    STATUS,
    STEP,
    THREAD,
    TOLD_MAX,
    TYPES,
)

_EVENT_MAX: Final = 16
_PADDING: Final = 64
_MODULE: Final = "passing"
_NUMBERS_FEW: Final = 64
_LOOKS_LEFT_OUT_MAX: Final = 2
_TYPES: Final = Struct(f"<{NUMBER - TYPES}q")
_RECORD: Final = Struct("<IIQQ")
"""A record's length, number, insert id and place."""
_NO_NUMBERS: Final = memoryview(bytes(FIELDS * 8)).cast("l")
_UNSENT_MAX: Final = 64 << 10
_UNSENT_FEW: Final = 16 << 10
"""Unsent bytes at which the protocol is told to stop writing, and at which it may go on."""
_IN: Final = select.EPOLLIN
_OUT: Final = select.EPOLLOUT


class Pump:
    """Serves the connections of the running loop."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._by_number: dict[int, PumpedSocket] = {}
        self._terms: dict[Terms, set[PumpedSocket]] = {}
        self._kernel: Callable[..., int] | None = None
        if is_compiled((_MODULE,)):
            self._prepare_kernel()
        loop, self._other = asyncio.get_running_loop(), -1
        selector = _selectors.get(loop)
        if selector is None or self._kernel is None:
            loop.add_reader(self._epoll.fileno(), self._turn)
        else:
            self._other = selector.fileno()
            self._epoll.register(self._other, _IN)
            selector.waits = self._turn

    def _prepare_kernel(self) -> None:
        import numpy as np  # noqa: PLC0415 - only kernels need it

        self._kernel = kernels().pass_on
        self._known = known_statements()
        self._messages = KernelMessages()
        self._events = np.empty(EVENTS_MAX * _EVENT_MAX + _PADDING, np.uint8)
        # Pages that nothing is written to cost no memory.
        self._buffer = np.empty(EVENTS_MAX * (READ_MAX + HELD_MAX) + _PADDING, np.uint8)
        self._bytes = self._buffer.data
        self._handed = np.empty(2 * EVENTS_MAX * HANDED_FIELDS, np.int64)
        self._table = np.zeros(_NUMBERS_FEW * FIELDS, np.int64)
        self._rows = self._table.data
        self._statements = np.zeros(STATEMENTS_OF_ONE, np.int64)
        self._records = np.zeros(RECORDS_OF_ONE, np.uint8)
        self._free_statements = [0]

    @property
    def can_pass(self) -> bool:
        """True if sessions can be served by the kernel."""
        return self._kernel is not None

    # Calls of connections -------------------------------------------------------------------------

    def watch(self, connection: PumpedSocket, mask: int) -> None:
        """Tell a connection of these events from now on; 0 for none."""
        number = connection.number
        if not connection.mask:
            self._epoll.register(number, mask)
            self._by_number[number] = connection
            if self._kernel is not None and number * FIELDS >= len(self._table):
                self._grow(number)
        elif mask:
            self._epoll.modify(number, mask)
        else:
            self._epoll.unregister(number)
        connection.mask = mask

    def let_go(self, connection: PumpedSocket) -> None:
        """Forget a connection that is over."""
        if connection.mask:
            self.watch(connection, 0)
        self._by_number.pop(connection.number, None)
        if connection.statements >= 0:
            start, connection.statements = connection.statements, -1
            self._statements[start : start + STATEMENTS_OF_ONE] = 0
            self._free_statements.append(start)

    # Sessions that pass ---------------------------------------------------------------------------

    def give(self, client: PumpedSocket, source: PumpedSocket, passing: Passing) -> None:
        """Let the kernel serve a session, of which nothing is under way.

        Args:
            client: Connection of the session's client; its `taken_back` is called before anything is handed
                back.
            source: Connection to the source, likewise.
            passing: Terms and state of the session.
        """
        at, to = client.number * FIELDS, source.number * FIELDS
        rules, status, terms, statements, place, ends = passing
        if terms is not None:
            if terms not in self._terms:
                self._terms = {each: held for each, held in self._terms.items() if held}
            self._terms.setdefault(terms, set()).add(client)
        if statements is not None and (statements.changes or (place and client.statements < 0)):
            self._change_statements(client, statements)
        # A view takes numbers in a third of the time of the array.
        rows = self._rows
        rows[at : at + FIELDS] = _NO_NUMBERS
        rows[at + PEER], rows[at + RULES], rows[at + STATUS] = source.number, rules, status
        rows[at + STATEMENTS], rows[at + PLACE] = client.statements, place
        rows[to + PEER] = client.number
        if ends is not None:
            self._let_end(client, ends, place)
        rows[at + KIND], rows[to + KIND] = CLIENT, SOURCE

    def _let_end(self, client: PumpedSocket, ends: UnseenEnds, place: int) -> None:
        """Let transactions of a session pass as wholes, which is outside of one."""
        told = ends.told.encode()
        if len(told) > TOLD_MAX or client.statements < 0:
            return
        rows, at = self._rows, client.number * FIELDS
        self._messages.go_to(ends.messages)
        rows[at + REST], rows[at + NUMBERED] = place, ends.number
        rows[at + THREAD], rows[at + LOGGED_THREAD] = ends.thread_id, ends.logged_thread_id
        last = self._place_of_records(client) + RECORDS_MAX
        self._records.data[last : last + 1 + len(told)] = bytes((len(told),)) + told

    def take_back(self, client: PumpedSocket) -> PassedSession:
        """Serve a session by its protocols again.

        Args:
            client: Connection of the session's client, which is open.
        """
        for sessions in self._terms.values():
            sessions.discard(client)
        at = client.number * FIELDS
        row = self._rows[at : at + FIELDS].tolist()
        self._rows[at + KIND] = self._rows[row[PEER] * FIELDS + KIND] = HANDED
        held = b""
        if row[HELD]:
            words = (each.to_bytes(8, "little", signed=True) for each in row[HELD_BYTES:STATEMENTS])
            held = b"".join(words)[: row[HELD]]
        records = self._read_records(client, row[RECORDED] + row[PENDING])
        is_under_way = bool(row[PENDING])
        ended = None
        if row[ENDED]:
            last = self._place_of_records(client) + RECORDS_MAX
            size, *told = bytes(self._records.data[last : last + 1 + TOLD_MAX])
            ended = PassedEnds(row[ENDED], bytes(told[:size]).decode())
        return PassedSession(
            row[COUNT],
            row[RECORD_COUNT],
            row[STATUS],
            row[STEP],
            row[PACKETS_LEFT],
            row[BYTES_LEFT],
            bool(row[IS_CONTINUED]),
            row[EXECUTION],
            held,
            records[:-1] if is_under_way else records,
            records[-1] if is_under_way else None,
            ended,
        )

    @staticmethod
    def _place_of_records(client: PumpedSocket) -> int:
        return client.statements // STATEMENTS_OF_ONE * RECORDS_OF_ONE

    def _read_records(self, client: PumpedSocket, size: int) -> tuple[RecordedCommand, ...]:
        """Read the commands of a session that were recorded.

        Args:
            client: Connection of the session's client.
            size: Number of bytes of the records.
        """
        if not size:
            return ()
        first = self._place_of_records(client)
        data, at = bytes(self._records.data[first : first + size]), 0
        found = []
        while at < size:
            length, number, insert_id, place = _RECORD.unpack_from(data, at)
            at += RECORD_HEAD + length
            found.append(RecordedCommand(place, number, insert_id, data[at - length : at]))
        return tuple(found)

    def count(self, client: PumpedSocket) -> tuple[int, int]:
        """Take the numbers of commands that have passed without and with a record; they begin anew."""
        at, rows = client.number * FIELDS, self._rows
        counts = rows[at + COUNT], rows[at + RECORD_COUNT]
        rows[at + COUNT] = rows[at + RECORD_COUNT] = 0
        return counts

    def _change_statements(self, client: PumpedSocket, statements: PassingStatements) -> None:
        """Tell the kernel which prepared statements pass by now."""
        if client.statements < 0:
            if not self._free_statements:
                first = len(self._statements)
                self._statements = _grown(self._statements, 2 * first)
                self._records = _grown(self._records, 2 * len(self._records))
                self._free_statements = list(range(first, 2 * first, STATEMENTS_OF_ONE))
            client.statements = self._free_statements.pop()
        table, start = self._statements, client.statements
        for statement_id, known in statements.changes.items():
            at = start + statement_id % STATEMENTS_MAX * STATEMENT_FIELDS
            if not statement_id:
                table[start : start + STATEMENTS_OF_ONE] = 0
            elif known is not None:
                types, number = known
                words = _TYPES.unpack(types.ljust(_TYPES.size, b"\0"))
                table[at : at + STATEMENT_FIELDS] = statement_id, len(types) // 2, *words, number
            elif table[at + STATEMENT_ID] == statement_id:
                table[at + STATEMENT_ID] = 0
        statements.changes.clear()

    def _grow(self, number: int) -> None:
        self._table = _grown(self._table, 2 * (number + 1) * FIELDS)
        self._rows = self._table.data

    # Turns ----------------------------------------------------------------------------------------

    def _turn(self, timeout_ms: int = 0) -> None:
        """Serve what is ready.

        Args:
            timeout_ms: Milliseconds to wait, until something is handed back or the loop has other things to do;
                below 0 without end.
        """
        kernel = self._kernel
        if kernel is None:
            for number, mask in self._epoll.poll(0, EVENTS_MAX):
                self._call(number, PumpedSocket.happened, mask)
            return
        for terms, sessions in self._terms.items():
            if sessions and not terms():
                for client in tuple(sessions):
                    self._call(client.number, _do_nothing, None)
        handed = self._handed
        count = self._run_kernel(kernel, timeout_ms)
        if not count:
            return
        # What a protocol does may bring the next turn's bytes, but not here: they are copied one by one.
        numbers = handed[: count * HANDED_FIELDS].tolist()
        for at in range(0, len(numbers), HANDED_FIELDS):
            number, mask, start, length = numbers[at : at + HANDED_FIELDS]
            if mask & IS_READ:
                data = bytes(self._bytes[start : start + length])
                self._call(number, PumpedSocket.received, data)
            elif mask & IS_UNSENT:
                data = bytes(self._bytes[start : start + length])
                self._call(number, PumpedSocket.write, data)
            else:
                self._call(number, PumpedSocket.happened, mask)

    def _run_kernel(self, kernel: Callable[..., int], timeout_ms: int) -> int:
        """Let the kernel serve what is ready; gives the number of things that it hands back."""
        known, messages = self._known, self._messages
        messages.begin_turn()
        count = kernel(
            (self._epoll.fileno(), timeout_ms, self._other),
            *(self._events, self._table),
            (
                *(self._statements, known.texts, known.table, self._records),
                *(known.piece_places, known.pieces, messages.said),
            ),
            *(self._buffer, self._handed),
        )
        messages.end_turn()
        return count

    def _call(self, number: int, do: Callable[[PumpedSocket, Any], None], given: object) -> None:
        """Tell a connection of something, if it was not let go of meanwhile."""
        connection = self._by_number.get(number)
        if connection is None:
            return
        try:
            if connection.taken_back is not None:
                connection.taken_back()
            do(connection, given)
        except Exception as error:  # noqa: BLE001 - as asyncio does it: other connections go on
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a connection's protocol failed", "exception": error}
            )
            connection.abort()


class PumpedSocket(asyncio.Transport):
    """One connection, and the bytes that its peer has not taken yet.

    Args:
        pump: Pump that tells of the connection's events.
        connected: The connection's socket, which does not block.
        protocol: Protocol that is told of the bytes and of the end.

    Attributes:
        pump: Pump that serves the connection.
        number: File number of the connection's socket.
        socket: Socket of the connection, which does not block.
        mask: Events that the pump watches for.
        statements: Place of its session's prepared statements among those of all; below 0 for none.
        taken_back: Called before anything is done with a connection that the kernel serves; None
            for others.
    """

    def __init__(self, pump: Pump, connected: socket.socket, protocol: asyncio.Protocol) -> None:
        self.pump = pump
        self._protocol = protocol
        self._unsent = bytearray()
        self._reads = self._is_open = True
        self._is_full = self._has_ended = False
        self.socket = connected
        self.number = connected.fileno()
        self.mask = 0
        self.statements = -1
        self.taken_back: Callable[[], None] | None = None
        self._watch()

    # Calls of the pump ----------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Hand on bytes of the peer; none are its end."""
        if not self._is_open:
            return
        if data:
            self._protocol.data_received(data)
            return
        self._has_ended = True
        self._watch()
        if not self._protocol.eof_received():
            self.close()

    def happened(self, mask: int) -> None:
        """Send what waits, and read where the kernel did not.

        Args:
            mask: Events as `select.epoll` tells them.
        """
        if self._unsent and mask & ~_IN:
            self._send_on()
        if mask & ~_OUT and self.mask & _IN:
            try:
                data = self.socket.recv(_UNSENT_MAX)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._lose(error)
                return
            self.received(data)

    # Calls of protocols, as in `asyncio.Transport` -------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Give the addresses and the socket."""
        try:
            if name == "peername":
                return self.socket.getpeername()
            if name == "sockname":
                return self.socket.getsockname()
        except OSError:  # gone already
            return default
        return self.socket if name == "socket" else default

    def is_closing(self) -> bool:
        """True if the connection is over, or is once what waits was sent."""
        return not self._is_open

    def get_write_buffer_size(self) -> int:
        """Give the number of bytes that wait to be sent."""
        return len(self._unsent)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes; a copy of those that the peer does not take now waits."""
        if not self._is_open:
            return
        if not self._unsent:
            try:
                sent = self.socket.send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                self._lose(error)
                return
            if sent == len(data):
                return
            data = memoryview(data)[sent:]
        self._unsent += data
        self._watch()
        if len(self._unsent) > _UNSENT_MAX and not self._is_full:
            self._is_full = True
            self._protocol.pause_writing()

    def pause_reading(self) -> None:
        """Read no more for now."""
        self._reads = False
        self._watch()

    def resume_reading(self) -> None:
        """Read again."""
        self._reads = True
        self._watch()

    def close(self) -> None:
        """Close the connection once what waits was sent."""
        if not self._is_open:
            return
        self._is_open = False
        self._watch()
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._end, None)

    def abort(self) -> None:
        """Close the connection now."""
        self._lose(None)

    def _watch(self) -> None:
        mask = _IN if self._reads and self._is_open and not self._has_ended else 0
        if self._unsent:
            mask |= _OUT
        if mask != self.mask:
            self.pump.watch(self, mask)

    def _send_on(self) -> None:
        try:
            sent = self.socket.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        del self._unsent[:sent]
        self._watch()
        if self._is_full and len(self._unsent) <= _UNSENT_FEW:
            self._is_full = False
            self._protocol.resume_writing()
        if not self._is_open and not self._unsent:
            self._end(None)

    def _lose(self, error: Exception | None) -> None:
        """End the connection; the protocol is told when it is called no more."""
        if self.number < 0:
            return
        self._is_open = False
        self._unsent.clear()
        self._watch()
        asyncio.get_running_loop().call_soon(self._end, error)

    def _end(self, error: Exception | None) -> None:
        if self.number < 0:
            return
        self.pump.let_go(self)
        self.number = -1
        self.socket.close()
        protocol, self._protocol = self._protocol, _NOBODY
        protocol.connection_lost(error)


_NOBODY: Final = asyncio.Protocol()
"""Protocol of connections that are over: with their own they would be left to the garbage collector."""


def _do_nothing(_connection: PumpedSocket, _given: object) -> None:
    """A connection is only taken back."""


def _grown(table: Any, length: int) -> Any:
    import numpy as np  # noqa: PLC0415 - only kernels need it

    grown = np.zeros(length, table.dtype)
    grown[: len(table)] = table
    return grown


class _WaitingSelector(selectors.EpollSelector):
    """A loop's selector that lets the pump wait.

    Attributes:
        waits: Serves connections for up to so many milliseconds, or, below 0, until this selector has an event.
    """

    waits: Callable[[int], None] | None = None
    _left_out = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events, as selectors do."""
        if self.waits is not None:
            # One event brings about several callbacks, one behind the other: they go before another look.
            if timeout is not None and timeout <= 0 and self._left_out < _LOOKS_LEFT_OUT_MAX:
                self._left_out += 1
                return []
            self._left_out = 0
            self.waits(-1 if timeout is None else max(0, ceil(1000 * timeout)))
            timeout = 0
        return super().select(timeout)


_selectors: WeakKeyDictionary[asyncio.AbstractEventLoop, _WaitingSelector] = WeakKeyDictionary()


def waiting_loop() -> asyncio.AbstractEventLoop:
    """Make an event loop that waits in the kernel which serves sessions that pass.

    Their terms are asked when the loop does something, so nothing but the loop may change them.
    """
    selector = _WaitingSelector()
    loop = asyncio.SelectorEventLoop(selector)
    _selectors[loop] = selector
    return loop


_pumps: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Pump]] = WeakKeyDictionary()
"""The pump of each loop, whose reader or selector holds it."""


def pumped(connected: socket.socket, protocol: asyncio.Protocol) -> PumpedSocket:
    """Serve a new connection by the running loop's pump.

    Args:
        connected: The connection's socket, which does not block.
        protocol: Protocol that is told of the connection's bytes.
    """
    loop = asyncio.get_running_loop()
    known = _pumps.get(loop)
    pump = None if known is None else known()
    if pump is None:
        pump = Pump()
        _pumps[loop] = ref(pump)
    return PumpedSocket(pump, connected, protocol)
