"""What the session knows after an event that `TextLines` has printed, for the text kernel.

The kernel prints a GTID or a statement by itself if it needs no SET but the one of its own number
or time: if its context is that of the one before, which is kept here.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.cat.fast_text.layouts import Layouts
from binlane.cat.text.session import is_of_transaction
from binlane.codec.control import (
    BinlogCheckpointEvent,
    FormatDescriptionEvent,
    RotateEvent,
    StopEvent,
)
from binlane.codec.event import Event
from binlane.codec.query import QueryEvent
from binlane.codec.status_vars import decode_status_vars
from binlane.codec.transaction import GtidEvent, GtidListEvent, XidEvent
from binlane.codec.types import GtidFlag, HeaderFlag
from binlane.codec.variables import IntvarEvent, RandEvent, UserVarEvent
from binlane.kernels import text_layout as lay

Longs = npt.NDArray[np.int64]

_HARMLESS: Final = (
    FormatDescriptionEvent,
    RotateEvent,
    StopEvent,
    BinlogCheckpointEvent,
    GtidListEvent,
    XidEvent,
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
    }
)
# Those of one statement alone, which stand behind all others, with their bytes.
_OWN: Final = {"HRNOW": 4, "XID": 9}


class SessionContext:
    """Tells the kernel what the session knows.

    Args:
        state: Of the kernel.
        layouts: Keeps the texts that the kernel compares.
    """

    def __init__(self, state: Longs, layouts: Layouts) -> None:
        self._state = state
        self._layouts = layouts
        self._query: tuple[bytes, bytes] | None = None

    def forget(self) -> None:
        """Know nothing, as at the beginning of a file."""
        self._query = None
        self._state[[lay.KNOWS_GTID, lay.KNOWS_QUERY, lay.SKIPS_REPLICATION]] = 0

    def restore(self) -> None:
        """Give the layouts their texts again, after they have forgotten them."""
        self._state[lay.STAMP] = -1
        query, self._query = self._query, None
        if query is not None:
            self._set_query(*query)

    def feed(self, event: Event) -> None:
        """Take an event that `TextLines` has printed."""
        state, body = self._state, event.body
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
            self._set_query(body.database, variables)
        elif self._query is None or not is_of_transaction(body.query):
            self._forget_query()
        else:
            # Its database does not count.
            self._set_query(self._query[0], variables)

    def _forget_query(self) -> None:
        self._query = None
        self._state[lay.KNOWS_QUERY] = 0

    def _set_query(self, database: bytes, variables: bytes) -> None:
        state = self._state
        state[lay.KNOWS_QUERY] = 1
        if (database, variables) == self._query:
            return
        start, length = self._layouts.add_text(database)
        state[lay.QUERY_DATABASE], state[lay.QUERY_DATABASE_LENGTH] = start, length
        start, length = self._layouts.add_text(variables)
        state[lay.QUERY_VARIABLES], state[lay.QUERY_VARIABLES_LENGTH] = start, length
        self._query = database, variables


def _context(body: QueryEvent) -> bytes | None:
    """The status variables of a statement but for its own; None if others are among them."""
    names = [variable.name for variable in decode_status_vars(body.status_vars)]
    data = body.status_vars
    while names and names[-1] in _OWN:
        data = data[: len(data) - _OWN[names.pop()]]
    return data if _PLAIN.issuperset(names) else None
