"""Runs dumps: reads files, waits for more, sends packets.

A dump reads up to what the store has published and no further, so it never sees half of an event
group, nor one that a crash could take back. Dumps that have much to send take turns, a slice each,
and hold no more than that: how many there are, and how large an event is, costs no memory.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final, TypeVar
from weakref import WeakKeyDictionary

from binlane.binlogs.store.files import BinlogFile
from binlane.binlogs.store.fills import Seeding
from binlane.binlogs.store.group_index import POINT_BYTES, GroupIndex
from binlane.binlogs.store.group_points import group_index
from binlane.binlogs.store.held_gtids import first_lacking
from binlane.binlogs.store.live import LiveBinlog
from binlane.errors import CodecError, StatementError
from binlane.live.dump.beginnings import dump_start, files_for, left_out_rows
from binlane.live.dump.dump_progress import DumpProgress
from binlane.live.dump.packing import SLICE_BYTES, Packer, can_pack
from binlane.live.dump.replica_dump import BEGINNING, ReplicaDump
from binlane.live.dump.request import ReplicaRequest, refusal
from binlane.live.dump.start import (
    HEAD_LENGTH_MAX,
    FileBeginning,
    check_connect_state,
    check_position,
    file_for,
    gtids_ahead,
)
from binlane.log.codec.event import EventHeader
from binlane.log.codec.format import HEADER_LENGTH
from binlane.log.codec.types import ROWS_TYPES
from binlane.positions import FilePosition, GtidSet, Position


class DumpTurns:
    """Lets one dump at a time send a slice, and whoever else uses the event loop in between.

    Many dumps that catch up always have something to send. Each time around the event loop gives
    one of them its turn, so that a statement waits for one slice and not for one of each dump.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_giving = False

    async def take(self) -> None:
        """Wait for a turn."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append(future)
        if not self._is_giving:
            self._is_giving = True
            loop.call_soon(self._give, loop)
        await future

    def _give(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():  # not cancelled
                future.set_result(None)
                loop.call_soon(self._give, loop)
                return
        self._is_giving = False


# Bytes just written are in the page cache, and are sent at once: for less nobody has to take turns.
_SMALL_READ: Final = 16 << 10
_PLACES_AGAIN: Final = 4 * POINT_BYTES
"""Bytes that are sent behind the last known place before others are looked for."""
WATERMARK_TIMEOUT_S: Final = 10.0
"""Longest wait for a replica that is ahead of us, having followed the source itself."""

_TURNS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, DumpTurns]] = WeakKeyDictionary()
_NO_WAIT: Final = os.RWF_NOWAIT if hasattr(os, "RWF_NOWAIT") else 0

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

Send = Callable[[bytes | memoryview], Awaitable[None]]
"""Sends bytes, which may be overwritten once it has run up to where it waits; returns when the client
takes more."""


def _may_go_on() -> StatementError | None:
    """Return the error of a dump that nobody ends: none."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpContext:
    """The port's part in a dump.

    Attributes:
        source_id: The UUID of a MySQL source.
        ended: Ends the dump once it has a result: an error, or None as KILL QUERY does.
        refusal_of: Gives the error with which the dump is to end behind the event group that it is
            at, once there is one; the binlog's readers are woken then.
        progress: Is kept up to date, for whoever shows it.
    """

    source_id: str = ""
    ended: asyncio.Future[StatementError | None] | None = None
    refusal_of: Callable[[], StatementError | None] = _may_go_on
    progress: DumpProgress = field(default_factory=DumpProgress)


async def awaited(
    work: Awaitable[_T], request: ReplicaRequest, dump: ReplicaDump, send: Send
) -> _T:
    """Wait for what a dump needs to begin; a replica that wants heartbeats gets such meanwhile.

    Args:
        work: The work to wait for; cancelled when the replica has gone.
        request: The request of the replica.
        dump: The dump of the same request, at its beginning.
        send: Takes packets as in `serve_dump`, which goes on with the same dump.
    """
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait((task,), timeout=request.heartbeat_period_s))[0]:
            await send(dump.wait())
        return task.result()
    finally:
        task.cancel()


