"""What a statement does to its tables, as the servers' lock list has it.

Made by `resolution` from a statement's facts and the server's objects; read by `procedure`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import is_
from typing import TYPE_CHECKING

from binlane.sql.facts import StatementKind

if TYPE_CHECKING:
    from binlane.names import TableName
    from binlane.policy.reasons import ReasonFound, Via
    from binlane.policy.refusals import LoggingError
    from binlane.sql.facts import RowChange, Shift
    from binlane.sql.schema import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAccess:
    """One table of a statement's lock list.

    Attributes:
        table: What is known of it.
        changes: What happens to its rows, with what its own trigger or cascade would do left to
            their own entries; empty if it is only read.
        is_locked_for_write: Its lock is for writing (also a target whose rows do not change).
        is_prelocked: It comes from a function, trigger or foreign key.
        is_foreign_key: It comes from a foreign key.
        has_unsafe_default: A column's DEFAULT may give another value on a replica.
        is_acl: It is one of MySQL's tables of accounts and privileges.
        has_several_unique_keys: ON DUPLICATE KEY UPDATE may meet more than one of its keys.
        set_columns: Columns to which an UPDATE or ON DUPLICATE KEY UPDATE gives values, in small
            letters; empty if that is not known.
        via: From the statement's text to the table; empty if the text names it.
        offset: Where the text names it, or what leads to it, in characters.
        length: Of that.
    """

    table: Table
    changes: frozenset[RowChange] = frozenset()
    is_locked_for_write: bool = False
    is_prelocked: bool = False
    is_foreign_key: bool = False
    has_unsafe_default: bool = False
    is_acl: bool = False
    has_several_unique_keys: bool = False
    set_columns: frozenset[str] = frozenset()
    via: tuple[Via, ...] = ()
    offset: int = 0
    length: int = 0

    def moved(self, shift: Shift) -> TableAccess:
        """The same in a statement that differs only in its literals."""
        offset = shift(self.offset)
        length = shift(self.offset + self.length) - offset
        if offset == self.offset and length == self.length:
            return self
        return replace(self, offset=offset, length=length)

    @property
    def name(self) -> TableName:
        """The table's name."""
        return self.table.name

    @property
    def is_written(self) -> bool:
        """Whether it counts as written in the decision."""
        return self.is_locked_for_write


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedStatement:
    """A statement's tables, through everything that it uses.

    Attributes:
        kind: What it is.
        accesses: In the order of the servers' lock list: what the text names, views merged in
            their place, then what functions, triggers and foreign keys add.
        reasons: Unsafe reasons that the text, views, routines, triggers and defaults raise,
            before the decision (those that the decision itself raises are left to it).
        functions: Stored functions that are called, directly or not, in the servers' order.
        unknown_tables: Named tables that do not exist, with their offsets.
        errors: What the server says of tables and views that it cannot open, in its order.
        has_row_statement: The command can generate row events.
        is_temporary: It creates, drops or truncates a temporary table.
        is_on_duplicate: INSERT of VALUES … ON DUPLICATE KEY UPDATE.
        is_delayed: MariaDB's INSERT or REPLACE DELAYED, and nothing in it forbids the delay.
        notes: Why the answer is not known, such as a body that is not understood; empty if it is.
    """

    kind: StatementKind = StatementKind.UNKNOWN
    accesses: tuple[TableAccess, ...] = ()
    reasons: tuple[ReasonFound, ...] = ()
    functions: tuple[TableName, ...] = ()
    unknown_tables: tuple[tuple[TableName, int], ...] = ()
    errors: tuple[LoggingError, ...] = ()
    has_row_statement: bool = True
    is_temporary: bool = False
    is_on_duplicate: bool = False
    is_delayed: bool = False
    notes: tuple[str, ...] = ()

    def moved(self, shift: Shift) -> ResolvedStatement:
        """The same for a statement that differs only in its literals."""
        accesses = tuple([access.moved(shift) for access in self.accesses])
        if not self.reasons and not self.unknown_tables and not self.errors:
            stays = all(map(is_, accesses, self.accesses))
            return self if stays else replace(self, accesses=accesses)
        return replace(
            self,
            accesses=accesses,
            reasons=tuple(found.moved(shift) for found in self.reasons),
            unknown_tables=tuple((name, shift(offset)) for name, offset in self.unknown_tables),
            errors=tuple(error.moved(shift) for error in self.errors),
        )
