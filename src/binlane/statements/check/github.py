"""The report for GitHub Actions: workflow commands that become annotations.

Source: GitHub's documentation of workflow commands; escapes as @actions/core makes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from binlane.statements.check.findings import (
    CheckedStatement,
    Finding,
    Kind,
    hints,
    main_why,
    place_of,
)
from binlane.statements.check.reasons import short_name
from binlane.statements.check.report import Judged, Report, Tally


class GithubReport(Report):
    """Annotates findings that count: notes as warnings, all others as errors."""

    def statement(
        self, script: str, checked: CheckedStatement, judged: Sequence[Judged]
    ) -> Iterator[str]:
        """One annotation for each finding that counts."""
        for finding, counts in judged:
            if counts:
                is_error = finding.kind is not Kind.UNSAFE
                yield annotation(script, checked, finding, is_error=is_error)

    def end(self, tally: Tally) -> Iterator[str]:
        """Give an error for each script that could not be read."""
        for script, message in tally.unreadable:
            yield f"::error file={_property(script)},title=not read::{_data(message)}"


def annotation(script: str, checked: CheckedStatement, finding: Finding, *, is_error: bool) -> str:
    """Return the workflow command of one finding, without its line end.

    Args:
        script: The path as the user gave it.
        checked: The statement with its result.
        finding: One of the statement's findings.
        is_error: True for an error, False for a warning.
    """
    why = main_why(finding)
    place = place_of(checked.statement, why)
    name = short_name(finding.symbol)
    title = f"{name} ({finding.errno})" if finding.errno else name
    lines = [finding.message]
    if finding.binlogs and finding.kind is not Kind.UNANALYSED:
        lines.append(f"binlogs: {', '.join(finding.binlogs)}")
    for cause in finding.whys:
        if cause.what:
            lines += [" through ".join((cause.what, *cause.through))]
    lines += (f"hint: {hint}" for hint in hints(finding))
    properties = {
        "file": script,
        "line": place.line,
        "endLine": place.end_line,
        "col": place.column,
        "endColumn": max(place.end_column - 1, place.column),
        "title": title,
    }
    told = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    level = "error" if is_error else "warning"
    return f"::{level} {told}::{_data(chr(10).join(lines))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
