"""Landed tables beside a moment of the server whose log was landed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.names import TableName
from binlane.tables.landing.landing_progress import LandingReport
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.landing.tables.opening import open_store
from binlane.tables.landing.tables.store_settings import TableStoreSettings
from binlane.tables.landing.tables.table_store import OWN_COLUMNS
from tests.land_kill import PLACE, logged_images
from tests.land_recording import Contents, Moment, Recording
from tests.land_workload import DATABASES
from tests.landed import plain_rows
from tests.landed_select import Row, landed_values, selected_values

_OWN: Final = frozenset({*OWN_COLUMNS.names, "_deleted_at", "valid_from", "valid_to", "is_current"})
_SIGNS: Final = {"insert": 1, "update_after": 1, "delete": -1, "update_before": -1}


@dataclass(slots=True)
class Verdict:
    """What became of the tables of landings.

    Attributes:
        counts: Comparisons by what was compared and how it ended.
        reasons: Why tables were given up.
        wrong: What differs, in words.
    """

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, kind: str, what: str, difference: str) -> None:
        """One more comparison."""
        self.counts[f"{kind} {'wrong' if difference else 'equal'}"] += 1
        if difference:
            self.wrong.append(f"{kind} {what}: {difference}")

    def update(self, other: Verdict) -> None:
        """Count others', too."""
        self.counts.update(other.counts)
        self.reasons.update(other.reasons)
        self.wrong += other.wrong


class Comparison:
    """Compares the tables of a lake with a moment of the server.

    Args:
        recording: Of the server.
        log: As it was landed.
        lake: The target.
        table_format: Of the tables.
        report: What the landing said at its end.
    """

    def __init__(
        self,
        recording: Recording,
        log: Path,
        lake: Path,
        table_format: FormatName,
        report: LandingReport,
    ) -> None:
        self._recording = recording
        self._log = log
        self._lake = lake
        self._format = table_format
        self._report = report
        self.verdict = Verdict()

    def compare(self, moment: Moment) -> Verdict:
        """All of them."""
        kept = {mode: self._names(mode) for mode in Mode}
        for table, contents in moment.tables.items():
            told = self._report.tables.get(table.plain)
            why_not = told.why_not or told.lacks if told else ""
            if why_not:
                self.verdict.counts["current given up"] += 1
                self.verdict.reasons[_reason(why_not)] += 1
            elif table not in kept[Mode.CURRENT]:
                difference = f"is not there; {len(contents.rows)} rows" if contents.rows else ""
                self.verdict.add("current", table.plain, difference)
            else:
                is_kept = table in kept[Mode.HISTORY]
                why_not = told.no_history if told else ""
                self._table(table, contents, is_kept=is_kept, why_not=why_not)
        for table in kept[Mode.CURRENT] - moment.tables.keys():
            self.verdict.add("current", table.plain, "is there, and not on the server")
        self._changes(kept[Mode.CHANGES])
        return self.verdict

    def _names(self, mode: Mode) -> set[TableName]:
        keeping = TableStoreSettings(run_id="look")
        return set(open_store(str(self._lake), mode, self._format, "look", keeping).names())

    def _rows(self, mode: Mode, table: TableName) -> pa.Table:
        return plain_rows(self._lake, self._format, mode, table)

    def _table(self, table: TableName, contents: Contents, *, is_kept: bool, why_not: str) -> None:
        rows = self._rows(Mode.CURRENT, table)
        schema = _own_schema(rows)
        missing = [name for name in schema.names if name not in contents.names]
        if missing or len(schema) != len(contents.names):
            difference = f"has {schema.names}, not {list(contents.names)}"
            self.verdict.add("current", table.plain, difference)
            return
        places = [contents.names.index(name) for name in schema.names]
        try:
            expected = selected_values(
                ([row[at] for at in places] for row in contents.rows), schema
            )
        except (ValueError, ArithmeticError) as error:
            self.verdict.add("current", table.plain, f"is of other types: {error}")
            return
        found = landed_values(rows, schema)
        self.verdict.add("current", table.plain, _difference(expected, found, schema.names))
        if not why_not and (is_kept or found):
            self._history(table, found, schema, is_kept=is_kept)
        self._replay(table, found, schema)

    def _history(
        self, table: TableName, current: Counter[Row], schema: pa.Schema, *, is_kept: bool
    ) -> None:
        if not is_kept:
            self.verdict.add("history", table.plain, "is not there")
            return
        rows = self._rows(Mode.HISTORY, table)
        rows = rows.filter(rows.column("is_current"))
        if not set(schema.names) <= set(rows.column_names):
            # Columns come with rows.
            self.verdict.add("history", table.plain, "lacks columns" if current else "")
            return
        holding = landed_values(rows, schema)
        self.verdict.add("history", table.plain, _difference(current, holding, schema.names))

    def _changes(self, kept: set[TableName]) -> None:
        files = sorted(self._log.iterdir())
        logged: dict[TableName, Counter[Row]] = {}
        for image in logged_images(files):
            if image.table.database in DATABASES:
                logged.setdefault(image.table, Counter())[tuple(image[1:5])] += 1
        for table in logged.keys() | kept:
            images: Counter[Row] = Counter()
            if table in kept:
                rows = self._rows(Mode.CHANGES, table)
                images.update(zip(*(rows[name].to_pylist() for name in PLACE), strict=True))
            difference = _difference(logged.get(table, Counter()), images, PLACE)
            self.verdict.add("changes", table.plain, difference)

    def _replay(self, table: TableName, current: Counter[Row], schema: pa.Schema) -> None:
        if table.plain in self._recording.changed or table not in self._names(Mode.CHANGES):
            return
        rows = self._rows(Mode.CHANGES, table)
        if not set(schema.names) <= set(rows.column_names):
            return
        held: Counter[Row] = Counter()
        for op, sign in _SIGNS.items():
            is_such: Any = pc.equal(rows.column("_op"), pa.scalar(op))
            images = landed_values(rows.filter(is_such), schema)
            for row, count in images.items():
                held[row] += sign * count
        held = Counter({row: count for row, count in held.items() if count})
        self.verdict.add("replay", table.plain, _difference(current, held, schema.names))


def _own_schema(rows: pa.Table) -> pa.Schema:
    return pa.schema([each for each in rows.schema if each.name not in _OWN])


def _difference(expected: Counter[Row], found: Counter[Row], names: Sequence[str]) -> str:
    """What differs, in words; empty if nothing does."""
    if expected == found:
        return ""
    missing, more = [*(expected - found).elements()], [*(found - expected).elements()]
    columns = [
        f"{name}: {sorted({repr(row[at])[:60] for row in missing})[:4]} not"
        f" {sorted({repr(row[at])[:60] for row in more})[:4]}"
        for at, name in enumerate(names)
        if {repr(row[at]) for row in missing} != {repr(row[at]) for row in more}
    ]
    return f"{len(missing)} rows are missing, {len(more)} too many; {'; '.join(columns)}"


def _reason(text: str) -> str:
    """A reason without what is of one table alone."""
    text = re.sub(r"\(?\S+\.\d{6}:\d+\)?", "", text)
    text = re.sub(r"(ALTER|CREATE|INSERT|UPDATE|DELETE|REPLACE|LOAD) .*", r"\1 …", text)
    return re.sub(r"\b[vwgjt]\d+\b|\d+|(shop|crm)\.\S+", "#", text)[:110]
