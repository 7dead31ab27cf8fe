"""Effects of a statement while it is followed: rows, function calls, values that are logged with it.

The changes of rows and their triggers come one after the other, in the order of the servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.names import TableName
from binlane.statements.policy.refusals import Outcome, Refusal
from binlane.statements.policy.resolution import ResolvedStatement, TableAccess
from binlane.statements.programs.host import NO_VALUES, LoggedVariable, SessionValues
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.evaluation.values import Value
from binlane.statements.sql.facts import RowChange, StatementFacts
from binlane.statements.sql.schema import ForeignKey, TriggerTime
from binlane.statements.sql.tree.expressions import NamedTable, Select, Star
from binlane.statements.sql.tree.statements import Delete, Insert, Update


class RowRun(NamedTuple):
    """Rows of one kind written to one table, one after the other.

    Attributes:
        table: The table that is written.
        kind: Kind of change: `insert`, `update` or `delete`.
        is_cascade: A foreign key changes the rows.
    """

    table: TableName
    kind: str
    is_cascade: bool = False


@dataclass(slots=True)
class FunctionCall:
    """A call of a stored function by SELECT, DO or SET.

    Attributes:
        values: Session values that are logged before the call, beside user variables.
        text: The call as it is logged in statement format: ``SELECT `db`.`f`(args)``.
        is_logged: A statement in the function would be logged by itself.
        writes: The tables that the function's statements write.
        user_variables: User variables that the function's statements read.
    """

    values: SessionValues
    text: str = ""
    is_logged: bool = False
    writes: set[TableName] = field(default_factory=set)
    user_variables: list[LoggedVariable] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The effects of a statement on rows, through its triggers and functions.

    Attributes:
        runs: Row runs in the order in which the server writes them; equal neighbours are one.
        annotation: The text of the statement that changes the first row: the statement itself, or one of a
            function or BEFORE trigger.
        calls: Function calls of SELECT, DO and SET that are logged in statement format.
        user_variables: User variables that are logged before a statement that is logged as its text.
        values: Session values that functions and triggers depend on, to be logged before the text.
        error: Error with which a function or trigger stopped the statement.
    """

    runs: tuple[RowRun, ...] = ()
    annotation: str = ""
    calls: tuple[FunctionCall, ...] = ()
    user_variables: tuple[LoggedVariable, ...] = ()
    values: SessionValues = NO_VALUES
    error: Refusal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A statement to be followed.

    Attributes:
        facts: Facts of the statement's text.
        resolved: The statement's tables with its accesses.
        logged: The statement's text with local variables replaced.
        outcome: Result of the statement's execution.
    """

    facts: StatementFacts
    resolved: ResolvedStatement
    logged: str
    outcome: Outcome = field(default_factory=Outcome)

    @property
    def has_portion(self) -> bool:
        """True if the statement has FOR PORTION OF."""
        tree = self.facts.tree
        tables = tree.tables if isinstance(tree, Update | Delete) else ()
        return any(isinstance(one, NamedTable) and one.portion is not None for one in tables)

    @property
    def is_of_history(self) -> bool:
        """True if the statement is DELETE HISTORY."""
        return isinstance(self.facts.tree, Delete) and "HISTORY" in self.facts.tree.modifiers

    def set_columns(self, table: TableName) -> frozenset[str] | None:
        """The columns of a table that the statement sets, in small letters; None: any column may be set."""
        for access in self.resolved.accesses:
            if access.name == table and access.set_columns:
                return access.set_columns
        return None

    def follows(self, key: ForeignKey) -> bool:
        """True if the statement changes rows of a child by a foreign key to another table."""
        return key.table != key.parent and any(
            access.is_foreign_key and access.changes and access.name == key.table
            for access in self.resolved.accesses
        )

    @property
    def own_tables(self) -> frozenset[TableName]:
        """The tables that the statement itself uses, through views too; they stay open while it runs."""
        return frozenset(
            access.name for access in self.resolved.accesses if not access.is_prelocked
        )


_SECOND: Final = 2


class Recorder:
    """The events of a statement so far.

    Attributes:
        calls: Finished function calls of SELECT, DO or SET.
        raised: Error that stopped the statement.
    """

    def __init__(self, *, is_mariadb: bool, named: Callable[[str], str]) -> None:
        """Start with nothing; `named` gives the name that a user variable has."""
        self._named = named
        self.calls: list[FunctionCall] = []
        self.raised: Refusal | None = None
        self._is_mariadb = is_mariadb
        self._runs: list[RowRun] = []
        self._annotation: str | None = None
        self._user_variables: list[LoggedVariable] = []
        self._values = NO_VALUES
        self._is_random = False
        self._read: set[str] = set()
        self._started = 0
        self._call: FunctionCall | None = None

    def state(self) -> object:
        """Return the state that bears on later events: the rows that changed, and how a call is logged."""
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
            error=self.raised,
        )

    @contextmanager
    def call(self) -> Iterator[FunctionCall]:
        """A function call of SELECT, DO or SET."""
        # The servers forget that RAND() was called only at the end of the whole statement.
        self._call = FunctionCall(SessionValues(random=self._is_random))
        self._read.clear()
        self._started = 0
        yield self._call
        self._is_random = self._call.values.random
        self._call = None

    def changes(self, run: RowRun, text: str) -> None:
        """Note a changed row; `text` is of the statement that changed it."""
        if self._annotation is None:
            self._annotation = text
        if not self._runs or self._runs[-1] != run:
            self._runs.append(run)

    def logs(self, table: TableName) -> None:
        """Note that a statement of a function changes a table."""
        if self._call is not None:
            self._call.is_logged = True
            self._call.writes.add(table)

    def starts_statement(self) -> None:
        """Note the beginning of a statement or expression of a function or trigger.

        MariaDB logs a variable once, but does not count what the first statement of a function
        that SELECT, DO or SET call read.
        """
        self._started += 1
        if self._is_mariadb and self._call is not None and self._started == _SECOND:
            self._read.clear()

    def reads_variable(self, name: str, value: Value) -> None:
        """Note that a user variable is read."""
        key, name = name.lower(), self._named(name)
        if key in self._read:
            return
        self._read.add(key)
        read = self._user_variables if self._call is None else self._call.user_variables
        read.append(LoggedVariable(name, value))

    def depends_on(self, values: SessionValues) -> None:
        """Note that a statement of a function or trigger depends on values of the session."""
        if self._call is None:
            self._values = self._values.with_those(values)
        else:
            self._call.values = self._call.values.with_those(values)

    def assigns_variable(self, name: str, is_new: bool) -> None:  # noqa: FBT001  # a callback
        """Note that a function or trigger sets a user variable.

        MySQL does not log the variable when it is read later on; MariaDB does, unless it is a new one.
        """
        if is_new or not self._is_mariadb:
            self._read.add(name)


_KINDS: Final = MappingProxyType({RowChange.UPDATE: "update", RowChange.DELETE: "delete"})


def plain_changes(resolved: ResolvedStatement) -> Iterator[RowRun]:
    """Give the changes of a body's statement itself, for a statement of which nothing is stated."""
    for access in resolved.accesses:
        if access.changes and not access.is_prelocked:
            for change in sorted(access.changes, key=lambda change: change.name):
                yield RowRun(access.name, _KINDS.get(change, "insert"))


