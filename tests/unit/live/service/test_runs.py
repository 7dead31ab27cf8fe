"""Groups that a source gives are routed as bytes, and the binlogs are those of the reference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from binlane.binlogs.store.byte_source import FileBytes
from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import read_groups
from binlane.errors import StoreError
from binlane.live.loop.outputs import Output
from binlane.live.loop.router import Router
from binlane.live.loop.substitution import EndingError
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.raw import Item, LargeGroup, RawRun, raw_groups
from binlane.log.kernels.load import is_compiled
from binlane.positions import GtidPosition, Position
from tests.faulty_disk import BreakableDisk
from tests.groups import (
    source_format,
    sync_all,
)
from tests.routed_files import definitions, routed, written

SETS = (
    "md1011_txn",
    "md1011_rotation",
    "md1011_ddl",
    "md1011_xa",
    "md1011_format_mixed",
    "md118_txn",
)
_SCOPES = ("LOG ALL", "LOG(shop.t)", "IGNORE(shop.a)", "LOG(crm)")

pytestmark = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)


def items_of(paths: tuple[str, ...], window_bytes: int, held_bytes_max: int) -> Iterator[Item]:
    """What a source gives that has these files."""
    for path in paths:
        with closing(FileBytes(path, 0)) as source:
            for item in raw_groups(
                source,
                file=path,
                name=Path(path).name,
                window_bytes=window_bytes,
                held_bytes_max=held_bytes_max,
            ):
                if isinstance(item, EventGroup) and not item.is_complete:
                    continue
                if isinstance(item, LargeGroup):
                    (group,) = whole(item)
                    item.end, item.timestamp = group.next_position, group.timestamp
                    item.gtid = group.gtid
                yield item


def whole(large: LargeGroup) -> list[EventGroup]:
    return [next(group_events(large.events(), file=large.file))]


def after(item: Item, before: Position) -> Position:
    if isinstance(item, RawRun):
        return item.position_after(before)
    (group,) = whole(item) if isinstance(item, LargeGroup) else [item]
    return before if group.gtid is None else before.advance(group.gtid)


def made(store: Store) -> list[Output]:
    for definition in definitions(*_SCOPES):
        store.create_binlog(
            definition,
            start=GtidPosition(),
            format_description=source_format(),
            server_id=1,
            timestamp=0,
        )
    return [Output(LiveBinlog(binlog)) for binlog in store.binlogs.values()]


def raws(paths: list[Path]) -> list[list[bytes | None]]:
    return [
        [event.raw for event in group.events]
        for group in read_groups(paths)
        if not group.is_control
    ]


def never(output: Output, error: Exception) -> None:
    raise AssertionError(output.name) from error


@pytest.mark.parametrize(
    ("window_bytes", "held_bytes_max"),
    [(512, 1 << 20), (4096, 1 << 20), (1 << 20, 1 << 20), (512, 600)],
)
@pytest.mark.parametrize("name", SETS)
def test_captured_groups_are_those_of_the_reference(
    name: str, window_bytes: int, held_bytes_max: int, tmp_path: Path
) -> None:
    paths = written(name, tmp_path / "in")
    settings = StoreSettings(max_binlog_size_bytes=4096)
    with Store.open(tmp_path / "data", settings) as store:
        outputs = made(store)
        for _ in range(2):
            # A source that is connected to again may send what is there already.
            router = Router(GtidPosition())
            for item in items_of(paths, window_bytes, held_bytes_max):
                assert router.position is not None
                router.take(item, after(item, router.position), outputs, never)
            counts = [output.counts.event_groups for output in outputs]
            sync_all(store)
        assert counts == [output.counts.event_groups for output in outputs]
        files = {each: [file.path for file in log.files()] for each, log in store.binlogs.items()}
    routed(paths, tmp_path / "out", *_SCOPES, max_binlog_size=4096, uses_kernels=False)
    for binlog, its_files in files.items():
        out = tmp_path / "out" / binlog
        reference = sorted(path for path in out.iterdir() if path.suffix != ".index")
        assert raws(its_files) == raws(reference)


@pytest.mark.parametrize("name", ["md1011_ddl", "md1011_xa", "md1011_format_mixed"])
def test_routing_that_ends_between_groups_goes_on_there(name: str, tmp_path: Path) -> None:
    """Each life routes one more of the groups that take long than was routed before."""
    paths = written(name, tmp_path / "in")
    lives = 0
    with Store.open(tmp_path / "data", StoreSettings(max_binlog_size_bytes=4096)) as store:
        outputs = made(store)
        is_over = False
        while not is_over:
            router = Router(GtidPosition(), is_ending=partial(next, iter([False]), True))
            try:
                for item in items_of(paths, 1 << 20, 1 << 20):
                    assert router.position is not None
                    router.take(item, after(item, router.position), outputs, never)
                is_over = True
            except EndingError:
                lives += 1
        sync_all(store)
        files = {each: [file.path for file in log.files()] for each, log in store.binlogs.items()}
    assert lives > (2 if name == "md1011_format_mixed" else 0)
    routed(paths, tmp_path / "out", *_SCOPES, max_binlog_size=4096, uses_kernels=False)
    for binlog, its_files in files.items():
        reference = sorted((tmp_path / "out" / binlog).glob("*.0*"))
        assert raws(its_files) == raws(reference)


def test_what_fails_in_one_binlog_is_no_loss_to_the_others(tmp_path: Path) -> None:
    paths = written("md1011_rotation", tmp_path / "in")
    disk, faults = BreakableDisk(), []
    store = Store.open(tmp_path / "data", StoreSettings(max_binlog_size_bytes=4096), disk=disk)
    outputs = made(store)
    disk.failing = "b1"

    def note(output: Output, error: Exception) -> None:
        faults.append((output.name, type(error)))
        outputs.remove(output)

    router = Router(GtidPosition())
    for item in items_of(paths, 4096, 1 << 20):
        assert router.position is not None
        router.take(item, after(item, router.position), tuple(outputs), note)
    assert faults == [("b1", StoreError)]
    store.sync_each([output.binlog for output in outputs])
    routed(paths, tmp_path / "out", *_SCOPES, max_binlog_size=4096, uses_kernels=False)
    for output in outputs:
        reference = sorted((tmp_path / "out" / output.name).glob("*.0*"))
        assert raws([file.path for file in output.binlog.files()]) == raws(reference)
    disk.failing = ""
    store.close()
