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
VARIABLE: Final = 10
"""A value that the next statement reads."""
PACKED: Final = 11
"""All events of a transaction in one: what becomes of it is decided by its shape."""

XA_PREPARE: Final = 12
"""The end of an XA transaction's first phase."""

# Values in the column for the number of a table map, for events without one.
UNREAD: Final = -2
"""A statement that is none of BEGIN, COMMIT and ROLLBACK; a text that nobody had room for."""
KNOWN: Final = 0
"""A value that the next statement reads, which is whole."""
UNWANTED: Final = -3
"""A text of rows that no binlog gets."""
DDL: Final = -4
"""A statement that may change objects, alone in its group: each binlog has its own action on it."""

# Rows of the table of texts.
TEXT_START: Final = 0
TEXT_LENGTH: Final = 1
TEXT_KIND: Final = 2
NEEDS_START: Final = 3
NEEDS_COUNT: Final = 4
TEXT_SIZE: Final = 5
SHAPE: Final = 1
CONTEXT: Final = 2
STATEMENT: Final = 3
"""A statement that changes rows: its context, and the shape of its text."""
PAYLOAD: Final = 5
"""The shape of a transaction in one event, which stands in no array."""
XA: Final = 6
"""A statement on an XA transaction: its context, and the shape of its text."""
SAVEPOINT: Final = 4
"""The context of a statement on a savepoint; its number in the group stands beside it."""
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
PUT_HEAD: Final = 4
"""The statement is copied with another context before its text."""
BY_REFERENCE: Final = 5
"""The reference has to look at the statement's group."""
PUT_SAVEPOINT: Final = 7
"""The statement is copied with another context and the number of its savepoint."""
UNJUDGED: Final = 6
"""Nobody has judged statements of this shape with what is remembered now."""

PUT_BODY: Final = 8
"""The event is copied with the body that was made for it in this binlog."""

# Rows of the states of a run's XA transactions in one binlog: the state, and the group that prepared
# the transaction without anything in scope, -1 for none. Without any column all are for the reference.
XA_STATE: Final = 0
XA_GROUP: Final = 1
XA_SIZE: Final = 2
NO_XA: Final = -1
"""The number of the XA transaction of an event that neither prepares nor finishes one."""
XA_UNKNOWN: Final = 0
XA_PREPARED: Final = 1
"""The binlog holds what was prepared."""
XA_PASSED: Final = 2
"""What was prepared has nothing in scope."""
XA_INSIDE: Final = 3
"""Nothing of it was held, but it names tables in scope."""
XA_UNCLEAR: Final = 4
"""It was prepared twice, which the reference looks at."""

# Rows of the table of bodies that were made for events of a run in one binlog.
MADE_START: Final = 0
MADE_LENGTH: Final = 1
MADE_ACTION: Final = 2
"""The action on a statement that may change objects."""
MADE_ENDS: Final = 3
"""1 if what the binlog remembers bears on the groups behind such a statement: they are for later."""
MADE_SIZE: Final = 4

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
"""The number that is added to logical timestamps, from the next group on."""
CLOCK: Final = 7
"""The last logical timestamp."""
GROUPS_KEPT: Final = 8
EVENTS_KEPT: Final = 9
ROWS_KEPT: Final = 10
TEXTS_LEFT_OUT: Final = 11
NEEDED: Final = 12
PLANNED_KEPT: Final = 13
LAST_GROUP: Final = 14
"""The number behind the last group that is asked for."""
STATEMENTS: Final = 15
"""Groups with a change that a session had logged as a statement."""
UNJUDGED_TEXT: Final = 16
STATE_SIZE: Final = 17

# Rows of the forms of a run's groups in one binlog: the first text and how many there are.
FORM_FIRST: Final = 0
FORM_COUNT: Final = 1
FORM_SIZE: Final = 2
OWN_BYTES: Final = -1
"""The first text of a group that is there as its own bytes."""
PLANNED: Final = -1
"""The number of texts of such a group that has a plan."""

BY_ROUTE: Final = -2
"""The first text of a group that is for the reference."""

ABSENT: Final = -1
"""Number of a list where the plan does not name the binlog."""

# Verdicts and state of `texts_outside`.
INSIDE: Final = 1
"""Verdict on a text that may stand in the scope; 0 where it was not judged."""
OUTSIDE: Final = 2
SCOPED_NEXT: Final = 0
SCOPED_TEXT: Final = 1
SCOPED_COUNT: Final = 2
SCOPED_KIND: Final = 3
SCOPED_START: Final = 4
SCOPED_END: Final = 5
SCOPED_KEY: Final = 6
SCOPED_KEY_MAX: Final = 7
SCOPED_SIZE: Final = 8
"""State of `texts_outside`: the place of the next group among those that are asked for; what is next of it, 0 for all
that stands before its first text; the number of groups that were found; and the text that is not known: its
kind, its event's body, and the length of its key, or 0 if it is too long to have one; the longest key."""

# Rows of the index of plans: the group, the plans of its statement and which is its own; then, written
# by the kernel, the names of binlogs, the first form, and if the plan wants whole row images.
PLAN_GROUP: Final = 0
PLAN_START: Final = 1
PLAN_END: Final = 2
PLAN_NUMBER: Final = 3
PLAN_NAMES: Final = 4
PLAN_NAMES_END: Final = 5
PLAN_FORM: Final = 6
"""Number of the first of its forms, one a list of parts; -1: the plan is for the reference."""
PLAN_IS_FULL: Final = 7
PLAN_SIZE: Final = 8

# State of `read_plans`.
PLANS_NAME_AT: Final = 0
PLANS_WANT_TEXTS: Final = 1
PLANS_FULL_IMAGE: Final = 2
"""The number of the whole row image in a plan."""
PLANS_IS_MYSQL: Final = 3
PLANS_BODIES: Final = 4
PLANS_FORMS: Final = 5
PLANS_SIZE: Final = 6

# Rows of the table of texts' events.
BODY_TYPE: Final = 0
BODY_TIME: Final = 1
BODY_START: Final = 2
BODY_LENGTH: Final = 3
BODY_SIZE: Final = 4

# Rows of the facts of a run's groups.
FACT_THREAD: Final = 0
"""The source's thread; 0 where the log does not say it, -1 where the reference must be asked."""
FACT_BITS: Final = 1
FACT_PIECES: Final = 2
FACT_PIECES_END: Final = 3
FACT_SIZE: Final = 4
ENDS_WITH_XID: Final = 1
HAS_MAPS: Final = 2
IS_MARK: Final = 4
HAS_STATEMENTS: Final = 8
"""There is more than rows and BEGIN, COMMIT and ROLLBACK: statements, or what stands before them."""
IS_PACKED: Final = 16
"""A TRANSACTION_PAYLOAD holds it."""

# Rows of the pieces of groups: the events up to a STMT_END.
PIECE_FIRST: Final = 0
PIECE_END: Final = 1
PIECE_TABLE: Final = 2
"""The number of its table map; -1 if there are several."""
PIECE_TEXT: Final = 3
"""Offset of the text that MariaDB wrote before its rows; 0 without one."""
PIECE_TEXT_END: Final = 4
PIECE_SIZE: Final = 5

ASKS: Final = 2
"""A value of KEEPS_ALL: all stays, and the reference tells the effects of statements.

Contexts stand there as their verdicts say.
"""

# Results of `copy_groups`: all groups are done; the next one needs the reference, a new file, more
# room in the buffer, or a verdict on a statement.
DONE: Final = 0
ASK: Final = 1
ROTATE: Final = 2
FULL: Final = 3
JUDGE: Final = 4
