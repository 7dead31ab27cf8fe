"""Marks are made for sessions that were there while the connection was open that makes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from binlane.capture.settings import SourceSettings
from binlane.client.settings import ServerUrl
from binlane.codec.types import Flavor
from binlane.errors import PeerError, StatementError
from binlane.port import marks
from binlane.port.lanes import Lane
from binlane.port.marks import Marker

LANE = Lane(3, server_id=2063597827)


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
        return (("0-2063597827-7",),)

    def close(self) -> None:
        """Nothing."""


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    found = Source()
    monkeypatch.setattr(marks, "ServerSession", found.session)
    return found


def run(work: Callable[[Marker], object]) -> None:
    settings = SourceSettings(url=ServerUrl.parse("mariadb://binlane@127.0.0.1"))
    marker = Marker(settings, Flavor.MARIADB)
    work(marker)
    marker.close()


def mark(marker: Marker, there_s: float) -> str:
    return asyncio.run(marker.mark(LANE, there_s))


def test_a_session_that_was_there_is_marked(source: Source) -> None:
    def work(marker: Marker) -> None:
        asyncio.run(marker.open())
        there_s = time.monotonic()
        for _ in range(2):
            assert mark(marker, there_s) == "0-2063597827-7"

    run(work)
    assert source.asked.count("CALL binlane.mark()") == 2


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
        assert "CALL binlane.mark()" not in source.asked
        assert mark(marker, time.monotonic())

    run(work)
