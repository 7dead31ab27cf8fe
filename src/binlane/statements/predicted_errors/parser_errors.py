"""Errors that a server's parser finds beyond its grammar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from binlane.names import TableName, folded
from binlane.statements.policy.refusals import NO_DATABASE, Refusal, refusal
from binlane.statements.predicted_errors.program_names import wrong_program
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.statement_kinds import TABLE_DROPPING_KINDS, StatementKind
from binlane.statements.sql.table_changes import named_engine
from binlane.statements.sql.tree.account_statements import AccountStatement
from binlane.statements.sql.tree.definitions import CreateTable
from binlane.statements.sql.tree.expressions import (
    DerivedTable,
    Join,
    NamedTable,
    ObjectName,
    Select,
    TableReference,
    walk,
)
from binlane.statements.sql.tree.statements import Administration, Delete, Update

_PROGRAMS: Final = frozenset(
    (
        *(StatementKind.CREATE_ROUTINE, StatementKind.CREATE_TRIGGER),
        *(StatementKind.CREATE_EVENT, StatementKind.COMPOUND),
    )
)
_NAMED_TWICE: Final = 1066
_LISTING: Final = TABLE_DROPPING_KINDS | {
    *(StatementKind.DROP_VIEW, StatementKind.MAINTENANCE, StatementKind.FLUSH),
}
"""Statements of which the parser takes no table twice."""
_ADMINISTERED: Final = ("CHECKSUM TABLE", "CHECK TABLE")
"""Likewise, which are about no table that is written."""


def unparsed(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """The error that the server's parser finds beyond its grammar; None if it has none."""
    facts = statement.facts
    if facts.effects.is_or_replace and state.server.is_mariadb and _is_left_too(facts):
        return _REPLACED_OR_LEFT
    if (name := _named_twice(facts, statement.database)) is not None:
        return refusal(_NAMED_TWICE, name)
    if not statement.succeeds:
        return None
    if isinstance(facts.tree, CreateTable) and facts.tree.is_external:
        return _wrong_external(facts.tree)
    is_program = facts.effects.kind in _PROGRAMS
    if is_program or isinstance(facts.tree, Delete):
        deletes = (node for node in walk(facts.tree) if isinstance(node, Delete))
        wrong = (_wrong_target(node, statement) for node in deletes)
        if (error := next(filter(None, wrong), None)) is not None:
            return error
    if not is_program:
        return None
    return wrong_program(facts, state.objects, server=state.server, database=statement.database)


def _named_twice(facts: StatementFacts, database: str) -> str | None:
    """The first name that two tables of one list or one FROM have; None if there is none."""
    uses = facts.tables
    if isinstance(facts.tree, Administration) and facts.tree.verb in _ADMINISTERED:
        return _first_twice(
            TableName(one.database or database, one.name) for one in facts.tree.tables
        )
    if facts.effects.kind is StatementKind.CREATE_VIEW:
        return None  # which is an error where the view is read
    if len(uses) <= 1 or len({(use.name.database, use.alias) for use in uses}) == len(uses):
        return None
    if facts.effects.kind in _LISTING:
        return _first_twice(use.name for use in uses)
    for node in walk(facts.tree):
        if isinstance(node, Select | Update | Delete):
            named = [
                TableName(use.name.database or database, use.alias or use.name.name)
                for table in node.tables
                for use in _of_list(table)
            ]
            if (name := _first_twice(named)) is not None:
                return name
    return None


def _first_twice(names: Iterable[TableName]) -> str | None:
    seen: set[TableName] = set()
    for name in names:
        if name in seen:
            return name.table
        seen.add(name)
    return None


def _of_list(table: TableReference) -> Iterator[NamedTable]:
    """The tables of one entry of FROM, without those of subqueries."""
    left = [table]
    while left:
        table = left.pop()
        if isinstance(table, Join):
            left += (table.right, table.left)
        elif isinstance(table, NamedTable):
            yield table


def _is_left_too(facts: StatementFacts) -> bool:
    """Return True if IF NOT EXISTS stands in a CREATE OR REPLACE."""
    if isinstance(facts.tree, AccountStatement):
        return "IF NOT EXISTS" in facts.tree.options
    return facts.effects.if_exists


_REPLACED_OR_LEFT: Final = Refusal(
    1221, "HY000", "ER_WRONG_USAGE", "Incorrect usage of OR REPLACE and IF NOT EXISTS"
)
_WITHOUT_EXTERNAL_TABLES: Final = frozenset(
    ("INNODB", "MYISAM", "MEMORY", "CSV", "ARCHIVE", "BLACKHOLE", "MRG_MYISAM")
)


def _wrong_external(tree: CreateTable) -> Refusal | None:
    """6512, 6513: an external table is of an engine that has such."""
    engine = named_engine(tree.options)
    if engine is None:
        return refusal(6513)
    return refusal(6512, engine) if engine in _WITHOUT_EXTERNAL_TABLES else None


def _wrong_target(delete: Delete, statement: SessionStatement) -> Refusal | None:
    """1066, 1109: what a DELETE of several tables deletes from is there twice, or not at all."""
    uses = [
        node
        for table in delete.tables
        for node in walk(table)
        if isinstance(node, NamedTable | DerivedTable)
    ]
    is_folded = statement.facts.dialect.lower_case_names
    seen: set[tuple[str | None, str]] = set()
    for target in delete.targets or ():
        if is_folded:
            target = replace(target, name=folded(target.name))  # noqa: PLW2901
        key = (target.database or statement.database, target.name)
        if key in seen:
            return refusal(_NAMED_TWICE, target.name)
        seen.add(key)
        if not any(_means(target, use, statement) for use in uses):
            return refusal(1109, target.name)
    return None


def _means(target: ObjectName, use: NamedTable | DerivedTable, statement: SessionStatement) -> bool:
    """Return True if a target may be a table of FROM: by its alias, which has no database, or its name."""
    fold = folded if statement.facts.dialect.lower_case_names else str
    if isinstance(use, DerivedTable) or use.alias is not None:
        return target.database is None and fold(use.alias or "") == target.name
    own = use.name.database or statement.database
    return (target.database or statement.database) == own and fold(use.name.name) == target.name


def no_database(statement: SessionStatement) -> Refusal | None:
    """1046: a name without a database where there is no default one, which the parser finds."""
    is_loadable = statement.facts.verb.startswith("DROP FUNCTION")
    if statement.database or is_loadable or all(_databases_meant(statement.facts)):
        return None
    return NO_DATABASE


def _databases_meant(facts: StatementFacts) -> Iterator[str | None]:
    """The databases that a statement names or means; empty or None for the default one."""
    effects, tree = facts.effects, facts.tree
    for name in (*effects.writes, *effects.reads, *effects.objects, *effects.drops):
        yield name.database
    if effects.kind is StatementKind.CALL:
        yield facts.functions[0].database
    elif effects.kind is StatementKind.LOCK:
        yield from (use.name.database for use in facts.tables)
    elif effects.kind is StatementKind.ALTER_DATABASE:
        yield from effects.databases
    elif isinstance(tree, AccountStatement) and tree.on is not None and tree.on.name != "*":
        yield tree.on.database
