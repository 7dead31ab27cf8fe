"""What a session shares between its binlogs, and how its transactions begin and end.

Handlers of statements (`dml`, `ddl`, `settings` …) work on it; `session` chooses the handler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from binlane.names import TableName
from binlane.policy.procedure import Isolation
from binlane.policy.reasons_found import ReasonFound
from binlane.policy.refusals import LoggingError
from binlane.policy.server import Server
from binlane.session.binlog import Binlog, Frame
from binlane.session.programs.environment import RoutineEnvironment
from binlane.session.programs.expression_environment import Environment
from binlane.session.programs.host import Host, ProgramState
from binlane.session.report import LoggedEvent, Note, Outcome, Refusal, Why
from binlane.session.safety import ScopeSafety
from binlane.session.sequences import SequenceValues
from binlane.session.transaction import Savepoint, Work
from binlane.session.variables import Variables
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.facts import StatementFacts
from binlane.sql.logging_mode import LoggingFormat, LoggingMode


class XaPhase(Enum):
    """How far an XA transaction of the session is."""

    ACTIVE = "ACTIVE"
    IDLE = "IDLE"
    PREPARED = "PREPARED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One statement to be carried out.

    Attributes:
        sql: As it is read.
        text: As it is logged: values stand for local variables and parameters.
        facts: What it says.
        database: The default database that it was given in.
        outcome: What happened when it ran.
        is_inner: It stands in a procedure or compound statement.
        is_condition: It stands for the condition of an IF, CASE or loop there, or for a DEFAULT.
        remembered: Unsafe reasons of its earlier executions, to which those of this one are added.
        environment: What its expressions can refer to; None for the session itself.
        failure: The error that `outcome` stands for, where the text or the objects tell it.
    """

    sql: str
    text: str
    facts: StatementFacts
    database: str
    outcome: Outcome = field(default_factory=Outcome)
    is_inner: bool = False
    is_condition: bool = False
    remembered: list[ReasonFound] = field(default_factory=list)
    environment: Environment | None = None
    failure: Refusal | None = None

    def failing(self, failure: Refusal) -> Command:
        """The same statement, which the server cannot run."""
        outcome = replace(self.outcome, error=failure.errno)
        return replace(self, outcome=outcome, failure=failure)

    @property
    def is_in_body(self) -> bool:
        """Whether it stands in a body itself; what is prepared there does not."""
        return isinstance(self.environment, RoutineEnvironment)

    @property
    def succeeds(self) -> bool:
        """Whether the server runs it without an error."""
        return self.outcome.error is None


@dataclass(slots=True)
class Run:
    """What a statement has led to so far.

    Attributes:
        error: Why it was not executed, or failed.
        notes: Notes 1592.
        formats: In which formats changes of it were logged, by binlog.
        steps: The decisions, by binlog.
        unsafe: Unsafe reasons found, by binlog.
    """

    error: Refusal | None = None
    notes: list[Note] = field(default_factory=list)
    formats: dict[str, set[LoggingFormat]] = field(default_factory=dict)
    steps: dict[str, list[str]] = field(default_factory=dict)
    unsafe: dict[str, list[str]] = field(default_factory=dict)

    def log(self, name: str, logging_format: LoggingFormat) -> None:
        """Note that changes of the statement are logged in a format."""
        self.formats.setdefault(name, set()).add(logging_format)

    def logged_as(self, name: str) -> LoggingFormat | None:
        """How the statement's changes are logged in a binlog: as rows if any of them are."""
        formats = self.formats.get(name, set())
        if LoggingFormat.ROW in formats:
            return LoggingFormat.ROW
        return LoggingFormat.STATEMENT if formats else None


