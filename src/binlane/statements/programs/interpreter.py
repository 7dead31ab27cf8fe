"""Runs the body of a routine, trigger or compound statement: its blocks, conditions and loops.

Where a condition depends on data, `Ways` decides; the usual way is the first branch whose condition is not
known to be false, one round of a loop, one row of a cursor. `Actions` runs the statements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Protocol, TypeAlias

from binlane.statements.policy.refusals import Refusal
from binlane.statements.programs.assignments import condition_of
from binlane.statements.programs.environment import (
    INTEGER,
    BlockScope,
    OpenCursor,
    ProgramBody,
    RoutineEnvironment,
)
from binlane.statements.programs.host import CHARACTERS_OF_STEP, NO_DATA, handles
from binlane.statements.programs.ways import DataCondition
from binlane.statements.sql.evaluation.values import (
    UNKNOWN,
    Unknown,
    Value,
    equal,
    plain_text,
    truth,
)
from binlane.statements.sql.parser import Stopped, parse_body
from binlane.statements.sql.parser.cursor import TOO_DEEP, TooMuch
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree.expressions import (
    Call,
    DataType,
    Expression,
    Literal,
    LiteralKind,
    Name,
    Node,
    children,
)
from binlane.statements.sql.tree.statements import (
    Block,
    CaseStatement,
    Close,
    ConditionDeclaration,
    CursorDeclaration,
    Declaration,
    Delete,
    Diagnostics,
    Fetch,
    ForRange,
    ForRows,
    HandlerAction,
    HandlerDeclaration,
    If,
    Insert,
    Iterate,
    Leave,
    Loop,
    Open,
    Repeat,
    Return,
    Update,
    VariableDeclaration,
    While,
)

_CACHE_SIZE: Final = 1024
_NO_CASE: Final = Refusal(
    *(1339, "20000", "ER_SP_CASE_NOT_FOUND", "Case not found for CASE statement"), is_own=True
)
_NOT_OPEN: Final = Refusal(
    *(1326, "24000", "ER_SP_CURSOR_NOT_OPEN", "Cursor is not open"), is_own=True
)


@dataclass(frozen=True, slots=True)
class Returned:
    """RETURN of a function."""

    value: Value


@dataclass(frozen=True, slots=True)
class Exited:
    """An EXIT handler ended the block of a scope."""

    scope: BlockScope


@dataclass(frozen=True, slots=True)
class Exhausted:
    """The program ran too many statements."""


Jump: TypeAlias = Leave | Iterate | Returned | Refusal | Exited | Exhausted


class ExpressionError(Exception):
    """An expression calls something that must not run.

    Attributes:
        refusal: The refusal of the call.
    """

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Actions(Protocol):
    """The actions of a program's statements and expressions."""

    def statement(self, statement: Node, environment: RoutineEnvironment) -> Refusal | None:
        """Run an SQL statement; the error if it fails."""

    def value(self, expression: Expression, environment: RoutineEnvironment) -> Value:
        """The value of an expression; functions in it are called.

        Raises:
            ExpressionError: If they must not be.
        """


def read_body(sql: str, dialect: Dialect) -> ProgramBody | None:
    """Read a body; None if its text is not understood."""
    try:
        return _read_body(sql, dialect)
    except RecursionError:
        return None  # which is not kept: whoever calls with more of the stack left may read it


@lru_cache(_CACHE_SIZE)
def _read_body(sql: str, dialect: Dialect) -> ProgramBody | None:
    try:
        return ProgramBody(sql, dialect, parse_body(sql, dialect))
    except (Stopped, SqlSyntaxError):
        return None


def why_unread(sql: str, dialect: Dialect) -> str:
    """Return the reason why a body is not read."""
    try:
        parse_body(sql, dialect)
    except TooMuch as error:
        return error.reason
    except RecursionError:
        return TOO_DEEP
    except (Stopped, SqlSyntaxError):
        pass
    return "it is not understood"


def is_straight(sql: str, dialect: Dialect) -> bool:
    """True if a body does the same whatever the data: statements on rows, one after the other."""
    body = read_body(sql, dialect)
    if body is None:
        return False
    tree = body.tree
    if isinstance(tree, Block) and not tree.declarations:
        return all(isinstance(statement, _ON_ROWS) for statement in tree.statements)
    return isinstance(tree, _ON_ROWS)


_ON_ROWS: Final = (Insert, Update, Delete)


