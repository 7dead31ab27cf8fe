"""The place where a stream of one table must end, as the table's columns no longer fit the stream's.

A streaming query has one schema as long as it runs. It must not lose the values of a column that
its schema lacks, or fail over a value that is too wide in the middle of its work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from binlane.errors import SchemaChangedError
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.types import Flavor
from binlane.log.grouping.inner import expanded_all
from binlane.names import TableName
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.statements.sql.logged_statements import logged_statement
from binlane.tables.columnar.table_schema import ReadOptions, table_schema
from binlane.tables.columnar.unify import common_type
from binlane.tables.ranges.log_file_facts import LogFileFacts, LoggedQuery
from binlane.tables.ranges.log_range import LogRange, Offset
from binlane.tables.ranges.planner import Columns, Planner, columns_in
from binlane.tables.ranges.stored_files import read_groups_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """The first rows that do not fit, and why.

    Attributes:
        file: Base name of the file.
        position: Where a stream ends in front of them: at the statement, if it is known.
        what: The columns that do not fit, for people.
        statement: The statement that changed them; empty if it lies before the part that was looked
            at.
    """

    file: str
    position: int
    what: str
    statement: str

    def error(self, table: TableName) -> SchemaChangedError:
        """Return the error that the stream ends with."""
        cause = f" by {self.statement!r}" if self.statement else ""
        return SchemaChangedError(
            f"the columns of {table.plain} change{cause}: {self.what} "
            f"({self.file}:{self.position})",
            hint="all rows before are delivered; start the query again from its checkpoint, and it "
            "has the new columns (schemaChange=ignore goes on without them)",
        )


class SchemaWatch:
    """Looks for rows of a table that do not fit.

    Args:
        table: The name of the table.
        own: The table's columns, as the stream has them.
        columns: Names of the columns that are wanted; all if None.
    """

    def __init__(
        self, table: TableName, own: pa.Schema, columns: frozenset[str] | None = None
    ) -> None:
        self._table = table
        self._own = own
        self._columns = columns

    def first_change(self, planner: Planner, start: Offset, end: Offset) -> SchemaChange | None:
        """The first change between two places; None if all rows there fit.

        Raises:
            CodecError: With file and position, if the log is damaged where it must be looked at.
            StoreError: If the log is not the one any more that an offset stands in.
        """
        catalog = planner.catalog_at(start)
        for facts, piece in planner.facts_between(start, end):
            assert piece.stop is not None, "spans have an end"
            for part, low, high in facts.cuts(piece.start, piece.stop):
                if part.maps is not None and not self._is_in(facts, part.maps):
                    self._follow(facts, low, high, catalog)
                    continue
                before = catalog.copy()
                here = replace(part, start=low, stop=high)
                found = list(columns_in(facts, here, catalog, self._table))
                if any(self._misfit(*each, facts.format.flavor) for each in found):
                    change = self._find(
                        facts, replace(piece, start=low, stop=high), piece.start, before
                    )
                    if change is not None:
                        return change
        return None

    def _is_in(self, facts: LogFileFacts, numbers: Iterable[int]) -> bool:
        maps = (facts.table_maps[number] for number in numbers)
        return any(each.name == self._table for each in maps)

    @staticmethod
    def _follow(facts: LogFileFacts, low: int, high: int, catalog: LoggedObjects) -> None:
        for query in facts.queries:
            if low <= query.event.position < high:
                catalog.feed(query.event)

    def _find(
        self, facts: LogFileFacts, part: LogRange, start: int, catalog: LoggedObjects
    ) -> SchemaChange | None:
        flavor = facts.format.flavor
        for group in read_groups_of(part):
            for event in expanded_all(group.events, file=group.file, format_=facts.format):
                catalog.feed(event)
                if not isinstance(event.body, TableMapEvent):
                    continue
                columns = catalog.columns(event.body, flavor=flavor)
                what = self._misfit(event.body, columns, flavor)
                if what:
                    cause = self._cause(facts, group.position)
                    is_here = cause is not None and cause.group >= start
                    return SchemaChange(
                        file=group.file,
                        position=cause.group if cause and is_here else group.position,
                        what=what,
                        statement=_text(cause) if cause else "",
                    )
        return None

    def _cause(self, facts: LogFileFacts, position: int) -> LoggedQuery | None:
        """The last statement on the table before a position of its file."""
        for query in reversed(facts.queries):
            if query.group < position and self._table in _tables(query):
                return query
        return None

    def _misfit(self, table_map: TableMapEvent, columns: Columns, flavor: Flavor) -> str:
        """Return the columns of a table map that do not fit, as text; empty if all do."""
        if table_map.name != self._table:
            return ""
        found = table_schema(
            table_map,
            flavor=flavor,
            columns=columns,
            options=ReadOptions(columns=self._columns, change_columns=(), may_clash=True),
        ).arrow
        unfit = []
        for field in found:
            index = self._own.get_field_index(field.name)
            if index < 0:
                unfit.append(f"{field.name} ({field.type}) is new")
                continue
            known = self._own.field(index).type
            if not common_type(known, field.type).equals(known):
                unfit.append(f"{field.name} becomes {field.type}, which {known} does not hold")
        return ", ".join(unfit)


def _text(query: LoggedQuery) -> str:
    return logged_statement(_body(query)).text


def _tables(query: LoggedQuery) -> frozenset[TableName]:
    return logged_statement(_body(query)).effects().changed_tables


def _body(query: LoggedQuery) -> QueryEvent:
    assert isinstance(query.event.body, QueryEvent), "it is a statement"
    return query.event.body
