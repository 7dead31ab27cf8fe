"""Bodies of routines, triggers and events, and compound statements: blocks, conditions and loops.

A statement in a body is read by the readers of `parser`, as outside of it; here is what lies
around statements: SQL/PSM as MySQL and MariaDB have it. Nesting costs no stack (`Steps`).

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy: sp_proc_stmt, sp_decl.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.parser.expressions import read_expression
from binlane.statements.sql.parser.forms import read_handled, read_rule
from binlane.statements.sql.parser.queries import read_query
from binlane.statements.sql.tokens import NAME_KINDS
from binlane.statements.sql.tree.expressions import Expression, Node
from binlane.statements.sql.tree.statements import (
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


def run(first: Steps[Result]) -> Result:
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


def is_at_compound(cursor: Cursor) -> bool:
    """True if a compound statement outside of a routine begins here, which MariaDB has.

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


class Bodies:
    """Reads bodies at a cursor."""

    __slots__ = ("cursor", "plain")
    otherwise = "ELSEIF"
    """Word before a further condition of IF."""
    begins_rounds = "DO"
    """Word between the head of a loop and its statements."""

    def __init__(self, cursor: Cursor, statement: StatementReader) -> None:
        self.cursor = cursor
        self.plain = statement

    def body(self) -> Steps[Node]:
        """A whole body."""
        return self.statement()

    def statement(self) -> Steps[Node]:
        """Read one statement with its label."""
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
            found: Node = yield self.nested(block(self, start, label))
            return found
        if cursor.word in CONTROLS:
            control: Node = read_rule(cursor, cursor.word.lower())
            return control
        return self.plain(cursor)

    def nested(self, block: Steps[Node]) -> Steps[Node]:
        """A block, which stands a level deeper."""
        self.cursor.deeper(_BLOCK_CALLS)
        found: Node = yield block
        self.cursor.depth -= _BLOCK_CALLS
        return found

    def statements(
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

    def block(self, start: int, label: str) -> Steps[Node]:
        """BEGIN … END."""
        cursor = self.cursor
        cursor.accept("NOT", "ATOMIC")
        declarations: list[Declaration] = []
        while cursor.accept("DECLARE"):
            declaration: Declaration = yield self.declaration()
            declarations.append(declaration)
            cursor.expect_operator(";")
        statements = yield self.statements(("END",), may_be_empty=True)
        self.end(label, "END")
        return Block(start, cursor.end, tuple(declarations), statements, label)

    def if_(self, start: int, _label: str) -> Steps[Node]:
        """IF … END IF."""
        cursor = self.cursor
        branches: list[Branch] = []
        while True:
            branch: Branch = yield self._branch((self.otherwise, "ELSE", "END"))
            branches.append(branch)
            if not cursor.accept(self.otherwise):
                break
        otherwise: tuple[Node, ...] = ()
        if cursor.accept("ELSE"):
            otherwise = yield self.statements(("END",))
        cursor.expect("END", "IF")
        return If(start, cursor.end, tuple(branches), otherwise)

    def _branch(self, ends: Collection[str]) -> Steps[Branch]:
        start = self.cursor.start
        condition = read_expression(self.cursor)
        self.cursor.expect("THEN")
        statements = yield self.statements(ends)
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
            otherwise = yield self.statements(("END",))
        cursor.expect("END", "CASE")
        return CaseStatement(start, cursor.end, operand, tuple(branches), otherwise)

    def loop(self, start: int, label: str) -> Steps[Node]:
        """LOOP … END LOOP."""
        statements = yield self.statements(("END",))
        self.end(label, "END", "LOOP")
        return Loop(start, self.cursor.end, statements, label)

    def while_(self, start: int, label: str) -> Steps[Node]:
        """WHILE … END WHILE."""
        condition = read_expression(self.cursor)
        self.cursor.expect("DO")
        statements = yield self.statements(("END",))
        self.end(label, "END", "WHILE")
        return While(start, self.cursor.end, condition, statements, label)

    def repeat(self, start: int, label: str) -> Steps[Node]:
        """REPEAT … END REPEAT."""
        statements = yield self.statements(("UNTIL",))
        self.cursor.expect("UNTIL")
        condition = read_expression(self.cursor)
        self.end(label, "END", "REPEAT")
        return Repeat(start, self.cursor.end, statements, condition, label)

    def for_(self, start: int, label: str) -> Steps[Node]:
        """FOR … END FOR, over a range, a cursor or a query (MariaDB)."""
        cursor = self.cursor
        if not cursor.dialect.has_mariadb(10, 3):
            raise cursor.stop("a statement")
        variable = cursor.identifier()
        cursor.expect("IN")
        is_reverse = cursor.accept("REVERSE")
        bounds = self.range_()
        if bounds is not None:
            statements = yield self.loop_body(label)
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
        statements = yield self.loop_body(label)
        return ForRows(start, cursor.end, variable, name, source, arguments, statements, label)

    def range_(self) -> tuple[Expression, Expression] | None:
        """`lower..upper` before DO, or LOOP: tokens do not tell the dots from those of numbers."""
        cursor = self.cursor
        start, index = cursor.start, cursor.index
        while cursor.word not in (self.begins_rounds, ";") and not cursor.is_at_end:
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

    def loop_body(self, label: str) -> Steps[tuple[Node, ...]]:
        """Read the body of a loop, behind the head of FOR."""
        self.cursor.expect("DO")
        statements: tuple[Node, ...] = yield self.statements(("END",))
        self.end(label, "END", "FOR")
        return statements

    def end(self, label: str, *words: str) -> None:
        """The end of a block and the label that may follow."""
        cursor = self.cursor
        cursor.expect(*words)
        if cursor.kind in NAME_KINDS:
            if not label or cursor.token.value.lower() != label.lower():
                raise cursor.stop("the label of the block")
            cursor.advance()

    # Declarations -----------------------------------------------------------------------------

    def declaration(self) -> Steps[Declaration]:
        """Read a declaration, behind DECLARE."""
        cursor = self.cursor
        start = cursor.start
        if cursor.word in ("CONTINUE", "EXIT", "UNDO") and cursor.word_ahead(1) == "HANDLER":
            handler: Declaration = yield self.handler(start)
            return handler
        declaration: Declaration = read_rule(cursor, "declaration")
        return declaration

    def handler(self, start: int) -> Steps[HandlerDeclaration]:
        """A handler, from its action on."""
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


_BLOCKS: Final[Mapping[str, Callable[[Bodies, int, str], Steps[Node]]]] = MappingProxyType(
    {
        "BEGIN": Bodies.block,
        "IF": Bodies.if_,
        "CASE": Bodies.case,
        "LOOP": Bodies.loop,
        "WHILE": Bodies.while_,
        "FOR": Bodies.for_,
        "REPEAT": Bodies.repeat,
    }
)
BLOCKS: Final = frozenset(_BLOCKS)
"""First words of compound statements."""
LABELLED: Final = BLOCKS - {"IF", "CASE"}
CONTROLS: Final = frozenset({"RETURN", "LEAVE", "ITERATE", "OPEN", "FETCH", "CLOSE"})
"""Statements of bodies alone, whose rules are called like them."""
