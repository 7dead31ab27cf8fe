"""A statement's text → its tree, by the grammar of a server and version, or of both.

`parse` is the entry. Expressions, queries and statements on rows are read by hand at a `Cursor`;
what holds little is a grammar that is text (`definition_forms`, `session_forms`), which `notation`
translates and `forms` completes. Who holds statements of all kinds (bodies, SET STATEMENT, EXPLAIN)
finds the readers of them at the cursor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from binlane.statements.sql.parser import (
    accounts,
    forms,
    oracle_programs,
    packages,
    programs,
    rows,
    variables,
)
from binlane.statements.sql.parser.calls import read_name
from binlane.statements.sql.parser.cursor import (
    TOO_DEEP,
    Cursor,
    Grammar,
    NotAnalysed,
    Stopped,
    TooMuch,
    too_deep,
)
from binlane.statements.sql.parser.expressions import read_expression
from binlane.statements.sql.parser.operands import SIGNS, WORDS
from binlane.statements.sql.parser.queries import read_query
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree.expressions import Expression, Node, height
from binlane.statements.sql.tree.statements import Empty

_Node = TypeVar("_Node", bound=Node)
_PROGRAMS: Final = frozenset(("PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE", "LIBRARY"))
_LEXED_BY_MODE: Final = frozenset('"\\')
_MAY_SET_CHARSET: Final = re.compile("NAMES|CHAR", re.IGNORECASE)
_HEAD_WORDS: Final = 24
"""Tokens among which the word for what is created stands, behind options such as DEFINER."""
TOKENS_MAX: Final = 300_000
"""Words and signs of one statement, runs of values left out: to judge more takes others' time."""
HEIGHT_MAX: Final = 200
"""Nodes within nodes; folds over higher trees would end the interpreter's stack."""
__all__ = (
    "TOO_DEEP",
    "NotAnalysed",
    "Stopped",
    "TooMuch",
    "cursor_over",
    "parse",
    "parse_body",
    "parse_expression",
    "parse_package",
    "statement_texts",
)


def cursor_over(text: str, dialect: Dialect) -> Cursor:
    """A cursor at the beginning of a text.

    Raises:
        SqlSyntaxError: If a comment, string or quoted name does not end.
    """
    return Cursor(text, dialect, _GRAMMAR)


def parse(text: str, dialect: Dialect) -> Node:
    """Read one statement.

    Args:
        text: Text of the statement, with or without a delimiter behind it.
        dialect: Dialect of the server and its session.

    Raises:
        Stopped: Where the text is not what the grammar says.
        SqlSyntaxError: If a comment, string or quoted name does not end.
    """
    return _read_whole(text, dialect, _read_outermost)


def parse_expression(text: str, dialect: Dialect) -> Expression:
    """Read one expression.

    Raises:
        Stopped: Where the text is not what the grammar says.
        SqlSyntaxError: If a comment, string or quoted name does not end.
    """
    return _read_whole(text, dialect, read_expression, has_delimiter=False)


def parse_body(text: str, dialect: Dialect) -> Node:
    """Read the body of a routine, trigger or event; errors as of `parse`."""
    return _read_whole(text, dialect, _read_body)


def parse_package(text: str, dialect: Dialect) -> packages.Package:
    """Read a package body, behind its characteristics; errors as of `parse`."""
    return programs.run(packages.read_package(_bodies(cursor_over(text, dialect))))


