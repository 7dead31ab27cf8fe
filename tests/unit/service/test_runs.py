"""Groups that come from a connection are routed as bytes, and the binlogs are those of the reference."""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path

import pytest

from binlane.codec.control import FormatDescriptionEvent
from binlane.grouping.event_group import EventGroup, group_events
from binlane.grouping.raw import RunMaker
from binlane.grouping.walk import walk
from binlane.kernels.load import is_compiled
from binlane.positions import GtidPosition
from binlane.service.binlogs import Binlogs
from binlane.store.reading import read_groups
from binlane.store.settings import StoreSettings
from binlane.store.store import Store
from tests.fixture_sets import fixture_set
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
    not is_compiled(("route", "scan")), reason="the kernels are not compiled here"
)


def groups_of(name: str) -> list[EventGroup]:
    return [
        group
        for file, data in fixture_set(name).binlogs
        for group in group_events(walk([data], file=file), file=file)
        if group.is_complete
    ]


def raws(paths: list[Path]) -> list[list[bytes | None]]:
    return [
        [event.raw for event in group.events]
        for group in read_groups(paths)
        if not group.is_control
    ]


def files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.suffix != ".index")


def capture(name: str, data_dir: Path, batch: int, again: int) -> dict[str, list[Path]]:
    """Apply a log in batches, of which each begins with some groups of the one before."""
    found = groups_of(name)
    first = found[0].events[0]
    assert isinstance(first.body, FormatDescriptionEvent)
    settings = StoreSettings(max_binlog_size_bytes=4096)
    with Store.open(data_dir, settings) as store:
        for definition in definitions(*_SCOPES):
            store.create_binlog(
                definition,
                start=GtidPosition(),
                format_description=first.body,
                server_id=first.header.server_id,
                timestamp=first.header.timestamp,
            )
        binlogs = Binlogs(store)
        asyncio.run(apply_all(binlogs, found, batch))
        # A source that is connected to again may send what is there already.
        assert binlogs.captured is not None
        counts = {each: counted.event_groups for each, counted in binlogs.counts.items()}
        late = [group for group in islice(reversed(found), again) if group.gtid is not None]
        binlogs.captured = GtidPosition()
        asyncio.run(binlogs.apply(late[::-1]))
        assert counts == {each: counted.event_groups for each, counted in binlogs.counts.items()}
        return {each: [file.path for file in log.files()] for each, log in store.binlogs.items()}


async def apply_all(binlogs: Binlogs, found: list[EventGroup], batch: int) -> None:
    for start in range(0, len(found), batch):
        await binlogs.apply(found[start : start + batch])


@pytest.mark.parametrize("batch", [1, 5, 1000])
@pytest.mark.parametrize("name", SETS)
def test_captured_groups_are_those_of_the_reference(name: str, batch: int, tmp_path: Path) -> None:
    made = capture(name, tmp_path / "data", batch, again=3)
    paths = written(name, tmp_path / "in")
    routed(paths, tmp_path / "out", *_SCOPES, max_binlog_size=4096, uses_kernels=False)
    for binlog, its_files in made.items():
        assert raws(its_files) == raws(files(tmp_path / "out" / binlog))


def test_groups_that_are_none_of_a_run_are_left_to_the_reference() -> None:
    found = groups_of("md1011_txn")
    first = found[0].events[0].body
    assert isinstance(first, FormatDescriptionEvent)
    maker = RunMaker(first.format)
    good = [group for group in found if group.gtid is not None][:4]
    run = maker.run(good)
    assert run is not None
    assert [run.group(number) for number in range(run.count)] == good
    assert maker.run([good[0], good[2]]) is None
    assert maker.run([group for group in found if group.is_control][:1]) is None
    again = maker.run(good)
    assert again is not None
    assert again.count == 4
