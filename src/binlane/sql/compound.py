"""The bodies of routines, triggers and events: BEGIN … END and what may stand in it.

Statements in a body are read by the same readers as elsewhere; here is only what lies around them:
blocks, labels, declarations, conditions and loops, of SQL/PSM as MySQL and MariaDB have it. What
holds no statements (RETURN, FETCH, SIGNAL) is in `program_controls`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final

from binlane.sql.body import (
    Block,
    BodyStatement,
    Branch,
    Case,
    ConditionDeclaration,
    CursorDeclaration,
    Declaration,
    ForRange,
    ForRows,
    HandlerAction,
    HandlerDeclaration,
    If,
    Loop,
    Repeat,
    Span,
    VariableDeclaration,
    While,
)
from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.draft import Draft
from binlane.sql.program_controls import CONTROLS
from binlane.sql.program_reader import ProgramReader
from binlane.sql.queries import is_at_query, read_query
from binlane.sql.steps import Steps, run
from binlane.sql.tokens import NAME_KINDS, SqlSyntaxError, Token, TokenKind, tokenise


def read_program(
    text: str, *, offset: int = 0, ansi_quotes: bool = False, no_backslash_escapes: bool = False
) -> BodyStatement:
    """Read the body of a routine, trigger or event, or a compound statement.

    Args:
        text: What holds the body: its own text, or the whole CREATE statement.
        offset: Where the body begins in it. All spans count from the begin of `text`.
        ansi_quotes: sql_mode ANSI_QUOTES.
        no_backslash_escapes: sql_mode NO_BACKSLASH_ESCAPES.

    Raises:
        Stopped: Where the text is not understood.
    """
    try:
        tokens = list(
            tokenise(text, ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes)
        )
    except SqlSyntaxError as error:
        rest = text[error.offset :]
        token = Token(TokenKind.INVALID, rest, error.offset, rest)
        raise Stopped(token, "the quotes or comment to end") from None
    cursor = Cursor(tokens)
    while cursor.token.offset < offset and not cursor.is_at_end:
        cursor.advance()
    statement = read_body(cursor, Draft("", text))
    while cursor.accept_operator(";"):
        pass
    cursor.expect_end()
    return statement


def read_body(cursor: Cursor, draft: Draft) -> BodyStatement:
    """Read one statement of a body, simple or compound, with its label.

    Raises:
        Stopped: Where the text is not understood.
    """
    return run(_BodyReader(cursor, draft).statement())


class _BodyReader(ProgramReader):
    """Reads a body into a tree."""

    __slots__ = ()

    def statement(self) -> Steps[BodyStatement]:
        """One statement with its label."""
        cursor = self.cursor
        label = ""
        if cursor.ahead(1).text == ":" and cursor.token.kind in NAME_KINDS:
            label = cursor.advance().value
            cursor.advance()
        block = _BLOCKS.get(cursor.word)
        if block is not None:
            cursor.advance()
            found: BodyStatement = yield block(self, label)
            return found
        control = CONTROLS.get(cursor.word)
        if control is not None:
            cursor.advance()
            return control(self)
        return self.plain()

    def _statements(self, ends: Collection[str]) -> Steps[tuple[BodyStatement, ...]]:
        """Statements up to one of the words that end a block."""
        cursor = self.cursor
        found: list[BodyStatement] = []
        while cursor.word not in ends:
            if cursor.is_at_end:
                raise cursor.stop(" or ".join(ends))
            statement: BodyStatement = yield self.statement()
            found.append(statement)
            cursor.expect_operator(";")
        return tuple(found)

    # Blocks -----------------------------------------------------------------------------------

    def block(self, label: str) -> Steps[BodyStatement]:
        """BEGIN … END."""
        self.cursor.accept("NOT", "ATOMIC")
        declarations: list[Declaration] = []
        while self.cursor.accept("DECLARE"):
            declaration: Declaration = yield self._declaration()
            declarations.append(declaration)
            self.cursor.expect_operator(";")
        statements = yield self._statements(("END",))
        self.end("END")
        return Block(declarations=tuple(declarations), statements=statements, label=label)

    def if_(self, _label: str) -> Steps[BodyStatement]:
        """IF … END IF."""
        branches: list[Branch] = []
        while True:
            condition = self.expression("THEN")
            statements = yield self._statements(("ELSEIF", "ELSE", "END"))
            branches.append(Branch(condition=condition, statements=statements))
            if not self.cursor.accept("ELSEIF"):
                break
        otherwise: tuple[BodyStatement, ...] = ()
        if self.cursor.accept("ELSE"):
            otherwise = yield self._statements(("END",))
        self.cursor.expect("END", "IF")
        return If(branches=tuple(branches), otherwise=otherwise)

    def case(self, _label: str) -> Steps[BodyStatement]:
        """CASE … END CASE."""
        operand: Span | None = None
        if not self.cursor.accept("WHEN"):
            operand = self.expression("WHEN")
        branches: list[Branch] = []
        while True:
            condition = self.expression("THEN")
            statements = yield self._statements(("WHEN", "ELSE", "END"))
            branches.append(Branch(condition=condition, statements=statements))
            if not self.cursor.accept("WHEN"):
                break
        otherwise: tuple[BodyStatement, ...] | None = None
        if self.cursor.accept("ELSE"):
            otherwise = yield self._statements(("END",))
        self.cursor.expect("END", "CASE")
        return Case(operand=operand, branches=tuple(branches), otherwise=otherwise)

    def loop(self, label: str) -> Steps[BodyStatement]:
        """LOOP … END LOOP."""
        statements = yield self._statements(("END",))
        self.end("END", "LOOP")
        return Loop(statements=statements, label=label)

    def while_(self, label: str) -> Steps[BodyStatement]:
        """WHILE … END WHILE."""
        condition = self.expression("DO")
        statements = yield self._statements(("END",))
        self.end("END", "WHILE")
        return While(condition=condition, statements=statements, label=label)

    def repeat(self, label: str) -> Steps[BodyStatement]:
        """REPEAT … END REPEAT."""
        statements = yield self._statements(("UNTIL",))
        self.cursor.expect("UNTIL")
        condition = self.expression("END")
        self.end("REPEAT")
        return Repeat(condition=condition, statements=statements, label=label)

    def for_(self, label: str) -> Steps[BodyStatement]:
        """FOR … END FOR, over a range, a cursor or a query (MariaDB)."""
        cursor = self.cursor
        variable = cursor.identifier()
        cursor.expect("IN")
        is_reverse = cursor.accept("REVERSE")
        tokens = cursor.until(("DO",), operators=(";",))
        cursor.expect("DO")
        if not tokens:
            raise cursor.stop("a range")
        span = self.span(tokens)
        lower, dots, upper = span.text.partition("..")
        query: Span | None = None
        name = ""
        arguments: tuple[Span, ...] = ()
        if not dots:
            name, query, arguments = self._rows(tokens)
        statements = yield self._statements(("END",))
        self.end("END", "FOR")
        if dots:
            first = Span(lower.rstrip(), span.offset)
            second = upper.lstrip()
            last = Span(second, span.end - len(second))
            return ForRange(
                variable=variable,
                lower=first,
                upper=last,
                is_reverse=is_reverse,
                statements=statements,
                label=label,
            )
        return ForRows(
            variable=variable,
            cursor=name,
            query=query,
            arguments=arguments,
            statements=statements,
            label=label,
        )

    def _rows(self, tokens: list[Token]) -> tuple[str, Span | None, tuple[Span, ...]]:
        """What FOR goes through: a cursor's name and arguments, or a query."""
        inside = Cursor(tokens)
        if is_at_query(inside):
            query = inside.group()
            source = Cursor(query)
            read_query(source, self.draft)
            source.expect_end()
            return "", self.span(query), ()
        name = inside.identifier()
        reader = _BodyReader(inside, self.draft)
        arguments = reader.arguments()
        inside.expect_end()
        return name, None, arguments

    # Declarations -----------------------------------------------------------------------------

    def _declaration(self) -> Steps[Declaration]:
        """What stands behind DECLARE."""
        cursor = self.cursor
        if cursor.ahead(1).word == "HANDLER":
            handler: Declaration = yield self._handler()
            return handler
        names = [cursor.identifier()]
        if cursor.accept("CONDITION", "FOR"):
            return ConditionDeclaration(name=names[0], value=self.condition())
        if cursor.word in ("CURSOR", "SENSITIVE", "INSENSITIVE"):
            return self._cursor(names[0])
        while cursor.accept_operator(","):
            names.append(cursor.identifier())
        declared = cursor.until(("DEFAULT",), operators=(";", ":="))
        default: Span | None = None
        if cursor.accept("DEFAULT") or cursor.accept_operator(":="):
            default = self.rest_expression()
        return VariableDeclaration(
            names=tuple(names), type_text=self.draft.slice(declared), default=default
        )

    def _cursor(self, name: str) -> CursorDeclaration:
        cursor = self.cursor
        cursor.accept_any(("SENSITIVE", "INSENSITIVE"))
        cursor.expect("CURSOR")
        parameters: tuple[str, ...] = ()
        if cursor.token.text == "(":
            parts = split(cursor.group())
            parameters = tuple(Cursor(part).identifier() for part in parts)
        cursor.expect("FOR")
        query = cursor.until((), operators=(";",))
        inside = Cursor(query)
        read_query(inside, self.draft)
        inside.expect_end()
        return CursorDeclaration(name=name, query=self.span(query), parameters=parameters)

    def _handler(self) -> Steps[HandlerDeclaration]:
        cursor = self.cursor
        word = cursor.accept_any(HandlerAction.__members__)
        if not word:
            raise cursor.stop("CONTINUE or EXIT")
        cursor.expect("HANDLER", "FOR")
        conditions = [self.condition()]
        while cursor.accept_operator(","):
            conditions.append(self.condition())
        statement: BodyStatement = yield self.statement()
        return HandlerDeclaration(
            action=HandlerAction[word], conditions=tuple(conditions), statement=statement
        )


_BLOCKS: Final[Mapping[str, Callable[[_BodyReader, str], Steps[BodyStatement]]]] = MappingProxyType(
    {
        "BEGIN": _BodyReader.block,
        "IF": _BodyReader.if_,
        "CASE": _BodyReader.case,
        "LOOP": _BodyReader.loop,
        "WHILE": _BodyReader.while_,
        "FOR": _BodyReader.for_,
        "REPEAT": _BodyReader.repeat,
    }
)
BLOCKS: Final = frozenset(_BLOCKS)
"""First words of compound statements."""
