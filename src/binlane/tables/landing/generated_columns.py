"""Generated columns: of which the log tells the values, and what the others are computed from.

MySQL logs them as they are. MariaDB computes a VIRTUAL column before it knows all that it hangs on
(a number of AUTO_INCREMENT, what a trigger sets) and logs that; from 11.8 on it leaves all generated
columns out of the images of UPDATE and DELETE. And no log tells what ALTER TABLE made of them in rows
that are there. So such values are computed here, by `expression_values`. A column whose expression
is not exact there is left out of the rows, and with that of the tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.evaluation.known_names import OwnText
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.statements.sql.parser.cursor import Stopped
from binlane.statements.sql.table_definitions import TableColumn, expression_of, names_in
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree.expressions import Expression
from binlane.tables.columnar.log_notes import Statement
from binlane.tables.columnar.table_schema import (
    ABSENT,
    CHANGE_NAMES,
    absent_columns,
    invalid_dates_of,
    primary_key_of,
    table_of,
)
from binlane.tables.landing.column_conversions import Conversion
from binlane.tables.landing.column_families import (
    family_of,
    first_number,
    has_all_of,
    integer_range,
)
from binlane.tables.landing.column_values import UnknownValuesError, Values
from binlane.tables.landing.expression_functions import (
    UNKNOWN_CHARSET,
    NotComputableError,
    Typed,
    of_column,
)
from binlane.tables.landing.expression_values import Computing

WHY_NOT: Final = b"why_not"
"""Key of a batch's metadata: why current tables cannot take it, beside columns that it lacks."""
Columns = Mapping[str, TableColumn]
"""Definitions of a table's columns, in table order, by their names in small letters."""

_STORABLE: Final = {
    "INTEGER": frozenset({"INTEGER", "DECIMAL", "DOUBLE", "TEXT"}),
    "DECIMAL": frozenset({"INTEGER", "DECIMAL", "DOUBLE", "TEXT"}),
    "DOUBLE": frozenset({"DOUBLE"}),
    "TEXT": frozenset({"TEXT"}),
    "DATE": frozenset({"DATE", "DATETIME"}),
    "DATETIME": frozenset({"DATETIME", "DATE"}),
}
"""Families of values that a column of a family can take without a session's settings."""


def flavor_of(gtid: str | None) -> Flavor | None:
    """The kind of the server that wrote a GTID; None without one."""
    if gtid is None:
        return None
    # Domain, server and number; MySQL's is a UUID and a number.
    return Flavor.MYSQL if ":" in gtid else Flavor.MARIADB


def generated_names(columns: Columns) -> list[str]:
    """The names of generated columns in small letters, behind those that they hang on."""
    found: dict[str, None] = {}
    open_names: set[str] = set()

    def visit(name: str) -> None:
        if name in found or name in open_names:
            return
        open_names.add(name)
        for base in sorted(_bases(columns[name])):
            if base in columns and is_computed(columns[base]):
                visit(base)
        found[name] = None

    for name, column in columns.items():
        if is_computed(column):
            visit(name)
    return list(found)


def is_computed(column: TableColumn) -> bool:
    """True if a column is computed from an expression."""
    return column.is_generated and not (column.generated or "ROW ").startswith("ROW ")


def dependent(columns: Columns, names: Iterable[str]) -> set[str]:
    """The generated columns that depend on some columns, those among them included.

    Args:
        columns: Definitions of the table's columns.
        names: Names of the columns, in small letters.
    """
    found = set(names)
    for name in generated_names(columns):
        if not found.isdisjoint(_bases(columns[name])):
            found.add(name)
    return found.intersection(generated_names(columns))


def shared(names: Sequence[str], others: Collection[str], generated: Collection[str]) -> list[str]:
    """Names of columns, without the generated ones that other rows do not have.

    Args:
        names: Names of the columns, in their order.
        others: Names of the columns of other rows of the table.
        generated: Names of the table's generated columns, in small letters.
    """
    return [name for name in names if name in others or name.lower() not in generated]


def missing_names(columns: Columns, names: Iterable[str]) -> tuple[str, ...]:
    """The names of generated columns that rows do not have.

    Args:
        columns: Definitions of the table's columns.
        names: Names of the columns that rows have.
    """
    own = {name.lower() for name in names}
    return tuple(columns[each].name for each in generated_names(columns) if each not in own)


