"""Lanes: how they are told by, and who gets one."""

from __future__ import annotations

import asyncio

import pytest

from binlane.codec.types import Flavor
from binlane.errors import StatementError
from binlane.gateway.judge import Reply
from binlane.port.lanes import ALL_TAKEN, LANES_MAX, Lane, LanePool, Lanes
from binlane.positions import Gtid, MysqlGtid

UUID = "0a1b2c3d-0000-0000-0000-000000000001"
MARIADB = Lanes(Flavor.MARIADB, server_id=3)
MYSQL = Lanes(Flavor.MYSQL, server_id=3)


class _Session:
    """A session on a source that refuses, or does not.

    Attributes:
        asked: What it was to run.
        thread_id: Of it.
    """

    thread_id = 7

    def __init__(self, error: StatementError | None = None, errno: int = 0) -> None:
        self.asked: list[str] = []
        self._error = error
        self._errno = errno

    async def run_at_source(self, statement: str) -> Reply:
        self.asked.append(statement)
        if self._error is not None:
            raise self._error
        return Reply(errno=self._errno)


def test_a_lane_is_a_server_id_of_mariadb() -> None:
    assert MARIADB.lane(7) == Lane(7, server_id=0x7B000307)
    assert MARIADB.number_of(Gtid(0, 0x7B000307, 5)) == 7
    assert MARIADB.number_of(Gtid(0, 3, 5)) is None
    # Of another server.
    assert MARIADB.number_of(Gtid(0, 0x7B000407, 5)) is None
    assert MARIADB.number_of_server_id(0x7B000300) == 0
    assert MARIADB.number_of_server_id(0x7B000400) is None


def test_a_lane_is_a_tag_of_mysql() -> None:
    assert MYSQL.lane(7) == Lane(7, tag="binlane_7")
    assert MYSQL.number_of(MysqlGtid(UUID, 5, "binlane_255")) == 255
    for tag in ("", "binlane_256", "binlane_07", "binlane_", "binlane_x", "lane_7", "7"):
        assert MYSQL.number_of(MysqlGtid(UUID, 5, tag)) is None
    assert MYSQL.number_of_server_id(0x7B000300) is None


@pytest.mark.parametrize("server_id", [1, 0xFFFF, 0x10000, 2**32 - 1])
def test_lanes_of_every_server_are_server_ids(server_id: int) -> None:
    lanes = Lanes(Flavor.MARIADB, server_id)
    last = lanes.lane(LANES_MAX - 1).server_id
    assert 0x7B000000 <= lanes.first_server_id < last <= 0x7BFFFFFF


def test_low_lanes_are_used_again() -> None:
    pool = LanePool(MARIADB, lambda _: True, range(3))
    taken = [pool.acquire() for _ in range(4)]
    assert [lane and lane.number for lane in taken] == [0, 1, 2, None]
    assert pool.refused == {ALL_TAKEN: 1}
    for lane in (taken[2], taken[0]):
        assert lane is not None
        pool.release(lane)
    assert pool.acquire() == taken[0]


def test_a_lane_waits_until_all_of_it_is_attributed() -> None:
    clear: set[int] = set()
    pool = LanePool(MARIADB, clear.__contains__, range(2))
    assert pool.acquire() is None
    clear.add(1)
    assert pool.acquire() == MARIADB.lane(1)
    assert pool.acquire() is None
    clear.add(0)
    assert pool.acquire() == MARIADB.lane(0)


def test_a_lane_is_entered() -> None:
    pool, session = LanePool(MARIADB, lambda _: True), _Session()
    assert asyncio.run(pool.enter(session)) == MARIADB.lane(0)
    assert session.asked == ["CALL binlane.lane(0)"]


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        (_Session(StatementError("no", errno=1370)), "its account may not call binlane.lane"),
        (_Session(errno=1305), "the source has no procedure binlane.lane"),
        (_Session(errno=1041), "binlane.lane failed with error 1041"),
    ],
)
def test_a_source_that_refuses_keeps_its_lane(session: _Session, reason: str) -> None:
    pool = LanePool(MARIADB, lambda _: True, range(1))
    assert asyncio.run(pool.enter(session)) is None
    assert pool.refused == {reason: 1}
    assert pool.acquire() == MARIADB.lane(0)
