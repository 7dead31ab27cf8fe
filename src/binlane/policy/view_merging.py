"""Whether a server merges a view into a statement, so that the view's tables get its locks.

Source: sql_view.cc `mysql_make_view` of MariaDB 10.11, `parse_view_definition` of MySQL 9.7.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from binlane.sql.tokens import SqlSyntaxError, tokenise

if TYPE_CHECKING:
    from binlane.policy.server import Server
    from binlane.sql.schema import View

_VIEWS_MAX: Final = 1024
# Clauses of its own SELECT with which a view is read into a table first.
_CLAUSES: Final = frozenset(
    ("DISTINCT", "GROUP", "HAVING", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "OVER")
)
_AGGREGATES: Final = frozenset(
    (
        *("AVG", "BIT_AND", "BIT_OR", "BIT_XOR", "COUNT", "GROUP_CONCAT", "JSON_ARRAYAGG"),
        *("JSON_OBJECTAGG", "MAX", "MIN", "STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "SUM"),
        *("VARIANCE", "VAR_POP", "VAR_SAMP"),
    )
)
# Functions that give another value for each row.
_VOLATILE: Final = frozenset(("RAND", "UUID", "UUID_SHORT", "SYS_GUID"))


def is_merged(view: View, server: Server) -> bool:
    """Whether the tables of a view are locked as the view is.

    MySQL asks before it knows of aggregates, and merges functions of every kind.
    """
    words = _outer_words(view.query)
    if not words.isdisjoint(_CLAUSES):
        return False
    if not server.is_mariadb:
        return True
    functions = {use.name.upper() for use in view.facts.functions}
    return functions.isdisjoint(_VOLATILE) and words.isdisjoint(_AGGREGATES)


@lru_cache(maxsize=_VIEWS_MAX)
def _outer_words(query: str) -> frozenset[str]:
    """The words of a query that stand in no parentheses."""
    words = []
    depth = 0
    try:
        for token in tokenise(query):
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                words.append(token.text.upper())
    except SqlSyntaxError:
        return frozenset()
    return frozenset(words)
