"""Functions that expressions of columns, checks and keys may not call, and columns that are not there.

Only functions are refused of which it was measured. Conditions of CHECK are looked at for columns alone.

Source: `Item::check_vcol_func_processor` of MariaDB 10.11 and 11.8, `Item::check_function_as_value_generator`
of MySQL 9.7; measured, tests/vectors/errors.txt.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from binlane.names import TableName, quote
from binlane.statements.policy.refusals import Refusal, refusal
from binlane.statements.policy.server import Server
from binlane.statements.sql.evaluation.functions import is_made
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.servers import Dialect, Fact
from binlane.statements.sql.tree.definitions import (
    AlterTable,
    CheckDefinition,
    CreateTable,
    DefinedColumn,
)
from binlane.statements.sql.tree.expressions import (
    Call,
    Default,
    Expression,
    Name,
    Node,
    Operation,
    Star,
    Subquery,
    SystemVariable,
    UserVariable,
    children,
    walk,
)
from binlane.statements.sql.views import has_aggregates

_OF_SEQUENCES: Final = frozenset(("NEXTVAL", "LASTVAL", "SETVAL"))
"""Functions whose argument is no column."""


def plain_names(node: Node) -> Iterator[Name]:
    """The names of one part in an expression, beside its queries."""
    if isinstance(node, Name):
        if len(node.parts) == 1:
            yield node
    elif isinstance(node, Operation) and node.operator == "COLLATE":
        yield from plain_names(node.operands[0])
    elif not isinstance(node, Star | Default | Subquery | Call):
        for child in children(node):
            yield from plain_names(child)
    elif isinstance(node, Call) and node.name.upper() not in _OF_SEQUENCES:
        for argument in node.arguments:
            yield from plain_names(argument)


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
_NEVER_CHECKED: Final = frozenset(("VERSION", "VALUES", "NAME_CONST"))
"""What CHECK may not call either, beside UNIX_TIMESTAMP()."""
_GENERATED, _DEFAULT, _CHECK = "GENERATED ALWAYS AS", "DEFAULT", "CHECK"
_MYSQL_CLAUSES: Final = {
    _GENERATED: "generated column function",
    _DEFAULT: "default value expression",
}


def refused_function(
    facts: StatementFacts, objects: Objects, *, server: Server, database: str
) -> Refusal | None:
    """The error of a function that an expression of a table calls; None if none is sure."""
    failure = _disallowed_in_columns(facts, objects, server=server, database=database)
    return failure or _disallowed_in_checks(facts, objects, server=server, database=database)


def _disallowed_in_columns(
    facts: StatementFacts, objects: Objects, *, server: Server, database: str
) -> Refusal | None:
    """The error of what a generated column or a DEFAULT calls; None if none is sure."""
    for column, clause, value, check in _expressions(facts):
        if check is not None:
            continue
        is_virtual = clause is _GENERATED and column.storage in ("", "VIRTUAL")
        for node in walk(value):
            found = _name(node, objects, database, facts.dialect)
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


def _disallowed_in_checks(
    facts: StatementFacts, objects: Objects, *, server: Server, database: str
) -> Refusal | None:
    """The error of what a CHECK calls; None if none is sure.

    Source: measured on MariaDB 10.11.19 and MySQL 9.7.4.
    """
    if not server.has(Fact.CHECK_CONSTRAINTS):
        return None
    table = objects.table(facts.effects.writes[0])
    unnamed = 0 if table is None else len(table.check_names)
    for column, _, value, check in _expressions(facts):
        if check is None:
            continue
        shown = column.name if server.is_mariadb and column.name else check.name
        if not shown:
            unnamed += 1
            made_up = (
                "CONSTRAINT_" if server.is_mariadb else f"{facts.effects.writes[0].table}_chk_"
            )
            shown = f"{made_up}{unnamed}"
        for node in walk(value):
            name = _name_in_check(node, objects, database, facts.dialect)
            failure = None if name is None else _refused_in_check(node, name, shown, server)
            if failure is not None:
                return failure
        if column.name and not server.is_mariadb:
            named = (node.parts[-1] for node in walk(value) if isinstance(node, Name))
            if any(name.lower() != column.name.lower() for name in named):
                return refusal(3813, shown)
    return None


def refused_in_key(
    expression: Expression, objects: Objects, *, database: str, dialect: Dialect
) -> int | None:
    """MySQL's error of what no key may be made of: a column alone, or what always varies.

    Source: measured on MySQL 9.7.4.
    """
    if isinstance(expression, Name):
        return 3762
    for node in walk(expression):
        if isinstance(node, UserVariable | SystemVariable):
            return 3772
        is_of_rows = isinstance(node, Default) or (
            isinstance(node, Call)
            and (
                node.upper_name == "VALUES"
                or (node.upper_name == "UNIX_TIMESTAMP" and not node.arguments)
            )
        )
        if is_of_rows or _name(node, objects, database, dialect) is not None:
            return 3758
    return None


def _name_in_check(node: object, objects: Objects, database: str, dialect: Dialect) -> str | None:
    """Return the name by which errors call a node that a CHECK may not have; None if it may."""
    found = _name(node, objects, database, dialect)
    if found is not None or not isinstance(node, Call) or node.database is not None:
        return None if found is None else found[0]
    name = node.upper_name
    is_now = name == "UNIX_TIMESTAMP" and not node.arguments
    is_aggregate = dialect.may_be_mariadb and has_aggregates([node])
    is_refused = is_now or is_aggregate or name in _NEVER_CHECKED
    return f"{node.name.lower()}()" if is_refused else None


def _refused_in_check(node: object, name: str, shown: str, server: Server) -> Refusal | None:
    if server.is_mariadb:
        is_query = isinstance(node, Subquery)
        return refusal(1970, _CHECK) if is_query else refusal(1901, name, _CHECK, shown)
    if isinstance(node, UserVariable | SystemVariable):
        return refusal(3816, shown)
    if isinstance(node, Subquery) or name == "name_const()":
        return refusal(3815, shown)
    # MySQL lets SYSDATE() pass.
    return None if name == "sysdate()" else refusal(3814, shown, name.removesuffix("()"))


def _name(
    node: object, objects: Objects, database: str, dialect: Dialect
) -> tuple[str, bool] | None:
    """Return the name by which MariaDB's errors call a refused node, and whether its value varies.

    None if the node is allowed.
    """
    if isinstance(node, Subquery):
        return "select ...", False
    if isinstance(node, UserVariable):
        return f"@{node.name}", True
    if isinstance(node, SystemVariable):
        return f"@@{node.name}", True
    if not isinstance(node, Call):
        return None
    name = node.upper_name
    stored = objects.function(TableName(node.database or database, node.name))
    is_loadable = node.database is None and objects.is_loadable_function(node.name)
    # One that is not there is as little allowed.
    if stored is not None or (is_made(node, dialect) and not is_loadable):
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
        for _, clause, value, _ in _expressions(facts)
        if (shown := clause if server.is_mariadb else _MYSQL_CLAUSES.get(clause)) is not None
        for name in plain_names(value)
    ]


def _expressions(
    facts: StatementFacts,
) -> Iterator[tuple[DefinedColumn, str, Expression, CheckDefinition | None]]:
    """The expressions of new columns, and where they stand; of a CHECK of the table in no column."""
    tree = facts.tree
    elements: list[object] = []
    if isinstance(tree, CreateTable):
        elements += tree.elements
    elif isinstance(tree, AlterTable):
        for action in tree.actions:
            elements += (*action.columns, *action.checks, *filter(None, (action.check,)))
    no_column = DefinedColumn(0, 0, "", None)
    for one in elements:
        if isinstance(one, CheckDefinition):
            yield no_column, _CHECK, one.condition, one
        if not isinstance(one, DefinedColumn):
            continue
        if one.generated is not None:
            yield one, _GENERATED, one.generated, None
        if one.default is not None:
            yield one, _DEFAULT, one.default, None
        for check in one.checks:
            yield one, _CHECK, check.condition, check
