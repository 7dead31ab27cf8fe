"""The servers' decision: in which logging format a statement is logged, or why it is refused.

The tables are looked at one by one, and how their engines mix; what depends on the session makes
further statements unsafe; the last step is the table of seed 002: mode, safety and capability in,
logging format out.

Source: sql_class.cc (MariaDB 10.11) and binlog.cc (MySQL 9.7), `decide_logging_format`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from binlane.statements.policy import refusals
from binlane.statements.policy.engines import (
    BOTH,
    NEITHER,
    NOTHING,
    Access,
    EngineTraits,
    Formats,
    access_class,
    is_mixed_unsafe,
    is_unreplicated,
    traits,
)
from binlane.statements.policy.reasons import Reason, ReasonFound, TextPlace
from binlane.statements.policy.refusals import Refusal
from binlane.statements.policy.resolution import ResolvedStatement, TableAccess
from binlane.statements.policy.server import Circumstances, Server
from binlane.statements.sql.facts import RowChange, Shift
from binlane.statements.sql.schema import printed_engine
from binlane.statements.sql.servers import Fact, LoggingFormat, LoggingMode
from binlane.statements.sql.statement_kinds import CREATE_TABLE_KINDS, StatementKind


@dataclass(slots=True)
class Survey:
    """Findings about the tables of a statement while they are looked at one by one."""

    statement: ResolvedStatement
    circumstances: Circumstances
    unsafe: dict[Reason, ReasonFound] = field(default_factory=dict)
    errors: list[Refusal] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    access: Access = NOTHING
    written_by_all: Formats = BOTH
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
    server: Server = field(init=False)
    mode: LoggingMode = field(init=False)

    def __post_init__(self) -> None:
        now = self.circumstances
        self.server, self.mode, self.forces_row = now.server, now.logging_mode, now.is_row_forced
        for found in self.statement.reasons:
            self.add(found)

    def step(self, sentence: str) -> None:
        """Note a step of the decision."""
        self.steps.append(sentence)

    def add(self, found: ReasonFound) -> None:
        """Note that the statement is unsafe; the first that raises a reason is named."""
        if found.reason not in self.unsafe:
            self.unsafe[found.reason] = found
            what = f" ({found.what})" if found.what else ""
            self.step(f"unsafe: {found.reason.name}{what}{_through(found)}")

    def blame(self, reason: Reason, access: TableAccess) -> None:
        """Note that a table makes the statement unsafe."""
        place = TextPlace(access.via, access.offset, access.length)
        self.add(place.found(reason, access.name.plain, access.offset, access.length))

    # -- The tables, one by one

    def look_at_tables(self) -> None:
        """Collect the tables' formats, and the reasons that make the statement unsafe."""
        if self.server.is_mariadb:
            for access in self.statement.accesses:
                self._look_at(access)
            if self.mode is not LoggingMode.ROW:
                self._look_at_mariadb_columns()
        else:
            if self.mode is not LoggingMode.ROW:
                self._look_at_mysql_columns()
            for access in (*self.statement.accesses, *self.statement.dictionary):
                if self._is_opened(access):
                    self._look_at(access)

    def _look_at(self, access: TableAccess) -> None:
        known = traits(access.table, self.server)
        is_weak = self.circumstances.is_opened_below_repeatable_read
        can = known.formats_now(self.mode, is_below_repeatable_read=is_weak)
        if self._is_unlogged_temporary(access):
            can &= Formats.ROW
            self.forces_row = True
            self.step(f"{access.name.plain} is temporary and its creation is not in this binlog")
        logs_itself = known.logs_itself(self.mode)
        if is_unreplicated(access.name, self.server) or can is NEITHER:
            self.blame(Reason.SYSTEM_TABLE, access)
            if access.is_locked_for_write:
                self.unreplicated_writes += 1
                self.step(f"{access.name.plain} is written, and never replicated")
                return
        else:
            self.replicated += 1
        if access.is_locked_for_write:
            self._look_at_written(access, known, can)
        else:
            self.step(f"{access.name.plain} is read ({_engine(access)})")
        if not self._makes_table(access):
            self.access |= _class(access, known, is_written=False)
        self.accesses_self_logging |= logs_itself
        self.accessed_engines.append(access.table.engine)

    def _is_opened(self, access: TableAccess) -> bool:
        """True if a table is opened, and not only known to the engine by a foreign key."""
        return (
            not access.is_foreign_key
            or self.server.is_mariadb
            or self.server.has_server_foreign_keys
        )

    def _makes_table(self, access: TableAccess) -> bool:
        """True if a table does not count as read because the command makes a base table.

        MySQL leaves out the table that is made, MariaDB also those that are selected from.
        """
        if self.statement.kind not in CREATE_TABLE_KINDS or self.statement.is_temporary:
            return False
        return self.server.is_mariadb or access.is_locked_for_write

    def _look_at_written(self, access: TableAccess, known: EngineTraits, can: Formats) -> None:
        self.is_written = True
        self.writes_only_temporary &= access.table.is_temporary
        self.written_by_all &= can
        self.writes_self_logging |= known.logs_itself(self.mode)
        self.written_engines.append(access.table.engine)
        self.access |= _class(access, known, is_written=True)
        self.step(f"{access.name.plain} is written ({_engine(access)}), {_ABILITIES[can]}")
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
        accesses = [each for each in self.statement.accesses if not each.is_foreign_key]
        counting = self._look_at_counting(accesses)
        if self.statement.has_row_statement and self.statement.kind not in CREATE_TABLE_KINDS:
            for each in self.statement.accesses:
                if each.is_locked_for_write and (each.has_unsafe_default or each.table.is_sequence):
                    self.blame(Reason.SYSTEM_FUNCTION, each)
        for each in counting:
            if self.circumstances.autoinc_lock_mode == 2 and each.table.engine == "INNODB":
                self.blame(Reason.AUTOINC_LOCK_MODE, each)
        if counting and counting[-1].is_prelocked and not self.statement.hides_prelocked:
            self.blame(Reason.AUTOINC_COLUMNS, counting[-1])

    def _look_at_mysql_columns(self) -> None:
        opened = (*self.statement.accesses, *self.statement.dictionary)
        accesses = [each for each in opened if self._is_opened(each)]
        for each in self._look_at_counting(accesses):
            if each.is_prelocked:
                self.blame(Reason.AUTOINC_COLUMNS, each)
        written = [each for each in accesses if each.is_locked_for_write]
        for each in written:
            if each.is_prelocked and each.has_unsafe_default:
                self.blame(Reason.DEFAULT_EXPRESSION_IN_SUBSTATEMENT, each)
        if written and not self.circumstances.has_locked_tables:
            for each in accesses:
                if each.is_acl and not each.is_locked_for_write:
                    self.blame(Reason.ACL_TABLE_READ_IN_DML_DDL, each)

    def _look_at_counting(self, accesses: Sequence[TableAccess]) -> list[TableAccess]:
        """Blame tables that may count otherwise on a replica; return the written tables that count."""
        written = [each for each in accesses if each.is_locked_for_write]
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
        is_create = not self.server.is_mariadb and self.statement.kind in CREATE_TABLE_KINDS
        is_in_transaction = now.is_in_transaction and not is_create
        self.is_mixed = self._is_mixed(is_in_transaction=now.is_in_transaction)
        if self._is_mixed(is_in_transaction=is_in_transaction):
            self._blame_mixture(Reason.MIXED_STATEMENT)
        elif (
            is_in_transaction
            and not now.is_trx_cache_empty
            and not now.is_direct
            and Access.WRITES_NONTRANS in self.access
        ):
            self._blame_mixture(Reason.NONTRANS_AFTER_TRANS)
        if self.writes_self_logging and len(set(self.written_engines)) > 1:
            self.errors.append(refusals.several_engines_and_self_logging(self.server))
        elif self.accesses_self_logging and len(set(self.accessed_engines)) > 1:
            self._blame_mixture(Reason.MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE)
        if now.is_in_xa and self.is_written and self.server.has(Fact.UNSAFE_IN_XA):
            self.add(ReasonFound(reason=Reason.XA, what="an XA transaction"))

    def _is_mixed(self, *, is_in_transaction: bool) -> bool:
        now = self.circumstances
        return is_mixed_unsafe(
            self.access,
            is_in_transaction=is_in_transaction,
            is_direct=now.is_direct,
            is_cache_empty=now.is_trx_cache_empty,
            is_below_repeatable_read=now.is_below_repeatable_read,
        )

    def _blame_mixture(self, reason: Reason) -> None:
        """Blame the first table that is not transactional."""
        for access in self.statement.accesses:
            if not traits(access.table, self.server).is_transactional:
                self.blame(reason, access)
                return
        self.add(ReasonFound(reason=reason))

    # -- The decision

    def decide(self) -> Verdict:
        """Decide by the tables' formats and the logging mode."""
        found = self._format()
        if found is LoggingFormat.STATEMENT and self._meets_several_keys():
            is_statement = self.mode is LoggingMode.STATEMENT
            found = LoggingFormat.STATEMENT if is_statement else LoggingFormat.ROW
        if found is LoggingFormat.ROW and self._counts_transactions():
            found = LoggingFormat.STATEMENT
        is_filtered = self._is_filtered(found)
        if not self.errors:
            self._check_gtid_consistency(found)
            self._warn_of_blackhole()
        if is_filtered:
            self.step("only tables that are never replicated are written: nothing is logged")
        if self.errors:
            self.step(f"refused with error {self.errors[0].errno}")
            return self.verdict(None, *self.errors)
        if found is not None:
            self.step(f"mode {self.mode.value}: logged as {found.value}")
        return self.verdict(found, is_filtered=is_filtered)

    def verdict(
        self, found: LoggingFormat | None, *errors: Refusal, is_filtered: bool = False
    ) -> Verdict:
        """Build the verdict from the findings."""
        # LOAD DATA gives no notes in either server.
        is_load = self.statement.kind is StatementKind.LOAD_DATA
        return Verdict(
            logging_format=found,
            errors=errors,
            unsafe=() if is_load else self._sorted_unsafe(),
            warnings=tuple(self.warnings),
            is_filtered=is_filtered,
            is_mixed_unsafe=self.is_mixed,
            steps=tuple(self.steps),
        )

    def _sorted_unsafe(self) -> tuple[ReasonFound, ...]:
        """The reasons in bit order."""
        return tuple(sorted(self.unsafe.values(), key=lambda found: found.reason.position))

    def _meets_several_keys(self) -> bool:
        """True if MariaDB finds several unique keys when it writes the first row as statement.

        MariaDB does not look if the statement is known to be unsafe. What a trigger or function does counts
        too, but cannot turn the whole statement to rows any more.
        """
        if not self.server.is_mariadb or self.unsafe:
            return False
        for each in self.statement.accesses:
            if (
                each.has_several_unique_keys
                and RowChange.UPSERT in each.changes
                and not (each.is_prelocked and self.mode is LoggingMode.MIXED)
            ):
                self.blame(Reason.INSERT_TWO_KEYS, each)
                return True
        return False

    def _counts_transactions(self) -> bool:
        """True if MariaDB stores transaction numbers with the rows, which a log cannot have.

        Rows that only a trigger or function writes were not measured.
        """
        for access in self.statement.accesses:
            is_counting = access.table.definition.is_versioned_by_transaction
            if is_counting and access.changes and not access.is_prelocked:
                return True
        return False

    def _format(self) -> LoggingFormat | None:
        if self.written_by_all is NEITHER:
            self.errors.append(refusals.row_and_statement_engines(self.server))
            return None
        if Formats.ROW not in self.written_by_all:
            return self._format_without_rows()
        if self.mode is LoggingMode.ROW:
            return LoggingFormat.ROW
        if self.mode is LoggingMode.MIXED:
            return LoggingFormat.ROW if self._is_row_if_mixed() else LoggingFormat.STATEMENT
        return self._format_as_statement()

    def _format_without_rows(self) -> LoggingFormat | None:
        """Decide where all written tables can be logged as statement only."""
        if self.circumstances.is_row_injection:
            self.errors.append(refusals.row_injection_and_statement_engine(self.server))
        elif self.mode is LoggingMode.ROW and self.statement.has_row_statement:
            self.errors.append(refusals.row_mode_and_statement_engine(self.server))
        elif self.server.is_mariadb or self.mode is LoggingMode.MIXED:
            self.errors.extend(
                refusals.unsafe_and_statement_engine(found, self.server)
                for found in self._sorted_unsafe()
            )
        return None if self.errors else LoggingFormat.STATEMENT

    def _format_as_statement(self) -> LoggingFormat | None:
        """Decide in mode STATEMENT for tables that can be logged as rows, too."""
        is_mariadb = self.server.is_mariadb
        if self.circumstances.is_row_injection:
            if is_mariadb:
                return LoggingFormat.ROW
            self.errors.append(refusals.row_injection_and_statement_mode(self.server))
            return None
        if Formats.STATEMENT not in self.written_by_all and self.statement.has_row_statement:
            only_temporary = self.is_written and self.writes_only_temporary
            if is_mariadb and only_temporary:
                self.unsafe.clear()  # nothing is logged, and nothing noted
                return LoggingFormat.ROW
            self.errors.append(refusals.statement_mode_and_row_engine())
            return None
        return LoggingFormat.ROW if self.forces_row else LoggingFormat.STATEMENT

    def _is_row_if_mixed(self) -> bool:
        now, statement = self.circumstances, self.statement
        if self.forces_row or now.is_sub_statement:
            return self.forces_row
        takes_rows_of_temporary = self.server.has(Fact.ROWS_OF_TEMPORARY_TABLES)
        return (
            bool(self.unsafe)
            or now.is_row_injection
            or Formats.STATEMENT not in self.written_by_all
            or (self.server.is_mariadb and now.is_bulk)
            or (takes_rows_of_temporary and statement.touches_temporary)
            # LOAD DATA is set to rows when it begins, without a reason.
            or statement.kind is StatementKind.LOAD_DATA
        )

    def _is_filtered(self, found: LoggingFormat | None) -> bool:
        """True if nothing is logged because only tables that are never replicated are written."""
        if not self.unreplicated_writes:
            return False
        if self.replicated == 0 or not self.is_written:
            return True
        if found is LoggingFormat.STATEMENT:
            self.errors.append(refusals.replicated_and_other_tables(self.server))
        return False

    def _check_gtid_consistency(self, found: LoggingFormat | None) -> None:
        now = self.circumstances
        if self.server.is_mariadb or now.gtid_consistency == "OFF":
            return
        writes_nontrans = Access.WRITES_NONTRANS in self.access or (
            Access.WRITES_TEMP_NONTRANS in self.access and found is not LoggingFormat.ROW
        )
        writes_trans = bool(self.access & (Access.WRITES_TRANS | Access.WRITES_TEMP_TRANS))
        if not writes_nontrans or not (writes_trans or not now.is_trx_cache_empty):
            return
        error = refusals.NONTRANSACTIONAL_AND_GTID
        if now.gtid_consistency == "ON":
            self.errors.append(error)
        else:
            self.warnings.append((error.errno, error.message))

    def _warn_of_blackhole(self) -> None:
        verb = _CHANGES_IN_PLACE.get(self.statement.kind)
        if self.mode is not LoggingMode.ROW or verb is None:
            return
        names = [
            each.name.table
            for each in self.statement.accesses
            if each.is_locked_for_write and each.table.engine == "BLACKHOLE"
        ]
        if names:
            end = ".'" if self.server.is_mariadb else "'."
            shown = ",".join(names)[:_BLACKHOLE_NAMES_MAX]
            text = (
                f"Row events are not logged for {verb} statements that modify BLACKHOLE tables in "
                f"row format. Table(s): '{shown}{end}"
            )
            self.warnings.append((_BLACKHOLE_ERRNO[self.server.is_mariadb], text))


