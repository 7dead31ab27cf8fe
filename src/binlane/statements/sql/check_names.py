"""The names of CHECK constraints: those that are written, and those that the servers make up.

MariaDB's are those of the table, as a CHECK of a column is called as its column is. MySQL's are
those of columns too, and no two of a database are the same.

Source: measured on MariaDB 10.11.19 and MySQL 9.7.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from binlane.statements.sql.table_definitions import dropped_columns
from binlane.statements.sql.tree.definitions import AlterAction, CheckDefinition, DefinedColumn
from binlane.statements.sql.tree.expressions import Name, Node, walk


@dataclass(frozen=True, slots=True)
class CheckName:
    """A CHECK of a table.

    Attributes:
        name: As written, or as the server makes it up.
        columns: Those that its condition names, in small letters.
    """

    name: str
    columns: frozenset[str] = frozenset()


def named_checks(
    elements: Iterable[Node],
    table: str,
    kept: Sequence[CheckName] = (),
    *,
    is_mariadb: bool,
) -> tuple[CheckName, ...]:
    """The checks of new columns and of a table, in the order of the text.

    Args:
        elements: Columns and checks in the order of the text.
        table: Its name, of which MySQL makes those of checks.
        kept: The checks that the table has already.
        is_mariadb: Which server it is that makes names up.
    """
    checks = list(_checks(elements, of_columns=not is_mariadb))
    number = 0 if is_mariadb else max((_number(one.name, table) or 0 for one in kept), default=0)
    written = {check.name.lower() for check in checks} | {one.name.lower() for one in kept}
    made = []
    for check in checks:
        name = check.name
        if not name:
            number += 1
            while is_mariadb and f"constraint_{number}" in written:
                number += 1
            name = f"CONSTRAINT_{number}" if is_mariadb else f"{table}_chk_{number}"
        named = (node for node in walk(check.condition) if isinstance(node, Name))
        made.append(CheckName(name, frozenset(node.parts[-1].lower() for node in named)))
    return tuple(made)


def altered_checks(
    checks: Sequence[CheckName],
    actions: Sequence[AlterAction],
    table: str,
    *,
    is_mariadb: bool,
) -> tuple[tuple[CheckName, ...], tuple[CheckName, ...]]:
    """The checks that ALTER TABLE leaves, and those that it adds.

    Args:
        checks: Those that the table had before it.
        actions: All, in the order of the text.
        table: The name that the table had before it.
        is_mariadb: Which server it is that makes names up.
    """
    gone = {one.name.lower() for one in actions if one.kind in ("DROP CONSTRAINT", "DROP CHECK")}
    lost = dropped_columns(actions)
    kept = tuple(
        one
        for one in checks
        if one.name.lower() not in gone and not (one.columns and one.columns <= lost)
    )
    there = {one.name.lower() for one in kept}
    elements: list[Node] = []
    for action in actions:
        elements += action.columns
        elements += (
            check
            for check in (*action.checks, *filter(None, (action.check,)))
            if not (check.if_not_exists and check.name.lower() in there)
        )
    return kept, named_checks(elements, table, kept, is_mariadb=is_mariadb)


def renamed_checks(checks: Iterable[CheckName], old: str, new: str) -> tuple[CheckName, ...]:
    """The checks of a table that MySQL renames: made up names follow, also where they are written."""
    return tuple(
        one
        if (number := _number(one.name, old)) is None
        else replace(one, name=f"{new}_chk_{number}")
        for one in checks
    )


def copied_checks(checks: Sequence[CheckName], new: str) -> tuple[CheckName, ...]:
    """The checks of a table that MySQL makes like another one: all names are made up."""
    return tuple(replace(one, name=f"{new}_chk_{at}") for at, one in enumerate(checks, 1))


def _checks(elements: Iterable[Node], *, of_columns: bool) -> Iterator[CheckDefinition]:
    for one in elements:
        if isinstance(one, CheckDefinition):
            yield one
        elif isinstance(one, DefinedColumn) and of_columns:
            yield from one.checks


def _number(name: str, table: str) -> int | None:
    """The number in a name that MySQL may have made up; None of another one."""
    begin = f"{table}_chk_".lower()
    digits = name[len(begin) :]
    is_made_up = name.lower().startswith(begin) and digits.isdecimal()
    return int(digits) if is_made_up else None