def statement_texts(text: str, dialect: Dialect) -> list[str]:
    """Cut a packet of several statements as its server does: where one that is read ends at `;`.

    Args:
        text: The packet's, without white space and `;` at its ends.
        dialect: Dialect of the session at the packet's beginning.

    Returns:
        The statements as the servers log them, with their comments and with the white space before
        their `;`. From where the text cannot be cut on, it is one statement.
    """
    try:
        cursor = cursor_over(text, dialect)
    except (SqlSyntaxError, Stopped):
        return [text]
    last_by_mode = max(map(text.rfind, _LEXED_BY_MODE))
    found: list[str] = []
    start = 0
    while not cursor.is_at_end:
        first = cursor.word
        if not _skip_statement(cursor):
            break
        if first == ";":
            break  # the servers take nothing behind one that is empty
        part = text[start : cursor.start].lstrip()
        found.append(part)
        start = cursor.start + 1
        if not cursor.accept_operator(";"):
            return found
        may_set_mode = first == "EXECUTE" or "SQL_MODE" in part.upper()
        if may_set_mode and last_by_mode >= start:
            break  # it may be read otherwise
        if first == "SET" and _MAY_SET_CHARSET.search(part) and not text[start:].isascii():
            break  # likewise
    if rest := text[start:].lstrip():
        found.append(rest)
    return found


def _skip_statement(cursor: Cursor) -> bool:
    """Go to the `;` behind a statement, or to the end; False where that cannot be told."""
    if _may_hold_statements(cursor):
        try:
            _read_outermost(cursor)
        except (Stopped, RecursionError):
            return False
        return cursor.is_at_end or cursor.word == ";"
    while not cursor.is_at_end and cursor.word != ";":
        cursor.advance()
    return True


def _may_hold_statements(cursor: Cursor) -> bool:
    word = cursor.word
    if word == "SET":
        return cursor.word_ahead(1) == "STATEMENT" and _has_blocks(cursor)
    if word in ("CREATE", "ALTER"):
        head = cursor.words[cursor.index : cursor.index + _HEAD_WORDS]
        return not _PROGRAMS.isdisjoint(head)
    return _has_blocks(cursor) and programs.is_at_compound(cursor)


def _read_whole(
    text: str, dialect: Dialect, reader: Callable[[Cursor], _Node], *, has_delimiter: bool = True
) -> _Node:
    """Read a text with nothing behind it but its delimiter."""
    cursor = cursor_over(text, dialect)
    if len(cursor.kinds) > TOKENS_MAX:
        raise TooMuch(cursor.token, f"it has more than {TOKENS_MAX:,} words and signs")
    node = reader(cursor)
    while has_delimiter and cursor.accept_operator(";"):
        pass
    cursor.expect_end()
    if cursor.high > HEIGHT_MAX and height(node) > HEIGHT_MAX:
        raise too_deep(cursor.token)
    return node


_PLAIN: Final = frozenset(("INSERT", "UPDATE", "DELETE", "REPLACE", "SELECT"))
"""Reserved words, with which no compound statement begins, nor its label."""


def _read_outermost(cursor: Cursor) -> Node:
    """A statement, also a compound one, which MariaDB takes outside of bodies, or none."""
    if cursor.is_at_end or cursor.word == ";":
        return Empty(0, len(cursor.text))
    if cursor.word == "SET" and cursor.word_ahead(1) == "STATEMENT" and _has_blocks(cursor):
        return variables.read_set_statement(cursor, _read_outermost)
    if cursor.word not in _PLAIN and _has_blocks(cursor) and programs.is_at_compound(cursor):
        return _read_body(cursor)
    return _read_statement(cursor)


def _has_blocks(cursor: Cursor) -> bool:
    return cursor.dialect.has_mariadb(10, 1)


def _read_body(cursor: Cursor) -> Node:
    """Read one statement of a body, simple or compound, with its label."""
    return programs.run(_bodies(cursor).body())


def _bodies(cursor: Cursor) -> programs.Bodies:
    if cursor.dialect.is_oracle:
        return oracle_programs.OracleBodies(cursor, _read_statement, _is_statement)
    return programs.Bodies(cursor, _read_statement)


def _read_statement(cursor: Cursor) -> Node:
    """A statement that is no compound one."""
    if cursor.dialect.is_oracle:
        if oracle_programs.is_assignment(cursor):
            return variables.read_assignment(cursor)
        if oracle_programs.is_bare_call(cursor, _is_statement):
            return rows.read_called(cursor, cursor.start)
    return _READERS.get(cursor.word, forms.read_statement)(cursor)


