"""The report for programs: one JSON object a line for every statement."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from binlane.check.findings import (
    CheckedStatement,
    place_of,
    unanalysed_finding,
    what_is_unanalysed,
)
from binlane.check.report import Judged, Report
from binlane.policy.refusals import Refusal, Why
from binlane.session.report import BinlogResult, Note, StatementResult
from binlane.sql.servers import LoggingFormat

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False)
_FORMATS: Final = {
    LoggingFormat.STATEMENT: "statement",
    LoggingFormat.ROW: "row",
    None: "none",
}


class JsonReport(Report):
    """Writes every statement.

    Args:
        explain: Also the steps of the decisions, and what leads to errors and notes.
    """

    def __init__(self, *, explain: bool = False) -> None:
        self._explain = explain

    def statement(
        self, script: str, checked: CheckedStatement, judged: Sequence[Judged]
    ) -> Iterator[str]:
        """Its object."""
        del judged
        yield json_line(script, checked, explain=self._explain)


def json_line(script: str, checked: CheckedStatement, *, explain: bool = False) -> str:
    """A statement's line, without its line end.

    Args:
        script: The path as the user gave it.
        checked: The statement and what it does.
        explain: Also the steps of the decision, and what leads to an error or note.
    """
    statement, result = checked.statement, checked.result
    told: dict[str, Any] = {
        "script": script,
        "statement": statement.number,
        "line": statement.line,
        "sql": statement.sql,
        "error": _error(result),
        "notes": [
            {
                "errno": note.errno,
                "reason": note.reason,
                "message": note.message,
                **_on_some_ways(note),
            }
            for note in result.notes
        ],
        "binlogs": {name: _binlog(binlog) for name, binlog in result.binlogs.items()},
    }
    if result.error is not None and result.error.others:
        told["more_errors"] = [_refusal(one) for one in result.error.others]
    unanalysed = what_is_unanalysed(result)
    if unanalysed is not None:
        (why,) = unanalysed_finding(unanalysed).whys
        place = place_of(statement, why)
        told["unanalysed"] = {
            "reason": unanalysed.reason,
            "line": place.line,
            "column": place.column,
        }
    if result.depends_on:
        told["ways"] = result.ways
        told["depends_on"] = [
            {"condition": one.text, "program": one.program, "offset": one.offset}
            for one in result.depends_on
        ]
    if explain:
        told["why"] = _whys(result)
        for name, binlog in result.binlogs.items():
            told["binlogs"][name]["steps"] = binlog.steps
    return _ENCODER.encode(told)


def _error(result: StatementResult) -> dict[str, Any] | None:
    if result.unanalysed is not None:
        finding = unanalysed_finding(result.unanalysed)
        return {
            "errno": finding.errno,
            "sqlstate": finding.sqlstate,
            "message": f"This statement could not be analysed: {finding.message}",
        }
    return None if result.error is None else _refusal(result.error)


def _refusal(error: Refusal) -> dict[str, Any]:
    return {
        "errno": error.errno,
        "sqlstate": error.sqlstate,
        "message": error.message,
        **_on_some_ways(error),
    }


def _on_some_ways(found: Refusal | Note) -> dict[str, bool]:
    return {"on_some_ways": True} if found.on_some_ways else {}


def _binlog(binlog: BinlogResult) -> dict[str, Any]:
    told = {"logged_as": _FORMATS[binlog.logged_as], "events": binlog.events}
    return told if binlog.ways == 1 else {**told, "ways": binlog.ways}


def _whys(result: StatementResult) -> list[dict[str, Any]]:
    whys: list[tuple[str, Why]] = []
    if result.error is not None:
        for error in (result.error, *result.error.others):
            whys += [(error.symbol, why) for why in error.why]
    whys += [(note.reason, note.why) for note in result.notes]
    return [
        {
            "reason": reason,
            "what": why.what,
            "through": why.through,
            "offset": why.offset,
            "length": why.length,
            "hint": why.hint,
        }
        for reason, why in whys
    ]
