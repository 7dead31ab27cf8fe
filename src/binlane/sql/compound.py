"""The bodies of routines, triggers and events: BEGIN … END and what may stand in it.

Statements in a body are read by the same readers as elsewhere; here is only what lies around them:
blocks, labels, declarations, conditions and loops, of SQL/PSM as MySQL and MariaDB have it.
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
from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.draft import Draft
from binlane.sql.effects import StatementKind
from binlane.sql.queries import is_at_query, read_expressions, read_query
from binlane.sql.statements import read_simple_statement
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


class _BodyReader:
    """Reads a body at a cursor into a tree; what it names goes into the draft."""

    __slots__ = ("cursor", "draft")

    def __init__(self, cursor: Cursor, draft: Draft) -> None:
        self.cursor = cursor
        self.draft = draft

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
        control = _CONTROLS.get(cursor.word)
        if control is not None:
            cursor.advance()
            return control(self)
        return self._plain()

    def _plain(self) -> PlainStatement:
        cursor = self.cursor
        if cursor.token.text == ";":
            raise cursor.stop("a statement")
        tokens = cursor.until((), operators=(";",))
        inside = Cursor(tokens)
        draft = Draft(self.draft.database, self.draft.text)
        try:
            read_simple_statement(inside, draft)
            inside.expect_end()
        finally:
            self.draft.absorb(draft)
        return PlainStatement(sql=self._span(tokens), kind=draft.kind)

    def _span(self, tokens: list[Token]) -> Span:
        return Span(self.draft.slice(tokens), tokens[0].offset)

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

    def _expression(self, end: str) -> Span:
        """An expression up to a word that is read too; those inside CASE … END do not count."""
        cursor = self.cursor
        start = cursor.index
        while True:
            cursor.until((end, "CASE"), operators=(";",))
            if not cursor.accept("CASE"):
                break
            depth = 1
            while depth and not cursor.is_at_end:
                depth += {"CASE": 1, "END": -1}.get(cursor.advance().word, 0)
        span = self._read_expression(cursor.since(start))
        cursor.expect(end)
        return span

    def _rest_expression(self) -> Span:
        """An expression up to the end of the statement."""
        return self._read_expression(self.cursor.until((), operators=(";",)))

    def _read_expression(self, tokens: list[Token]) -> Span:
        inside = Cursor(tokens)
        if not tokens:
            raise self.cursor.stop("an expression")
        read_expressions(inside, self.draft)
        inside.expect_end()
        return self._span(tokens)

    def _arguments(self) -> tuple[Span, ...]:
        """Expressions in parentheses, if any."""
        if self.cursor.token.text != "(":
            return ()
        inside = self.cursor.group()
        return tuple(self._read_expression(part) for part in split(inside)) if inside else ()

    def _end(self, *words: str) -> None:
        """The end of a block and the label that may follow."""
        self.cursor.expect(*words)
        if self.cursor.token.kind in NAME_KINDS:
            self.cursor.advance()

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
        self._end("END")
        return Block(declarations=tuple(declarations), statements=statements, label=label)

    def if_(self, _label: str) -> Steps[BodyStatement]:
        """IF … END IF."""
        branches: list[Branch] = []
        while True:
            condition = self._expression("THEN")
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
            operand = self._expression("WHEN")
        branches: list[Branch] = []
        while True:
            condition = self._expression("THEN")
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
        self._end("END", "LOOP")
        return Loop(statements=statements, label=label)

    def while_(self, label: str) -> Steps[BodyStatement]:
        """WHILE … END WHILE."""
        condition = self._expression("DO")
        statements = yield self._statements(("END",))
        self._end("END", "WHILE")
        return While(condition=condition, statements=statements, label=label)

    def repeat(self, label: str) -> Steps[BodyStatement]:
        """REPEAT … END REPEAT."""
        statements = yield self._statements(("UNTIL",))
        self.cursor.expect("UNTIL")
        condition = self._expression("END")
        self._end("REPEAT")
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
        span = self._span(tokens)
        lower, dots, upper = span.text.partition("..")
        query: Span | None = None
        name = ""
        arguments: tuple[Span, ...] = ()
        if not dots:
            name, query, arguments = self._rows(tokens)
        statements = yield self._statements(("END",))
        self._end("END", "FOR")
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
            return "", self._span(query), ()
        name = inside.identifier()
        reader = _BodyReader(inside, self.draft)
        arguments = reader._arguments()
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
            return ConditionDeclaration(name=names[0], value=self._condition())
        if cursor.word in ("CURSOR", "SENSITIVE", "INSENSITIVE"):
            return self._cursor(names[0])
        while cursor.accept_operator(","):
            names.append(cursor.identifier())
        declared = cursor.until(("DEFAULT",), operators=(";", ":="))
        default: Span | None = None
        if cursor.accept("DEFAULT") or cursor.accept_operator(":="):
            default = self._rest_expression()
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
        return CursorDeclaration(name=name, query=self._span(query), parameters=parameters)

    def _handler(self) -> Steps[HandlerDeclaration]:
        cursor = self.cursor
        word = cursor.accept_any(HandlerAction.__members__)
        if not word:
            raise cursor.stop("CONTINUE or EXIT")
        cursor.expect("HANDLER", "FOR")
        conditions = [self._condition()]
        while cursor.accept_operator(","):
            conditions.append(self._condition())
        statement: BodyStatement = yield self.statement()
        return HandlerDeclaration(
            action=HandlerAction[word], conditions=tuple(conditions), statement=statement
        )

    def _condition(self) -> str:
        """One condition that a handler is for."""
        cursor = self.cursor
        if cursor.accept("NOT", "FOUND"):
            return "NOT FOUND"
        if cursor.accept("SQLSTATE"):
            cursor.accept("VALUE")
            if cursor.token.kind is not TokenKind.STRING:
                raise cursor.stop("a string")
            return f"SQLSTATE {cursor.advance().value}"
        if cursor.word in ("SQLEXCEPTION", "SQLWARNING", "OTHERS"):
            return cursor.advance().word
        if cursor.token.kind not in (*NAME_KINDS, TokenKind.NUMBER):
            raise cursor.stop("a condition")
        return cursor.advance().value

    # Statements of programs only --------------------------------------------------------------

    def return_(self) -> BodyStatement:
        """RETURN."""
        if self.cursor.is_at_end or self.cursor.token.text == ";":
            return Return()
        return Return(value=self._rest_expression())

    def leave(self) -> BodyStatement:
        """LEAVE."""
        return Leave(label=self.cursor.identifier())

    def iterate(self) -> BodyStatement:
        """ITERATE."""
        return Iterate(label=self.cursor.identifier())

    def open(self) -> BodyStatement:
        """OPEN."""
        return Open(cursor=self.cursor.identifier(), arguments=self._arguments())

    def fetch(self) -> BodyStatement:
        """FETCH."""
        cursor = self.cursor
        if cursor.accept("GROUP", "NEXT", "ROW"):
            return Fetch(cursor="", variables=())
        if cursor.accept("NEXT"):
            cursor.expect("FROM")
        else:
            cursor.accept("FROM")
        name = cursor.identifier()
        cursor.expect("INTO")
        variables = [self._variable()]
        while cursor.accept_operator(","):
            variables.append(self._variable())
        return Fetch(cursor=name, variables=tuple(variables))

    def _variable(self) -> str:
        database, name = self.cursor.qualified_name()
        return name if database is None else f"{database}.{name}"

    def close(self) -> BodyStatement:
        """CLOSE."""
        return Close(cursor=self.cursor.identifier())

    def signal(self) -> BodyStatement:
        """SIGNAL."""
        return self._signal(is_again=False)

    def resignal(self) -> BodyStatement:
        """RESIGNAL."""
        return self._signal(is_again=True)

    def _signal(self, *, is_again: bool) -> Signal:
        cursor = self.cursor
        condition = ""
        if cursor.word != "SET" and cursor.token.text != ";" and not cursor.is_at_end:
            condition = self._condition()
        items: list[tuple[str, Span]] = []
        if cursor.accept("SET"):
            for part in split(cursor.until((), operators=(";",))):
                inside = Cursor(part)
                name = inside.identifier().upper()
                inside.expect_operator("=")
                items.append((name, self._read_expression(inside.rest())))
        return Signal(condition=condition, items=tuple(items), is_again=is_again)

    def diagnostics(self) -> BodyStatement:
        """GET [CURRENT | STACKED] DIAGNOSTICS."""
        cursor = self.cursor
        cursor.index -= 1
        tokens = cursor.until((), operators=(";",))
        return PlainStatement(sql=self._span(tokens), kind=StatementKind.SIGNAL)


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
_CONTROLS: Final[Mapping[str, Callable[[_BodyReader], BodyStatement]]] = MappingProxyType(
    {
        "RETURN": _BodyReader.return_,
        "LEAVE": _BodyReader.leave,
        "ITERATE": _BodyReader.iterate,
        "OPEN": _BodyReader.open,
        "FETCH": _BodyReader.fetch,
        "CLOSE": _BodyReader.close,
        "SIGNAL": _BodyReader.signal,
        "RESIGNAL": _BodyReader.resignal,
        "GET": _BodyReader.diagnostics,
    }
)
BLOCKS: Final = frozenset(_BLOCKS)
"""First words of compound statements."""
