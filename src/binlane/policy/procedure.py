"""The servers' decision: in which logging format a statement is logged, or why it is refused.

The tables are looked at one by one, what depends on the session makes further statements unsafe,
and the last step is the table of seed 002: mode, safety and capability in, logging format out.

Source: sql_class.cc (MariaDB 10.11) and binlog.cc (MySQL 9.7), `decide_logging_format`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from binlane.policy import refusals
from binlane.policy.access import ResolvedStatement
from binlane.policy.engines import NEITHER, Access
from binlane.policy.reasons import Reason, ReasonFound
from binlane.policy.refusals import LoggingError
from binlane.policy.server import Circumstances, Isolation
from binlane.policy.survey import CREATES, Survey
from binlane.sql.facts import RowChange, Shift, StatementKind
from binlane.sql.servers import Fact, LoggingFormat, LoggingMode

__all__ = [
    "Circumstances",
    "Isolation",
    "LoggingError",
    "Verdict",
    "decide_statement",
]


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
    errors: tuple[LoggingError, ...] = ()
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
        return _verdict(survey, None, refusals.bulk_in_statement_mode())
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
        error = refusals.nontransactional_and_gtid()
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
    survey: Survey, found: LoggingFormat | None, *errors: LoggingError, is_filtered: bool = False
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
) -> LoggingError | None:
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
