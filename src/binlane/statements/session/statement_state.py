"""The state of one statement of a session while it runs, and what it does to temporary tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

from binlane.names import TableName
from binlane.statements.policy.refusals import Outcome, Refusal
from binlane.statements.programs.environment import RoutineEnvironment
from binlane.statements.programs.host import Remembered
from binlane.statements.session.report import Note
from binlane.statements.session.variables import Settings
from binlane.statements.sql.evaluation.known_names import Environment
from binlane.statements.sql.facts import (
    StatementFacts,
)
from binlane.statements.sql.servers import LoggingFormat, RowImage


@dataclass(slots=True)
class SequenceValues:
    """The present state of a sequence.

    Attributes:
        next_value: The value that NEXTVAL gives next.
        reserved: Number of values left of those that the sequence's row says are taken.
    """

    next_value: int
    reserved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatement:
    """One statement to be carried out.

    Attributes:
        sql: Text as the server reads it.
        text: Text as it is logged: values stand for local variables and parameters.
        facts: Facts of the statement's text.
        database: The default database at the start of the statement.
        outcome: Result of the statement's execution.
        is_inner: The statement stands in a procedure or compound statement.
        is_condition: The statement stands for the condition of an IF, CASE or loop there, or for a DEFAULT.
        remembered: Unsafe reasons of earlier executions, to which those of this one are added.
        environment: Names that expressions can refer to; None for those of the session itself.
        failure: The error that `outcome` stands for, where the text or the objects tell it.
    """

    sql: str
    text: str
    facts: StatementFacts
    database: str
    outcome: Outcome = field(default_factory=Outcome)
    is_inner: bool = False
    is_condition: bool = False
    remembered: Remembered = field(default_factory=Remembered)
    environment: Environment | None = None
    failure: Refusal | None = None

    def failing(self, failure: Refusal) -> SessionStatement:
        """The same statement, which the server cannot run."""
        outcome = self.outcome._replace(error=failure.errno)
        return replace(self, outcome=outcome, failure=failure)

    @property
    def is_in_body(self) -> bool:
        """True if the statement itself stands in a body; statements prepared there do not."""
        return isinstance(self.environment, RoutineEnvironment)

    @property
    def succeeds(self) -> bool:
        """True if the server runs the statement without an error."""
        return self.outcome.error is None


class TemporaryChange(IntEnum):
    """Effect of a statement on a temporary table; of several effects the greatest counts.

    FILLED: the table is made with rows.
    """

    NOTHING = 0
    ROWS = 1
    ALTERED = 2
    DROPPED = 3
    MADE = 4
    FILLED = 5


class TemporaryUse(NamedTuple):
    """A statement's use of a temporary table.

    Attributes:
        change: Effect on the table; NOTHING if the statement only reads it.
        has_rollback: A rollback undoes changes of its rows.
        replaces: The statement makes the table in place of one that may exist.
        new_name: Name that the statement gives the table; None if the name stays.
    """

    change: TemporaryChange
    has_rollback: bool
    replaces: bool = False
    new_name: TableName | None = None


@dataclass(slots=True)
class Execution:
    """One statement of the client while it runs: its effects so far.

    Attributes:
        error: Error that kept the statement from running, or made it fail.
        notes: Notes 1592 that the statement has raised.
        formats: Formats in which changes of the statement were logged, by binlog.
        steps: Steps of the decisions, by binlog.
        unsafe: Unsafe reasons found, by binlog.
        row_binlogs: Binlogs in which a statement of the client's program was logged as rows: under MIXED all
            later statements of the program are.
        is_in_procedure: The statement that runs now stands in a procedure.
        is_inner: The statement that runs now stands in a program.
        number: Number of the statement that runs now; see `SessionState.number`.
        is_unlogged: Some part of the statement ran with sql_log_bin=0.
        row_image: The binlog_row_image with which the statement ran.
        temporary: Uses of temporary tables, by the number of the using statement and the table's name.
        failed: Numbers of the statements of its programs that failed.
    """

    error: Refusal | None = None
    notes: list[Note] = field(default_factory=list)
    formats: dict[str, set[LoggingFormat]] = field(default_factory=dict)
    steps: dict[str, list[str]] = field(default_factory=dict)
    unsafe: dict[str, list[str]] = field(default_factory=dict)
    row_binlogs: set[str] = field(default_factory=set)
    is_in_procedure: bool = False
    is_inner: bool = False
    number: int = 0
    is_unlogged: bool = False
    row_image: RowImage = RowImage.FULL
    temporary: dict[int, dict[TableName, TemporaryUse]] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)

    @contextmanager
    def inner(self, *, is_in_procedure: bool) -> Iterator[None]:
        """Run a statement of a program; its error is no error of the outer one until that says so."""
        outer = self.error, self.is_in_procedure, self.is_inner
        self.error, self.is_in_procedure, self.is_inner = None, is_in_procedure, True
        try:
            yield
        finally:
            self.error, self.is_in_procedure, self.is_inner = outer

    def note_settings(self, settings: Settings, *, is_inner: bool) -> None:
        """Note with which settings the statement runs, or one of its programs."""
        self.is_unlogged |= not settings.is_logged
        if not is_inner:
            self.row_image = settings.row_image

    def log(self, name: str, logging_format: LoggingFormat) -> None:
        """Note that changes of the statement are logged in a format."""
        self.formats.setdefault(name, set()).add(logging_format)

    def logged_as(self, name: str) -> LoggingFormat | None:
        """Return the format of the statement's changes in a binlog: rows if any of them are."""
        formats = self.formats.get(name, set())
        if LoggingFormat.ROW in formats:
            return LoggingFormat.ROW
        return LoggingFormat.STATEMENT if formats else None

    def copy(self) -> Execution:
        """Copy the present state."""
        return Execution(
            error=self.error,
            notes=self.notes.copy(),
            formats={name: one.copy() for name, one in self.formats.items()},
            steps={name: one.copy() for name, one in self.steps.items()},
            unsafe={name: one.copy() for name, one in self.unsafe.items()},
            row_binlogs=self.row_binlogs.copy(),
            is_in_procedure=self.is_in_procedure,
            is_inner=self.is_inner,
            number=self.number,
            is_unlogged=self.is_unlogged,
            row_image=self.row_image,
            temporary={number: dict(one) for number, one in self.temporary.items()},
            failed=self.failed.copy(),
        )


@dataclass(slots=True)
class OpenTemporaryTables:
    """The session's memory of its temporary tables, beside their definitions.

    Attributes:
        names: Names of the tables, the one that was made or altered last at the end.
        row_binlogs: Binlogs in which MariaDB's statements stay in row format as long as temporary tables are
            open.
    """

    names: list[TableName] = field(default_factory=list)
    row_binlogs: set[str] = field(default_factory=set)

    def made(self, name: TableName, *, instead_of: TableName | None = None) -> None:
        """Note a table that was created, or made anew by ALTER."""
        self.gone(instead_of or name)
        self.names.append(name)

    def renamed(self, old: TableName, new: TableName) -> None:
        """Note that RENAME TABLE has given a table another name; it keeps its place."""
        self.names = [new if name == old else name for name in self.names]

    def gone(self, name: TableName) -> None:
        """Note a table that was dropped."""
        if name in self.names:
            self.names.remove(name)

    def copy(self) -> OpenTemporaryTables:
        """Copy the present state."""
        return OpenTemporaryTables(self.names.copy(), self.row_binlogs.copy())
