"""Foreign keys as CREATE TABLE and ALTER TABLE make them, with the names that the servers make up.

Source: measured on MariaDB 10.11.19 and MySQL 9.7.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from binlane.names import TableName
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import ForeignKey, made_up_number, made_up_reference
from binlane.statements.sql.table_definitions import renamed_columns
from binlane.statements.sql.tree.definitions import (
    AlterTable,
    DefinedColumn,
    KeyDefinition,
    Reference,
)


def references_named(
    references: Iterable[ForeignKey], table: str, before: Iterable[ForeignKey] = ()
) -> list[ForeignKey]:
    """Foreign keys with the names that the servers make up for those that have none.

    Args:
        references: Those of a table, the old ones first.
        table: The name of that table, without its database.
        before: Those that it had, whose numbers are not given again.
    """
    number = highest_reference(table, before)
    made = []
    for each in references:
        if not each.own_name:
            number += 1
            each = replace(each, made_up=made_up_reference(table, number))  # noqa: PLW2901
        made.append(each)
    return made


def highest_reference(table: str, keys: Iterable[ForeignKey]) -> int:
    """The highest number in a name of foreign keys that may be made up; 0 without."""
    return max((made_up_number(each.own_name, table) or 0 for each in keys), default=0)


def column_references(columns: Iterable[DefinedColumn], table: TableName) -> list[ForeignKey]:
    """Foreign keys that stand in the definitions of columns."""
    return [
        _foreign_key(column.references, table, (column.name,), name="")
        for column in columns
        if column.references is not None
    ]


def foreign_key_of(node: KeyDefinition, table: TableName, *, is_mariadb: bool = True) -> ForeignKey:
    """A foreign key of a table; without CONSTRAINT its name is MySQL's index's alone."""
    assert node.references is not None  # the grammar demands it
    columns = tuple(part.column for part in node.parts)
    name = node.constraint or node.name
    made = _foreign_key(node.references, table, columns, name=name)
    return made if is_mariadb else replace(made, names_index=bool(name) and not node.constraint)


def asked_name(key: KeyDefinition) -> str:
    """The name that MariaDB's IF NOT EXISTS looks for: without one, that of the first column."""
    if key.kind == "PRIMARY":
        return key.kind
    name = (key.constraint or key.name) if key.kind == "FOREIGN" else (key.name or key.constraint)
    return name or key.parts[0].column


def altered_references(
    before: Sequence[ForeignKey], table: TableName, facts: StatementFacts
) -> list[ForeignKey]:
    """Give a table's foreign keys after an ALTER TABLE, whatever its engine; its name stays.

    Args:
        before: The table's foreign keys before the ALTER TABLE.
        table: Name of the table that the statement alters.
        facts: Facts of the statement; its tree is an `AlterTable`.
    """
    node = facts.tree
    assert isinstance(node, AlterTable)
    is_mariadb = facts.dialect.may_be_mariadb
    renamed = renamed_columns(node.actions)
    found = [each.with_columns(table, renamed) for each in before]
    for action in node.actions:
        if action.kind in {"DROP FOREIGN KEY", "DROP CONSTRAINT"}:
            found = [each for each in found if each.own_name.lower() != action.name.lower()]
        elif action.kind in {"ADD KEY", "ADD COLUMN"}:
            for key in (*action.keys, *([action.key] if action.key is not None else [])):
                names = {each.name.lower() for each in found} if key.if_not_exists else ()
                if key.kind == "FOREIGN" and asked_name(key).lower() not in names:
                    found.append(foreign_key_of(key, table, is_mariadb=is_mariadb))
    found += column_references((one for action in node.actions for one in action.columns), table)
    if is_mariadb and any(action.kind == "RENAME" for action in node.actions):
        return found
    return references_named(found, table.table, before)


def _foreign_key(
    node: Reference, table: TableName, columns: tuple[str, ...], *, name: str
) -> ForeignKey:
    """A reference without a database is to the table's own, whatever the default one is."""
    return ForeignKey(
        table=table,
        columns=columns,
        parent=TableName(node.table.database or table.database, node.table.name),
        on_delete=node.on_delete or "RESTRICT",
        on_update=node.on_update or "RESTRICT",
        name=name,
        parent_columns=node.columns,
    )
