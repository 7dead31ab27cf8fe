"""Bodies and compound statements of MariaDB's sql_mode ORACLE, as far as PL/SQL says them otherwise.

The programs become the trees of `programs`: EXCEPTION is EXIT handlers of its block, EXIT is LEAVE.

Source: MariaDB 10.11 and 11.8, sql/sql_yacc.yy: what stands between `ORACLE` marks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from binlane.statements.sql.parser import forms, variables
from binlane.statements.sql.parser.cursor import Cursor, NotAnalysed
from binlane.statements.sql.parser.expressions import read_expression
from binlane.statements.sql.parser.forms import read_handled, read_rule
from binlane.statements.sql.parser.programs import CONTROLS, Bodies, Steps
from binlane.statements.sql.parser.queries import read_query
from binlane.statements.sql.parser.rows import read_called
from binlane.statements.sql.parser.types import read_type
from binlane.statements.sql.tokens import NAME_KINDS
from binlane.statements.sql.tree.expressions import Expression, Node
from binlane.statements.sql.tree.statements import (
    Block,
    Branch,
    ConditionDeclaration,
    CursorDeclaration,
    Declaration,
    Diagnostics,
    HandlerAction,
    HandlerDeclaration,
    If,
    Iterate,
    Leave,
    Loop,
    VariableDeclaration,
    While,
)

_UNNAMED: Final = "(loop)"
"""The label of a loop without one, which EXIT and CONTINUE need."""
_USER_DEFINED: Final = "SQLSTATE 45000"
"""Condition that `name EXCEPTION` declares."""
_PREDEFINED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CURSOR_ALREADY_OPEN": "1325",
        "DUP_VAL_ON_INDEX": "1062",
        "INVALID_CURSOR": "1326",
        "NO_DATA_FOUND": "1329",
        "TOO_MANY_ROWS": "1172",
    }
)
"""Names of errors that are there without a declaration."""


def is_assignment(cursor: Cursor) -> bool:
    """True if `name :=`, `record.field :=` or `:NEW.column :=` begins here."""
    if cursor.word == ":":
        return cursor.word_ahead(4) == ":="
    return cursor.word_ahead(1) == ":=" or (
        cursor.word_ahead(1) == "." and cursor.word_ahead(3) == ":="
    )


def is_bare_call(cursor: Cursor, is_statement: Callable[[str], bool]) -> bool:
    """True if a procedure is called here by its name alone.

    Args:
        cursor: At the first word of a statement.
        is_statement: True for a word that begins a statement.
    """
    if cursor.kind not in NAME_KINDS or is_statement(cursor.word):
        return False
    return cursor.word_ahead(1) in ("(", ".", ";", "")


class OracleBodies(Bodies):
    """Reads bodies of sql_mode ORACLE at a cursor."""

    __slots__ = ("_loops", "is_statement")
    otherwise = "ELSIF"
    begins_rounds = "LOOP"

    def __init__(
        self,
        cursor: Cursor,
        statement: Callable[[Cursor], Node],
        is_statement: Callable[[str], bool],
    ) -> None:
        super().__init__(cursor, statement)
        self.is_statement = is_statement
        self._loops: list[str] = []

    def body(self) -> Steps[Node]:
        """A whole body; behind AS or IS stand declarations, and BEGIN … END with a name."""
        start = self.cursor.start
        if not self.cursor.accept_any(("AS", "IS")):
            found: Node = yield self.statement()
            return found
        found = yield self.declared_block(start, "", has_name=True)
        return found

    def statement(self) -> Steps[Node]:
        """Read one statement with its labels."""
        cursor = self.cursor
        start, label = cursor.start, ""
        while cursor.accept_operator("<<"):
            label = cursor.identifier()
            cursor.expect_operator(">>")
        if (block := _BLOCKS.get(cursor.word)) is not None:
            cursor.advance()
            found: Node = yield self.nested(block(self, start, label))
            return found
        if (simple := _SIMPLE.get(cursor.word)) is not None:
            return simple(self, start)
        if is_assignment(cursor):
            return variables.read_assignment(cursor)
        if cursor.word in CONTROLS:
            control: Node = read_rule(cursor, cursor.word.lower())
            return control
        if is_bare_call(cursor, self.is_statement):
            return read_called(cursor, start)
        return self.plain(cursor)

    # Blocks -----------------------------------------------------------------------------------

    def block(self, start: int, label: str) -> Steps[Node]:
        """BEGIN … EXCEPTION … END."""
        self.cursor.accept("NOT", "ATOMIC")
        found: Node = yield self._begun(start, label, [], has_name=False)
        return found

    def last_block(self, start: int) -> Steps[Node]:
        """Read the initialization of a package, behind BEGIN, up to its end."""
        found: Node = yield self._begun(start, "", [], has_name=True)
        return found

    def declared_block(self, start: int, label: str, *, has_name: bool = False) -> Steps[Node]:
        """Declarations up to BEGIN, and the block, behind which a routine's name may stand."""
        cursor = self.cursor
        declarations: list[Declaration] = []
        while not cursor.accept("BEGIN"):
            declaration: Declaration = yield self.declaration()
            declarations.append(declaration)
            cursor.expect_operator(";")
        found: Node = yield self._begun(start, label, declarations, has_name=has_name)
        return found

    def _begun(
        self, start: int, label: str, declarations: list[Declaration], *, has_name: bool
    ) -> Steps[Node]:
        """Read a block behind BEGIN, its exception handlers included."""
        cursor = self.cursor
        statements = yield self.statements(("END", "EXCEPTION"), may_be_empty=True)
        if cursor.accept("EXCEPTION"):
            # The block's handlers do not hold in its declarations.
            while cursor.word == "WHEN":
                handler: HandlerDeclaration = yield self._exception()
                declarations.append(handler)
        if has_name:
            cursor.expect("END")
            if cursor.kind in NAME_KINDS:
                cursor.advance()
        else:
            self.end(label, "END")
        return Block(start, cursor.end, tuple(declarations), statements, label)

    def _exception(self) -> Steps[HandlerDeclaration]:
        """WHEN … THEN of EXCEPTION."""
        cursor = self.cursor
        start = cursor.start
        cursor.expect("WHEN")
        conditions = [_condition(cursor)]
        while cursor.accept_operator(","):
            conditions.append(_condition(cursor))
        cursor.expect("THEN")
        at = cursor.start
        statements = yield self.statements(("WHEN", "END"))
        block = Block(at, cursor.end, (), statements)
        return HandlerDeclaration(start, cursor.end, HandlerAction.EXIT, tuple(conditions), block)

    def declaration(self) -> Steps[Declaration]:
        """A variable, cursor, exception, condition or handler."""
        cursor = self.cursor
        start = cursor.start
        if cursor.word_ahead(1) == "HANDLER":
            handler: Declaration = yield self.handler(start)
            return handler
        if cursor.word == "CURSOR":
            return _cursor(cursor, start)
        if cursor.word_ahead(1) == "EXCEPTION":
            name = cursor.identifier()
            cursor.expect("EXCEPTION")
            return ConditionDeclaration(start, cursor.end, name, _USER_DEFINED)
        if cursor.word_ahead(1) in ("CONDITION", "CURSOR"):
            declaration: Declaration = read_rule(cursor, "declaration")
            return declaration
        if cursor.word in ("TYPE", "PRAGMA"):
            raise NotAnalysed(cursor.token, "a declaration that is followed")
        names = [cursor.identifier()]
        while cursor.accept_operator(","):
            names.append(cursor.identifier())
        kind = read_type(cursor)
        default: Expression | None = None
        if cursor.accept_operator(":=") or cursor.accept("DEFAULT"):
            default = read_expression(cursor)
        return VariableDeclaration(start, cursor.end, tuple(names), kind, default)

    # Loops ------------------------------------------------------------------------------------

    def rounds(self, label: str, *ends: str) -> Steps[tuple[Node, ...]]:
        """The statements of a loop, and its end."""
        self._loops.append(label)
        statements: tuple[Node, ...] = yield self.statements(ends[:1])
        self._loops.pop()
        self.end(label, *ends)
        return statements

    def loop(self, start: int, label: str) -> Steps[Node]:
        """LOOP … END LOOP."""
        label = label or _UNNAMED
        statements = yield self.rounds(label, "END", "LOOP")
        return Loop(start, self.cursor.end, statements, label)

    def while_(self, start: int, label: str) -> Steps[Node]:
        """WHILE … LOOP … END LOOP."""
        condition, label = read_expression(self.cursor), label or _UNNAMED
        self.cursor.expect("LOOP")
        statements = yield self.rounds(label, "END", "LOOP")
        return While(start, self.cursor.end, condition, statements, label)

    def repeat(self, start: int, label: str) -> Steps[Node]:
        """REPEAT … END REPEAT, as elsewhere."""
        self._loops.append(label or _UNNAMED)
        found: Node = yield super().repeat(start, label or _UNNAMED)
        self._loops.pop()
        return found

    def for_(self, start: int, label: str) -> Steps[Node]:
        """FOR … LOOP … END LOOP."""
        found: Node = yield super().for_(start, label or _UNNAMED)
        return found

    def loop_body(self, label: str) -> Steps[tuple[Node, ...]]:
        """Read the body of a loop, behind the head of FOR."""
        self.cursor.expect("LOOP")
        statements: tuple[Node, ...] = yield self.rounds(label, "END", "LOOP")
        return statements

    # Statements of their own ------------------------------------------------------------------

    def leave(self, start: int) -> Node:
        """EXIT and CONTINUE, of the innermost loop or of one that is named, and WHEN."""
        cursor = self.cursor
        kind = Leave if cursor.advance().word == "EXIT" else Iterate
        if cursor.kind in NAME_KINDS and cursor.word != "WHEN":
            label = cursor.identifier()
        elif self._loops:
            label = self._loops[-1]
        else:
            raise cursor.stop("a loop around it")
        jump = kind(start, cursor.end, label)
        if not cursor.accept("WHEN"):
            return jump
        condition = read_expression(cursor)
        return If(start, cursor.end, (Branch(start, cursor.end, condition, (jump,)),))

    def nothing(self, start: int) -> Node:
        """NULL."""
        self.cursor.advance()
        return Block(start, self.cursor.end, (), ())

    def raise_(self, start: int) -> Node:
        """RAISE of what is handled, or of an exception."""
        cursor = self.cursor
        cursor.advance()
        if cursor.kind not in NAME_KINDS:
            return Diagnostics(start, cursor.end, "RESIGNAL")
        name = cursor.identifier()
        name = _PREDEFINED.get(name.upper(), name)
        return Diagnostics(start, cursor.end, "SIGNAL", name)

    def goto(self, _start: int) -> Node:
        """GOTO, which is not followed."""
        raise NotAnalysed(self.cursor.token, "a statement that is followed")


