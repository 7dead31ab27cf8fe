"""Which group is of which statement, whatever comes first: the reply or the group."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

import pytest

from binlane.live.port.attribution_settings import AttributionSettings
from binlane.live.port.attribution_state import ReadGroup
from binlane.live.port.attributions import Attributions
from binlane.live.port.session_groups import RowsReason, Unattributed
from binlane.log.codec.types import Flavor
from binlane.log.grouping.sections import RowsPiece
from binlane.names import TableName
from binlane.positions import Gtid, GtidPosition, GtidSet, MysqlGtid
from binlane.statements.session.group_plan import EncodedEvent, GroupPlan, RowsPart, TextPart

UUID = "00000000-0000-0000-0000-000000000001"
THREAD = 7
OTHER = 8
QUICK = AttributionSettings(wait_s=0.2)
PATIENT = AttributionSettings(wait_s=60.0)


def plan(text: str) -> GroupPlan:
    """A plan that is known by its text."""
    table = TableName("shop", "orders")
    section = (RowsPiece((table,), (("insert", table),)),)
    query = EncodedEvent(2, text.encode())
    return GroupPlan(
        sections=(section,),
        binlogs={"statements": (TextPart((query,), 0),), "rows": (RowsPart(0),)},
        bases={"statements": 1, "rows": 2},
        ends={"rows": None, "statements": TextPart((EncodedEvent(2, b"ROLLBACK", 8),))},
    )


def gtid(sequence: int, domain: int = 0) -> Gtid:
    return Gtid(domain, 1, sequence)


def at(sequence: int) -> GtidPosition:
    return GtidPosition((Gtid(0, 1, sequence),))


def group(sequence: int, thread_id: int = THREAD, *, is_commit: bool = True) -> ReadGroup:
    """A group in which the log names its thread."""
    return ReadGroup(gtid(sequence), thread_id, is_commit)


def unnamed(sequence: int, *texts: str) -> ReadGroup:
    """A group in which the log names no thread; it could be of statements with these texts."""
    return ReadGroup(gtid(sequence), 0, True, could_be(*texts))


def could_be(*texts: str) -> Callable[[GroupPlan], bool]:
    return lambda found: any(found == plan(text) for text in texts)


def mysql_group(sequence: int, thread_id: int = THREAD, tag: str = "") -> ReadGroup:
    return ReadGroup(MysqlGtid(UUID, sequence, tag), thread_id, True)


def rows(reason: RowsReason, *threads: int) -> Unattributed:
    return Unattributed(reason, frozenset(threads))


def begun(
    folder: Path | None = None, sequence: int = 0, settings: AttributionSettings = QUICK
) -> Attributions:
    attributions = Attributions(folder, Flavor.MARIADB, settings)
    attributions.begin(at(sequence))
    return attributions


def test_a_group_that_comes_after_the_reply() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.done(THREAD, 1, str(gtid(1)))
    assert attributions.find(group(1)) == plan("one")
    assert attributions.find(group(1)) == plan("one")


def test_a_group_that_comes_before_the_reply() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.read([group(1)], at(1))
    timer = threading.Timer(0.05, attributions.done, (THREAD, 1, str(gtid(1))))
    timer.start()
    assert attributions.find(group(1)) == plan("one")
    timer.join()


def test_a_statement_that_was_not_planned_costs_no_later_one() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.done(THREAD, 1, str(gtid(1)))
    attributions.read([group(1)], at(1))
    assert attributions.find(group(1)) == plan("one")
    # Read before its session was told of it.
    attributions.read([group(2)], at(2))
    assert attributions.find(group(2)) == rows(RowsReason.NO_STATEMENT, THREAD)
    attributions.done(THREAD, 2, str(gtid(2)), [])
    for number in (3, 4):
        attributions.intend(THREAD, number, [plan(f"statement {number}")])
        attributions.read([group(number)], at(number))
        attributions.done(THREAD, number, str(gtid(number)))
        assert attributions.find(group(number)) == plan(f"statement {number}")


def test_nobody_waits_for_ever() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one"), plan("two")])
    since_s = time.monotonic()
    assert attributions.find(group(1)) == rows(RowsReason.NOT_ANSWERED, THREAD)
    assert 0.2 <= time.monotonic() - since_s < 5
    since_s = time.monotonic()
    assert attributions.find(group(2)) == rows(RowsReason.NOT_ANSWERED, THREAD)
    assert time.monotonic() - since_s < 0.1
    attributions.done(THREAD, 1, str(gtid(3)))
    assert attributions.find(group(3)) == rows(RowsReason.NOT_ANSWERED, THREAD)
    attributions.intend(THREAD, 2, [plan("three")])
    attributions.done(THREAD, 2, str(gtid(4)))
    assert attributions.find(group(4)) == plan("three")


def test_several_groups() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one"), plan("two")])
    attributions.done(THREAD, 1, str(gtid(3)))
    attributions.read([group(1), group(2, OTHER), group(3, is_commit=False)], at(3))
    assert attributions.find(group(1)) == plan("one")
    assert attributions.find(group(2, OTHER)) == rows(RowsReason.STRANGER)
    assert attributions.find(group(3)) == plan("two")


def test_another_number_of_groups() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one"), plan("two")])
    attributions.done(THREAD, 1, str(gtid(1)))
    attributions.intend(THREAD, 2, [plan("three")])
    attributions.done(THREAD, 2, str(gtid(3)))
    attributions.intend(THREAD, 3, [plan("four")])
    attributions.done(THREAD, 3, str(gtid(4)))
    attributions.read([group(number) for number in (1, 2, 3, 4)], at(4))
    for number in (1, 2, 3):
        assert attributions.find(group(number)) == rows(RowsReason.OTHER_COUNT, THREAD)
    assert attributions.find(group(4)) == plan("four")


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_lost_reply(*, is_commit: bool) -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.read([group(1, is_commit=is_commit)], at(1))
    assert attributions.is_pending(gtid(1))
    attributions.lost(THREAD)
    assert not attributions.is_pending(gtid(1))
    expected = plan("one") if is_commit else rows(RowsReason.LOST, THREAD)
    assert attributions.find(group(1, is_commit=is_commit)) == expected


def test_a_restart(tmp_path: Path) -> None:
    attributions = begun(tmp_path / "port")
    attributions.taken(THREAD)
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.done(THREAD, 1, str(gtid(1)))
    assert attributions.find(group(1)) == plan("one")
    attributions.intend(THREAD, 2, [plan("two")])
    attributions.done(THREAD, 2, str(gtid(2)), [plan("other")])
    attributions.intend(THREAD, 3, [plan("three")])
    attributions.close()

    again = Attributions(tmp_path / "port", Flavor.MARIADB, QUICK)
    again.begin(at(0))
    again.read([group(number) for number in (1, 2, 3)], at(3))
    assert again.find(group(1)) == plan("one")
    assert again.find(group(2)) == plan("other")
    assert again.find(group(3)) == plan("three")


def test_mysql() -> None:
    attributions = Attributions(None, Flavor.MYSQL, QUICK)
    attributions.begin(GtidSet.parse(f"{UUID}:1-5"))
    attributions.intend(THREAD, 1, [plan("one"), plan("two")])
    attributions.done(THREAD, 1, f"{UUID}:6-7")
    assert attributions.find(mysql_group(6)) == plan("one")
    assert attributions.find(mysql_group(7)) == plan("two")


def test_groups_of_one_statement_with_several_tags() -> None:
    attributions = Attributions(None, Flavor.MYSQL, QUICK)
    attributions.begin(GtidSet.parse(f"{UUID}:1-5"))
    attributions.intend(THREAD, 1, [plan("one"), plan("two"), plan("three")])
    attributions.done(THREAD, 1, f"{UUID}:6-7:own:1")
    groups = [mysql_group(6), mysql_group(1, tag="own"), mysql_group(7)]
    attributions.read(groups, GtidSet.parse(f"{UUID}:1-7:own:1"))
    found = [attributions.find(each) for each in groups]
    assert found == [plan("one"), plan("two"), plan("three")]


def test_a_mysql_that_was_asked_for_all_that_it_executed() -> None:
    """Of these groups the session's are those that name its thread."""
    attributions = Attributions(None, Flavor.MYSQL, QUICK)
    before = GtidSet.parse(f"{UUID}:1-5:own:1-3")
    attributions.begin(before)
    attributions.taken(THREAD, before)
    attributions.intend(THREAD, 1, [plan("one"), plan("two")])
    attributions.done(THREAD, 1, f"{UUID}:1-9:own:1-3", is_bound=True)
    attributions.intend(THREAD, 2, [plan("three")])
    attributions.done(THREAD, 2, f"{UUID}:1-10:own:1-3", is_bound=True)
    # It made none, which is certain, so that several of the next one are as foreseen.
    attributions.done(THREAD, 3, f"{UUID}:1-10:own:1-3", [], is_bound=True)
    attributions.intend(THREAD, 4, [plan("four"), plan("five")])
    attributions.done(THREAD, 4, f"{UUID}:11-12")
    attributions.intend(THREAD, 5, [plan("six")])
    attributions.done(THREAD, 5, f"{UUID}:1-14:own:1-4", is_bound=True)
    own = {6: "one", 8: "two", 10: "three", 11: "four", 12: "five", 14: "six"}
    groups = [mysql_group(number, THREAD if number in own else OTHER) for number in range(6, 15)]
    attributions.read(groups[:1], None)
    # Whether more of the first one come up to there is not read yet.
    assert attributions.is_pending(groups[0].gtid)
    attributions.read(groups[1:], GtidSet.parse(f"{UUID}:1-14:own:1-4"))
    for each in groups:
        text = own.get(each.gtid.sequence)
        expected = plan(text) if text else rows(RowsReason.STRANGER)
        assert attributions.find(each) == expected