def left_out(columns: Columns, schema: pa.Schema, flavor: Flavor | None) -> list[str]:
    """The names of the columns that rows of a table never have, since nothing tells their values.

    Args:
        columns: Definitions of the table's columns.
        schema: Schema of all the table's columns.
        flavor: The kind of server; None if not known.
    """
    if flavor is not Flavor.MARIADB:
        return []
    virtual = {name for name in generated_names(columns) if not columns[name].is_stored}
    kept = with_computed(schema.empty_table(), columns, virtual, flavor).column_names
    return [name for name in schema.names if name not in kept]


def with_computed(
    rows: pa.Table,
    columns: Columns,
    wanted: Collection[str],
    flavor: Flavor | None,
    *,
    hides_dates: bool = False,
) -> pa.Table:
    """Rows with the values of generated columns; a column is left out that is not computable.

    Args:
        rows: Rows with all columns that are to be computed; their other columns stay.
        columns: Definitions of the table's columns.
        wanted: Names of the columns to compute, in small letters.
        flavor: The kind of server; None if not known.
        hides_dates: Whether NULL may stand for a zero date.

    Raises:
        NotToldError: If a value cannot be known.
    """
    names = {name.lower(): name for name in rows.column_names}
    for key in generated_names(columns):
        if key not in wanted or key not in names:
            continue
        name = names[key]
        place = rows.column_names.index(name)
        kind = rows.schema.field(place).type
        values = Computed(columns, key, kind, flavor, hides_dates)
        try:
            values.of(rows.slice(0, 0))
        except NotComputableError:
            rows = rows.remove_column(place)
            continue
        try:
            rows = rows.set_column(place, name, values.of(rows))
        except (pa.ArrowInvalid, OverflowError, UnknownValuesError) as error:
            raise UnknownValuesError(
                f"the values of its generated column {name}: {error}"
            ) from None
    return rows


@dataclass(frozen=True, slots=True)
class Computed:
    """The computation of a generated column.

    Attributes:
        columns: Definitions of the table's columns.
        name: The generated column's name, in small letters.
        type: The Arrow type of the column's values in rows.
        hides_dates: Whether NULL may stand for a zero date.
    """

    columns: Columns
    name: str
    type: pa.DataType
    flavor: Flavor | None
    hides_dates: bool

    def of(self, rows: pa.Table) -> Values:
        """The column's values in some rows.

        Raises:
            NotComputableError: If the values cannot be computed, whatever the rows are.
            NotToldError: If a value cannot be known.
        """
        column = self.columns[self.name]
        tree, text = _parsed(column.generated or "", column.generated_modes)
        names = {name.lower(): name for name in rows.column_names}

        def value(key: str) -> Typed:
            if key not in names or key not in self.columns:
                raise NotComputableError(f"column {key}")
            values = pa.chunked_array([rows.column(names[key]).combine_chunks()])
            if self.hides_dates and pa.types.is_temporal(values.type):
                if self.columns[key].is_nullable:
                    raise NotComputableError("NULL may stand for a zero date")
                if values.null_count:
                    raise UnknownValuesError("NULL stands for a zero date")
            return of_column(self.columns[key], values)

        try:
            found = Computing(text, value, rows.num_rows).value(tree)
            return self._stored(found)
        except (pa.ArrowNotImplementedError, pa.ArrowKeyError) as error:
            raise NotComputableError(str(error)) from None
        except pa.ArrowInvalid as error:
            if rows.num_rows:
                raise
            raise NotComputableError(str(error)) from None

    def _stored(self, found: Typed) -> Values:
        """Values as the column holds them; what does not fit is cut to what does."""
        new = replace(self.columns[self.name], is_generated=False, generated=None, is_nullable=True)
        values: Any = found.values
        if found.is_null:
            return nulls(len(values), self.type)
        family = family_of(new)
        if family not in _STORABLE.get(found.family, ()) or (found.is_mixed and family == "TEXT"):
            raise NotComputableError(f"{found.family} in a column of type {new.type_name}")
        old = found.column
        if found.family == "TEXT":
            old = _text_column(old, new)
            if not has_all_of(new.charset, old.charset):
                raise NotComputableError("characters that become others")
        elif found.family == "INTEGER":
            if family == "INTEGER" and _is_within(values, *integer_range(new)):
                return values.cast(self.type)
            if not old.is_unsigned:
                values = values.cast(pa.int64())
        elif found.family == "DATETIME" and (first_number(new) or 0) < (first_number(old) or 0):
            raise NotComputableError("fractions of seconds that are rounded")
        return Conversion(
            old=old, new=new, type=self.type, is_strict=False, flavor=self.flavor
        ).apply(values)


