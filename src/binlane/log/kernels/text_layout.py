"""Numbers shared by the text kernels and their driver. Imports nothing: both sides read it.

A *layout* tells how to print the images of one table with one set of columns and one heading: a
run of numbers in the array `layouts`, `LAYOUT_SIZE` of them and then `COLUMN_SIZE` for each
column, and one more piece of text for the end. Between the values stand *pieces*, which lie in the
array `texts`: what follows the value before, the names of clause and column, up to the next value.
"""

from __future__ import annotations

from typing import Final

# Reasons for which `print_events` stops.
DONE: Final = 0
"""The window is used up, or ends inside of the event at OFFSET."""
OUT_FULL: Final = 1
"""`out` has to be written first."""
HEADS_FULL: Final = 2
NOTE_FULL: Final = 3
ENCODED_FULL: Final = 4
ROWS_FULL: Final = 5
"""The buffer has to be emptied or to grow by NEED bytes."""
ASK_EVENT: Final = 6
"""The event at OFFSET is not one that the kernel prints; or it is damaged."""
ASK_TABLE: Final = 7
"""A TABLE_MAP that was not seen before stands at OFFSET."""
ASK_LAYOUT: Final = 8
"""A layout is needed: of TABLE, KIND, with the bitmap at REQUEST."""
ASK_ROWS: Final = 9
"""The rows of the event at OFFSET must be printed by somebody else."""
ASK_IMAGES: Final = 10
"""The rows event at OFFSET is compressed: its plain form is needed in `inflated`."""
ASK_CLOCK: Final = 11
"""The time zone at TIME is needed."""
STATEMENT_END: Final = 12
"""A statement's text is too long for `out`: heads, encoded and rows are to be written."""
ASK_MOMENT: Final = 13
"""The time zone at TIME is needed, and its name, for the time of a commit."""

SKIPPED: Final = 255
"""No server writes such a type."""

# The state between two calls.
OFFSET: Final = 0
END: Final = 1
BASE: Final = 2
CHECKSUM: Final = 3
CRC32: Final = 4
OUT_AT: Final = 5
HEADS_AT: Final = 6
NOTE_AT: Final = 7
ENCODED_AT: Final = 8
ROWS_AT: Final = 9
PHASE: Final = 10
ROW_OFFSET: Final = 11
INFLATED: Final = 12
NEED: Final = 13
TABLE: Final = 14
KIND: Final = 15
REQUEST: Final = 16
ROW_COUNT: Final = 17
STATEMENT: Final = 18
VERBOSE: Final = 19
ENCODES: Final = 20
COUNTS_ROWS: Final = 21
SKIPS_NOTES: Final = 22
SPILLED: Final = 23
TIME: Final = 24
CLOCK_FROM: Final = 25
CLOCK_UNTIL: Final = 26
CLOCK_OFFSET: Final = 27
STAMP: Final = 28
KNOWS_GTID: Final = 29
DOMAIN: Final = 30
SERVER: Final = 31
PARALLEL: Final = 32
KNOWS_QUERY: Final = 33
QUERY_DATABASE: Final = 34
QUERY_DATABASE_LENGTH: Final = 35
QUERY_VARIABLES: Final = 36
QUERY_VARIABLES_LENGTH: Final = 37
EVENT_ROWS: Final = 38
EVENT_KEPT: Final = 39
EVENT_TEXT: Final = 40
LENGTH_MAX: Final = 41
SKIPS: Final = 42
"""1 if events of the type SKIPPED are left out, to which somebody changed others."""
IMAGES_AT: Final = 44
IMAGES_END: Final = 45
FIRST_LAYOUT: Final = 46
SECOND_LAYOUT: Final = 47
SKIPS_REPLICATION: Final = 48
STAMP_SERVER: Final = 49
STAMP_LENGTH: Final = 50
PLACE: Final = 51
PLACE_LENGTH: Final = 52
PLACE_DIGITS: Final = 53
IS_MYSQL: Final = 56
SHOWS_CHECKSUM: Final = 57
QUERY_GAP: Final = 58
"""The place, in the bytes at QUERY_VARIABLES, of the variables that are a statement's own."""
INNER: Final = 59
"""The end of the TRANSACTION_PAYLOAD whose events are printed; 0 outside of one."""
INNER_EVENTS: Final = 60
"""Events of it that are printed."""
IN_PAYLOAD: Final = 61
"""1 if such an event was printed whose end was not told yet."""
HAS_GTID: Final = 62
AWAITS_BEGIN: Final = 63
IN_TRANSACTION: Final = 64
SERVER_VERSION: Final = 65
SKIPS_GTIDS: Final = 66
MOMENT: Final = 67
"""The zones that were asked for, of two times of commits.

This one's is here, and from OTHER_MOMENT the first server's: from, until, offset, and the length of
its name.
"""
OTHER_MOMENT: Final = 71
ASKED_MOMENT: Final = 75
"""The one of them that ASK_MOMENT is for."""
SCRATCH: Final = 80
"""The start of the room where the digits of a number are made."""
FLOAT_DIGITS: Final = 64
"""Start of the digits in that room.

It is behind the limbs of 32 bits of the longest fraction and the largest whole part of a DOUBLE.
"""
STATE_SIZE: Final = SCRATCH + 1280

