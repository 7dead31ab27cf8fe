"""Names of CHECK constraints that are taken, or that no constraint has.

Source: measured on MariaDB 10.11.19 and MySQL 9.7.4, in whose order things are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.refusals import Refusal, refusal, table_is_there
from binlane.statements.policy.server import Server
from binlane.statements.sql.check_names import (
    CheckName,
    altered_checks,
    copied_checks,
    renamed_checks,
)
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import Fact
from binlane.statements.sql.tree.definitions import AlterAction, AlterTable

_OF_CONSTRAINTS: Final = ("DROP CHECK", "DROP CONSTRAINT", "ALTER CHECK", "ALTER CONSTRAINT")


def wrong_check_names(
    facts: StatementFacts,
    before: Table | None,
    after: Table | None,
    *,
    tables: Mapping[TableName, Table],
    server: Server,
) -> Refusal | None:
    """The error of the names of checks in a definition; None if none is sure.

    Args:
        facts: Of CREATE TABLE or ALTER TABLE.
        before: The table as it was; None for CREATE TABLE.
        after: As it would be, under its old name; None where that is not known.
        tables: The base tables there are, of which MySQL has no two with checks of one name.
        server: Whose rules and texts there are.
    """
    if not server.has(Fact.CHECK_CONSTRAINTS):
        return None
    if server.is_mariadb:
        return None if after is None else _taken_in_mariadb(after)
    if before is None:
        others = {} if after is None or after.is_temporary else tables
        return None if after is None else _taken(after, (), after.check_names, others)
    tree = facts.tree
    if not isinstance(tree, AlterTable):
        return None
    if before.is_complete:
        for action in tree.actions:
            if (errno := _unknown(action, before)) is not None:
                return refusal(errno, action.name)
    kept, added = altered_checks(
        before.check_names, tree.actions, before.name.table, is_mariadb=False
    )
    if before.is_temporary:
        # Its own are not looked for, those of base tables are.
        return _taken(before, (), added, tables)
    renamed = [new for old, new in facts.effects.renames if old == before.name]
    if not renamed or renamed[0] == before.name:
        return _taken(before, kept, added, tables)
    new = renamed[0]
    both = renamed_checks((*kept, *added), before.name.table, new.table)
    others = {name: table for name, table in tables.items() if name != before.name}
    return _taken(replace(before, name=new), (), both, others)


def wrong_renamed_checks(
    renames: Iterable[tuple[TableName, TableName]],
    tables: Mapping[TableName, Table],
    *,
    server: Server,
    has_checks: bool,
) -> Refusal | None:
    """The error of RENAME TABLE, for names of constraints that the servers make up anew.

    Args:
        renames: Old and new names, done one after the other.
        tables: The base tables there are.
        server: Whose text an error has.
        has_checks: Whether MySQL's names of checks count.
    """
    there = dict(tables)
    for old, new in renames:
        table = there.pop(old, None)
        if table is None:
            continue
        checks = table.check_names
        if has_checks and not server.is_mariadb:
            checks = renamed_checks(checks, old.table, new.table)
        references = tuple(key.renamed(new) for key in table.foreign_keys)
        moved = replace(table, name=new, check_names=checks, foreign_keys=references)
        if has_checks and (error := _taken(moved, (), checks, there)) is not None:
            return error
        taken = {
            key.own_name.lower()
            for other in (there.values() if references and old != new else ())
            if other.name.database == new.database
            for key in other.foreign_keys
        }
        lost = next((key for key in references if key.own_name.lower() in taken), None)
        if lost is not None:
            return table_is_there(new) if server.is_mariadb else refusal(1826, lost.own_name)
        there[new] = moved
    return None


def wrong_copied_checks(
    source: Table, made: TableName, tables: Mapping[TableName, Table], *, is_temporary: bool
) -> Refusal | None:
    """MySQL's error of CREATE TABLE … LIKE, for the names of checks that it makes up."""
    checks = copied_checks(source.check_names, made.table)
    return _taken(replace(source, name=made), (), checks, {} if is_temporary else tables)


def checks_unknown(before: Table | None, after: Table) -> Refusal | None:
    """MySQL's error of a new check that names a column which is not there; None without.

    Args:
        before: The table as it was; None for CREATE TABLE.
        after: As it would be; all its columns are known.
    """
    columns = {column.name.lower() for column in after.definition.columns}
    known = () if before is None else before.check_names
    for one in after.check_names:
        unknown = sorted(one.columns - columns)
        if one in known or not unknown:
            continue
        if before is None:
            return refusal(3820, one.name, unknown[0])
        return refusal(1054, unknown[0], f"check constraint {one.name} expression")
    return None


def _taken(
    table: Table,
    kept: Iterable[CheckName],
    added: Iterable[CheckName],
    tables: Mapping[TableName, Table],
) -> Refusal | None:
    """MySQL's error of a check whose name another one of the database has; None without."""
    taken = {one.name.lower() for one in kept}
    for other in tables.values():
        if other.name.database == table.name.database and other.name != table.name:
            taken.update(one.name.lower() for one in other.check_names)
    for one in added:
        if one.name.lower() in taken:
            return refusal(3822, one.name)
        taken.add(one.name.lower())
    return None


def _taken_in_mariadb(after: Table) -> Refusal | None:
    """MariaDB's error of a check that is called as another constraint of its table is."""
    taken = {key.name.lower() for key in after.unique_keys}
    taken.update(key.name.lower() for key in after.foreign_keys if key.name)
    taken.update(one.name.lower() for one in after.definition.columns if one.check)
    for one in after.check_names:
        if one.name.lower() in taken:
            return replace(
                refusal(1826, one.name),
                symbol="ER_DUP_CONSTRAINT_NAME",
                message=f"Duplicate CHECK constraint name '{one.name}'",
            )
        taken.add(one.name.lower())
    return None


def _unknown(action: AlterAction, table: Table) -> int | None:
    """The number of MySQL's error of a constraint that is not there; None if it may be there."""
    name = action.name.lower()
    if action.kind not in _OF_CONSTRAINTS or any(
        one.name.lower() == name for one in table.check_names
    ):
        return None
    if action.kind.endswith("CHECK"):
        return 3821
    if action.kind == "ALTER CONSTRAINT":
        return 3940
    is_reference = name in (one.own_name.lower() for one in table.foreign_keys)
    is_there = is_reference or any(key.name.lower() == name for key in table.keys)
    return None if is_there else 3940
