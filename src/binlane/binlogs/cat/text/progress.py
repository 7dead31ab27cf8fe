"""What a text has begun and not ended: how it goes on depends on it.

Whoever prints some of the events by other means takes it over from the text before, and gives it
back behind.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Progress:
    """Where a text stands between two events.

    Attributes:
        row_heads: MariaDB: first lines of the rows events of a statement that has not ended.
        row_bodies: Those events in base64, with their TABLE_MAPs.
        row_comments: Their rows.
        row_count: MariaDB: how many rows they are.
        values: MySQL: what the next statement is told before it.
        has_gtid: MySQL: a GTID came.
        awaits_begin: MySQL: no statement came behind it.
        in_transaction: MySQL: a transaction has begun and not ended.
        in_payload: MySQL: events of a payload came whose end was not told.
        server_version: MySQL: of the server that the transaction was committed on; 0 if unknown.
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
