"""The names of foreign keys that the servers make up.

Source: measured on MariaDB 10.11.19 and MySQL 9.7.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from binlane.statements.sql.schema import ForeignKey, made_up_number, made_up_reference


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
