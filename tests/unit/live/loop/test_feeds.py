"""A feed connects, gives groups to its binlogs, and says why it cannot."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.client.settings import ServerUrl
from binlane.errors import PeerError
from binlane.live.capture.settings import SourceSettings, StartAt
from binlane.live.loop.feeds import Feed, FeedSharing, FeedSource
from binlane.live.loop.outputs import Output
from binlane.log.kernels.load import is_compiled
from binlane.positions import GtidPosition
from tests.fake_log import FakeServer
from tests.groups import source_format
from tests.routed_files import definitions, written
from tests.unit.live.service.test_runs import never

pytestmark = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)
_REFUSED = PeerError("Access denied", peer="source", phase="log in", errno=1045)


@pytest.fixture
def server(tmp_path: Path) -> FakeServer:
    return FakeServer(written("md1011_txn", tmp_path / "in"))


@pytest.fixture
def output(tmp_path: Path) -> Iterator[Output]:
    with Store.open(tmp_path / "data", StoreSettings()) as store:
        (definition,) = definitions("LOG ALL")
        store.create_binlog(
            definition,
            start=GtidPosition(),
            format_description=source_format(),
            server_id=1,
            timestamp=0,
        )
        yield Output(LiveBinlog(store.binlogs["b1"]))


class Connected:
    """A feed, and the end of its attempts to connect."""

    def __init__(self, server: FakeServer, output: Output, spill: Path) -> None:
        self.woken = threading.Event()
        source = FeedSource(
            settings=SourceSettings(url=ServerUrl.parse("mariadb://u@nowhere")),
            server_id=7,
            spill=spill,
            open_log=server.open,
        )
        sharing = FeedSharing(wake=self.woken.set, is_ending=lambda: False)
        self.feed = Feed("main", source, GtidPosition(), sharing)
        self.feed.outputs.append(output)

    def connect(self) -> Exception | None:
        self.feed.connect()
        assert self.feed.is_connecting
        assert self.woken.wait(10)
        self.woken.clear()
        return self.feed.finish_connecting()


@pytest.fixture
def connected(server: FakeServer, output: Output, tmp_path: Path) -> Iterator[Connected]:
    made = Connected(server, output, tmp_path / "spill")
    yield made
    made.feed.end()


def test_groups_go_into_its_binlogs(
    server: FakeServer, connected: Connected, output: Output
) -> None:
    feed = connected.feed
    assert feed.heard_s is None
    server.give(3)
    assert connected.connect() is None
    assert feed.is_streaming
    assert not feed.gives
    feed.read(never)
    assert feed.gives
    assert feed.position == output.binlog.reached == server.position
    feed.read(never)
    assert feed.is_quiet
    assert feed.is_level
    server.give()
    feed.read(never)
    assert output.binlog.reached == server.position
    assert output.counts.event_groups > 3
    assert feed.look_at_s > time.monotonic()


def test_a_source_that_is_away_is_tried_again_sooner_than_one_that_refuses(
    server: FakeServer, connected: Connected
) -> None:
    feed = connected.feed
    server.refusals = [ConnectionRefusedError("nobody"), _REFUSED]
    away = connected.connect()
    assert away is not None
    feed.fail(away)
    assert feed.failure is not None
    assert not feed.failure.is_refusal
    assert not feed.refusal
    assert feed.due_s - time.monotonic() <= 0.1
    refused = connected.connect()
    assert refused is _REFUSED
    feed.fail(refused)
    assert "Access denied" in feed.refusal
    assert feed.due_s - time.monotonic() > 0.1
    assert connected.connect() is None
    assert feed.failure is None
    assert feed.last_failure is not None


def test_it_goes_on_where_it_was_lost(
    server: FakeServer, connected: Connected, output: Output
) -> None:
    feed = connected.feed
    server.give(4)
    connected.connect()
    feed.read(never)
    reached = server.position
    server.give(1)
    server.cut(TimeoutError("lost"))
    with pytest.raises(TimeoutError):
        feed.read(never)
    assert output.binlog.reached == server.position
    feed.fail(TimeoutError("lost"))
    assert not feed.is_streaming
    connected.connect()
    assert server.starts == [GtidPosition(), server.position]
    assert reached != server.position


def test_it_begins_elsewhere_when_it_is_told_to(server: FakeServer, connected: Connected) -> None:
    server.give(2)
    connected.connect()
    connected.feed.close()
    connected.feed.restart_at(StartAt.NOW)
    assert connected.feed.position is None
    connected.connect()
    assert server.starts[-1] is StartAt.NOW
    assert connected.feed.position == server.position