def changed_rows(outcome: Outcome) -> int | None:
    """Return the number of rows changed in each table; None if only that some did."""
    if outcome.is_proven_empty:
        return 0
    if outcome.rows is None and outcome.error is not None:
        return 0
    return outcome.rows


ROWS_MAX: Final = 1000
"""More rows of one statement are not followed one by one."""
EVENTS: Final = frozenset(("insert", "update", "delete"))
"""Kinds of changes of a row itself."""


class Step(Enum):
    """Steps of one changed row: triggers by their time and event, and changes of the row."""

    INSERT = ("BEFORE INSERT", "insert", "AFTER INSERT")
    UPDATE = ("BEFORE UPDATE", "update", "AFTER UPDATE")
    DELETE = ("BEFORE DELETE", "delete", "AFTER DELETE")
    UPSERT = ("BEFORE INSERT", "BEFORE UPDATE", "update", "AFTER UPDATE")
    REPLACE = (
        "BEFORE INSERT",
        "BEFORE DELETE",
        "delete",
        "AFTER DELETE",
        "insert",
        "AFTER INSERT",
    )
    REPLACE_BY_UPDATE = ("BEFORE INSERT", "update", "AFTER INSERT")
    REPLACE_BY_ITSELF = ("BEFORE INSERT", "AFTER INSERT")
    """The engine finds that nothing changes."""
    UPDATE_KEEPING = ("BEFORE UPDATE", "update", "insert", "AFTER UPDATE")
    """The old row is kept: as history, or outside of a portion of time."""
    UPSERT_KEEPING = ("BEFORE INSERT", "BEFORE UPDATE", "update", "insert", "AFTER UPDATE")
    REPLACE_KEEPING = ("BEFORE INSERT", "update", "insert", "AFTER INSERT")
    DELETE_INTO_HISTORY = ("BEFORE DELETE", "update", "AFTER DELETE")
    REPLACE_INTO_HISTORY = (
        "BEFORE INSERT",
        "BEFORE DELETE",
        "update",
        "AFTER DELETE",
        "insert",
        "AFTER INSERT",
    )
    DELETE_PORTION = ("BEFORE DELETE", "update", "insert", "AFTER DELETE")
    """DELETE of a part in the middle of a row's time."""


