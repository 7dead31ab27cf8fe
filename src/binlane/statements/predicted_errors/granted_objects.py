"""Errors of account statements: of the object of GRANT and REVOKE, and of the accounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.refusals import Refusal, no_such_table
from binlane.statements.predicted_errors.known_objects import has_table, has_view
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.sql.account_changes import change
from binlane.statements.sql.accounts import (
    DATABASE_PRIVILEGES,
    ROUTINE_PRIVILEGES,
    TABLE_PRIVILEGES,
    is_dynamic,
)
from binlane.statements.sql.schema import body_of, small
from binlane.statements.sql.tree.account_statements import AccountStatement


def wrong_account(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Account statements: what they are about, then the accounts, as far as they are known."""
    tree = statement.facts.tree
    if not isinstance(tree, AccountStatement):
        return None
    about = _granted_on(state, tree, statement.database)
    situation = state.account_situation(statement.database)
    error = change(state.objects.accounts, tree, situation).error
    is_absent = error is not None and error.errno in _NOBODY
    if about is not None and not (is_absent and about.errno == _WRONG_LEVEL):
        return about
    if error is None:
        return None
    sqlstate, symbol = _ACCOUNT_ERRORS[error.errno]
    return Refusal(error.errno, sqlstate, symbol, error.message)


_NOBODY: Final = frozenset((1133, 1410))
"""That who is to get privileges is not there."""
_WRONG_LEVEL: Final = 1221
"""What is looked for behind that."""


def _granted_on(state: SessionState, tree: AccountStatement, database: str) -> Refusal | None:
    """Return the error of the object of GRANT or REVOKE: of another level, or not there."""
    on, named = tree.on, {one.name for one in tree.privileges}
    names = named - {"ALL", "USAGE", "GRANT OPTION"}
    if on is None:
        return None
    dynamic = "" if state.server.is_mariadb else next(filter(is_dynamic, sorted(names)), "")
    if dynamic and on.database != "*":
        message = f"Illegal privilege level specified for {dynamic}"
        return Refusal(3619, "HY000", "ER_ILLEGAL_PRIVILEGE_LEVEL", message)
    columns = [column for one in tree.privileges for column in one.columns]
    is_table, is_wide = tree.object_kind == "TABLE", on.name == "*"
    allowed = TABLE_PRIVILEGES if is_table else ROUTINE_PRIVILEGES
    if columns if is_wide else not names <= allowed:
        message = (
            "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can "
            "be used"
        )
        return Refusal(1144, "42000", "ER_ILLEGAL_GRANT_FOR_TABLE", message)
    if is_wide:
        if on.database == "*" or names <= DATABASE_PRIVILEGES:
            return None
        message = "Incorrect usage of DB GRANT and GLOBAL PRIVILEGES"
        return Refusal(_WRONG_LEVEL, "HY000", "ER_WRONG_USAGE", message)
    if tree.verb == "REVOKE":
        return None
    name = TableName(on.database or database, on.name)
    if is_table:
        return _granted_table(state, name, columns, is_made=not named.isdisjoint(("ALL", "CREATE")))
    if _has_program(state, tree.object_kind, name):
        return None
    is_old = state.server.is_mariadb and state.server.version < (11,)
    kind = "FUNCTION or PROCEDURE" if is_old else tree.object_kind
    message = f"{kind} {name.table} does not exist"
    return Refusal(1305, "42000", "ER_SP_DOES_NOT_EXIST", message)


def _has_program(state: SessionState, kind: str, name: TableName) -> bool:
    """Return True if a routine or package is there, as far as that is known of its kind."""
    objects = state.objects
    if kind.startswith("PACKAGE") and not state.logs_source:
        package = body_of(name) if kind.endswith("BODY") else small(name)
        return package in objects.store.packages
    if kind not in ("FUNCTION", "PROCEDURE"):
        return True
    return (objects.function if kind == "FUNCTION" else objects.procedure)(name) is not None


def _granted_table(
    state: SessionState, name: TableName, columns: Sequence[str], *, is_made: bool
) -> Refusal | None:
    table = state.objects.table(name)
    known = table.definition.columns if table is not None and table.is_complete else ()
    for column in columns if known else ():
        if not any(one.name.lower() == column.lower() for one in known):
            message = f"Unknown column '{column}' in '{name.table}'"
            return Refusal(1054, "42S22", "ER_BAD_FIELD_ERROR", message)
    is_there = is_made or has_table(state, name) or has_view(state, name)
    return None if is_there else no_such_table(name)


_ACCOUNT_ERRORS: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        1133: ("28000", "ER_PASSWORD_NO_MATCH"),
        1141: ("42000", "ER_NONEXISTING_GRANT"),
        1147: ("42000", "ER_NONEXISTING_TABLE_GRANT"),
        1269: ("HY000", "ER_REVOKE_GRANTS"),
        1396: ("HY000", "ER_CANNOT_USER"),
        1403: ("42000", "ER_NONEXISTING_PROC_GRANT"),
        1410: ("42000", "ER_CANT_CREATE_USER_WITH_GRANT"),
        1959: ("OP000", "ER_INVALID_ROLE"),
        1960: ("0L000", "ER_INVALID_CURRENT_USER"),
        1961: ("HY000", "ER_CANNOT_GRANT_ROLE"),
        1962: ("HY000", "ER_CANNOT_REVOKE_ROLE"),
        3523: ("HY000", "ER_UNKNOWN_AUTHID"),
        3530: ("HY000", "ER_ROLE_NOT_GRANTED"),
        3532: ("HY000", "ER_RENAME_ROLE"),
        4027: ("HY000", "ER_ROLE_GRANTED_TO_ITSELF"),
    }
)
"""SQLSTATE and symbol of the errors of account statements."""