async def serve_dump(
    request: ReplicaRequest,
    live: LiveBinlog,
    send: Send,
    context: DumpContext | None = None,
    *,
    dump: ReplicaDump | None = None,
) -> bytes:
    """Send a binlog to a replica until one of them ends; cancel it when the replica has gone.

    Args:
        request: The request of the replica.
        live: The binlog that is sent.
        send: Takes packets numbered from 1, as the reply to COM_BINLOG_DUMP.
        context: Default: nobody ends the dump or looks at its progress.
        dump: The dump of the request, where `awaited` was given it before.

    Returns:
        The last packet, EOF or ERR. The caller sends it, having dropped what the replica sent in
        the meantime: what comes after it is the next command.

    Raises:
        ConnectionError: If the replica has gone, or its connection is to be closed, so that it
            comes again: dumps are to end, or this one cannot go on inside of an event.
    """
    dump = ReplicaDump(request) if dump is None else dump
    context = DumpContext() if context is None else context
    named, progress = {"binlog": live.name}, context.progress
    try:
        stream = _Stream(request, live, dump, send, context)
        await _until(context.ended, stream.run())
        if dump.is_inside_event:
            raise ConnectionAbortedError("the dump was ended inside of an event")
    except _EndingError:
        logger.info("dump of %s to replica %d ends", live.name, request.server_id, extra=named)
        # EOF would say that this is all: Debezium stops at it, and tools take a part for the log.
        raise ConnectionAbortedError("the port is closing") from None
    except StatementError as error:
        logger.info(
            "dump of %s to replica %d: %s", live.name, request.server_id, error, extra=named
        )
        progress.failure = error.message
        if dump.is_inside_event:
            raise ConnectionAbortedError("the rest of an event is not sent") from None
        return dump.error(error)
    except ConnectionError:
        raise  # the replica has gone: nobody is left to be told
    except (CodecError, OSError) as error:
        logger.exception("dump of %s to replica %d", live.name, request.server_id, extra=named)
        live.unreadable[progress.file or request.file] = str(error)
        if dump.is_inside_event:
            raise ConnectionAbortedError("the rest of an event cannot be sent") from None
        return dump.error(refusal(f"error reading log entry: {error}", hint="run binlane verify"))
    return dump.end()


async def _until(
    ended: asyncio.Future[StatementError | None] | None, work: Coroutine[None, None, None]
) -> None:
    """Run a dump until it is over or is to end; packets are sent whole or not at all."""
    if ended is None:
        await work
        return
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task, ended), return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()
        # Also of one that has ended by itself meanwhile, whose error nobody else would take.
        await asyncio.gather(task, return_exceptions=True)
    if not task.cancelled():
        task.result()
    elif (error := ended.result()) is not None:
        raise error


class _EndingError(Exception):
    """Inside this module: dumps are to end, and this one is between two event groups."""