def _is_statement(word: str) -> bool:
    return word in _READERS or oracle_programs.begins_rule(word)


def _read_create(cursor: Cursor) -> Node:
    words = cursor.words[cursor.index : cursor.index + 4]
    is_or_replace = words[1:3] == ["OR", "REPLACE"] and cursor.dialect.may_be_mariadb
    what = words[3 if is_or_replace else 1]
    if what != "USER" and (what != "ROLE" or not _has_roles(cursor)):
        return forms.read_statement(cursor)
    start = cursor.start
    cursor.index += 4 if is_or_replace else 2
    return accounts.create_accounts(cursor, start, f"CREATE {what}", is_or_replace=is_or_replace)


def _has_roles(cursor: Cursor) -> bool:
    return cursor.dialect.may_be_mariadb or cursor.dialect.has_mysql(8)


def _read_alter(cursor: Cursor) -> Node:
    start = cursor.start
    if cursor.accept("ALTER", "USER"):
        return accounts.alter_user(cursor, start)
    return forms.read_statement(cursor)


def _read_drop(cursor: Cursor) -> Node:
    start = cursor.start
    if cursor.accept("DROP", "USER"):
        return accounts.drop_accounts(cursor, start, "DROP USER")
    if _has_roles(cursor) and cursor.accept("DROP", "ROLE"):
        return accounts.drop_accounts(cursor, start, "DROP ROLE")
    return forms.read_statement(cursor)


def _read_rename(cursor: Cursor) -> Node:
    start = cursor.start
    if cursor.accept("RENAME", "USER"):
        return accounts.rename_users(cursor, start)
    return forms.read_statement(cursor)


def _read_set(cursor: Cursor) -> Node:
    start, word, following = cursor.start, cursor.word_ahead(1), cursor.word_ahead(2)
    if word == "STATEMENT" and _has_blocks(cursor):
        return variables.read_set_statement(cursor, _read_statement)
    if word == "PASSWORD":
        cursor.expect("SET", "PASSWORD")
        return accounts.read_password(cursor, start)
    if word == "DEFAULT" and following == "ROLE":
        cursor.expect("SET", "DEFAULT", "ROLE")
        return accounts.read_roles(cursor, start, "SET DEFAULT ROLE")
    if word == "ROLE" and following not in ("=", ":="):
        cursor.expect("SET", "ROLE")
        return accounts.read_roles(cursor, start, "SET ROLE")
    if word == "RESOURCE" and following == "GROUP" and cursor.dialect.has_mysql(8):
        return forms.read_statement(cursor)
    return variables.read_set(cursor)


def _read_load(cursor: Cursor) -> Node:
    if cursor.word_ahead(1) == "INDEX":
        return forms.read_statement(cursor)
    return rows.read_load(cursor)


_READERS: Final[Mapping[str, Callable[[Cursor], Node]]] = MappingProxyType(
    {
        "INSERT": rows.read_insert,
        "REPLACE": rows.read_insert,
        "UPDATE": rows.read_update,
        "DELETE": rows.read_delete,
        "SELECT": rows.read_query_statement,
        "TABLE": rows.read_query_statement,
        "VALUES": rows.read_query_statement,
        "(": rows.read_query_statement,
        "WITH": rows.read_with_statement,
        "LOAD": _read_load,
        "DO": rows.read_do,
        "CALL": rows.read_call,
        "HANDLER": rows.read_handler,
        "CREATE": _read_create,
        "ALTER": _read_alter,
        "RENAME": _read_rename,
        "DROP": _read_drop,
        "GRANT": accounts.read_grant,
        "REVOKE": accounts.read_revoke,
        "SET": _read_set,
    }
)
"""Readers by first word; for other words the grammar has a rule, or there is no such statement."""
_GRAMMAR: Final = Grammar(
    query=read_query,
    name=read_name,
    statement=_read_statement,
    body=_read_body,
    account=accounts.read_account,
    words=WORDS,
    signs=SIGNS,
)
