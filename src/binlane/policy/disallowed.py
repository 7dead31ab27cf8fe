"""Expressions of columns that a server does not take: functions they may not call, unknown columns.

Only functions of which it was measured; conditions of CHECK are looked at for columns alone.

Source: MariaDB 10.11 and 11.8 (`Item::check_vcol_func_processor`) and MySQL 9.7
(`Item::check_function_as_value_generator`); measured, tests/vectors/errors.txt.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from binlane.names import TableName, quote
from binlane.policy.misdeclared import plain_names
from binlane.policy.refusals import Refusal, refusal
from binlane.policy.server import Server
from binlane.sql.facts import StatementFacts
from binlane.sql.schema import Objects
from binlane.sql.tree.definitions import AlterTable, Check, Column, CreateTable
from binlane.sql.tree.expressions import (
    Call,
    Expression,
    Subquery,
    SystemVariable,
    UserVariable,
    walk,
)

_VARYING: Final = MappingProxyType(
    {
        **{name: name for name in ("RAND", "UUID", "UUID_SHORT", "SYSDATE", "CONNECTION_ID")},
        **{name: name for name in ("UTC_TIMESTAMP", "UTC_DATE", "UTC_TIME", "CURRENT_USER")},
        **{name: name for name in ("USER", "CURRENT_ROLE", "DATABASE")},
        **dict.fromkeys(("NOW", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP"), "NOW"),
        **dict.fromkeys(("CURDATE", "CURRENT_DATE"), "CURDATE"),
        **dict.fromkeys(("CURTIME", "CURRENT_TIME"), "CURTIME"),
        "SYSTEM_USER": "USER",
        "SCHEMA": "DATABASE",
    }
)
"""What gives something else each time, and how errors call it."""
_NEVER: Final = frozenset(
    (
        *("FOUND_ROWS", "ROW_COUNT", "LAST_INSERT_ID", "LOAD_FILE", "BENCHMARK", "SLEEP"),
        *("GET_LOCK", "RELEASE_LOCK", "IS_FREE_LOCK", "IS_USED_LOCK", "RELEASE_ALL_LOCKS"),
    )
)
_GENERATED, _DEFAULT, _CHECK = "GENERATED ALWAYS AS", "DEFAULT", "CHECK"
_MYSQL_CLAUSES: Final = {
    _GENERATED: "generated column function",
    _DEFAULT: "default value expression",
}


def disallowed(
    facts: StatementFacts, objects: Objects, *, server: Server, database: str
) -> Refusal | None:
    """The error of a function that a column's expression calls; None if none is sure."""
    for column, clause, value in _expressions(facts):
        if clause is _CHECK:
            continue
        is_virtual = clause is _GENERATED and column.storage in ("", "VIRTUAL")
        for node in walk(value):
            found = _name(node, objects, database)
            if found is None:
                continue
            name, varies = found
            if server.is_mariadb:
                if varies and (is_virtual or clause is _DEFAULT):
                    continue
                return refusal(1901, name, clause, column.name)
            if isinstance(node, UserVariable | SystemVariable):
                return refusal(3772, column.name)
            if isinstance(node, Subquery):
                return refusal(3102 if clause is _GENERATED else 3769, column.name)
            if clause is _GENERATED or not varies:
                shown = name.removesuffix("()")
                shown = "now" if shown == "current_timestamp" else shown
                return refusal(3763 if clause is _GENERATED else 3770, column.name, shown)
    return None


def _name(node: object, objects: Objects, database: str) -> tuple[str, bool] | None:
    """How MariaDB's errors call what may not be, and whether it only varies; None if it may."""
    if isinstance(node, Subquery):
        return "select ...", False
    if isinstance(node, UserVariable):
        return f"@{node.name}", True
    if isinstance(node, SystemVariable):
        return f"@@{node.name}", True
    if not isinstance(node, Call):
        return None
    name = node.upper_name
    if objects.function(TableName(node.database or database, node.name)) is not None:
        own = "" if node.database is None else f"{quote(node.database)}."
        return f"{own}{quote(node.name)}()", False
    if name in _NEVER:
        return f"{name.lower()}()", False
    meant = _VARYING.get(name)
    if meant is None:
        return None
    return f"{meant.lower()}()".replace("now()", "current_timestamp()"), True


def named_in_columns(facts: StatementFacts, server: Server) -> list[tuple[str, str]]:
    """The columns that expressions of a definition name, and where; MySQL's CHECK left out."""
    return [
        (name.parts[0], shown)
        for _, clause, value in _expressions(facts)
        if (shown := clause if server.is_mariadb else _MYSQL_CLAUSES.get(clause)) is not None
        for name in plain_names(value)
    ]


def _expressions(facts: StatementFacts) -> Iterator[tuple[Column, str, Expression]]:
    """The expressions of new columns, and where they stand."""
    tree = facts.tree
    elements: list[object] = []
    if isinstance(tree, CreateTable):
        elements += tree.elements
    elif isinstance(tree, AlterTable):
        for action in tree.actions:
            elements += (*action.columns, *action.checks, *filter(None, (action.check,)))
    no_column = Column(0, 0, "", None)
    for one in elements:
        if isinstance(one, Check):
            yield no_column, _CHECK, one.condition
        if not isinstance(one, Column):
            continue
        if one.generated is not None:
            yield one, _GENERATED, one.generated
        if one.default is not None:
            yield one, _DEFAULT, one.default
        for check in one.checks:
            yield one, _CHECK, check.condition
