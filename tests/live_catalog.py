"""A live catalog of a real server in tests: how it is asked, followed, and compared with a new one."""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

from binlane.client.needed_objects import Question, Topic
from binlane.client.settings import ServerUrl
from binlane.live.capture.capture import Capture
from binlane.live.capture.settings import SourceSettings, StartAt
from binlane.live.port.catalog_connections import CatalogConnections
from binlane.live.port.live_catalog import LiveCatalog, changes_in
from binlane.live.provision.private_server import PrivateServer
from binlane.names import TableName
from binlane.positions import Position, parse_position
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.object_store import ObjectStore
from binlane.statements.sql.reading import read
from tests.servers import execute

WAIT_S: Final = 60.0
_SERVER_ID: Final = 4790


def settings_of(server: PrivateServer, *, user: str = "root", password: str = "") -> SourceSettings:
    url = ServerUrl.parse(server.url.replace("root@", f"{user}@"))
    return SourceSettings(url=url, password=password)


@asynccontextmanager
async def live(settings: SourceSettings, **options: Any) -> AsyncIterator[LiveCatalog]:
    """A catalog that is started."""
    catalog = LiveCatalog(CatalogConnections(settings), **options)
    await catalog.start()
    try:
        yield catalog
    finally:
        await catalog.stop()


def facts_of(catalog: LiveCatalog, statement: str, database: str = "") -> StatementFacts:
    """What a statement says to the server."""
    return read(statement, database=database, dialect=catalog.dialect)


async def fetch(catalog: LiveCatalog, statement: str, database: str = "") -> StatementFacts:
    """Have all that a statement uses."""
    facts = facts_of(catalog, statement, database)
    async with asyncio.timeout(WAIT_S):
        while not catalog.covers(facts, database):
            await catalog.fetch(facts, database)
    return facts


def everything(databases: Iterable[str], names: Iterable[str]) -> list[Question]:
    """Whether there are such objects, and what they are."""
    names = tuple(names)
    return [
        Question(topic, TableName(database, name))
        for database in databases
        for name in names
        for topic in (Topic.TABLE, Topic.FUNCTION, Topic.PROCEDURE)
    ]


async def all_of(catalog: LiveCatalog, questions: Iterable[Question]) -> ObjectStore:
    """The objects of a catalog that has asked all of that."""
    asked = tuple(questions)
    async with asyncio.timeout(WAIT_S):
        await catalog.fetch_objects(asked)
    return catalog.catalog().store


class Told:
    """What a catalog was told of a server's log.

    Attributes:
        position: Up to here; None before the source has said where it is.
    """

    def __init__(self) -> None:
        self.position: Position | None = None


@contextmanager
def following(server: PrivateServer, catalog: LiveCatalog, spill: Path) -> Iterator[Told]:
    """The server's log is told to a catalog from here on, as the service does."""
    capture = Capture(settings_of(server), StartAt.NOW, spill=spill, server_id=_SERVER_ID)
    capture.connect()
    ended, told = threading.Event(), Told()
    thread = threading.Thread(target=_follow, args=(capture, catalog, told, ended))
    thread.start()
    try:
        deadline_s = time.monotonic() + WAIT_S
        while told.position is None:
            assert time.monotonic() < deadline_s, "the source did not say where it is"
            time.sleep(0.01)
        yield told
    finally:
        ended.set()
        thread.join(WAIT_S)
        capture.close()


def _follow(capture: Capture, catalog: LiveCatalog, told: Told, ended: threading.Event) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(capture, selectors.EVENT_READ)
        while not ended.is_set():
            selector.select(0.05)
            for item in capture.receive():
                catalog.logged(changes_in(item))
            # The capture's position is ahead of what is told while an item is read.
            told.position = capture.position


async def caught_up(server: PrivateServer, told: Told) -> None:
    """All that the server logged so far was told."""
    is_mysql = server.url.startswith("mysql:")
    variable = "gtid_executed" if is_mysql else "gtid_binlog_pos"
    ((text,),) = execute(server, f"SELECT @@global.{variable}")
    end = parse_position(text, "mysql" if is_mysql else "mariadb")
    async with asyncio.timeout(WAIT_S):
        while told.position is None or not told.position.includes(end):  # noqa: ASYNC110  # a thread's
            await asyncio.sleep(0.01)
    # What was told waits for the loop.
    await asyncio.sleep(0.05)
