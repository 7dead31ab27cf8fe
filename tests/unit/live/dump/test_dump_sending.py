"""A dump of a binlog that grows, rotates, is purged and dropped."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlane.binlogs.store.binlog_files import Published
from binlane.binlogs.store.files import BinlogFile
from binlane.binlogs.store.fills import Seeding, SeedSource
from binlane.binlogs.store.live import LiveBinlog
from binlane.errors import StatementError
from binlane.live.dump.dump_sending import DumpContext, awaited, serve_dump
from binlane.live.dump.replica_dump import NOWHERE, ReplicaDump
from binlane.live.dump.request import ReplicaRequest
from binlane.live.dump.start import FileBeginning
from binlane.log.codec.packets.framing import PacketSplitter
from binlane.log.codec.packets.replies import ErrPacket
from binlane.log.codec.types import EventType, Flavor
from binlane.positions import FilePosition, GtidPosition
from tests.fixture_sets import fixture_set

FILES = fixture_set("md1011_netstream").binlogs
GROUP_END = 367 + 89
TIMEOUT_S = 30.0


class Binlog:
    """A binlog whose files a test writes itself."""

    def __init__(self, directory: Path, *, begin: str = "") -> None:
        self.directory = directory
        self.name = "binlog"
        self.begin = GtidPosition.parse(begin)
        self.position = GtidPosition.parse("0-1-7")
        self.end = FilePosition("binlog.000001", 4)
        self.names: list[str] = []
        self.seedings: tuple[Seeding, ...] = ()

    @property
    def published(self) -> Published:
        *closed, last = [self._file(name) for name in self.names] or [self._file(self.end.file)]
        if last.name == self.end.file:
            last = replace(last, size_bytes=self.end.position)
        return Published(closed=tuple(closed), last=last, position=self.position)

    def _file(self, name: str) -> BinlogFile:
        path = self.directory / name
        data = path.read_bytes() if path.exists() else b""
        begin = self.begin or (FileBeginning.decode(name, data).done if data else GtidPosition())
        return BinlogFile(
            directory=self.directory,
            name=name,
            size_bytes=len(data),
            begin_gtids=str(begin),
            flavor=begin.flavor,
        )

    def write(self, number: int, size: int | None = None) -> None:
        """Publish the first `size` bytes of a file."""
        name, data = FILES[number]
        (self.directory / name).write_bytes(data[:size])
        if name not in self.names:
            self.names.append(name)
        self.end = FilePosition(name, len(data[:size]))


class Replica:
    """Keeps what a dump sends."""

    def __init__(self) -> None:
        self._splitter = PacketSplitter()
        self._came = asyncio.Event()
        self.types: list[int] = []
        self.bytes_received = 0

    async def send(self, data: bytes | memoryview) -> None:
        for packet in self._splitter.feed(bytes(data)):
            self.types.append(packet.payload[5])
            self.bytes_received += len(packet.payload) - 1
        self._came.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._came.clear()
            await self._came.wait()


def _run(test: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await test

    asyncio.run(limited())


def _error(last_packet: bytes) -> ErrPacket:
    (packet,) = PacketSplitter().feed(last_packet)
    return ErrPacket.decode(packet.payload)


def test_follows_a_binlog_as_it_grows(tmp_path: Path) -> None:
    async def test() -> None:
        binlog, replica = Binlog(tmp_path), Replica()
        binlog.write(0, 325)
        live = LiveBinlog(binlog)
        dump = asyncio.create_task(serve_dump(ReplicaRequest(flags=2), live, replica.send))
        await replica.until(lambda: len(replica.types) == 4)
        assert live.files_read == {"binlog.000001"}
        binlog.write(0, GROUP_END)
        live.notify()
        await replica.until(lambda: len(replica.types) == 6)
        binlog.write(0)
        binlog.write(1)
        live.notify()
        await replica.until(lambda: EventType.STOP in replica.types)
        assert live.files_read == {"binlog.000002"}
        live.drop()
        live.wake()
        error = _error(await dump)
        assert (error.errno, error.message) == (1236, "binlog 'binlog' was dropped")
        assert not live.files_read
        artificial = 2 * 44
        assert replica.bytes_received == sum(len(data) - 4 for _, data in FILES) + artificial

    _run(test())


def test_sends_nothing_that_is_not_published(tmp_path: Path) -> None:
    async def test() -> None:
        binlog, replica = Binlog(tmp_path), Replica()
        binlog.write(0)
        binlog.end = FilePosition("binlog.000001", GROUP_END)
        await serve_dump(ReplicaRequest(flags=3), LiveBinlog(binlog), replica.send)
        assert replica.bytes_received == GROUP_END - 4 + 44

    _run(test())


def test_heartbeats_while_nothing_happens(tmp_path: Path) -> None:
    async def test() -> None:
        binlog, replica = Binlog(tmp_path), Replica()
        binlog.write(0, GROUP_END)
        live = LiveBinlog(binlog)
        request = ReplicaRequest(heartbeat_period_s=0.02)
        dump = asyncio.create_task(serve_dump(request, live, replica.send))
        await replica.until(lambda: replica.types.count(EventType.HEARTBEAT) == 2)
        dump.cancel()

    _run(test())


def test_changes_outside_of_the_scope_are_no_sign_of_life(tmp_path: Path) -> None:
    async def test() -> None:
        binlog, replica = Binlog(tmp_path), Replica()
        binlog.write(0, GROUP_END)
        live = LiveBinlog(binlog)
        request = ReplicaRequest(heartbeat_period_s=0.05)
        dump = asyncio.create_task(serve_dump(request, live, replica.send))
        while EventType.HEARTBEAT not in replica.types:
            live.notify()
            await asyncio.sleep(0.001)
        dump.cancel()

    _run(test())


def test_replica_that_is_ahead_is_waited_for(tmp_path: Path) -> None:
    async def test() -> None:
        binlog, replica = Binlog(tmp_path), Replica()
        binlog.write(0)
        binlog.write(1)
        binlog.position = GtidPosition.parse("0-1-6")
        live = LiveBinlog(binlog)
        request = ReplicaRequest(connect_state=GtidPosition.parse("0-1-7"), flags=1)
        dump = asyncio.create_task(serve_dump(request, live, replica.send))
        await asyncio.sleep(0)
        assert not replica.types
        binlog.position = GtidPosition.parse("0-1-7")
        live.notify()
        await dump
        assert EventType.GTID not in replica.types

    _run(test())


@pytest.mark.parametrize(
    "request_, text",
    [
        (ReplicaRequest(file="other.000001"), "Could not find first log file name"),
        (ReplicaRequest(file="binlog.000001", position=5), "impossible position"),
        (ReplicaRequest(file="binlog.000001", position=0), "impossible position"),
        (ReplicaRequest(file="binlog.000001", position=1 << 31), "impossible position"),
        (ReplicaRequest(connect_state=GtidPosition()), "Could not find GTID state"),
    ],
)
def test_what_cannot_be_served(tmp_path: Path, request_: ReplicaRequest, text: str) -> None:
    async def test() -> None:
        binlog, replica = Binlog(tmp_path, begin="0-1-2"), Replica()
        binlog.write(0)
        error = _error(await serve_dump(request_, LiveBinlog(binlog), replica.send))
        assert error.errno == 1236
        assert error.message.startswith(text) or text in error.message
        assert not replica.types

    _run(test())


def test_missing_next_file_is_no_gap_that_nobody_sees(tmp_path: Path) -> None:
    async def test() -> None:
        binlog, replica = Binlog(tmp_path), Replica()
        binlog.write(0)
        binlog.names.append("binlog.000003")
        binlog.end = FilePosition("binlog.000003", 4)
        error = _error(await serve_dump(ReplicaRequest(flags=1), LiveBinlog(binlog), replica.send))
        assert error.message.startswith("could not find next log")

    _run(test())


def test_file_that_is_purged_meanwhile_is_sent_to_its_end(tmp_path: Path) -> None:
    async def test() -> None:
        binlog, replica = Binlog(tmp_path), Replica()
        binlog.write(0, GROUP_END)
        live = LiveBinlog(binlog)
        dump = asyncio.create_task(serve_dump(ReplicaRequest(flags=2), live, replica.send))
        await replica.until(lambda: len(replica.types) == 6)
        binlog.write(0)
        binlog.write(1)
        (tmp_path / binlog.names.pop(0)).unlink()
        live.notify()
        await replica.until(lambda: EventType.STOP in replica.types)
        dump.cancel()

    _run(test())


def test_a_later_beginning_takes_the_place_of_a_file_that_is_sent(tmp_path: Path) -> None:
    async def test() -> None:
        binlog, replica = Binlog(tmp_path), Replica()
        binlog.write(0, GROUP_END)
        live, request = LiveBinlog(binlog), ReplicaRequest(connect_state=GtidPosition(), flags=2)
        dump = asyncio.create_task(serve_dump(request, live, replica.send))
        await replica.until(lambda: EventType.GTID in replica.types)
        binlog.write(0)
        binlog.write(1)
        binlog.seedings = (
            Seeding(
                log_id=1,
                source=SeedSource(name="77-9", server_id=9),
                first=1,
                last=3,
                place=GtidPosition.parse("0-1-7"),
                is_beginning=True,
                first_file=binlog.names[0],
            ),
        )
        (tmp_path / binlog.names.pop(0)).unlink()
        live.notify()
        await replica.until(lambda: EventType.STOP in replica.types)
        dump.cancel()

    _run(test())


def test_damaged_file_ends_the_dump_with_its_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        binlog, replica = Binlog(tmp_path), Replica()
        binlog.write(0, GROUP_END)
        path = tmp_path / "binlog.000001"
        path.write_bytes(path.read_bytes()[:367] + bytes(GROUP_END - 367))
        error = _error(await serve_dump(ReplicaRequest(flags=1), LiveBinlog(binlog), replica.send))
        assert "binlog.000001:367" in error.message

    _run(test())
    assert "dump of binlog" in caplog.text


def test_a_dump_that_is_ended_by_others(tmp_path: Path) -> None:
    """Whether it waits for more, or for a replica that takes nothing."""

    async def test() -> None:
        binlog, replica = Binlog(tmp_path), Replica()
        binlog.write(0, GROUP_END)
        live = LiveBinlog(binlog)
        for result in (None, StatementError("another one has come", errno=4052)):
            ended: asyncio.Future[StatementError | None] = asyncio.Future()
            dump = asyncio.create_task(
                serve_dump(ReplicaRequest(), live, replica.send, DumpContext(ended=ended))
            )
            await replica.until(lambda: len(replica.types) >= 5)
            ended.set_result(result)
            last = await dump
            assert (last[4] == 0xFE) if result is None else (_error(last).errno == 4052)
            assert not live.files_read
            replica.types.clear()

        async def stuck(data: bytes | memoryview) -> None:
            await asyncio.Event().wait()

        ended = asyncio.Future()
        dump = asyncio.create_task(
            serve_dump(ReplicaRequest(), live, stuck, DumpContext(ended=ended))
        )
        await asyncio.sleep(0.01)
        ended.set_result(None)
        assert (await dump)[4] == 0xFE

    _run(test())


@pytest.mark.parametrize("is_told", [False, True], ids=["ending", "refused"])
def test_a_dump_that_is_to_end_before_the_groups_that_are_left(
    tmp_path: Path, *, is_told: bool
) -> None:
    """A log with more groups than were sent is not one that ends inside of an event."""

    async def test() -> None:
        binlog, replica = Binlog(tmp_path), Replica()
        binlog.write(0, GROUP_END)
        live = LiveBinlog(binlog)
        refused: list[StatementError | None] = [None]
        dump = asyncio.create_task(
            serve_dump(
                ReplicaRequest(), live, replica.send, DumpContext(refusal_of=lambda: refused[0])
            )
        )
        await replica.until(lambda: len(replica.types) >= 5)
        sent = list(replica.types)
        binlog.write(0)
        if is_told:
            refused[0] = StatementError("no longer", errno=1227)
            live.notify()
        else:
            live.end()
        if is_told:
            assert _error(await dump).errno == 1227
        else:
            # It comes again, which it might not do behind EOF.
            with pytest.raises(ConnectionAbortedError):
                await dump
        assert replica.types == sent

    _run(test())


def test_a_replica_that_goes_leaves_no_error_behind(tmp_path: Path) -> None:
    """Its connection is lost, and the session ends the dump, at once."""
    told: list[dict[str, Any]] = []

    async def test() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        binlog = Binlog(tmp_path)
        binlog.write(0, GROUP_END)
        is_lost = asyncio.Event()

        async def lost(data: bytes | memoryview) -> None:
            await is_lost.wait()
            raise ConnectionResetError

        ended: asyncio.Future[StatementError | None] = asyncio.Future()
        live = LiveBinlog(binlog)
        dump = asyncio.create_task(
            serve_dump(ReplicaRequest(), live, lost, DumpContext(ended=ended))
        )
        await asyncio.sleep(0.01)
        is_lost.set()
        await asyncio.sleep(0)
        dump.cancel()
        await asyncio.gather(dump, return_exceptions=True)

    _run(test())
    gc.collect()
    assert told == []


@pytest.mark.parametrize("flavor", [Flavor.MARIADB, Flavor.MYSQL])
@pytest.mark.parametrize("file, told", [("", NOWHERE), ("secret.000001", "secret.000001")])
def test_a_replica_is_kept_alive_while_its_dump_waits(
    tmp_path: Path, flavor: Flavor, file: str, told: str
) -> None:
    """It is told of no file but the one that it asked for; then its dump goes on."""

    async def test() -> None:
        binlog, packets = Binlog(tmp_path), bytearray()
        binlog.write(0, GROUP_END)

        async def send(data: bytes | memoryview) -> None:
            packets.extend(data)

        async def admission() -> str:
            await asyncio.sleep(0.1)
            return "admitted"

        request = ReplicaRequest(
            flavor=flavor, file=file, position=4, flags=1, heartbeat_period_s=0.02
        )
        dump = ReplicaDump(request)
        assert await awaited(admission(), request, dump, send) == "admitted"
        waited = PacketSplitter().feed(bytes(packets))
        assert [packet.payload[5] for packet in waited[:2]] == [
            EventType.ROTATE,
            EventType.HEARTBEAT,
        ]
        assert all(told.encode() in packet.payload for packet in waited)
        live = LiveBinlog(binlog)
        await serve_dump(replace(request, file=""), live, send, dump=dump)
        everything = PacketSplitter().feed(bytes(packets))
        assert [packet.sequence for packet in everything] == [
            number & 0xFF for number in range(1, len(everything) + 1)
        ]
        assert b"binlog.000001" in everything[len(waited)].payload

    _run(test())


def test_what_a_dump_waits_for_is_cancelled_when_the_replica_has_gone() -> None:
    async def test() -> None:
        request = ReplicaRequest(heartbeat_period_s=0.01)
        forever = asyncio.get_running_loop().create_future()

        async def send(data: bytes | memoryview) -> None:
            raise ConnectionResetError

        with pytest.raises(ConnectionResetError):
            await awaited(forever, request, ReplicaDump(request), send)
        assert forever.cancelled()

    _run(test())
