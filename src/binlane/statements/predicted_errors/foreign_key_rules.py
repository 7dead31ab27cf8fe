"""Foreign keys that a table cannot have.

Source: sql_table.cc of MariaDB 10.11 and MySQL 9.7; measured, tests/vectors/errors.txt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.refusals import Refusal, Why, refusal, table_is_there
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.prediction import PredictedError
from binlane.statements.predicted_errors.table_structure import lowered
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.foreign_keys import (
    column_references,
    foreign_key_of,
    highest_reference,
)
from binlane.statements.sql.schema import ForeignKey, Table, made_up_reference
from binlane.statements.sql.servers import Fact
from binlane.statements.sql.table_definitions import TableColumn
from binlane.statements.sql.tree.definitions import (
    AlterTable,
    CreateTable,
    DefinedColumn,
    KeyDefinition,
)
from binlane.statements.sql.tree.expressions import Node

# Foreign keys -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Parents:
    """Tables and rules against which the foreign keys of a new or altered table are checked.

    Attributes:
        server: Server whose rules and texts of errors apply.
        find: A table by its name. None: there surely is none that foreign keys can refer to; raises
            `LookupError` where that is not known.
        checks: Value of the session's foreign_key_checks.
        must_be_unique: Value of MySQL's variable restrict_fk_on_non_standard_key.
        named: Names, in small letters, of the foreign keys of the child's database.
    """

    server: Server
    find: Callable[[TableName], Table | None]
    checks: bool
    must_be_unique: bool
    named: Callable[[], Iterable[str]]


def wrong_reference(
    facts: StatementFacts, before: Table | None, child: Table, parents: Parents
) -> Refusal | None:
    """The error of a statement that makes a wrong foreign key; None if none is sure.

    Args:
        facts: Of CREATE TABLE or ALTER TABLE.
        before: The table as it was; None for CREATE TABLE.
        child: Table as the statement would make it.
        parents: What they may refer to.
    """
    if child.engine != "INNODB" or child.partitioning or not child.is_complete:
        return None
    table = child.name.table if before is None else before.name.table
    number = highest_reference(table, () if before is None else before.foreign_keys)
    taken: set[str] | None = None
    for key in _new_references(facts, child.name, parents.server):
        number += not key.name
        shown = key.name or made_up_reference(child.name.table, number)
        try:
            _look_at_reference(key, shown, child, parents, is_altered=before is not None)
        except LookupError:
            continue
        except PredictedError as wrong:
            return wrong.error
        taken = set(parents.named()) if taken is None else taken
        if shown.lower() in taken:
            is_altered = before is not None
            if is_altered and not key.name and parents.server.is_mariadb and parents.checks:
                return table_is_there(child.name)
            return _name_is_taken(shown, child, parents, is_altered=is_altered)
        taken.add(shown.lower())
    return None


def _name_is_taken(name: str, child: Table, parents: Parents, *, is_altered: bool) -> Refusal:
    """Why no two foreign keys of a database have one name.

    Source: measured on MariaDB 10.11.19 and MySQL 9.7.4.
    """
    if not parents.server.is_mariadb:
        return refusal(1826, name)
    if is_altered and not parents.checks:
        return refusal(1823, f"{child.name.database}/{name}")
    return Refusal(
        *(1005, "HY000", "ER_CANT_CREATE_TABLE"),
        f"Can't create table `{child.name.database}`.`{child.name.table}` "
        '(errno: 121 "Duplicate key on write or update")',
    )


def _new_references(
    facts: StatementFacts, table: TableName, server: Server
) -> Iterator[ForeignKey]:
    tree = facts.tree
    elements: list[Node] = []
    if isinstance(tree, CreateTable):
        elements += tree.elements
    elif isinstance(tree, AlterTable):
        for action in tree.actions:
            elements += (*action.columns, *action.keys, *filter(None, (action.key,)))
    for one in elements:
        if isinstance(one, KeyDefinition) and one.kind == "FOREIGN" and not one.if_not_exists:
            key = foreign_key_of(one, table)
            # MySQL gives the name of an index to the index alone.
            yield key if server.is_mariadb else replace(key, name=one.constraint)
        elif isinstance(one, DefinedColumn) and server.has(Fact.COLUMN_REFERENCES):
            yield from column_references([one], table)


def _look_at_virtual(key: ForeignKey, shown: str, child: Table, parents: Parents) -> None:
    """MySQL has no foreign keys of virtual columns; it looks first for a parent that has no columns."""
    if parents.server.is_mariadb or not (
        key.parent_columns or key.parent == child.name or parents.find(key.parent) is not None
    ):
        return
    for column in child.definition.columns:
        is_virtual = column.is_generated and not column.is_stored
        if is_virtual and column.name.lower() in lowered(key.columns):
            raise PredictedError(refusal(3733, shown, column.name))


def _look_at_reference(
    key: ForeignKey, shown: str, child: Table, parents: Parents, *, is_altered: bool
) -> None:
    """Raise what is wrong with a foreign key, `shown` as MySQL calls it.

    In MariaDB it is the engine that says it, with one error for all.
    """
    server = parents.server
    if key.parent_columns and len(key.parent_columns) != len(key.columns):
        raise PredictedError(refusal(1239, key.name or "foreign key without name"))
    _look_at_virtual(key, shown, child, parents)
    generic = refusal(1005, child.name.database, child.name.table)
    error = _look_at_child(key, shown, child)
    if error is not None:
        raise PredictedError(generic if server.is_mariadb else error)
    parent = child if key.parent == child.name else parents.find(key.parent)
    if parent is not None and parent.partitioning:
        return
    if parent is None or parent.engine != "INNODB":
        error = refusal(1824, key.parent.table)
        if not key.parent_columns and not server.is_mariadb:
            error = refusal(1239, key.name or "foreign key without name")
        elif not parents.checks:
            return
        elif server.is_mariadb:
            error = generic
        raise PredictedError(replace(error, why=(Why(what=key.parent.plain),)))
    error = _mismatch(key, shown, child, parent, parents)
    if error is None:
        return
    if server.is_mariadb and is_altered and not parents.checks:
        generic = refusal(1822, key.name, parent.name.table)
    raise PredictedError(generic if server.is_mariadb else error)


def _look_at_child(key: ForeignKey, shown: str, child: Table) -> Refusal | None:
    """Return MySQL's error for a table that cannot have a foreign key; None if it can."""
    if child.is_temporary:
        return refusal(1215)
    if "SET NULL" not in (key.on_delete, key.on_update):
        return None
    columns = [one for one in _columns_of(child, key.columns) if one is not None]
    fixed = next((one for one in columns if not one.is_nullable), None)
    return None if fixed is None else refusal(1830, fixed.name, shown)


