"""SET in all its forms: variables, names, character sets, transactions, passwords, roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from binlane.sql import ddl
from binlane.sql.cursor import Cursor, Stopped
from binlane.sql.draft import Draft
from binlane.sql.effects import StatementKind
from binlane.sql.expressions import system_variable, variable_name
from binlane.sql.facts import Assignment, VariableScope
from binlane.sql.queries import read_expression
from binlane.sql.tokens import Token, TokenKind

_SCOPES: Final = {
    "GLOBAL": VariableScope.GLOBAL,
    "SESSION": VariableScope.SESSION,
    "LOCAL": VariableScope.SESSION,
    "PERSIST": VariableScope.PERSIST,
    "PERSIST_ONLY": VariableScope.PERSIST,
}
_ISOLATION_LEVELS: Final[Sequence[str]] = (
    "READ UNCOMMITTED",
    "READ COMMITTED",
    "REPEATABLE READ",
    "SERIALIZABLE",
)
_ACCESS_MODES: Final[Sequence[str]] = ("READ ONLY", "READ WRITE")
_VALUE_WORDS: Final = ("ON", "ALL", "DEFAULT", "BINARY", "ROW", "SYSTEM")
"""Words that are values although an expression may not consist of them."""


def read_set(cursor: Cursor, draft: Draft) -> None:
    """SET of variables, passwords, roles and transactions."""
    first = cursor.token
    cursor.expect("SET")
    draft.kind, draft.verb = StatementKind.SET, "SET"
    match cursor.word, cursor.ahead(1).word:
        case "PASSWORD", _:
            draft.verb = "SET PASSWORD"
            return ddl.read_account(cursor, draft)
        case "DEFAULT", "ROLE":
            draft.verb = "SET DEFAULT ROLE"
            return ddl.read_account(cursor, draft)
        case "ROLE", _ if cursor.ahead(1).text not in ("=", ":="):
            draft.verb = "SET ROLE"
            return _read_rest(cursor, draft, "role", first)
        case "RESOURCE", "GROUP":
            draft.kind, draft.verb = StatementKind.SESSION, "SET RESOURCE GROUP"
            cursor.rest()
            return None
    return read_assignments(cursor, draft, draft.assignments)


def read_statement_assignments(cursor: Cursor, draft: Draft) -> None:
    """`SET STATEMENT variable = value, … FOR` before a statement of MariaDB."""
    while cursor.accept("SET", "STATEMENT"):
        read_assignments(cursor, draft, draft.statement_assignments)
        cursor.expect("FOR")


def read_assignments(cursor: Cursor, draft: Draft, found: list[Assignment]) -> None:
    """Read assignments with commas between them.

    A scope holds for what follows it too, as in the servers.
    """
    scope = VariableScope.UNSAID
    while True:
        first = cursor.token
        if cursor.word in _SCOPES and cursor.ahead(1).text not in ("=", ":=", "."):
            scope = _SCOPES[cursor.advance().word]
        if cursor.word == "TRANSACTION" and cursor.ahead(1).word in ("ISOLATION", "READ"):
            cursor.advance()
            _read_transaction(cursor, scope, first, found)
        elif cursor.word == "NAMES" and cursor.ahead(1).text not in ("=", ":="):
            cursor.advance()
            _read_character_set(cursor, draft, "names", first, found)
        elif cursor.accept("CHARACTER", "SET") or (
            cursor.ahead(1).text not in ("=", ":=") and cursor.accept("CHARSET")
        ):
            _read_character_set(cursor, draft, "character set", first, found)
        else:
            _read_assignment(cursor, draft, scope, first, found)
        if not cursor.accept_operator(","):
            return


def _read_assignment(
    cursor: Cursor, draft: Draft, scope: VariableScope, first: Token, found: list[Assignment]
) -> None:
    token = cursor.token
    if token.kind is TokenKind.USER_VARIABLE:
        cursor.advance()
        name = "@" + variable_name(token)
        scope = VariableScope.UNSAID
    elif token.kind is TokenKind.SYSTEM_VARIABLE:
        cursor.advance()
        scope, name = system_variable(token)
    else:
        database, name = cursor.qualified_name()
        name = name.lower() if database is None else f"{database}.{name}".lower()
    if not cursor.accept_operator("=") and not cursor.accept_operator(":="):
        raise cursor.stop("=")
    start = cursor.index
    if cursor.word in _VALUE_WORDS and (
        cursor.ahead(1).text in (",", ";", "") or cursor.ahead(1).word == "FOR"
    ):
        cursor.advance()
    else:
        read_expression(cursor, draft)
    found.append(_assignment(draft, name, scope, first, cursor.since(start)))


def _read_transaction(
    cursor: Cursor, scope: VariableScope, first: Token, found: list[Assignment]
) -> None:
    """ISOLATION LEVEL and access mode of SET TRANSACTION, one assignment for each."""
    while True:
        name, values = "transaction access mode", _ACCESS_MODES
        if cursor.accept("ISOLATION"):
            cursor.expect("LEVEL")
            name, values = "transaction isolation level", _ISOLATION_LEVELS
        value = next((value for value in values if cursor.accept(*value.split())), None)
        if value is None:
            raise cursor.stop(" or ".join(values))
        found.append(
            Assignment(
                name=name,
                scope=scope,
                value=value,
                offset=first.offset,
                length=cursor.ahead(-1).end - first.offset,
            )
        )
        if cursor.ahead(1).word not in ("ISOLATION", "READ") or not cursor.accept_operator(","):
            return
        first = cursor.token


def _read_character_set(
    cursor: Cursor, draft: Draft, name: str, first: Token, found: list[Assignment]
) -> None:
    """The character set of SET NAMES and SET CHARACTER SET, with its collation."""
    cursor.accept_operator("=")
    start = cursor.index
    cursor.advance()
    if cursor.accept("COLLATE"):
        cursor.advance()
    value = cursor.since(start)
    found.append(_assignment(draft, name, VariableScope.UNSAID, first, value))


def _read_rest(cursor: Cursor, draft: Draft, name: str, first: Token) -> None:
    start = cursor.index + 1
    cursor.rest()
    value = cursor.since(start)
    draft.assignments.append(_assignment(draft, name, VariableScope.UNSAID, first, value))


def _assignment(
    draft: Draft, name: str, scope: VariableScope, first: Token, value: list[Token]
) -> Assignment:
    """An assignment that begins at `first`."""
    if not value:
        raise Stopped(first, "a value")
    return Assignment(
        name=name,
        scope=scope,
        value=draft.slice(value),
        offset=first.offset,
        length=value[-1].end - first.offset,
    )
