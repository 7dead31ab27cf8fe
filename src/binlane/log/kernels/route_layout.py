"""Places in the arrays that the routing kernels and their callers share."""

from __future__ import annotations

from typing import Final

# Bits of what a binlog makes of a table.
KEEP: Final = 1
"""The binlog has the rows of the table."""
PARENT: Final = 2
"""Rows that go may change others in scope, which the reference finds out."""
MERGE: Final = 4
"""Any rows may."""
UNKNOWN: Final = 8
"""A map without rows may stand for rows that changed unseen."""
UPDATED_PARENT: Final = 16
"""Rows that change may change others in scope."""

# Roles of events in routing, by type.
OTHER: Final = 0
"""The reference has to look at its group, unless all of it stays."""
GTID: Final = 1
MYSQL_GTID: Final = 2
MAP: Final = 3
ROWS: Final = 4
TEXT: Final = 5
LENGTH_TEXT: Final = 6
"""A text with a byte of length before it."""
QUERY: Final = 7
XID: Final = 8
REFERENCE: Final = 9
"""The reference has to look at its group always."""

# Values in the column for the number of a table map, for events without one.
UNREAD: Final = -2
"""A statement that is none of BEGIN, COMMIT and ROLLBACK; a text that nobody had room for."""
UNWANTED: Final = -3
"""A text of rows that no binlog gets."""

# Rows of the table of texts.
TEXT_START: Final = 0
TEXT_LENGTH: Final = 1
TEXT_KIND: Final = 2
NEEDS_START: Final = 3
NEEDS_COUNT: Final = 4
TEXT_SIZE: Final = 5
SHAPE: Final = 1
CONTEXT: Final = 2
LONG_TEXT: Final = 0
"""The number of all texts that are too long to be read."""

# Rows of the table of verdicts: what one binlog makes of each text.
ACTION: Final = 0
PLACE_START: Final = 1
PLACE_LENGTH: Final = 2
VERDICT_SIZE: Final = 3

# Actions on an event.
DROP: Final = 0
COPY: Final = 1
COPY_END: Final = 2
"""The event is copied with the flag that ends a statement."""
PUT: Final = 3
"""The event is copied with another context."""

# State of `resolve`.
RESOLVE_NEXT: Final = 0
RESOLVE_LENGTH: Final = 1
RESOLVE_KIND: Final = 2
RESOLVE_MAX: Final = 3
RESOLVE_SIZE: Final = 4

# State of `copy_groups`.
NEXT_GROUP: Final = 0
OUT_LENGTH: Final = 1
POSITION: Final = 2
LIMIT: Final = 3
KEEPS_ALL: Final = 4
CRC32: Final = 5
CLOCK_BASE: Final = 6
CLOCK: Final = 7
GROUPS_KEPT: Final = 8
EVENTS_KEPT: Final = 9
ROWS_KEPT: Final = 10
TEXTS_LEFT_OUT: Final = 11
NEEDED: Final = 12
STATE_SIZE: Final = 13

ASKS: Final = 2
"""A value of KEEPS_ALL: all stays, and the reference tells the effects of statements.

Contexts stand there as their verdicts say.
"""

# Results of `copy_groups`: all groups are done; the next one needs the reference, a new file, or
# more room in the buffer.
DONE: Final = 0
ASK: Final = 1
ROTATE: Final = 2
FULL: Final = 3
