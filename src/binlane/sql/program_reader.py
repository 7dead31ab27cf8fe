"""What the statements of programs are made of: plain statements, expressions, conditions."""

from __future__ import annotations

from binlane.sql.body import PlainStatement, Span
from binlane.sql.cursor import Cursor, split
from binlane.sql.draft import Draft
from binlane.sql.queries import read_expressions
from binlane.sql.statements import read_simple_statement
from binlane.sql.tokens import NAME_KINDS, Token, TokenKind


class ProgramReader:
    """Reads the parts of programs at a cursor; what they name goes into the draft."""

    __slots__ = ("cursor", "draft")

    def __init__(self, cursor: Cursor, draft: Draft) -> None:
        self.cursor = cursor
        self.draft = draft

    def plain(self) -> PlainStatement:
        """A statement that may stand outside of programs too, up to its delimiter."""
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
        return PlainStatement(sql=self.span(tokens), kind=draft.kind)

    def span(self, tokens: list[Token]) -> Span:
        """The text of some tokens; at least one."""
        return Span(self.draft.slice(tokens), tokens[0].offset)

    def expression(self, end: str) -> Span:
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
        span = self.read_expression(cursor.since(start))
        cursor.expect(end)
        return span

    def rest_expression(self) -> Span:
        """An expression up to the end of the statement."""
        return self.read_expression(self.cursor.until((), operators=(";",)))

    def read_expression(self, tokens: list[Token]) -> Span:
        """Some tokens that are one expression."""
        inside = Cursor(tokens)
        if not tokens:
            raise self.cursor.stop("an expression")
        read_expressions(inside, self.draft)
        inside.expect_end()
        return self.span(tokens)

    def arguments(self) -> tuple[Span, ...]:
        """Expressions in parentheses, if any."""
        if self.cursor.token.text != "(":
            return ()
        inside = self.cursor.group()
        return tuple(self.read_expression(part) for part in split(inside)) if inside else ()

    def end(self, *words: str) -> None:
        """The end of a block and the label that may follow."""
        self.cursor.expect(*words)
        if self.cursor.token.kind in NAME_KINDS:
            self.cursor.advance()

    def condition(self) -> str:
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
