"""The statements of a log as a planner tells of them: by facts, without reading the log again."""

from __future__ import annotations

from dataclasses import dataclass

from binlane.codec.query import QueryEvent
from binlane.ranges.facts import LoggedQuery
from binlane.sql.logged_statements import LoggedStatement, logged_statement


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedStatement:
    """A statement and where its event group stands.

    Attributes:
        statement: It.
        file: Base name of the file.
        start: Where its event group begins.
        stop: Where that ends.
        gtid: Of the group as text; empty if it has none.
        timestamp: When it ran, in seconds since 1970.
    """

    statement: LoggedStatement
    file: str
    start: int
    stop: int
    gtid: str
    timestamp: int


def placed_statement(query: LoggedQuery, file: str) -> PlacedStatement:
    """A noted statement.

    Raises:
        CodecError: If its status variables are damaged.
    """
    assert isinstance(query.event.body, QueryEvent), "nothing else is noted"
    return PlacedStatement(
        statement=logged_statement(query.event.body),
        file=file,
        start=query.start,
        stop=query.stop,
        gtid=query.gtid,
        timestamp=query.event.header.timestamp,
    )
