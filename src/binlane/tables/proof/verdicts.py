"""The outcome of a comparison of one table, as it is shown and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, Final, Self

from binlane.visible import visible

MISSING_IN_BINLOG: Final = "missing in the binlog"
MISSING_ON_SERVER: Final = "missing on the server"
MISSING_AT_SOURCE: Final = "missing at the source"
OTHER_COLUMNS: Final = "other columns"
OTHER_VALUES: Final = "other values"
MISSING_CHANGE: Final = "a change of it is missing in the binlog"
NO_TABLE: Final = "the server has no such table"


class ComparisonOutcome(Enum):
    """Outcomes of a comparison of one table with one server."""

    EQUAL = "equal"
    """The binlog describes exactly the rows that the server has."""
    DIFFERENT = "different"
    """It does not, and a second comparison at a later GTID found the same."""
    NOT_COMPARED = "not compared"
    """The comparison could not be made, or proves nothing; the reason says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstDifference:
    """A row that differs: the one with the lowest key among those that were found.

    Attributes:
        key: The row's key, such as `id=17`; empty if it cannot be told.
        kind: One of the texts above; empty if no row was found.
        columns: Names of the columns whose values differ.
        binlog_gtid: GTID of the last group of the binlog that has the row; empty if none was found.
        rows: Number of rows that were found to differ, in the buckets that were looked at.
        buckets: Number of buckets of the table that differ, of 1,024.
    """

    key: str = ""
    kind: str = ""
    columns: tuple[str, ...] = ()
    binlog_gtid: str = ""
    rows: int = 0
    buckets: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonStep:
    """The work that a comparison does at present, or the thing that it waits for.

    Attributes:
        binlog: Name of the binlog that is compared; empty before it is known.
        table: Name of the table, `shop.orders`; empty where it is not about one table.
        server: `source`, or a replica's address; empty where it is not about one server.
        doing: The work or the wait in some words, such as `reading its rows`.
        since_s: Begin of the step, in seconds since 1970.
    """

    binlog: str = ""
    table: str = ""
    server: str = ""
    doing: str
    since_s: float = 0.0

    @property
    def text(self) -> str:
        """The step in one line for people, without its time."""
        of_table = f"{self.table} ({self.server}): " if self.table else ""
        of_binlog = f"binlog {self.binlog}: " if self.binlog else ""
        return f"{of_binlog}{of_table}{self.doing}"

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Read the plain values of a step; what another version of binlane wrote is left out."""
        return cls(**{name: values[name] for name in cls.__dataclass_fields__ if name in values})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVerdict:
    """The last comparison of a table of a binlog with a server.

    Attributes:
        binlog: Name of the table's binlog.
        table: Name of the table, `shop.orders`.
        server: `source`, or a replica's address.
        finding: The outcome of the comparison.
        gtid: Position up to which the table was compared; empty if it was not.
        since: Position from which on the binlog's changes were compared.
        is_whole: True if the binlog has all rows of the table, False if only changes since `since`
            were compared.
        is_direct: True if a replica was compared with the source's rows, as where the binlog does
            not tell them.
        rows: Number of rows on the server.
        moving: Number of them that changed while they were read, of which nothing was compared.
        at_s: End of the comparison, in seconds since 1970.
        seconds: Time that the comparison took.
        reason: The reason why there was no comparison; empty if there was one.
        first: The first difference; None if there is none.
        equal_gtid: Position as of which the table was last found equal; empty if it never was.
    """

    binlog: str
    table: str
    server: str
    finding: ComparisonOutcome
    gtid: str = ""
    since: str = ""
    is_whole: bool = False
    is_direct: bool = False
    rows: int = 0
    moving: int = 0
    at_s: float = 0.0
    seconds: float = 0.0
    reason: str = ""
    first: FirstDifference | None = None
    equal_gtid: str = ""

    @property
    def text(self) -> str:
        """The outcome in one line for people."""
        if self.finding is ComparisonOutcome.EQUAL:
            since = "" if self.is_whole else f"; changes since {self.since or 'the beginning'}"
            to = " to the source" if self.is_direct else ""
            moving = f", {self.moving:,} of them changing" if self.moving else ""
            return f"equal{to} as of GTID {self.gtid or 'none'}, {self.rows:,} rows{moving}{since}"
        if self.finding is ComparisonOutcome.NOT_COMPARED:
            return f"not compared: {self.reason}"
        first = self.first or FirstDifference()
        place = f"{visible(first.key)}: " if first.key else ""
        if first.kind == MISSING_ON_SERVER and not first.key:
            place = f"{_rows(first.rows)} whose key no file of the binlog has: "
        columns = f" ({visible(', '.join(first.columns))})" if first.columns else ""
        known = f", equal as of {self.equal_gtid}" if self.equal_gtid else ""
        last = f", in the binlog last at GTID {first.binlog_gtid}" if first.binlog_gtid else ""
        what = first.kind or f"{first.buckets} of 1024 parts of the table"
        other = " from the source" if self.is_direct else ""
        return f"DIFFERENT{other} as of GTID {self.gtid}{known}; {place}{what}{columns}{last}"

    def json(self) -> dict[str, Any]:
        """The verdict as plain values."""
        return {**asdict(self), "finding": self.finding.value}

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Read what `json` gave; what another version of binlane wrote beside that is left out."""
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        known["finding"] = ComparisonOutcome(known["finding"])
        if (first := known.get("first")) is not None:
            known["first"] = FirstDifference(**{**first, "columns": tuple(first["columns"])})
        return cls(**known)


def _rows(count: int) -> str:
    return "a row" if count == 1 else f"{count:,} rows"
