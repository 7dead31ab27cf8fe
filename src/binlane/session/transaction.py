"""What the storage engines know of a statement and of the transaction around it.

It is the same for all binlogs of a session: which engines took part, and what of their changes
cannot be rolled back.
"""

from __future__ import annotations

from dataclasses import dataclass, field


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
class Work:
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

    def merge(self, statement: Work) -> None:
        """Take over what a statement did that is not rolled back."""
        for name, use in statement.engines.items():
            own = self.engines.setdefault(name, EngineUse(use.has_two_phases))
            own.is_changed |= use.is_changed
        self.merge_flags(statement)

    def merge_flags(self, statement: Work) -> None:
        """Take over what no rollback of the statement takes back."""
        self.changed_nontransactional |= statement.changed_nontransactional
        self.changed_nontransactional_temporary |= statement.changed_nontransactional_temporary
        self.changed_temporary_tables |= statement.changed_temporary_tables

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
