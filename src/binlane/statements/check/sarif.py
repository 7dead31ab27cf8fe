"""The report for code scanning: SARIF 2.1.0, written piece by piece, so that it can be long.

Source: OASIS Static Analysis Results Interchange Format 2.1.0, §3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

from binlane.statements.check.findings import (
    UNANALYSED,
    CheckedStatement,
    Finding,
    Kind,
    hints,
    main_why,
    place_of,
)
from binlane.statements.check.reasons import DESCRIPTIONS, short_name
from binlane.statements.check.report import Judged, Report, Tally

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_OTHER: Final = "BINLANE_OTHER_ERROR"
_RULES: Final = {
    **DESCRIPTIONS,
    UNANALYSED: "A statement could not be analysed, so nothing is known of it.",
    "ER_NO_SUCH_TABLE": "A table is not known.",
    _OTHER: "The server refuses the statement for another reason.",
}
_INDEXES: Final = {symbol: index for index, symbol in enumerate(_RULES)}


class SarifReport(Report):
    """One SARIF log of one run.

    Args:
        version: Version of binlane, for the tool's entry.
    """

    def __init__(self, version: str) -> None:
        self._version = version
        self._comma = ""

    def begin(self) -> Iterator[str]:
        """Everything before the first result."""
        driver = {
            "name": "binlane",
            "semanticVersion": self._version,
            "rules": [_rule(symbol, text) for symbol, text in _RULES.items()],
        }
        head = json.dumps({"tool": {"driver": driver}, "columnKind": "unicodeCodePoints"})
        yield f'{{"$schema": "{SCHEMA}", "version": "2.1.0", "runs": [{head[:-1]}, "results": ['

    def statement(
        self, script: str, checked: CheckedStatement, judged: Sequence[Judged]
    ) -> Iterator[str]:
        """One result for each finding; those that do not count are suppressed."""
        for finding, counts in judged:
            yield self._comma + json.dumps(_result(script, checked, finding, counts=counts))
            self._comma = ","

    def end(self, tally: Tally) -> Iterator[str]:
        """Everything behind the last result."""
        invocation = {
            "executionSuccessful": not tally.unreadable,
            "exitCode": tally.exit_code,
            "toolExecutionNotifications": [
                {
                    "level": "error",
                    "message": {"text": message},
                    "locations": [
                        {"physicalLocation": {"artifactLocation": {"uri": _uri(script)}}}
                    ],
                }
                for script, message in tally.unreadable
            ],
        }
        yield f'], "invocations": [{json.dumps(invocation)}]}}]}}'


def _result(
    script: str, checked: CheckedStatement, finding: Finding, *, counts: bool
) -> dict[str, Any]:
    symbol = finding.symbol if finding.symbol in _INDEXES else _OTHER
    place = place_of(checked.statement, main_why(finding))
    region = {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }
    location = {"artifactLocation": {"uri": _uri(script)}, "region": region}
    told: dict[str, Any] = {
        "ruleId": short_name(symbol),
        "ruleIndex": _INDEXES[symbol],
        "level": "warning" if finding.kind < Kind.REFUSED else "error",
        "message": {"text": _message(finding)},
        "locations": [{"physicalLocation": location}],
        # Holds when lines are added above: what was found in which text.
        "partialFingerprints": {
            "statement/v1": _fingerprint(finding.symbol, checked.statement.sql)
        },
        "properties": {"symbol": finding.symbol, "binlogs": list(finding.binlogs)},
    }
    if not counts:
        told["suppressions"] = [{"kind": "external", "justification": "--allow"}]
    return told


def _rule(symbol: str, text: str) -> dict[str, Any]:
    return {
        "id": short_name(symbol),
        "name": "".join(word.capitalize() for word in symbol.split("_")),
        "shortDescription": {"text": text},
    }


def _message(finding: Finding) -> str:
    parts = [finding.message if finding.message.endswith(".") else f"{finding.message}."]
    for why in finding.whys:
        if why.what:
            parts += [", through ".join((why.what, *why.through)) + "."]
    parts += (f"Hint: {hint}." for hint in hints(finding))
    return " ".join(dict.fromkeys(parts))


def _uri(script: str) -> str:
    path = script.replace("\\", "/")
    return quote(path.encode("utf-8", "surrogateescape"), safe="/@!$&'()*+,;=~-._")


def _fingerprint(symbol: str, sql: str) -> str:
    text = f"{symbol}\0{sql}".encode("utf-8", "surrogatepass")
    return sha256(text).hexdigest()[:32]
