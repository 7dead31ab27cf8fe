"""One table of a binlog, held against the rows of a server.

The server's rows are read range by range, each as of its own time, while changes go on. That is
exact nevertheless: of each row that the binlog says was touched since the reading began, the binlog's
own last word counts, and of all others the row that was read, which was the same all the time. So
both sides are known as of one place in the binlog. A row that was touched is proven by the next
comparison that finds it at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.client.rows.logged_table import LoggedTable
from binlane.names import TableName
from binlane.positions import Position
from binlane.statements.sql.servers import LoggingMode
from binlane.tables.proof.compared_server import ComparedServer, layout_of
from binlane.tables.proof.described_binlog import DescribedBinlog
from binlane.tables.proof.described_tables import DescribedTable, DigestGap
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
    MISSING_ON_SERVER,
    NO_TABLE,
    ComparisonOutcome,
    FirstDifference,
    TableVerdict,
)
from binlane.tables.proof.watched_changes import WatchedChanges, multiset_difference

_BUCKETS_MAX: Final = 8
_ROWS_NAMED_MAX: Final = 64
_NONE: Final = np.empty(0, np.uint64)

Images = dict[int, tuple[bytes, str]]


@dataclass(slots=True)
class _Look:
    """One reading of a table, brought to one place in the binlog.

    Attributes:
        observed: Digest of the server's rows as of the place.
        buckets: Buckets that differ from what the binlog describes.
        only_on_server: Hashes of rows in the first of these buckets that only the server has.
        only_in_binlog: Hashes of rows there that only the binlog has.
        never_there: Hashes of rows there that the binlog takes out and never had.
        images: Images of rows that were wanted.
        counts: What the binlog has more in each bucket, as number and sum.
    """

    observed: TableDigest
    buckets: npt.NDArray[np.int64]
    only_on_server: Hashes = field(default_factory=lambda: _NONE)
    only_in_binlog: Hashes = field(default_factory=lambda: _NONE)
    never_there: Hashes = field(default_factory=lambda: _NONE)
    images: Images = field(default_factory=dict)
    counts: tuple[tuple[int, int], ...] = ()


class Comparison(TableComparisons):
    """Compares tables of a server with what the binlog says of them.

    Args:
        binlog: The binlog, which is followed as far as comparing needs.
        server: The server to compare with.
        directory: Directory for files of row hashes.
        limits: Limits that hold for each comparison.
    """

    def __init__(
        self,
        binlog: DescribedBinlog,
        server: ComparedServer,
        directory: Path,
        limits: ComparisonLimits,
    ) -> None:
        super().__init__(binlog, server, limits)
        self._directory = directory
        self._waits = ProgressWaits(binlog, server, limits)

    def missing(self, name: TableName) -> Comparing:
        """As `TableComparisons.missing`, for a table that the binlog describes."""
        tables = self._binlog.described.tables
        self._binlog.advance(self._binlog.mark)
        self._waits.await_server()
        before, is_there = tables.get(name), not self._server.lacks(name)
        yield self._waits.advance_behind_reads
        if is_there or before is None or tables.get(name) is not before:
            raise NotComparableError("it was made or dropped meanwhile")
        if before.doubt is not None:
            raise NotComparableError("the server has no such table")
        first = FirstDifference(kind=NO_TABLE, rows=before.digest.rows)
        return self._told(name, ComparisonOutcome.DIFFERENT, first=first)

    def compare(self, name: TableName) -> Comparing:
        """As `TableComparisons.compare`."""
        self._binlog.advance(self._binlog.mark)
        table = self._server.table(name)
        self._check(name, table)
        rows = HashFile(self._directory / f"{file_name(name)}.read")
        with rows:
            look = yield from self._look(table, rows, frozenset())
            described = self._binlog.described.table(name)
            if described.doubt is not None:
                self._begin(described, table, rows, look)
                return self._told(name, ComparisonOutcome.EQUAL, rows=look.observed.rows)
            if not len(look.buckets):
                self._keep_base(name, described, rows)
                return self._told(name, ComparisonOutcome.EQUAL, rows=look.observed.rows)
            again = yield from self._look(table, rows, frozenset(look.only_on_server.tolist()))
            return self._judged(name, table, look, again, rows)

    def _check(self, name: TableName, table: LoggedTable) -> None:
        """Refuse what cannot be compared at all."""
        described = self._binlog.described.table(name)
        if not table.source.is_transactional:
            raise NotComparableError(
                "its engine does not commit, so no read has a place in the log"
            )
        definition = self._binlog.definition
        if (
            described.doubt is DigestGap.STATEMENTS
            and definition.logging_mode is not LoggingMode.ROW
        ):
            raise NotComparableError(f"{described.doubt.value} (GTID {described.doubt_gtid})")
        if described.doubt is DigestGap.ROW_IMAGES:
            raise NotComparableError(f"{described.doubt.value} (GTID {described.doubt_gtid})")
        if described.layout and described.layout != layout_of(table) and not described.doubt:
            # The ALTER TABLE may stand right behind the mark.
            self._waits.advance_behind_reads()
            raise InterruptedReadingError("its columns on the server are not those of the binlog")
        if not self._server.address.is_source and described.doubt is not None:
            raise NotComparableError(
                f"the binlog alone does not tell its rows: {described.doubt.value}"
            )

    # One reading ----------------------------------------------------------------------------------

    def _look(
        self, table: LoggedTable, rows: HashFile, wanted: frozenset[int]
    ) -> Generator[Callable[[], None], None, _Look]:
        name, described = table.name, self._binlog.described
        self._tell(name, "waiting until the server has all that the binlog has")
        self._waits.await_server()
        self._tell(name, "reading its rows")
        watch = WatchedChanges(name, changes_max=self._limits.changes_max, wanted=wanted)
        described.watches[name] = watch
        try:
            rows.begin()
            exact = self._read(table, watch, rows)
            yield self._waits.advance_behind_reads
        finally:
            del described.watches[name]
        if watch.interruption:
            raise InterruptedReadingError(watch.interruption)
        if self._limits.is_stopped():
            raise NotComparableError("the comparison was ended early")
        self._reconcile(rows, watch, exact)
        observed = TableDigest()
        for hashes in rows.written():
            observed.add(hashes)
        known = described.table(name)
        look = _Look(
            observed=observed, buckets=known.digest.differing(observed), images=watch.images
        )
        if known.doubt is None and len(look.buckets):
            self._find_rows(known, name, look, rows)
        return look

    def _read(self, table: LoggedTable, watch: WatchedChanges, rows: HashFile) -> Position | None:
        """Read all rows; give the position as of which they are all, if there is one."""
        is_exact = not table.source.key
        position = self._server.open_snapshot() if is_exact else None
        try:
            with closing(self._server.rows(table, watch, self._limits.is_stopped)) as pieces:
                for hashes in pieces:
                    rows.write(hashes)
        finally:
            if is_exact:
                self._server.close_snapshot()
        return position

    def _reconcile(self, rows: HashFile, watch: WatchedChanges, exact: Position | None) -> None:
        """Bring the rows that were read to the place where the binlog is."""
        if exact is not None:
            came, went = watch.net(exact)
            rows.rewrite(lambda pieces: _changed(pieces, came, went))
            return
        touched, present = watch.finals()
        if len(touched):
            rows.rewrite(lambda pieces: (without(piece, touched) for piece in pieces))
            rows.write(present)

    # Differences ----------------------------------------------------------------------------------

    def _find_rows(
        self, described: DescribedTable, name: TableName, look: _Look, rows: HashFile
    ) -> None:
        """Find the rows that differ in the first buckets that do."""
        buckets = look.buckets[:_BUCKETS_MAX]
        own, other = described.digest, look.observed
        look.counts = tuple(
            (
                int(own.counts[each] - other.counts[each]),
                int(own.sums[each]) - int(other.sums[each]),
            )
            for each in look.buckets.tolist()
        )
        expected, look.never_there = self._described_rows(described, name, buckets)
        digest = TableDigest.of(expected)
        digest.remove(look.never_there)
        if set(digest.differing(own).tolist()) & set(buckets.tolist()):
            look.never_there = _NONE
            return  # the binlog's files do not go back to where the table began
        observed = np.concatenate([_NONE, *(in_buckets(each, buckets) for each in rows.written())])
        look.only_on_server = multiset_difference(observed, expected)[:_ROWS_NAMED_MAX]
        look.only_in_binlog = multiset_difference(expected, observed)[:_ROWS_NAMED_MAX]

    def _described_rows(
        self, described: DescribedTable, name: TableName, buckets: npt.NDArray[np.int64]
    ) -> tuple[Hashes, Hashes]:
        """The rows in some buckets as the binlog describes them, and those that it only takes out."""
        base = _NONE
        watch = WatchedChanges(name, buckets=buckets, is_replay=not described.base)
        if described.base:
            pieces = HashFile(self._directory / described.base).read()
            base = np.concatenate([_NONE, *(in_buckets(each, buckets) for each in pieces)])
        self._binlog.replay(watch, described.base_place)
        came, went = watch.net()
        came = np.concatenate([base, came])
        never_there = multiset_difference(went, came)[:_ROWS_NAMED_MAX]
        return multiset_difference(came, went), never_there

    def _judged(
        self, name: TableName, table: LoggedTable, one: _Look, two: _Look, rows: HashFile
    ) -> TableVerdict:
        """Judge a table whose two readings both differ, or did at first."""
        described = self._binlog.described.table(name)
        if not len(two.buckets):
            self._keep_base(name, described, rows)
            return self._told(name, ComparisonOutcome.EQUAL, rows=two.observed.rows)
        on_server = np.intersect1d(one.only_on_server, two.only_on_server)
        in_binlog = np.intersect1d(one.only_in_binlog, two.only_in_binlog)
        never_there = np.intersect1d(one.never_there, two.never_there)
        is_same = len(on_server) + len(in_binlog) + len(never_there) or one.counts == two.counts
        if not is_same:
            raise InterruptedReadingError("rows differed, and others when it was read again")
        if table.source.cascades:
            described.distrust(DigestGap.CASCADES, str(self._binlog.position))
            raise NotComparableError(DigestGap.CASCADES.value)
        binlog_images = self._binlog_images(name, np.union1d(in_binlog, never_there))
        server_images = {key: two.images[key] for key in on_server.tolist() if key in two.images}
        gone = frozenset(never_there.tolist())
        first = RowNames(table).first(server_images, binlog_images, gone)
        if server_images and binlog_images and not first.kind:
            raise NotComparableError("rows of it have equal values in other bytes, as JSON may")
        found = len(two.only_on_server) + len(two.only_in_binlog)
        kind = first.kind or (MISSING_ON_SERVER if len(in_binlog) else "")
        first = replace(first, kind=kind, buckets=len(two.buckets), rows=first.rows or found)
        return self._told(name, ComparisonOutcome.DIFFERENT, rows=two.observed.rows, first=first)

    def _binlog_images(self, name: TableName, hashes: Hashes) -> Images:
        """Images of rows that the binlog has, as far as its files still have them."""
        if not len(hashes):
            return {}
        watch = WatchedChanges(
            name,
            buckets=np.empty(0, np.int64),
            is_replay=True,
            wanted=frozenset(hashes.tolist()),
        )
        self._binlog.replay(watch, None)
        return watch.images

    # Keeping --------------------------------------------------------------------------------------

    def _begin(
        self, described: DescribedTable, table: LoggedTable, rows: HashFile, look: _Look
    ) -> None:
        """Begin the digest of a table with rows that were read."""
        described.digest = look.observed
        described.layout = layout_of(table)
        described.since = str(self._binlog.position)
        described.is_whole = False
        described.doubt, described.doubt_gtid = None, ""
        self._keep_base(table.name, described, rows)

    def _keep_base(self, name: TableName, described: DescribedTable, rows: HashFile) -> None:
        """Keep the rows that were read: a later difference is sought from here on."""
        if not self._server.address.is_source:
            return
        path = self._directory / f"{file_name(name)}.rows"
        rows.put_in_place(path)
        described.base, described.base_place = path.name, self._binlog.described.place

    def _told(
        self,
        name: TableName,
        finding: ComparisonOutcome,
        *,
        rows: int = 0,
        first: FirstDifference | None = None,
    ) -> TableVerdict:
        table = self._binlog.described.tables.get(name)
        return self._verdict(
            name,
            finding,
            gtid=str(self._binlog.position),
            since="" if table is None else table.since,
            is_whole=table is not None and table.is_whole,
            rows=rows,
            first=first,
        )


def _changed(pieces: Iterator[Hashes], came: Hashes, went: Hashes) -> Iterator[Hashes]:
    """Rows of a table that may have the same row twice, behind some changes."""
    rest = went
    for piece in pieces:
        left = multiset_difference(piece, rest)
        rest = multiset_difference(rest, piece)
        yield left
    yield came if not len(rest) else multiset_difference(came, rest)


def file_name(name: TableName) -> str:
    """A name of a file for a table, different for each; names of tables may be longer than a file's."""
    return blake2b(str(name).encode(), digest_size=16).hexdigest()