class Interpreter:
    """Runs programs."""

    def __init__(self, actions: Actions) -> None:
        """Start with nothing run."""
        self._actions = actions
        self._handled: list[Refusal] = []
        self._runners: Mapping[type, Callable[[Any, RoutineEnvironment], Jump | None]] = {
            Block: self._block,
            If: self._if,
            CaseStatement: self._case,
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
            Diagnostics: self._diagnostics,
        }

    def run_body(self, body: Node, environment: RoutineEnvironment) -> Jump | None:
        """Run a whole body; return the error or result with which it ends, or None at its normal end."""
        activities = environment.host.programs.ways.activities
        activities.append(environment)
        try:
            return self.run(body, environment)
        finally:
            activities.pop()

    def run(self, statement: Node, environment: RoutineEnvironment) -> Jump | None:
        """Run a statement of a body; where it jumps to, if it does not end normally."""
        if not environment.host.programs.effort.spend():
            return Exhausted()
        environment.running.append(statement.at)
        runner = self._runners.get(type(statement))
        scopes = environment.scopes
        try:
            if runner is None:
                jump: Jump | None = self._actions.statement(statement, environment)
            else:
                jump = runner(statement, environment)
        except ExpressionError as refused:
            environment.scopes, jump = scopes, refused.refusal
        environment.running.pop()
        if isinstance(jump, Refusal) and not isinstance(statement, _COMPOUND):
            return self._handle(jump, environment)
        return jump

    def _run_all(self, statements: Sequence[Node], environment: RoutineEnvironment) -> Jump | None:
        for statement in statements:
            if (jump := self.run(statement, environment)) is not None:
                return jump
        return None

    def _handle(self, raised: Refusal, environment: RoutineEnvironment) -> Jump | None:
        """Look for a handler, from the innermost block outwards, and run it."""
        if raised.is_for_safety:
            return raised
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

    def _block(self, block: Block, environment: RoutineEnvironment) -> Jump | None:
        scope = BlockScope()
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
        self, declaration: Declaration, scope: BlockScope, environment: RoutineEnvironment
    ) -> None:
        match declaration:
            case VariableDeclaration(names=names, type=data_type, default=default):
                value = self._actions.value(default or _NULL, environment)
                for name in names:
                    environment.declare(name, data_type, value)
            case CursorDeclaration(name=name):
                scope.cursors[name.lower()] = OpenCursor(declaration)
            case ConditionDeclaration(name=name, value=condition):
                scope.conditions[name.lower()] = condition
            case HandlerDeclaration():
                scope.handlers.append(declaration)

    def _if(self, statement: If, environment: RoutineEnvironment) -> Jump | None:
        for branch in statement.branches:
            value = self._actions.value(branch.condition, environment)
            if self._holds(value, branch.condition, environment):
                return self._run_all(branch.statements, environment)
        return self._run_all(statement.otherwise, environment)

    def _holds(
        self,
        value: Value,
        condition: Expression,
        environment: RoutineEnvironment,
        *,
        usually: bool = True,
        operand: Expression | None = None,
    ) -> bool:
        """True if the condition of a value holds; a condition that depends on data is tried both ways."""
        holds = truth(value)
        if not isinstance(holds, Unknown):
            return holds == 1
        hangs_on = condition_of(condition, environment)
        if operand is not None:
            hangs_on = replace(
                hangs_on, text=f"{environment.text.text_of(operand)} = {hangs_on.text}"
            )
        # The first way is that of the condition that holds.
        usual = 0 if usually else 1
        return environment.host.programs.ways.choose(hangs_on, usual=usual) == 0

    def _case(self, statement: CaseStatement, environment: RoutineEnvironment) -> Jump | None:
        operand: Value = None
        if statement.operand is not None:
            operand = self._actions.value(statement.operand, environment)
        for branch in statement.branches:
            value = self._actions.value(branch.condition, environment)
            if statement.operand is not None:
                value = equal(operand, value)
            if self._holds(value, branch.condition, environment, operand=statement.operand):
                return self._run_all(branch.statements, environment)
        if statement.otherwise is None:
            return self._handle(_NO_CASE, environment)
        return self._run_all(statement.otherwise, environment)

    def _loop(self, statement: Loop, environment: RoutineEnvironment) -> Jump | None:
        return self._rounds(statement.statements, statement.label, environment, lambda _: True)

    def _while(self, statement: While, environment: RoutineEnvironment) -> Jump | None:
        def goes_on(rounds: int) -> bool:
            value = self._actions.value(statement.condition, environment)
            return self._holds(value, statement.condition, environment, usually=not rounds)

        return self._rounds(statement.statements, statement.label, environment, goes_on)

    def _repeat(self, statement: Repeat, environment: RoutineEnvironment) -> Jump | None:
        def goes_on(rounds: int) -> bool:
            if not rounds:
                return True
            value = self._actions.value(statement.condition, environment)
            return not self._holds(value, statement.condition, environment)

        return self._rounds(statement.statements, statement.label, environment, goes_on)

    def _rounds(
        self,
        statements: Sequence[Node],
        label: str,
        environment: RoutineEnvironment,
        goes_on: Callable[[int], bool],
    ) -> Jump | None:
        """The rounds of a loop; `goes_on` is asked with the number of those before.

        After some rounds with decisions the values that change are tried as unknown ones, too: that
        stands for any number of further rounds.
        """
        programs = environment.host.programs
        ways, effort = programs.ways, programs.effort
        at_first, before = environment.values(), None
        rounds = undecided = 0
        repeats = ways.repeats
        made, fresh = ways.made, -1
        is_any_round = False
        while goes_on(rounds):
            state = repr(environment.state())
            if state == before and ways.fresh == fresh:
                effort.give_up("a loop in it does not end")
            before, fresh = state, ways.fresh
            if not effort.spend(1 + len(state) // CHARACTERS_OF_STEP):
                return Exhausted()
            jump = self._run_all(statements, environment)
            rounds += 1
            if isinstance(jump, Leave) and _is_same(jump.label, label):
                jump = None
                break
            if jump is not None and not (isinstance(jump, Iterate) and _is_same(jump.label, label)):
                break
            jump = None
            undecided += ways.made != made
            made = ways.made
            if undecided < _ROUNDS_MAX or ways.repeats > repeats:
                continue
            if not is_any_round:
                is_any_round = ways.choose(DataCondition(_FURTHER_ROUNDS, environment.program)) == 1
            if is_any_round:
                environment.forget_changes(at_first)
            else:
                ways.repeats += 1
        else:
            jump = None
        ways.repeats = repeats
        return jump

    def _for_range(self, statement: ForRange, environment: RoutineEnvironment) -> Jump | None:
        lower = self._actions.value(statement.lower, environment)
        upper = self._actions.value(statement.upper, environment)
        values: Sequence[int] | None = None
        if isinstance(lower, int) and isinstance(upper, int):
            values = range(lower, upper + 1)[:: -1 if statement.is_reverse else 1]

        def following(rounds: int) -> Value | None:
            if values is not None:
                return values[rounds] if rounds < len(values) else None
            bound = statement.upper
            goes_on = self._holds(UNKNOWN, bound, environment, usually=not rounds)
            return UNKNOWN if goes_on else None

        return self._for(statement, following, environment)

    def _for_rows(self, statement: ForRows, environment: RoutineEnvironment) -> Jump | None:
        refused: Refusal | None = None
        if statement.query is not None:
            refused = self._actions.statement(statement.query, environment)
        elif (cursor := environment.cursor(statement.cursor)) is not None:
            refused = self._opens(cursor.declaration, statement.arguments, environment)
        if refused is not None:
            return self._handle(refused, environment)

        def following(rounds: int) -> Value | None:
            has_row = DataCondition(f"another row for {statement.variable}", environment.program)
            ways = environment.host.programs.ways
            return UNKNOWN if ways.choose(has_row, usual=min(rounds, 1)) == 0 else None

        return self._for(statement, following, environment)

    def _for(
        self,
        statement: ForRange | ForRows,
        following: Callable[[int], Value | None],
        environment: RoutineEnvironment,
    ) -> Jump | None:
        scope = BlockScope()
        outer = environment.scopes
        environment.scopes = [*outer, scope]
        is_row = isinstance(statement, ForRows)

        def goes_on(rounds: int) -> bool:
            value = following(rounds)
            if value is None:
                return False
            name = f"{statement.variable}.*" if is_row else statement.variable
            environment.declare(name, _ROW if is_row else INTEGER, value)
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
            cursor.is_open, cursor.fetched, cursor.has_row = True, 0, None
            return self._opens(cursor.declaration, statement.arguments, environment)
        return None

    def _opens(
        self,
        cursor: CursorDeclaration,
        arguments: Sequence[Expression],
        environment: RoutineEnvironment,
    ) -> Refusal | None:
        """Run the query of a cursor, which sees the cursor's parameters."""
        outer = environment.scopes
        values = [self._actions.value(one, environment) for one in arguments]
        environment.scopes = [*outer, BlockScope()]
        for name, value in zip(cursor.parameters, values, strict=False):
            environment.declare(name, _ROW, value)
        refused = self._actions.statement(cursor.query, environment)
        environment.scopes = outer
        return refused

    def _close(self, statement: Close, environment: RoutineEnvironment) -> Jump | None:
        if (cursor := environment.cursor(statement.cursor)) is not None:
            cursor.is_open = False
        return None

    def _fetch(self, statement: Fetch, environment: RoutineEnvironment) -> Jump | None:
        ways = environment.host.programs.ways
        if not statement.cursor:
            return self._fetch_of_group(environment)
        cursor = environment.cursor(statement.cursor)
        if cursor is None or not cursor.is_open:
            return _NOT_OPEN
        has_row = DataCondition(f"FETCH {statement.cursor}", environment.program)
        cursor.has_row = ways.choose(has_row, usual=min(cursor.fetched, 1)) == 0
        if not cursor.has_row:
            # sql_mode ORACLE asks for `cursor%NOTFOUND` instead.
            return None if environment.text.dialect.is_oracle else NO_DATA
        cursor.fetched += 1
        for variable in statement.variables:
            if isinstance(variable, Name):
                environment.assign(".".join(variable.parts), UNKNOWN)
            else:
                environment.assign_user_variable(variable.name, UNKNOWN)
        return None

    def _fetch_of_group(self, environment: RoutineEnvironment) -> Refusal | None:
        if environment.is_behind_group:
            return _NOTHING_RETURNED
        has_row = DataCondition("FETCH GROUP NEXT ROW", environment.program)
        usual = min(environment.fetched, 1)
        environment.fetched += 1
        if environment.host.programs.ways.choose(has_row, usual=usual) == 0:
            return None
        environment.is_behind_group = True
        return NO_DATA

    def _diagnostics(self, statement: Diagnostics, environment: RoutineEnvironment) -> Jump | None:
        if statement.verb not in _SIGNALS:
            return self._actions.statement(statement, environment)
        if not statement.condition:
            return self._handled[-1] if self._handled else _NOTHING_HANDLED
        if statement.condition.isdecimal():
            return _predefined(int(statement.condition))
        condition = environment.condition(statement.condition) or statement.condition
        sqlstate = condition.upper().removeprefix("SQLSTATE").strip().strip("'\"")
        errno = {"01": 1642, "02": 1643}.get(sqlstate[:2], 1644)
        message, given = "", 0
        for name, item in statement.items:
            value = self._actions.value(item, environment)
            if name == "MESSAGE_TEXT" and value is not None and value is not UNKNOWN:
                message = plain_text(value)
            elif name == "MYSQL_ERRNO" and isinstance(value, int):
                given = value
        told = (given or errno, sqlstate or "45000", "ER_SIGNAL_EXCEPTION")
        return Refusal(*told, message or _SIGNALLED[errno], is_own=True)


_NOTHING_RETURNED: Final = Refusal(
    1321, "2F005", "ER_SP_NORETURNEND", "FUNCTION ended without RETURN"
)
_NOTHING_HANDLED: Final = Refusal(
    1645, "0K000", "ER_RESIGNAL_WITHOUT_ACTIVE_HANDLER", "RESIGNAL when handler not active"
)
_ROUNDS_MAX: Final = 6
"""After so many rounds with decisions a loop's further rounds are looked at together."""
_FURTHER_ROUNDS: Final = "more rounds of a loop"
_SIGNALS: Final = frozenset(("SIGNAL", "RESIGNAL"))
_ROW: Final = DataType(0, 0, "")
_NULL: Final = Literal(0, 0, LiteralKind.NULL)
"""DECLARE without DEFAULT is an instruction of a program, too."""
_SIGNALLED: Final = {
    1642: "Unhandled user-defined warning condition",
    1643: "Unhandled user-defined not found condition",
    1644: "Unhandled user-defined exception condition",
}


def _predefined(errno: int) -> Refusal:
    """Return RAISE's error for the exceptions that sql_mode ORACLE has without a declaration."""
    sqlstate = "01000" if errno == NO_DATA.errno else "HY000"
    return Refusal(errno, sqlstate, "ER_SIGNAL_EXCEPTION", "a predefined exception", is_own=True)


def _handler(
    handlers: Sequence[HandlerDeclaration], raised: Refusal, environment: RoutineEnvironment
) -> HandlerDeclaration | None:
    """The handler of a block that is the most exact for a condition."""
    best: tuple[int, HandlerDeclaration] | None = None
    for handler in handlers:
        for condition in handler.conditions:
            rank = handles(environment.condition(condition) or condition, raised)
            if rank and (best is None or rank > best[0]):
                best = (rank, handler)
    return None if best is None else best[1]


def calls_functions(node: Node) -> bool:
    """True if a node calls anything, built-in functions included."""
    return isinstance(node, Call) or any(map(calls_functions, children(node)))


def _is_same(label: str, other: str) -> bool:
    return label.lower() == other.lower()


_COMPOUND: Final = (Block, If, CaseStatement, Loop, While, Repeat, ForRange, ForRows)
