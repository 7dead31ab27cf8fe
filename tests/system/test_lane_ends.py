"""Lanes of lost sessions are told as ended once the source has nothing of them any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from binlane.capture.settings import SourceSettings
from binlane.client.settings import ServerUrl
from binlane.codec.types import Flavor
from binlane.port.attributions import Attributions
from binlane.port.lane_ends import LaneEnds
from binlane.positions import nothing_done, parse_position
from binlane.service.private_server import PrivateServer
from tests.servers import connect, execute

pytestmark = pytest.mark.system
LANE = 3


@pytest.fixture(params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    found: PrivateServer = request.getfixturevalue(f"{request.param}_server")
    yield found
    execute(found, "DROP USER IF EXISTS lanes@localhost, lanes@'127.0.0.1'")


def flavor_of(server: PrivateServer) -> Flavor:
    ((version,),) = execute(server, "SELECT VERSION()")
    return Flavor.MARIADB if "MariaDB" in version else Flavor.MYSQL


def look(ends: LaneEnds) -> None:
    async def once() -> None:
        await asyncio.wait_for(ends.look(), 20)
        await ends.stop()

    asyncio.run(once())


def test_a_lane_is_free_once_its_thread_is_gone(server: PrivateServer) -> None:
    flavor = flavor_of(server)
    attributions = Attributions(None, flavor)
    attributions.begin(nothing_done(flavor.value))
    ends = LaneEnds(attributions, SourceSettings(url=ServerUrl.parse(server.url)))

    session = connect(server)
    with session.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        ((thread_id,),) = cursor.fetchall()
    attributions.taken(LANE, thread_id)
    attributions.intend(LANE, 1, ())
    attributions.lost(LANE)
    attributions.given(LANE)
    look(ends)
    assert attributions.unended == {LANE: thread_id}
    assert not ends.failure

    session.close()
    deadline_s = time.monotonic() + 20
    while attributions.unended and time.monotonic() < deadline_s:
        look(ends)
    assert not attributions.unended
    variable = "gtid_binlog_pos" if flavor is Flavor.MARIADB else "gtid_executed"
    ((logged,),) = execute(server, f"SELECT @@GLOBAL.{variable}")
    attributions.read((), parse_position(logged, flavor.value))
    assert attributions.is_clear(LANE)


def test_an_account_that_may_not_see_threads_tells_nothing(server: PrivateServer) -> None:
    execute(server, "CREATE USER lanes@'127.0.0.1'")
    flavor = flavor_of(server)
    attributions = Attributions(None, flavor)
    attributions.taken(LANE, 4_000_000_000)
    attributions.lost(LANE)
    url = ServerUrl.parse(f"{flavor.value}://lanes@{server.host}:{server.port}")
    ends = LaneEnds(attributions, SourceSettings(url=url))
    look(ends)
    assert ends.failure
    assert attributions.unended


def test_a_source_that_is_gone_is_told_of() -> None:
    attributions = Attributions(None, Flavor.MARIADB)
    attributions.taken(LANE, 7)
    attributions.lost(LANE)
    url = ServerUrl.parse("mariadb://lanes@127.0.0.1:1")
    ends = LaneEnds(attributions, SourceSettings(url=url, timeout_s=1))
    look(ends)
    assert ends.failure
    assert attributions.unended
