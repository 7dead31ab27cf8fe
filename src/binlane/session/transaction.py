"""What the storage engines know of a statement and of the transaction around it.

It is the same for all binlogs of a session: which engines took part, and what of their changes
cannot be rolled back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from binlane.codec.transaction import TransactionXid
from binlane.names import TableName
from binlane.policy.engines import traits
from binlane.policy.resolution import ResolvedStatement
from binlane.policy.server import Isolation, Server
from binlane.programs.trace import RowRun
from binlane.sql.schema import Table


@dataclass(slots=True)
class EngineUse:
    """An engine in a statement or transaction.

    Attributes:
        has_two_phases: It can prepare; one that cannot makes a group end with COMMIT, not Xid.
        is_changed: It changed rows that it could roll back.
    """

    has_two_phases: bool
    is_changed: bool = False


@dataclass(slots=True)
class EngineChanges:
    """What a statement, or a transaction, did so far (`THD_TRANS` of the servers).

    Attributes:
        engines: Those that take part, by name.
        changed_nontransactional: Rows of a non-transactional table changed.
        changed_nontransactional_temporary: Rows of a temporary one were logged as a statement in
            the transaction cache.
        changed_temporary_tables: A temporary table was created or dropped.
    """

    engines: dict[str, EngineUse] = field(default_factory=dict)
    changed_nontransactional: bool = False
    changed_nontransactional_temporary: bool = False
    changed_temporary_tables: bool = False

    @property
    def is_transactional(self) -> bool:
        """Whether rows changed that could be rolled back."""
        return any(use.is_changed for use in self.engines.values())

    @property
    def is_unsafe_to_roll_back(self) -> bool:
        """Whether a ROLLBACK would leave something behind."""
        return self.changed_nontransactional or self.changed_temporary_tables

    @property
    def ends_with_xid(self) -> bool:
        """Whether its group is committed in two phases."""
        uses = self.engines.values()
        return self.is_transactional and all(use.has_two_phases for use in uses)

    def uses(self, engine: str, *, has_two_phases: bool) -> None:
        """An engine with transactions opens a table."""
        self.engines.setdefault(engine, EngineUse(has_two_phases))

    def merge(self, done: EngineChanges) -> None:
        """Take over what a statement did that is not rolled back."""
        for name, use in done.engines.items():
            own = self.engines.setdefault(name, EngineUse(use.has_two_phases))
            own.is_changed |= use.is_changed
        self.merge_flags(done)

    def merge_flags(self, done: EngineChanges) -> None:
        """Take over what no rollback of the statement takes back."""
        self.changed_nontransactional |= done.changed_nontransactional
        self.changed_nontransactional_temporary |= done.changed_nontransactional_temporary
        self.changed_temporary_tables |= done.changed_temporary_tables

    def copy(self) -> EngineChanges:
        """As they are now."""
        return replace(self, engines={name: replace(use) for name, use in self.engines.items()})

    def keep_only(self, engines: frozenset[str]) -> None:
        """Forget the engines that joined after a savepoint."""
        self.engines = {name: use for name, use in self.engines.items() if name in engines}


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint of the session.

    Attributes:
        name: Its name; compared without regard to case.
        engines: Those that took part in the transaction when it was set.
    """

    name: str
    engines: frozenset[str]


class XaPhase(Enum):
    """How far an XA transaction of the session is."""

    ACTIVE = "ACTIVE"
    IDLE = "IDLE"
    PREPARED = "PREPARED"


@dataclass(slots=True)
class Transaction:
    """The transaction of a session.

    Attributes:
        is_begun: BEGIN, not ended yet.
        is_active: It has begun to work (SERVER_STATUS_IN_TRANS).
        isolation: Its isolation level.
        next_isolation: Of SET TRANSACTION, which holds for one transaction.
        changes: What it did.
        savepoints: In the order in which they were set.
        xid: Of an active XA transaction, None without.
        xa_phase: How far that is.
        unknown: Why what it did is not known, of a statement that was not analysed; empty if it is.
    """

    is_begun: bool = False
    is_active: bool = False
    isolation: Isolation = Isolation.REPEATABLE_READ
    next_isolation: Isolation | None = None
    changes: EngineChanges = field(default_factory=EngineChanges)
    savepoints: list[Savepoint] = field(default_factory=list)
    xid: TransactionXid | None = None
    xa_phase: XaPhase | None = None
    unknown: str = ""

    def leave_xa(self) -> None:
        """It is no XA transaction any longer."""
        self.xid = self.xa_phase = None

    def copy(self) -> Transaction:
        """As it is now."""
        return replace(self, changes=self.changes.copy(), savepoints=self.savepoints.copy())


@dataclass(slots=True)
class PreparedXa:
    """XA transactions that are prepared.

    Attributes:
        held: With the binlogs that hold them.
        left: Those that outlive the session, with the binlogs that will log their end.
    """

    held: dict[TransactionXid, frozenset[str]] = field(default_factory=dict)
    left: dict[TransactionXid, frozenset[str]] = field(default_factory=dict)

    def end(self, xid: TransactionXid) -> frozenset[str]:
        """One is committed or rolled back; the binlogs that hold it."""
        self.left.pop(xid, None)
        return self.held.pop(xid)

    def copy(self) -> PreparedXa:
        """As they are now."""
        return PreparedXa(self.held.copy(), self.left.copy())


# Of a statement -----------------------------------------------------------------------------------


def engine_changes_of(
    server: Server, resolved: ResolvedStatement, runs: Sequence[RowRun]
) -> EngineChanges:
    """What a statement does to the engines of its tables."""
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