def _condition(cursor: Cursor) -> str:
    """Read the condition that an exception handler is for."""
    predefined = _PREDEFINED.get(cursor.word)
    if predefined is not None:
        cursor.advance()
        return predefined
    return read_handled(cursor)


def _cursor(cursor: Cursor, start: int) -> CursorDeclaration:
    """CURSOR name (parameters) IS query."""
    cursor.expect("CURSOR")
    name = cursor.identifier()
    parameters: list[str] = []
    if cursor.accept_operator("("):
        while not parameters or cursor.accept_operator(","):
            parameters.append(cursor.identifier())
            cursor.accept("IN")
            read_type(cursor)
        cursor.expect_operator(")")
    cursor.expect("IS")
    query = read_query(cursor)
    return CursorDeclaration(start, cursor.end, name, query, tuple(parameters))


def begins_rule(word: str) -> bool:
    """True if the grammar has a rule for statements of a word."""
    return word.isupper() and word in forms.GRAMMAR.names


_BLOCKS: Final[Mapping[str, Callable[[OracleBodies, int, str], Steps[Node]]]] = MappingProxyType(
    {
        "BEGIN": OracleBodies.block,
        "DECLARE": OracleBodies.declared_block,
        "IF": OracleBodies.if_,
        "CASE": OracleBodies.case,
        "LOOP": OracleBodies.loop,
        "WHILE": OracleBodies.while_,
        "FOR": OracleBodies.for_,
        "REPEAT": OracleBodies.repeat,
    }
)
_SIMPLE: Final[Mapping[str, Callable[[OracleBodies, int], Node]]] = MappingProxyType(
    {
        "EXIT": OracleBodies.leave,
        "CONTINUE": OracleBodies.leave,
        "NULL": OracleBodies.nothing,
        "RAISE": OracleBodies.raise_,
        "GOTO": OracleBodies.goto,
    }
)
