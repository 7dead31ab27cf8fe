"""The tables that queries name, and their clauses: SELECT, VALUES, TABLE, WITH, joins, UNION.

Common table expressions are told from tables by the WITH clauses around a name. What cannot be
read stops the analysis. Nesting costs no stack: readers are run by `steps`.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from binlane.sql.clauses import table_name
from binlane.sql.cursor import Cursor
from binlane.sql.draft import Draft
from binlane.sql.expressions import CommonTables, table_use
from binlane.sql.keywords import (
    JOIN_WORDS,
    NO_ALIASES,
    QUERY_WORDS,
    SELECT_OPTIONS,
    SET_OPERATIONS,
)
from binlane.sql.query_clauses import ClauseReader
from binlane.sql.steps import Steps, run
from binlane.sql.tokens import NAME_KINDS, Token, TokenKind

_NO_COMMON_TABLES: Final = CommonTables()


class _Parenthesised(Enum):
    """What stood in parentheses where a table was expected."""

    QUERY = "query"
    TABLES = "tables"


def read_query(cursor: Cursor, draft: Draft, common: CommonTables = _NO_COMMON_TABLES) -> None:
    """Read a query that is the statement itself, or the one of INSERT, CREATE TABLE or a view.

    Raises:
        Stopped: Where it is not understood.
    """
    run(QueryReader(cursor, draft).query(common, is_outermost=True))


def read_expression(
    cursor: Cursor,
    draft: Draft,
    common: CommonTables = _NO_COMMON_TABLES,
    *,
    ends: tuple[str, ...] = (),
) -> None:
    """Read one expression, up to a comma outside of parentheses or what cannot be part of it."""
    run(QueryReader(cursor, draft).expression(common, ends=ends, ends_at_comma=True))


def read_expressions(
    cursor: Cursor,
    draft: Draft,
    common: CommonTables = _NO_COMMON_TABLES,
    *,
    ends: tuple[str, ...] = (),
) -> None:
    """Read expressions with commas between them."""
    run(QueryReader(cursor, draft).expression(common, ends=ends))


def read_references(cursor: Cursor, draft: Draft, common: CommonTables = _NO_COMMON_TABLES) -> bool:
    """Read the tables of UPDATE or DELETE; say whether they are more than a single one."""
    reader = QueryReader(cursor, draft)
    run(reader.references(common, is_outermost=True))
    return reader.is_joined


def read_base_table(
    cursor: Cursor, draft: Draft, common: CommonTables = _NO_COMMON_TABLES
) -> int | None:
    """Read a single table with its alias, partitions and hints.

    Returns:
        Its index in the draft's tables; None if it is no table.
    """
    return run(QueryReader(cursor, draft).base_table(common, is_outermost=True))


def read_clauses(cursor: Cursor, draft: Draft, common: CommonTables = _NO_COMMON_TABLES) -> None:
    """Read WHERE, ORDER BY, LIMIT, RETURNING and the like behind a statement's tables."""
    run(QueryReader(cursor, draft).clauses(common, is_outermost=True))


def read_common_tables(cursor: Cursor, draft: Draft) -> CommonTables:
    """Read a WITH clause."""
    return run(QueryReader(cursor, draft).with_clause(_NO_COMMON_TABLES))


def is_at_query(cursor: Cursor) -> bool:
    """Whether a query comes next, parenthesised or not."""
    count = 0
    while cursor.ahead(count).text == "(":
        count += 1
    return cursor.ahead(count).word in ("SELECT", "WITH", "TABLE") or (
        count > 0 and cursor.ahead(count).word == "VALUES"
    )