def test_up_to_where_groups_are_does_not_tell_how_many_there_are() -> None:
    attributions = Attributions(None, Flavor.MYSQL, QUICK)
    attributions.begin(GtidSet.parse(f"{UUID}:1-5"))
    attributions.intend(THREAD, 1, [plan("one"), plan("two")])
    attributions.done(THREAD, 1, f"{UUID}:1-9", is_bound=True)
    attributions.intend(THREAD, 2, [plan("three")])
    attributions.done(THREAD, 2, f"{UUID}:1-12", is_bound=True)
    attributions.read([mysql_group(6), mysql_group(11)], GtidSet.parse(f"{UUID}:1-12"))
    assert attributions.find(mysql_group(6)) == rows(RowsReason.OTHER_COUNT, THREAD)
    assert attributions.find(mysql_group(11)) == plan("three")


def test_a_statement_of_which_nothing_is_known_leaves_no_bound_to_the_next() -> None:
    attributions = Attributions(None, Flavor.MYSQL, QUICK)
    attributions.begin(GtidSet.parse(f"{UUID}:1-5"))
    attributions.intend(THREAD, 1, [plan("failed")])
    attributions.done(THREAD, 1, None, ())
    attributions.intend(THREAD, 2, [plan("one")])
    # The group may be of either.
    attributions.done(THREAD, 2, f"{UUID}:1-6", is_bound=True)
    attributions.read([mysql_group(6)], GtidSet.parse(f"{UUID}:1-6"))
    assert attributions.find(mysql_group(6)) == rows(RowsReason.OTHER_COUNT, THREAD)


