"""Places in the arrays that kernels and their callers share, and the codes in them."""

from __future__ import annotations

from typing import Final

# Results of `scan`: it has used up the buffer or filled a table; it needs somebody to look at the
# event at OFFSET and set VERDICT; the event there is damaged.
MORE: Final = 0
ASK: Final = 1
DAMAGED: Final = 2

# Bits of a type's class.
CONTROL: Final = 1
STARTS_GROUP: Final = 2
CONTEXT: Final = 4
ENDS_GROUP: Final = 8
STANDS_ALONE: Final = 16
IS_ANY: Final = 32
IS_XID: Final = 64
IS_GTID: Final = 128
IS_QUERY: Final = 256
IS_TABLE_MAP: Final = 512
IS_ROWS: Final = 1024
HAS_EXTRA: Final = 2048
HAS_AFTER: Final = 4096
IS_NOTED: Final = 8192
IS_FORMAT: Final = 16384
IS_MYSQL_GTID: Final = 32768
IS_ANONYMOUS: Final = 65536
IS_PAYLOAD: Final = 131072
IS_XA_PREPARE: Final = 262144
MAY_BE_XA: Final = 524288
IS_VARIABLE: Final = 1048576
IS_TAGGED_GTID: Final = 2097152

# The state between two calls.
OFFSET: Final = 0
BASE: Final = 1
EVENTS: Final = 2
GROUPS: Final = 3
IS_OPEN: Final = 4
IS_TRANSACTION: Final = 5
STATEMENT: Final = 6
FIRST_EVENT: Final = 7
GROUP_POSITION: Final = 8
GTID_LENGTH: Final = 9
CHECKSUM_LENGTH: Final = 10
CRC32: Final = 11
VERDICT: Final = 12
LENGTH_MAX: Final = 13
IS_INNER: Final = 14
IS_STRICT: Final = 15
SEEN: Final = 16
GTID_MICROS: Final = 17
TOLD: Final = 18
STATE_SIZE: Final = 19

# Bits of a verdict.
CHECKED: Final = 1
BEGINS: Final = 2
ENDS: Final = 4
KEEPS: Final = 8
# Events that are noted if TOLD has the bit: statements and what else is no row; the ends of XA
# transactions.
STATES: Final = 16
ENDS_XA: Final = 32

# Rows of the table of noted events; a column each.
EVENT_OFFSET: Final = 0
EVENT_END: Final = 1
EVENT_TYPE: Final = 2
EVENT_TIME: Final = 3
EVENT_MAP: Final = 4
EVENT_BITMAP: Final = 5
EVENT_IMAGES: Final = 6
EVENT_SIZE: Final = 7

# Rows of the table of groups.
GROUP_FIRST: Final = 0
GROUP_END: Final = 1
GROUP_TIME: Final = 2
GROUP_START: Final = 3
GROUP_GTID_LENGTH: Final = 4
GROUP_STOP: Final = 5
GROUP_MICROS: Final = 6
GROUP_SIZE: Final = 7

# Rows of the table of ids, and of that of table maps.
ID: Final = 0
ID_MAP: Final = 1
ID_STATEMENT: Final = 2
MAP_START: Final = 0
MAP_LENGTH: Final = 1
MAP_COLUMNS: Final = 2

GTID_TEXT_MAX: Final = 112
UUID_SIZE: Final = 16
TAG_MAX: Final = 32
GTID_NAME_SIZE: Final = UUID_SIZE + 1 + TAG_MAX
"""Bytes of a UUID, of the length of a tag, and of the tag."""
NO_ID: Final = -1

# Results of `locate`: all events are done; the tables are full; an image is damaged.
LOCATE_DONE: Final = 0
LOCATE_FULL: Final = 1
LOCATE_DAMAGED: Final = 2

# The state between two calls.
LOCATE_NEXT: Final = 0
LOCATE_AT: Final = 1
LOCATE_NUMBER: Final = 2
LOCATE_ROWS: Final = 3
LOCATE_SIZE: Final = 4

# Effects of a type of event, and of an image on its row.
INSERTS: Final = 1
UPDATES: Final = 2
DELETES: Final = 3
INSERT: Final = 0
UPDATE_BEFORE: Final = 1
UPDATE_AFTER: Final = 2
DELETE: Final = 3

# Rows of the table of columns.
COLUMN_KIND: Final = 0
COLUMN_TARGET: Final = 1

# A position of a value that is not there.
NULL: Final = -1

# Results of a conversion instead of a count.
CONVERT_DAMAGED: Final = -1
CONVERT_TOO_LONG: Final = -2
