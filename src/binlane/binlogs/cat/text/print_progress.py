"""The open parts of a text, which decide how it goes on.

A printer of some of the events by other means takes it over from the text before, and gives it back
behind.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Progress:
    """The state of a text between two events.

    Attributes:
        row_heads: MariaDB: first lines of the rows events of a statement that has not ended.
        row_bodies: Rows events of that statement in base64, with their TABLE_MAPs.
        row_comments: Comments with the rows of that statement.
        row_count: MariaDB: number of rows of that statement.
        values: MySQL: values that the next statement is told before it.
        has_gtid: MySQL: True if a GTID came.
        awaits_begin: MySQL: True if no statement came behind the GTID.
        in_transaction: MySQL: True if a transaction has begun and not ended.
        in_payload: MySQL: True if events of a payload came whose end was not told.
        server_version: MySQL: version of the server that the transaction was committed on; 0 if
            unknown.
    """

    row_heads: list[str] = field(default_factory=list)
    row_bodies: list[str] = field(default_factory=list)
    row_comments: list[str] = field(default_factory=list)
    row_count: int = 0
    values: list[str] = field(default_factory=list)
    has_gtid: bool = False
    awaits_begin: bool = False
    in_transaction: bool = False
    in_payload: bool = False
    server_version: int = 0
