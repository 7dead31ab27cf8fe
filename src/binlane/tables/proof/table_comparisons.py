"""Comparisons of several tables, which wait together for what each of them needs.

A comparison of one table is a generator. It gives what has to be done before it can go on, such as to
follow the binlog to its next mark, which the store writes every second. What several tables give is
done once for all of them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from binlane.client.rows.logged_table import TableChangedError
from binlane.client.rows.waiting_statements import LOCK_TIMEOUT, LOCK_WAIT_S, TableWantedError
from binlane.errors import CodecError, PeerError, UnsupportedError
from binlane.names import TableName
from binlane.tables.proof.compared_server import GONE, ComparedServer
from binlane.tables.proof.described_binlog import DescribedBinlog
from binlane.tables.proof.progress_waits import (
    ComparisonLimits,
    InterruptedReadingError,
    NotComparableError,
)
from binlane.tables.proof.verdicts import ComparisonOutcome, ComparisonStep, TableVerdict

Comparing = Generator[Callable[[], None], None, TableVerdict]
"""A comparison of one table: it gives functions, goes on when they were called, and ends in a verdict."""

_ATTEMPTS: Final = 3
_TOGETHER_S: Final = 1.0
"""As long as tables are begun before the first of them goes on: so long the next mark may take."""
_TOGETHER_MAX: Final = 64
"""Tables that have files open at the same time."""
_LOST: Final = frozenset({0, 1053, 1927, 2006, 2013, 3169, 4031})
"""Errors with which a server ends a session."""


class TableComparisons(ABC):
    """Compares tables of one binlog with one server.

    Args:
        binlog: The binlog, which is followed as far as comparing needs.
        server: The server to compare with.
        limits: Limits that hold for each comparison; who observes them is told of each step.
    """

    def __init__(
        self, binlog: DescribedBinlog, server: ComparedServer, limits: ComparisonLimits
    ) -> None:
        self._binlog = binlog
        self._server = server
        self._limits = limits

    @abstractmethod
    def compare(self, name: TableName) -> Comparing:
        """Compare a table; a difference is looked at once more before it counts.

        Raises:
            NotComparableError: If the table cannot be compared.
            PeerError: If a server refuses something, or goes away.
            CodecError: With file and position, if the binlog is damaged.
            StoreError: If the disk fails.
        """

    @abstractmethod
    def missing(self, name: TableName) -> Comparing:
        """Judge a table that the server has not; errors are those of `compare`."""

    def verdicts(self, begun: Iterable[tuple[TableName, bool]]) -> Iterator[TableVerdict]:
        """Compare tables, several at a time; what something came between is compared again.

        Args:
            begun: Names of tables, each with True if the server has the table.

        Yields:
            The verdict on each table.

        Raises:
            PeerError: If a server goes away.
            CodecError: With file and position, if the binlog is damaged.
            StoreError: If the disk fails.
        """
        left = iter(begun)
        waiting: list[_ComparedTable] = []
        try:
            while True:
                yield from self._start(left, waiting)
                if not waiting:
                    return
                self._tell(waiting[0].name, "waiting until the binlog has all that was read")
                failures = _done(each.need for each in waiting)
                for table in tuple(waiting):
                    waiting.remove(table)
                    yield from self._go_on(table, waiting, failures.get(table.need))
        finally:
            for table in waiting:
                table.comparing.close()

    def not_compared(self, name: TableName, reason: str) -> TableVerdict:
        """The verdict on a table that could not be compared."""
        return self._verdict(name, ComparisonOutcome.NOT_COMPARED, reason=reason)

    def _tell(self, name: TableName, doing: str) -> None:
        """Tell whoever observes which step of a table's comparison begins."""
        step = ComparisonStep(
            binlog=self._binlog.name,
            table=name.plain,
            server=self._server.address.label,
            doing=doing,
            since_s=time.time(),
        )
        self._limits.observe(step)

    def _verdict(self, name: TableName, finding: ComparisonOutcome, **facts: Any) -> TableVerdict:
        return TableVerdict(
            binlog=self._binlog.name,
            table=name.plain,
            server=self._server.address.label,
            finding=finding,
            **facts,
        )

    def _start(
        self, left: Iterator[tuple[TableName, bool]], waiting: list[_ComparedTable]
    ) -> Iterator[TableVerdict]:
        """Begin to compare further tables, until those that wait have waited long enough."""
        begun_s = time.monotonic()
        while not waiting or (
            len(waiting) < _TOGETHER_MAX and time.monotonic() - begun_s < _TOGETHER_S
        ):
            following = next(left, None)
            if following is None:
                return
            name, is_there = following
            method = self.compare if is_there else self.missing
            yield from self._go_on(_ComparedTable(name, method), waiting, None)

    def _go_on(
        self, table: _ComparedTable, waiting: list[_ComparedTable], failure: Exception | None
    ) -> Iterator[TableVerdict]:
        """Go on with a table until it waits again, or has its verdict."""
        while True:
            is_begun = table.need is not _no_need
            self._tell(table.name, "comparing its rows" if is_begun else "reading its rows")
            try:
                table.need = (
                    next(table.comparing) if failure is None else table.comparing.throw(failure)
                )
            except StopIteration as end:
                yield table.timed(end.value)
            except (
                *(NotComparableError, UnsupportedError, TableChangedError, TableWantedError),
                PeerError,
            ) as error:
                if _is_lost(error):
                    raise
                if table.is_again(error):
                    failure = None
                    continue
                yield table.timed(self.not_compared(table.name, _reason(error)))
            else:
                waiting.append(table)
            return


