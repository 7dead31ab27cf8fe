"""Numbers shared by the kernel of summaries and its driver, beside those of `layout`.

Imports nothing: both sides read it.
"""

from __future__ import annotations

from typing import Final

# Results of `summarise` besides MORE, ASK and DAMAGED: somebody must count the statement, or the
# rows, of the event at OFFSET, and say in TOLD how many rows; its plain images are needed; the
# contents of the tables have to be taken out first.
ASK_STATEMENT: Final = 3
ASK_ROWS: Final = 4
ASK_IMAGES: Final = 5
FULL: Final = 6

# Bits of a type's class, besides those of `layout`.
INSERTS_ROWS: Final = 1 << 20
DELETES_ROWS: Final = 1 << 21
IS_COMPRESSED: Final = 1 << 22
IS_INTVAR: Final = 1 << 23
IS_ROWS_QUERY: Final = 1 << 24
IS_PARTIAL: Final = 1 << 25
"""The event's images have lengths of their own."""
IS_FOREIGN: Final = 1 << 26
"""The kernel cannot go on behind it."""

# The figures.
TOLD: Final = 0
"""Rows of the event at OFFSET that somebody has counted; 0 for a statement, else NONE."""
PLAIN_LENGTH: Final = 1
"""Bytes of the plain images of the event at OFFSET, or NONE."""
TYPES_SEEN: Final = 2
LAST_TYPE: Final = 3
TRANSACTIONS: Final = 4
UNFINISHED: Final = 5
CANDIDATES: Final = 6
VERBS_KNOWN: Final = 7
# A transaction with more of one of these is a candidate for a list.
LEAST_BYTES: Final = 8
LEAST_ROWS: Final = 9
LEAST_DURATION: Final = 10
# The open group; its GTID has a kind and three numbers.
BYTES: Final = 11
ROWS: Final = 12
EVENTS: Final = 13
FIRST_TIME: Final = 14
LAST_TIME: Final = 15
GTID_KIND: Final = 16
GTID: Final = 17
# MySQL's GTIDs of one source that follow each other: source, first and last sequence.
RUN_SOURCE: Final = 20
RUN_FIRST: Final = 22
RUN_LAST: Final = 23
# Facts of the event at OFFSET: its rows, and the number of its table map, or NONE.
EVENT_ROWS: Final = 24
EVENT_TABLE: Final = 25
FIGURES_SIZE: Final = 26

NONE: Final = -1

# Kinds of GTIDs: domain, server, sequence; source in two halves and sequence; one that the
# driver keeps.
GTID_NONE: Final = 0
GTID_MARIADB: Final = 1
GTID_MYSQL: Final = 2
GTID_TOLD: Final = 3

# The tables, in the order that the kernel takes them.
IDS: Final = 0
MAPS: Final = 1
TYPES: Final = 2
DOMAINS: Final = 3
MOMENTS: Final = 4
ENDS: Final = 5
GROUPS: Final = 6
TABLES: Final = 7
VERBS: Final = 8
TABLES_COUNT: Final = 9

# The texts: table maps, GTIDs, plain images.
KNOWN: Final = 0
SCRATCH: Final = 1
PLAIN: Final = 2

# Rows of TYPES; a column each event type.
TYPE_COUNT: Final = 0
TYPE_BYTES: Final = 1
TYPE_ORDER: Final = 2
TYPES_ROWS: Final = 3

# Rows of DOMAINS; a domain's column is its number modulo DOMAINS_MAX.
DOMAIN: Final = 0
FIRST_SERVER: Final = 1
FIRST_SEQUENCE: Final = 2
LAST_SERVER: Final = 3
LAST_SEQUENCE: Final = 4
DOMAINS_ROWS: Final = 5
DOMAINS_MAX: Final = 64

# Rows of MOMENTS (events by their time) and ENDS (groups by that of their last event); a
# second's column is its number modulo MOMENTS_MAX.
TIME: Final = 0
MOMENT_BYTES: Final = 1
MOMENTS_ROWS: Final = 2
END_GROUPS: Final = 1
END_ROWS: Final = 2
ENDS_ROWS: Final = 3
MOMENTS_MAX: Final = 1024

# Rows of GROUPS, the candidates: where it begins; then as among the figures from BYTES on.
GROUP_POSITION: Final = 0
GROUP_FIGURES: Final = 1
GROUP_GTID_KIND: Final = 6
GROUP_GTID: Final = 7
GROUPS_ROWS: Final = 10
GROUPS_MAX: Final = 256

# Rows of TABLES; a column each table map.
WIDTHS_START: Final = 0
"""The place of the table's columns in the widths: bytes of a value, or minus those of its length.

NONE where somebody else must count its rows.
"""
TABLE_INSERTS: Final = 1
TABLE_UPDATES: Final = 2
TABLE_DELETES: Final = 3
TABLE_EVENTS: Final = 4
TABLE_BYTES: Final = 5
TABLES_ROWS: Final = 6

# Rows of VERBS: the first word of statements, in upper case, as a number.
VERB: Final = 0
VERB_COUNT: Final = 1
VERBS_ROWS: Final = 2
VERBS_MAX: Final = 64
VERB_LENGTH_MAX: Final = 8