@pytest.mark.parametrize("is_named", [True, False])
def test_two_threads_at_once(tmp_path: Path, *, is_named: bool) -> None:
    """Groups come before and after their replies, while the journal changes its files all the time."""
    settings = AttributionSettings(wait_s=20.0, file_bytes=4000)
    attributions = Attributions(tmp_path / "port", Flavor.MARIADB, settings)
    attributions.begin(at(0))
    log: SimpleQueue[tuple[ReadGroup, GroupPlan] | None] = SimpleQueue()
    found: list[tuple[GroupPlan, GroupPlan | Unattributed]] = []

    def route() -> None:
        while (item := log.get()) is not None:
            each, wanted = item
            assert isinstance(each.gtid, Gtid)
            attributions.read([each], GtidPosition((each.gtid,)))
            found.append((wanted, attributions.find(each)))
            if each.gtid.sequence % 50 == 0:
                attributions.passed(at(each.gtid.sequence - 40))

    thread = threading.Thread(target=route)
    thread.start()
    chance = random.Random(7)
    sequence = 0
    rounds = 1000 if is_named else 400
    for number in range(1, rounds + 1):
        texts = {thread_id: f"{thread_id}.{number}" for thread_id in range(1, 5)}
        for thread_id, text in texts.items():
            attributions.intend(thread_id, number, [plan(text)])
        replies = []
        for thread_id, text in texts.items():
            sequence += 1
            # Any of these could be what another one of them made.
            each = group(sequence, thread_id) if is_named else unnamed(sequence, *texts.values())
            log.put((each, plan(text)))
            replies.append((thread_id, str(gtid(sequence))))
            if chance.random() < 0.5:
                attributions.done(thread_id, number, replies.pop()[1])
        for thread_id, last in replies:
            attributions.done(thread_id, number, last)
    log.put(None)
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert len(found) == 4 * rounds
    assert all(got == wanted for wanted, got in found)
    assert not attributions.failure
    attributions.close()


