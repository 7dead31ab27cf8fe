"""What sessions of other processes say is heard as if they were here."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from binlane.codec.types import Flavor
from binlane.port.attributions import Attributions, AttributionSettings
from binlane.port.lane_groups import Reason, Unattributed
from binlane.port.sayings import Hearing, SentSayings
from tests.unit.port.test_attributions import at, gtid, plan

SETTINGS = AttributionSettings(wait_s=0.0, is_relayed=True)


@contextmanager
def spoken(
    folder: Path | None = None, released: list[int] | None = None
) -> Iterator[tuple[SentSayings, Attributions, Hearing]]:
    """What sessions speak by, and who hears it, from position 0 on."""
    attributions = Attributions(folder, Flavor.MARIADB, SETTINGS)
    attributions.begin(at(0))
    there, here = socket.socketpair()
    hearing = Hearing(attributions, ([] if released is None else released).append)
    hearing.add(here)
    attributions.hear = hearing.hear
    with there:
        yield SentSayings(there), attributions, hearing
    hearing.close()
    attributions.close()


def test_a_group_is_not_looked_at_before_what_was_said_is_heard() -> None:
    with spoken() as (sayings, attributions, _):
        sayings.intend(0, 1, [plan("one")])
        sayings.done(0, 1, str(gtid(1)))
        assert attributions.find(0, gtid(1)) == plan("one")


def test_plans_of_a_reply_take_the_place_of_those_intended() -> None:
    with spoken() as (sayings, attributions, _):
        sayings.intend(0, 1, [plan("one")])
        sayings.done(0, 1, str(gtid(1)), [plan("other")])
        sayings.intend(0, 2, [plan("two")])
        sayings.done(0, 2, str(gtid(2)), [plan("two")])
        groups = [(0, gtid(number), True) for number in (1, 2)]
        attributions.read(groups, at(2))
        assert [attributions.find(0, gtid(number)) for number in (1, 2)] == [
            plan("other"),
            plan("two"),
        ]


def test_a_reply_of_which_nothing_is_known_leaves_rows() -> None:
    with spoken() as (sayings, attributions, _):
        sayings.intend(0, 1, [])
        sayings.done(0, 1, None, [])
        sayings.intend(0, 2, [plan("two"), plan("three")])
        sayings.done(0, 2, str(gtid(3)))
        attributions.read([(0, gtid(number), True) for number in (1, 2, 3)], at(3))
        assert isinstance(attributions.find(0, gtid(2)), Unattributed)


def test_a_reply_without_a_gtid_that_can_be_read_ends_nothing() -> None:
    with spoken() as (sayings, attributions, _):
        sayings.intend(0, 1, [plan("one")])
        sayings.done(0, 1, "nonsense")
        sayings.intend(0, 2, [plan("two")])
        sayings.done(0, 2, str(gtid(1)))
        assert attributions.find(0, gtid(1)) == plan("two")


def test_a_saying_larger_than_a_connection_holds() -> None:
    long = "x" * (16 << 20)
    with spoken() as (sayings, attributions, hearing):
        thread = threading.Thread(target=sayings.intend, args=(0, 1, [plan(long)]))
        thread.start()
        while thread.is_alive():
            hearing.hear()
        sayings.done(0, 1, str(gtid(1)))
        assert attributions.find(0, gtid(1)) == plan(long)


def test_lanes_go_back_behind_what_was_said_of_them() -> None:
    released: list[int] = []
    with spoken(released=released) as (sayings, attributions, hearing):
        attributions.taken(3, 17)
        sayings.taken(3, 17, at(0))
        sayings.intend(3, 1, [plan("one")])
        sayings.lost(3)
        sayings.given(3)
        sayings.released(3)
        assert not released
        hearing.hear()
        assert released == [3]
        assert attributions.unended == {3: 17}


def test_what_a_process_said_is_heard_though_it_is_gone() -> None:
    attributions = Attributions(None, Flavor.MARIADB, SETTINGS)
    attributions.begin(at(0))
    there, here = socket.socketpair()
    hearing = Hearing(attributions, lambda _: None)
    hearing.add(here)
    sayings = SentSayings(there)
    sayings.intend(0, 1, [plan("one")])
    sayings.done(0, 1, str(gtid(1)))
    sayings.close()
    hearing.remove(here)
    assert attributions.find(0, gtid(1)) == plan("one")
    attributions.close()


def test_what_was_not_heard_before_a_kill_makes_rows_of_nothing_else(tmp_path: Path) -> None:
    """The first statement made nothing, as nobody heard; the group is the second one's."""
    with spoken(tmp_path / "port") as (sayings, attributions, hearing):
        attributions.taken(0, 17)
        sayings.intend(0, 1, [plan("one")])
        hearing.hear()
        sayings.done(0, 1, None)
        sayings.intend(0, 2, [plan("two")])
        hearing.close()

    again = Attributions(tmp_path / "port", Flavor.MARIADB, SETTINGS)
    again.begin(at(0))
    assert again.unended == {0: 17}
    again.read([(0, gtid(1), True)], at(1))
    again.ended(0, at(1))
    assert again.find(0, gtid(1)) == Unattributed(Reason.FORGOTTEN)
    again.close()
