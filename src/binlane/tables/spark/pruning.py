"""Parts of a log that a query can leave unread, by the facts that are known of them.

A part is left out only where no query can ask for any of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from binlane.names import TableName
from binlane.tables.ranges.log_file_facts import FilePiece, LogFileFacts
from binlane.tables.ranges.piece_bounds import lies_before, lies_behind, may_hold_file
from binlane.tables.spark.filters import PushedCondition
from binlane.tables.spark.source_options import Include, Layout, SourceOptions

_OF_TABLES: Final = frozenset({Layout.TABLE, Layout.CHANGES})


class Pruning:
    """Decides for each part of a log whether a query reads it.

    Args:
        options: The options of the read.
        conditions: Conditions of the query beside the options.
    """

    def __init__(self, options: SourceOptions, conditions: Sequence[PushedCondition] = ()) -> None:
        self._options = options
        self._by_column: dict[str, list[PushedCondition]] = {}
        for condition in conditions:
            self._by_column.setdefault(condition.column, []).append(condition)
        self._has_statements = (
            options.layout is Layout.CHANGES and Include.DDL in options.include
        ) or options.layout is Layout.EVENTS
        self._is_filtering = options.selection.filter_terms is not None

    def wants_file(self, name: str) -> bool:
        """True if the query may ask for anything of a file; no facts of the file are needed.

        Args:
            name: Base name of the file.
        """
        if not may_hold_file(self._options.selection, name):
            return False
        return all(condition.admits(name) for condition in self._by_column.get("file", ()))

    def wants_piece(self, name: str, facts: LogFileFacts, piece: FilePiece) -> bool:
        """True if the query may ask for anything between two cut points.

        Args:
            name: Base name of the file.
            facts: The facts of the file.
            piece: A piece of those facts.
        """
        selection = self._options.selection
        if lies_before(piece, facts, name, selection.start):
            return False
        if lies_behind(piece, facts, name, selection.stop):
            return False
        positions = self._by_column.get("pos", ())
        if not all(each.allows(piece.start, piece.stop) for each in positions):
            return False
        return self._options.layout not in _OF_TABLES or self._may_hold_tables(facts, piece)

    def _may_hold_tables(self, facts: LogFileFacts, piece: FilePiece) -> bool:
        tables = facts.tables(piece)
        if tables is None:
            return True
        places = [xa.start for xa in facts.xa if not xa.is_prepare]
        places += facts.incidents
        if self._is_filtering and not tables:
            return True  # statements, which may be left out of tables that are named
        if self._has_statements or self._is_filtering:
            places += [query.group for query in facts.queries]
        if any(piece.start <= place < piece.stop for place in places):
            return True  # an XA COMMIT, whose rows stand elsewhere, or a row without a table
        return any(map(self._wants_table, tables))

    def _wants_table(self, table: TableName) -> bool:
        return (
            self._options.selection.scope.includes(table)
            and self._may_pass(table)
            and all(each.admits(table.database) for each in self._by_column.get("database", ()))
            and all(each.admits(table.table) for each in self._by_column.get("table", ()))
        )

    def _may_pass(self, table: TableName) -> bool:
        """True if the filter may let rows of a table through, at any place of the log."""
        terms = self._options.selection.filter_terms
        return terms is None or terms.follows or terms.rules.includes(table)
