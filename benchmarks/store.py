"""A store of very many files: opening it, listing them, and a dump that begins in the middle.

Then the same dump out of one large file, with its index of groups and without.

The store writes the files itself, on a disk that forces nothing. Each round is a process of its
own, and prints nothing but seconds; `whole` is that process with all its imports.

    python -m benchmarks.store [--rounds N] [--files N]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measuring import run
from binlane.binlogs.store.disk import LocalDisk, LocalFile
from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.live.dump.dump_sending import serve_dump
from binlane.live.dump.request import ReplicaRequest
from binlane.log.codec.packets.flags import DumpFlag
from binlane.positions import Gtid, GtidPosition
from tests.groups import SERVER_ID, TIMESTAMP, create, transaction

_SETTINGS = StoreSettings(watermark_interval_s=3600, sync_binlog=0)


class _HastyFile(LocalFile):
    def sync(self) -> None:
        pass


class _HastyDisk(LocalDisk):
    """A disk that says it is done before it is."""

    def create(self, path: Path) -> LocalFile:
        return _HastyFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o640))

    def open(self, path: Path) -> LocalFile:
        return _HastyFile(os.open(path, os.O_RDWR))

    def sync_directory(self, path: Path) -> None:
        pass


def main() -> None:
    """Measure both layouts and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="of which figures are medians")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measured(given.measure)))
        return
    for binlogs in (1, 10):
        with tempfile.TemporaryDirectory() as directory:
            make(Path(directory), binlogs, given.files // binlogs)
            report(Path(directory), binlogs=binlogs, files=given.files, rounds=given.rounds)
    with tempfile.TemporaryDirectory() as directory:
        large_file(Path(directory), rounds=given.rounds)


def make(data_dir: Path, binlogs: int, files: int) -> None:
    """Write a store whose binlogs have so many files each, with one transaction a file."""
    with Store.open(data_dir, _SETTINGS, disk=_HastyDisk()) as store:
        for number in range(binlogs):
            binlog = create(store, f"log{number}")
            for sequence in range(1, files):
                binlog.append(transaction(sequence))
                binlog.rotate(TIMESTAMP + sequence)


def large_file(data_dir: Path, *, rounds: int) -> None:
    """Print what a dump from the middle of one file of some 500 MB takes until its first group."""
    groups, size = 50_000, 10_000
    with Store.open(data_dir, _SETTINGS, disk=_HastyDisk()) as store:
        binlog = create(store, "large")
        for sequence in range(1, groups + 1):
            binlog.append(transaction(sequence, size=size))
            if not sequence % 50:
                binlog.sync()
        binlog.rotate(TIMESTAMP)
        middle = GtidPosition.of([Gtid(0, SERVER_ID, groups // 2)])
        index = data_dir / "groups" / "large" / "large.000001.idx"
        figures: dict[str, float] = {}
        for key in ("with_index", "index_made_first"):
            taken = []
            for _ in range(rounds):
                if key != "with_index":
                    index.unlink()
                start = time.perf_counter()
                asyncio.run(first_packets(LiveBinlog(binlog), middle))
                taken.append(time.perf_counter() - start)
            figures[f"{key}_s"] = round(statistics.median(taken), 3)
        megabytes = round(binlog.files()[0].size_bytes / 1e6)
        index_bytes = index.stat().st_size
    line = {"what": "dump from the middle of a file", "mb": megabytes, **figures}
    print(json.dumps({**line, "index_bytes": index_bytes}))


def report(data_dir: Path, *, binlogs: int, files: int, rounds: int) -> None:
    """Print the medians of some rounds."""
    command = [sys.executable, "-m", "benchmarks.store", "--measure", str(data_dir)]
    taken = [
        json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        for _ in range(rounds)
    ]
    whole = run(command)
    figures = {
        f"{key}_s": round(statistics.median(one[key] for one in taken), 3) for key in taken[0]
    }
    line = {"what": "store", "binlogs": binlogs, "files": files, **figures}
    print(json.dumps({**line, "whole_cpu_s": round(whole.cpu_s, 3), "rss_mb": whole.rss_mb}))


def measured(data_dir: Path) -> dict[str, float]:
    """Seconds of the clock that each thing takes."""
    taken: dict[str, float] = {}

    @contextmanager
    def clock(key: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        taken[key] = time.perf_counter() - start

    with clock("open"):
        store = Store.open(data_dir, _SETTINGS)
    with clock("show_binary_logs"):
        names = [(f.name, str(f.size_bytes)) for log in store.binlogs.values() for f in log.files()]
    binlog = next(iter(store.binlogs.values()))
    middle = GtidPosition.of([Gtid(0, SERVER_ID, len(binlog.files()) // 2)])
    with clock("dump_from_the_middle"):
        asyncio.run(first_packets(LiveBinlog(binlog), middle))
    store.close()
    with clock("reader_lists_files"):
        reader = StoreReader(data_dir)
        listed = [file for name in reader.names() for file in reader.files(name)]
    assert len(names) == len(listed)
    return taken


async def first_packets(live: LiveBinlog, done: GtidPosition) -> None:
    """Wait until a dump by GTID has sent its first event group."""
    sent = asyncio.Event()
    total = 0

    async def send(packets: bytes | memoryview[int]) -> None:
        nonlocal total
        total += len(packets)
        if total > 600:  # behind FORMAT_DESCRIPTION and GTID_LIST
            sent.set()
        await asyncio.sleep(0)

    request = ReplicaRequest(connect_state=done, flags=DumpFlag.NON_BLOCK)
    task = asyncio.create_task(_ignore(lambda: serve_dump(request, live, send)))
    await sent.wait()
    task.cancel()


async def _ignore(dump: Callable[[], object]) -> None:
    await dump()  # type: ignore[misc]  # the reply's last packet is of no interest


if __name__ == "__main__":
    main()
