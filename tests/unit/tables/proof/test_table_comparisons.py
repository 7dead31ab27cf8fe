"""Comparisons of several tables: what they need is done once for those that wait together."""

from __future__ import annotations

from typing import Any

import pytest

from binlane.errors import PeerError
from binlane.names import TableName
from binlane.tables.proof import table_comparisons
from binlane.tables.proof.progress_waits import InterruptedReadingError, NotComparableError
from binlane.tables.proof.table_comparisons import Comparing, TableComparisons
from binlane.tables.proof.verdicts import ComparisonOutcome, TableVerdict

A, B, C, D = (TableName("shop", name) for name in "abcd")


class _Script(TableComparisons):
    """Comparisons that do what a script says of each table: wait, fail, or end.

    Attributes:
        calls: What happened, in order.
        steps: The steps that were told, in order.
    """

    def __init__(self, script: dict[TableName, list[list[object]]]) -> None:
        self.calls: list[str] = []
        self.steps: list[str] = []
        self._script = script

    def compare(self, name: TableName) -> Comparing:
        """As `TableComparisons.compare`."""
        try:
            for step in self._script[name].pop(0):
                if isinstance(step, Exception):
                    raise step
                self.calls.append(f"{name.table} waits")
                yield self.mark if step == "mark" else self.fail
        finally:
            self.calls.append(f"{name.table} ends")
        return self._verdict(name, ComparisonOutcome.EQUAL)

    def missing(self, name: TableName) -> Comparing:
        """As `TableComparisons.missing`."""
        return self.compare(name)

    def mark(self) -> None:
        """Come to a mark."""
        self.calls.append("mark")

    def fail(self) -> None:
        """Come to no mark."""
        raise NotComparableError("no mark comes")

    def _verdict(self, name: TableName, finding: ComparisonOutcome, **facts: Any) -> TableVerdict:
        return TableVerdict(
            binlog="b",
            table=name.table,
            server="s",
            finding=finding,
            reason=facts.get("reason", ""),
        )

    def _tell(self, name: TableName, doing: str) -> None:
        self.steps.append(f"{name.table}: {doing}")

    def told(self) -> list[tuple[str, str]]:
        """Tables in the order of their verdicts, each with why it was not compared."""
        tables = [(name, True) for name in self._script]
        return [(each.table, each.reason) for each in self.verdicts(tables)]


def test_tables_wait_together() -> None:
    script = _Script({A: [["mark"]], B: [["mark", "mark"]], C: [[]]})
    assert script.told() == [("c", ""), ("a", ""), ("b", "")]
    assert script.calls == [
        *("a waits", "b waits", "c ends", "mark", "a ends", "b waits", "mark", "b ends"),
    ]
    waiting = "waiting until the binlog has all that was read"
    assert script.steps == [
        *("a: reading its rows", "b: reading its rows", "c: reading its rows", f"a: {waiting}"),
        *("a: comparing its rows", "b: comparing its rows", f"b: {waiting}"),
        "b: comparing its rows",
    ]


def test_tables_that_need_nothing_end_no_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_comparisons, "_TOGETHER_S", 0.0)
    script = _Script({A: [[NotComparableError("no")]], B: [[]], C: [["mark"]], D: [["mark"]]})
    assert script.told() == [("a", "no"), ("b", ""), ("c", ""), ("d", "")]
    assert script.calls.count("mark") == 2


def test_what_came_between_is_compared_again_and_what_fails_is_told() -> None:
    interrupted = InterruptedReadingError("renamed")
    script = _Script(
        {
            A: [["mark", interrupted], ["mark"]],
            B: [["mark", interrupted], [interrupted], [interrupted]],
            C: [["fail"]],
            D: [["mark"]],
        }
    )
    assert sorted(script.told()) == [
        *(("a", ""), ("b", "renamed"), ("c", "no mark comes"), ("d", "")),
    ]


def test_a_server_that_goes_away_ends_all() -> None:
    script = _Script({A: [["mark"]], B: [[PeerError("gone", peer="s", phase="x", errno=2013)]]})
    with pytest.raises(PeerError, match="gone"):
        script.told()
    assert script.calls[-1] == "a ends"
