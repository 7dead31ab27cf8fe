"""The columns of a table behind an ALTER TABLE, with their values, for all of its rows or some."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa

from binlane.tables.landing.column_changes import AddColumn, ModifyColumn
from binlane.tables.landing.column_values import UnknownValuesError
from binlane.tables.landing.generated_columns import nulls, with_computed
from binlane.tables.landing.steps import Add, Modify, Remove, RenameTo, Reshape

Named = tuple[str, Any]
"""A column: its name, and its values as a chunked array."""


def reshaped(
    rows: pa.Table, step: Reshape, added: Collection[str], *, keeps_dropped: bool = False
) -> pa.Table:
    """Rows with their columns as they are behind a statement.

    Args:
        rows: Any of the table's, with its columns in their order.
        step: The step with the changes of the columns.
        added: Names of columns that are landing's own; they stay, behind the others.
        keeps_dropped: Whether columns stay that are dropped, as those of a history do; one makes
            way for another column of its name.

    Raises:
        NotToldError: If the log does not tell the values afterwards.
    """
    own = [name for name in rows.column_names if name not in added]
    names = own
    if own and own[0].startswith("@"):
        if len(step.names) != len(own):
            raise UnknownValuesError(
                "its columns changed, and the log has no column names "
                "(set binlog_row_metadata=FULL on the source)"
            )
        names = list(step.names)
    if keeps_dropped:
        aside = _aside(names, step)
        names = [aside.get(name, name) for name in names]
        step = replace(
            step, changes=tuple(each for each in step.changes if not isinstance(each, Remove))
        )
    columns = [(name, rows.column(old)) for name, old in zip(names, own, strict=True)]
    made = _rearranged(columns, step, rows.num_rows)
    made += [(name, rows.column(name)) for name in rows.column_names if name in added]
    found = pa.table([values for _, values in made], [name for name, _ in made])
    defined = {column.name.lower(): column for column in step.columns}
    return with_computed(found, defined, step.computed, step.flavor, hides_dates=True)


def set_aside(name: str, names: Collection[str]) -> str:
    """Another name for a column of which only earlier versions of rows are kept."""
    taken = {each.lower() for each in names}
    return next(f"{name}_{n}" for n in count(1) if f"{name}_{n}".lower() not in taken)


def _aside(names: Sequence[str], step: Reshape) -> dict[str, str]:
    """New names of columns that the table has no more, and gets others of the same name for."""
    renamed = {each.old.lower() for each in step.changes if isinstance(each, RenameTo)}
    gone = renamed | {each.column.lower() for each in step.changes if isinstance(each, Remove)}
    there = {name.lower() for name in step.names}
    come = {each.new.lower() for each in step.changes if isinstance(each, RenameTo)}
    for each in step.changes:
        if isinstance(each, Add):
            name = each.column.name.lower()
            # The server has taken the statement, which tells as much as the columns' names.
            stays = name in there - gone if there else each.column.may_exist
            come |= set() if stays else {name}
    found: dict[str, str] = {}
    for own in names:
        if own.lower() in come - renamed:
            found[own] = set_aside(own, [*names, *found.values()])
    return found


def _rearranged(columns: Sequence[Named], step: Reshape, count: int) -> list[Named]:
    """First what stays in place, then what moves or comes.

    Source: MariaDB 10.11 sql/sql_table.cc, mysql_prepare_alter_table.
    """
    changes = step.changes
    dropped = {each.column.lower() for each in changes if isinstance(each, Remove)}
    renamed = {each.old.lower(): each.new for each in changes if isinstance(each, RenameTo)}
    modified = {each.column.old_name.lower(): each for each in changes if isinstance(each, Modify)}
    made: list[Named] = []
    moved: dict[str, Any] = {}
    for name, values in columns:
        key = name.lower()
        if key in dropped:
            continue
        change = modified.get(key)
        if change is not None:
            if change.column.name.lower() in step.computed:
                found = nulls(count, change.conversion.type)
            else:
                found = _converted(name, values, change)
            if _moves(change.column):
                moved[change.column.name.lower()] = found
            else:
                made.append((change.column.name, found))
        else:
            made.append((renamed.get(key, name), values))
    for each in changes:
        if isinstance(each, Add) and _find(made, each.column.name) is None:
            filled = pa.chunked_array([pa.array([each.value] * count, each.type)])
            _insert(made, (each.column.name, filled), each.column)
        elif isinstance(each, Modify) and each.column.name.lower() in moved:
            _insert(made, (each.column.name, moved[each.column.name.lower()]), each.column)
    return made


def _converted(name: str, values: Any, change: Modify) -> Any:
    try:
        return change.conversion.apply(values)
    except UnknownValuesError as error:
        raise UnknownValuesError(f"column {name}: {error}") from None


def _moves(change: ModifyColumn) -> bool:
    return change.is_first or change.after is not None


def _insert(columns: list[Named], column: Named, change: AddColumn | ModifyColumn) -> None:
    place = None if change.after is None else _find(columns, change.after)
    if change.is_first:
        columns.insert(0, column)
    elif place is None:
        columns.append(column)
    else:
        columns.insert(place + 1, column)


def _find(columns: Sequence[Named], name: str) -> int | None:
    """Return the index of a column, or None; the servers compare column names without regard to case."""
    lower = name.lower()
    return next((i for i, (each, _) in enumerate(columns) if each.lower() == lower), None)
