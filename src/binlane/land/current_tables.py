"""Current tables: the rows of each table as they are, kept by changes and by statements.

What the log does not tell is never guessed: such a table is given up, which the journal remembers,
so that no later rows make a table that looks right and is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import pyarrow as pa

from binlane.land.journal import Journal
from binlane.land.table_changes import (
    Abandon,
    Add,
    Create,
    CreateLike,
    Drop,
    DropDatabase,
    Move,
    Remove,
    Rename,
    RenameTo,
    Step,
    Truncate,
    tables_of,
)
from binlane.land.tables.store import TableStore
from binlane.land.work import Rows
from binlane.names import TableName


class CurrentTables:
    """The current tables of a target.

    Attributes:
        notes: What the reader of the tables must know.
    """

    def __init__(self, tables: TableStore, journal: Journal) -> None:
        self._tables = tables
        self._journal = journal
        self.notes: list[str] = []
        for table in self.names():
            if table.plain in self.abandoned:
                tables.drop(table)  # a crash came between giving it up and dropping it

    @property
    def abandoned(self) -> dict[str, str]:
        """Tables that were given up, and why."""
        return self._journal.state.abandoned

    def names(self) -> list[TableName]:
        """The tables there are."""
        return list(self._tables.names())

    # Statements -----------------------------------------------------------------------------------

    def concerns(self, step: Step) -> bool:
        """Whether a step is about a table that is kept or was given up."""
        if isinstance(step, Abandon | Create | CreateLike):
            return True
        if isinstance(step, DropDatabase):
            return any(table.database == step.database for table in self.names())
        return any(
            table.plain in self.abandoned or self._tables.exists(table) for table in tables_of(step)
        )

    def do(self, step: Step) -> None:
        """Do one step; done again, or about tables that are not kept, it changes nothing."""
        if isinstance(step, DropDatabase):
            self._drop_database(step.database)
        elif isinstance(step, Drop | Truncate):
            change = self._tables.drop if isinstance(step, Drop) else self._tables.truncate
            change(step.table)
            self.abandoned.pop(step.table.plain, None)
        elif isinstance(step, Create | CreateLike):
            self._create_empty(step)
        elif isinstance(step, Rename):
            if step.old.plain in self.abandoned:
                self.abandoned[step.new.plain] = self.abandoned.pop(step.old.plain)
            self._tables.rename(step.old, step.new)
        elif isinstance(step, Abandon):
            self._abandon(step.table, step.reason)
        elif self._tables.exists(step.table):
            self._change_columns(step)

    def _create_empty(self, step: Create | CreateLike) -> None:
        if self._tables.exists(step.table) or step.table.plain in self.abandoned:
            return
        if isinstance(step, Create):
            columns = list(step.schema)
        elif self._tables.exists(step.like):
            own = self._own(step.like)
            columns = [each for each in self._tables.schema(step.like) if each.name in own]
        else:
            columns = []
        if columns:  # else it comes with its first rows
            self._tables.create(step.table, pa.schema(columns))

    def _drop_database(self, database: str) -> None:
        for table in self.names():
            if table.database == database:
                self._tables.drop(table)
        for name in [name for name in self.abandoned if name.startswith(f"{database}.")]:
            del self.abandoned[name]

    def _abandon(self, table: TableName, reason: str) -> None:
        self.abandoned[table.plain] = reason
        self._journal.save()
        self._tables.drop(table)

    def _change_columns(self, step: Add | Remove | Move | RenameTo) -> None:
        rows = self._tables.read(step.table)
        names = rows.column_names
        own = [name for name in names if name not in self._tables.added.names]
        if own and own[0].startswith("@"):
            if not isinstance(step, RenameTo):
                self._abandon(
                    step.table,
                    "its columns moved, and the log has no column names "
                    "(set binlog_row_metadata=FULL on the source)",
                )
        else:
            changed = _changed(step, rows, own)
            if changed is not None:
                self._tables.replace(step.table, changed)

    # Rows -----------------------------------------------------------------------------------------

    def merge(self, table: TableName, pieces: Sequence[Rows]) -> None:
        """Apply runs, which have what is not applied already, in log order.

        Raises:
            StoreError: If the table cannot be written.
        """
        for _, alike in groupby(pieces, key=lambda rows: (rows.columns, rows.key, rows.is_full)):
            if table.plain in self.abandoned:
                return
            self._merge(table, list(alike))

    def _merge(self, table: TableName, pieces: Sequence[Rows]) -> None:
        last = pieces[-1]
        if not last.is_full:
            self._abandon(
                table,
                "row images lack columns: binlog_row_image is not FULL on the source, or an UPDATE "
                "left out generated columns",
            )
            return
        runs = [rows.run for rows in pieces if rows.run is not None]
        if not runs:
            return
        columns = self._named(table, last.columns)
        if self._tables.exists(table) and not self._is_reconciled(table, columns):
            return
        missing = self._tables.merge(table, runs, last.key, columns, last.last_seq)
        if missing:
            self.notes.append(
                f"{table.plain}: {missing} rows were removed that the log had not added; "
                "it begins behind them"
            )

    def _named(self, table: TableName, columns: pa.Schema) -> pa.Schema:
        """Columns with the names that CREATE TABLE gave, where the rows have numbers only."""
        if not columns.names or columns.names[0] != "@1" or not self._tables.exists(table):
            return columns
        named = self._own(table)
        if len(named) != len(columns):
            return columns
        fields = zip(columns, named, strict=True)
        return pa.schema([field.with_name(name) for field, name in fields])

    def _own(self, table: TableName) -> list[str]:
        """Names of the source's columns."""
        added = set(self._tables.added.names)
        return [name for name in self._tables.schema(table).names if name not in added]

    def _is_reconciled(self, table: TableName, columns: pa.Schema) -> bool:
        """Bring a table to the columns that its rows have now.

        ALTER TABLE was followed before; what still differs are types, or columns of a table whose
        ALTER TABLE the log does not hold.

        Returns:
            False if that is not possible; the table is then given up.
        """
        own = self._own(table)
        if set(own) != set(columns.names) and self._tables.has_rows(table):
            self._abandon(
                table,
                f"its columns changed from {', '.join(own)} to {', '.join(columns.names)}, "
                "and the log does not tell how",
            )
            return False
        why_not = self._tables.conform(table, columns)
        if why_not:
            self._abandon(table, f"its values do not fit its new column types: {why_not}")
        return not why_not


def _changed(
    step: Add | Remove | Move | RenameTo, rows: pa.Table, own: list[str]
) -> pa.Table | None:
    """Rows with their columns changed; None where that is done already."""
    names = rows.column_names
    if isinstance(step, Add):
        if step.column.name in own:
            return None
        place = 0 if step.column.is_first else _behind(step.column.after, own)
        values = pa.array([step.value] * rows.num_rows, step.type)
        return rows.add_column(place, step.column.name, values)
    if isinstance(step, RenameTo):
        renamed = [step.new if name == step.old else name for name in names]
        return rows.rename_columns(renamed) if step.old in own else None
    if step.column not in own:
        return None
    rest = rows.drop_columns([step.column])
    if isinstance(step, Remove):
        return rest
    own.remove(step.column)
    place = 0 if step.after is None else _behind(step.after, own)
    return rest.add_column(place, step.column, rows.column(step.column))


def _behind(column: str | None, own: list[str]) -> int:
    """Where a column goes that comes behind another one, or at the end."""
    return own.index(column) + 1 if column in own else len(own)