def test_closing_wakes_who_waits() -> None:
    attributions = begun(settings=PATIENT)
    attributions.intend(THREAD, 1, [plan("one")])
    timer = threading.Timer(0.05, attributions.close)
    timer.start()
    since_s = time.monotonic()
    assert attributions.find(group(1)) == Unattributed(RowsReason.CLOSED)
    assert time.monotonic() - since_s < 30
    timer.join()


def test_another_source_knows_nothing_of_the_one_before(tmp_path: Path) -> None:
    attributions = begun(tmp_path / "port")
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.done(THREAD, 1, str(gtid(1)))
    attributions.read([group(1)], at(1))
    assert attributions.find(group(1)) == plan("one")
    attributions.intend(THREAD, 2, [plan("two")])
    attributions.forget()
    attributions.begin(at(0))
    assert isinstance(attributions.find(group(1)), Unattributed)
    again = Attributions(tmp_path / "port", Flavor.MARIADB, QUICK)
    again.begin(at(0))
    for number in (1, 2):
        assert isinstance(again.find(group(number)), Unattributed)


def test_what_was_logged_before_a_session_came_is_not_its_own() -> None:
    attributions = begun()
    attributions.taken(THREAD, at(5))
    attributions.intend(THREAD, 1, [plan("one"), plan("two")])
    attributions.done(THREAD, 1, str(gtid(7)))
    attributions.read([group(number) for number in (4, 5, 7)], at(7))
    assert attributions.find(group(5)) == rows(RowsReason.STRANGER)
    assert attributions.find(group(7)) == rows(RowsReason.OTHER_COUNT, THREAD)


def test_a_session_that_lets_others_wait_is_waited_for_less() -> None:
    attributions = begun()
    for number in range(1, 5):
        attributions.intend(THREAD, number, [plan("late")])
        assert attributions.find(group(number)) == rows(RowsReason.NOT_ANSWERED, THREAD)
        attributions.done(THREAD, number, str(gtid(number)))
    attributions.intend(THREAD, 9, [plan("quick")])
    attributions.read([group(9)], at(9))
    assert attributions.patience_s(gtid(9)) < QUICK.wait_s
    attributions.done(THREAD, 9, str(gtid(9)))
    assert attributions.find(group(9)) == plan("quick")
    attributions.intend(THREAD, 10, [plan("next")])
    attributions.read([group(10)], at(10))
    assert attributions.patience_s(gtid(10)) == QUICK.wait_s


def test_nothing_told_after_an_error_is_not_counted_for_the_next() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("failed")])
    attributions.done(THREAD, 1, None, ())
    attributions.intend(THREAD, 2, [plan("one"), plan("two")])
    attributions.done(THREAD, 2, str(gtid(2)))
    attributions.read([group(1, is_commit=False), group(2)], at(2))
    assert attributions.find(group(1)) == rows(RowsReason.OTHER_COUNT, THREAD)
    assert attributions.find(group(2)) == rows(RowsReason.OTHER_COUNT, THREAD)


# Groups of which the log names no thread.


