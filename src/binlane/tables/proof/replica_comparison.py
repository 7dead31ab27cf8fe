"""One table of a replica, held against the same table of the source.

A binlog that has texts or small row images does not tell its tables' rows, and a replica of it can be
compared all the same: both servers are read range by range, each range as of its own time, and the
source's log says which row images came or went meanwhile. These are left out on both sides. All other
rows were the same all the time, at the source and on a replica that did what the source did.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.client.rows.logged_table import LoggedTable
from binlane.errors import CodecError, PeerError
from binlane.log.codec.charsets import charset_of
from binlane.log.codec.columns import Column
from binlane.names import TableName
from binlane.positions import FilePosition
from binlane.tables.proof.compared_server import ComparedServer, layout_of
from binlane.tables.proof.comparison import Comparison, Images, file_name
from binlane.tables.proof.described_binlog import DescribedBinlog
from binlane.tables.proof.described_tables import DescribedTables, DigestGap
from binlane.tables.proof.hash_files import HashFile, in_buckets, without
from binlane.tables.proof.progress_waits import (
    ComparisonLimits,
    InterruptedReadingError,
    NotComparableError,
    ProgressWaits,
)
from binlane.tables.proof.row_names import RowNames
from binlane.tables.proof.table_comparisons import Comparing, TableComparisons
from binlane.tables.proof.table_digest import Hashes, TableDigest
from binlane.tables.proof.verdicts import (
    MISSING_AT_SOURCE,
    MISSING_IN_BINLOG,
    NO_TABLE,
    OTHER_COLUMNS,
    ComparisonOutcome,
    FirstDifference,
    TableVerdict,
)
from binlane.tables.proof.watched_changes import WatchedChanges, multiset_difference

_BUCKETS_MAX: Final = 8
_ROWS_NAMED_MAX: Final = 64
_NONE: Final = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """The part of the source's log in which a reading has its place.

    Attributes:
        start: Start of the part: all before is visible at both servers when the reading begins.
        settled: Place at which the source was known to show everything; not before `start`.
    """

    start: FilePosition
    settled: FilePosition


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """The rows of both servers that were at rest while they were read.

    Attributes:
        buckets: Buckets of rows that differ.
        only_on_replica: Hashes of rows in the first of these buckets that only the replica has.
        only_at_source: Hashes of rows there that only the source has.
        replica_images: Images of wanted rows of the replica.
        source_images: Images of wanted rows of the source.
        rows: Number of rows that the replica has.
        moving: Number of them that were not at rest.
        gtid: Position of the source behind the reading.
    """

    buckets: npt.NDArray[np.int64]
    only_on_replica: Hashes
    only_at_source: Hashes
    replica_images: Images
    source_images: Images
    rows: int
    moving: int
    gtid: str


class ReplicaComparison(TableComparisons):
    """Compares tables of a replica with the source, or with the binlog where that tells the rows.

    Args:
        binlog: The binlog that the replica follows.
        source: The source of the binlog.
        replica: The replica whose tables are compared.
        directory: Directory for files of row hashes.
        limits: Limits that hold for each comparison.

    Raises:
        PeerError: If the replica goes away.
    """

    def __init__(
        self,
        binlog: DescribedBinlog,
        source: ComparedServer,
        replica: ComparedServer,
        directory: Path,
        limits: ComparisonLimits,
    ) -> None:
        super().__init__(binlog, replica, limits)
        self._source = source
        self._directory = directory
        self._waits = ProgressWaits(binlog, replica, limits)
        self._by_binlog = Comparison(binlog, replica, directory, limits)
        self._filter = replica.replication_filter()
        # Of the tables that wait for the source's log: where they have it from, and their changes.
        self._window: _Window | None = None
        self._logged: dict[TableName, WatchedChanges] = {}
        self._gtid = ""

    def compare(self, name: TableName) -> Comparing:
        """As `TableComparisons.compare`."""
        self._check_filter(name)
        if self._source.lacks(name):
            if name in self._binlog.described.tables:
                return (yield from self._by_binlog.compare(name))
            raise NotComparableError("the source has no such table")
        theirs, own = self._source.table(name), self._server.table(name)
        columns = _other_columns(theirs, own)
        if columns:
            self._check_definitions(theirs, own)
            first = FirstDifference(kind=OTHER_COLUMNS, columns=columns)
            return self._told(name, ComparisonOutcome.DIFFERENT, first=first)
        if self._source.flavor is not self._server.flavor:
            raise NotComparableError(
                "one of source and replica is a MariaDB server and one a MySQL server,"
                " whose rows have other bytes"
            )
        self._binlog.advance(self._binlog.mark)
        if self._binlog.described.table(name).doubt is None:
            return (yield from self._by_binlog.compare(name))
        return (yield from self._compared_rows(name, theirs, own))

    def _compared_rows(self, name: TableName, theirs: LoggedTable, own: LoggedTable) -> Comparing:
        for table in (theirs, own):
            if not table.source.is_transactional:
                raise NotComparableError(
                    "its engine does not commit, so no read has a place in the log"
                )
        one = yield from self._read(theirs, own, frozenset())
        if not len(one.buckets):
            return self._equal(name, one)
        wanted = frozenset([*one.only_on_replica.tolist(), *one.only_at_source.tolist()])
        two = yield from self._read(theirs, own, wanted)
        if not len(two.buckets):
            return self._equal(name, two)
        on_replica = np.intersect1d(one.only_on_replica, two.only_on_replica)
        at_source = np.intersect1d(one.only_at_source, two.only_at_source)
        if not len(on_replica) + len(at_source):
            raise InterruptedReadingError("rows differed, and others when it was read again")
        if theirs.source.cascades:
            raise NotComparableError(DigestGap.CASCADES.value)
        first = RowNames(own).first(
            _among(two.replica_images, on_replica), _among(two.source_images, at_source)
        )
        if not first.kind:
            raise NotComparableError("rows of it have equal values in other bytes, as JSON may")
        kind = MISSING_AT_SOURCE if first.kind == MISSING_IN_BINLOG else first.kind
        first = replace(first, kind=kind, buckets=len(two.buckets))
        return self._told(name, ComparisonOutcome.DIFFERENT, reading=two, first=first)

    def missing(self, name: TableName) -> Comparing:
        """As `TableComparisons.missing`, for a table of the source or of the binlog."""
        self._check_filter(name)
        self._open_window(name)
        is_there = not self._server.lacks(name)
        is_wanted = not self._source.lacks(name)
        log = yield from self._changes_at_source(name)
        if is_there or log.interruption:
            raise InterruptedReadingError("it was made or dropped meanwhile")
        if not is_wanted:
            if name in self._binlog.described.tables:
                return (yield from self._by_binlog.missing(name))
            raise NotComparableError("neither the replica nor the source has such a table")
        first = FirstDifference(kind=NO_TABLE)
        return self._told(name, ComparisonOutcome.DIFFERENT, first=first)

    def _check_filter(self, name: TableName) -> None:
        if not self._filter.includes(name):
            raise NotComparableError(f"the replica does not replicate it: {self._filter.text}")

    def _check_definitions(self, theirs: LoggedTable, own: LoggedTable) -> None:
        """Refuse columns that differ because one server is behind the other."""
        self._meet()
        name = theirs.name
        now = self._server.table(name), self._source.table(name)
        if (
            now[0].source.create != own.source.create
            or now[1].source.create != theirs.source.create
        ):
            raise InterruptedReadingError("its definition changed while it was compared")

    # One reading ----------------------------------------------------------------------------------

    def _open_window(self, name: TableName) -> None:
        """Begin to read tables, unless others are being read that wait for the source's log."""
        if self._window is None:
            self._tell(name, "waiting until the replica has all that the source has")
            self._window = self._meet()
            self._tell(name, "reading its rows")

    def _meet(self) -> _Window:
        """Wait until the replica has done all that the source shows now."""
        start, settled = self._source.visible_places()
        self._waits.advance_behind(self._source.settled())
        self._waits.await_server()
        return _Window(start=start, settled=settled)

    def _read(
        self, theirs: LoggedTable, own: LoggedTable, wanted: frozenset[int]
    ) -> Generator[Callable[[], None], None, _Reading]:
        name, limits = own.name, self._limits
        base = self._directory / file_name(name)
        with ExitStack() as stack:
            files = [
                stack.enter_context(HashFile(base.with_suffix(suffix)))
                for suffix in (".source.read", ".replica.read")
            ]
            watches = [WatchedChanges(name, wanted=wanted) for _ in files]
            sides = (self._source, theirs), (self._server, own)
            self._open_window(name)
            for (server, table), file, watch in zip(sides, files, watches, strict=True):
                file.begin()
                with closing(server.rows(table, watch, limits.is_stopped)) as pieces:
                    for hashes in pieces:
                        file.write(hashes)
            if limits.is_stopped():
                raise NotComparableError("the comparison was ended early")
            log = yield from self._changes_at_source(name)
            if log.interruption:
                raise InterruptedReadingError(log.interruption)
            return _reading(files, watches, log, self._gtid)

    def _changes_at_source(
        self, name: TableName
    ) -> Generator[Callable[[], None], None, WatchedChanges]:
        """The changes of a table that the source logged since the window was opened."""
        log = WatchedChanges(name, changes_max=self._limits.changes_max)
        self._logged[name] = log
        try:
            yield self._follow_source
        finally:
            del self._logged[name]
        return log

    def _follow_source(self) -> None:
        """Take the changes of all tables that wait for them, and close the window."""
        window, self._window = self._window, None
        assert window is not None, "it was opened before the tables were read"
        end = self._source.written_place()
        described = DescribedTables(watches=self._logged)
        try:
            for group, format_ in self._source.log_between(window.start, end):
                place = FilePosition(group.file, group.position)
                prepared = len(described.prepared)
                finished = described.follow(group, format_)
                if len(described.prepared) > prepared:
                    described.take_rows(group, format_, "")
                if finished is None or described.prepared.pop(finished, None) is not None:
                    continue
                if not place < window.settled:
                    described.distrust_all(DigestGap.PREPARED, "")
        except CodecError as error:
            raise NotComparableError(f"the source's log cannot be read: {error}") from error
        except PeerError as error:
            if error.errno is None:
                raise
            raise NotComparableError(
                f"the source's log cannot be read (GRANT REPLICATION SLAVE ON *.* TO the account):"
                f" {error.message}"
            ) from None
        self._gtid = str(self._source.settled())

    # Verdicts -------------------------------------------------------------------------------------

    def _equal(self, name: TableName, reading: _Reading) -> TableVerdict:
        return self._told(name, ComparisonOutcome.EQUAL, reading=reading)

    def _told(
        self,
        name: TableName,
        finding: ComparisonOutcome,
        *,
        reading: _Reading | None = None,
        first: FirstDifference | None = None,
    ) -> TableVerdict:
        return self._verdict(
            name,
            finding,
            gtid=reading.gtid if reading is not None else str(self._binlog.position),
            is_whole=True,
            is_direct=True,
            rows=0 if reading is None else reading.rows,
            moving=0 if reading is None else reading.moving,
            first=first,
        )


