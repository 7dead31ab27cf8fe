"""The tables of a scope, as a filter that shows what happens to them to people.

The tables go by their names: behind a RENAME that swaps another table in, as schema change tools do,
the changes are those of the table that has the name now.
"""

from __future__ import annotations

import re
from typing import Final

from binlane.binlogs.filters.filter_state import FilterState, FilterVerdict
from binlane.binlogs.filters.statement_concern import Concern
from binlane.binlogs.filters.terms import RenameMode, parse_terms
from binlane.errors import ConfigError
from binlane.statements.scope.scope import Scope

_SPECIAL: Final = re.compile(r"([%_\\])")


class ChosenTables(FilterState):
    """The tables that a scope includes; a statement is wanted if it changes any of them.

    Nothing is replayed of what is shown, so that a statement is never cut, and no table is given up
    since its making was left out.

    Args:
        scope: Databases and tables as users name them.

    Raises:
        ConfigError: If the scope includes nothing.
    """

    def __init__(self, scope: Scope) -> None:
        super().__init__(parse_terms(lists_of(scope), rename=RenameMode.NAME.value))

    def take(self, concern: Concern, place: str | None) -> FilterVerdict:
        """As `FilterState.take`."""
        effects = concern.effects
        names = effects.changed_tables | (set(concern.tables) - set(effects.reads))
        dropped = effects.dropped_databases
        if not (names or dropped):
            return super().take(concern, place)
        # All of them, so that a near name can be told of a log that has none of them.
        is_wanted = [*map(self.includes, sorted(names)), *map(self._has_any_of, dropped)]
        return FilterVerdict(passes=any(is_wanted))

    def _has_any_of(self, database: str) -> bool:
        return self.includes_database(database) or bool(self.terms.rules.names_in(database))


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
