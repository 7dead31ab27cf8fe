"""What a statement may run that is stored at the server, as far as its own text tells."""

from __future__ import annotations

from binlane.statements.sql.evaluation.functions import is_built_in
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import has_system_database


def runs_nothing_stored(facts: StatementFacts) -> bool:
    """Whether all that a statement evaluates is built in.

    A table that it reads may be a view, which calls functions; the servers' own call none that writes.
    """
    return all(
        use.database is None and is_built_in(use.name, facts.dialect) for use in facts.functions
    ) and all(has_system_database(table.name.database) for table in facts.tables)
