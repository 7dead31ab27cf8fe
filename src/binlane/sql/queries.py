"""The tables that a query refers to, found with sqlglot's MySQL grammar.

Only whole queries and table references come here; the heads of INSERT, UPDATE and DELETE are read
in `dml`. sqlglot gets a text made anew from our tokens, one token a line: names in backticks,
every literal replaced by a plain one. So quotes, escapes, character sets and comments are ours to
decide under each sql_mode, and the line of a parse error is the number of the token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from binlane.names import quote
from binlane.sql.cursor import Stopped
from binlane.sql.tokens import NAME_KINDS, Token, TokenKind

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.parser import Parser

LITERALS = {
    TokenKind.STRING: "'\0'",  # a character that no name can have
    TokenKind.NUMBER: "1",
    TokenKind.USER_VARIABLE: "@v",
    TokenKind.SYSTEM_VARIABLE: "@@v",
}


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table where a query names it.

    Attributes:
        name: Its database, None if the text names none, and its own name.
        alias: By what the rest of the query calls it; None without an alias.
        is_outermost: It stands in the query itself, not in a subquery or common table expression.
    """

    name: tuple[str | None, str]
    alias: str | None
    is_outermost: bool


def query_tables(query: Sequence[Token]) -> list[TableReference]:
    """The tables of a query, without its common table expressions.

    Args:
        query: The tokens of a SELECT, TABLE or WITH, without INTO clause.

    Raises:
        Stopped: Where sqlglot does not understand it.
    """
    # Imported here: 0.1 s that nobody waits for who only reads rows or simple statements.
    from sqlglot import errors, exp  # noqa: PLC0415
    from sqlglot.dialects.mysql import MySQL  # noqa: PLC0415

    text = "\n".join(_canonical(query))
    try:
        trees = _quiet_parser().parse(MySQL().tokenize(text), text)
    except errors.ParseError as error:
        line = error.errors[0].get("line") if error.errors else None
        raise Stopped(query[(line or 1) - 1], "a query that can be analysed") from None
    except (errors.SqlglotError, RecursionError):
        raise Stopped(query[0], "a query that can be analysed") from None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Query) or tree.find(exp.Command):
        raise Stopped(query[0], "a query that can be analysed")
    return [
        reference
        for table in tree.find_all(exp.Table)
        if (reference := _reference(table, tree, query[0])) is not None
    ]


@cache
def _quiet_parser() -> Parser:
    """A parser for MySQL that keeps to itself what it does not know: it is told by `Stopped`."""
    from sqlglot.parsers.mysql import MySQLParser  # noqa: PLC0415

    class QuietParser(MySQLParser):
        def _warn_unsupported(self) -> None:
            """The warning would put users' statements into the log."""

    return QuietParser(dialect="mysql")


def _canonical(query: Sequence[Token]) -> list[str]:
    lines = []
    for index, token in enumerate(query):
        following = query[index + 1].kind if index + 1 < len(query) else TokenKind.END
        if token.kind in LITERALS:
            lines.append(LITERALS[token.kind])
        elif token.text.startswith("_") and following in (TokenKind.STRING, TokenKind.NUMBER):
            lines.append("")  # the character set of a literal
        elif token.kind in NAME_KINDS and not (token.word and token.text.isascii()):
            lines.append(quote(token.value))
        else:
            lines.append(token.text)
    return lines


def _reference(table: exp.Table, tree: exp.Query, first: Token) -> TableReference | None:
    """One table of the tree; None for what only looks like one."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(table.this, exp.JSONTable):
        return None
    if not isinstance(table.this, exp.Identifier) or table.catalog or "\0" in table.db + table.name:
        raise Stopped(first, "a table name of at most two parts")
    if not table.db and (_is_dual(table) or _is_common_table_expression(table)):
        return None
    owner = table.find_ancestor(exp.Select, exp.SetOperation)
    return TableReference((table.db or None, table.name), table.alias or None, owner is tree)


def _is_dual(table: exp.Table) -> bool:
    return table.name.upper() == "DUAL" and not table.this.quoted


def _is_common_table_expression(table: exp.Table) -> bool:
    """Whether a WITH around the table defines its name.

    Inside the WITH itself only earlier expressions are known, and its own one if it is RECURSIVE.
    """
    from sqlglot import exp  # noqa: PLC0415

    inside: exp.CTE | None = table.find_ancestor(exp.CTE)
    query = table.find_ancestor(exp.Query)
    while query is not None:
        for definition in query.ctes:
            clause = definition.parent
            if definition is inside:
                is_recursive = isinstance(clause, exp.With) and clause.recursive
                if is_recursive and definition.alias == table.name:
                    return True
                break
            if definition.alias == table.name:
                return True
        if inside is not None and inside.find_ancestor(exp.Query) is query:
            inside = inside.find_ancestor(exp.CTE)
        query = query.find_ancestor(exp.Query)
    return False
