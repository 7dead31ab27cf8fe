"""The roles that types of events have in routing, as kernels take them."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from binlane.log.codec.types import ROWS_TYPES, EventType
from binlane.log.grouping.scanner import Small
from binlane.log.kernels import route_layout as lay

_ROLES: Final = {
    EventType.GTID: lay.GTID,
    EventType.GTID_LOG: lay.MYSQL_GTID,
    EventType.ANONYMOUS_GTID_LOG: lay.MYSQL_GTID,
    EventType.GTID_TAGGED_LOG: lay.MYSQL_GTID,
    EventType.TABLE_MAP: lay.MAP,
    EventType.ANNOTATE_ROWS: lay.TEXT,
    EventType.ROWS_QUERY: lay.LENGTH_TEXT,
    EventType.QUERY: lay.QUERY,
    EventType.QUERY_COMPRESSED: lay.QUERY,
    EventType.XID: lay.XID,
    EventType.INTVAR: lay.VARIABLE,
    EventType.RAND: lay.VARIABLE,
    EventType.USER_VAR: lay.VARIABLE,
    EventType.TRANSACTION_PAYLOAD: lay.PACKED,
    EventType.XA_PREPARE_LOG: lay.XA_PREPARE,
    EventType.LARGE_TRANSACTION_HEADER: lay.REFERENCE,
    # The writer of an INCIDENT notes where replicas will stop.
    EventType.INCIDENT: lay.REFERENCE,
    **dict.fromkeys(ROWS_TYPES, lay.ROWS),
}


@cache
def event_roles(*, has_plain_queries: bool) -> Small:
    """The role of each type of event for the kernels of routing.

    Args:
        has_plain_queries: True if QUERY events are of the plain form, which alone kernels know.
    """
    roles = np.zeros(256, np.int32)
    for code, role in _ROLES.items():
        roles[code] = role
    if not has_plain_queries:
        roles[[EventType.QUERY, EventType.QUERY_COMPRESSED]] = lay.OTHER
    return roles
