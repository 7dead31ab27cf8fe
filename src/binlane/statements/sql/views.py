"""Views as the servers keep them: which can be merged, and what ALTER VIEW leaves as it was.

Source: MariaDB 10.11 sql/sql_view.cc `mysql_create_view` and `mysql_register_view`, sql/sql_lex.cc
`LEX::can_be_merged`; MySQL 9.7 sql/sql_view.cc and sql/sql_lex.cc `Query_expression::is_mergeable`.
Measured on MariaDB 10.11.19 and MySQL 9.7.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from binlane.statements.sql.accounts import AccountName
from binlane.statements.sql.schema import View
from binlane.statements.sql.tree.definitions import CreateView
from binlane.statements.sql.tree.expressions import (
    Call,
    Node,
    Query,
    Select,
    Subquery,
    TableQuery,
    children,
)
from binlane.statements.sql.tree.statements import QueryStatement

_AGGREGATES: Final = frozenset(
    (
        *("AVG", "BIT_AND", "BIT_OR", "BIT_XOR", "COUNT", "GROUP_CONCAT", "JSON_ARRAYAGG"),
        *("JSON_OBJECTAGG", "MAX", "MIN", "STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "SUM"),
        *("VARIANCE", "VAR_POP", "VAR_SAMP"),
    )
)
# Functions that give another value for each row.
_VOLATILE: Final = frozenset(("RAND", "UUID", "UUID_SHORT", "SYS_GUID"))


def only_select(tree: Node) -> Select | None:
    """The one SELECT of a query, with no LIMIT behind it; None if it is a query of another kind."""
    node = _body(tree)
    return node if isinstance(node, Select) else None


def own_calls(node: Node) -> Iterator[Call]:
    """The calls of a query's own level."""
    for child in children(node):
        if isinstance(child, (Query, Subquery)):
            continue
        if isinstance(child, Call):
            yield child
        yield from own_calls(child)


def has_aggregates(calls: Iterable[Call]) -> bool:
    """True if some call joins the values of several rows."""
    return any(call.upper_name in _AGGREGATES for call in calls)


def is_volatile(node: Node) -> bool:
    """True if a query, or one within it, calls a function that gives another value for each row."""
    if isinstance(node, Call) and node.database is None and node.upper_name in _VOLATILE:
        return True
    return any(map(is_volatile, children(node)))


class Attributes(NamedTuple):
    """Attributes that the servers write before a view's name.

    Attributes:
        algorithm: One of `MERGE`, `TEMPTABLE` and `UNDEFINED`.
        definer: Account whose privileges hold in it; None if it is the one who makes it, or is
            named.
        is_invoker: True with SQL SECURITY INVOKER.
    """

    algorithm: str
    definer: AccountName | None
    is_invoker: bool


def attributes(node: CreateView, old: View | None, *, is_mariadb: bool) -> Attributes:
    """The attributes of a view that is created or altered.

    ALTER VIEW keeps what it does not name; MySQL takes UNDEFINED for not named. MERGE of a view
    that cannot be merged is UNDEFINED.

    Args:
        node: Statement CREATE VIEW or ALTER VIEW.
        old: The view of that name; None if there is none, or it is not known.
        is_mariadb: True if MariaDB runs the statement, False for MySQL.
    """
    named = node.algorithm if is_mariadb or node.algorithm != "UNDEFINED" else ""
    kept = old if node.verb.startswith("ALTER") else None
    algorithm = named or (kept.algorithm if kept is not None else "UNDEFINED")
    if algorithm == "MERGE" and not _can_be_merged(node.query, is_mariadb=is_mariadb):
        algorithm = "UNDEFINED"
    is_invoker = node.security == "INVOKER"
    if kept is not None and not node.security:
        is_invoker = kept.is_invoker
    is_kept = kept is not None and node.definer is None
    return Attributes(algorithm, kept.definer if kept is not None and is_kept else None, is_invoker)


def _can_be_merged(query: Query, *, is_mariadb: bool) -> bool:
    """True if a view of a query may have the algorithm MERGE."""
    body = _body(query)
    if isinstance(body, TableQuery):
        return True
    if not isinstance(body, Select) or not body.tables:
        return False
    calls = list(own_calls(query))
    if (
        body.group_by
        or body.having is not None
        or body.windows
        or body.options & {"DISTINCT", "DISTINCTROW"}
        or any(call.over is not None for call in calls)
        or has_aggregates(calls)
    ):
        return False
    return not (is_mariadb and (is_volatile(query) or _orders_by_subquery(query)))


def _body(tree: Node) -> Node:
    """Give the node within a query's parentheses; the query itself where LIMIT stands behind it."""
    node: Node = tree.query if isinstance(tree, QueryStatement) else tree
    while isinstance(node, Query) and (node.limit is None or node.limit.count is None):
        node = node.body
    return node


def _orders_by_subquery(query: Query) -> bool:
    return any(_has_subquery(item) for item in query.order_by)


def _has_subquery(node: Node) -> bool:
    return isinstance(node, Subquery) or any(map(_has_subquery, children(node)))