@pytest.mark.parametrize("is_told_first", [True, False])
def test_a_group_without_a_thread_is_of_whom_it_is_told(*, is_told_first: bool) -> None:
    attributions = begun()
    for thread_id in (THREAD, OTHER):
        attributions.intend(thread_id, 1, [plan("same")])
    each = unnamed(1, "same")
    if is_told_first:
        attributions.done(OTHER, 1, str(gtid(1)), [plan("of the other")])
        assert attributions.wants(each, attributions.watch())
        attributions.read([each], at(1))
    else:
        assert attributions.wants(each, attributions.watch())
        attributions.read([each], at(1))
        assert attributions.is_pending(gtid(1))
        attributions.done(OTHER, 1, str(gtid(1)), [plan("of the other")])
    assert not attributions.is_pending(gtid(1))
    (known,) = attributions.known([each.gtid])
    assert known is not None
    assert known.plan == plan("of the other")
    assert attributions.find(each) == plan("of the other")


def test_a_group_without_a_thread_waits_for_those_alone_that_could_have_made_it() -> None:
    attributions = begun(settings=PATIENT)
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.intend(OTHER, 1, [plan("hung")])
    attributions.read([unnamed(1, "one")], at(1))
    assert attributions.are_named([unnamed(1, "one")], "statements") == [True]
    assert attributions.are_named([unnamed(1, "one")], "none") == [False]
    assert attributions.is_pending(gtid(1))
    # It made another group, or none.
    attributions.done(THREAD, 1, None)
    assert not attributions.is_pending(gtid(1))
    assert attributions.find(unnamed(1, "one")) == rows(RowsReason.STRANGER)
    attributions.intend(THREAD, 2, [plan("two")])
    attributions.read([unnamed(2, "two"), unnamed(3, "two")], at(3))
    attributions.done(THREAD, 2, str(gtid(3)))
    assert attributions.find(unnamed(2, "two")) == rows(RowsReason.STRANGER)
    assert attributions.find(unnamed(3, "two")) == plan("two")


def test_what_sessions_were_told_is_known_however_far_behind_reading_is() -> None:
    count, sessions = 12_000, 3
    attributions = begun()
    for number in range(1, count + 1):
        thread_id = THREAD + number % sessions
        attributions.intend(thread_id, number, [plan(f"{number}")])
        attributions.done(thread_id, number, str(gtid(number)))
    for first in range(1, count + 1, 1000):
        groups = [unnamed(number, f"{number}") for number in range(first, first + 1000)]
        attributions.read(groups, at(first + 999))
        for number, each in zip(range(first, first + 1000), groups, strict=True):
            assert attributions.find(each) == plan(f"{number}")


def test_groups_that_are_never_read_are_forgotten() -> None:
    attributions = begun()
    for number in range(1, 20_001):
        attributions.intend(THREAD, number, [plan("same")])
        attributions.done(THREAD, number, str(gtid(number)))
        if number % 1000 == 0:
            attributions.read((), at(number))
    attributions.intend(THREAD, 20_001, [plan("last")])
    attributions.done(THREAD, 20_001, str(gtid(20_001)))
    last = unnamed(20_001, "last")
    attributions.read([last], at(20_001))
    assert attributions.find(last) == plan("last")
    assert len(attributions._state.told) < 10_000


def test_a_session_that_hangs_holds_no_group_that_cannot_be_its_own() -> None:
    attributions = begun(settings=PATIENT)
    attributions.intend(OTHER, 1, [plan("hung")])
    watch = attributions.watch()
    assert watch.is_any_open
    for each in (unnamed(1, "another"), group(2, is_commit=False)):
        attributions.read([each], None)
        assert not attributions.is_pending(each.gtid)
    assert attributions.find(unnamed(1, "another")) == rows(RowsReason.STRANGER)
    assert attributions.find(group(2)) == rows(RowsReason.STRANGER)


def test_groups_without_a_thread_are_not_asked_for_while_nobody_waits() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.done(THREAD, 1, str(gtid(2)))
    watch = attributions.watch()
    assert not watch.is_any_open
    assert not attributions.wants(unnamed(1, "one"), watch)
    assert attributions.wants(unnamed(2, "one"), watch)
    assert attributions.wants(group(3), watch)
    assert not attributions.wants(group(3, OTHER), watch)
    assert attributions.numbers(1, 3) == {2}
    assert attributions.numbers(3, 9) == set()
    attributions.read([unnamed(2, "one")], at(3))
    # What was found out may be asked for again, what was not is nobody's.
    assert attributions.wants(unnamed(2), watch)
    assert not attributions.wants(unnamed(1), watch)


