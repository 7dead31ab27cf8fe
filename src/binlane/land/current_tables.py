"""Current tables: the rows of each table as they are, kept by changes and by statements.

What the log does not tell is never guessed: such a table is given up, which the journal remembers,
so that no later rows make a table that looks right and is not.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.columnar.table_schema import SEQUENCE_COLUMN
from binlane.columnar.unify import conform_table
from binlane.land.column_conversions import NotToldError
from binlane.land.delta_tables import DeltaTables
from binlane.land.journal import Journal
from binlane.land.net_changes import GONE, count_rows
from binlane.land.reshaping import reshaped
from binlane.land.steps import (
    Abandon,
    AbandonAll,
    Create,
    CreateLike,
    Drop,
    DropDatabase,
    Rename,
    Reshape,
    Step,
    Truncate,
    tables_of,
)
from binlane.land.table_files import read_file
from binlane.land.work import Rows
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
        given_up: Tables that were given up by this landing.
    """

    def __init__(self, tables: DeltaTables, journal: Journal) -> None:
        self._tables = tables
        self._journal = journal
        self.notes: list[str] = []
        self.given_up: list[TableName] = []
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
        if isinstance(step, Abandon | AbandonAll | Create | CreateLike):
            return True
        if isinstance(step, DropDatabase):
            return any(table.database == step.database for table in self.names())
        return any(
            table.plain in self.abandoned or self._tables.exists(table) for table in tables_of(step)
        )

    def do(self, step: Step, seq: int) -> None:
        """Do one step; done again, or about tables that are not kept, it changes nothing.

        Args:
            step: Of a statement before which all rows are applied.
            seq: `_seq` of the statement.
        """
        if isinstance(step, DropDatabase):
            self._drop_database(step.database)
        elif isinstance(step, AbandonAll):
            for table in self.names():
                if step.database in {None, table.database}:
                    self.give_up(table, step.reason)
        elif isinstance(step, Abandon):
            self.give_up(step.table, step.reason)
        elif isinstance(step, Rename):
            self._rename(step)
        else:
            self._do_to_table(step, seq)

    def _do_to_table(self, step: Drop | Truncate | Create | CreateLike | Reshape, seq: int) -> None:
        if isinstance(step, Drop | Truncate):
            change = self._tables.drop if isinstance(step, Drop) else self._tables.truncate
            change(step.table)
            self.abandoned.pop(step.table.plain, None)
            self._journal.state.partial.pop(step.table.plain, None)
        elif isinstance(step, Create | CreateLike):
            self._create_empty(step)
        elif self._tables.exists(step.table) and self._tables.applied(step.table) < seq:
            self._reshape(step, seq)

    def _rename(self, step: Rename) -> None:
        for known in (self.abandoned, self._journal.state.partial):
            known.pop(step.new.plain, None)
            if step.old.plain in known:
                known[step.new.plain] = known.pop(step.old.plain)
        self._tables.rename(step.old, step.new)

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
        for known in (self.abandoned, self._journal.state.partial):
            for name in [name for name in known if name.startswith(f"{database}.")]:
                del known[name]

    def give_up(self, table: TableName, reason: str) -> None:
        """Keep a table no longer, since what is in it cannot be known any more."""
        if table.plain not in self.abandoned:
            self.given_up.append(table)
        self.abandoned[table.plain] = reason
        self._journal.state.partial.pop(table.plain, None)
        self._journal.save()
        self._tables.drop(table)

    def _reshape(self, step: Reshape, seq: int) -> None:
        rows = self._tables.read(step.table)
        try:
            changed = reshaped(rows, step, OWN_COLUMNS)
        except NotToldError as error:
            self.give_up(step.table, str(error))
        else:
            self._tables.replace(step.table, changed, seq)

    # Rows -----------------------------------------------------------------------------------------

    def merge(self, rows: Rows, *, is_told: bool) -> None:
        """Apply a run, which has what is not applied already.

        Args:
            rows: Of one table.
            is_told: Whether the log told of the table's beginning.

        Raises:
            StoreError: If the table cannot be written.
        """
        table = rows.table
        if table.plain in self.abandoned:
            return
        if not rows.is_full:
            self.give_up(
                table,
                "row images lack columns: binlog_row_image is not FULL on the source, or an UPDATE "
                "left out generated columns",
            )
            return
        if rows.run is None:
            return
        if any(rows.run.stats.get("nullCount", {}).get(name) for name in rows.key):
            self.give_up(table, "a date in its primary key is zero or partial, as no date here is")
            return
        run = self._named(table, read_file(rows.run.path), rows.columns)
        own = run.column_names[: len(rows.columns)]
        key = list(rows.key)  # tables whose columns have no names have none
        if not self._tables.exists(table):
            if not is_told:
                self._journal.state.partial[table.plain] = (
                    "rows from before the log's beginning are not in it"
                )
                self._journal.save()
            self._create(table, run, key, own, rows.last_seq)
        elif self._is_reconciled(table, run.select([*own, *OWN_COLUMNS]).schema):
            if key:
                self._tables.merge(table, run, key, rows.last_seq)
            else:
                counts = self._counted(table, self._tables.read(table), run, own)
                self._tables.replace(table, counts, rows.last_seq)

    def _named(self, table: TableName, run: pa.Table, columns: pa.Schema) -> pa.Table:
        """A run with the names that CREATE TABLE gave, where the rows have numbers only."""
        if not columns.names or columns.names[0] != "@1" or not self._tables.exists(table):
            return run
        named = [name for name in self._tables.schema(table).names if name not in OWN_COLUMNS]
        if len(named) != len(columns):
            return run
        return run.rename_columns([*named, *run.column_names[len(named) :]])

    def _create(
        self, table: TableName, run: pa.Table, key: list[str], own: list[str], last: int
    ) -> None:
        if key:
            rows = run.filter(pc.invert(run.column(GONE))).drop_columns([GONE])
        else:
            rows = self._counted(table, None, run, own)
        self._tables.create(table, rows, last)

    def _counted(
        self, table: TableName, rows: pa.Table | None, run: pa.Table, own: list[str]
    ) -> pa.Table:
        """Without a key the rows are counted: all that there are, and all that come and go."""
        counts, missing = count_rows(rows, run, own)
        if missing:
            self.notes.append(
                f"{table.plain}: {missing} rows were removed that the log had not added; "
                "it begins behind them"
            )
        return counts

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
            self.give_up(
                table,
                f"its columns changed from {_names(known)} to {_names(schema)}, "
                "and the log does not tell how",
            )
            return False
        try:
            self._tables.replace(table, conform_table(rows, schema), None)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            self.give_up(table, f"its values do not fit its new column types: {error}")
            return False
        return True


def _names(schema: pa.Schema) -> str:
    return ", ".join(name for name in schema.names if name not in OWN_COLUMNS)