def nulls(count: int, data_type: pa.DataType) -> Values:
    """NULL in so many rows."""
    kind: Any = data_type
    return pa.chunked_array([pa.nulls(count, kind)])


def _is_within(values: Values, low: int, high: int) -> bool:
    found: Any = pc.min_max(values).as_py()
    return found["min"] is None or (low <= found["min"] and found["max"] <= high)


def _text_column(found: TableColumn, new: TableColumn) -> TableColumn:
    """The column of a text: what has no character set of its own has that of where it goes."""
    charset = found.charset or new.charset
    return replace(found, charset=None if charset == UNKNOWN_CHARSET else charset)


@lru_cache(maxsize=1024)
def _parsed(text: str, modes: tuple[str, ...]) -> tuple[Expression, OwnText]:
    """The tree of an expression.

    Raises:
        NotComputableError: If it is not understood.
    """
    if "charset" in modes:
        raise NotComputableError("a text in another character set")
    try:
        tree, dialect = expression_of(text, modes)
        return tree, OwnText(text, dialect)
    except (SqlSyntaxError, Stopped, RecursionError) as error:
        raise NotComputableError(str(error)) from None


def _bases(column: TableColumn) -> set[str]:
    """The names in a column's expression, in small letters; all that it may mean."""
    names = names_in(column.generated or "", column.generated_modes)
    return {node.parts[-1].lower() for node in names}


# The rows of a log --------------------------------------------------------------------------------


class CompletedRows:
    """The rows of a range of a log, with what it does not tell of generated columns.

    Args:
        definitions: Objects of the log before the range; they are changed.
        added: Number of columns of a batch in front of the table's own.
    """

    def __init__(self, definitions: LoggedObjects, added: int = len(CHANGE_NAMES)) -> None:
        self._definitions = definitions
        self._added = added
        self._known: dict[TableName, Columns] = {}

    def follow(self, statement: Statement) -> None:
        """Go on behind a statement."""
        self._definitions.follow(statement)
        self._known.clear()

    def whole(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch with the values of its table's generated columns as the table has them.

        Columns that are not computable are left out where the log's values cannot be trusted. A
        value that cannot be known is NULL, and counts as lacking.
        """
        table = table_of(batch.schema)
        columns = self._known.get(table)
        if columns is None:
            columns = self._known[table] = self._definitions.defined_columns(table)
        own = batch.schema.names[self._added :]
        generated = generated_names(columns)
        if not generated or [name.lower() for name in own[: len(columns)]] != list(columns):
            return batch
        flavor = flavor_of(batch.column(batch.schema.names.index("_gtid"))[0].as_py())
        return _completed(batch, columns, flavor)


def _completed(batch: pa.RecordBatch, columns: Columns, flavor: Flavor | None) -> pa.RecordBatch:
    absent = absent_columns(batch.schema)
    lacking = {name.lower() for name in absent.before | absent.after}
    generated = generated_names(columns)
    untold = [
        name
        for name in generated
        if name in lacking or (flavor is Flavor.MARIADB and not columns[name].is_stored)
    ]
    if not untold:
        return batch
    metadata = dict(batch.schema.metadata)
    metadata.pop(ABSENT, None)
    rows = pa.Table.from_batches([batch.replace_schema_metadata(None)])
    names = {name.lower(): name for name in rows.column_names}
    missing = lacking.difference(untold)
    key = {name.lower() for name in primary_key_of(batch.schema)}
    unknown = dependent(columns, missing | key.intersection(untold)).intersection(untold)
    hides_dates = bool(invalid_dates_of(batch.schema))
    try:
        wanted = [name for name in untold if name not in unknown]
        rows = with_computed(rows, columns, wanted, flavor, hides_dates=hides_dates)
    except UnknownValuesError as error:
        unknown = set(untold)
        metadata[WHY_NOT] = str(error).encode()
    for name in unknown:
        place = rows.column_names.index(names[name])
        nothing = nulls(rows.num_rows, rows.schema.field(place).type)
        rows = rows.set_column(place, names[name], nothing)
    unknown_names = frozenset(names[name] for name in unknown)
    known = absent.without([names[name] for name in untold])
    told = type(absent)(known.before | unknown_names, known.after | unknown_names)
    metadata |= told.metadata()
    whole = rows.combine_chunks().to_batches()[0]
    return whole.replace_schema_metadata(metadata)
