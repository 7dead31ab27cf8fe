"""What sessions of other processes say is heard as if they were here."""

from __future__ import annotations

import random
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from binlane.live.port import attribution_state
from binlane.live.port.attribution_messages import AttributionListener, AttributionSender
from binlane.live.port.attribution_settings import AttributionSettings
from binlane.live.port.attribution_state import ReadGroup
from binlane.live.port.attributions import Attributions
from binlane.live.port.kernel_hearing import KernelHearing
from binlane.live.port.session_groups import RowsReason, Unattributed
from binlane.log.codec.types import Flavor
from binlane.log.kernels.load import Build, builds, running
from binlane.positions import GtidPosition, GtidSet
from tests.unit.live.port.test_attributions import (
    OTHER,
    THREAD,
    UUID,
    at,
    group,
    gtid,
    mysql_group,
    plan,
    rows,
    unnamed,
)
from tests.unit.live.port.test_random_attributions import arrays_of

SETTINGS = AttributionSettings(wait_s=0.0, is_relayed=True)


@contextmanager
def spoken(
    folder: Path | None = None,
) -> Iterator[tuple[AttributionSender, Attributions, AttributionListener]]:
    """What sessions speak by, and who hears it, from position 0 on."""
    attributions = Attributions(folder, Flavor.MARIADB, SETTINGS)
    attributions.begin(at(0))
    there, here = socket.socketpair()
    hearing = AttributionListener(attributions)
    hearing.add(here)
    attributions.hear = hearing.hear
    with there:
        yield AttributionSender(there), attributions, hearing
    hearing.close()
    attributions.close()


def test_a_group_is_not_looked_at_before_what_was_said_is_heard() -> None:
    with spoken() as (sayings, attributions, _):
        sayings.intend(THREAD, 1, [plan("one")])
        sayings.done(THREAD, 1, str(gtid(1)))
        assert attributions.find(group(1)) == plan("one")


@pytest.mark.parametrize("build", builds())
def test_what_a_kernel_hears_is_what_is_heard_without_it(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KernelHearing, "is_possible", lambda: True)
    monkeypatch.setattr(secrets, "randbits", lambda _: 1)  # else journals have different epochs
    for seed in range(12):
        heard = []
        for is_by_kernel in (False, True):
            folder = tmp_path / f"{seed} {is_by_kernel}"
            with running(build):
                heard.append(_heard(folder, seed, is_by_kernel=is_by_kernel))
        assert heard[0] == heard[1]
        files = [
            {
                path.name: path.read_bytes().rstrip(b"\0")
                for path in (tmp_path / f"{seed} {each}").iterdir()
            }
            for each in (False, True)
        ]
        assert files[0] == files[1]


def _heard(folder: Path, seed: int, *, is_by_kernel: bool) -> list[object]:
    """Have sessions say this and that, in pieces, and find whose groups are whose."""
    chance = random.Random(seed)
    # Whether a record says that there are older groups hangs on when news is taken in: with few files, and where
    # all is intended, that is the same.
    reads_early = seed % 3 == 0
    settings = replace(SETTINGS, file_bytes=1 << 20 if reads_early else 6000)
    attributions = Attributions(folder, Flavor.MARIADB, settings)
    assert attributions.by_kernel is not None
    if not is_by_kernel:
        attributions.by_kernel = None
    attributions.begin(at(0))
    there, here = socket.socketpair()
    hearing = AttributionListener(attributions)
    hearing.add(here)
    attributions.hear = hearing.hear
    found: list[object] = []
    with there:
        said = _Pieces(there, chance)
        sayings = AttributionSender(said)  # type: ignore[arg-type]  # sends pieces
        threads = [1, 2, 3, 4]
        for thread_id in threads:
            sayings.taken(thread_id, at(0))
        number = sequence = first = 0
        makers: dict[int, int] = {}
        for _ in range(60):
            _come_and_go(sayings, threads, at(sequence), chance)
            number, thread_id = number + 1, chance.choice(threads)
            plans = [plan(f"{number}")] * chance.choice((1, 1, 1, 1, 0, 2))
            is_split = len(plans) == 2 and chance.random() < 0.5
            if reads_early or chance.random() < 0.95:
                is_outdated = chance.random() < 0.05
                sayings.intend(thread_id, number, plans, is_split=is_split, is_outdated=is_outdated)
            is_told = chance.random() < 0.8
            if is_told:
                sequence += max(1, len(plans))
                if seed % 2:  # else the log does not name it
                    makers[sequence] = thread_id
                if reads_early and chance.random() < 0.2:  # the group comes before the reply
                    said.flush()
                    attributions.read([_read(sequence, makers)], None)
            _answer(sayings, (thread_id, number), sequence if is_told else 0, chance)
            if chance.random() < 0.2:
                said.flush()
                hearing.hear()
            if chance.random() < 0.1 or number == 60:
                said.flush()
                groups = [_read(each, makers) for each in range(first + 1, sequence + 1)]
                attributions.read(groups, at(sequence) if sequence else None)
                first = sequence
                found += [attributions.find(each, wait_s=0.0) for each in groups]
    hearing.close()
    attributions.close()
    return found


