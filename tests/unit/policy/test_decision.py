"""The decision table of seed 002, row by row, and what engines can."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import pytest

from binlane.errors import NotLoggableError
from binlane.policy import Capability, Decision, Problem, capability, decide
from binlane.policy.decision import DECISIONS
from binlane.sql import LoggingFormat, LoggingMode

VECTORS = Path(__file__).parents[2] / "vectors/decision.tsv"
FORMATS = {"STMT": LoggingFormat.STATEMENT, "ROW": LoggingFormat.ROW, "": None}


def _rows() -> list[dict[str, str]]:
    with VECTORS.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def _rule(row: dict[str, str]) -> str:
    capable = f"{row['row_capable']}{row['statement_capable']}"
    return f"002:decision-{row['safe']}-{row['binlog_format']}-{capable}".lower()


CASES = [pytest.param(row, id=_rule(row), marks=pytest.mark.rule(_rule(row))) for row in _rows()]


@pytest.mark.parametrize("row", CASES)
def test_decision(row: dict[str, str]) -> None:
    decision = decide(
        is_unsafe=row["safe"] == "Unsafe",
        logging_mode=LoggingMode[row["binlog_format"]],
        capability=Capability(
            is_row_capable=row["row_capable"] == "Y",
            is_statement_capable=row["statement_capable"] == "Y",
        ),
    )
    problem = Problem(row["problem"]) if row["problem"] else None
    assert decision == Decision(FORMATS[row["log_as"]], problem)


def test_the_vectors_are_the_whole_table() -> None:
    assert len(CASES) == len(DECISIONS) == 24
    capabilities = (
        Capability(row, statement) for row, statement in product((True, False), repeat=2)
    )
    assert set(DECISIONS) == set(product((False, True), LoggingMode, capabilities))


@pytest.mark.rule("002:mode-and-format")
def test_a_format_is_the_outcome_and_none_is_an_error() -> None:
    for decision in DECISIONS.values():
        assert (decision.logging_format is None) == (decision.problem is Problem.NOT_LOGGABLE)


@pytest.mark.rule("002:row-capable")
@pytest.mark.rule("002:statement-capable")
@pytest.mark.parametrize(
    "engine, is_row_capable, is_statement_capable",
    [
        pytest.param(name, row, statement, id=name, marks=pytest.mark.rule(f"002:engine-{rule}"))
        for name, rule, row, statement in [
            ("ndbcluster", "ndbcluster", True, False),
            ("ARCHIVE", "archive", True, True),
            ("BLACKHOLE", "blackhole", False, True),
            ("CSV", "csv", True, True),
            ("EXAMPLE", "example", True, False),
            ("FEDERATED", "federated", True, True),
            ("MEMORY", "memory", True, True),
            ("MyISAM", "myisam", True, True),
            ("MRG_MyISAM", "merge", True, True),
        ]
    ],
)
def test_engines(engine: str, *, is_row_capable: bool, is_statement_capable: bool) -> None:
    assert capability([engine]) == Capability(is_row_capable, is_statement_capable)


@pytest.mark.rule("002:set-capable")
def test_a_set_of_tables_can_what_all_of_them_can() -> None:
    assert capability([]) == Capability(is_row_capable=True, is_statement_capable=True)
    assert capability(["CSV", "EXAMPLE"]) == capability(["EXAMPLE"])
    assert capability(["BLACKHOLE", "EXAMPLE"]) == Capability(
        is_row_capable=False, is_statement_capable=False
    )


def test_an_unknown_engine_is_not_guessed() -> None:
    with pytest.raises(NotLoggableError, match="storage engine Falcon") as raised:
        capability(["CSV", "Falcon"])
    assert "BLACKHOLE" in raised.value.hint