class QueryReader(ClauseReader):
    """Reads queries and table references at a cursor into a draft."""

    __slots__ = ("is_joined",)

    def __init__(self, cursor: Cursor, draft: Draft) -> None:
        super().__init__(cursor, draft)
        self.is_joined = False
        """Whether the outermost references are more than a single table."""

    def query(self, common: CommonTables, *, is_outermost: bool) -> Steps[None]:
        """Read a query, up to what cannot be part of it."""
        cursor = self.cursor
        if cursor.word == "WITH":
            common = yield self.with_clause(common)
        if cursor.accept_operator("("):
            yield self.query(common, is_outermost=is_outermost)
            cursor.expect_operator(")")
        else:
            yield self._body(common, is_outermost=is_outermost)
        yield self.rest_of_query(common, is_outermost=is_outermost)

    def rest_of_query(self, common: CommonTables, *, is_outermost: bool) -> Steps[None]:
        """Read what may follow a query in parentheses: UNION, ORDER BY, LIMIT and the like."""
        cursor = self.cursor
        while True:
            yield self.clauses(common, is_outermost=is_outermost)
            if not cursor.accept_any((*SET_OPERATIONS, "MINUS")):  # EXCEPT of sql_mode ORACLE
                return
            cursor.accept_any(("ALL", "DISTINCT"))
            if cursor.accept_operator("("):
                yield self.query(common, is_outermost=is_outermost)
                cursor.expect_operator(")")
            else:
                yield self._body(common, is_outermost=is_outermost)

    def _body(self, common: CommonTables, *, is_outermost: bool) -> Steps[None]:
        """SELECT, VALUES or TABLE with its clauses."""
        cursor = self.cursor
        around, self.block = self.block, []
        if cursor.accept("SELECT"):
            while cursor.accept_any(SELECT_OPTIONS):
                pass
            if cursor.is_at_end or cursor.token.text in (")", ";"):
                raise cursor.stop("an expression")
            yield self.expression(common)
        elif cursor.accept("VALUES"):
            yield self._rows(common)
        elif cursor.accept("TABLE"):
            self.table(common, is_outermost=is_outermost)
        else:
            raise cursor.stop("a query")
        yield self.clauses(common, is_outermost=is_outermost)
        self.block = around

    def _rows(self, common: CommonTables) -> Steps[None]:
        """The rows of VALUES."""
        cursor = self.cursor
        while True:
            cursor.accept("ROW")
            if cursor.token.text != "(":
                raise cursor.stop("a row")
            yield self.expression(common, ends_at_comma=True)
            if not cursor.accept_operator(","):
                return

    def with_clause(self, around: CommonTables) -> Steps[CommonTables]:
        """Read WITH and give the names that hold behind it.

        Inside of the clause only earlier expressions are known, and an own one if it is RECURSIVE.
        """
        cursor = self.cursor
        cursor.expect("WITH")
        is_recursive = cursor.accept("RECURSIVE")
        common = CommonTables(around)
        while True:
            name = cursor.identifier()
            if cursor.token.text == "(":
                cursor.group()
            cursor.expect("AS")
            cursor.expect_operator("(")
            if is_recursive:
                common.define(name)
            yield self.query(common, is_outermost=False)
            cursor.expect_operator(")")
            common.define(name)
            if cursor.accept("CYCLE"):
                cursor.until(("RESTRICT",))
                cursor.expect("RESTRICT")
            if not cursor.accept_operator(","):
                return common

    # Tables -----------------------------------------------------------------------------------

    def references(self, common: CommonTables, *, is_outermost: bool) -> Steps[None]:
        """Read tables with joins and commas between them."""
        yield self._factor(common, is_outermost=is_outermost)
        yield self._joins(common, is_outermost=is_outermost)

    def _joins(self, common: CommonTables, *, is_outermost: bool) -> Steps[None]:
        """Read what follows a table: more tables and what they are joined on."""
        cursor = self.cursor
        while True:
            if cursor.word in JOIN_WORDS:
                self.is_joined |= is_outermost
                while cursor.word in JOIN_WORDS or cursor.word == "OUTER":
                    cursor.advance()
                yield self._factor(common, is_outermost=is_outermost)
            elif cursor.accept_operator(","):
                self.is_joined |= is_outermost
                yield self._factor(common, is_outermost=is_outermost)
            elif cursor.word == "ON" and cursor.ahead(1).word != "DUPLICATE":
                cursor.advance()
                yield self.expression(common, ends_at_comma=True)
            elif cursor.word == "USING" and cursor.ahead(1).text == "(":
                cursor.advance()
                cursor.group()
            else:
                return

    def _factor(self, common: CommonTables, *, is_outermost: bool) -> Steps[None]:
        """Read one table, derived table or group of tables, with its alias."""
        cursor = self.cursor
        is_lateral = cursor.accept("LATERAL")
        if cursor.token.text == "(" and cursor.token.kind is TokenKind.OPERATOR:
            self.is_joined |= is_outermost
            inside = yield self._parenthesised(common, is_outermost=is_outermost)
            if inside is _Parenthesised.QUERY:
                self._derived_alias()
        elif is_lateral:
            raise cursor.stop("a query")
        elif cursor.token.text == "{":
            cursor.advance()
            cursor.expect("OJ")
            yield self.references(common, is_outermost=is_outermost)
            cursor.expect_operator("}")
        elif cursor.word == "JSON_TABLE" and cursor.ahead(1).text == "(":
            yield self._table_function(common)
        else:
            yield self.base_table(common, is_outermost=is_outermost)

    def _parenthesised(self, common: CommonTables, *, is_outermost: bool) -> Steps[_Parenthesised]:
        """Read `(…)`, which holds a query or tables: which of them only what follows can tell."""
        cursor = self.cursor
        cursor.expect_operator("(")
        inside = _Parenthesised.TABLES
        if cursor.word in QUERY_WORDS:
            inside = _Parenthesised.QUERY
            yield self.query(common, is_outermost=False)
        elif cursor.token.text == "(" and cursor.token.kind is TokenKind.OPERATOR:
            inside = yield self._parenthesised(common, is_outermost=is_outermost)
            if inside is _Parenthesised.QUERY:
                yield self.rest_of_query(common, is_outermost=False)
                if cursor.token.text != ")":
                    inside = _Parenthesised.TABLES
                    self._derived_alias()
        else:
            yield self._factor(common, is_outermost=is_outermost)
        if inside is _Parenthesised.TABLES:
            yield self._joins(common, is_outermost=is_outermost)
        cursor.expect_operator(")")
        return inside

    def _derived_alias(self) -> None:
        if self._alias() is not None and self.cursor.token.text == "(":
            self.cursor.group()

    def _table_function(self, common: CommonTables) -> Steps[None]:
        yield self.expression(common, ends=("AS",), ends_at_comma=True)
        if self.cursor.word == "AS":
            self._alias()

    def base_table(self, common: CommonTables, *, is_outermost: bool) -> Steps[int | None]:
        """Read a table with its alias, partitions and hints; its index as in `table`."""
        cursor = self.cursor
        index = self.table(common, is_outermost=is_outermost)
        while cursor.word in ("PARTITION", "FOR"):
            if cursor.accept("PARTITION"):
                cursor.group()
            elif cursor.accept("FOR", "PORTION", "OF"):
                cursor.identifier()
                cursor.expect("FROM")
                yield self.expression(common, ends=("TO",))
                cursor.expect("TO")
                yield self.expression(common)
            elif cursor.accept("FOR", "SYSTEM_TIME"):
                yield self._system_time(common)
            else:
                break
        alias = self._alias()
        if alias is not None and index is not None:
            self.draft.set_alias(index, alias)
        if cursor.accept("TABLESAMPLE"):
            cursor.identifier()
            cursor.group()
        self._index_hints()
        return index

    def table(self, common: CommonTables, *, is_outermost: bool) -> int | None:
        """Read a table's name and note it.

        Returns:
            Its index in the draft's tables; None for a common table expression and DUAL.
        """
        cursor = self.cursor
        start = cursor.index
        token = cursor.token
        database, name = table_name(cursor)
        if database is None and (name in common or token.word == "DUAL"):
            return None
        if cursor.token.text == "(" and cursor.token.offset == token.end:
            raise cursor.stop("a table")  # a function that makes one
        self.draft.use(
            table_use(
                self.draft.resolve((database, name)),
                cursor.since(start),
                alias=name,
                is_outermost=is_outermost,
            )
        )
        index = len(self.draft.tables) - 1
        self.block.append(index)
        return index

    def _system_time(self, common: CommonTables) -> Steps[None]:
        """What follows FOR SYSTEM_TIME: ALL, AS OF, BETWEEN, FROM … TO."""
        cursor = self.cursor
        if cursor.accept("ALL"):
            return
        if not cursor.accept("AS", "OF") and not cursor.accept_any(("BETWEEN", "FROM")):
            raise cursor.stop("AS OF")
        cursor.accept_any(("TIMESTAMP", "TRANSACTION"))
        yield self.expression(common, ends=("AS", "TO"), ends_at_comma=True)
        if cursor.accept("TO"):
            yield self.expression(common, ends=("AS",), ends_at_comma=True)

    def _alias(self) -> str | None:
        cursor = self.cursor
        if cursor.accept("AS"):
            if cursor.token.kind is TokenKind.STRING:
                return cursor.advance().value
            return cursor.identifier()
        if cursor.token.kind not in NAME_KINDS or cursor.word in NO_ALIASES:
            return None
        following = cursor.ahead(2).word
        if (cursor.word == "OFFSET" and following in ("ROW", "ROWS")) or (
            cursor.word == "WINDOW" and following == "AS"
        ):
            return None
        if cursor.word == "FULL" and cursor.ahead(1).word in ("JOIN", "OUTER"):
            return None
        if cursor.word == "MINUS" and cursor.ahead(1).word == "SELECT":
            return None
        if cursor.word == "QUALIFY" and not self._ends_table(cursor.ahead(1)):
            return None
        return cursor.identifier()

    @staticmethod
    def _ends_table(token: Token) -> bool:
        """Whether a token cannot begin the expression of a clause, but may follow a table."""
        return (
            token.kind is TokenKind.END
            or token.text in (",", ")", ";", "}")
            or token.word in NO_ALIASES
            or token.word in JOIN_WORDS
        )

    def _index_hints(self) -> None:
        cursor = self.cursor
        while cursor.word in ("USE", "FORCE", "IGNORE") and cursor.ahead(1).word in (
            "INDEX",
            "KEY",
        ):
            cursor.advance()
            cursor.advance()
            cursor.until((), operators=("(",))
            cursor.group()
