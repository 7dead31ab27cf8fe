"""A scope as the lists of a filter, which follows tables that are renamed."""

from __future__ import annotations

import re
from typing import Final

from binlane.errors import ConfigError
from binlane.statements.scope.scope import Scope

_SPECIAL: Final = re.compile(r"([%_\\])")


def lists_of(scope: Scope) -> dict[str, list[str]]:
    r"""The lists of a filter that lets the same tables through as a scope, `shop\_a.%` for `shop_a`.

    Args:
        scope: Databases and tables as users name them.

    Returns:
        Names by the options of `filters.terms.LIST_OPTIONS`.

    Raises:
        ConfigError: If the scope includes nothing.
    """
    tables = [str(table) for table in scope.log_tables if scope.includes(table)]
    databases = [name for name in scope.log_databases if scope.includes_database(name)]
    if not (tables or databases or scope.log_all):
        raise ConfigError(
            "no table is left of the lists", key="tables", hint="IGNORE wins over LOG"
        )
    lists = {
        "do_table": [] if scope.log_all else tables,
        "wild_do_table": [] if scope.log_all else [_all_of(name) for name in databases],
        "ignore_table": [str(table) for table in scope.ignore_tables],
        "wild_ignore_table": [_all_of(name) for name in scope.ignore_databases],
    }
    return {name: sorted(names) for name, names in lists.items() if names}


def _all_of(database: str) -> str:
    return _SPECIAL.sub(r"\\\1", database) + ".%"