def test_a_group_without_a_thread_is_given_up() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one")])
    assert attributions.find(unnamed(1, "one")) == rows(RowsReason.NOT_ANSWERED, THREAD)
    attributions.read([unnamed(2, "one")], at(2))
    assert attributions.patience_s(gtid(2)) < QUICK.wait_s
    attributions.done(THREAD, 1, str(gtid(2)))
    assert attributions.find(unnamed(2, "one")) == plan("one")


@pytest.mark.parametrize(
    "is_answered_first",
    [
        True,
        False,
    ],
)
def test_of_several_groups_without_a_thread_the_last_alone_is_told(
    *, is_answered_first: bool
) -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one"), plan("two")])
    groups = [unnamed(1, "one", "two"), unnamed(2, "one", "two")]
    if is_answered_first:
        attributions.done(THREAD, 1, str(gtid(2)))
    attributions.read(groups, at(2))
    if not is_answered_first:
        attributions.done(THREAD, 1, str(gtid(2)))
    assert attributions.find(groups[0]) == rows(RowsReason.SEVERAL, THREAD)
    assert attributions.find(groups[1]) == rows(RowsReason.OTHER_COUNT, THREAD)
    attributions.intend(THREAD, 2, [plan("three")])
    attributions.done(THREAD, 2, str(gtid(3)))
    assert attributions.find(unnamed(3, "three")) == plan("three")


def test_a_group_that_was_taken_for_nobodys_makes_the_next_statement_doubted() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.read([unnamed(1)], at(1))
    assert attributions.find(unnamed(1)) == rows(RowsReason.STRANGER)
    attributions.done(THREAD, 1, str(gtid(1)))
    for number, expected in ((2, rows(RowsReason.MISSED, THREAD)), (3, plan("3"))):
        attributions.intend(THREAD, number, [plan(f"{number}")])
        attributions.done(THREAD, number, str(gtid(number)))
        assert attributions.find(unnamed(number, f"{number}")) == expected


def test_a_group_that_was_known_to_go_as_rows_makes_no_other_doubted() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one")])
    assert attributions.find(unnamed(1, "one")) == rows(RowsReason.NOT_ANSWERED, THREAD)
    attributions.done(THREAD, 1, str(gtid(1)))
    attributions.intend(THREAD, 2, [plan("two")])
    attributions.done(THREAD, 2, str(gtid(2)))
    assert attributions.find(unnamed(2, "two")) == plan("two")


def test_a_group_without_a_thread_of_a_session_that_is_lost() -> None:
    attributions = begun()
    attributions.taken(THREAD)
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.read([unnamed(1, "one")], at(1))
    attributions.given(THREAD)
    assert not attributions.is_pending(gtid(1))
    # Others could have made it, too.
    assert attributions.find(unnamed(1, "one")) == rows(RowsReason.LOST, THREAD)
    assert attributions.find(unnamed(2, "one")) == rows(RowsReason.LOST, THREAD)
    assert attributions.find(unnamed(3, "another")) == rows(RowsReason.STRANGER)


def test_sessions_of_which_some_groups_name_the_thread_have_them_in_the_order_of_the_log() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one"), plan("two")])
    groups = [unnamed(1, "one"), group(2, is_commit=False)]
    attributions.read(groups, at(2))
    attributions.done(THREAD, 1, str(gtid(2)))
    assert attributions.find(groups[0]) == rows(RowsReason.SEVERAL, THREAD)
    assert attributions.find(groups[1]) == rows(RowsReason.OTHER_COUNT, THREAD)


# A statement that commits what was done before it, and then makes a group of its own.


def split(attributions: Attributions, thread_id: int = THREAD) -> None:
    plans = [plan("before"), plan("own")]
    attributions.intend(thread_id, 1, plans, is_split=True)


