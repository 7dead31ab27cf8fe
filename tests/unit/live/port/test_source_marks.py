"""Marks are made for sessions that were there while the connection was open that makes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from binlane.client.settings import ServerUrl
from binlane.errors import PeerError, StatementError
from binlane.live.capture.settings import SourceSettings
from binlane.live.port import source_marks
from binlane.live.port.source_marks import Marker
from binlane.log.codec.types import Flavor

THREAD = 17
MARKING = (
    "INSERT INTO binlane.marks (id, thread, number) VALUES (1, 17, 1)"
    " ON DUPLICATE KEY UPDATE thread = 17, number = number + 1"
)


class Source:
    """A source: takes down what its connections are asked, and may be started anew.

    Attributes:
        asked: The statements.
        runs: How often it was started.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.runs = 1

    def session(self, *_: object, **__: object) -> Session:
        return Session(self)


class Session:
    """A connection; it ends with the run of the source that it was made to."""

    def __init__(self, source: Source) -> None:
        self._source, self._run = source, source.runs

    def ask(self, statement: str) -> tuple[tuple[str | None, ...], ...]:
        if self._run != self._source.runs:
            raise PeerError("the server closed the connection", peer="source", phase="read")
        self._source.asked.append(statement)
        return (("0-1-7",),)

    def close(self) -> None:
        """Nothing."""


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    found = Source()
    monkeypatch.setattr(source_marks, "ServerSession", found.session)
    return found


def run(work: Callable[[Marker], object]) -> None:
    settings = SourceSettings(url=ServerUrl.parse("mariadb://binlane@127.0.0.1"))
    marker = Marker(settings, Flavor.MARIADB)
    work(marker)
    marker.close()


def mark(marker: Marker, there_s: float) -> str:
    return asyncio.run(marker.mark(THREAD, there_s))


def test_a_session_that_was_there_is_marked(source: Source) -> None:
    def work(marker: Marker) -> None:
        asyncio.run(marker.open())
        there_s = time.monotonic()
        for _ in range(2):
            assert mark(marker, there_s) == "0-1-7"

    run(work)
    assert source.asked.count(MARKING) == 2


def test_nothing_is_marked_for_sessions_of_an_earlier_run(source: Source) -> None:
    def work(marker: Marker) -> None:
        asyncio.run(marker.open())
        there_s = time.monotonic()
        source.runs += 1
        with pytest.raises(StatementError, match="closed the connection"):
            mark(marker, there_s)
        for _ in range(2):
            with pytest.raises(StatementError, match="started anew"):
                mark(marker, there_s)
        assert MARKING not in source.asked
        assert mark(marker, time.monotonic())

    run(work)


def test_a_connection_that_is_gone_is_made_anew_before_a_session_comes(source: Source) -> None:
    def work(marker: Marker) -> None:
        asyncio.run(marker.open())
        source.runs += 1
        # The source was started anew before the session was there: it may be marked.
        asyncio.run(marker.open())
        assert mark(marker, time.monotonic()) == "0-1-7"

    run(work)
    assert source.asked.count(MARKING) == 1


def test_a_source_that_is_not_there_is_told_of_by_who_marks(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> Session:
        raise PeerError("refused", peer="source", phase="connect")

    def work(marker: Marker) -> None:
        monkeypatch.setattr(source_marks, "ServerSession", refuse)
        asyncio.run(marker.open())
        with pytest.raises(StatementError, match="was not marked: refused"):
            mark(marker, time.monotonic())
        with pytest.raises(StatementError, match="was not asked for its GTIDs: refused"):
            asyncio.run(marker.executed())

    run(work)
    assert not source.asked


def test_what_a_mysql_executed_is_asked_on_the_same_connection(source: Source) -> None:
    def work(marker: Marker) -> None:
        assert asyncio.run(marker.executed()) == "0-1-7"
        mark(marker, time.monotonic())
        assert asyncio.run(marker.executed()) == "0-1-7"

    run(work)
    executed = "SELECT @@GLOBAL.gtid_executed"
    assert [one for one in source.asked if one in (executed, MARKING)] == [
        *(executed, MARKING),
        executed,
    ]
    assert len([one for one in source.asked if one.startswith("SET SESSION")]) == 1
