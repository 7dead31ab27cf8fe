"""Objects stored at the server that a statement may run, as far as its own text tells."""

from __future__ import annotations

from binlane.statements.sql.evaluation.functions import is_built_in
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import has_system_database


def runs_nothing_stored(facts: StatementFacts) -> bool:
    """True if all functions that a statement evaluates are built in.

    A table that the statement reads may be a view, which calls functions; the servers' own views
    call
    """
    return all(
        use.database is None and is_built_in(use.name, facts.dialect) for use in facts.functions
    ) and all(has_system_database(table.name.database) for table in facts.tables)
