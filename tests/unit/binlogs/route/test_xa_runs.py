"""Runs of XA transactions: what kernels note of each is what the reference prepares and remembers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlane.binlogs.route.route_record import RECORD_FILE
from binlane.binlogs.routing import xa_groups
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.store.binlog import Binlog
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.transaction import GtidEvent, TransactionXid, XaPrepareEvent
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.placing import place, place_group
from binlane.log.grouping.walk import walk
from binlane.log.kernels.load import is_compiled
from tests.fixture_sets import fixture_set
from tests.routed_files import outputs, routed

_SCOPES = (
    *("LOG ALL", "LOG(shop)", "LOG(shop.x)", "LOG(crm)", "IGNORE(shop.x)", "LOG(shop.t1)"),
    "LOG(shop), ROW_IMAGE=MINIMAL",
)
_XIDS = 6

pytestmark = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)


class _Log:
    """A log whose XA transactions come in another order, and under few names."""

    def __init__(self, flavor: str, seed: int) -> None:
        groups = [*_groups(f"{flavor}_xa"), *_groups(f"{flavor}_ddl")]
        self._first = groups[0].events[0]
        self._chance = random.Random(seed)
        complete = [group for group in groups if group.gtid is not None and group.is_complete]
        about_xa = [
            group
            for group in complete
            if xa_groups.prepared_in(group.events) or xa_groups.finished_in(group.events)
        ]
        self._finishing = [group for group in about_xa if xa_groups.finished_in(group.events)]
        self._preparing = [group for group in about_xa if group not in self._finishing]
        self._others = [group for group in complete if group not in about_xa]
        self._number = 0

    def written(self, count: int, *, others: int = 1) -> bytes:
        body = self._first.body
        assert isinstance(body, FormatDescriptionEvent), "a log begins with one"
        out = bytearray(MAGIC) + place(self._first, len(MAGIC), body.format)
        for _ in range(count):
            # What is not about XA is seldom: it is the reference's, and all XA beside it.
            kinds = (self._preparing, self._finishing, self._others)
            (groups,) = self._chance.choices(kinds, (30, 30, others))
            events = self._changed(self._chance.choice(groups))
            out += place_group(events, len(out), body.format)
        return bytes(out)

    def _changed(self, group: EventGroup) -> tuple[Event, ...]:
        self._number += 1
        xid = TransactionXid(
            format_id=self._chance.choice((1, 7)),
            global_id=b"it's %d" % self._chance.randrange(_XIDS),
            branch=self._chance.choice((b"", b"b")),
        )
        return tuple(_renamed(event, xid, self._number) for event in group.events)


def _groups(name: str) -> Iterator[EventGroup]:
    for file, data in fixture_set(name).binlogs:
        yield from group_events(walk([data], file=file), file=file)


def _renamed(event: Event, xid: TransactionXid, number: int) -> Event:
    body = event.body
    if isinstance(body, GtidEvent):
        kept = None if body.xid is None else xid
        return replace(event, body=replace(body, sequence=number, xid=kept))
    if isinstance(body, MysqlGtidEvent):
        made = replace(body, sequence=number, last_committed=number - 1, sequence_number=number)
        return replace(event, body=made)
    if isinstance(body, XaPrepareEvent):
        return replace(event, body=replace(body, xid=xid))
    if isinstance(body, QueryEvent) and body.query.startswith(b"XA "):
        verb = b" ".join(body.query.split(b" ")[:2])
        return replace(event, body=replace(body, query=verb + b" " + str(xid).encode()))
    return event


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 40))]
)
@pytest.mark.parametrize("flavor", ["md1011", "my97"])
def test_both_paths_prepare_and_remember_the_same(flavor: str, seed: int, tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(_Log(flavor, seed).written(120))
    fields: tuple[dict[str, Any], ...] = ({"uses_kernels": False}, {}, {"window_bytes": 2048})
    made = []
    for number, each in enumerate(fields):
        out = tmp_path / f"{number}"
        report = routed((str(path),), out, *_SCOPES, max_binlog_size=8192, **each)
        made.append((outputs(out), report.counts, (out / RECORD_FILE).read_text()))
    assert '"prepared": ["' in made[0][2] or '"passed' in made[0][2].replace("\\", "")
    assert made[1] == made[0]
    assert made[2] == made[0]


@pytest.mark.parametrize("flavor", ["md1011", "my97"])
def test_what_passes_is_remembered_before_anything_behind_it_is_written(
    flavor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a crash right behind leaves groups without the memory by which they are gone on with."""
    path = tmp_path / "binlog.000001"
    path.write_bytes(_Log(flavor, 0).written(120, others=0))
    gained: list[tuple[str, str]] = []
    remember = Binlog.remember

    def noted(binlog: Binlog, memory: Memory) -> None:
        new = memory.passed - binlog.memory.passed
        gained.extend((binlog.name, one.xid) for one in new)
        remember(binlog, memory)

    monkeypatch.setattr(Binlog, "remember", noted)
    made = []
    for uses_kernels in (False, True):
        out = tmp_path / f"{uses_kernels}"
        routed((str(path),), out, *_SCOPES, max_binlog_size=8192, uses_kernels=uses_kernels)
        made.append(set(gained))
        gained.clear()
    assert made[0]
    assert made[1] == made[0]
