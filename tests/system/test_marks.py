"""Marks in the logs of real servers: of whom they are, and that no binlog gets them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from binlane.binlogs.routing.cut_group import plain_events
from binlane.binlogs.routing.makers import marked, thread_of, thread_of_raw
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.binlogs.store.byte_source import FileBytes
from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.cli import main
from binlane.client.settings import ServerUrl
from binlane.live.capture.settings import SourceSettings
from binlane.live.loop.outputs import Output
from binlane.live.loop.router import Router
from binlane.live.loop.substitution import Substitution
from binlane.live.port.attributions import Attributions
from binlane.live.port.source_marks import Marker
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.types import Flavor
from binlane.log.grouping.raw import RawRun, raw_groups
from binlane.log.grouping.walk import walk
from binlane.log.kernels import route_layout as lay
from binlane.positions import nothing_done
from tests.groups import sync_all
from tests.routed_files import definitions
from tests.servers import ServerFactory, execute
from tests.unit.live.service.test_runs import after, items_of, never

pytestmark = pytest.mark.system

_COMPRESSED = {
    "mariadb": ("SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress_min_len = 10"),
    "mysql": ("SET GLOBAL binlog_transaction_compression = ON",),
}
_SESSIONS = (7, 7, 70_000)


def runs_of(path: Path) -> Iterator[RawRun]:
    with closing(FileBytes(str(path))) as source:
        for item in raw_groups(source, file=str(path), name=path.name, window_bytes=1 << 20):
            if isinstance(item, RawRun):
                yield item


def log_of(server: PrivateServer) -> Path:
    """The file in which the server goes on."""
    rows = execute(server, "SHOW BINARY LOGS")
    ((_, folder),) = execute(server, "SHOW VARIABLES LIKE 'datadir'")
    return Path(folder) / str(rows[-1][0])


@pytest.mark.parametrize(
    ("flavor", "is_compressed"),
    [
        ("mariadb", False),
        ("mysql", False),
        ("mariadb", True),
        ("mysql", True),
    ],
)
def test_marks_in_a_log(
    servers: ServerFactory, flavor: str, *, is_compressed: bool, tmp_path: Path
) -> None:
    server = servers.start_mysql("source") if flavor == "mysql" else servers.start("source")
    assert main(["setup", "--quiet", server.url]) == 0
    execute(server, "CREATE DATABASE shop", "CREATE TABLE shop.t (a INT)", "FLUSH BINARY LOGS")
    if is_compressed:
        execute(server, *_COMPRESSED[flavor])
    marker = Marker(SourceSettings(url=ServerUrl.parse(server.url)), Flavor(flavor))

    async def mark() -> None:
        await marker.open()
        for thread_id in _SESSIONS:
            await marker.mark(thread_id, time.monotonic())

    execute(server, "INSERT INTO shop.t VALUES (1)")
    asyncio.run(mark())
    execute(server, "INSERT INTO shop.t VALUES (2)")
    marker.close()
    path = log_of(server)
    found = []
    for run in runs_of(path):
        numbers = range(run.count)
        threads = [thread_of(run.group(number), run.format) for number in numbers]
        groups = RunGroups(run)
        assert [thread_of_raw(groups, number) for number in numbers] == threads
        at_once = groups.facts[lay.FACT_THREAD].tolist()
        assert all(each in (-1, thread) for each, thread in zip(at_once, threads, strict=True))
        found += threads
        if flavor == "mariadb" or not is_compressed:
            assert marked(groups) == [n for n, each in enumerate(threads) if each in _SESSIONS]
    assert tuple(found[1:-1]) == _SESSIONS
    assert tables_in(kept(path, tmp_path / "data", Flavor(flavor))) == ["t", "t"]


def kept(path: Path, directory: Path, flavor: Flavor) -> list[Path]:
    """The files of a binlog of all rows, from a source that has this file."""
    first = next(walk([path.read_bytes()], file=path.name)).body
    assert isinstance(first, FormatDescriptionEvent)
    with Store.open(directory, StoreSettings()) as store:
        (definition,) = definitions("LOG ALL, FORMAT='ROW'")
        nothing = nothing_done(flavor.value)
        binlog = store.create_binlog(
            definition, start=nothing, format_description=first, server_id=1, timestamp=0
        )
        attributions = Attributions(directory / "port", flavor)
        substitution = Substitution(attributions)
        substitution.connected(nothing, is_new=True)
        router = Router(nothing, substitution)
        output = Output(LiveBinlog(binlog))
        for item in items_of((str(path),), 1 << 20, 1 << 26):
            assert router.position is not None
            router.take(item, after(item, router.position), [output], never)
        sync_all(store)
        attributions.close()
        return [file.path for file in binlog.files()]


def tables_in(paths: Sequence[Path]) -> list[str]:
    return [
        event.body.table
        for path in paths
        for run in runs_of(path)
        for number in range(run.count)
        for event in plain_events(run.group(number), run.format)
        if isinstance(event.body, TableMapEvent)
    ]