def _come_and_go(
    sayings: AttributionSender, threads: list[int], position: GtidPosition, chance: random.Random
) -> None:
    """Have a session leave now and then, and another one come, sometimes with the same number of its thread."""
    if chance.random() < 0.7:
        return
    place = chance.randrange(len(threads))
    if chance.random() < 0.3:
        sayings.lost(threads[place])
    if chance.random() < 0.9:
        sayings.given(threads[place])
    if chance.random() < 0.7:
        threads[place] = max(threads) + 1
    sayings.taken(threads[place], position)


def _answer(
    sayings: AttributionSender, statement: tuple[int, int], told: int, chance: random.Random
) -> None:
    if told:
        text = str(gtid(told)) if chance.random() < 0.97 else "no GTID"
        others = [plan(f"{statement[1]}!")] if chance.random() < 0.2 else None
        sayings.done(*statement, text, others)
    elif chance.random() < 0.5:
        sayings.done(*statement, None, chance.choice((None, [])))


def _read(sequence: int, makers: dict[int, int]) -> ReadGroup:
    maker = makers.get(sequence)
    return unnamed(sequence, f"{sequence}") if maker is None else group(sequence, maker)


class _Pieces:
    """A connection that sends what it is given in pieces of any length."""

    def __init__(self, connection: socket.socket, chance: random.Random) -> None:
        self.setsockopt, self._connection, self._chance = connection.setsockopt, connection, chance
        self._kept = b""

    def sendall(self, data: bytes) -> None:
        self._kept += data
        length = self._chance.randrange(len(self._kept) + 1)
        self._connection.sendall(self._kept[:length])
        self._kept = self._kept[length:]

    def flush(self) -> None:
        self._connection.sendall(self._kept)
        self._kept = b""


@pytest.mark.parametrize("build", builds())
def test_a_kernel_finds_the_groups_of_sessions_that_come_and_go(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KernelHearing, "is_possible", lambda: True)
    with running(build), spoken(tmp_path) as (sayings, attributions, _):
        attributions.read([group(1, OTHER)], at(1))
        threads = range(THREAD + 2, THREAD + 8)
        for number, thread_id in enumerate(threads, 2):
            # When one of them began nothing was in the log.
            sayings.taken(thread_id, at(1) if number > 2 else None)
            sayings.intend(thread_id, 1, [plan(f"{number}")])
            sayings.done(thread_id, 1, str(gtid(number)))
            sayings.given(thread_id)
        read = [group(number, thread_id) for number, thread_id in enumerate(threads, 2)]
        found = attributions.read_told(arrays_of(read), is_late=True)
        assert found is not None
        assert found.numbers == list(range(6))
        attributions.read((), at(7))
        assert [attributions.find(each) for each in read] == [plan(f"{one}") for one in range(2, 8)]


@pytest.mark.parametrize("build", builds())
def test_a_kernel_finds_the_group_of_an_answer_that_was_heard_by_itself(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KernelHearing, "is_possible", lambda: True)
    with running(build), spoken(tmp_path) as (sayings, attributions, _):
        sayings.taken(THREAD, at(0))
        sayings.intend(THREAD, 1, [plan("one")])
        sayings.done(THREAD, 1, str(gtid(1)))
        sayings.lost(THREAD)
        sayings.given(THREAD)
        found = attributions.read_told(arrays_of([group(1)]), is_late=True)
        assert found is not None
        assert found.numbers == [0]
        assert attributions.find(group(1)) == plan("one")


