"""CPU of `serve`'s routing for a commit that comes alone, as JSON lines: without a server and ports.

The routing loop takes a source's log from a socket, one group at a time with a pause in between,
routes each into some binlogs, forces it to disk and publishes it. The groups are those of
`benchmarks.planned`, whose plans are known when they come. CPU seconds of the routing thread, and of
it and the threads that wait for the disk, for 1,000 commits.

    python -m benchmarks.alone [--commits 300] [--rounds 3] [--pause 0.008] [--directory DIR]
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.planned import SCOPES, THREAD, plan_of, write_log
from benchmarks.stream import dump_of, format_of, groups_of
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.client.settings import ServerUrl
from binlane.live.capture.identity import SourceIdentity
from binlane.live.capture.raw_stream import RawStream
from binlane.live.capture.settings import SourceSettings, Start
from binlane.live.capture.source_facts import SourceFacts
from binlane.live.capture.spill import SpillFolder
from binlane.live.loop.loop import RoutingLoop
from binlane.live.loop.substitution import Substitution
from binlane.live.port.attributions import Attributions
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.format import Format
from binlane.log.codec.types import Flavor
from binlane.log.grouping.raw import Item
from binlane.positions import FilePosition, GtidPosition, Position
from tests.routed_files import definitions

_COUNTS = (1, 10)
_WARM = 20
_MODES = {"row": "LOG ALL, FORMAT='ROW'", "statement": SCOPES["unscoped"]}


def main() -> None:
    """Print one line for each logging mode and number of binlogs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--commits", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.008, help="seconds between commits")
    parser.add_argument("--only", nargs="*", choices=_MODES, default=tuple(_MODES))
    parser.add_argument("--binlogs", nargs="*", type=int, default=_COUNTS)
    parser.add_argument("--profile", action="store_true", help="tell functions of the thread")
    parser.add_argument("--directory", type=Path, help="of the binlogs; one of the system's")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as place:
        path = Path(place) / "binlog.000001"
        head, _ = write_log(path, given.commits + _WARM)
        groups = groups_of(path)
        pieces, format_ = dump_of(groups), format_of(groups)
        for mode in given.only:
            for count in given.binlogs:
                taken = []
                for number in range(given.rounds):
                    folder = Path(place) / f"{mode}{count}-{number}"
                    source = _Source(format_, folder / "spill")
                    with Store.open(folder, StoreSettings()) as store:
                        for definition in definitions(*[_MODES[mode]] * count):
                            store.create_binlog(
                                definition,
                                start=GtidPosition(),
                                format_description=head,
                                server_id=1,
                                timestamp=0,
                            )
                        taken.append(_routed(store, source, pieces, head, given))
                line = {
                    "benchmark": "routing of a commit alone",
                    "format": mode,
                    "binlogs": count,
                    "thread_cpu_s_per_1000": round(min(one for one, _ in taken), 3),
                    "cpu_s_per_1000": round(min(each for _, each in taken), 3),
                    "load": os.getloadavg()[0],
                }
                print(json.dumps(line), flush=True)


class _Source:
    """A source whose dump comes by a socket; connected once."""

    silent_s = 600.0
    facts: SourceFacts | None = None
    is_silent = False
    identity: SourceIdentity | None = None

    def __init__(self, format_: Format, spill: Path) -> None:
        self.out, self._in = socket.socketpair()
        self._in.setblocking(False)
        self.server_id = 0
        self._stream = RawStream(format_, GtidPosition(), peer="nobody", spill=SpillFolder(spill))

    def open(
        self,
        settings: SourceSettings,
        start: Start | Position,
        /,
        *,
        spill: Path,
        server_id: int,
        identity: SourceIdentity | None,
    ) -> _Source:
        """Give the one connection."""
        del settings, start, spill, server_id, identity
        return self

    @property
    def position(self) -> Position | None:
        """Every group up to here was given."""
        return self._stream.position

    @property
    def file_position(self) -> FilePosition:
        """The place where the group behind the given ones begins."""
        return self._stream.file_position

    @property
    def format_description(self) -> FormatDescriptionEvent | None:
        """FORMAT_DESCRIPTION of the source's file; None before it came."""
        return self._stream.format_description

    @property
    def has_progressed(self) -> bool:
        """True if something came."""
        return self._stream.has_progressed

    def connect(self) -> None:
        """Do nothing: the dump comes by itself."""

    def receive(self) -> Iterator[Item]:
        """Give the groups that came."""
        try:
            count = self._in.recv_into(self._stream.room)
        except BlockingIOError:
            return
        yield from self._stream.feed(count, has_more=False)

    def fileno(self) -> int:
        """Return the connection's descriptor."""
        return self._in.fileno()

    def close(self) -> None:
        """Close both ends."""
        self._in.close()
        self.out.close()


def _routed(
    store: Store,
    source: _Source,
    pieces: Sequence[bytes],
    head: FormatDescriptionEvent,
    given: argparse.Namespace,
) -> tuple[float, float]:
    """CPU seconds for 1,000 commits: of the routing thread, and of it and those that it waits for."""
    start = GtidPosition()
    with closing(Attributions(store.spill_folder.parent / "port", Flavor.MARIADB)) as attributions:
        substitution = Substitution(attributions)
        substitution.connected(start, is_new=True)
        attributions.taken(THREAD)
        settings = SourceSettings(url=ServerUrl.parse("mariadb://u@nowhere"))
        loop = RoutingLoop(
            store,
            settings,
            wake_readers=lambda _: None,
            substitution=substitution,
            open_log=source.open,
        )
        profile = _profiled(loop) if given.profile else None
        loop.start()
        try:
            outputs = tuple(loop.outputs.values())
            source.out.sendall(b"".join(pieces[:2]))
            began: tuple[float, float] = 0.0, 0.0
            for number, piece in enumerate(pieces[2:], 1):
                attributions.intend(THREAD, number, [plan_of(number, head, outputs)])
                attributions.done(THREAD, number, f"0-1-{number}")
                source.out.sendall(piece)
                time.sleep(given.pause)
                if number == _WARM:
                    began = _cpu_s(loop)
            while any(each.counts.event_groups < len(pieces) - 2 for each in outputs):
                assert loop.crash is None, loop.crash
                time.sleep(0.01)
            ended = _cpu_s(loop)
        finally:
            loop.stop()
        for output in outputs:
            assert not output.counts.rows_instead, output.counts
    if profile is not None:
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
    scale = 1000 / (len(pieces) - 2 - _WARM)
    thread, every = ((after - before) * scale for before, after in zip(began, ended, strict=True))
    return thread, every


def _cpu_s(loop: RoutingLoop) -> tuple[float, float]:
    ident = loop._thread.ident  # noqa: SLF001  # nobody else asks
    assert ident is not None, "it was started"
    own_s = time.clock_gettime(time.pthread_getcpuclockid(ident))
    return own_s, time.process_time() - time.thread_time()


def _profiled(loop: RoutingLoop) -> cProfile.Profile:
    profile, run = cProfile.Profile(time.thread_time), loop._run  # noqa: SLF001  # as above

    def profiled() -> None:
        profile.runcall(run)

    loop._thread = threading.Thread(target=profiled, name="routing")  # noqa: SLF001  # as above
    return profile


if __name__ == "__main__":
    main()
