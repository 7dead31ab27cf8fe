"""What a statement does while it is followed: rows, function calls, values that are logged with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple

from binlane.names import TableName, quote
from binlane.policy.refusals import Outcome, Refusal
from binlane.policy.resolution import ResolvedStatement
from binlane.policy.server import Server
from binlane.programs.conditions import Raised
from binlane.sql.evaluation.values import (
    UNKNOWN,
    UNKNOWN_TEXT,
    Temporal,
    Value,
    number_text,
)
from binlane.sql.facts import StatementFacts
from binlane.sql.schema import ForeignKey
from binlane.sql.tree.expressions import TableUse
from binlane.sql.tree.statements import Delete, Update


class UserVariable(NamedTuple):
    """Stands for the USER_VAR event of a variable that a statement reads.

    Attributes:
        name: Without `@`.
        value: Before that statement.
    """

    name: str
    value: Value


def printed_variable(variable: UserVariable, server: Server) -> str:
    """What SHOW BINLOG EVENTS of a server prints of a `User var` event."""
    name, value = variable
    if value is None:
        shown = "NULL"
    elif value is UNKNOWN:
        shown = UNKNOWN_TEXT
    elif isinstance(value, int | float | Decimal):
        shown = number_text(value)
    elif isinstance(value, Temporal):
        shown = f"'{value.text}'"
    else:
        digits = value.encoded.hex().upper()
        bytes_text = f"X'{digits}'" if server.is_mariadb else f"0x{digits}"
        if not digits:
            bytes_text = '""'
        shown = f"_{value.charset} {bytes_text} COLLATE {value.collation}"
    return f"@{quote(name)}={shown}"


class SessionValues(NamedTuple):
    """Values of the session that a logged text depends on, and that are logged before it.

    Attributes:
        last_insert_id: LAST_INSERT_ID() is read.
        insert_id: The server chose AUTO_INCREMENT values.
        random: RAND() is called.
    """

    last_insert_id: bool = False
    insert_id: bool = False
    random: bool = False

    def with_those(self, other: SessionValues) -> SessionValues:
        """Those of both."""
        if other is NO_VALUES:
            return self
        return SessionValues(*(one or two for one, two in zip(self, other, strict=True)))


NO_VALUES: Final = SessionValues()


class RowRun(NamedTuple):
    """Rows of one kind written to one table, one after the other.

    Attributes:
        table: Which.
        kind: `insert`, `update` or `delete`.
        is_cascade: A foreign key changes them.
    """

    table: TableName
    kind: str
    is_cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A call of a stored function by SELECT, DO or SET that is logged in statement format.

    Attributes:
        text: ``SELECT `db`.`f`(args)``.
        writes: The tables that its statements write.
        user_variables: Those that are logged before it.
        values: What else is logged before it.
    """

    text: str
    writes: frozenset[TableName]
    user_variables: tuple[UserVariable, ...] = ()
    values: SessionValues = NO_VALUES


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What a statement does to rows, through its triggers and functions.

    Attributes:
        runs: In the order in which the server writes them; equal neighbours are one.
        annotation: The text of the statement that changes the first row: the statement itself,
            or one of a function or BEFORE trigger.
        calls: Of SELECT, DO and SET: function calls that are logged in statement format.
        user_variables: Those that are logged before a statement that is logged as its text.
        values: What its functions and triggers depend on, to be logged before its text.
        error: With which a function or trigger stopped it.
    """

    runs: tuple[RowRun, ...] = ()
    annotation: str = ""
    calls: tuple[FunctionCall, ...] = ()
    user_variables: tuple[UserVariable, ...] = ()
    values: SessionValues = NO_VALUES
    error: Refusal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A statement to be followed.

    Attributes:
        facts: What it says.
        resolved: Its tables.
        sql: Its text.
        logged: Its text with local variables replaced.
        outcome: What happened.
    """

    facts: StatementFacts
    resolved: ResolvedStatement
    sql: str
    logged: str
    outcome: Outcome = field(default_factory=Outcome)

    @property
    def has_portion(self) -> bool:
        """FOR PORTION OF."""
        tree = self.facts.tree
        tables = tree.tables if isinstance(tree, Update | Delete) else ()
        return any(isinstance(one, TableUse) and one.portion is not None for one in tables)

    @property
    def is_of_history(self) -> bool:
        """DELETE HISTORY."""
        return isinstance(self.facts.tree, Delete) and "HISTORY" in self.facts.tree.modifiers

    def set_columns(self, table: TableName) -> frozenset[str] | None:
        """The columns of a table that it sets, in small letters; None: it may be any."""
        for access in self.resolved.accesses:
            if access.name == table and access.set_columns:
                return access.set_columns
        return None

    def follows(self, key: ForeignKey) -> bool:
        """Whether it changes rows of a child by a foreign key; what refers to itself is not."""
        return key.table != key.parent and any(
            access.is_foreign_key and access.changes and access.name == key.table
            for access in self.resolved.accesses
        )

    @property
    def own_tables(self) -> frozenset[TableName]:
        """The tables that it itself uses, through views too; they stay open while it runs."""
        return frozenset(
            access.name for access in self.resolved.accesses if not access.is_prelocked
        )