_BEFORE: Final = TriggerTime.BEFORE
_REPLACING: Final = frozenset((RowChange.REPLACE, RowChange.UPSERT))
_PLAIN: Final = MappingProxyType(
    {
        RowChange.INSERT: Step.INSERT,
        RowChange.LOAD: Step.INSERT,
        RowChange.SEQUENCE: Step.INSERT,
        RowChange.UPDATE: Step.UPDATE,
        RowChange.DELETE: Step.DELETE,
    }
)


def steps_of(
    access: TableAccess, statement: Traced, objects: SchemaCatalog
) -> Iterator[tuple[TableName, tuple[Step, ...]]]:
    """Give a table's steps for one row, for each way in which a statement changes the table."""
    given, count = statement.facts.row_count or 1, changed_rows(statement.outcome)
    # Clauses of one INSERT: what it does to a row that is there says it all.
    changes = access.changes & _REPLACING or access.changes
    for change in sorted(changes, key=lambda change: change.name):
        if change in _REPLACING:
            steps = _steps_of_replacing(change, access, given, count, objects)
            if change is RowChange.REPLACE and _keeps_rows(access, statement, objects):
                steps = (Step.REPLACE_BY_ITSELF,) * len(steps)
            yield access.name, steps
        elif change in _PLAIN:
            rows = given if count is None else count
            step = _PLAIN[change]
            if not statement.is_of_history:
                step = _kept(step, access, has_portion=statement.has_portion)
            yield access.name, (step,) * min(rows, ROWS_MAX)


def plain_trace(statement: Traced, objects: SchemaCatalog) -> Trace:
    """Return the effects of a statement that succeeds, fires nothing and calls nothing, without cascades."""
    steps = [
        step
        for access in statement.resolved.accesses
        if access.changes and not access.is_prelocked
        for step in steps_of(access, statement, objects)
    ]
    runs: list[RowRun] = []
    for index in range(min(max((len(kinds) for _, kinds in steps), default=0), ROWS_MAX)):
        for table, kinds in steps:
            for part in kinds[index].value if index < len(kinds) else ():
                run = RowRun(table, part)
                if part in EVENTS and run not in runs[-1:]:
                    runs.append(run)
    return Trace(runs=tuple(runs), annotation=statement.logged)