@pytest.mark.parametrize("build", builds())
def test_a_number_of_a_thread_that_comes_again_is_another_session(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KernelHearing, "is_possible", lambda: True)
    with running(build), spoken(tmp_path) as (sayings, attributions, _):
        for number in (1, 2):
            sayings.taken(THREAD, at(number - 1))
            sayings.intend(THREAD, 1, [plan(f"{number}")])
            sayings.done(THREAD, 1, str(gtid(number)))
            sayings.given(THREAD)
        read = [unnamed(number, f"{number}") for number in (1, 2)]
        found = attributions.read_told(arrays_of(read), is_late=True)
        assert found is not None
        assert found.numbers == [1]
        attributions.read(read[:1], at(2))
        assert attributions.find(read[0]) == rows(RowsReason.LOST, THREAD)
        assert attributions.find(read[1]) == plan("2")


@pytest.mark.parametrize("build", builds())
def test_a_session_is_not_forgotten_before_what_it_said_is_known(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KernelHearing, "is_possible", lambda: True)
    monkeypatch.setattr(attribution_state, "_KEPT_SESSIONS", 1)
    with running(build), spoken(tmp_path) as (sayings, attributions, _):
        sayings.taken(THREAD, at(0))
        sayings.intend(THREAD, 1, [plan("one")])
        sayings.done(THREAD, 1, str(gtid(1)))
        sayings.given(THREAD)
        for thread_id in (OTHER, OTHER + 1, OTHER + 2):
            sayings.taken(thread_id, at(1))
        found = attributions.read_told(arrays_of([group(1)]), is_late=True)
        assert found is not None
        assert found.numbers == [0]


@pytest.mark.parametrize("build", builds())
@pytest.mark.parametrize("is_named", [True, False])
def test_a_kernel_finds_no_group_of_a_session_that_has_made_another_one_before(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_named: bool
) -> None:
    monkeypatch.setattr(KernelHearing, "is_possible", lambda: True)
    with running(build), spoken(tmp_path) as (sayings, attributions, _):
        sayings.taken(THREAD, at(0))
        sayings.intend(THREAD, 1, [plan("one")])
        sayings.done(THREAD, 1, str(gtid(2)))
        read = [group(each, THREAD if is_named else OTHER) for each in (1, 2)]
        found = attributions.read_told(arrays_of(read), is_late=True)
        assert found is not None
        assert found.numbers == ([] if is_named else [1])
        left = [each for number, each in enumerate(read) if number not in found.numbers]
        attributions.read(left, at(2))
        assert (attributions.find(group(2)) == plan("one")) is not is_named


def test_plans_of_a_reply_take_the_place_of_those_intended() -> None:
    with spoken() as (sayings, attributions, _):
        sayings.intend(THREAD, 1, [plan("one")])
        sayings.done(THREAD, 1, str(gtid(1)), [plan("other")])
        sayings.intend(THREAD, 2, [plan("two")])
        sayings.done(THREAD, 2, str(gtid(2)), [plan("two")])
        groups = [group(number) for number in (1, 2)]
        attributions.read(groups, at(2))
        assert [attributions.find(group(number)) for number in (1, 2)] == [
            plan("other"),
            plan("two"),
        ]


def test_a_reply_of_which_nothing_is_known_leaves_rows() -> None:
    with spoken() as (sayings, attributions, _):
        sayings.intend(THREAD, 1, [])
        sayings.done(THREAD, 1, None, [])
        sayings.intend(THREAD, 2, [plan("two"), plan("three")])
        sayings.done(THREAD, 2, str(gtid(3)))
        attributions.read([group(number) for number in (1, 2, 3)], at(3))
        assert isinstance(attributions.find(group(2)), Unattributed)


def test_a_reply_without_a_gtid_that_can_be_read_ends_nothing() -> None:
    with spoken() as (sayings, attributions, _):
        sayings.intend(THREAD, 1, [plan("one")])
        sayings.done(THREAD, 1, "nonsense")
        sayings.intend(THREAD, 2, [plan("two")])
        sayings.done(THREAD, 2, str(gtid(1)))
        assert attributions.find(group(1)) == plan("two")


def test_a_saying_larger_than_a_connection_holds() -> None:
    long = "x" * (16 << 20)
    with spoken() as (sayings, attributions, hearing):
        thread = threading.Thread(target=sayings.intend, args=(THREAD, 1, [plan(long)]))
        thread.start()
        while thread.is_alive():
            hearing.hear()
        sayings.done(THREAD, 1, str(gtid(1)))
        assert attributions.find(group(1)) == plan(long)