def _reading(
    files: Collection[HashFile], watches: Collection[WatchedChanges], log: WatchedChanges, gtid: str
) -> _Reading:
    """Compare the rows that were read of the source and of a replica, in this order."""
    touched, _ = log.finals()
    digests, rows = [TableDigest(), TableDigest()], [0, 0]
    for number, file in enumerate(files):
        for hashes in file.written():
            rows[number] += len(hashes)
            digests[number].add(without(hashes, touched))
    buckets = digests[0].differing(digests[1])
    found = [
        np.concatenate(
            [
                _NONE,
                *(
                    in_buckets(without(each, touched), buckets[:_BUCKETS_MAX])
                    for each in file.written()
                ),
            ]
        )
        for file in files
        if len(buckets)
    ] or [_NONE, _NONE]
    images = [watch.images for watch in watches]
    return _Reading(
        buckets=buckets,
        only_on_replica=multiset_difference(found[1], found[0])[:_ROWS_NAMED_MAX],
        only_at_source=multiset_difference(found[0], found[1])[:_ROWS_NAMED_MAX],
        replica_images=images[1],
        source_images=images[0],
        rows=rows[1],
        moving=rows[1] - digests[1].rows,
        gtid=gtid,
    )


def _among(images: Images, hashes: Hashes) -> Images:
    return {key: images[key] for key in hashes.tolist() if key in images}


def _other_columns(one: LoggedTable, other: LoggedTable) -> tuple[str, ...]:
    """Names of the columns that two servers define so that equal bytes mean other values."""
    if len(one.columns) != len(other.columns):
        names = [column.name or "" for column in (*one.columns, *other.columns)]
        own = {column.name for column in one.columns} & {column.name for column in other.columns}
        return tuple(name for name in names if name not in own) or tuple(names)
    return tuple(
        mine.name or ""
        for mine, its in zip(one.columns, other.columns, strict=True)
        if _form(mine) != _form(its)
    ) or (("?",) if layout_of(one) != layout_of(other) else ())


def _form(column: Column) -> tuple[object, ...]:
    charset = None if column.collation_id is None else charset_of(column.collation_id)
    return (
        (column.name or "").lower(),
        *(column.type, column.metadata, column.is_unsigned, column.members),
        *(charset, column.geometry_type, column.dimensions),
    )
