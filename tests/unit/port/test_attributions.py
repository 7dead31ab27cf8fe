"""Which group is of which statement, whatever comes first: the reply or the group."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from queue import SimpleQueue

import pytest

from binlane.codec.types import Flavor
from binlane.names import TableName
from binlane.port.attributions import Attributions, AttributionSettings
from binlane.port.lane_groups import Reason, Unattributed
from binlane.positions import Gtid, GtidPosition, GtidSet, MysqlGtid
from binlane.routing.plan import EncodedEvent, GroupPlan, Rows, RowsPiece, Text

UUID = "00000000-0000-0000-0000-000000000001"
SERVER_ID = 0x7B000000
QUICK = AttributionSettings(wait_s=0.2)


def plan(text: str) -> GroupPlan:
    """A plan that is known by its text."""
    table = TableName("shop", "orders")
    section = (RowsPiece((table,), (("insert", table),)),)
    query = EncodedEvent(2, text.encode())
    return GroupPlan(
        sections=(section,),
        binlogs={"statements": (Text((query,), 0),), "rows": (Rows(0),)},
        bases={"statements": 1, "rows": 2},
        ends={"rows": None, "statements": EncodedEvent(2, b"ROLLBACK", 8)},
    )


def gtid(sequence: int, lane: int = 0, domain: int = 0) -> Gtid:
    return Gtid(domain, SERVER_ID + lane, sequence)


def at(sequence: int) -> GtidPosition:
    return GtidPosition((Gtid(0, 1, sequence),))


def begun(folder: Path | None = None, sequence: int = 0) -> Attributions:
    attributions = Attributions(folder, Flavor.MARIADB, QUICK)
    attributions.begin(at(sequence))
    return attributions


def test_a_group_that_comes_after_the_reply() -> None:
    attributions = begun()
    attributions.intend(0, 1, [plan("one")])
    attributions.done(0, 1, str(gtid(1)))
    assert attributions.find(0, gtid(1)) == plan("one")
    assert attributions.find(0, gtid(1)) == plan("one")


def test_a_group_that_comes_before_the_reply() -> None:
    attributions = begun()
    attributions.intend(0, 1, [plan("one")])
    attributions.read([(0, gtid(1), True)], at(1))
    timer = threading.Timer(0.05, attributions.done, (0, 1, str(gtid(1))))
    timer.start()
    assert attributions.find(0, gtid(1)) == plan("one")
    timer.join()


def test_a_statement_that_was_not_planned_costs_no_later_one() -> None:
    attributions = begun()
    attributions.intend(0, 1, [plan("one")])
    attributions.done(0, 1, str(gtid(1)))
    attributions.read([(0, gtid(1), True)], at(1))
    assert attributions.find(0, gtid(1)) == plan("one")
    # Read before its session was told of it.
    attributions.read([(0, gtid(2), True)], at(2))
    assert attributions.find(0, gtid(2)) == Unattributed(Reason.NO_STATEMENT)
    attributions.done(0, 2, str(gtid(2)), [])
    for number in (3, 4):
        attributions.intend(0, number, [plan(f"statement {number}")])
        attributions.read([(0, gtid(number), True)], at(number))
        attributions.done(0, number, str(gtid(number)))
        assert attributions.find(0, gtid(number)) == plan(f"statement {number}")


def test_nobody_waits_for_ever() -> None:
    attributions = begun()
    attributions.intend(0, 1, [plan("one"), plan("two")])
    since_s = time.monotonic()
    assert attributions.find(0, gtid(1)) == Unattributed(Reason.NOT_ANSWERED)
    assert 0.2 <= time.monotonic() - since_s < 5
    since_s = time.monotonic()
    assert attributions.find(0, gtid(2)) == Unattributed(Reason.NOT_ANSWERED)
    assert time.monotonic() - since_s < 0.1
    attributions.done(0, 1, str(gtid(3)))
    assert attributions.find(0, gtid(3)) == Unattributed(Reason.NOT_ANSWERED)
    attributions.intend(0, 2, [plan("three")])
    attributions.done(0, 2, str(gtid(4)))
    assert attributions.find(0, gtid(4)) == plan("three")


def test_several_groups() -> None:
    attributions = begun()
    attributions.intend(0, 1, [plan("one"), plan("two")])
    attributions.done(0, 1, str(gtid(3)))
    attributions.read([(0, gtid(1), True), (1, gtid(2, 1), True), (0, gtid(3), False)], at(3))
    assert attributions.find(0, gtid(1)) == plan("one")
    assert attributions.find(1, gtid(2, 1)) == Unattributed(Reason.NO_STATEMENT)
    assert attributions.find(0, gtid(3)) == plan("two")


def test_another_number_of_groups() -> None:
    attributions = begun()
    attributions.intend(0, 1, [plan("one"), plan("two")])
    attributions.done(0, 1, str(gtid(1)))
    attributions.intend(0, 2, [plan("three")])
    attributions.done(0, 2, str(gtid(3)))
    attributions.intend(0, 3, [plan("four")])
    attributions.done(0, 3, str(gtid(4)))
    attributions.read([(0, gtid(number), True) for number in (1, 2, 3, 4)], at(4))
    for number in (1, 2, 3):
        assert attributions.find(0, gtid(number)) == Unattributed(Reason.OTHER_COUNT)
    assert attributions.find(0, gtid(4)) == plan("four")


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_lost_reply(*, is_commit: bool) -> None:
    attributions = begun()
    attributions.intend(0, 1, [plan("one")])
    attributions.read([(0, gtid(1), is_commit)], at(1))
    attributions.lost(0)
    assert not attributions.is_clear(0)
    assert attributions.unended == {0: 0}
    attributions.ended(0, at(1))
    expected = plan("one") if is_commit else Unattributed(Reason.LOST)
    assert attributions.find(0, gtid(1), is_commit=is_commit) == expected
    assert attributions.is_clear(0)


def test_a_restart(tmp_path: Path) -> None:
    attributions = begun(tmp_path / "port")
    attributions.taken(0, 17)
    attributions.intend(0, 1, [plan("one")])
    attributions.done(0, 1, str(gtid(1)))
    assert attributions.find(0, gtid(1)) == plan("one")
    attributions.intend(0, 2, [plan("two")])
    attributions.done(0, 2, str(gtid(2)), [plan("other")])
    attributions.intend(0, 3, [plan("three")])
    attributions.close()

    again = Attributions(tmp_path / "port", Flavor.MARIADB, QUICK)
    again.begin(at(0))
    assert again.unended == {0: 17}
    again.read([(0, gtid(number), True) for number in (1, 2, 3)], at(3))
    assert again.find(0, gtid(1)) == plan("one")
    assert again.find(0, gtid(2)) == plan("other")
    again.ended(0, at(3))
    assert again.find(0, gtid(3)) == plan("three")


def test_mysql() -> None:
    attributions = Attributions(None, Flavor.MYSQL, QUICK)
    attributions.begin(GtidSet.parse(f"{UUID}:1-5"))
    attributions.intend(0, 1, [plan("one"), plan("two")])
    attributions.done(0, 1, f"{UUID}:binlane_0:1-2")
    assert attributions.find(0, MysqlGtid(UUID, 1, "binlane_0")) == plan("one")
    assert attributions.find(0, MysqlGtid(UUID, 2, "binlane_0")) == plan("two")


def test_a_mysql_that_was_asked_for_all_of_a_lane() -> None:
    attributions = Attributions(None, Flavor.MYSQL, QUICK)
    before = GtidSet.parse(f"{UUID}:1-5:binlane_0:1-3")
    attributions.begin(before)
    attributions.taken(0, 7, before)
    attributions.intend(0, 1, [plan("one"), plan("two")])
    attributions.done(0, 1, f"{UUID}:binlane_0:1-5")
    attributions.intend(0, 2, [plan("three")])
    attributions.done(0, 2, f"{UUID}:binlane_0:1-6")
    # It made none, which is certain, so that several of the next one are as foreseen.
    attributions.done(0, 3, f"{UUID}:binlane_0:1-6", [])
    attributions.intend(0, 4, [plan("four"), plan("five")])
    attributions.done(0, 4, f"{UUID}:binlane_0:7-8")
    texts = enumerate(("one", "two", "three", "four", "five"), 4)
    for number, text in texts:
        assert attributions.find(0, MysqlGtid(UUID, number, "binlane_0")) == plan(text)


def test_two_threads_at_once(tmp_path: Path) -> None:
    """Groups come before and after their replies, while the journal changes its files all the time."""
    settings = AttributionSettings(wait_s=20.0, file_bytes=4000)
    attributions = Attributions(tmp_path / "port", Flavor.MARIADB, settings)
    attributions.begin(at(0))
    log: SimpleQueue[tuple[int, Gtid, GroupPlan] | None] = SimpleQueue()
    found: list[tuple[GroupPlan, GroupPlan | Unattributed]] = []

    def route() -> None:
        while (group := log.get()) is not None:
            lane, each, wanted = group
            attributions.read([(lane, each, True)], GtidPosition((each,)))
            found.append((wanted, attributions.find(lane, each)))
            if each.sequence % 50 == 0:
                attributions.passed(at(each.sequence - 40))

    thread = threading.Thread(target=route)
    thread.start()
    chance = random.Random(7)
    sequence = 0
    for number in range(1, 1001):
        plans = {lane: plan(f"{lane}.{number}") for lane in range(4)}
        for lane, each in plans.items():
            attributions.intend(lane, number, [each])
        replies = []
        for lane, each in plans.items():
            sequence += 1
            log.put((lane, gtid(sequence, lane), each))
            replies.append((lane, str(gtid(sequence, lane))))
            if chance.random() < 0.5:
                attributions.done(lane, number, replies.pop()[1])
        for lane, last in replies:
            attributions.done(lane, number, last)
    log.put(None)
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert len(found) == 4000
    assert all(got == wanted for wanted, got in found)
    assert not attributions.failure
    assert not attributions.given_up
    attributions.close()


def test_closing_wakes_who_waits() -> None:
    attributions = Attributions(None, Flavor.MARIADB, AttributionSettings(wait_s=60.0))
    attributions.begin(at(0))
    attributions.intend(0, 1, [plan("one")])
    timer = threading.Timer(0.05, attributions.close)
    timer.start()
    since_s = time.monotonic()
    assert attributions.find(0, gtid(1)) == Unattributed(Reason.CLOSED)
    assert time.monotonic() - since_s < 30
    timer.join()


def test_another_source_knows_nothing_of_the_one_before(tmp_path: Path) -> None:
    attributions = begun(tmp_path / "port")
    attributions.intend(0, 1, [plan("one")])
    attributions.done(0, 1, str(gtid(1)))
    attributions.read([(0, gtid(1), True)], at(1))
    assert attributions.find(0, gtid(1)) == plan("one")
    attributions.intend(0, 2, [plan("two")])
    attributions.forget()
    attributions.begin(at(0))
    assert isinstance(attributions.find(0, gtid(1)), Unattributed)
    again = Attributions(tmp_path / "port", Flavor.MARIADB, QUICK)
    again.begin(at(0))
    for number in (1, 2):
        assert isinstance(again.find(0, gtid(number)), Unattributed)


def test_what_was_logged_before_a_session_came_is_not_its_own() -> None:
    attributions = begun()
    attributions.taken(0, 7, at(5))
    attributions.intend(0, 1, [plan("one"), plan("two")])
    attributions.done(0, 1, str(gtid(7)))
    attributions.read([(0, gtid(number), True) for number in (4, 5, 7)], at(7))
    assert attributions.find(0, gtid(5)) == Unattributed(Reason.NO_STATEMENT)
    assert attributions.find(0, gtid(7)) == Unattributed(Reason.OTHER_COUNT)


def test_a_lane_that_lets_others_wait_is_waited_for_less() -> None:
    attributions = begun()
    for number in range(1, 5):
        attributions.intend(0, number, [plan("late")])
        assert attributions.find(0, gtid(number)) == Unattributed(Reason.NOT_ANSWERED)
        attributions.done(0, number, str(gtid(number)))
    assert attributions.patience_s(0) < QUICK.wait_s
    attributions.intend(0, 9, [plan("quick")])
    attributions.done(0, 9, str(gtid(9)))
    assert attributions.patience_s(0) == QUICK.wait_s
    assert attributions.find(0, gtid(9)) == plan("quick")


def test_nothing_told_after_an_error_is_not_counted_for_the_next() -> None:
    attributions = begun()
    attributions.intend(0, 1, [plan("failed")])
    attributions.done(0, 1, None, ())
    attributions.intend(0, 2, [plan("one"), plan("two")])
    attributions.done(0, 2, str(gtid(2)))
    attributions.read([(0, gtid(1), False), (0, gtid(2), True)], at(2))
    assert attributions.find(0, gtid(1)) == Unattributed(Reason.OTHER_COUNT)
    assert attributions.find(0, gtid(2)) == Unattributed(Reason.OTHER_COUNT)