def _class(access: TableAccess, known: EngineTraits, *, is_written: bool) -> Access:
    return access_class(
        is_written=is_written,
        is_temporary=access.table.is_temporary,
        is_transactional=known.is_transactional,
    )


def _engine(access: TableAccess) -> str:
    temporary = "temporary, " if access.table.is_temporary else ""
    return f"{temporary}{printed_engine(access.table.engine)}{_through(access)}"


_ABILITIES: Final = {
    BOTH: "which can be logged as statement and as rows",
    Formats.ROW: "which can be logged as rows only",
    Formats.STATEMENT: "which can be logged as statement only",
    NEITHER: "which can be logged as statement only",
}


def _through(found: TableAccess | ReasonFound) -> str:
    if not found.via:
        return ""
    return ", through " + ", ".join(f"{via.kind} {via.name.plain}" for via in found.via)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision how a statement is logged.

    Attributes:
        logging_format: Format of the log; None where the statement is refused.
        errors: Errors in the order in which the server raises them; the client gets the first.
        unsafe: All unsafe reasons that hold, in bit order, each once, with what raised it. They
            become notes 1592 if mode and format are STATEMENT and the statement is logged.
        warnings: Texts with numbers that the decision itself gives at once (1870 of BLACKHOLE,
            1785 as a warning): (errno, message).
        is_filtered: Only tables that are never replicated are written: nothing is logged.
        is_mixed_unsafe: The mixed-engine rule held, which decides the cache too.
        steps: The decision's steps, one sentence each, for `--explain`.
    """

    logging_format: LoggingFormat | None
    errors: tuple[Refusal, ...] = ()
    unsafe: tuple[ReasonFound, ...] = ()
    warnings: tuple[tuple[int, str], ...] = ()
    is_filtered: bool = False
    is_mixed_unsafe: bool = False
    steps: tuple[str, ...] = ()

    def moved(self, shift: Shift) -> Verdict:
        """Return the same verdict for a statement that differs only in its literals."""
        if not self.unsafe and not self.errors:
            return self
        return replace(
            self,
            errors=tuple(error.moved(shift) for error in self.errors),
            unsafe=tuple(found.moved(shift) for found in self.unsafe),
        )


_BLACKHOLE_ERRNO: Final = {True: 1105, False: 1870}
_DELAYING_ENGINES: Final = frozenset({"MYISAM", "MEMORY", "ARCHIVE", "BLACKHOLE"})
_BLACKHOLE_NAMES_MAX: Final = 192
_CHANGES_IN_PLACE: Final = {StatementKind.UPDATE: "UPDATE", StatementKind.DELETE: "DELETE"}


def decide_statement(statement: ResolvedStatement, circumstances: Circumstances) -> Verdict:
    """Decide as the server does, before any row is touched."""
    survey = Survey(statement, circumstances)
    # MariaDB delays no INSERT where statements are logged.
    is_delayed = circumstances.delayed_mode is not LoggingMode.STATEMENT
    if statement.is_delayed and is_delayed and not circumstances.is_sub_statement:
        return _decide_delayed(statement, survey)
    refused = _refused_by_engine(statement, circumstances)
    if refused is not None:
        survey.step(f"{refused.symbol}: the engine refuses to be locked for writing")
        return survey.verdict(None, refused)
    if circumstances.is_bulk and survey.server.is_mariadb and survey.mode is LoggingMode.STATEMENT:
        return survey.verdict(None, refusals.BULK_IN_STATEMENT_MODE)
    survey.look_at_tables()
    survey.look_at_mixture()
    return survey.decide()


def _decide_delayed(statement: ResolvedStatement, survey: Survey) -> Verdict:
    """Decide INSERT DELAYED: the other thread logs rows, whatever the session's mode and the values."""
    for access in statement.accesses:
        if access.is_locked_for_write and access.table.engine not in _DELAYING_ENGINES:
            return survey.verdict(None, refusals.delay_not_supported(access.name))
    survey.step("INSERT DELAYED: another thread logs the rows")
    return Verdict(logging_format=LoggingFormat.ROW, steps=tuple(survey.steps))


def _refused_by_engine(
    statement: ResolvedStatement, circumstances: Circumstances
) -> Refusal | None:
    """Return InnoDB's own refusal of a lock for writing, which comes before the decision.

    Under LOCK TABLES the table is locked already, and the table that CREATE … SELECT makes is, in MariaDB,
    locked after the decision.
    """
    now = circumstances
    if (
        now.logging_mode is not LoggingMode.STATEMENT
        or not now.is_below_repeatable_read
        or now.has_locked_tables
        or not statement.has_row_statement
    ):
        return None
    is_create = statement.kind in CREATE_TABLE_KINDS and now.server.is_mariadb
    for index, access in enumerate(statement.accesses):
        if is_create and index == 0:
            continue
        if access.is_locked_for_write and access.table.engine.upper() == "INNODB":
            return refusals.innodb_in_statement_mode(now.server)
    return None