_SECOND: Final = 2


@dataclass(slots=True)
class CallRecord:
    """A function call of SELECT, DO or SET while it runs.

    Attributes:
        is_logged: A statement in it would be logged by itself.
        writes: Tables that its statements change.
        user_variables: Those that they read.
        values: What else they depend on.
    """

    is_logged: bool = False
    writes: set[TableName] = field(default_factory=set)
    user_variables: list[UserVariable] = field(default_factory=list)
    values: SessionValues = NO_VALUES


class Recorder:
    """What happened so far.

    Attributes:
        calls: Finished function calls of SELECT, DO or SET.
        raised: What stopped the statement.
    """

    def __init__(self, *, is_mariadb: bool) -> None:
        """Start with nothing."""
        self.calls: list[FunctionCall] = []
        self.raised: Raised | None = None
        self._is_mariadb = is_mariadb
        self._runs: list[RowRun] = []
        self._annotation: str | None = None
        self._user_variables: list[UserVariable] = []
        self._values = NO_VALUES
        self._is_random = False
        self._read: set[str] = set()
        self._started = 0
        self._call: CallRecord | None = None

    def state(self) -> object:
        """What has a bearing on what comes: which rows changed, and how a call is logged."""
        call = self._call
        return (
            sorted(map(repr, set(self._runs))),
            None if call is None else (call.is_logged, sorted(map(repr, call.writes)), call.values),
            self._values,
            self.raised,
        )

    def trace(self, logged: str) -> Trace:
        """The result; `logged` annotates rows that no other statement changed first."""
        return Trace(
            runs=tuple(self._runs),
            annotation=logged if self._annotation is None else self._annotation,
            calls=tuple(self.calls),
            user_variables=tuple(self._user_variables),
            values=self._values,
            error=None if self.raised is None else self.raised.as_refusal,
        )

    @contextmanager
    def call(self) -> Iterator[CallRecord]:
        """A function call of SELECT, DO or SET."""
        # The servers forget that RAND() was called only at the end of the whole statement.
        self._call = CallRecord(values=SessionValues(random=self._is_random))
        self._read.clear()
        self._started = 0
        yield self._call
        self._is_random = self._call.values.random
        self._call = None

    def changes(self, run: RowRun, text: str) -> None:
        """A row changed; `text` is of the statement that changed it."""
        if self._annotation is None:
            self._annotation = text
        if not self._runs or self._runs[-1] != run:
            self._runs.append(run)

    def logs(self, table: TableName) -> None:
        """A statement of a function changes a table."""
        if self._call is not None:
            self._call.is_logged = True
            self._call.writes.add(table)

    def starts_statement(self) -> None:
        """A statement or expression of a function or trigger begins.

        MariaDB logs a variable once, but does not count what the first statement of a function
        that SELECT, DO or SET call read.
        """
        self._started += 1
        if self._is_mariadb and self._call is not None and self._started == _SECOND:
            self._read.clear()

    def reads_variable(self, name: str, value: Value) -> None:
        """A user variable is read."""
        if name in self._read:
            return
        self._read.add(name)
        read = self._user_variables if self._call is None else self._call.user_variables
        read.append(UserVariable(name, value))

    def depends_on(self, values: SessionValues) -> None:
        """A statement of a function or trigger depends on values of the session."""
        if self._call is None:
            self._values = self._values.with_those(values)
        else:
            self._call.values = self._call.values.with_those(values)

    def assigns_variable(self, name: str, is_new: bool) -> None:  # noqa: FBT001  # a callback
        """A function or trigger sets a user variable.

        MySQL does not log it when it is read later on; MariaDB does, unless it was not there before.
        """
        if is_new or not self._is_mariadb:
            self._read.add(name)
