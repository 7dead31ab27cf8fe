"""Places in the table of connections that `pass_on` serves, and the marks of what it hands back."""

from __future__ import annotations

from typing import Final

FIELDS: Final = 32
"""Numbers of each connection; those of the file number n begin at n * FIELDS."""
KIND: Final = 0
PEER: Final = 1
"""File number of the session's other connection."""

# Kinds of connections: one whose bytes are handed to Python, and the two of a session that passes.
HANDED: Final = 0
CLIENT: Final = 1
SOURCE: Final = 2

# The session's state, which stands with its client.
RULES: Final = 2
STATUS: Final = 3
"""Flags of the session as its last reply told them."""
COUNT: Final = 4
"""Commands that have passed without a record of them."""
STEP: Final = 5
PACKETS_LEFT: Final = 6
"""Column definitions that are still to come."""
BYTES_LEFT: Final = 7
"""Bytes of the packet at hand that are still to come."""
IS_CONTINUED: Final = 8
"""1 if the packet at hand goes on in the next frame."""
EXECUTION: Final = 9
"""The id of the statement if the reply is one to COM_STMT_EXECUTE; below 0 for a known text, -1 for the
first one; else 0."""
HELD: Final = 10
"""Bytes of the source that are kept in HELD_BYTES, up to HELD_MAX, until the packet's head is there."""
HELD_BYTES: Final = 11
HELD_MAX: Final = 32
STATEMENTS: Final = 15
"""Place of the session's prepared statements among those of all, in numbers; below 0 for none."""
PLACE: Final = 16
"""Place of the session among those from which transitions lead."""
NEXT: Final = 17
"""Place behind the command under way."""
DEMANDS: Final = 18
"""The demands on the reply to the command under way."""
RECORDED: Final = 19
"""Bytes of the records of commands that have been answered."""
PENDING: Final = 20
"""Bytes of the record of the command under way, which stands behind those; 0 for none."""
RECORD_COUNT: Final = 21
"""Commands that have passed with a record of them."""
REST: Final = 22
"""Place of the session outside of transactions, if all of its open one is recorded, so that its end may pass;
0 for none."""
THREAD: Final = 23
"""Thread of the session at the source."""
LOGGED_THREAD: Final = 24
"""Thread with which statements of the session are logged."""
NUMBERED: Final = 25
"""Number of the session's last statement that has been answered, as its judge counts them."""
ENDED: Final = 26
"""Number of the statement that ended the last transaction that has passed as a whole, counted likewise."""

# Prepared statements of which executions pass, each at its id modulo their count; 0 is no id.
STATEMENTS_MAX: Final = 128
STATEMENT_ID: Final = 0
PARAMETERS: Final = 1
TYPES: Final = 2
"""The types of the values as the client told them last, two bytes each."""
NUMBER: Final = 8
"""Number of the statement among those of all sessions; below 0 for none."""
STATEMENT_FIELDS: Final = 9
PARAMETERS_MAX: Final = 24
STATEMENTS_OF_ONE: Final = STATEMENTS_MAX * STATEMENT_FIELDS
"""Numbers of each session."""

# Transitions: a known statement leads a session from one place to the next. An entry without a place is free.
TRANSITIONS_MAX: Final = 4096
TRANSITION_FIELDS: Final = 4
FROM_PLACE: Final = 0
BY_STATEMENT: Final = 1
TO_PLACE: Final = 2
ITS_DEMANDS: Final = 3
TRANSITION_PROBES: Final = 8
PLACE_FACTOR: Final = 40_503
STATEMENT_FACTOR: Final = 26_543
"""The first entry that is looked at: the place and the number times these, modulo the entries' count."""

# Demands of a transition on the command and its reply; without any, a read's.
IS_RECORDED: Final = 1
"""The command is recorded, and its reply is an OK packet."""
NEEDS_ROWS: Final = 2
"""The reply tells of changed rows."""
TELLS_ROWS: Final = 4
"""The reply tells in words, too, how many rows were changed."""
TURNS: Final = 8
"""The reply's status says of a transaction the opposite of the one before."""
ENDS: Final = 16
"""The command ends a transaction, which may be this command alone: the plan of its group is said before it is
sent, and the reply tells the group's GTID and nothing else of the session."""

