"""Holds what a landing commits against what its log has, so that no row is lost or doubled unseen.

Three counts of row images (one of an INSERT or DELETE, two of an UPDATE) come from three places:
what `ranges.logged_rows` finds in a range, what the range's task has decoded, and what each table's
own commits say that they hold. A task compares the first two before it hands over anything; here
the last two are compared before each commit that goes beyond what a table had, and behind each
batch, also one that is done again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from binlane.errors import StoreError
from binlane.names import TableName
from binlane.tables.landing.journal import JournalState
from binlane.tables.landing.landing_progress import LandingProgress
from binlane.tables.landing.range_work import Mode, RangeResult, RangeWork, Rows
from binlane.tables.landing.steps import (
    Abandon,
    AbandonAll,
    Create,
    CreateLike,
    DropDatabase,
    DropTable,
    Rename,
    Step,
    Truncate,
)
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.logged_rows import LoggedRowCounts, logged_rows

_HINT: Final = "this is a fault of binlane's: report it, and land the table anew, or go on unaudited by --no-audit"


def audited_range(
    work: RangeWork, read: Mapping[TableName, int], lost: Mapping[TableName, int]
) -> LoggedRowCounts:
    """Count a range beside its task, and see that the task found as many.

    Args:
        work: The work of the range's task.
        read: Row images that the task decoded, by table, before anything of them was left out.
        lost: Row images that the task's filter left out of tables that the filter names.

    Raises:
        StoreError: If the task found more or fewer of a table that is wanted; fewer are right with
            a filter that lost none, since it may not name the table.
        CodecError: If the log is damaged.
    """
    logged = logged_rows(work.piece)
    selection = work.want.selection
    may_lack = selection.filter_terms is not None and not selection.filter_terms.is_everything
    for table in sorted(logged.images.keys() | read.keys()):
        if table in logged.uncounted or not selection.scope.includes(table):
            continue
        there, found, left_out = logged.images[table], read.get(table, 0), lost.get(table, 0)
        if found + left_out > there or (found + left_out < there and (left_out or not may_lack)):
            raise StoreError(
                f"{there} row images of it are in the log {_place(work.piece)}, and {found} were"
                f" read{f' and {left_out} left out' if left_out else ''}; none of them are landed",
                path=table.plain,
                hint=_HINT,
            )
    return logged


def _place(piece: LogRange) -> str:
    end = "its end" if piece.stop is None else piece.stop
    return f"from {piece.name}:{piece.start} to {end}"


class Audit:
    """The counts of row images that each table of a target should have, and has.

    Args:
        state: The journal's state, which has the count of each table where the last batch ended.
        is_strict: Whether a difference is an error; else what tables have is taken for right.
    """

    def __init__(self, state: JournalState, *, is_strict: bool = True) -> None:
        self._state = state
        self._is_strict = is_strict
        self._expected: dict[Mode, dict[str, int]] = {}
        self._seeded: dict[Mode, set[str]] = {}
        self._touched: set[tuple[Mode, TableName]] = set()
        # Under whose name another table may have come, or not: what they have is right then.
        self._unknown: set[tuple[Mode, TableName]] = set()
        self._logged: Counter[TableName] = Counter()
        self._left_out: dict[str, Counter[TableName]] = defaultdict(Counter)
        self._outside = 0

    def begin(self) -> None:
        """A batch begins, maybe anew: count from where the one before ended."""
        self._expected = {mode: dict(self._state.landed.get(mode.value, {})) for mode in Mode}
        self._seeded = {mode: set(self._state.seeded.get(mode.value, ())) for mode in Mode}
        self._touched.clear()
        self._unknown.clear()
        self._logged.clear()
        self._left_out.clear()
        self._outside = 0

    def count(self, result: RangeResult) -> None:
        """A range of the batch was taken: what was counted in it."""
        self._logged.update(result.logged)
        for why, tables in result.not_landed.items():
            self._left_out[why].update(tables)
        self._outside += result.outside

    def leave_out(self, why: str, table: TableName, pieces: Iterable[Rows]) -> None:
        """Rows get into no table of a kind."""
        self._left_out[why][table] += sum(rows.decoded for rows in pieces)

    def expect(self, mode: Mode, table: TableName, pieces: Iterable[Rows]) -> int:
        """Rows are to be in a table, or are there; how many are to be then in all."""
        counts = self._expected[mode]
        counts[table.plain] = counts.get(table.plain, 0) + sum(
            rows.decoded for rows in pieces if mode in rows.fresh
        )
        self._touched.add((mode, table))
        return counts[table.plain]

    def committing(
        self, mode: Mode, table: TableName, now: int | None, pieces: Sequence[Rows]
    ) -> int:
        """Expect rows that are about to be committed to a table; give its count of row images afterwards.

        Args:
            mode: The kind of the table.
            table: The name of the table.
            now: The count that the table has; None if nobody counted.
            pieces: Pieces with the rows to commit.

        Raises:
            StoreError: If the table has not as many as it should have.
        """
        fresh = sum(rows.fresh.get(mode, 0) for rows in pieces)
        expected = self.expect(mode, table, pieces)
        if now is None:
            return expected
        if (mode, table) in self._unknown or not self._is_strict:
            self._expected[mode][table.plain] = now + fresh
            return now + fresh
        if fresh and now + fresh != expected:
            raise _different(mode, table, expected, now + fresh, pieces)
        return now + fresh

    def had(self, mode: Mode, table: TableName) -> int:
        """Return how many row images a table is to have, as far as the batch was counted."""
        if (mode, table) in self._unknown:
            return 0
        return self._expected[mode].get(table.plain, 0)

    def undo(self, mode: Mode, table: TableName, had: int) -> None:
        """Set a table's count back: the rows that were to be committed were not."""
        self._expected[mode][table.plain] = had

    def follow(self, steps: Iterable[Step]) -> None:
        """Follow what statements do to tables, also what was done before a crash."""
        for step in steps:
            if isinstance(step, Rename):
                for mode in (Mode.CURRENT, Mode.HISTORY):
                    self._rename(mode, step)
            elif isinstance(step, Create | CreateLike):
                self._expected[Mode.CURRENT].setdefault(step.table.plain, 0)
            elif isinstance(step, DropTable | Truncate | Abandon):
                self._forget(step.table.plain.__eq__)
            elif isinstance(step, DropDatabase | AbandonAll):
                self._forget(partial(_is_in, step.database))

    def _rename(self, mode: Mode, step: Rename) -> None:
        old, new = step.old.plain, step.new.plain
        counts, is_unknown = self._expected[mode], (mode, step.old) in self._unknown
        seeded = self._seeded[mode]
        is_seeded = old in seeded
        seeded -= {old, new}
        seeded |= {new} if is_seeded else set()
        self._unknown -= {(mode, step.old), (mode, step.new)}
        if is_unknown or old not in counts:
            self._unknown.add((mode, step.new))
        if old in counts:
            counts[new] = counts.pop(old)
            self._touched.add((mode, step.new))

    def _forget(self, is_meant: Callable[[str], bool]) -> None:
        """Begin the counts of some tables anew."""
        for mode in (Mode.CURRENT, Mode.HISTORY):
            counts = self._expected[mode]
            self._expected[mode] = {name: n for name, n in counts.items() if not is_meant(name)}
        self._unknown = {known for known in self._unknown if not is_meant(known[1].plain)}
        # Histories keep their versions.
        seeded = self._seeded[Mode.CURRENT]
        self._seeded[Mode.CURRENT] = {name for name in seeded if not is_meant(name)}

    def check(self, images: Callable[[Mode, TableName], int | None]) -> None:
        """A batch is done: see that its tables have what they should.

        Args:
            images: How many row images a table has; None if nobody counted, or if it is none of
                those that are kept.

        Raises:
            StoreError: If one has others.
        """
        for mode, table in sorted(self._touched, key=lambda each: (each[0].value, each[1])):
            expected = self._expected[mode].get(table.plain, 0)
            found = images(mode, table)
            if found is None or found == expected or (mode, table) in self._unknown:
                continue
            if self._is_strict:
                raise _different(mode, table, expected, found, ())
            self._unknown.add((mode, table))
        for mode, table in self._unknown:
            self._expected[mode][table.plain] = images(mode, table) or 0

    def seed(self, mode: Mode, table: TableName) -> None:
        """A table gets rows that are not of the log, in place of all that it had."""
        state = self._state
        state.landed.get(mode.value, {}).pop(table.plain, None)
        known = state.seeded.get(mode.value, ())
        state.seeded[mode.value] = sorted({*known, table.plain})

    def reach(self, progress: LandingProgress) -> None:
        """The batch is done and right: note its counts, from which the next one goes on."""
        state = self._state
        state.landed = {mode.value: counts for mode, counts in self._expected.items() if counts}
        state.seeded = {mode.value: sorted(names) for mode, names in self._seeded.items() if names}
        progress.outside += self._outside
        for table, images in self._logged.items():
            progress.of(table).logged += images
            state.logged[table.plain] = state.logged.get(table.plain, 0) + images
        for why, tables in self._left_out.items():
            for table, images in tables.items():
                kept = state.left_out.setdefault(table.plain, {})
                for known in (progress.of(table).left_out, kept):
                    known[why] = known.get(why, 0) + images


def _is_in(database: str | None, table: str) -> bool:
    return database is None or table.startswith(f"{database}.")


def _different(
    mode: Mode, table: TableName, expected: int, found: int, pieces: Sequence[Rows]
) -> StoreError:
    where = f" up to GTID {pieces[-1].last_gtid}" if pieces else ""
    return StoreError(
        f"the log has {expected} row images of it{where}, and its {mode.value} table would have"
        f" {found}"
        if pieces
        else f"the log has {expected} row images of it, and its {mode.value} table has {found}",
        path=table.plain,
        hint=_HINT,
    )
