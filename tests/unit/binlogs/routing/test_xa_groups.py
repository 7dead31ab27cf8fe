"""XA transactions at the edge of a scope, and before the beginning of a binlog."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.binlogs.route.job import route_files
from binlane.binlogs.route.route_request import RouteRequest
from binlane.binlogs.route.schedule import Schedule, ScheduledChange
from binlane.binlogs.routing import xa_groups
from binlane.binlogs.routing.event_routing import route
from binlane.binlogs.routing.routing_memory import NOTHING, Memory, PassedXa
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.transaction import XaPrepareEvent
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.walk import walk
from binlane.log.kernels.load import is_compiled
from binlane.names import TableName
from tests.routed_files import definitions, outputs, routed, written
from tests.unit.binlogs.routing.test_event_routing import groups

SETS = ("md1011_xa", "my97_xa")
KERNELS = [False, *([True] if is_compiled(("copying", "scan")) else [])]


def finishing(name: str, words: bytes) -> list[EventGroup]:
    """The groups that finish what an earlier group prepared."""
    prepared: set[str | None] = set()
    found = []
    for group in groups(name)[1]:
        prepared.add(xa_groups.prepared_in(group.events))
        if xa_groups.finished_in(group.events) in prepared and any(
            isinstance(e.body, QueryEvent) and e.body.query.startswith(words) for e in group.events
        ):
            found.append(group)
    return found


@pytest.mark.parametrize("name", SETS)
def test_a_commit_of_what_was_prepared_before_is_an_incident(name: str) -> None:
    format_, _ = groups(name)
    (scoped,) = definitions("LOG(shop.other)")
    commits, rollbacks = (finishing(name, words) for words in (b"XA COMMIT", b"XA ROLLBACK"))
    assert commits
    assert rollbacks
    assert {route(group, scoped, format_).incident for group in commits} == {xa_groups.UNKNOWN}
    for group in rollbacks:
        assert route(group, scoped, format_) == type(route(group, scoped, format_))(group=None)


@pytest.mark.parametrize("name", SETS)
def test_what_passed_is_remembered_until_it_is_finished(name: str) -> None:
    format_, found = groups(name)
    (outside,) = definitions("IGNORE(shop.x)")
    memory, seen = NOTHING, 0
    for group in found:
        routing = route(group, outside, format_, frozenset(), memory)
        assert routing.incident is None
        memory = routing.memory or memory
        seen = max(seen, len(memory.passed))
        assert Memory.decode(memory.encode()) == memory
    assert seen
    assert {one.xid for one in memory.passed} == unfinished(found)


def unfinished(found: list[EventGroup]) -> set[str]:
    left: set[str] = set()
    for group in found:
        left |= {xa_groups.prepared_in(group.events) or ""}
        left -= {xa_groups.finished_in(group.events) or "", ""}
    return left


@pytest.mark.parametrize("name", SETS)
def test_a_wider_scope_knows_no_more_what_it_passed(name: str) -> None:
    format_, _ = groups(name)
    commit = finishing(name, b"XA COMMIT")[0]
    xid = xa_groups.finished_in(commit.events)
    assert xid is not None
    memory = Memory(passed=frozenset({PassedXa(xid, frozenset({TableName("shop", "x")}))}))
    narrow, wide = definitions("LOG(shop.other)", "LOG(shop)")
    assert route(commit, narrow, format_, frozenset(), memory).incident is None
    assert route(commit, wide, format_, frozenset(), memory).incident == xa_groups.UNKNOWN


@pytest.mark.parametrize("name", SETS)
def test_an_unscoped_binlog_knows_what_it_has_prepared(name: str) -> None:
    format_, found = groups(name)
    (everything,) = definitions("LOG ALL")
    for group in found:
        routed_group = route(group, everything, format_).group
        assert routed_group is not None
        has_prepare = any(
            isinstance(e.body, XaPrepareEvent) and not e.body.one_phase for e in group.events
        )
        assert (routed_group.prepares is not None) == has_prepare
        assert routed_group.finishes == xa_groups.finished_in(group.events)


@pytest.mark.parametrize("uses_kernels", KERNELS)
@pytest.mark.parametrize("name", SETS)
def test_what_a_scope_did_not_see_prepared_is_told_by_either_path(
    name: str, *, uses_kernels: bool, tmp_path: Path
) -> None:
    paths = written(name, tmp_path / "in")
    first = finishing(name, b"XA COMMIT")[0]
    report = routed(
        paths,
        tmp_path / "out",
        "LOG(shop.x)",
        "LOG ALL",
        start_position=first.position,
        uses_kernels=uses_kernels,
    )
    assert any(xa_groups.UNKNOWN in incident for incident in report.counts["b1"].incidents)
    assert report.counts["b2"].incidents == []
    assert outputs(tmp_path / "out")


@pytest.mark.parametrize("uses_kernels", KERNELS)
@pytest.mark.parametrize("name", SETS)
def test_what_an_unscoped_binlog_prepared_is_finished_under_its_scope(
    name: str, *, uses_kernels: bool, tmp_path: Path
) -> None:
    first = finishing(name, b"XA COMMIT")[0]
    before = groups(name)[1][groups(name)[1].index(first) - 1]
    assert before.gtid is not None
    schedule = Schedule(
        definitions("LOG ALL"), (ScheduledChange(before.gtid, definitions("LOG(shop.nothing)")),)
    )
    request = RouteRequest(
        paths=written(name, tmp_path / "in"),
        schedule=schedule,
        out=tmp_path / "out",
        uses_kernels=uses_kernels,
    )
    report = route_files(request)
    assert xa_groups.UNKNOWN not in str(report.counts["b1"].incidents)
    texts = [
        event.body.query
        for path in sorted((tmp_path / "out" / "b1").glob("b1.0*"))
        for event in walk([path.read_bytes()], file=path.name)
        if isinstance(event.body, QueryEvent)
    ]
    commit = next(e.body.query for e in first.events if isinstance(e.body, QueryEvent))
    assert commit in texts
