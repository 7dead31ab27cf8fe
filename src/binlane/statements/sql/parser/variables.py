"""SET of variables, names and transactions: a scope holds for what follows it, too.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy: set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.parser.expressions import read_expression
from binlane.statements.sql.parser.forms import name_or_text
from binlane.statements.sql.parser.literals import read_user_variable
from binlane.statements.sql.tokens import TokenKind
from binlane.statements.sql.tree.expressions import Expression, Name
from binlane.statements.sql.tree.statements import Set, SetItem, SetStatement, Statement

_STATEMENT_CALLS: Final = 6
"""Calls that a statement within another one takes."""
_SCOPES: Final = {
    "GLOBAL": "global",
    "SESSION": "session",
    "LOCAL": "session",
    "PERSIST": "persist",
    "PERSIST_ONLY": "persist_only",
}
_ISOLATION_LEVELS: Final[Sequence[str]] = (
    "READ UNCOMMITTED",
    "READ COMMITTED",
    "REPEATABLE READ",
    "SERIALIZABLE",
)
_ACCESS_MODES: Final[Sequence[str]] = ("READ ONLY", "READ WRITE")
_VALUE_WORDS: Final = ("ON", "ALL", "BINARY", "ROW", "SYSTEM")
"""Words that are values although an expression may not consist of them."""
_ASSIGNS: Final = ("=", ":=")
_VALUE_ENDS: Final = ("", ",", ";", "FOR")


def read_set(cursor: Cursor) -> Set:
    """SET of variables, names and transactions, at SET."""
    start = cursor.start
    cursor.expect("SET")
    items = _items(cursor)
    return Set(start, cursor.end, items)


def read_assignment(cursor: Cursor) -> Set:
    """`name := value` of sql_mode ORACLE, of `:NEW.name`, too."""
    start = cursor.start
    cursor.accept_operator(":")
    item = _item(cursor, "", cursor.start)
    return Set(start, cursor.end, (item,))


def read_set_statement(cursor: Cursor, statement: Callable[[Cursor], Statement]) -> SetStatement:
    """SET STATEMENT … FOR a statement (MariaDB)."""
    start = cursor.start
    cursor.expect("SET", "STATEMENT")
    items = _items(cursor)
    cursor.expect("FOR")
    cursor.deeper(_STATEMENT_CALLS)
    inner = statement(cursor)
    cursor.depth -= _STATEMENT_CALLS
    return SetStatement(start, inner.end, items, inner)


def _is_scope(cursor: Cursor) -> bool:
    word = cursor.word
    return word in _SCOPES and (cursor.dialect.may_be_mysql or not word.startswith("PERSIST"))


def _items(cursor: Cursor) -> tuple[SetItem, ...]:
    """Assignments with commas between them; a scope holds for what follows it too."""
    scope = ""
    found: list[SetItem] = []
    while True:
        start = cursor.start
        if _is_scope(cursor) and cursor.word_ahead(1) not in (*_ASSIGNS, "."):
            scope = _SCOPES[cursor.advance().word]
        word, following = cursor.word, cursor.word_ahead(1)
        if word == "TRANSACTION" and following in ("ISOLATION", "READ"):
            cursor.advance()
            found += _transaction_items(cursor, scope, start)
        elif word == "NAMES" and following not in _ASSIGNS:
            cursor.advance()
            found.append(_character_set(cursor, "names", start))
        elif word in ("CHARACTER", "CHAR") and following == "SET":
            cursor.expect(word, "SET")
            found.append(_character_set(cursor, "character set", start))
        elif word == "CHARSET" and following not in _ASSIGNS:
            cursor.advance()
            found.append(_character_set(cursor, "character set", start))
        else:
            found.append(_item(cursor, scope, start))
        if not cursor.accept_operator(","):
            return tuple(found)


def _item(cursor: Cursor, scope: str, start: int) -> SetItem:
    token = cursor.token
    target: Name | None = None
    is_system = bool(scope)
    if token.kind is TokenKind.USER_VARIABLE:
        name, scope, is_system = f"@{read_user_variable(cursor).name}", "", False
    elif token.kind is TokenKind.SYSTEM_VARIABLE:
        cursor.advance()
        scope, name = _system_variable_name(token.text)
        is_system = True
    else:
        first = cursor.identifier()
        name = first.lower()
        if cursor.accept_operator("."):
            second = cursor.identifier()
            name = f"{name}.{second.lower()}"
            target = Name(token.offset, cursor.end, (first, second))
    if not cursor.accept_operator("=") and not cursor.accept_operator(":="):
        raise cursor.stop("=")
    is_alone = cursor.word_ahead(1) in _VALUE_ENDS and (
        cursor.word_ahead(1) or cursor.ahead(1).kind is TokenKind.END
    )
    value_at = cursor.token
    value: Expression | None
    if cursor.word == "DEFAULT" and is_alone and name[:1] != "@":
        cursor.advance()
        value = None
    elif cursor.word in _VALUE_WORDS and is_alone:
        cursor.advance()
        value = Name(value_at.offset, value_at.end, (value_at.text,))
    else:
        value = read_expression(cursor)
    return SetItem(
        start, cursor.end, name, scope=scope, value=value, is_system=is_system, target=target
    )


def _transaction_items(cursor: Cursor, scope: str, start: int) -> list[SetItem]:
    """ISOLATION LEVEL and access mode of SET TRANSACTION, one item for each."""
    found: list[SetItem] = []
    while True:
        name, known = "transaction access mode", _ACCESS_MODES
        if cursor.accept("ISOLATION"):
            cursor.expect("LEVEL")
            name, known = "transaction isolation level", _ISOLATION_LEVELS
        words = next((words for words in known if cursor.accept(*words.split())), None)
        if words is None or name in [item.name for item in found]:
            raise cursor.stop(" or ".join(known))
        found.append(SetItem(start, cursor.end, name, scope=scope, words=words))
        if not cursor.accept_operator(","):
            return found
        start = cursor.start


def _character_set(cursor: Cursor, name: str, start: int) -> SetItem:
    """The character set of SET NAMES and SET CHARACTER SET, with its collation."""
    if name == "names":
        cursor.accept_operator("=")
    words = cursor.accept_any(("BINARY", "DEFAULT")) or name_or_text(cursor)
    if name == "names" and words != "DEFAULT" and cursor.accept("COLLATE"):
        collation = cursor.accept_any(("BINARY", "DEFAULT")) or name_or_text(cursor)
        words += f" COLLATE {collation}"
    return SetItem(start, cursor.end, name, words=words)


def _system_variable_name(text: str) -> tuple[str, str]:
    """Scope and name of `@@name`, in lower case; a key cache or component before it stays."""
    name = text[2:].replace("`", "").lower()
    scope, dot, rest = name.partition(".")
    known = _SCOPES.get(scope.upper()) if dot else None
    return (known, rest) if known is not None else ("", name)
