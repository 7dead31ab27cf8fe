"""Current tables: the rows of each table as they are, kept by changes and by statements.

What the log does not tell is never guessed: such a table is given up, which the journal remembers,
so that no later rows make a table that looks right and is not.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.columnar.table_schema import (
    CHANGE_COLUMNS,
    SEQUENCE_COLUMN,
    has_full_images,
    primary_key_of,
)
from binlane.columnar.unify import conform_table
from binlane.land.delta_tables import DeltaTables
from binlane.land.journal import Journal
from binlane.land.log_items import behind, last_seq
from binlane.land.net_changes import GONE, count_rows, last_images
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
from binlane.names import TableName

OWN_COLUMNS: Final = ("_gtid", SEQUENCE_COLUMN)
"""What a current table has behind the source's columns: of the change that made each row."""
_OWN_TYPES: Final[list[tuple[str, pa.DataType]]] = [
    ("_gtid", pa.string()),
    (SEQUENCE_COLUMN, pa.int64()),
]


class CurrentTables:
    """The current tables of a target.

    Attributes:
        notes: What the reader of the tables must know.
    """

    def __init__(self, tables: DeltaTables, journal: Journal) -> None:
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
            columns = [
                each for each in self._tables.schema(step.like) if each.name not in OWN_COLUMNS
            ]
        else:
            columns = []
        if columns:  # else it comes with its first rows
            own = pa.schema(_OWN_TYPES)
            self._tables.create(step.table, pa.schema([*columns, *own]).empty_table(), 0)

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
        own = [name for name in names if name not in OWN_COLUMNS]
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
                self._tables.replace(step.table, changed, None)

    # Rows -----------------------------------------------------------------------------------------

    def merge(self, table: TableName, changes: pa.Table) -> None:
        """Apply changes of one shape, those left out that are applied already.

        Raises:
            StoreError: If the table cannot be written.
        """
        if table.plain in self.abandoned:
            return
        fresh = behind(changes, self._tables.applied(table))
        if not fresh.num_rows:
            return
        if not has_full_images(changes.schema):
            self._abandon(
                table,
                "row images lack columns: binlog_row_image is not FULL on the source, or an UPDATE "
                "left out generated columns",
            )
            return
        key = primary_key_of(changes.schema)  # tables whose columns have no names have none
        changes = self._named(table, changes)
        fresh = fresh.rename_columns(changes.column_names)
        others = {*CHANGE_COLUMNS.names, SEQUENCE_COLUMN}
        own = [name for name in changes.column_names if name not in others]
        last = last_seq(changes)
        fresh = fresh.select(["_op", *own, *OWN_COLUMNS]).replace_schema_metadata(None)
        if not self._tables.exists(table):
            self._create(table, fresh, key, own, last)
        elif self._is_reconciled(table, fresh.drop_columns(["_op"]).schema):
            if key:
                self._tables.merge(table, last_images(fresh, key), key, last)
            else:
                counted = self._counted(table, self._tables.read(table), fresh, own)
                self._tables.replace(table, counted, last)

    def _named(self, table: TableName, changes: pa.Table) -> pa.Table:
        """Changes with the names that CREATE TABLE gave, where the rows have numbers only."""
        first = len(CHANGE_COLUMNS) + 1
        numbered = changes.column_names[first:]
        if not numbered or numbered[0] != "@1" or not self._tables.exists(table):
            return changes
        named = [name for name in self._tables.schema(table).names if name not in OWN_COLUMNS]
        if len(named) != len(numbered):
            return changes
        return changes.rename_columns([*changes.column_names[:first], *named])

    def _create(
        self, table: TableName, fresh: pa.Table, key: list[str], own: list[str], last: int
    ) -> None:
        if key:
            images = last_images(fresh, key)
            rows = images.filter(pc.invert(images.column(GONE))).drop_columns([GONE])
        else:
            rows = self._counted(table, None, fresh, own)
        self._tables.create(table, rows, last)

    def _counted(
        self, table: TableName, rows: pa.Table | None, fresh: pa.Table, own: list[str]
    ) -> pa.Table:
        """Without a key the rows are counted: all that there are, and all that come and go."""
        counted, missing = count_rows(rows, fresh, own)
        if missing:
            self.notes.append(
                f"{table.plain}: {missing} rows were removed that the log had not added; "
                "it begins behind them"
            )
        return counted

    def _is_reconciled(self, table: TableName, schema: pa.Schema) -> bool:
        """Bring a table to the columns that its rows have now.

        ALTER TABLE was followed before; what still differs are types, or columns of a table whose
        ALTER TABLE the log does not hold.

        Returns:
            False if that is not possible; the table is then given up.
        """
        known = self._tables.schema(table)
        if known.equals(schema):
            return True
        rows = self._tables.read(table)
        if not rows.num_rows:
            self._tables.replace(table, schema.empty_table(), None)
            return True
        if set(known.names) != set(schema.names):
            self._abandon(
                table,
                f"its columns changed from {_names(known)} to {_names(schema)}, "
                "and the log does not tell how",
            )
            return False
        try:
            self._tables.replace(table, conform_table(rows, schema), None)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            self._abandon(table, f"its values do not fit its new column types: {error}")
            return False
        return True


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


def _names(schema: pa.Schema) -> str:
    return ", ".join(name for name in schema.names if name not in OWN_COLUMNS)