def _no_need() -> None:
    """Nothing is to be done."""


@dataclass(slots=True, eq=False)
class _ComparedTable:
    """A table while it is compared.

    Attributes:
        name: Name of the table that is compared.
        begin: Method that begins a comparison of it.
        comparing: The comparison that runs at present.
        need: The function that has to be called before it goes on.
        attempts: Number of comparisons that were begun.
        begun_s: Time of the first one, by the monotonic clock.
    """

    name: TableName
    begin: Callable[[TableName], Comparing]
    comparing: Comparing = field(init=False)
    need: Callable[[], None] = _no_need
    attempts: int = 1
    begun_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """Begin the comparison."""
        self.comparing = self.begin(self.name)

    def is_again(self, error: Exception) -> bool:
        """True if the comparison is begun once more behind an error."""
        is_passing = isinstance(
            error, InterruptedReadingError | TableChangedError | TableWantedError
        )
        if not is_passing or self.attempts >= _ATTEMPTS:
            return False
        self.attempts += 1
        self.comparing = self.begin(self.name)
        return True

    def timed(self, verdict: TableVerdict) -> TableVerdict:
        """The verdict with its time."""
        seconds = round(time.monotonic() - self.begun_s, 3)
        return replace(verdict, at_s=time.time(), seconds=seconds)


def _done(needs: Iterable[Callable[[], None]]) -> dict[Callable[[], None], Exception]:
    """Do what tables need, each thing once; give what failed, with its error."""
    failures: dict[Callable[[], None], Exception] = {}
    for need in dict.fromkeys(needs):
        try:
            need()
        except (NotComparableError, UnsupportedError, PeerError) as error:
            if _is_lost(error):
                raise
            failures[need] = error
    return failures


def _is_lost(error: Exception) -> bool:
    return isinstance(error, PeerError) and (error.errno is None or error.errno in _LOST)


def _reason(error: Exception) -> str:
    if isinstance(error, PeerError) and error.errno in GONE:
        return "it was dropped meanwhile"
    if isinstance(error, PeerError) and error.errno == LOCK_TIMEOUT:
        return f"a session of the server held it locked for {LOCK_WAIT_S} s"
    if isinstance(error, CodecError | PeerError | TableWantedError):
        return error.message
    return str(error)
