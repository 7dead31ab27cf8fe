"""CPU time of taking a source's log, as JSON lines: a dump's bytes → groups as bytes.

`dump` feeds the packets that a server would send of the first megabytes of a log, as fast as they
are taken; `quiet` one group at a time, as a source sends them that commits now and then; `server`
lets a private MariaDB send a log over a socket, and counts this process only.

    python -m benchmarks.stream [--megabytes N] [--rounds N] [--directory DIR] [--server]
"""

from __future__ import annotations

import json
import os
import selectors
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from benchmarks.measuring import chosen_logs, options
from binlane.client.settings import ServerUrl
from binlane.errors import CodecError
from binlane.live.capture.capture import Capture
from binlane.live.capture.raw_stream import RawStream
from binlane.live.capture.settings import SourceSettings, StartAt
from binlane.live.capture.spill import SpillFolder
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.event import Event, EventHeader, encode_event
from binlane.log.codec.format import Format
from binlane.log.codec.packets.framing import frame
from binlane.log.codec.types import EventType, HeaderFlag
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.raw import Item, RawRun
from binlane.log.grouping.walk import walk
from binlane.positions import nothing_done

_BYTES = 24 << 20
_QUIET = 2000


def main() -> None:
    """Print one line for each way."""
    parser = options(__doc__, ("oltp", "bulk"))
    parser.add_argument("--server", action="store_true", help="let a server send the whole log")
    given = parser.parse_args()
    for name, path in chosen_logs(given):
        if given.server:
            figures = [served(path) for _ in range(given.rounds)]
            _print("server", name, cpu_s_per_100_mb=statistics.median(figures))
            continue
        groups = groups_of(path)
        pieces = dump_of(groups)
        size = sum(map(len, pieces))
        taken_s = statistics.median(fed(groups, [b"".join(pieces)]) for _ in range(given.rounds))
        _print("dump", name, mb_per_cpu_s=round(size / taken_s / 1e6, 1))
        few = pieces[: _QUIET + 2]
        taken_s = statistics.median(fed(groups, few) for _ in range(given.rounds))
        _print("quiet", name, cpu_us_per_group=round(1e6 * taken_s / len(few), 1))


def _print(way: str, log: str, **figures: float) -> None:
    line = {"benchmark": "stream", "way": way, "log": log, **figures, "load": os.getloadavg()[0]}
    print(json.dumps(line), flush=True)


def groups_of(path: Path) -> list[EventGroup]:
    """The groups that the first part of a log holds whole."""
    with path.open("rb") as file:
        head = file.read(_BYTES)
    groups: list[EventGroup] = []
    with suppress(CodecError):  # it ends inside an event
        for group in group_events(walk([head], file=path.name), file=path.name):
            groups.append(group)  # noqa: PERF402  # what came before the error counts
    return [group for group in groups if group.is_complete]


def dump_of(groups: list[EventGroup]) -> list[bytes]:
    """The frames of each group, as a server sends them."""
    format_ = format_of(groups)
    header = EventHeader(
        timestamp=0,
        type_code=EventType.ROTATE,
        server_id=1,
        length=0,
        next_position=0,
        flags=HeaderFlag.ARTIFICIAL,
    )
    rotate = encode_event(Event(header, RotateEvent(position=4, file="binlog.000001")), format_)
    sequence, pieces = 1, []
    written = [[event.raw or b"" for event in group.events] for group in groups]
    for events in [[rotate], *written]:
        piece = b""
        for data in events:
            piece += frame(b"\0" + data, sequence)
            sequence = (sequence + 1) & 0xFF
        pieces.append(piece)
    return pieces


def format_of(groups: list[EventGroup]) -> Format:
    """How the log's events are written."""
    body = groups[0].events[0].body
    assert isinstance(body, FormatDescriptionEvent), "a log begins with one"
    return body.format


def fed(groups: list[EventGroup], pieces: list[bytes]) -> float:
    """CPU seconds that it takes to take some pieces."""
    format_ = format_of(groups)
    with tempfile.TemporaryDirectory() as place:
        start = nothing_done(format_.flavor.value)
        stream = RawStream(format_, start, peer="nobody", spill=SpillFolder(Path(place)))
        count = 0
        begin = time.process_time()
        for piece in pieces:
            left = memoryview(piece)
            while left:
                room = stream.room
                size = min(len(room), len(left))
                room[:size] = left[:size]
                left = left[size:]
                for item in stream.feed(size, has_more=bool(left)):
                    count += count_of(item)
        taken_s = time.process_time() - begin
    assert count or len(pieces) == 1, "groups came"
    return taken_s


def count_of(item: Item) -> int:
    """How many groups an item holds."""
    return item.count if isinstance(item, RawRun) else 1


def served(path: Path) -> float:
    """CPU seconds of this process for each 100 MB that a server sends."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        with PrivateServer.start(directory, name="source", options=SOURCE_OPTIONS) as server:
            server.stop()
            # The server recovers from the last file only, which stays its own.
            data = server.data_directory
            (data / "binlog.000001").rename(data / "binlog.000002")
            (data / "binlog.000001").write_bytes(path.read_bytes())
            (data / "binlog.index").write_text("./binlog.000001\n./binlog.000002\n")
            server.restart()
            settings = SourceSettings(url=ServerUrl.parse(server.url))
            capture = Capture(settings, StartAt.OLDEST, spill=directory / "spill", server_id=4711)
            with closing(capture):
                capture.connect()
                begin = time.process_time()
                for _ in _items_of(capture):
                    if capture.file_position and capture.file_position.file == "binlog.000002":
                        break
                taken_s = time.process_time() - begin
    return round(taken_s / path.stat().st_size * 1e8, 3)


def _items_of(capture: Capture) -> Iterator[Item]:
    with selectors.DefaultSelector() as selector:
        selector.register(capture, selectors.EVENT_READ)
        while True:
            selector.select()
            yield from capture.receive()


if __name__ == "__main__":
    main()