class _Stream:
    """One dump at work."""

    def __init__(
        self,
        request: ReplicaRequest,
        live: LiveBinlog,
        dump: ReplicaDump,
        send: Send,
        context: DumpContext,
    ) -> None:
        self._request = request
        self._source_id = context.source_id
        self._live = live
        self._dump = dump
        self._send = send
        self._refusal_of = context.refusal_of
        self._progress = context.progress
        self._silent_since_s = _now_s()
        self._after: Position | None = None
        self._connect_state: Position | None = None
        self._seedings: tuple[Seeding, ...] = ()
        # Places in the file with what is done there, and the place from where on more are looked
        # for.
        self._places: deque[tuple[int, Position]] = deque()
        self._places_end = 0

    async def run(self) -> None:
        """Send everything; returns only if the dump does not wait."""
        file, head, position, inside = await self._start()
        is_first = True
        while True:
            with self._live.reading(file.name), file.path.open("rb") as stream:
                self._check_unchanged(file.name, stream)
                opened = self._dump.open_file(
                    head, position=position, after=self._after, inside_statement=inside
                )
                await self._deliver(opened)
                self._places.clear()
                if self._dump.tells_left_out:
                    self._places.append((head.size_bytes, head.done))
                self._places_end = head.size_bytes
                if is_first and self._connect_state is not None:
                    await self._skip_done(file, stream, self._connect_state)
                is_first = False
                next_file = await self._send_file(file, head, stream)
                self._live.unreadable.pop(file.name, None)
            if next_file is None:
                return
            self._pass_beginning(next_file)
            file, head, position, inside = next_file, _read_head(next_file), BEGINNING, False

    async def _start(self) -> tuple[BinlogFile, FileBeginning, int, bool]:
        """The first file, where it is sent from, and whether that is inside of a statement of rows."""
        if self._request.connect_state is not None:
            return await self._start_by_gtid(self._request.connect_state)
        name, position = self._request.file, self._request.position
        file = next((file for file in self._live.published.files if name in ("", file.name)), None)
        if file is None:
            raise refusal(
                "Could not find first log file name in binary log index file",
                hint=f"SHOW BINARY LOGS FOR '{self._live.name}' lists the files",
            )
        end = self._live.published.end
        with file.path.open("rb") as stream:
            size = end.position if end.file == file.name else os.fstat(stream.fileno()).st_size
            data = _read(stream, position, HEADER_LENGTH) if position <= size else b""
        check_position(FilePosition(file.name, position), data, end=size)
        inside = len(data) == HEADER_LENGTH and EventHeader.decode(data).type_code in ROWS_TYPES
        return file, _read_head(file), position, inside

    async def _start_by_gtid(
        self, connect_state: Position
    ) -> tuple[BinlogFile, FileBeginning, int, bool]:
        deadline_s = _now_s() + WATERMARK_TIMEOUT_S
        told = connect_state
        while True:
            version, left_s = self._live.version, deadline_s - _now_s()
            position = self._live.published.position
            connect_state = dump_start(told, self._live.seedings, self._live.name).asked
            if left_s <= 0 or not gtids_ahead(connect_state, position, self._source_id):
                break
            if self._live.is_ending:
                raise _EndingError
            await self._live.wait_for_change(version, left_s)
        published = self._live.published
        start = dump_start(told, self._live.seedings, self._live.name)
        self._seedings = self._live.seedings
        if self._seedings:
            self._dump.begin_with(start.done, start.known)
        self._connect_state = connect_state = start.asked
        files = files_for(connect_state, self._seedings, published.files)
        check_connect_state(
            connect_state,
            begin=files[0].begin,
            watermark=published.position,
            name=self._live.name,
            source_id=self._source_id,
        )
        file = file_for(connect_state, files)
        self._after = file.begin
        if isinstance(connect_state, GtidSet):
            left = files[files.index(file) :]
            file = left[await asyncio.to_thread(first_lacking, left, connect_state)]
        return file, _read_head(file), BEGINNING, False

    def _notice_rows(self, file: BinlogFile, head: FileBeginning) -> None:
        """Find out what rows mean for a replica that came before they did."""
        told, seedings = self._request.connect_state, self._live.seedings
        if seedings is self._seedings or told is None:
            return
        is_first = not self._seedings and not file.begin
        self._seedings = seedings
        if is_first and seedings and self._dump.position <= head.size_bytes:
            start = dump_start(told, seedings, self._live.name)
            self._dump.begin_with(start.done, start.known, head)

    def _pass_beginning(self, file: BinlogFile) -> None:
        """Leave out the rows that a file begins with: the replica has what they stand for."""
        if file.begin:
            return
        number = _number(file.name)
        before = [s for s in self._live.seedings if _number(s.first_file) <= number]
        beginnings = [seeding for seeding in before if seeding.is_beginning]
        if beginnings:
            self._dump.leave_out(left_out_rows(beginnings[-1]))

    async def _skip_done(self, file: BinlogFile, stream: BinaryIO, connect_state: Position) -> None:
        """Leave out what the replica has as far as the file's index of groups tells where it ends."""
        end = self._live.published.end
        size = end.position if end.file == file.name else os.fstat(stream.fileno()).st_size
        index = await asyncio.to_thread(group_index, file.path, size_bytes=size)
        point = index.behind(connect_state) if index else None
        if index is None or point is None or point.position > size:
            return
        while self._dump.position < index.start:
            await self._forward(stream, index.start)
        await self._tell_left_out()
        self._dump.skip_to(point.position, index.position_of(point))

    def _check_unchanged(self, name: str, stream: BinaryIO) -> None:
        """See that a file that is written no more has the size with which it was closed."""
        size = os.fstat(stream.fileno()).st_size
        for file in self._live.published.closed:
            if file.name == name and file.size_bytes != size:
                raise CodecError(
                    f"the file has {size} bytes, and was closed with {file.size_bytes}"
                ).at(name, min(size, file.size_bytes))

    async def _send_file(
        self, file: BinlogFile, head: FileBeginning, stream: BinaryIO
    ) -> BinlogFile | None:
        """Send a file and wait at the log's end; gives the next file, None where waiting is not asked."""
        dump, live = self._dump, self._live
        while True:
            self._notice_rows(file, head)
            version = live.version
            if live.is_dropped and not dump.is_inside_event:
                raise refusal(f"binlog '{live.name}' was dropped")
            published = live.published
            end = published.end
            is_last = end.file == dump.file
            # A file that is not the last is whole, and stays open here even if it is purged.
            limit = end.position if is_last else os.fstat(stream.fileno()).st_size
            if dump.has_ended or dump.position >= limit:
                if live.is_ending:
                    raise _EndingError
                if (refused := self._refusal_of()) is not None:
                    raise refused
            if dump.position < limit:
                await self._forward(stream, await self._next_place(file, limit))
                await self._tell_left_out()
            elif not is_last:
                return _file_after(dump.file, live.published.files)
            else:
                self._places.append((limit, published.position))
                await self._tell_left_out()
                await self._deliver(dump.position_after_skipped())
                if self._request.is_non_blocking:
                    return None
                await self._wait(version)
                self._progress.complete_s = time.time()

    async def _next_place(self, file: BinlogFile, limit: int) -> int:
        """Return the end of the bytes that are sent before something else is due; `limit` at most."""
        dump = self._dump
        if not self._places and dump.position >= self._places_end and dump.tells_left_out:
            self._places.extend(await asyncio.to_thread(_places, file.path, dump.position, limit))
            last = self._places[-1][0] if self._places else dump.position
            self._places_end = last + _PLACES_AGAIN
        return min(limit, self._places[0][0]) if self._places else limit

    async def _tell_left_out(self) -> None:
        """Tell of what was left out before each place that the dump has come to."""
        dump = self._dump
        while self._places and self._places[0][0] <= dump.position:
            position, done = self._places.popleft()
            if position < dump.position:
                continue  # the replica has what lies before
            for packets in dump.left_out(done, timestamp=self._timestamp()):
                await self._deliver(packets)
                if len(packets) > _SMALL_READ:
                    await _turns().take()
                if self._is_ending:
                    return  # and nothing else is sent

    def _timestamp(self) -> int:
        """About the time at which was committed what stands where the dump is."""
        last, is_at_end = self._progress.last_timestamp, self._progress.complete_s is not None
        return int(time.time()) if last is None or is_at_end else last

    async def _forward(self, stream: BinaryIO, limit: int) -> None:
        dump, position = self._dump, self._dump.position
        # All who come by here read up to the same places, and an event that has no more bytes than
        # lie between two of them is whole at the next reading.
        end = (position // SLICE_BYTES + 2) * SLICE_BYTES
        end = min(max(end, position + min(dump.needed_bytes, len(_packer().room))), limit)
        size, left = end - position, limit - position
        if size <= _SMALL_READ:
            data = _read(stream, position, size)
            self._check_read(len(data), size, position)
            self._note_read(data)
        else:
            await _turns().take()
            read = await _read_slice(stream, position, size)
            self._check_read(read, size, position)
            self._note_read(_packer().room)
            if can_pack() and dump.can_be_packed and not self._is_ending:
                await self._deliver(dump.pack(_packer(), size))
                if dump.position > position:
                    return
            data = bytes(_packer().room[:size])
        await self._deliver(dump.feed(data, size_bytes=left, ends=self._is_ending))
        if dump.position == position and size == left and not dump.has_ended:
            raise CodecError("the log ends inside an event").at(dump.file, position)

    @property
    def _is_ending(self) -> bool:
        """True if the dump ends behind the event group that it is at."""
        return self._live.is_ending or self._refusal_of() is not None

    def _check_read(self, read: int, size: int, position: int) -> None:
        if read < size:
            error = CodecError("the file is shorter than what was published")
            raise error.at(self._dump.file, position)

    async def _wait(self, version: int) -> None:
        """Wait for more, and send a heartbeat when it is time."""
        period_s = self._request.heartbeat_period_s
        if period_s is None:
            await self._live.wait_for_change(version, None)
            return
        left_s = self._silent_since_s + period_s - _now_s()
        if left_s > 0:
            await self._live.wait_for_change(version, left_s)
        else:
            await self._deliver(self._dump.heartbeat())

    def _note_read(self, data: bytes | memoryview) -> None:
        """Keep the time of an event that is read, for whoever shows how far the dump is."""
        if not self._dump.is_inside_event:
            self._progress.read(bytes(data[:HEADER_LENGTH]))

    async def _deliver(self, packets: bytes | memoryview) -> None:
        dump, progress = self._dump, self._progress
        if packets:
            progress.sending_since_s = time.time()
            await self._send(packets)
            progress.sending_since_s = None
            progress.sent_bytes += len(packets)
            self._silent_since_s = _now_s()
        progress.file, progress.position = dump.file, dump.position


def _places(path: Path, position: int, end: int) -> list[tuple[int, Position]]:
    """Places of a file, behind one and up to another, and what is done there, as its index has it."""
    index = GroupIndex.read(path)
    if index is None:
        return []
    return [(each.position, index.position_of(each)) for each in index.ahead(position, end)]


def _now_s() -> float:
    return asyncio.get_running_loop().time()


@cache
def _packer() -> Packer:
    return Packer()


def _turns() -> DumpTurns:
    loop = asyncio.get_running_loop()
    turns = _TURNS.get(loop)
    if turns is None:
        turns = _TURNS[loop] = DumpTurns()
    return turns


async def _read_slice(stream: BinaryIO, position: int, size: int) -> int:
    """Read into the packer's room, in a thread where that has to wait for the disk; how much came."""
    number, room = stream.fileno(), _packer().room[:size]
    try:
        read = os.preadv(number, [room], position, _NO_WAIT)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EOPNOTSUPP):
            raise
        read = 0
    if read == size:
        return read
    data = await asyncio.to_thread(_read, stream, position, size)
    room[: len(data)] = data
    return len(data)


def _read(stream: BinaryIO, position: int, size: int) -> bytes:
    return os.pread(stream.fileno(), size, position)


def _read_head(file: BinlogFile) -> FileBeginning:
    with file.path.open("rb") as stream:
        head = FileBeginning.decode(file.name, stream.read(HEAD_LENGTH_MAX))
    if head.done != (begin := file.begin):
        raise CodecError(f"the file begins at {head.done}; the store has noted {begin}").at(
            file.name, head.format_description.next_position
        )
    return head


def _file_after(name: str, files: Sequence[BinlogFile]) -> BinlogFile:
    number = _number(name) + 1
    for file in files:
        if _number(file.name) == number:
            return file
    raise refusal(
        f"could not find next log; the last event was read from '{name}'",
        hint="files that the replica still needed were purged: take a new copy of the tables",
    )


def _number(name: str) -> int:
    return int(name.rpartition(".")[2])
