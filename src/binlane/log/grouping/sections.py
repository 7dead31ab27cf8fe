"""The rows of one statement in an event group: its tables, and the kind of change to each.

Not the rows themselves: what of them is known of a statement before it runs.
"""

from __future__ import annotations

from typing import NamedTuple

from binlane.names import TableName


class RowsPiece(NamedTuple):
    """TABLE_MAPs and rows events up to one with STMT_END, as a statement makes them.

    Consecutive rows events of the same kind and table count as one: how many there are hangs on the
    size of the rows.

    Attributes:
        tables: The tables of the TABLE_MAPs, in order.
        changes: `insert`, `update` or `delete` and the table, one for each run of rows events.
    """

    tables: tuple[TableName, ...]
    changes: tuple[tuple[str, TableName], ...]


Section = tuple[RowsPiece, ...]
"""The rows of one statement of a group; several pieces where its tables differ in how they roll back.

No piece at all stands for a CREATE TABLE … SELECT that selected no row.
"""
