"""Concern of a scope with a statement that is not understood, by the names in its text.

A statement that cannot be read whole is still made of names. If none of its names, with or without
the default database, can mean anything in a scope, the scope is not concerned; for all else
replicas must stop.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from binlane.names import TableName, folded
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.logged_statements import LoggedStatement, first_word
from binlane.statements.sql.parser.reserved_words import reserved_words
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import OPEN_ENDED_KINDS, StatementKind
from binlane.statements.sql.tokens import SqlSyntaxError, TokenKind, names_in

_ON_WHAT_THEY_NAME: Final = frozenset(("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"))
"""First words of statements that change what they name and nothing else, new ones included."""


def may_concern(statement: LoggedStatement, effects: StatementEffects, scope: Scope) -> bool:
    """True if a statement that is not understood may change something in a scope.

    Args:
        statement: The statement as it was logged.
        effects: Known effects of the statement on objects.
        scope: Scope of the binlog to route to.
    """
    if scope.log_all or scope.includes_database(statement.database):
        return True
    kind = effects.kind
    if kind is StatementKind.ACCOUNT:
        return any(map(scope.includes_database, effects.databases))
    is_known = kind is not StatementKind.UNKNOWN and kind not in OPEN_ENDED_KINDS
    if not (is_known or first_word(statement.text) in _ON_WHAT_THEY_NAME):
        return True
    in_case = folded if scope.ignores_case else str
    databases = {in_case(table.database) for table in scope.log_tables}
    reserved = reserved_words(Dialect())
    try:
        for first, chain in names_in(statement.text, statement.dialect):
            names = tuple(map(in_case, chain))
            if len(names) == 1:
                name = names[0]
                if first is TokenKind.NAME and name.upper() in reserved:
                    continue
                if name in databases or scope.includes_database(name):
                    return True
                names = (statement.database, name)
            if any(
                scope.includes(TableName(*pair)) or scope.includes_database(pair[0])
                for pair in pairwise(names)
            ):
                return True
    except SqlSyntaxError:
        return True
    return False
