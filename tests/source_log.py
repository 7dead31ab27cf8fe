"""A server's log in a form in which two servers' logs are compared byte by byte, texts and context.

Left out is what no two runs share: times, positions, who committed together, ids of tables and threads. Threads
and tables are numbered by when they come first. Groups of binlane's own tables are left out too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from binlane.binlogs.store.stored_groups import read_groups
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.body import Body
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.status_vars import decode_status_vars, encode_status_vars
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import EventType, GtidFlag
from binlane.log.grouping.event_group import EventGroup
from tests.live_oracle import source_files
from tests.servers import execute

_OWN: Final = "binlane"
_OF_A_RUN: Final = frozenset({"XID", "DDL_LOGGED_WITH_XID", "HRNOW", "MICROSECONDS"})
"""Status variables that tell a time or the number of a transaction."""


class LoggedEvent(NamedTuple):
    """What is compared of an event."""

    type: str
    server_id: int
    flags: int
    body: Body


class SourceLog:
    """The log of a server from a moment on.

    Attributes:
        server: The server.
    """

    def __init__(self, server: PrivateServer) -> None:
        """Let it begin in a file of its own."""
        self.server = server
        execute(server, "FLUSH BINARY LOGS")
        self._skipped = len(source_files(server)) - 1

    def events(self, but_for: GtidFlag) -> list[LoggedEvent]:
        """All that was logged since, but for what is binlane's own and these flags of GTID events."""
        numbers = _Numbers(but_for | GtidFlag.GROUP_COMMIT_ID)
        paths = map(Path, source_files(self.server)[self._skipped :])
        return [
            event
            for group in read_groups(list(paths))
            if group.gtid is not None and not _is_own(group)
            for event in numbers.of_group(group)
        ]


def _is_own(group: EventGroup) -> bool:
    """Whether a group changes tables of binlane alone."""
    maps = [event.body for event in group.events if isinstance(event.body, TableMapEvent)]
    return bool(maps) and all(one.database == _OWN for one in maps)


@dataclass(slots=True)
class _Numbers:
    """Numbers things by when they come first."""

    masked: GtidFlag
    groups: int = 0
    threads: dict[int, int] = field(default_factory=dict)

    def of_group(self, group: EventGroup) -> Iterator[LoggedEvent]:
        """The events of the next group."""
        self.groups += 1
        tables: dict[int, int] = {}
        for event in group.events:
            header = event.header
            if header.type_code in (EventType.ROTATE, EventType.STOP):
                continue
            body = self._body(event.body, tables)
            yield LoggedEvent(header.type_name, header.server_id, header.flags, body)

    def _body(self, body: Any, tables: dict[int, int]) -> Body:
        if isinstance(body, GtidEvent):
            thread_id = None if body.thread_id is None else self._thread(body.thread_id)
            flags = body.flags & ~self.masked
            return replace(
                body, sequence=self.groups, commit_id=None, flags=flags, thread_id=thread_id
            )
        if isinstance(body, MysqlGtidEvent):
            return replace(
                body,
                source_id="",
                sequence=self.groups,
                last_committed=0,
                sequence_number=0,
                immediate_commit_timestamp=0,
                transaction_length=0,
            )
        if isinstance(body, QueryEvent):
            return replace(
                body,
                thread_id=self._thread(body.thread_id),
                execution_time=0,
                status_vars=_context(body.status_vars),
            )
        if isinstance(body, XidEvent):
            return replace(body, xid=0)
        if isinstance(body, TableMapEvent | RowsEvent):
            return replace(body, table_id=tables.setdefault(body.table_id, len(tables)))
        found: Body = body
        return found

    def _thread(self, thread_id: int) -> int:
        return self.threads.setdefault(thread_id, len(self.threads))


def _context(status_vars: bytes) -> bytes:
    variables: Iterable[Any] = decode_status_vars(status_vars)
    return encode_status_vars([one for one in variables if one.name not in _OF_A_RUN])
