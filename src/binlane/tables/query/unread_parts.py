"""Parts of a log that a query leaves unread, by its condition on times and places.

DuckDB gives a condition as an expression of Arrow. Facts about a part of the log bound what the
columns of its rows can be; Arrow itself finds out whether the condition can hold within these
bounds. A part is left out only where it cannot.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import and_
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs

from binlane.log.codec.types import Flavor
from binlane.positions import Gtid, GtidPosition, MysqlGtid, Position, file_number, parse_position
from binlane.tables.columnar.selection import Selection
from binlane.tables.columnar.table_schema import SEQUENCE_FILE_BITS
from binlane.tables.ranges.log_file_facts import FilePiece, LogFileFacts
from binlane.tables.ranges.piece_bounds import lies_before, lies_behind, may_hold_file

_MOMENT: Final = pa.timestamp("us", tz="UTC")
_MICROSECONDS: Final = 1_000_000
_GTID_TEST: Final = re.compile(
    r'\(_gtid == "(?P<one>[^"\\]*)"\)|is_in\(_gtid, \{value_set=string:\[(?P<many>[^\]]*)\]'
    r"|is_valid\(_gtid\)"
)
_LISTED: Final = re.compile(r'"([^"\\]*)"')
_NO_GTID: Final = "\0"
_PLACES: Final = frozenset({"_timestamp", "_file", "_pos", "_seq", "_gtid"})


class PlaceCondition:
    """A condition of a query, as far as times and places decide it.

    Args:
        schema: The columns that the condition may be about.
        condition: The condition; for rows without a value it does not hold.
        has_control: Whether rows are also the log's own events, which stand before a file's first
            group and behind its last one.
    """

    def __init__(
        self, schema: pa.Schema, condition: pc.Expression, *, has_control: bool = False
    ) -> None:
        self._schema = schema
        self._condition = condition
        self._has_control = has_control
        text = str(condition)
        self._has_places = any(name in text for name in _PLACES)
        self._gtids = _asked_gtids(text)

    def may_hold(self, name: str, facts: LogFileFacts) -> frozenset[int]:
        """The starts of the pieces of a file in which the condition may hold for some row.

        Args:
            name: Base name of the file.
            facts: The facts of the file.
        """
        pieces = facts.pieces
        if not self._has_places:
            return frozenset(piece.start for piece in pieces)
        form = pyarrow.dataset.ParquetFileFormat()
        # No file is opened: a fragment only carries what is known of a piece.
        system = pyarrow.fs.LocalFileSystem()
        fragments = [
            form.make_fragment(
                str(piece.start), system, partition_expression=self._known_of(name, facts, piece)
            )
            for piece in pieces
        ]
        dataset = pyarrow.dataset.FileSystemDataset(fragments, self._schema, form, system)
        found: Any = dataset.get_fragments(filter=self._condition)
        return frozenset(int(fragment.path) for fragment in found)

    def _known_of(self, name: str, facts: LogFileFacts, piece: FilePiece) -> pc.Expression:
        """Return a condition that certainly holds for each row in a piece."""
        field: Any = pc.field
        number = file_number(name) << SEQUENCE_FILE_BITS
        terms = [
            field("_file") == name,
            field("_pos") >= piece.start,
            field("_seq") >= number + piece.start,
            field("_seq") < number + piece.stop,
        ]
        is_first = self._has_control and piece is facts.pieces[0]
        is_last = self._has_control and piece is facts.pieces[-1]
        if not (is_first or is_last):
            terms.append(field("_timestamp") >= _moment(piece.least_event_time))
            terms.append(field("_timestamp") <= _moment(piece.greatest_event_time))
        if not is_last:
            terms.append(field("_pos") < piece.stop)
        if self._gtids is not None and not _may_hold_any(self._gtids, facts, piece):
            # All that the condition asks of GTIDs is whether they are those: none is.
            terms.append(field("_gtid") == _NO_GTID)
        terms = [term for term in terms if _name_of(term) in self._schema.names]
        known: pc.Expression = reduce(and_, terms)
        return known


def _name_of(term: Any) -> str:
    return str(term)[1:].partition(" ")[0]


def _moment(seconds: int) -> pa.Scalar[Any]:
    return pa.scalar(seconds * _MICROSECONDS, _MOMENT)


def _asked_gtids(text: str) -> frozenset[str] | None:
    """The GTIDs for which a condition asks; None if it asks other things of GTIDs, or nothing."""
    found: set[str] = set()
    count = 0
    for test in _GTID_TEST.finditer(text):
        count += 1
        if test["one"] is not None:
            found.add(test["one"])
        elif test["many"] is not None:
            if "..." in test["many"]:  # Arrow prints the ends of a long list
                return None
            found.update(_LISTED.findall(test["many"]))
    return frozenset(found) if found and count == text.count("_gtid") else None


def _may_hold_any(gtids: frozenset[str], facts: LogFileFacts, piece: FilePiece) -> bool:
    """True if one of some GTIDs may be that of a group in a piece."""
    done = facts.done_at(piece.start)
    inside = parse_position(piece.gtids, facts.flavor)
    return any(_may_hold(text, facts.flavor, inside, done) for text in gtids)


def _may_hold(text: str, flavor: str, inside: Position, done: Position | None) -> bool:
    try:
        gtid = Gtid.parse(text) if flavor == Flavor.MARIADB.value else MysqlGtid.parse(text)
    except ValueError:
        return False
    if not inside.covers(gtid):
        return False
    if isinstance(inside, GtidPosition):
        # Its sequence is up to the last one in the piece: it may also lie before the piece.
        return done is None or not done.covers(gtid)
    return True


class QueryWish:
    """The parts of a log that a query reads, as facts about its files decide it.

    Args:
        selection: The groups that there are for the query, and the table that it asks for.
        condition: The query's condition; None without one.
        is_of_tables: Whether it asks for rows; else for all that the log has.
    """

    def __init__(
        self, selection: Selection, condition: PlaceCondition | None, *, is_of_tables: bool = True
    ) -> None:
        self._selection = selection
        self._condition = condition
        self._is_of_tables = is_of_tables
        self._wanted: dict[tuple[str, str, int], frozenset[int]] = {}

    def wants_file(self, name: str) -> bool:
        """True if the query may ask for anything of a file; no facts of the file are needed."""
        return may_hold_file(self._selection, name)

    def wants_piece(self, name: str, facts: LogFileFacts, piece: FilePiece) -> bool:
        """True if the query may ask for anything between two cut points."""
        selection = self._selection
        if lies_before(piece, facts, name, selection.start):
            return False
        if lies_behind(piece, facts, name, selection.stop):
            return False
        if self._is_of_tables and not self._may_hold_tables(facts, piece):
            return False
        if self._condition is None:
            return True
        key = name, facts.fingerprint, facts.end
        if key not in self._wanted:
            self._wanted[key] = self._condition.may_hold(name, facts)
        return piece.start in self._wanted[key]

    def _may_hold_tables(self, facts: LogFileFacts, piece: FilePiece) -> bool:
        tables = facts.tables(piece)
        if tables is None:
            return True
        if any(map(self._selection.scope.includes, tables)):
            return True
        # Rows of an XA transaction count where it is committed. Of lost changes the reader tells.
        places = [xa.start for xa in facts.xa if not xa.is_prepare]
        return any(piece.start <= place < piece.stop for place in places)