@dataclass(slots=True)
class SessionState:
    """A session of one client.

    Attributes:
        server: Whose rules hold.
        objects: The server's objects, with this session's temporary tables.
        database: The default database; empty without.
        variables: System variables.
        binlogs: By name, in the order of their definitions.
        modes: Logging modes of the definitions; None where the session's binlog_format rules.
        safety: The rules of several binlogs; None where there is only the server's own.
        assume_engine: Engine of tables that nothing is known of; None refuses them.
        is_begun: BEGIN, not ended yet.
        is_active: The transaction has begun to work (SERVER_STATUS_IN_TRANS).
        isolation: Of the current transaction.
        next_isolation: Of SET TRANSACTION, which holds for one transaction.
        transaction: What it did.
        savepoints: In the order in which they were set.
        xid: Of an active XA transaction, as events print it; None without.
        xa_phase: How far that is.
        prepared_xids: XA transactions that are prepared, with the binlogs that hold them.
        left_xids: Those that outlive the session, with the binlogs that will log their end.
        row_sticky: MariaDB: binlogs in which statements stay in row format as long as temporary
            tables are open.
        temporary_order: Temporary tables, the one that was made or altered last at the end.
        has_locked_tables: LOCK TABLES is in effect.
        locked_tables: Those that it locks for writing, in its order.
        sequence_values: Where the sequences stand that were used.
        program_rows: Binlogs in which a statement of the running program was logged as rows: under
            MIXED all later ones of it are.
        programs: User variables, prepared statements and what procedures leave behind.
        host: The session, as its programs see it.
        run: What the current statement led to.
        is_in_procedure: The current statement stands in a procedure.
        null_is_insert_id: An AUTO_INCREMENT value was chosen that `IS NULL` may look for.
    """

    server: Server
    objects: SchemaCatalog
    database: str
    variables: Variables
    binlogs: dict[str, Binlog]
    host: Host
    modes: dict[str, LoggingMode] | None = None
    safety: ScopeSafety | None = None
    assume_engine: str | None = None
    is_begun: bool = False
    is_active: bool = False
    isolation: Isolation = Isolation.REPEATABLE_READ
    next_isolation: Isolation | None = None
    transaction: Work = field(default_factory=Work)
    savepoints: list[Savepoint] = field(default_factory=list)
    xid: str | None = None
    xa_phase: XaPhase | None = None
    prepared_xids: dict[str, frozenset[str]] = field(default_factory=dict)
    left_xids: dict[str, frozenset[str]] = field(default_factory=dict)
    row_sticky: set[str] = field(default_factory=set)
    temporary_order: list[TableName] = field(default_factory=list)
    has_locked_tables: bool = False
    locked_tables: tuple[TableName, ...] = ()
    sequence_values: dict[TableName, SequenceValues] = field(default_factory=dict)
    program_rows: set[str] = field(default_factory=set)
    programs: ProgramState = field(default_factory=ProgramState)
    run: Run = field(default_factory=Run)
    is_in_procedure: bool = False
    null_is_insert_id: bool = False

    @property
    def is_in_transaction(self) -> bool:
        """In a transaction of several statements: BEGIN or autocommit=0."""
        return self.is_begun or not self.variables.is_autocommit

    @property
    def is_logging(self) -> bool:
        """Whether anything of the session is logged."""
        return self.variables.is_logged

    @property
    def current_isolation(self) -> Isolation:
        """The isolation level of the current or next transaction."""
        return self.isolation if self.next_isolation is None else self.next_isolation

    def mode(self, name: str) -> LoggingMode:
        """The logging mode that rules this session in a binlog."""
        if self.modes is None or self.variables.is_format_set:
            return self.variables.logging_mode
        return self.modes[name]

    def delayed_mode(self, name: str) -> LoggingMode:
        """The logging mode of the threads that insert what INSERT DELAYED leaves to them."""
        return self.variables.global_logging_mode if self.modes is None else self.modes[name]

    def is_row_now(self, name: str) -> bool:
        """Whether a binlog has this session's statements in row format at their beginning.

        MariaDB: a statement that was logged as rows while temporary tables are open leaves the
        session in row format until they are gone.
        """
        if not self.objects.temporary_tables():
            self.row_sticky.discard(name)
        return self.mode(name) is LoggingMode.ROW or name in self.row_sticky

    def frame(
        self, name: str, work: Work, logging_format: LoggingFormat = LoggingFormat.STATEMENT
    ) -> Frame:
        """In which a statement writes to a binlog."""
        return Frame(
            mode=self.mode(name),
            logging_format=logging_format,
            is_in_transaction=self.is_in_transaction,
            is_direct=self.variables.is_direct,
            statement=work,
            transaction=self.transaction,
        )

    def begin(self) -> None:
        """START TRANSACTION: what was open is committed, locked tables are unlocked."""
        if self.is_in_transaction or self.is_active:
            self.commit()
        self.has_locked_tables, self.locked_tables = False, ()
        self.is_begun = True
        self.is_active = True

    def implicit_commit(self) -> None:
        """Commit what is open, as most DDL does first; SET TRANSACTION ends with it in any case."""
        if self.is_in_transaction or self.is_active:
            self.commit()
        else:
            self.reset_isolation()

    def commit(self) -> None:
        """Commit the transaction."""
        for binlog in self.binlogs.values():
            binlog.commit(self.transaction)
        self.end_transaction()

    def roll_back(self, *, is_xa: bool = False) -> None:
        """Roll back the transaction."""
        nothing = Work()
        for name, binlog in self.binlogs.items():
            frame = self.frame(name, nothing)
            if is_xa:
                binlog.keep_unsafe(frame)
            binlog.roll_back(frame)
        self.end_transaction()

    def end_transaction(self) -> None:
        """Forget the transaction that ended."""
        self.is_begun = False
        self.is_active = False
        self.transaction = Work()
        self.savepoints.clear()
        self.reset_isolation()
        if self.safety is not None:
            self.safety.transaction_ended()

    def reset_isolation(self) -> None:
        """The next transaction has the session's isolation level again."""
        self.next_isolation = None
        self.isolation = self.variables.isolation

    def end_statement(
        self,
        work: Work,
        *,
        succeeds: bool,
        formats: Mapping[str, LoggingFormat] | None = None,
    ) -> None:
        """End a statement in all binlogs, and its own transaction where there is no other."""
        for name, binlog in self.binlogs.items():
            logging_format = (formats or {}).get(name, LoggingFormat.STATEMENT)
            frame = self.frame(name, work, logging_format)
            if succeeds:
                binlog.end_statement(frame)
            else:
                binlog.roll_back_statement(frame)
        if self.is_in_transaction:
            # MySQL begins with temporary tables that come and go, too, and with those not there.
            is_begun = work.changed_temporary_tables and not self.server.is_mariadb
            is_begun |= any(binlog.is_registered for binlog in self.binlogs.values())
            self.is_active |= bool(work.engines) or is_begun
            if succeeds:
                self.transaction.merge(work)
            else:
                self._merge_failed(work)
        elif work.engines:
            self.reset_isolation()

    def _merge_failed(self, work: Work) -> None:
        for name, use in work.engines.items():
            self.transaction.uses(name, has_two_phases=use.has_two_phases)
        self.transaction.merge_flags(work)

    def made_temporary(self, name: TableName, *, instead_of: TableName | None = None) -> None:
        """A temporary table was created, or made anew by ALTER or RENAME."""
        self.gone_temporary(instead_of or name)
        self.temporary_order.append(name)

    def gone_temporary(self, name: TableName) -> None:
        """A temporary table was dropped."""
        if name in self.temporary_order:
            self.temporary_order.remove(name)

    def refuse(self, error: LoggingError, binlogs: tuple[str, ...] = ()) -> None:
        """Refuse the current statement; the first refusal counts."""
        cause = error.cause
        why = (
            ()
            if cause is None
            else (Why(what=cause.what, offset=cause.offset, length=cause.length),)
        )
        self.fail(
            Refusal(
                errno=error.errno,
                sqlstate=error.sqlstate,
                symbol=error.symbol,
                message=error.message,
                binlogs=binlogs,
                why=why,
            )
        )

    def fail(self, refusal: Refusal) -> None:
        """End the current statement with an error; the first one counts."""
        if self.run.error is None:
            self.run.error = refusal

    def each_logging(self) -> Mapping[str, Binlog]:
        """The binlogs that are written now."""
        return self.binlogs if self.is_logging else {}


Handler = Callable[[SessionState, Command], None]
"""Carries out statements of one kind."""


def write_directly(
    state: SessionState, events: list[LoggedEvent], names: frozenset[str] | None = None
) -> None:
    """Write a statement that is a group by itself to all binlogs, or some."""
    for name, binlog in state.each_logging().items():
        if names is None or name in names:
            binlog.write_directly(events)
            state.run.log(name, LoggingFormat.STATEMENT)
