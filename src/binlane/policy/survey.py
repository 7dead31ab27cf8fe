"""What the decision looks at: a statement's tables one by one, and how their engines mix.

The outcome is decided in `procedure`. Source: sql_class.cc (MariaDB 10.11) and binlog.cc
(MySQL 9.7), `decide_logging_format`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from binlane.policy import refusals
from binlane.policy.access import ResolvedStatement, TableAccess
from binlane.policy.engines import (
    BOTH,
    NEITHER,
    NOTHING,
    ROW_ONLY,
    Access,
    Capability,
    EngineTraits,
    access_class,
    capability_now,
    is_mixed_unsafe,
    is_self_logging_now,
    is_unreplicated,
    traits,
)
from binlane.policy.reasons import Reason, ReasonFound
from binlane.sql.facts import StatementKind
from binlane.sql.servers import Fact, LoggingMode
from binlane.sql.table_changes import printed_engine

if TYPE_CHECKING:
    from binlane.policy.refusals import LoggingError
    from binlane.policy.server import Circumstances, Server

CREATES: Final = frozenset({StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_SELECT})
"""Commands that make a table."""


@dataclass(slots=True)
class Survey:
    """What is found while the tables of a statement are looked at."""

    statement: ResolvedStatement
    circumstances: Circumstances
    unsafe: dict[Reason, ReasonFound] = field(default_factory=dict)
    errors: list[LoggingError] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    access: Access = NOTHING
    written_by_all: Capability = BOTH
    is_written: bool = False
    writes_only_temporary: bool = True
    written_engines: list[str] = field(default_factory=list)
    accessed_engines: list[str] = field(default_factory=list)
    writes_self_logging: bool = False
    accesses_self_logging: bool = False
    replicated: int = 0
    unreplicated_writes: int = 0
    is_mixed: bool = False
    forces_row: bool = False

    def __post_init__(self) -> None:
        for found in self.statement.reasons:
            self.add(found)
        self.forces_row = self.circumstances.is_row_forced

    @property
    def server(self) -> Server:
        """Whose rules."""
        return self.circumstances.server

    @property
    def mode(self) -> LoggingMode:
        """The binlog's logging mode."""
        return self.circumstances.logging_mode

    def step(self, sentence: str) -> None:
        """Note what was looked at."""
        self.steps.append(sentence)

    def add(self, found: ReasonFound) -> None:
        """Note that the statement is unsafe; the first that raises a reason is named."""
        if found.reason not in self.unsafe:
            self.unsafe[found.reason] = found
            what = f" ({found.what})" if found.what else ""
            self.step(f"unsafe: {found.reason.value}{what}{_through(found)}")

    def blame(self, reason: Reason, access: TableAccess) -> None:
        """Note that a table makes the statement unsafe."""
        self.add(
            ReasonFound(
                reason=reason,
                what=access.name.plain,
                offset=access.offset,
                length=access.length,
                via=access.via,
            )
        )

    # -- The tables, one by one

    def look_at_tables(self) -> None:
        """Collect what the tables can, and what makes the statement unsafe."""
        if self.server.is_mariadb:
            for access in self.statement.accesses:
                self._look_at(access)
            if self.mode is not LoggingMode.ROW:
                self._look_at_mariadb_columns()
        else:
            if self.mode is not LoggingMode.ROW:
                self._look_at_mysql_columns()
            for access in self.statement.accesses:
                if self._is_opened(access):
                    self._look_at(access)

    def _look_at(self, access: TableAccess) -> None:
        known = traits(access.table, self.server)
        can = capability_now(
            known,
            logging_mode=self.mode,
            is_below_repeatable_read=self.circumstances.is_below_repeatable_read,
        )
        if self._is_unlogged_temporary(access):
            can &= ROW_ONLY
            self.forces_row = True
            self.step(f"{access.name.plain} is temporary and its creation is not in this binlog")
        is_self_logging = is_self_logging_now(known, logging_mode=self.mode)
        if is_unreplicated(access.name, self.server) or can == NEITHER:
            self.blame(Reason.SYSTEM_TABLE, access)
            if access.is_written:
                self.unreplicated_writes += 1
                self.step(f"{access.name.plain} is written, and never replicated")
                return
        else:
            self.replicated += 1
        if access.is_written:
            self._look_at_written(access, known, can, is_self_logging=is_self_logging)
        else:
            self.step(f"{access.name.plain} is read ({_engine(access)})")
        if not self._makes_table(access):
            self.access |= _class(access, known, is_written=False)
        self.accesses_self_logging |= is_self_logging
        self.accessed_engines.append(access.table.engine)

    def _is_opened(self, access: TableAccess) -> bool:
        """Whether a table is opened, and not only known to the engine by a foreign key."""
        return (
            not access.is_foreign_key
            or self.server.is_mariadb
            or self.server.has_server_foreign_keys
        )

    def _makes_table(self, access: TableAccess) -> bool:
        """Whether a table does not count as read because the command makes a base table.

        MySQL leaves out the table that is made, MariaDB also those that are selected from.
        """
        if self.statement.kind not in CREATES or self.statement.is_temporary:
            return False
        return self.server.is_mariadb or access.is_written

    def _look_at_written(
        self,
        access: TableAccess,
        known: EngineTraits,
        can: Capability,
        *,
        is_self_logging: bool,
    ) -> None:
        self.is_written = True
        self.writes_only_temporary &= access.table.is_temporary
        self.written_by_all &= can
        self.writes_self_logging |= is_self_logging
        self.written_engines.append(access.table.engine)
        self.access |= _class(access, known, is_written=True)
        self.step(f"{access.name.plain} is written ({_engine(access)}), {_ability(can)}")
        if not self.server.is_mariadb:
            if any(key.parser is not None for key in access.table.keys):
                self.blame(Reason.FULLTEXT_PLUGIN, access)
            if self.statement.is_on_duplicate and access.has_several_unique_keys:
                self.blame(Reason.INSERT_TWO_KEYS, access)

    def _is_unlogged_temporary(self, access: TableAccess) -> bool:
        return (
            self.server.is_mariadb
            and access.table.is_temporary
            and access.name in self.circumstances.unlogged_temporary
        )

    def _look_at_mariadb_columns(self) -> None:
        accesses = [
            each
            for each in self.statement.accesses
            if not each.is_foreign_key and not is_unreplicated(each.name, self.server)
        ]
        counting = self._look_at_counting(accesses)
        if self.statement.has_row_statement and self.statement.kind not in CREATES:
            for each in self.statement.accesses:
                if each.is_written and (each.has_unsafe_default or each.table.is_sequence):
                    self.blame(Reason.SYSTEM_FUNCTION, each)
        for each in counting:
            if self.circumstances.autoinc_lock_mode == 2 and each.table.engine == "INNODB":
                self.blame(Reason.AUTOINC_LOCK_MODE, each)
        if counting and counting[-1].is_prelocked:
            self.blame(Reason.AUTOINC_COLUMNS, counting[-1])

    def _look_at_mysql_columns(self) -> None:
        accesses = [each for each in self.statement.accesses if self._is_opened(each)]
        for each in self._look_at_counting(accesses):
            if each.is_prelocked:
                self.blame(Reason.AUTOINC_COLUMNS, each)
        written = [each for each in accesses if each.is_written]
        for each in written:
            if each.is_prelocked and each.has_unsafe_default:
                self.blame(Reason.DEFAULT_EXPRESSION_IN_SUBSTATEMENT, each)
        if written and not self.circumstances.has_locked_tables:
            for each in accesses:
                if each.is_acl and not each.is_written:
                    self.blame(Reason.ACL_TABLE_READ_IN_DML_DDL, each)

    def _look_at_counting(self, accesses: Sequence[TableAccess]) -> list[TableAccess]:
        """Blame what may count otherwise on a replica; gives the written tables that count."""
        written = [each for each in accesses if each.is_written]
        counting = [each for each in written if each.table.auto_increment is not None]
        if counting and len(written) < len(accesses):
            self.blame(Reason.WRITE_AUTOINC_SELECT, counting[0])
        for each in counting:
            if not each.table.is_auto_increment_first:
                self.blame(Reason.AUTOINC_NOT_FIRST, each)
        return counting

    # -- The mixture of engines

    def look_at_mixture(self) -> None:
        """Apply the rules about several engines, and those about the transaction."""
        now = self.circumstances
        is_create = not self.server.is_mariadb and self.statement.kind in CREATES
        is_in_transaction = now.is_in_transaction and not is_create
        self.is_mixed = is_mixed_unsafe(
            self.access,
            is_in_transaction=is_in_transaction,
            is_direct=now.is_direct,
            is_cache_empty=now.is_trx_cache_empty,
            is_below_repeatable_read=now.is_below_repeatable_read,
        )
        if self.is_mixed:
            self.add(self._mixture(Reason.MIXED_STATEMENT))
        elif (
            is_in_transaction
            and not now.is_trx_cache_empty
            and not now.is_direct
            and Access.WRITES_NONTRANS in self.access
        ):
            self.add(self._mixture(Reason.NONTRANS_AFTER_TRANS))
        if self.writes_self_logging and len(set(self.written_engines)) > 1:
            self.errors.append(refusals.several_engines_and_self_logging(self.server))
        elif self.accesses_self_logging and len(set(self.accessed_engines)) > 1:
            self.add(self._mixture(Reason.MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE))
        if now.is_in_xa and self.is_written and self.server.has(Fact.UNSAFE_IN_XA):
            self.add(ReasonFound(reason=Reason.XA, what="an XA transaction"))

    def _mixture(self, reason: Reason) -> ReasonFound:
        """Blame the first table that is not transactional."""
        for access in self.statement.accesses:
            if not traits(access.table, self.server).is_transactional:
                return ReasonFound(
                    reason=reason,
                    what=access.name.plain,
                    offset=access.offset,
                    length=access.length,
                    via=access.via,
                )
        return ReasonFound(reason=reason)

    def sorted_unsafe(self) -> tuple[ReasonFound, ...]:
        """The reasons in bit order."""
        return tuple(sorted(self.unsafe.values(), key=lambda found: found.reason.position))


def _class(access: TableAccess, known: EngineTraits, *, is_written: bool) -> Access:
    return access_class(
        is_written=is_written,
        is_temporary=access.table.is_temporary,
        is_transactional=known.is_transactional,
    )


def _engine(access: TableAccess) -> str:
    temporary = "temporary, " if access.table.is_temporary else ""
    return f"{temporary}{printed_engine(access.table.engine)}{_through(access)}"


def _ability(can: Capability) -> str:
    if can.is_row_capable and can.is_statement_capable:
        return "which can be logged as statement and as rows"
    if can.is_row_capable:
        return "which can be logged as rows only"
    return "which can be logged as statement only"


def _through(found: TableAccess | ReasonFound) -> str:
    if not found.via:
        return ""
    return ", through " + ", ".join(f"{via.kind} {via.name.plain}" for via in found.via)
