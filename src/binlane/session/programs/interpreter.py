"""Runs the body of a routine, trigger or compound statement: its blocks, conditions and loops.

Where a value is unknown a documented way is taken: the first branch whose condition is not known to
be false, one round of a loop, one row of a cursor. What statements do is left to `Actions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Protocol, TypeAlias

from binlane.session.programs.conditions import Raised, handles
from binlane.session.programs.environment import Cursor, RoutineEnvironment, Scope
from binlane.session.programs.operators import BINARY_OPERATORS, truth
from binlane.session.programs.values import UNKNOWN, Unknown, Value, plain_text
from binlane.sql.body import (
    Block,
    BodyStatement,
    Branch,
    Case,
    Close,
    ConditionDeclaration,
    CursorDeclaration,
    Declaration,
    Fetch,
    ForRange,
    ForRows,
    HandlerAction,
    HandlerDeclaration,
    If,
    Iterate,
    Leave,
    Loop,
    Open,
    PlainStatement,
    Repeat,
    Return,
    Signal,
    Span,
    VariableDeclaration,
    While,
)
from binlane.sql.compound import read_program
from binlane.sql.cursor import Stopped
from binlane.sql.effects import StatementKind
from binlane.sql.tokens import SqlSyntaxError

_CACHE_SIZE: Final = 1024
_NO_DATA: Final = Raised(1329, "02000", "No data - zero rows fetched, selected, or processed")
_NO_CASE: Final = Raised(1339, "20000", "Case not found for CASE statement")
_NOT_OPEN: Final = Raised(1326, "24000", "Cursor is not open")


@dataclass(frozen=True, slots=True)
class Returned:
    """RETURN of a function."""

    value: Value


@dataclass(frozen=True, slots=True)
class Exited:
    """An EXIT handler ended the block of a scope."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class Exhausted:
    """The program ran too many statements."""


Jump: TypeAlias = Leave | Iterate | Returned | Raised | Exited | Exhausted


class Actions(Protocol):
    """What the statements and expressions of a program do."""

    def statement(
        self, statement: PlainStatement, environment: RoutineEnvironment
    ) -> Raised | None:
        """Run an SQL statement; the error if it fails."""

    def value(self, expression: Span, environment: RoutineEnvironment) -> Value:
        """The value of an expression; functions in it are called."""


@lru_cache(_CACHE_SIZE)
def read_body(text: str) -> BodyStatement | None:
    """The tree of a body; None if its text is not understood."""
    try:
        return read_program(text)
    except (Stopped, SqlSyntaxError):
        return None


