"""Event groups that stand around the rows of tables: they make the tables, and tell what is done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from binlane.binlogs.routing.judging import judge_statement
from binlane.binlogs.routing.outside_references import without_outside_keys
from binlane.binlogs.routing.query_events import with_text
from binlane.binlogs.routing.routed_group import RoutedGroup
from binlane.binlogs.routing.routing_memory import NOTHING
from binlane.binlogs.routing.statement_verdicts import Keep
from binlane.binlogs.seeds.seed_groups import stated
from binlane.log.codec.body import Body
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import LOGICAL_TIMESTAMPS, MysqlGtidEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType, GtidFlag
from binlane.positions import AnyGtid, Gtid, GtidPosition, MysqlGtid, Position
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.logged_statements import logged_statement

_GTID_PADDING: Final = bytes(6)
_MICROSECONDS: Final = 1_000_000
_CREATE_DATABASE: Final = re.compile(r"\s*CREATE\s+DATABASE\s+(?!IF\b|/\*!32312)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMaker:
    """Makes event groups of one log.

    Attributes:
        format: The format of the log's events.
        server_id: The server id in the headers.
        timestamp: The time in the headers, in seconds since 1970.
    """

    format: Format
    server_id: int
    timestamp: int

    def statement(self, gtid: AnyGtid, text: str, *, database: str = "") -> RoutedGroup:
        """A statement that makes something.

        Args:
            gtid: The GTID of the group.
            text: The statement; foreign keys are not checked while it runs.
            database: The default database of the statement.
        """
        return self.group(gtid, self.query(text, database))

    def group(self, gtid: AnyGtid, query: QueryEvent) -> RoutedGroup:
        """The group of a statement that makes something."""
        first = self._first(gtid, GtidFlag.STANDALONE | GtidFlag.DDL)
        event = self._event(query, EventType.QUERY, self.server_id)
        return RoutedGroup(gtid=gtid, events=(first, event), is_alone=True)

    def nothing(self, gtid: Gtid) -> RoutedGroup:
        """An empty transaction of a MariaDB, which says that its GTID is done."""
        first = self._first(gtid, GtidFlag.TRANSACTIONAL)
        commit = self._event(self.query("COMMIT", ""), EventType.QUERY, self.server_id)
        return RoutedGroup(gtid=gtid, events=(first, commit), is_alone=True)

    def _first(self, gtid: AnyGtid, flags: int) -> Event:
        if isinstance(gtid, MysqlGtid):
            return self._event(self._mysql_gtid(gtid), EventType.GTID_LOG, self.server_id)
        body = GtidEvent(
            sequence=gtid.sequence, domain_id=gtid.domain_id, flags=flags, padding=_GTID_PADDING
        )
        # The header's server id is a part of the GTID.
        return self._event(body, EventType.GTID, gtid.server_id)

    def _mysql_gtid(self, gtid: MysqlGtid) -> MysqlGtidEvent:
        return MysqlGtidEvent(
            flags=1,
            source_id=gtid.source_id,
            sequence=gtid.sequence,
            timestamp_type=LOGICAL_TIMESTAMPS,
            last_committed=0,
            sequence_number=0,
            immediate_commit_timestamp=self.timestamp * _MICROSECONDS,
            transaction_length=0,
            immediate_server_version=_version_number(self.format.server_version),
        )

    def query(self, text: str, database: str) -> QueryEvent:
        """A statement's event; neither foreign nor unique keys are checked while it runs."""
        return stated(text, database, self.format.flavor)

    def _event(self, body: Body, type_code: EventType, server_id: int) -> Event:
        header = EventHeader(
            timestamp=self.timestamp,
            type_code=type_code,
            server_id=server_id,
            length=0,
            next_position=0,
            flags=0,
        )
        return Event(header, body)


def database_texts(databases: Mapping[str, str]) -> Iterator[str]:
    """The statements that make databases where they are not there, of their SHOW CREATE DATABASE."""
    for text in databases.values():
        yield _CREATE_DATABASE.sub("CREATE DATABASE IF NOT EXISTS ", text, count=1)


class StatedTable(NamedTuple):
    """A CREATE TABLE as it stands in a binlog.

    Attributes:
        query: The event of the statement.
        left_keys: Names, in small letters, of foreign keys that it is without: their parents are
            outside of the scope.
    """

    query: QueryEvent
    left_keys: frozenset[str]


def stated_table(query: QueryEvent, scope: Scope) -> StatedTable:
    """Give a CREATE TABLE the form that routing gives such statements of the source."""
    found = judge_statement(logged_statement(query), scope, NOTHING)
    child = without_outside_keys(query, found, scope, NOTHING)
    if child is not None:
        return StatedTable(child.query, child.left_keys)
    if isinstance(found.verdict, Keep):
        return StatedTable(with_text(query, found.text), frozenset())
    return StatedTable(query, frozenset())


def done_gtids(place: Position) -> tuple[Gtid, ...]:
    """The GTIDs by which empty transactions tell a replica that it has a place; none for a MySQL."""
    return place.gtids if isinstance(place, GtidPosition) else ()


def _version_number(text: str) -> int:
    """80036 of `8.0.36-log`."""
    parts = [int(part) for part in re.findall(r"\d+", text)[:3]]
    major, minor, patch = (*parts, 0, 0, 0)[:3]
    return major * 10_000 + minor * 100 + patch
