"""Writes of a transaction, and the binlogs that recorded them (seed 000, unsafe transactions).

Only writes count. A rollback to a savepoint forgets what it undoes: neither the source nor a
replay of any binlog has it afterwards. Changes of non-transactional tables stay, since no rollback
undoes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from binlane.errors import PartialTransactionError
from binlane.statements.scope.changes import UsedObject
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.repair import statement_to_log
from binlane.statements.scope.safety import Cause, Danger, braced


@dataclass(frozen=True, slots=True)
class RecordedWrite:
    """A write of a transaction with the names of the binlogs that recorded it."""

    used: UsedObject
    binlogs: frozenset[str]


@dataclass(frozen=True, slots=True)
class TransactionWrites:
    """The writes of the open transaction so far, each kind of write once."""

    writes: tuple[RecordedWrite, ...] = ()
    known: frozenset[tuple[str, bool, frozenset[str]]] = field(default=frozenset())

    def added(self, used: Sequence[UsedObject], binlogs: frozenset[str]) -> TransactionWrites:
        """Give these writes with those of another statement, temporary tables left out."""
        writes, known = list(self.writes), set(self.known)
        for one in used:
            key = (str(one), one.is_transactional, binlogs)
            if not one.is_temporary and key not in known:
                known.add(key)
                writes.append(RecordedWrite(one, binlogs))
        return TransactionWrites(tuple(writes), frozenset(known))

    def joined(self, other: TransactionWrites) -> TransactionWrites:
        """Give these writes with those of another transaction."""
        if not self.writes:
            return other
        if other.known <= self.known:
            return self
        result = self
        for write in other.writes:
            result = result.added([write.used], write.binlogs)
        return result

    def rolled_back_to(self, savepoint: TransactionWrites) -> TransactionWrites:
        """Without what has been undone since a savepoint, which was taken as `savepoint`."""
        result = savepoint
        for write in self.writes[len(savepoint.writes) :]:
            if not write.used.is_transactional:
                result = result.added([write.used], write.binlogs)
        return result


NO_WRITES: Final = TransactionWrites()
"""The writes of a transaction that wrote nothing."""


def find_partial_transaction(
    before: TransactionWrites,
    used: Sequence[UsedObject],
    binlogs: frozenset[str],
    definitions: Sequence[Definition],
) -> Danger | None:
    """Find out whether a statement would make binlogs record only some of a transaction.

    Args:
        before: Writes of the transaction up to now.
        used: Objects that the statement writes.
        binlogs: Names of the binlogs that would record the statement.
        definitions: Definitions of all binlogs there are.
    """
    writes = [one for one in used if not one.is_temporary]
    if not writes:
        return None
    now = writes[0]
    refusing: list[Definition] = []
    causes: list[Cause] = []
    for definition in definitions:
        is_recorded = definition.name in binlogs
        other = next(
            (one for one in before.writes if (definition.name in one.binlogs) != is_recorded), None
        )
        if other is not None:
            refusing.append(definition)
            outside = other.used if is_recorded else now
            repair = statement_to_log(definition, outside)
            hint = f"COMMIT first, after the change of {other.used}"
            causes.append(Cause(used=now, hint=f"{hint}; or {repair}" if repair else hint))
    if not refusing:
        return None
    error = PartialTransactionError(
        f"binlogs {braced(refusing)} only record some of the changes made by the transaction",
        hint=causes[0].hint,
    )
    return Danger(
        error=error, binlogs=tuple(sorted(one.name for one in refusing)), causes=tuple(causes)
    )