def test_sessions_come_and_go() -> None:
    with spoken() as (sayings, attributions, _):
        sayings.taken(THREAD, at(3))
        sayings.intend(THREAD, 1, [plan("one")])
        attributions.read([group(3), group(4)], at(4))
        # What was there before the session is not its own.
        assert attributions.find(group(3)) == rows(RowsReason.STRANGER)
        assert attributions.is_pending(gtid(4))
        sayings.lost(THREAD)
        sayings.given(THREAD)
        assert attributions.find(group(4)) == plan("one")
        attributions.read([group(5)], at(5))
        assert attributions.find(group(5)) == rows(RowsReason.NO_STATEMENT, THREAD)


def test_the_end_of_a_session_comes_behind_what_others_said_before() -> None:
    """The group may be either one's until the reply names it."""
    with spoken() as (sayings, attributions, _):
        for thread_id, text in ((THREAD, "two"), (OTHER, "one")):
            sayings.taken(thread_id, at(0))
            sayings.intend(thread_id, 1, [plan(text)])
        attributions.read([unnamed(1, "one")], at(1))
        sayings.done(THREAD, 1, str(gtid(1)), [plan("one")])
        sayings.lost(OTHER)
        sayings.given(OTHER)
        assert attributions.find(unnamed(1, "one")) == plan("one")


def test_up_to_where_groups_are_is_heard() -> None:
    """Else the reply would name a group that is another session's."""
    attributions = Attributions(None, Flavor.MYSQL, SETTINGS)
    attributions.begin(GtidSet.parse(f"{UUID}:1-5"))
    there, here = socket.socketpair()
    hearing = AttributionListener(attributions)
    hearing.add(here)
    attributions.hear = hearing.hear
    with there:
        sayings = AttributionSender(there)
        sayings.taken(THREAD, GtidSet.parse(f"{UUID}:1-5"))
        sayings.intend(THREAD, 1, [plan("one")])
        sayings.done(THREAD, 1, f"{UUID}:1-7", [plan("other")], is_bound=True)
        sayings.intend(THREAD, 2, [plan("two")])
        sayings.done(THREAD, 2, f"{UUID}:1-8", is_bound=True)
        groups = [mysql_group(6), mysql_group(7, OTHER), mysql_group(8)]
        attributions.read(groups, GtidSet.parse(f"{UUID}:1-8"))
        found = [attributions.find(each) for each in groups]
    assert found == [plan("other"), rows(RowsReason.STRANGER), plan("two")]
    hearing.close()
    attributions.close()


def test_a_process_that_is_gone_takes_its_sessions_with_it() -> None:
    with spoken() as (sayings, attributions, hearing):
        there, here = socket.socketpair()
        hearing.add(here)
        gone = AttributionSender(there)
        for speaker, thread_id in ((gone, THREAD), (sayings, OTHER)):
            speaker.taken(thread_id, at(0))
            speaker.intend(thread_id, 1, [plan("one")])
        attributions.read([unnamed(1, "one"), group(2)], at(2))
        gone.close()
        hearing.remove(here)
        assert attributions.find(group(2)) == plan("one")
        assert attributions.is_pending(gtid(1))
        sayings.done(OTHER, 1, str(gtid(1)))
        assert attributions.find(unnamed(1, "one")) == plan("one")


def test_what_a_process_said_is_heard_though_it_is_gone() -> None:
    attributions = Attributions(None, Flavor.MARIADB, SETTINGS)
    attributions.begin(at(0))
    there, here = socket.socketpair()
    hearing = AttributionListener(attributions)
    hearing.add(here)
    sayings = AttributionSender(there)
    sayings.intend(THREAD, 1, [plan("one")])
    sayings.done(THREAD, 1, str(gtid(1)))
    sayings.close()
    hearing.remove(here)
    assert attributions.find(group(1)) == plan("one")
    attributions.close()


def test_what_was_not_heard_before_a_kill_makes_rows_of_nothing_else(tmp_path: Path) -> None:
    """The first statement made nothing, as nobody heard; the group is the second one's."""
    with spoken(tmp_path / "port") as (sayings, _, hearing):
        sayings.taken(THREAD, at(0))
        sayings.intend(THREAD, 1, [plan("one")])
        hearing.hear()
        sayings.done(THREAD, 1, None)
        sayings.intend(THREAD, 2, [plan("two")])
        hearing.close()

    again = Attributions(tmp_path / "port", Flavor.MARIADB, SETTINGS)
    again.begin(at(0))
    assert again.find(group(1)) == rows(RowsReason.FORGOTTEN, THREAD)
    again.close()