def test_what_is_committed_before_a_statement_is_found_without_its_thread() -> None:
    groups = [unnamed(1, "before", "own"), group(2, is_commit=False)]
    for order in ("done first", "read first", "between"):
        attributions = begun(settings=PATIENT)
        attributions.intend(OTHER, 1, [plan("hung")])
        split(attributions)
        if order == "done first":
            attributions.done(THREAD, 1, str(gtid(2)))
        attributions.read(groups[:1], at(1))
        assert attributions.is_pending(gtid(1))
        if order == "between":
            attributions.done(THREAD, 1, str(gtid(2)))
            assert attributions.is_pending(gtid(1))
        attributions.read(groups[1:], at(2))
        if order == "read first":
            attributions.done(THREAD, 1, str(gtid(2)))
        found = [attributions.find(each) for each in groups]
        assert found == [plan("before"), plan("own")], order


def test_what_is_committed_before_a_statement_may_be_of_another_session() -> None:
    attributions = begun()
    split(attributions)
    attributions.intend(OTHER, 1, [plan("before")])
    groups = [unnamed(1, "before"), group(2, is_commit=False)]
    attributions.read(groups, at(2))
    attributions.lost(OTHER)
    attributions.done(THREAD, 1, str(gtid(2)))
    assert attributions.find(groups[0]) == rows(RowsReason.LOST, THREAD, OTHER)
    assert attributions.find(groups[1]) == rows(RowsReason.OTHER_COUNT, THREAD)


def test_what_is_committed_before_a_statement_is_not_what_another_session_was_told() -> None:
    attributions = begun()
    split(attributions)
    attributions.intend(OTHER, 1, [plan("before")])
    groups = [unnamed(1, "before"), unnamed(2, "before"), group(3, is_commit=False)]
    attributions.read(groups, at(3))
    attributions.done(OTHER, 1, str(gtid(1)))
    assert attributions.is_pending(gtid(2))
    attributions.done(THREAD, 1, str(gtid(3)))
    found = [attributions.find(each) for each in groups]
    assert found == [plan("before"), plan("before"), plan("own")]


def test_what_is_committed_before_a_statement_is_looked_for_after_a_restart(
    tmp_path: Path,
) -> None:
    attributions = begun(tmp_path / "port")
    attributions.taken(THREAD, at(0))
    split(attributions)
    attributions.done(THREAD, 1, str(gtid(2)))
    attributions.close()

    again = begun(tmp_path / "port")
    groups = [unnamed(1, "before"), group(2, is_commit=False)]
    watch = again.watch()
    assert all(again.wants(each, watch) for each in groups)
    again.read(groups, at(2))
    assert [again.find(each) for each in groups] == [plan("before"), plan("own")]


# Sessions, threads and the source that go and come.


def test_the_number_of_a_thread_that_is_taken_anew() -> None:
    attributions = begun()
    attributions.taken(THREAD, at(0))
    attributions.intend(THREAD, 1, [plan("of the one before")])
    attributions.read([group(1)], at(1))
    attributions.taken(THREAD, at(2))
    assert attributions.find(group(1)) == rows(RowsReason.LOST, THREAD)
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.done(THREAD, 1, str(gtid(3)))
    assert isinstance(attributions.find(group(2)), Unattributed)
    assert attributions.find(group(3)) == plan("one")


def test_what_a_thread_made_before_its_number_was_taken_anew_is_as_it_was_told() -> None:
    attributions = begun()
    attributions.taken(THREAD, at(0))
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.done(THREAD, 1, str(gtid(1)))
    attributions.given(THREAD)
    attributions.taken(THREAD, at(1))
    attributions.intend(THREAD, 1, [plan("two")])
    attributions.done(THREAD, 1, str(gtid(2)))
    found = attributions.find(group(1))
    # It came through the port.
    assert not isinstance(found, Unattributed) or found.reason is not RowsReason.STRANGER
    assert attributions.find(group(2)) == plan("two")


def test_a_source_that_was_started_anew_makes_nothing_of_what_was_under_way() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.source_started(at(0))
    # Of another session, whose thread has the same number.
    assert attributions.find(group(1)) == rows(RowsReason.LOST, THREAD)
    attributions.taken(THREAD, at(1))
    attributions.intend(THREAD, 1, [plan("two")])
    attributions.done(THREAD, 1, str(gtid(2)))
    assert attributions.find(group(2)) == plan("two")


def test_what_was_answered_before_the_source_was_started_anew_is_as_it_was_told() -> None:
    attributions = begun()
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.done(THREAD, 1, str(gtid(1)))
    attributions.source_started(at(0))
    assert attributions.find(group(1)) == plan("one")


