"""UPDATE and DELETE of tables that hold no rows, BLACKHOLE's, and what is known of them in advance.

Source: measured on MariaDB 10.11.19, whose optimizer asks the engine how many rows a key has, and
on MySQL 9.7.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from binlane.sql.servers import Fact
from binlane.sql.tree.expressions import Literal, Name, Operation, Subquery
from binlane.sql.tree.statements import Delete, Update

if TYPE_CHECKING:
    from collections.abc import Iterator

    from binlane.policy.access import ResolvedStatement
    from binlane.policy.server import Server
    from binlane.sql.facts import StatementFacts
    from binlane.sql.schema import Table
    from binlane.sql.tree.expressions import Expression


def looks_up_nothing(facts: StatementFacts, resolved: ResolvedStatement, server: Server) -> bool:
    """Whether UPDATE or DELETE of one BLACKHOLE table names a value for all of a unique key.

    Such a statement is known to change nothing before it runs, and is logged in no format.
    """
    tree = facts.tree
    table = _empty_table(facts, resolved)
    if table is None or not isinstance(tree, (Update, Delete)) or tree.where is None:
        return False
    if not server.has(Fact.ASKS_EMPTY_ENGINES):
        return False
    columns = {column.name.lower() for column in table.definition.columns}
    given = set(_looked_up(tree.where, columns))
    return any(
        given.issuperset(column.lower() for column in key.columns) for key in table.unique_keys
    )


def finds_no_rows(facts: StatementFacts, resolved: ResolvedStatement) -> bool:
    """Whether UPDATE or DELETE of one BLACKHOLE table has no rows to change, whatever it asks.

    Its text is logged all the same, and in row format there is nothing to log.
    """
    return _empty_table(facts, resolved) is not None


def _empty_table(facts: StatementFacts, resolved: ResolvedStatement) -> Table | None:
    """The BLACKHOLE table that alone UPDATE or DELETE changes."""
    if not isinstance(facts.tree, (Update, Delete)) or facts.is_multi_table:
        return None
    own = [one for one in resolved.accesses if not one.is_prelocked and one.changes]
    if len(own) != 1 or own[0].table.engine != "BLACKHOLE":
        return None
    return own[0].table


def _looked_up(condition: Expression, columns: set[str]) -> Iterator[str]:
    """The columns, in small letters, that a condition compares with values that no row has."""
    if not isinstance(condition, Operation) or condition.is_negated:
        return
    operands = condition.operands
    if condition.operator == "AND":
        for operand in operands:
            yield from _looked_up(operand, columns)
    elif condition.operator in ("=", "<=>"):
        for name, value in (tuple(operands), tuple(reversed(operands))):
            is_local = isinstance(value, Name) and value.parts[-1].lower() not in columns
            if isinstance(name, Name) and (is_local or isinstance(value, (Literal, Subquery))):
                yield name.parts[-1].lower()
    elif condition.operator == "IN" and isinstance(operands[0], Name):
        if all(isinstance(value, Literal) for value in operands[1:]):
            yield operands[0].parts[-1].lower()
    elif condition.operator == "IS NULL" and isinstance(operands[0], Name):
        yield operands[0].parts[-1].lower()
