"""Errors of generated columns and of defaults that are expressions.

Source: MariaDB 10.11 and 11.8, sql/sql_table.cc `mysql_prepare_alter_table`, sql/item.cc
`Item_field::check_field_expression_processor`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from binlane.statements.policy.refusals import Refusal, refusal
from binlane.statements.predicted_errors.column_expressions import plain_names
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import Table
from binlane.statements.sql.table_definitions import (
    TableColumn,
    dropped_columns,
    names_in,
    renamed_columns,
)
from binlane.statements.sql.tree.definitions import AlterTable, CreateTable, DefinedColumn

_CHANGES: Final = frozenset(("MODIFY COLUMN", "CHANGE COLUMN"))
_KEY_DROPS: Final = frozenset(("DROP KEY", "DROP CONSTRAINT"))
_STORED: Final = frozenset(("STORED", "PERSISTENT"))


def changed_otherwise(facts: StatementFacts, before: Table | None) -> Refusal | None:
    """1907: a column that becomes VIRTUAL, or is that no more; None if there is none.

    Args:
        facts: Facts of an ALTER TABLE statement.
        before: The table as it was.
    """
    tree = facts.tree
    if not isinstance(tree, AlterTable) or before is None:
        return None
    known = {column.name.lower(): column for column in before.definition.columns}
    for action in tree.actions:
        for column in action.columns if action.kind in _CHANGES else ():
            old = known.get((action.name or column.name).lower())
            if old is None or column.storage.startswith("ROW"):
                continue
            is_virtual = column.generated is not None and column.storage not in _STORED
            was_virtual = old.generated is not None and not old.is_stored and not old.row_time
            if is_virtual != was_virtual:
                message = "This is not yet supported for generated columns"
                symbol = "ER_UNSUPPORTED_ACTION_ON_GENERATED_COLUMN"
                return Refusal(1907, "HY000", symbol, message)
    return None


def uninitialized(facts: StatementFacts, child: Table) -> Refusal | None:
    """4029: an expression of a column that needs one which is not computed before it.

    Args:
        facts: Of CREATE TABLE or ALTER TABLE.
        child: The table that it makes.
    """
    places = {column.name.lower(): at for at, column in enumerate(child.definition.columns)}
    new = {column.name.lower(): column for column in _new_columns(facts)}
    for column in new.values():
        own = places.get(column.name.lower())
        if own is None:
            continue
        for value in (column.generated, column.default):
            for name in () if value is None else plain_names(value):
                at = places.get(name.parts[0].lower())
                if at is None:
                    continue
                other = child.definition.columns[at]
                if _is_later(other, at, own, is_generated=value is column.generated):
                    return _uninitialized(column.name, other.name)
    # What stays as it is may stand elsewhere now.
    for own, kept in enumerate(child.definition.columns):
        for one in () if kept.name.lower() in new else _needs_of(kept):
            at = places.get(one, own)
            other = child.definition.columns[at]
            is_generated = kept.generated is not None
            if (
                at != own
                and _needs_of(other)
                and _is_later(other, at, own, is_generated=is_generated)
            ):
                return _uninitialized(kept.name, other.name)
    return None


def _uninitialized(column: str, other: str) -> Refusal:
    message = f"Expression for field `{column}` is referring to uninitialized field `{other}`"
    return Refusal(4029, "01000", "ER_EXPRESSION_REFERS_TO_UNINIT_FIELD", message)


def unversioned(facts: StatementFacts, before: Table | None) -> Refusal | None:
    """MariaDB's error of DROP SYSTEM VERSIONING and AS ROW START where there is none, before all others.

    Args:
        facts: Those of an ALTER TABLE.
        before: The table as it was, with its options.
    """
    tree = facts.tree
    if not isinstance(tree, AlterTable) or before is None or not before.is_complete:
        return None
    kinds = {action.kind for action in tree.actions}
    has_row_times = "ADD SYSTEM VERSIONING" not in kinds and any(
        column.storage.startswith("ROW") for action in tree.actions for column in action.columns
    )
    is_asked = "DROP SYSTEM VERSIONING" in kinds or has_row_times
    is_versioned = before.definition.is_versioned or any(
        column.row_time for column in before.definition.columns
    )
    if not is_asked or is_versioned:
        return None
    message = f"Table `{before.name.table}` is not system-versioned"
    return Refusal(4124, "HY000", "ER_VERS_NOT_VERSIONED", message)


def needed(facts: StatementFacts, before: Table | None) -> Refusal | None:
    """MySQL's error of a column that goes or is renamed while an expression needs it.

    Source: measured on MySQL 9.7.4.

    Args:
        facts: Those of an ALTER TABLE.
        before: The table as it was, with its keys.
    """
    tree = facts.tree
    if not isinstance(tree, AlterTable) or before is None:
        return None
    dropped = dropped_columns(tree.actions)
    gone = dropped | {
        old for old, new in renamed_columns(tree.actions).items() if old != new.lower()
    }
    if not gone:
        return None
    changed = {one.name.lower() for one in tree.actions if one.kind in _CHANGES} | dropped
    keys = {one.name.lower() for one in tree.actions if one.kind in _KEY_DROPS}
    needs = [
        *(
            (3108 if column.generated is not None else 3766, _needs_of(column))
            for column in before.definition.columns
            if column.name.lower() not in changed
        ),
        *(
            (3837, _names(part, ()))
            for key in before.keys
            if key.name.lower() not in keys
            for part, column in zip(key.parts, key.columns, strict=False)
            if not column
        ),
    ]
    for column in before.definition.columns:
        name = column.name.lower()
        for errno, names in needs if name in gone else ():
            if name in names:
                return refusal(errno, column.name, before.name.table)
    return None


def _needs_of(column: TableColumn) -> frozenset[str]:
    """The columns, in small letters, that the value of a column is computed of."""
    if column.generated is not None:
        return _names(column.generated, column.generated_modes)
    is_computed = column.default is not None and column.default_form in ("call", "expression")
    return _names(column.default or "", ()) if is_computed else frozenset()


def _names(text: str, modes: Sequence[str]) -> frozenset[str]:
    return frozenset(name.parts[-1].lower() for name in names_in(text, modes))


def _is_later(other: TableColumn, at: int, own: int, *, is_generated: bool) -> bool:
    """Return True if a column has no value yet when an expression of another one is computed."""
    has_default = other.default_form in ("call", "expression")
    if other.generated is None and not has_default:
        return False
    is_other_generated = other.generated is not None
    if at == own or (is_other_generated and not is_generated):
        return True
    return is_other_generated == is_generated and at >= own


def _new_columns(facts: StatementFacts) -> Iterator[DefinedColumn]:
    """The columns that a statement defines."""
    tree = facts.tree
    if isinstance(tree, CreateTable):
        yield from (one for one in tree.elements if isinstance(one, DefinedColumn))
    elif isinstance(tree, AlterTable):
        for action in tree.actions:
            yield from action.columns
