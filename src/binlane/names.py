"""Names of databases and tables, and how SQL quotes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

ACCOUNT_DATABASE: Final = "mysql"
"""The database that account statements change: what the `system` database is in seed 000."""


def quote(identifier: str) -> str:
    """Quote an identifier with backticks, as the servers print it."""
    return "`" + identifier.replace("`", "``") + "`"


def folded(name: str) -> str:
    """A name in lower case, a character at a time, as servers fold it that do not tell case apart.

    Python's own `lower` also looks at what stands around a letter, and may give two for one.
    """
    if name.isascii():
        return name.lower()
    return "".join(character.lower()[0] for character in name)


class TableName(NamedTuple):
    """A table (or view, or sequence) with its database.

    Names are compared as they are, as servers do with `lower_case_table_names=0`; who does not tell
    case apart compares what is `folded`.
    """

    database: str
    table: str

    def __str__(self) -> str:
        return f"{quote(self.database)}.{quote(self.table)}"

    @property
    def plain(self) -> str:
        """The name without quotes, `shop.orders`, for paths and columns."""
        return f"{self.database}.{self.table}"

    @property
    def folded(self) -> TableName:
        """The name in lower case."""
        return TableName(folded(self.database), folded(self.table))


def nearest(wanted: TableName, there: Iterable[TableName]) -> TableName | None:
    """The table that somebody may have meant: of a name like it, best in the same database."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for an error

    names: dict[str, TableName] = {}
    for table in sorted(there, key=lambda each: (each.database != wanted.database, each)):
        names.setdefault(table.table, table)
    found = get_close_matches(wanted.table, names, n=1)
    return names[found[0]] if found else None
