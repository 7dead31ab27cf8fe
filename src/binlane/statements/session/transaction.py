"""A transaction: the storage engines' view of it, which is the same for all binlogs.

Source: MariaDB 10.11 sql/log.cc, MySQL 9.7 sql/binlog.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from binlane.log.codec.transaction import TransactionXid
from binlane.names import TableName
from binlane.statements.policy.engines import traits
from binlane.statements.policy.resolution import ResolvedStatement
from binlane.statements.policy.server import Characteristics, Server
from binlane.statements.programs.trace import RowRun
from binlane.statements.sql.schema import Table


@dataclass(slots=True)
class EngineUse:
    """An engine in a statement or transaction.

    Attributes:
        has_two_phases: The engine can prepare; one that cannot makes a group end with COMMIT, not Xid.
        is_changed: The engine changed rows that it could roll back.
    """

    has_two_phases: bool
    is_changed: bool = False


@dataclass(slots=True)
class EngineChanges:
    """The changes of a statement, or a transaction, so far (`THD_TRANS` of the servers).

    Attributes:
        engines: Engines that take part, by name.
        changed_nontransactional: Rows of a non-transactional table changed.
        changed_nontransactional_temporary: Rows of a non-transactional temporary table were logged as a
            statement in the transaction cache.
        changed_temporary_tables: A temporary table was created or dropped.
    """

    engines: dict[str, EngineUse] = field(default_factory=dict)
    changed_nontransactional: bool = False
    changed_nontransactional_temporary: bool = False
    changed_temporary_tables: bool = False

    @property
    def is_transactional(self) -> bool:
        """True if rows changed that could be rolled back."""
        return True in [use.is_changed for use in self.engines.values()]

    @property
    def is_unsafe_to_roll_back(self) -> bool:
        """True if a ROLLBACK would leave something behind."""
        return self.changed_nontransactional or self.changed_temporary_tables

    @property
    def ends_with_xid(self) -> bool:
        """True if the group is committed in two phases."""
        uses = self.engines.values()
        return self.is_transactional and False not in [use.has_two_phases for use in uses]

    def uses(self, engine: str, *, has_two_phases: bool) -> None:
        """Note that an engine with transactions opens a table."""
        self.engines.setdefault(engine, EngineUse(has_two_phases))

    def merge(self, done: EngineChanges) -> None:
        """Take over the changes of a statement that is not rolled back."""
        for name, use in done.engines.items():
            own = self.engines.setdefault(name, EngineUse(use.has_two_phases))
            own.is_changed |= use.is_changed
        self.merge_flags(done)

    def merge_flags(self, done: EngineChanges) -> None:
        """Take over the changes of a statement that no rollback takes back."""
        self.changed_nontransactional |= done.changed_nontransactional
        self.changed_nontransactional_temporary |= done.changed_nontransactional_temporary
        self.changed_temporary_tables |= done.changed_temporary_tables

    def copy(self) -> EngineChanges:
        """Copy the present state."""
        return EngineChanges(
            {
                name: EngineUse(use.has_two_phases, use.is_changed)
                for name, use in self.engines.items()
            },
            self.changed_nontransactional,
            self.changed_nontransactional_temporary,
            self.changed_temporary_tables,
        )

    def keep_only(self, engines: frozenset[str]) -> None:
        """Forget the engines that joined after a savepoint."""
        self.engines = {name: use for name, use in self.engines.items() if name in engines}


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint of the session.

    Attributes:
        name: Name of the savepoint; compared without regard to case.
        engines: Engines that took part in the transaction when the savepoint was set.
    """

    name: str
    engines: frozenset[str]


class XaPhase(Enum):
    """The phase of the session's XA transaction."""

    ACTIVE = "ACTIVE"
    IDLE = "IDLE"
    PREPARED = "PREPARED"


@dataclass(slots=True)
class Transaction:
    """The transaction of a session.

    Attributes:
        is_begun: BEGIN was executed, and the transaction has not ended.
        is_active: The transaction has begun to work (SERVER_STATUS_IN_TRANS).
        own: Characteristics of the transaction itself.
        coming: Characteristics of SET TRANSACTION, which hold for one transaction.
        changes: Changes of the transaction so far.
        savepoints: Savepoints in the order in which they were set.
        xid: Id of an active XA transaction, None without.
        xa_phase: Phase of the XA transaction; None without one.
        unknown: Why some changes are not known, after a statement that was not analysed; empty if all are.
        created: MySQL: tables made by the CREATE TABLE … START TRANSACTION that began the transaction; None
            for others.
    """

    is_begun: bool = False
    is_active: bool = False
    own: Characteristics = field(default_factory=Characteristics)
    coming: Characteristics | None = None
    changes: EngineChanges = field(default_factory=EngineChanges)
    savepoints: list[Savepoint] = field(default_factory=list)
    xid: TransactionXid | None = None
    xa_phase: XaPhase | None = None
    unknown: str = ""
    created: frozenset[TableName] | None = None

    def leave_xa(self) -> None:
        """Leave the XA transaction."""
        self.xid = self.xa_phase = None

    def copy(self) -> Transaction:
        """Copy the present state."""
        return Transaction(
            self.is_begun,
            self.is_active,
            self.own,
            self.coming,
            self.changes.copy(),
            self.savepoints.copy(),
            self.xid,
            self.xa_phase,
            self.unknown,
            self.created,
        )


@dataclass(slots=True)
class PreparedXa:
    """XA transactions that are prepared.

    Attributes:
        held: Prepared transactions, each with the binlogs that hold it.
        left: Prepared transactions that outlive the session, each with the binlogs that will log its end.
    """

    held: dict[TransactionXid, frozenset[str]] = field(default_factory=dict)
    left: dict[TransactionXid, frozenset[str]] = field(default_factory=dict)

    def end(self, xid: TransactionXid) -> frozenset[str]:
        """Commit or roll back a prepared transaction; return the binlogs that hold it."""
        self.left.pop(xid, None)
        return self.held.pop(xid)

    def copy(self) -> PreparedXa:
        """Copy the present state."""
        return PreparedXa(self.held.copy(), self.left.copy())


def engine_changes_of(
    server: Server, resolved: ResolvedStatement, runs: Sequence[RowRun]
) -> EngineChanges:
    """Return a statement's changes in the engines of its tables."""
    engine_changes = EngineChanges()
    tables: dict[TableName, Table] = {}
    for access in resolved.accesses:
        tables.setdefault(access.name, access.table)
        engine = access.table.engine.upper()
        known = traits(access.table, server)
        if known.takes_part:
            engine_changes.uses(engine, has_two_phases=known.has_two_phases)
    for run in runs:
        table = tables[run.table]
        if not traits(table, server).has_rollback:
            engine_changes.changed_nontransactional = True
        elif not table.is_temporary and table.engine.upper() in engine_changes.engines:
            # Engines are not told of changes of temporary tables: they are not committed in
            # two phases.
            engine_changes.engines[table.engine.upper()].is_changed = True
    return engine_changes


def note_tries(server: Server, resolved: ResolvedStatement, engine_changes: EngineChanges) -> None:
    """Note that engines were given rows: they take part in the commit, kept or not."""
    for access in resolved.accesses:
        table = access.table
        name = table.engine.upper()
        if (
            access.changes
            and not access.is_prelocked
            and not table.is_temporary
            and name in engine_changes.engines
            and traits(table, server).has_rollback
        ):
            engine_changes.engines[name].is_changed = True


Runs = tuple[tuple[int, int, int], ...]
"""Ranges of events by their statement: start, end, and number of the statement."""
