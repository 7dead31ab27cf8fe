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

from binlane.policy import refusals
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
from binlane.policy.refusals import Refusal
from binlane.policy.resolution import ResolvedStatement, TableAccess
from binlane.policy.server import Circumstances, Server
from binlane.sql.facts import RowChange, Shift, StatementKind
from binlane.sql.servers import Fact, LoggingFormat, LoggingMode
from binlane.sql.table_changes import printed_engine

CREATES: Final = frozenset({StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_SELECT})
"""Commands that make a table."""


@dataclass(slots=True)
class Survey:
    """What is found while the tables of a statement are looked at."""

    statement: ResolvedStatement
    circumstances: Circumstances
    unsafe: dict[Reason, ReasonFound] = field(default_factory=dict)
    errors: list[Refusal] = field(default_factory=list)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a statement is logged.

    Attributes:
        logging_format: None where it is refused.
        errors: In the order in which the server raises them; the client gets the first.
        unsafe: All unsafe reasons that hold, in bit order, each once, with what raised it. They
            become notes 1592 if mode and format are STATEMENT and the statement is logged.
        warnings: Texts with numbers that the decision itself gives at once (1870 of BLACKHOLE,
            1785 as a warning): (errno, message).
        is_filtered: Only tables that are never replicated are written: nothing is logged.
        is_mixed_unsafe: The mixed-engine rule held, which decides the cache too.
        steps: What was looked at, one sentence each, for `--explain`.
    """

    logging_format: LoggingFormat | None
    errors: tuple[Refusal, ...] = ()
    unsafe: tuple[ReasonFound, ...] = ()
    warnings: tuple[tuple[int, str], ...] = ()
    is_filtered: bool = False
    is_mixed_unsafe: bool = False
    steps: tuple[str, ...] = ()

    def moved(self, shift: Shift) -> Verdict:
        """The same for a statement that differs only in its literals."""
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
    if _is_delayed(statement, circumstances):
        return _decide_delayed(statement, survey)
    refused = _refused_by_engine(statement, circumstances)
    if refused is not None:
        survey.step(f"{refused.symbol}: the engine refuses to be locked for writing")
        return _verdict(survey, None, refused)
    if (
        circumstances.is_bulk
        and circumstances.server.is_mariadb
        and circumstances.logging_mode is LoggingMode.STATEMENT
    ):
        return _verdict(survey, None, refusals.BULK_IN_STATEMENT_MODE)
    survey.look_at_tables()
    survey.look_at_mixture()
    return _decide(survey)


def _is_delayed(statement: ResolvedStatement, circumstances: Circumstances) -> bool:
    """Whether the rows are left to another thread; it is not done where statements are logged."""
    return (
        statement.is_delayed
        and circumstances.delayed_mode is not LoggingMode.STATEMENT
        and not circumstances.is_sub_statement
    )


def _decide_delayed(statement: ResolvedStatement, survey: Survey) -> Verdict:
    """The other thread logs rows, whatever the session's mode and the values' expressions."""
    for access in statement.accesses:
        if access.is_written and access.table.engine not in _DELAYING_ENGINES:
            return _verdict(survey, None, refusals.delay_not_supported(access.name))
    survey.step("INSERT DELAYED: another thread logs the rows")
    return Verdict(logging_format=LoggingFormat.ROW, steps=tuple(survey.steps))


def _decide(survey: Survey) -> Verdict:
    """Look up what the tables can in what the mode wants."""
    found = _format(survey)
    if found is LoggingFormat.STATEMENT and _meets_several_keys(survey):
        found = (
            LoggingFormat.STATEMENT if survey.mode is LoggingMode.STATEMENT else LoggingFormat.ROW
        )
    is_filtered = _is_filtered(survey, found)
    if not survey.errors:
        _check_gtid_consistency(survey, found)
        _warn_of_blackhole(survey)
    if is_filtered:
        survey.step("only tables that are never replicated are written: nothing is logged")
    if survey.errors:
        survey.step(f"refused with error {survey.errors[0].errno}")
        return _verdict(survey, None, *survey.errors)
    if found is not None:
        survey.step(f"mode {survey.mode.value}: logged as {found.value}")
    return _verdict(survey, found, is_filtered=is_filtered)


def _meets_several_keys(survey: Survey) -> bool:
    """Whether MariaDB finds several unique keys when it writes the first row as statement.

    It does not look if the statement is known to be unsafe. What a trigger or function does
    counts too, but cannot turn the whole statement to rows any more.
    """
    if not survey.server.is_mariadb or survey.unsafe:
        return False
    for each in survey.statement.accesses:
        if (
            each.has_several_unique_keys
            and RowChange.UPSERT in each.changes
            and not (each.is_prelocked and survey.mode is LoggingMode.MIXED)
        ):
            survey.blame(Reason.INSERT_TWO_KEYS, each)
            return True
    return False


def _format(survey: Survey) -> LoggingFormat | None:
    can = survey.written_by_all
    if can == NEITHER:
        survey.errors.append(refusals.row_and_statement_engines(survey.server))
        return None
    if not can.is_row_capable:
        return _format_without_rows(survey)
    if survey.mode is LoggingMode.ROW:
        return LoggingFormat.ROW
    if survey.mode is LoggingMode.MIXED:
        return _format_if_mixed(survey)
    return _format_as_statement(survey)


def _format_without_rows(survey: Survey) -> LoggingFormat | None:
    """All written tables can be logged as statement only."""
    now, statement = survey.circumstances, survey.statement
    is_unsafe = bool(survey.unsafe)
    if now.is_row_injection:
        survey.errors.append(refusals.row_injection_and_statement_engine(survey.server))
    elif survey.mode is LoggingMode.ROW and statement.has_row_statement:
        survey.errors.append(refusals.row_mode_and_statement_engine(survey.server))
    elif is_unsafe and (survey.server.is_mariadb or survey.mode is LoggingMode.MIXED):
        survey.errors.extend(
            refusals.unsafe_and_statement_engine(found, survey.server)
            for found in survey.sorted_unsafe()
        )
    return None if survey.errors else LoggingFormat.STATEMENT


def _format_as_statement(survey: Survey) -> LoggingFormat | None:
    """Mode STATEMENT, and the tables can be logged as rows too."""
    now, statement = survey.circumstances, survey.statement
    if now.is_row_injection:
        if survey.server.is_mariadb:
            return LoggingFormat.ROW
        survey.errors.append(refusals.row_injection_and_statement_mode(survey.server))
        return None
    if not survey.written_by_all.is_statement_capable and statement.has_row_statement:
        only_temporary = survey.is_written and survey.writes_only_temporary
        if survey.server.is_mariadb and (only_temporary or survey.forces_row):
            return LoggingFormat.ROW
        survey.errors.append(refusals.statement_mode_and_row_engine())
        return None
    return LoggingFormat.ROW if survey.forces_row else LoggingFormat.STATEMENT


def _format_if_mixed(survey: Survey) -> LoggingFormat:
    if survey.circumstances.is_sub_statement:
        return LoggingFormat.ROW if survey.forces_row else LoggingFormat.STATEMENT
    is_row = (
        bool(survey.unsafe)
        or survey.circumstances.is_row_injection
        or not survey.written_by_all.is_statement_capable
        or survey.forces_row
    )
    if survey.server.is_mariadb:
        is_row |= survey.circumstances.is_bulk
    if survey.server.has(Fact.ROWS_OF_TEMPORARY_TABLES):
        is_row |= survey.statement.is_temporary or _touches_temporary(survey)
    # LOAD DATA is set to rows when it begins, without a reason.
    is_row |= survey.statement.kind is StatementKind.LOAD_DATA
    return LoggingFormat.ROW if is_row else LoggingFormat.STATEMENT


def _touches_temporary(survey: Survey) -> bool:
    return any(each.table.is_temporary for each in survey.statement.accesses)


def _is_filtered(survey: Survey, found: LoggingFormat | None) -> bool:
    """Whether nothing is logged because only tables that are never replicated are written."""
    if not survey.unreplicated_writes:
        return False
    if survey.replicated == 0 or not survey.is_written:
        return True
    if found is LoggingFormat.STATEMENT:
        survey.errors.append(refusals.replicated_and_other_tables(survey.server))
    return False


def _check_gtid_consistency(survey: Survey, found: LoggingFormat | None) -> None:
    now = survey.circumstances
    if survey.server.is_mariadb or now.gtid_consistency == "OFF":
        return
    writes_nontrans = Access.WRITES_NONTRANS in survey.access or (
        Access.WRITES_TEMP_NONTRANS in survey.access and found is not LoggingFormat.ROW
    )
    writes_trans = bool(survey.access & (Access.WRITES_TRANS | Access.WRITES_TEMP_TRANS))
    if not writes_nontrans:
        return
    if writes_trans or not now.is_trx_cache_empty:
        error = refusals.NONTRANSACTIONAL_AND_GTID
        if now.gtid_consistency == "ON":
            survey.errors.append(error)
        else:
            survey.warnings.append((error.errno, error.message))


def _warn_of_blackhole(survey: Survey) -> None:
    verb = _CHANGES_IN_PLACE.get(survey.statement.kind)
    if survey.mode is not LoggingMode.ROW or verb is None:
        return
    names = [
        each.name.table
        for each in survey.statement.accesses
        if each.is_written and each.table.engine == "BLACKHOLE"
    ]
    if names:
        end = ".'" if survey.server.is_mariadb else "'."
        shown = ",".join(names)[:_BLACKHOLE_NAMES_MAX]
        text = (
            f"Row events are not logged for {verb} statements that modify BLACKHOLE tables in "
            f"row format. Table(s): '{shown}{end}"
        )
        survey.warnings.append((_BLACKHOLE_ERRNO[survey.server.is_mariadb], text))


def _verdict(
    survey: Survey, found: LoggingFormat | None, *errors: Refusal, is_filtered: bool = False
) -> Verdict:
    """What has been found."""
    return Verdict(
        logging_format=found,
        errors=errors,
        # LOAD DATA gives no notes in either server.
        unsafe=() if survey.statement.kind is StatementKind.LOAD_DATA else survey.sorted_unsafe(),
        warnings=tuple(survey.warnings),
        is_filtered=is_filtered,
        is_mixed_unsafe=survey.is_mixed,
        steps=tuple(survey.steps),
    )


def _refused_by_engine(
    statement: ResolvedStatement, circumstances: Circumstances
) -> Refusal | None:
    """InnoDB's own refusal when it is locked for writing, which comes before the decision.

    Under LOCK TABLES it is locked already, and the table that CREATE … SELECT makes is, in
    MariaDB, locked after the decision.
    """
    now = circumstances
    if (
        now.logging_mode is not LoggingMode.STATEMENT
        or not now.is_below_repeatable_read
        or now.has_locked_tables
        or not statement.has_row_statement
    ):
        return None
    is_create = statement.kind in CREATES and now.server.is_mariadb
    for index, access in enumerate(statement.accesses):
        if is_create and index == 0:
            continue
        if access.is_written and access.table.engine.upper() == "INNODB":
            return refusals.statement_mode_and_row_engine(is_innodb=True)
    return None