def _kept(step: Step, access: TableAccess, *, has_portion: bool) -> Step:
    """Return the step that replaces an update or deletion where MariaDB keeps some of the old row."""
    if has_portion and step in _OF_PORTIONS:
        return _OF_PORTIONS[step]
    definition = access.table.definition
    if step not in _INTO_HISTORY or not definition.has_history:
        return step
    if step in _SETTING and access.set_columns:
        unversioned = {one.name.lower() for one in definition.columns if one.is_unversioned}
        if access.set_columns <= unversioned:
            return step
    return _INTO_HISTORY[step]


_SETTING: Final = (Step.UPDATE, Step.UPSERT)
_OF_PORTIONS: Final = MappingProxyType(
    {Step.UPDATE: Step.UPDATE_KEEPING, Step.DELETE: Step.DELETE_PORTION}
)
_INTO_HISTORY: Final = MappingProxyType(
    {
        Step.UPDATE: Step.UPDATE_KEEPING,
        Step.DELETE: Step.DELETE_INTO_HISTORY,
        Step.UPSERT: Step.UPSERT_KEEPING,
        Step.REPLACE: Step.REPLACE_INTO_HISTORY,
        Step.REPLACE_BY_UPDATE: Step.REPLACE_KEEPING,
    }
)


def _steps_of_replacing(
    change: RowChange, access: TableAccess, given: int, count: int | None, objects: SchemaCatalog
) -> tuple[Step, ...]:
    """Return the steps of REPLACE and ON DUPLICATE KEY UPDATE: an existing row counts as two."""
    replaced = Step.UPSERT
    if change is RowChange.REPLACE:
        replaced = Step.REPLACE_BY_UPDATE if _updates(access, objects) else Step.REPLACE
    if count is None:
        return (Step.INSERT,) * given
    replaced = _kept(replaced, access, has_portion=False)
    old = max(0, count - given) if count <= 2 * given else count // 2
    return ((replaced,) * old + (Step.INSERT,) * (count - 2 * old))[:ROWS_MAX]


def _updates(access: TableAccess, objects: SchemaCatalog) -> bool:
    """True if REPLACE updates an existing row instead of deleting it."""
    return (
        len(access.table.unique_keys) == 1
        and not any("DELETE" in trigger.events for trigger in objects.triggers(access.name))
        and not objects.children(access.name)
    )


def _keeps_rows(access: TableAccess, statement: Traced, objects: SchemaCatalog) -> bool:
    """True if REPLACE gives a table its own rows, which already exist there.

    Source: measured on MariaDB 10.11.19 and MySQL 9.7.4.
    """
    table = access.table
    if table.engine != "INNODB" or not _updates(access, objects) or not table.is_complete:
        return False
    if not inserts_own_rows(statement.facts, statement.resolved):
        return False
    nullable = {one.name.lower() for one in table.definition.columns if one.is_nullable}
    (key,) = table.unique_keys
    is_found = key.is_primary or nullable.isdisjoint(column.lower() for column in key.columns)
    sets = (trigger for trigger in objects.triggers(access.name) if trigger.time is _BEFORE)
    return is_found and not any("new" in trigger.body.lower() for trigger in sets)


def inserts_own_rows(facts: StatementFacts, resolved: ResolvedStatement) -> bool:
    """True if INSERT or REPLACE selects `*` of the very table alone into which it inserts."""
    tree = facts.tree
    if not isinstance(tree, Insert) or tree.query is None or tree.columns is not None:
        return False
    body = tree.query.body
    if not isinstance(body, Select) or body.group_by or len(body.items) != 1:
        return False
    named = [access.name for access in resolved.accesses if not access.is_prelocked]
    is_own = isinstance(body.items[0].value, Star) and len(body.tables) == 1
    return is_own and len(named) == 2 and named[0] == named[1]
