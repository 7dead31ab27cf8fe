"""Places in the arrays in which messages of sessions, and the groups found by them, go to kernels and come back."""

from __future__ import annotations

from typing import Final

MESSAGE_FIELDS: Final = 10
"""Numbers of a message that was written: kind, thread and number of the statement, place and checksum of the record,
beginning and end of the plans in the messages, their number or -1 for none, domain and sequence of the group that
was told; MySQL's source in the place of the domain, by its number."""
CHUNK_END: Final = 0
CHUNK_IS_CURRENT: Final = 1
CHUNK_FILE: Final = 2
CHUNK_OFFSET: Final = 3
CHUNK_SIZE: Final = 4
"""Rows of the messages that were heard together: the number of the first message behind them, 1 if their process
knew all changes of objects, and the journal's file and the offset in it to which their places are to be added."""
SESSION_THREAD: Final = 0
SESSION_ENDS: Final = 1
SESSION_ENDS_END: Final = 2
SESSION_OPEN: Final = 3
SESSION_IS_OVER: Final = 4
SESSION_FOUND: Final = 5
SESSION_NAMED: Final = 6
SESSION_SIZE: Final = 7
"""Rows of the sessions: the thread, the first of its ends and the one behind the last, the message of its statement
that is not answered yet, or -1, 1 if no more of its statements are looked at, how many were found, and the first group
of the run for which the log names the session that was not found, or -1."""
TOLD_THREAD: Final = 0
TOLD_SEQUENCE: Final = 1
TOLD_FILE: Final = 2
TOLD_PLACE: Final = 3
TOLD_CHECKSUM: Final = 4
TOLD_PLAN: Final = 5
TOLD_GROUP: Final = 6
TOLD_CHUNK: Final = 7
TOLD_BEGIN: Final = 8
TOLD_END: Final = 9
TOLD_DOMAIN: Final = 10
TOLD_SIZE: Final = 11
"""Fields of a group that was found: those of a `FoundGroup`, the group's number in the run, the messages that hold
its plans, beginning and end of them there, and the group's domain."""
