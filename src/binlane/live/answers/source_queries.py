"""Questions that a client's session asks the source for the port's own answers."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from binlane.binlogs.store.catalog import BinlogActivity
from binlane.live.answers.source_links import (
    Query,
    Rows,
)
from binlane.live.gateway.handler import HandlerSession
from binlane.live.loop.binlog_changes import COMPLETE_TIMEOUT_S, incomplete
from binlane.live.loop.binlogs import Binlogs
from binlane.log.codec.format import flavor_of
from binlane.log.codec.types import Flavor
from binlane.positions import GtidPosition, GtidSet, parse_position

_DONE: Final = MappingProxyType({Flavor.MARIADB: "gtid_binlog_pos", Flavor.MYSQL: "gtid_executed"})


def query_of(session: HandlerSession) -> Query:
    """Give a function that asks the source in a client's session."""

    async def query(statement: str) -> Rows:
        return (await session.query_source(statement)).texts()

    return query


async def ignores_case(session: HandlerSession) -> bool:
    """True if the source takes names that differ in case alone for one."""
    found = await session.query_source("SELECT @@GLOBAL.lower_case_table_names LIMIT 1")
    return found.texts()[0][0] != "0"


async def source_position(session: HandlerSession) -> GtidPosition | GtidSet:
    """The position up to which the source has done everything."""
    flavor = flavor_of(session.server_version)
    found = await session.query_source(f"SELECT @@GLOBAL.{_DONE[flavor]} LIMIT 1")
    return parse_position(found.texts()[0][0] or "", flavor.value)


async def wait_until_complete(
    binlogs: Binlogs,
    session: HandlerSession,
    name: str,
    *,
    shown_behind: frozenset[BinlogActivity] = frozenset(),
) -> None:
    """Wait until the binlog holds all that the source has done by now.

    A position that was read after FLUSH TABLES WITH READ LOCK then overlaps nothing.

    Args:
        binlogs: All binlogs of the store.
        session: The client session that asks.
        name: Name of the binlog to wait for.
        shown_behind: States in which it is shown as it stands.

    Raises:
        StatementError: If it takes too long.
    """
    position = await source_position(session)

    def is_shown() -> bool:
        return binlogs.output(name).state.activity in shown_behind

    if is_shown() or await binlogs.wait_until_complete(
        name, position, timeout_s=COMPLETE_TIMEOUT_S
    ):
        return
    if not is_shown():
        raise incomplete(binlogs.output(name), position)
