"""Names of databases and tables, and how SQL quotes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ACCOUNT_DATABASE: Final = "mysql"
"""The database that account statements change: what the `system` database is in seed 000."""


def quote(identifier: str) -> str:
    """Quote an identifier with backticks, as the servers print it."""
    return "`" + identifier.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A table (or view, or sequence) with its database.

    Names are compared as they are, as servers do with `lower_case_table_names=0`.
    """

    database: str
    table: str

    def __str__(self) -> str:
        return f"{quote(self.database)}.{quote(self.table)}"

    @property
    def plain(self) -> str:
        """The name without quotes, `shop.orders`, for paths and columns."""
        return f"{self.database}.{self.table}"
