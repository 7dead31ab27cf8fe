"""Collects what a statement does while it is followed: rows, function calls, variables read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from binlane.names import TableName
from binlane.policy.server import Server
from binlane.session.programs.conditions import Raised
from binlane.session.programs.host import NO_VALUES, FunctionCall, RowRun, SessionValues, Trace
from binlane.session.programs.user_variables import event_info
from binlane.session.programs.values import Value

_SECOND: Final = 2


@dataclass(slots=True)
class CallRecord:
    """A function call of SELECT, DO or SET while it runs.

    Attributes:
        is_logged: A statement in it would be logged by itself.
        writes: Tables that its statements change.
        user_variables: Infos of the variables that they read.
        values: What else they depend on.
    """

    is_logged: bool = False
    writes: set[TableName] = field(default_factory=set)
    user_variables: list[str] = field(default_factory=list)
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
        self._user_variables: list[str] = []
        self._values = NO_VALUES
        self._is_random = False
        self._read: set[str] = set()
        self._started = 0
        self._call: CallRecord | None = None

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

    def reads_variable(self, name: str, value: Value, server: Server) -> None:
        """A user variable is read."""
        if name in self._read:
            return
        self._read.add(name)
        infos = self._user_variables if self._call is None else self._call.user_variables
        infos.append(event_info(name, value, server))

    def depends_on(self, values: SessionValues) -> None:
        """A statement of a function or trigger depends on values of the session."""
        if self._call is None:
            self._values = self._values.with_those(values)
        else:
            self._call.values = self._call.values.with_those(values)

    def assigns_variable(self, name: str) -> None:
        """A function sets a user variable: MySQL does not log it when it is read later on."""
        if not self._is_mariadb:
            self._read.add(name)
