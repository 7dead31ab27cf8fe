"""Which columns a view's columns stand for, as far as its SELECT names them plainly."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.facts import SetColumn
from binlane.sql.tokens import SqlSyntaxError, tokenise

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from binlane.sql.schema import View
    from binlane.sql.tokens import Token

_VIEWS_MAX: Final = 1024
_SELECT_ENDS: Final = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION")


def columns_behind(view: View, columns: Iterable[SetColumn]) -> list[SetColumn]:
    """What the columns of a view stand for in its SELECT; itself what is not told."""
    known = _selected(view.query, view.columns)
    return [
        known.get(each.name.lower(), SetColumn(qualifier=None, name=each.name)) for each in columns
    ]


def columns_of(view: View) -> list[str]:
    """The columns that the view's columns stand for, in their order; empty if not all are told."""
    return [column.name for column in _selected(view.query, view.columns).values()]


@lru_cache(maxsize=_VIEWS_MAX)
def _selected(query: str, names: tuple[str, ...]) -> dict[str, SetColumn]:
    """By the view's name of a column, in small letters, the column that the SELECT names."""
    try:
        cursor = Cursor(list(tokenise(query)))
        if not cursor.accept("SELECT"):
            return {}
        items = split(cursor.until(_SELECT_ENDS))
    except (SqlSyntaxError, Stopped):
        return {}
    found: dict[str, SetColumn] = {}
    for index, item in enumerate(items):
        column, alias = _column(item)
        if column is not None:
            name = names[index] if index < len(names) else alias
            found[name.lower()] = column
    return found


def _column(item: Sequence[Token]) -> tuple[SetColumn | None, str]:
    """The column that an item of a SELECT is, and the name that it gets."""
    cursor = Cursor([token for token in item if token.text])
    try:
        parts = [cursor.identifier()]
        while cursor.accept_operator("."):
            parts.append(cursor.identifier())
        alias = parts[-1]
        if cursor.accept("AS") or not cursor.is_at_end:
            alias = cursor.identifier()
    except Stopped:
        return None, ""
    if not cursor.is_at_end:
        return None, ""
    return SetColumn(qualifier=parts[-2] if len(parts) > 1 else None, name=parts[-1]), alias