# The buffers: what is printed next; the heads of a statement's rows events; its annotation, or, in
# MySQL's logs, the values that a statement is told before it; its events as base64; its rows as text; all pieces of text; the plain form of a compressed event.
OUT: Final = 0
HEADS: Final = 1
NOTE: Final = 2
ENCODED: Final = 3
ROWS: Final = 4
TEXTS: Final = 5
PLAIN: Final = 6
BUFFERS: Final = 7
ZONE: Final = 128
ZONE_BYTES_MAX: Final = 32
FIXED_BYTES: Final = 192
"""The bytes at the start of TEXTS.

They are time and server of the event before, as text; at ZONE and behind it the names of two zones.
"""

# Of a MOMENT.
MOMENT_UNTIL: Final = 1
MOMENT_OFFSET: Final = 2
ZONE_LENGTH: Final = 3
PADDING: Final = 64

# Phases of a rows event.
START: Final = 0
ENCODE: Final = 1
PRINT: Final = 2
FINISH: Final = 3

# Columns of the array of tables, by the hash of their ids.
TABLE_ID: Final = 0
TABLE_BODY: Final = 1
TABLE_BODY_LENGTH: Final = 2
TABLE_STATEMENT: Final = 3
TABLE_COLUMNS: Final = 4
TABLE_LAYOUT: Final = 5
TABLE_NAME: Final = 6
TABLE_NAME_LENGTH: Final = 7
TABLE_FACTS_LENGTH: Final = 8
"""The length of the name with the line behind it that newer servers of MySQL have."""
TABLE_SIZE: Final = 9
NO_TABLE: Final = -1

# A layout's head.
NEXT: Final = 0
LAYOUT_KIND: Final = 1
BITMAP: Final = 2
BITMAP_LENGTH: Final = 3
COLUMNS: Final = 4
IS_COVERED: Final = 5
LAYOUT_SIZE: Final = 6
NO_LAYOUT: Final = -1

# Kinds of images.
INSERTED: Final = 0
DELETED: Final = 1
BEFORE: Final = 2
AFTER: Final = 3

# A column of a layout.
TYPE: Final = 0
SIZE: Final = 1
DETAIL: Final = 2
PIECE: Final = 3
PIECE_LENGTH: Final = 4
NULL_AT: Final = 5
COLUMN_SIZE: Final = 6
# Types of columns, and what SIZE and DETAIL are.
INTEGER: Final = 1  # size in bytes
STRING: Final = 2  # size of the length before it
DECIMAL: Final = 3  # precision, scale
FLOAT: Final = 4
DOUBLE: Final = 5
DATETIME: Final = 6  # size, digits of the fraction
TIME_OF_DAY: Final = 7
TIMESTAMP: Final = 8
DATE: Final = 9
YEAR: Final = 10
CHOICE: Final = 11  # ENUM; size in bytes
BITS: Final = 12  # size in bytes, bits
OLD_DATETIME: Final = 13
OLD_TIME: Final = 14
OLD_TIMESTAMP: Final = 15
ESCAPED: Final = 16  # a STRING as mysqlbinlog prints it
