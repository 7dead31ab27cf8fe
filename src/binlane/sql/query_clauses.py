"""The clauses of queries and of UPDATE and DELETE: WHERE, GROUP BY, ORDER BY, LIMIT, INTO, locks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from binlane.sql.cursor import Cursor
from binlane.sql.draft import Draft
from binlane.sql.effects import StatementKind
from binlane.sql.expressions import CommonTables, ExpressionReader
from binlane.sql.facts import Limit
from binlane.sql.keywords import EXPORT_WORDS
from binlane.sql.steps import Steps
from binlane.sql.tokens import TokenKind

_CHANGE_KINDS: Final = (StatementKind.UPDATE, StatementKind.DELETE)


class ClauseReader(ExpressionReader):
    """Reads what follows the expressions or tables of a statement."""

    __slots__ = ("block",)

    def __init__(self, cursor: Cursor, draft: Draft) -> None:
        super().__init__(cursor, draft)
        self.block: list[int] = []
        """Indices of the tables that the current SELECT itself names."""

    @abstractmethod
    def references(self, common: CommonTables, *, is_outermost: bool) -> Steps[None]:
        """Read tables with joins and commas between them."""

    def clauses(self, common: CommonTables, *, is_outermost: bool) -> Steps[None]:
        """Read the clauses of a query or of UPDATE and DELETE, in any order."""
        cursor = self.cursor
        while True:
            word = cursor.word
            if word == "FROM":
                cursor.advance()
                yield self.references(common, is_outermost=is_outermost)
            elif word in ("WHERE", "HAVING", "QUALIFY"):
                cursor.advance()
                if word == "WHERE" and is_outermost and self.draft.kind in _CHANGE_KINDS:
                    self.draft.has_where = True
                yield self.expression(common)
            elif word == "FOR" and cursor.ahead(1).word not in ("UPDATE", "SHARE"):
                return
            elif (reader := _CLAUSES.get(word)) is not None:
                yield reader(self, common)
            else:
                return

    def order(self, common: CommonTables) -> Steps[None]:
        """GROUP BY and ORDER BY."""
        self.cursor.advance()
        self.cursor.expect("BY")
        yield self.expression(common)
        self.cursor.accept("WITH", "ROLLUP")

    def window(self, common: CommonTables) -> Steps[None]:
        """WINDOW."""
        self.cursor.advance()
        yield self.expression(common)

    def returning(self, common: CommonTables) -> Steps[None]:
        """RETURNING."""
        self.cursor.advance()
        self.draft.has_returning = True
        yield self.expression(common)

    def procedure(self, common: CommonTables) -> Steps[None]:
        """PROCEDURE ANALYSE."""
        self.cursor.advance()
        self.draft.options.add("PROCEDURE")
        yield self.expression(common)

    def limit(self, common: CommonTables) -> Steps[None]:
        """LIMIT, FETCH FIRST and OFFSET … ROWS; several words of one clause are one."""
        cursor = self.cursor
        first = cursor.token
        counts: list[str] = []
        while word := cursor.accept_any(("LIMIT", "FETCH", "OFFSET", "ROWS", "ROW", "EXAMINED")):
            if word == "LIMIT" and cursor.word != "ROWS":
                counts = [cursor.token.text]
                yield self.expression(common, ends=("ROWS",), ends_at_comma=True)
                if cursor.accept_operator(","):
                    counts = [cursor.token.text]
                    yield self.expression(common, ends=("ROWS",), ends_at_comma=True)
            elif word == "FETCH":
                if not cursor.accept_any(("FIRST", "NEXT")):
                    raise cursor.stop("FIRST")
                if cursor.word not in ("ROW", "ROWS"):
                    counts = [cursor.token.text]
                    yield self.expression(common, ends=("ROW", "ROWS"))
                if not cursor.accept_any(("ROW", "ROWS")):
                    raise cursor.stop("ROWS")
                if not cursor.accept("ONLY"):
                    cursor.expect("WITH", "TIES")
            elif word in ("OFFSET", "EXAMINED"):
                yield self.expression(common, ends=("ROW", "ROWS"), ends_at_comma=True)
        end = cursor.ahead(-1).end
        self.draft.limits.append(
            Limit(offset=first.offset, length=end - first.offset, is_zero=counts == ["0"])
        )

    def into(self, _common: CommonTables) -> Steps[None]:
        """INTO a file or variables."""
        yield from ()  # it holds no expressions
        cursor = self.cursor
        cursor.advance()
        self.draft.has_into = True
        if cursor.accept_any(("OUTFILE", "DUMPFILE")):
            self.draft.options.add("OUTFILE")
            cursor.advance()
            while cursor.word in EXPORT_WORDS or cursor.token.kind in (
                TokenKind.STRING,
                TokenKind.NUMBER,
            ):
                if cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
                    cursor.identifier()
                else:
                    cursor.advance()
            return
        while True:
            if cursor.token.kind is TokenKind.USER_VARIABLE:
                self.user_variable(is_target=True)
            else:
                cursor.qualified_name()
            if not cursor.accept_operator(","):
                return

    def locking(self, _common: CommonTables) -> Steps[None]:
        """FOR UPDATE, FOR SHARE and LOCK IN SHARE MODE."""
        yield from ()  # it holds no expressions
        cursor, draft = self.cursor, self.draft
        is_for_update = cursor.accept("FOR", "UPDATE")
        if not is_for_update and not cursor.accept("FOR", "SHARE"):
            cursor.expect("LOCK", "IN", "SHARE", "MODE")
        draft.is_locking_read = True
        aliases: list[str] = []
        if cursor.accept("OF"):
            aliases.append(cursor.qualified_name()[1])
            while cursor.accept_operator(","):
                aliases.append(cursor.qualified_name()[1])
        if is_for_update:
            draft.lock_for_update(self.block, aliases)
        offset = cursor.token.offset
        if cursor.accept("SKIP", "LOCKED"):
            draft.skip_locked = offset if draft.skip_locked is None else draft.skip_locked
        elif cursor.accept("NOWAIT"):
            draft.nowait = offset if draft.nowait is None else draft.nowait
        elif cursor.accept("WAIT"):
            cursor.advance()


_CLAUSES: Final[Mapping[str, Callable[[ClauseReader, CommonTables], Steps[None]]]] = (
    MappingProxyType(
        {
            "GROUP": ClauseReader.order,
            "ORDER": ClauseReader.order,
            "WINDOW": ClauseReader.window,
            "LIMIT": ClauseReader.limit,
            "FETCH": ClauseReader.limit,
            "OFFSET": ClauseReader.limit,
            "RETURNING": ClauseReader.returning,
            "INTO": ClauseReader.into,
            "FOR": ClauseReader.locking,
            "LOCK": ClauseReader.locking,
            "PROCEDURE": ClauseReader.procedure,
        }
    )
)