def test_an_earlier_start_of_the_source_that_a_feed_comes_by_once_more() -> None:
    attributions = begun()
    attributions.read([group(5, 99)], at(5))
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.begin(at(2))
    attributions.source_started(at(2))
    attributions.done(THREAD, 1, str(gtid(6)))
    assert attributions.find(group(6)) == plan("one")
    attributions.intend(THREAD, 2, [plan("two")])
    attributions.source_started(None)
    assert attributions.find(group(7)) == rows(RowsReason.LOST, THREAD)


def test_threads_from_before_a_start_of_the_source_make_nothing_after_a_restart(
    tmp_path: Path,
) -> None:
    attributions = begun(tmp_path / "port")
    attributions.taken(THREAD, at(0))
    attributions.source_started(at(0))
    # Nobody knows yet that the session is gone.
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.taken(OTHER, at(0))
    attributions.intend(OTHER, 1, [plan("two")])
    attributions.close()

    again = begun(tmp_path / "port")
    assert again.find(group(1)) == rows(RowsReason.LOST, THREAD)
    assert again.find(group(2, OTHER)) == plan("two")


# What is left of them in the journal.


def test_groups_without_a_plan_are_known_again(tmp_path: Path) -> None:
    attributions = begun(tmp_path / "port")
    attributions.intend(THREAD, 1, [plan("one")])
    assert attributions.find(group(1)) == rows(RowsReason.NOT_ANSWERED, THREAD)
    attributions.done(THREAD, 1, str(gtid(1)))
    attributions.intend(OTHER, 1, [plan("two")])
    assert attributions.find(unnamed(2, "two")) == rows(RowsReason.NOT_ANSWERED, OTHER)
    attributions.done(OTHER, 1, str(gtid(2)))
    attributions.intend(THREAD, 3, [plan("three")])
    attributions.done(THREAD, 3, str(gtid(3)))
    assert attributions.find(unnamed(3, "three")) == plan("three")
    assert attributions.find(group(4, 99)) == rows(RowsReason.STRANGER)
    attributions.close()

    again = begun(tmp_path / "port")
    watch = again.watch()
    for each in (group(1), unnamed(2), unnamed(3)):
        assert again.wants(each, watch)
    assert not again.wants(group(4, 99), watch)
    assert again.numbers(1, 9) == {1, 2, 3}
    again.read([group(1), unnamed(2), unnamed(3)], at(4))
    assert again.find(group(1)) == rows(RowsReason.FORGOTTEN, THREAD)
    assert again.find(unnamed(2)) == rows(RowsReason.FORGOTTEN, OTHER)
    assert again.find(unnamed(3)) == plan("three")
    assert again.find(group(4, 99)) == rows(RowsReason.STRANGER)


def test_a_group_that_waited_when_binlane_was_killed(tmp_path: Path) -> None:
    attributions = begun(tmp_path / "port")
    attributions.taken(THREAD, at(0))
    attributions.taken(OTHER, at(0))
    attributions.given(OTHER)
    attributions.intend(THREAD, 1, [plan("one")])
    attributions.read([unnamed(1, "one")], at(1))
    attributions.close()

    again = begun(tmp_path / "port")
    assert again.find(unnamed(1, "one")) == Unattributed(RowsReason.LOST, None)
    # Whatever it was, what these sessions had for themselves is gone.
    assert again.lost_threads == frozenset((THREAD,))


@pytest.mark.parametrize("is_read", [False, True])
def test_a_group_that_was_told_and_not_found_out_when_binlane_was_killed(
    tmp_path: Path,
    is_read: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    attributions = begun(tmp_path / "port")
    attributions.taken(THREAD, at(0))
    attributions.intend(THREAD, 1, [plan("one")])
    if is_read:
        attributions.read([unnamed(1, "one")], at(1))
    attributions.done(THREAD, 1, str(gtid(1)))
    attributions.close()

    again = begun(tmp_path / "port")
    assert again.wants(unnamed(1, "one"), again.watch())
    again.read([unnamed(1, "one")], at(1))
    assert again.find(unnamed(1, "one")) == plan("one")
