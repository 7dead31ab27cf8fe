"""The tables that LOCK TABLES has locked, and what it keeps statements from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from binlane.names import TableName
from binlane.statements.policy.refusals import Refusal, refusal
from binlane.statements.policy.server import Isolation


class LockedTables(NamedTuple):
    """The tables that LOCK TABLES locks.

    Attributes:
        written: The tables that are locked for writing, in the order of LOCK TABLES, those of triggers and
            foreign keys included.
        locks: Each table and view with its alias in small letters, and True if the lock is for writing.
        implied: Tables that LOCK TABLES did not name for writing: tables that triggers, foreign keys and
            views need, and tables that it named for reading.
        isolation: Isolation level at LOCK TABLES, which decides how the tables may be logged, whatever is set
            later.
        opened_anew: Tables that were opened again since, each with the level of that time.
    """

    written: tuple[TableName, ...]
    locks: tuple[tuple[TableName, str, bool], ...]
    implied: frozenset[TableName]
    isolation: Isolation
    opened_anew: tuple[tuple[TableName, Isolation], ...] = ()

    def isolation_of(self, names: Iterable[TableName]) -> Isolation:
        """The weakest level of some tables; measured on MariaDB 10.11 and MySQL 9.7."""
        anew = dict(self.opened_anew)
        return min((anew.get(name, self.isolation) for name in names), default=self.isolation)

    def opening_anew(self, names: Iterable[TableName], isolation: Isolation) -> LockedTables:
        """Return the locks with tables that are opened again with another level."""
        return self._replace(
            opened_anew=(*self.opened_anew, *((name, isolation) for name in names))
        )

    def without(self, names: Iterable[TableName]) -> LockedTables | None:
        """Return the locks left once some tables are gone; None if nothing is locked any more.

        Source: measured on MariaDB 10.11.19 and MySQL 9.7.4.
        """
        gone = frozenset(names)
        left = tuple(lock for lock in self.locks if lock[0] not in gone)
        return self._replace(locks=left) if left else None

    def refusal(
        self, opened: Iterable[tuple[TableName, str, bool]], led_to: Iterable[TableName] = ()
    ) -> Refusal | None:
        """Return the refusal to open tables, where each lock is for one of them; None if all can be opened.

        Args:
            opened: The tables' names, their aliases in the text, and True if they are opened for writing.
            led_to: Tables that foreign keys lead to, for which any lock is enough.
        """
        left = list(self.locks)
        read: Refusal | None = None
        for name, alias, is_written in opened:
            found = [lock for lock in left if lock[:2] == (name, alias.lower())]
            if not found:
                return refusal(_NOT_LOCKED, alias)
            taken = max(found, key=lambda lock: lock[2] == is_written)
            if is_written and not taken[2] and read is None:
                read = refusal(_LOCKED_FOR_READ, alias)  # told when all tables are open
            left.remove(taken)
        locked = {name for name, _, _ in self.locks}
        if (missing := next((name for name in led_to if name not in locked), None)) is not None:
            return refusal(_NOT_LOCKED, missing.table)
        return read


_LOCKED_FOR_READ: Final = 1099

_NOT_LOCKED: Final = 1100
