"""The session's state after an event that `TextLines` has printed, for the text kernel.

The kernel prints a GTID or a statement by itself if it needs no SET but the one of its own number
or time: if its context is that of the one before, which is kept here.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from binlane.binlogs.cat.fast_text.layouts import Layouts
from binlane.binlogs.cat.text.session_text import is_of_transaction
from binlane.log.codec.control import (
    BinlogCheckpointEvent,
    FormatDescriptionEvent,
    RotateEvent,
    StopEvent,
)
from binlane.log.codec.event import Event
from binlane.log.codec.mysql_transaction import MysqlGtidEvent, PreviousGtidsEvent
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent, RowsQueryEvent
from binlane.log.codec.status_vars import decode_status_vars, encode_status_vars
from binlane.log.codec.transaction import GtidEvent, GtidListEvent, XidEvent
from binlane.log.codec.types import GtidFlag, HeaderFlag
from binlane.log.codec.variables import IntvarEvent, RandEvent, UserVarEvent
from binlane.log.kernels import text_layout as lay

Longs = npt.NDArray[np.int64]

_HARMLESS: Final = (
    FormatDescriptionEvent,
    RotateEvent,
    StopEvent,
    BinlogCheckpointEvent,
    GtidListEvent,
    XidEvent,
    MysqlGtidEvent,
    PreviousGtidsEvent,
    RowsQueryEvent,
    TransactionPayloadEvent,
    IntvarEvent,
    RandEvent,
    UserVarEvent,
)
# Variables that are set when they change, and only then.
_PLAIN: Final = frozenset(
    {
        "FLAGS2",
        "SQL_MODE",
        "CATALOG",
        "CATALOG_NZ",
        "AUTO_INCREMENT",
        "CHARSET",
        "TIME_ZONE",
        "LC_TIME_NAMES",
        "CHARSET_DATABASE",
        "TABLE_MAP_FOR_UPDATE",
        "MASTER_DATA_WRITTEN",
        "INVOKER",
        "UPDATED_DB_NAMES",
        "DEFAULT_COLLATION_FOR_UTF8MB4",
    }
)
# Variables of one statement alone: MySQL's microseconds, MariaDB's and its XID.
_MYSQL_OWN: Final = 13
_OWN: Final = frozenset({_MYSQL_OWN, 128, 129})


class SessionContext:
    """Gives the kernel the state of the printed session.

    Args:
        state: State array of the kernel.
        layouts: Layouts that keep the texts which the kernel compares.
    """

    def __init__(self, state: Longs, layouts: Layouts) -> None:
        self._state = state
        self._layouts = layouts
        self._query: _Query | None = None

    def forget(self) -> None:
        """Forget the session, as at the beginning of a file."""
        self._query = None
        self._state[[lay.KNOWS_GTID, lay.KNOWS_QUERY, lay.SKIPS_REPLICATION]] = 0

    def restore(self) -> None:
        """Give the layouts their texts again, after they have forgotten them."""
        zones = (lay.MOMENT, lay.OTHER_MOMENT)
        self._state[[lay.STAMP, *(zone + lay.MOMENT_UNTIL for zone in zones)]] = -1
        query, self._query = self._query, None
        if query is not None:
            self._set_query(query)

    def feed(self, event: Event) -> None:
        """Take an event that `TextLines` has printed."""
        state, body = self._state, event.body
        if not state[lay.IS_MYSQL]:
            skips = bool(event.header.flags & HeaderFlag.SKIP_REPLICATION)
            state[lay.SKIPS_REPLICATION] = int(skips)
        if isinstance(body, GtidEvent):
            state[lay.KNOWS_GTID] = 1
            state[lay.DOMAIN] = body.domain_id
            state[lay.SERVER] = event.header.server_id
            state[lay.PARALLEL] = body.flags & GtidFlag.ALLOW_PARALLEL
        elif isinstance(body, QueryEvent):
            self._feed_query(event, body)
        elif not isinstance(body, _HARMLESS):
            self._forget_query()

    def _feed_query(self, event: Event, body: QueryEvent) -> None:
        variables = _context(body)
        flags = event.header.flags
        if variables is None or flags & HeaderFlag.THREAD_SPECIFIC:
            self._forget_query()
        elif not flags & HeaderFlag.SUPPRESS_USE:
            self._set_query(_Query(body.database, *variables))
        elif not is_of_transaction(body.query):
            self._forget_query()
        else:
            # The statement's database does not count.
            database = None if self._query is None else self._query.database
            self._set_query(_Query(database, *variables))

    def _forget_query(self) -> None:
        self._query = None
        self._state[lay.KNOWS_QUERY] = 0

    def _set_query(self, query: _Query) -> None:
        state = self._state
        state[lay.KNOWS_QUERY] = 1
        if query == self._query:
            return
        start, length = self._layouts.add_text(query.database or b"")
        state[lay.QUERY_DATABASE] = start
        # No database has this length.
        state[lay.QUERY_DATABASE_LENGTH] = length if query.database is not None else -1
        start, length = self._layouts.add_text(query.before + query.behind)
        state[lay.QUERY_VARIABLES], state[lay.QUERY_VARIABLES_LENGTH] = start, length
        state[lay.QUERY_GAP] = len(query.before)
        self._query = query


class _Query(NamedTuple):
    """The session's state at a statement.

    Attributes:
        database: The default database; None where it is not known.
        before: Status variables before those of the statement alone.
        behind: Status variables behind those of the statement alone.
    """

    database: bytes | None
    before: bytes
    behind: bytes


def _context(body: QueryEvent) -> tuple[bytes, bytes] | None:
    """Return the status variables before and behind the kernel's own; None for any others."""
    variables = decode_status_vars(body.status_vars)
    if not _PLAIN.issuperset(variable.name for variable in variables if variable.code not in _OWN):
        return None
    own = [number for number, variable in enumerate(variables) if variable.code in _OWN]
    # If there is no own variable, MySQL would write one behind those of lower codes, MariaDB behind
    # all.
    first = next(
        (number for number, variable in enumerate(variables) if variable.code >= _MYSQL_OWN),
        len(variables),
    )
    if own:
        first = own[0]
        if own != list(range(first, first + len(own))):
            return None
    before = encode_status_vars(variables[:first])
    return before, encode_status_vars(variables[first + len(own) :])