def _mismatch(
    key: ForeignKey, shown: str, child: Table, parent: Table, parents: Parents
) -> Refusal | None:
    """Return MySQL's error for columns that do not fit those of the parent; None if they do."""
    names = key.parent_columns or next(
        (one.columns for one in parent.keys if one.is_primary), key.columns
    )
    pairs = zip(_columns_of(child, key.columns), _columns_of(parent, names), names, strict=False)
    for own, other, name in pairs:
        if other is None:
            return refusal(3734, name, shown, parent.name.table)
        if own is not None and _differ(own, other):
            return refusal(3780, own.name, other.name, shown)
    wanted = [name.lower() for name in names]
    must_be_unique = parents.must_be_unique and parents.server.has(Fact.UNIQUE_PARENT_KEYS)
    width = None if must_be_unique else len(wanted)
    if any(
        [*lowered(one.columns[:width])] == wanted and (one.is_unique or not must_be_unique)
        for one in parent.keys
    ):
        return None
    return refusal(6125 if must_be_unique else 1822, shown, parent.name.table)


def _columns_of(table: Table, names: Iterable[str]) -> list[TableColumn | None]:
    columns = {column.name.lower(): column for column in table.definition.columns}
    return [columns.get(name.lower()) for name in names]


def _differ(one: TableColumn, other: TableColumn) -> bool:
    """Return True if two columns surely have types that a foreign key cannot join: integers."""
    types = [_INTEGERS.get(column.type_name) for column in (one, other)]
    if None in types:
        return False
    return types[0] != types[1] or one.is_unsigned != other.is_unsigned


_INTEGERS: Final = {
    "TINYINT": 1,
    "BOOL": 1,
    "BOOLEAN": 1,
    "INT1": 1,
    "SMALLINT": 2,
    "INT2": 2,
    "MEDIUMINT": 3,
    "INT3": 3,
    "MIDDLEINT": 3,
    "INT": 4,
    "INTEGER": 4,
    "INT4": 4,
    "BIGINT": 8,
    "INT8": 8,
    "SERIAL": 8,
}
"""Bytes of the types of integers."""