# Records of a session's commands, one behind the other: length of the command, number of its statement, insert id
# of the reply, place before it; then the command without its frame's head.
RECORD_LENGTH: Final = 0
RECORD_NUMBER: Final = 4
RECORD_INSERT_ID: Final = 8
RECORD_PLACE: Final = 16
RECORD_HEAD: Final = 24
RECORDS_OF_ONE: Final = 4096
"""Bytes of the records of each session, and of the GTIDs that it was told last."""
TOLD_MAX: Final = 63
RECORDS_MAX: Final = RECORDS_OF_ONE - 1 - TOLD_MAX
"""Bytes of the records alone; behind them stand the length of the GTIDs and their text."""

# Pieces of plans: what a statement has in the plan of its transaction, by the places in the table of transitions
# of the statement that ends it, which has a piece itself, and of this one. An entry without an offset is free.
PIECES_MAX: Final = 4096
PIECE_FIELDS: Final = 3
OF_END: Final = 0
OF_WRITE: Final = 1
ITS_OFFSET: Final = 2
# A piece's bytes: its length, and the offset of the plan's beginning, which is 0 for a statement that has
# nothing in plans, and ends there. Behind them the rows that the source logs, behind their length of 32 bits; the
# kind of the text's part; what stands between the number of the rows and the events; what stands before an
# AUTO_INCREMENT value, if there is one; type and flags of the event; its body between thread and text: each but
# the kind, and type and flags, behind a length of 16 bits. Last the number of the pieces of a prepared
# statement's text, 0 for a text as it came; each behind such a length.
PIECE_BEGINNING: Final = 4
PIECE_ROWS: Final = 8
# A plan's beginning: names of the binlogs, behind a length of 32 bits, and the number of the row image.
PIECES_SIZE: Final = 1 << 20

# Messages on groups that are still to be said: their length, the file number of the connection, and the messages
# as `attribution_messages` has them.
SAID_LENGTH: Final = 0
SAID_TO: Final = 8
SAID_HEAD: Final = 16
SAID_SIZE: Final = 1 << 18

TEXTS_MAX: Final = 2048
"""Known texts, numbered from 0; numbers of prepared statements are above."""
# Texts without their literals, each in so many bytes behind its length, the first for a text at hand.
TEXT_SIZE: Final = 256
FORM_AT: Final = 2
FORM_MAX: Final = TEXT_SIZE - FORM_AT
TEXT_LENGTH_MAX: Final = 4096
"""Length of a text with its literals."""
TEXTS_SIZE: Final = (TEXTS_MAX + 1) * TEXT_SIZE

# Places in a reply: none is under way; its first packet is next; and so on.
STEP_IDLE: Final = 0
STEP_HEAD: Final = 1
STEP_DEFINITIONS: Final = 2
STEP_DEFINITIONS_END: Final = 3
STEP_ROWS: Final = 4

# Rules of a session: capabilities that are agreed on, and which commands pass.
DEPRECATES_EOF: Final = 1
CACHES_METADATA: Final = 2
REPORTS_PROGRESS: Final = 4
HIDES_STATE: Final = 8
"""The client gets OK packets without the session's state: those with it are handed back."""
EXECUTIONS: Final = 16
"""Executions of prepared statements pass, but for those that open a cursor."""
PLAIN_TEXTS: Final = 32
"""Only texts pass that are ASCII, without comments, variables and several statements."""
STRIPS_GTIDS: Final = 128
"""The client gets OK packets without GTIDs in the session's state."""
KNOWN_STATEMENTS: Final = 64
"""Only known statements pass, as transitions say; replies that are errors, tell of a change of the session,
or are otherwise than is demanded are handed back."""

# Numbers of each thing that is handed back: file number, marks, first byte in the buffer, length.
HANDED_FIELDS: Final = 4
IS_READ: Final = 1 << 20
"""The bytes were received of the connection; none are its end."""
IS_UNSENT: Final = 1 << 21
"""The bytes are still to be sent to the connection."""
EVENTS_MAX: Final = 64
READ_MAX: Final = 1 << 16
EVENT_IN: Final = 1
