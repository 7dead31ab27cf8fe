"""A statement's texts are not used if it may have been judged without a change that its group stands behind."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from binlane.live.port.attribution_messages import AttributionListener, AttributionSender
from binlane.live.port.attributions import Attributions
from binlane.live.port.session_groups import RowsReason
from binlane.log.codec.types import Flavor
from binlane.statements.session.group_plan import GroupPlan
from tests.unit.live.port.test_attribution_messages import SETTINGS
from tests.unit.live.port.test_attributions import OTHER, THREAD, at, begun, group, gtid, plan, rows


def _makes(one: Attributions | AttributionSender, number: int, thread_id: int = THREAD) -> None:
    """A session says that it has made the group of this number."""
    one.intend(thread_id, number, [plan(f"group {number}")])
    one.done(thread_id, number, str(gtid(number)))


def _found(attributions: Attributions, number: int, thread_id: int = THREAD) -> GroupPlan | None:
    """The plan of a group; None if an object may have changed before it."""
    found = attributions.find(group(number, thread_id))
    if isinstance(found, GroupPlan):
        assert found == plan(f"group {number}")
        return found
    assert found == rows(RowsReason.CHANGED, thread_id)
    return None


@pytest.mark.parametrize("has_lost", [True, False])
def test_a_statement_that_was_sent_before_a_change_was_heard_of(*, has_lost: bool) -> None:
    attributions = begun()
    _makes(attributions, 1)
    attributions.intend(THREAD, 3, [plan("group 3")])
    numbers = attributions.logged([gtid(2)])
    attributions.done(THREAD, 3, str(gtid(3)))
    attributions.changes.heard(numbers, has_lost=has_lost)
    _makes(attributions, 4)
    assert _found(attributions, 1)
    # What the process knew was not about what has changed.
    assert bool(_found(attributions, 3)) is not has_lost
    assert _found(attributions, 4)


def test_a_change_of_which_nobody_has_heard_yet() -> None:
    attributions = begun()
    _makes(attributions, 2)
    numbers = attributions.logged([gtid(1)])
    assert not _found(attributions, 2)
    _makes(attributions, 3)
    assert not _found(attributions, 3)
    attributions.changes.heard(numbers, has_lost=True)
    _makes(attributions, 4)
    assert _found(attributions, 4)


def test_a_change_that_is_read_once_more_is_none() -> None:
    attributions = begun()
    attributions.changes.heard(attributions.logged([gtid(1)]), has_lost=True)
    attributions.read([group(1, OTHER)], at(1))
    assert not attributions.logged([gtid(1)])
    _makes(attributions, 2)
    assert _found(attributions, 2)


def test_a_change_of_the_same_session_is_known_to_it_before_the_log_tells_of_it() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("group 1")])
    attributions.intend(OTHER, 2, [plan("group 2")])
    attributions.changes.made()
    attributions.done(THREAD, 1, str(gtid(1)))
    attributions.done(OTHER, 2, str(gtid(2)))
    _makes(attributions, 3)
    attributions.logged([gtid(1)])
    attributions.read([group(1), group(2, OTHER), group(3)], at(3))
    assert _found(attributions, 1)
    assert not _found(attributions, 2, OTHER)
    assert _found(attributions, 3)


def test_a_change_that_the_log_tells_of_before_its_session_does() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("group 1")])
    attributions.intend(OTHER, 2, [plan("group 2")])
    numbers = attributions.logged([gtid(1)])
    attributions.changes.made()
    attributions.done(THREAD, 1, str(gtid(1)))
    # What was known of the objects had been forgotten as the session told of the change.
    attributions.changes.heard(numbers, has_lost=False)
    attributions.done(OTHER, 2, str(gtid(2)))
    assert _found(attributions, 1)
    assert not _found(attributions, 2, OTHER)


def test_a_transaction_that_was_judged_before_a_change_was_heard_of() -> None:
    attributions = begun()
    for first, is_behind in ((1, True), (11, False)):
        _makes(attributions, first)
        change, own = (first + 1, first + 2) if is_behind else (first + 2, first + 1)
        attributions.changes.heard(attributions.logged([gtid(change)]), has_lost=True)
        attributions.intend(THREAD, own, [plan(f"group {own}")], is_outdated=True)
        attributions.done(THREAD, own, str(gtid(own)))
        assert bool(_found(attributions, own)) is not is_behind


@contextmanager
def _two() -> Iterator[tuple[Attributions, AttributionListener, list[AttributionSender]]]:
    """Two processes whose sessions are heard."""
    attributions = Attributions(None, Flavor.MARIADB, SETTINGS)
    attributions.begin(at(0))
    hearing = AttributionListener(attributions)
    attributions.hear = hearing.hear
    pairs = [socket.socketpair() for _ in range(2)]
    senders = []
    for there, here in pairs:
        hearing.add(here)
        senders.append(AttributionSender(there))
    yield attributions, hearing, senders
    for (there, here), sender in zip(pairs, senders, strict=True):
        sender.close()
        if here.fileno() >= 0:
            hearing.remove(here)
        there.close()
    attributions.close()


def test_a_change_of_another_process() -> None:
    with _two() as (attributions, hearing, (one, other)):
        here = next(iter(hearing._speakers))
        one.intend(THREAD, 1, [plan("group 1")])
        one.changed()
        one.done(THREAD, 1, str(gtid(1)))
        _makes(one, 2)
        _makes(other, 3, OTHER)
        number = hearing.take_change(here)
        assert number
        other.changes_heard([number], has_lost=True)
        _makes(other, 4, OTHER)
        attributions.logged([gtid(1)])
        attributions.read([group(1), group(2), group(3, OTHER), group(4, OTHER)], at(4))
        assert _found(attributions, 1)
        assert _found(attributions, 2)
        assert not _found(attributions, 3, OTHER)
        assert _found(attributions, 4, OTHER)


def test_a_process_that_is_new_knows_what_there_was() -> None:
    with _two() as (attributions, hearing, (_, other)):
        attributions.logged([gtid(1)])
        there, here = socket.socketpair()
        hearing.add(here)
        assert not hearing.unheard(here)
        sender = AttributionSender(there)
        _makes(sender, 2)
        _makes(other, 3, OTHER)
        attributions.read([group(2), group(3, OTHER)], at(3))
        assert _found(attributions, 2)
        assert not _found(attributions, 3, OTHER)
        sender.close()
        hearing.remove(here)


def test_a_change_of_long_ago() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("group 1")])
    for sequence in range(1000, 3000):
        attributions.changes.heard(attributions.logged([gtid(sequence)]), has_lost=False)
    attributions.done(THREAD, 1, str(gtid(1)))
    assert not _found(attributions, 1)
