"""Bodies of routines, triggers and events, and compound statements: blocks, conditions and loops.

A statement in a body is read by the readers of `parser`, as outside of it; here is what lies
around statements: SQL/PSM as MySQL and MariaDB have it. Nesting costs no stack (`Steps`).

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy: sp_proc_stmt, sp_decl.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from binlane.sql.parser.cursor import Cursor
from binlane.sql.parser.expressions import read_expression
from binlane.sql.parser.forms import read_handled, read_rule
from binlane.sql.parser.queries import read_query
from binlane.sql.tokens import NAME_KINDS
from binlane.sql.tree.expressions import Expression, Node
from binlane.sql.tree.statements import (
    Block,
    Branch,
    CaseStatement,
    Declaration,
    ForRange,
    ForRows,
    HandlerAction,
    HandlerDeclaration,
    If,
    Loop,
    Open,
    Repeat,
    While,
)

_BLOCK_CALLS: Final = 6
"""Calls that whoever walks or runs a body takes for each block within another one."""
Result = TypeVar("Result")
StatementReader = Callable[[Cursor], Node]
"""Reads one statement, of any kind that may stand here."""

Steps = Generator["Steps[Any]", Any, Result]
"""A reader that needs another one yields it, and gets back what that returns."""


def _run(first: Steps[Result]) -> Result:
    """Run a reader and all that it yields, and give its result.

    So bodies may nest as deeply as memory allows, where calls would end in a RecursionError.
    """
    running: list[Steps[Any]] = [first]
    value: Any = None
    while running:
        try:
            needed = running[-1].send(value)
        except StopIteration as ended:
            running.pop()
            value = ended.value
        else:
            running.append(needed)
            value = None
    result: Result = value
    return result


def read_body(cursor: Cursor, statement: StatementReader) -> Node:
    """Read one statement of a body, simple or compound, with its label.

    Args:
        cursor: At its first word.
        statement: Reads statements that stand outside of bodies, too.
    """
    bodies, start = _Bodies(cursor, statement), cursor.start
    if cursor.dialect.is_oracle and cursor.accept_any(("AS", "IS")):
        return _run(bodies.routine(start))
    return _run(bodies.statement())


def is_at_compound(cursor: Cursor) -> bool:
    """Whether a compound statement outside of a routine begins here, which MariaDB has.

    In sql_mode ORACLE no BEGIN begins a transaction.
    """
    is_oracle = cursor.dialect.is_oracle
    if cursor.word == "BEGIN":
        return cursor.word_ahead(1) == "NOT" or is_oracle
    if cursor.word == "DECLARE":
        return is_oracle
    if cursor.word_ahead(1) == ":":
        return cursor.word_ahead(2) in BLOCKS
    return cursor.word in BLOCKS


class _Bodies:
    """Reads bodies at a cursor."""

    __slots__ = ("_plain", "cursor")

    def __init__(self, cursor: Cursor, statement: StatementReader) -> None:
        self.cursor = cursor
        self._plain = statement

    def statement(self) -> Steps[Node]:
        """One statement with its label."""
        cursor = self.cursor
        start = cursor.start
        label = ""
        if cursor.word_ahead(1) == ":" and cursor.kind in NAME_KINDS:
            label = cursor.identifier()
            cursor.advance()
            if cursor.word not in LABELLED:
                raise cursor.stop("BEGIN or a loop")
        block = _BLOCKS.get(cursor.word)
        if block is not None:
            cursor.advance()
            cursor.deeper(_BLOCK_CALLS)
            found: Node = yield block(self, start, label)
            cursor.depth -= _BLOCK_CALLS
            return found
        if cursor.word in _CONTROLS:
            control: Node = read_rule(cursor, cursor.word.lower())
            return control
        return self._plain(cursor)

    def _statements(
        self, ends: Collection[str], *, may_be_empty: bool = False
    ) -> Steps[tuple[Node, ...]]:
        """Statements up to one of the words that end a block."""
        cursor = self.cursor
        found: list[Node] = []
        while cursor.word not in ends or (not found and not may_be_empty):
            if cursor.is_at_end:
                raise cursor.stop(" or ".join(ends))
            statement: Node = yield self.statement()
            found.append(statement)
            cursor.expect_operator(";")
        return tuple(found)

    # Blocks -----------------------------------------------------------------------------------

    def routine(self, start: int) -> Steps[Node]:
        """What stands behind AS or IS of sql_mode ORACLE: declarations, BEGIN … END."""
        cursor = self.cursor
        declarations: list[Declaration] = []
        while not cursor.accept("BEGIN"):
            declarations.append(read_rule(cursor, "declaration"))
            cursor.expect_operator(";")
        statements = yield self._statements(("END",), may_be_empty=True)
        cursor.expect("END")
        if cursor.kind in NAME_KINDS:
            cursor.advance()  # the routine's name
        return Block(start, cursor.end, tuple(declarations), statements)

    def block(self, start: int, label: str) -> Steps[Node]:
        """BEGIN … END."""
        cursor = self.cursor
        cursor.accept("NOT", "ATOMIC")
        declarations: list[Declaration] = []
        while cursor.accept("DECLARE"):
            declaration: Declaration = yield self._declaration()
            declarations.append(declaration)
            cursor.expect_operator(";")
        statements = yield self._statements(("END",), may_be_empty=True)
        self._end(label, "END")
        return Block(start, cursor.end, tuple(declarations), statements, label)

    def if_(self, start: int, _label: str) -> Steps[Node]:
        """IF … END IF."""
        cursor = self.cursor
        branches: list[Branch] = []
        while True:
            branch: Branch = yield self._branch(("ELSEIF", "ELSE", "END"))
            branches.append(branch)
            if not cursor.accept("ELSEIF"):
                break
        otherwise: tuple[Node, ...] = ()
        if cursor.accept("ELSE"):
            otherwise = yield self._statements(("END",))
        cursor.expect("END", "IF")
        return If(start, cursor.end, tuple(branches), otherwise)

    def _branch(self, ends: Collection[str]) -> Steps[Branch]:
        start = self.cursor.start
        condition = read_expression(self.cursor)
        self.cursor.expect("THEN")
        statements = yield self._statements(ends)
        return Branch(start, self.cursor.end, condition, statements)

    def case(self, start: int, _label: str) -> Steps[Node]:
        """CASE … END CASE."""
        cursor = self.cursor
        operand: Expression | None = None
        if cursor.word != "WHEN":
            operand = read_expression(cursor)
        branches: list[Branch] = []
        cursor.expect("WHEN")
        while True:
            branch: Branch = yield self._branch(("WHEN", "ELSE", "END"))
            branches.append(branch)
            if not cursor.accept("WHEN"):
                break
        otherwise: tuple[Node, ...] | None = None
        if cursor.accept("ELSE"):
            otherwise = yield self._statements(("END",))
        cursor.expect("END", "CASE")
        return CaseStatement(start, cursor.end, operand, tuple(branches), otherwise)

    def loop(self, start: int, label: str) -> Steps[Node]:
        """LOOP … END LOOP."""
        statements = yield self._statements(("END",))
        self._end(label, "END", "LOOP")
        return Loop(start, self.cursor.end, statements, label)

    def while_(self, start: int, label: str) -> Steps[Node]:
        """WHILE … END WHILE."""
        condition = read_expression(self.cursor)
        self.cursor.expect("DO")
        statements = yield self._statements(("END",))
        self._end(label, "END", "WHILE")
        return While(start, self.cursor.end, condition, statements, label)

    def repeat(self, start: int, label: str) -> Steps[Node]:
        """REPEAT … END REPEAT."""
        statements = yield self._statements(("UNTIL",))
        self.cursor.expect("UNTIL")
        condition = read_expression(self.cursor)
        self._end(label, "END", "REPEAT")
        return Repeat(start, self.cursor.end, statements, condition, label)

    def for_(self, start: int, label: str) -> Steps[Node]:
        """FOR … END FOR, over a range, a cursor or a query (MariaDB)."""
        cursor = self.cursor
        if not cursor.dialect.has_mariadb(10, 3):
            raise cursor.stop("a statement")
        variable = cursor.identifier()
        cursor.expect("IN")
        is_reverse = cursor.accept("REVERSE")
        bounds = self._range()
        if bounds is not None:
            statements = yield self._loop_body(label)
            return ForRange(start, cursor.end, variable, *bounds, is_reverse, statements, label)
        name, source = "", None
        arguments: tuple[Expression, ...] = ()
        if cursor.word == "(":
            cursor.expect_operator("(")
            source = read_query(cursor)
            cursor.expect_operator(")")
        else:
            used: Open = read_rule(cursor, "opened")
            name, arguments = used.cursor, used.arguments
        statements = yield self._loop_body(label)
        return ForRows(start, cursor.end, variable, name, source, arguments, statements, label)

    def _range(self) -> tuple[Expression, Expression] | None:
        """`lower..upper` before DO: tokens do not tell the dots from those of numbers."""
        cursor = self.cursor
        start, index = cursor.start, cursor.index
        while cursor.word not in ("DO", ";") and not cursor.is_at_end:
            cursor.advance()
        end = cursor.end
        dots = cursor.text.find("..", start, end)
        if dots < 0 or cursor.word_ahead(index - cursor.index) == "(":
            cursor.index = index
            return None
        return self._bound(start, dots), self._bound(dots + 2, end)

    def _bound(self, start: int, end: int) -> Expression:
        """The expression between two places."""
        cursor = self.cursor
        inside = cursor.part(start, end)
        found = read_expression(inside)
        inside.expect_end()
        cursor.high += inside.high
        return found

    def _loop_body(self, label: str) -> Steps[tuple[Node, ...]]:
        self.cursor.expect("DO")
        statements: tuple[Node, ...] = yield self._statements(("END",))
        self._end(label, "END", "FOR")
        return statements

    def _end(self, label: str, *words: str) -> None:
        """The end of a block and the label that may follow."""
        cursor = self.cursor
        cursor.expect(*words)
        if cursor.kind in NAME_KINDS:
            if not label or cursor.token.value.lower() != label.lower():
                raise cursor.stop("the label of the block")
            cursor.advance()

    # Declarations -----------------------------------------------------------------------------

    def _declaration(self) -> Steps[Declaration]:
        """What stands behind DECLARE."""
        cursor = self.cursor
        start = cursor.start
        if cursor.word in ("CONTINUE", "EXIT", "UNDO") and cursor.word_ahead(1) == "HANDLER":
            handler: Declaration = yield self._handler(start)
            return handler
        declaration: Declaration = read_rule(cursor, "declaration")
        return declaration

    def _handler(self, start: int) -> Steps[HandlerDeclaration]:
        cursor = self.cursor
        action = cursor.accept_any(HandlerAction.__members__)
        if not action:
            raise cursor.stop("CONTINUE or EXIT")
        cursor.expect("HANDLER", "FOR")
        conditions = [read_handled(cursor)]
        while cursor.accept_operator(","):
            conditions.append(read_handled(cursor))
        statement: Node = yield self.statement()
        return HandlerDeclaration(
            start, cursor.end, HandlerAction[action], tuple(conditions), statement
        )


_BLOCKS: Final[Mapping[str, Callable[[_Bodies, int, str], Steps[Node]]]] = MappingProxyType(
    {
        "BEGIN": _Bodies.block,
        "IF": _Bodies.if_,
        "CASE": _Bodies.case,
        "LOOP": _Bodies.loop,
        "WHILE": _Bodies.while_,
        "FOR": _Bodies.for_,
        "REPEAT": _Bodies.repeat,
    }
)
BLOCKS: Final = frozenset(_BLOCKS)
"""First words of compound statements."""
LABELLED: Final = BLOCKS - {"IF", "CASE"}
_CONTROLS: Final = frozenset({"RETURN", "LEAVE", "ITERATE", "OPEN", "FETCH", "CLOSE"})
"""Statements of bodies alone, whose rules are called like them."""