class Interpreter:
    """Runs programs."""

    def __init__(self, actions: Actions) -> None:
        """Start with nothing run."""
        self._actions = actions
        self._handled: list[Raised] = []
        self._runners: Mapping[type, Callable[[Any, RoutineEnvironment], Jump | None]] = {
            PlainStatement: self._plain,
            Block: self._block,
            If: self._if,
            Case: self._case,
            Loop: self._loop,
            While: self._while,
            Repeat: self._repeat,
            ForRange: self._for_range,
            ForRows: self._for_rows,
            Return: self._return,
            Leave: self._jump,
            Iterate: self._jump,
            Open: self._open,
            Close: self._close,
            Fetch: self._fetch,
            Signal: self._signal,
        }

    def run(self, statement: BodyStatement, environment: RoutineEnvironment) -> Jump | None:
        """Run a statement of a body; where it jumps to, if it does not end normally."""
        if not environment.host.programs.effort.spend():
            return Exhausted()
        jump = self._runners[type(statement)](statement, environment)
        if isinstance(jump, Raised) and not isinstance(statement, _COMPOUND):
            return self._handle(jump, environment)
        return jump

    def _run_all(
        self, statements: Sequence[BodyStatement], environment: RoutineEnvironment
    ) -> Jump | None:
        for statement in statements:
            if (jump := self.run(statement, environment)) is not None:
                return jump
        return None

    def _handle(self, raised: Raised, environment: RoutineEnvironment) -> Jump | None:
        """Look for a handler, from the innermost block outwards, and run it."""
        scopes = environment.scopes
        for index in range(len(scopes) - 1, -1, -1):
            scope = scopes[index]
            if scope.is_handling:
                continue
            handler = _handler(scope.handlers, raised, environment)
            if handler is None:
                continue
            environment.scopes = scopes[: index + 1]
            scope.is_handling = True
            self._handled.append(raised)
            jump = self.run(handler.statement, environment)
            self._handled.pop()
            scope.is_handling = False
            environment.scopes = scopes
            if jump is not None:
                return jump
            return Exited(scope) if handler.action is HandlerAction.EXIT else None
        return None if raised.sqlstate.startswith("01") else raised

    # One method for each kind of statement -------------------------------------------------------

    def _plain(self, statement: PlainStatement, environment: RoutineEnvironment) -> Jump | None:
        return self._actions.statement(statement, environment)

    def _block(self, block: Block, environment: RoutineEnvironment) -> Jump | None:
        scope = Scope()
        outer = environment.scopes
        environment.scopes = [*outer, scope]
        for declaration in block.declarations:
            self._declare(declaration, scope, environment)
        jump = self._run_all(block.statements, environment)
        environment.scopes = outer
        if isinstance(jump, Exited) and jump.scope is scope:
            return None
        if isinstance(jump, Leave) and _is_same(jump.label, block.label):
            return None
        return jump

    def _declare(
        self, declaration: Declaration, scope: Scope, environment: RoutineEnvironment
    ) -> None:
        match declaration:
            case VariableDeclaration(names=names, type_text=type_text, default=default):
                value = self._actions.value(default or _NULL, environment)
                for name in names:
                    environment.declare(name, type_text, value)
            case CursorDeclaration(name=name):
                scope.cursors[name.lower()] = Cursor(declaration)
            case ConditionDeclaration(name=name, value=condition):
                scope.conditions[name.lower()] = condition
            case HandlerDeclaration():
                scope.handlers.append(declaration)

    def _if(self, statement: If, environment: RoutineEnvironment) -> Jump | None:
        for branch in statement.branches:
            holds = truth(self._actions.value(branch.condition, environment))
            if isinstance(holds, Unknown):
                return _doubtful(self._run_all(branch.statements, environment))
            if holds == 1:
                return self._run_all(branch.statements, environment)
        return self._run_all(statement.otherwise, environment)

    def _holds(self, condition: Span, environment: RoutineEnvironment) -> bool:
        """Whether a condition holds; what is unknown is taken to hold."""
        holds = truth(self._actions.value(condition, environment))
        return isinstance(holds, Unknown) or holds == 1

    def _case(self, statement: Case, environment: RoutineEnvironment) -> Jump | None:
        branch, is_certain = self._branch(statement, environment)
        if branch is not None:
            jump = self._run_all(branch.statements, environment)
            return jump if is_certain else _doubtful(jump)
        if statement.otherwise is None:
            return self._handle(_NO_CASE, environment)
        return self._run_all(statement.otherwise, environment)

    def _branch(
        self, statement: Case, environment: RoutineEnvironment
    ) -> tuple[Branch | None, bool]:
        """The branch that is taken, and whether that is certain."""
        operand: Value = None
        if statement.operand is not None:
            operand = self._actions.value(statement.operand, environment)
        for branch in statement.branches:
            value = self._actions.value(branch.condition, environment)
            if statement.operand is not None:
                value = BINARY_OPERATORS["="](operand, value, environment)
            holds = truth(value)
            if isinstance(holds, Unknown) or holds == 1:
                return branch, holds == 1
        return None, True

    def _loop(self, statement: Loop, environment: RoutineEnvironment) -> Jump | None:
        return self._rounds(statement.statements, statement.label, environment, lambda: True)

    def _while(self, statement: While, environment: RoutineEnvironment) -> Jump | None:
        rounds = 0

        def goes_on() -> bool:
            nonlocal rounds
            holds = truth(self._actions.value(statement.condition, environment))
            rounds += 1
            return rounds == 1 if isinstance(holds, Unknown) else holds == 1

        return self._rounds(statement.statements, statement.label, environment, goes_on)

    def _repeat(self, statement: Repeat, environment: RoutineEnvironment) -> Jump | None:
        is_first = True

        def goes_on() -> bool:
            nonlocal is_first
            if is_first:
                is_first = False
                return True
            return not self._holds(statement.condition, environment)

        return self._rounds(statement.statements, statement.label, environment, goes_on)

    def _rounds(
        self,
        statements: Sequence[BodyStatement],
        label: str,
        environment: RoutineEnvironment,
        goes_on: Callable[[], bool],
    ) -> Jump | None:
        before: object = None
        effort = environment.host.programs.effort
        while goes_on():
            state = environment.state()
            if state == before:
                effort.give_up("a loop in it does not end")
            before = state
            if not effort.spend():
                return Exhausted()
            jump = self._run_all(statements, environment)
            if isinstance(jump, Leave) and _is_same(jump.label, label):
                return None
            if jump is not None and not (isinstance(jump, Iterate) and _is_same(jump.label, label)):
                return jump
        return None

    def _for_range(self, statement: ForRange, environment: RoutineEnvironment) -> Jump | None:
        lower = self._actions.value(statement.lower, environment)
        upper = self._actions.value(statement.upper, environment)
        values: Sequence[Value] = (UNKNOWN,)
        if isinstance(lower, int) and isinstance(upper, int):
            values = range(lower, upper + 1)
        if statement.is_reverse:
            values = values[::-1]
        return self._for(statement, iter(values).__next__, environment)

    def _for_rows(self, statement: ForRows, environment: RoutineEnvironment) -> Jump | None:
        rows: Sequence[Value] = (UNKNOWN,)
        return self._for(statement, iter(rows).__next__, environment)

    def _for(
        self,
        statement: ForRange | ForRows,
        following: Callable[[], Value],
        environment: RoutineEnvironment,
    ) -> Jump | None:
        scope = Scope()
        outer = environment.scopes
        environment.scopes = [*outer, scope]
        is_row = isinstance(statement, ForRows)

        def goes_on() -> bool:
            try:
                value = following()
            except StopIteration:
                return False
            name = f"{statement.variable}.*" if is_row else statement.variable
            environment.declare(name, "" if is_row else "INT", value)
            return True

        jump = self._rounds(statement.statements, statement.label, environment, goes_on)
        environment.scopes = outer
        return jump

    def _return(self, statement: Return, environment: RoutineEnvironment) -> Jump | None:
        if statement.value is None:
            return Returned(None)
        return Returned(self._actions.value(statement.value, environment))

    def _jump(self, statement: Leave | Iterate, _: RoutineEnvironment) -> Jump | None:
        return statement

    def _open(self, statement: Open, environment: RoutineEnvironment) -> Jump | None:
        if (cursor := environment.cursor(statement.cursor)) is not None:
            cursor.is_open, cursor.fetched = True, 0
            query = cursor.declaration.query
            if "(" in query.text:
                # Functions that it calls do something now.
                return self._actions.statement(
                    PlainStatement(sql=query, kind=StatementKind.SELECT), environment
                )
        return None

    def _close(self, statement: Close, environment: RoutineEnvironment) -> Jump | None:
        if (cursor := environment.cursor(statement.cursor)) is not None:
            cursor.is_open = False
        return None

    def _fetch(self, statement: Fetch, environment: RoutineEnvironment) -> Jump | None:
        cursor = environment.cursor(statement.cursor)
        if cursor is None or not cursor.is_open:
            return _NOT_OPEN
        cursor.fetched += 1
        if cursor.fetched > 1:
            return _NO_DATA
        for name in statement.variables:
            environment.assign(name, UNKNOWN)
        return None

    def _signal(self, statement: Signal, environment: RoutineEnvironment) -> Jump | None:
        if not statement.condition and self._handled:
            return self._handled[-1]
        condition = environment.condition(statement.condition) or statement.condition
        sqlstate = condition.upper().removeprefix("SQLSTATE").strip().strip("'\"")
        errno = {"01": 1642, "02": 1643}.get(sqlstate[:2], 1644)
        message = ""
        for name, span in statement.items:
            value = self._actions.value(span, environment)
            if name == "MESSAGE_TEXT" and value is not None and value is not UNKNOWN:
                message = plain_text(value)
            elif name == "MYSQL_ERRNO" and isinstance(value, int):
                errno = value
        return Raised(errno, sqlstate or "45000", message or _SIGNALLED[errno])


_NULL: Final = Span("NULL", 0)
"""DECLARE without DEFAULT is an instruction of a program, too."""
_SIGNALLED: Final = {
    1642: "Unhandled user-defined warning condition",
    1643: "Unhandled user-defined not found condition",
    1644: "Unhandled user-defined exception condition",
}


def _handler(
    handlers: Sequence[HandlerDeclaration], raised: Raised, environment: RoutineEnvironment
) -> HandlerDeclaration | None:
    """The handler of a block that is the most exact for a condition."""
    best: tuple[int, HandlerDeclaration] | None = None
    for handler in handlers:
        for condition in handler.conditions:
            rank = handles(environment.condition(condition) or condition, raised)
            if rank and (best is None or rank > best[0]):
                best = (rank, handler)
    return None if best is None else best[1]


def _doubtful(jump: Jump | None) -> Jump | None:
    """What is raised where a condition is only taken to hold."""
    return replace(jump, is_certain=False) if isinstance(jump, Raised) else jump


def _is_same(label: str, other: str) -> bool:
    return label.lower() == other.lower()


_COMPOUND: Final = (Block, If, Case, Loop, While, Repeat, ForRange, ForRows)
