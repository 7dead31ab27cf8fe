"""DDL by the routing loop's router: in runs it makes what it makes of each group by itself."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from binlane.binlogs.store.byte_source import FileBytes
from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.live.loop.outputs import Output
from binlane.live.loop.router import Router
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.grouping.event_group import group_events
from binlane.log.grouping.raw import Item, RawRun, raw_groups
from binlane.log.grouping.walk import walk
from binlane.log.kernels.load import is_compiled
from binlane.positions import Position, nothing_done
from tests.ddl_logs import DdlLog
from tests.routed_files import definitions, outputs

_SCOPES = ("LOG ALL", "LOG(shop)", "LOG(crm)", "LOG(shop.t1, crm.c_2)", "LOG(nothing)")

pytestmark = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn"])
def test_runs_and_groups_of_ddl_are_the_same(
    name: str,
    is_plain: bool,  # noqa: FBT001  # a parameter of the test
    tmp_path: Path,
) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(DdlLog(name, 7, 0.2, is_plain=is_plain).written(150))
    in_runs = _routed(path, tmp_path / "runs", in_runs=True)
    alone = _routed(path, tmp_path / "alone", in_runs=False)
    assert in_runs == alone
    assert any("births" in memory for memory in in_runs), "tables are made outside of scopes"
    assert outputs(tmp_path / "runs") == outputs(tmp_path / "alone")


def _routed(path: Path, folder: Path, *, in_runs: bool) -> list[str]:
    """Route a log into binlogs, and give what is remembered of each."""
    first = next(iter(walk([path.read_bytes()], file=path.name)))
    head = first.body
    assert isinstance(head, FormatDescriptionEvent), "a log begins with one"
    start = nothing_done(head.format.flavor.value)
    with Store.open(folder, StoreSettings()) as store:
        for definition in definitions(*_SCOPES):
            store.create_binlog(
                definition, start=start, format_description=head, server_id=1, timestamp=0
            )
        made = [Output(LiveBinlog(binlog)) for binlog in store.binlogs.values()]
        router = Router(start)
        with closing(FileBytes(str(path))) as source:
            runs = raw_groups(source, file=str(path), name=path.name)
            groups = group_events(walk([path.read_bytes()], file=path.name), file=path.name)
            for item in runs if in_runs else groups:
                assert router.position is not None, "it is where it started"
                router.take(item, _after(item, router.position), made, _refuse)
        for output in made:
            output.binlog.write()
        return [output.binlog.memory.encode() for output in made]


def _after(item: Item, position: Position) -> Position:
    if isinstance(item, RawRun):
        return item.position_after(position)
    return position if item.gtid is None else position.advance(item.gtid)


def _refuse(output: Output, error: Exception) -> None:
    raise AssertionError(output.name) from error
