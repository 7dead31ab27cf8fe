"""The report for people: each statement, its results, and the reasons, with the place underlined.

The report is made for terminals of 80 columns and more; styles are words, with escape codes on request.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final
from unicodedata import east_asian_width

from binlane.statements.check.findings import (
    PARSE_ERROR,
    CheckedStatement,
    Finding,
    Kind,
    depends_on,
    hints,
    place_of,
)
from binlane.statements.check.reasons import short_name
from binlane.statements.check.report import Judged, Report, Tally
from binlane.statements.check.script import ScriptStatement
from binlane.statements.policy.refusals import Refusal, Why
from binlane.statements.session.log_events import LoggedEvent
from binlane.statements.session.report import BinlogResult
from binlane.statements.sql.servers import LoggingFormat
from binlane.visible import visible

WIDTH_MIN: Final = 40
_CODES: Final = {"bad": "31;1", "warn": "33;1", "good": "32", "dim": "2", "bold": "1"}
_BLANKS: Final = dict.fromkeys(map(ord, "\t\n\r\v\f"), " ")
_SPACE: Final = re.compile(r"\s+")
_FORMATS: Final = {
    LoggingFormat.STATEMENT: "logged as statement",
    LoggingFormat.ROW: "logged as row",
    None: "not logged",
}
_TITLES: Final = {
    Kind.UNANALYSED: ("bad", "cannot be analysed"),
    Kind.REFUSED: ("bad", "error"),
    Kind.UNSAFE: ("warn", "note"),
    Kind.ALLOWED_UNSAFE: ("warn", "denied"),
}

_SUMMARY: Final = {
    Kind.UNANALYSED: "not analysed",
    Kind.REFUSED: "refused",
    Kind.UNSAFE: "unsafe",
    Kind.ALLOWED_UNSAFE: "denied",
}


class TextReport(Report):
    """Writes statements as text.

    Args:
        width: Number of columns of the terminal.
        color: Write escape codes for styles.
        explain: Write the steps of each decision and the events, too.
        is_quiet: Leave out the summary at the end.
    """

    def __init__(
        self,
        *,
        width: int = 80,
        color: bool = False,
        explain: bool = False,
        is_quiet: bool = False,
    ) -> None:
        self._width = max(width, WIDTH_MIN)
        self._color = color
        self._explain = explain
        self._is_quiet = is_quiet

    def statement(
        self, script: str, checked: CheckedStatement, judged: Sequence[Judged]
    ) -> Iterator[str]:
        """Give the lines on the statement, its result in each binlog, and its findings."""
        statement = checked.statement
        head = f"{printable(script)}:{statement.line}:"
        room = self._width - cells(head) - 1
        text = cut(printable(_SPACE.sub(" ", statement.sql)), max(room, 20))
        yield f"{self._styled('bold', head)} {text}"
        yield from self._binlogs(checked)
        for finding, counts in judged:
            yield from self._finding(statement, finding, counts=counts)

    def end(self, tally: Tally) -> Iterator[str]:
        """One line of counts."""
        if self._is_quiet:
            return
        told = [
            f"{tally.kinds[kind]} {word}" for kind, word in _SUMMARY.items() if tally.kinds[kind]
        ]
        if tally.allowed:
            told.append(f"{tally.allowed} allowed")
        if tally.unreadable:
            told.append(f"{_counted(len(tally.unreadable), 'script')} not read")
        style = "good" if tally.exit_code == 0 else "bad"
        seen = f"{_counted(tally.scripts, 'script')}, {_counted(tally.statements, 'statement')}"
        yield f"{seen}: {self._styled(style, ', '.join(told) or 'all safe')}"

    def _binlogs(self, checked: CheckedStatement) -> Iterator[str]:
        result = checked.result
        if result.unanalysed is not None:
            return
        error = result.error
        if error is not None and error.is_stated:
            if error.on_some_ways:
                yield f"  may fail with error {error.errno}: {printable(error.message)}"
            else:
                yield f"  fails with error {error.errno}, as the script states"
        noted = {name for note in result.notes for name in note.binlogs or result.binlogs}
        for name, binlog in result.binlogs.items():
            style, verdict = _verdict(name, binlog, error, is_noted=name in noted)
            form = checked.forms.get(name)
            clauses = "" if form is None or binlog.logged_as is None else ", ".join(form.clauses)
            told = f" ({clauses})" if clauses else ""
            yield f"  {printable(name)}: {self._styled(style, verdict)}{told}"
            if self._explain:
                yield from self._explanation(binlog)
        if result.depends_on:
            yield from self._wrapped(f"depends on data: {printable(depends_on(result))}", "  ")

    def _explanation(self, binlog: BinlogResult) -> Iterator[str]:
        for number, step in enumerate(binlog.steps, 1):
            yield from self._wrapped(printable(step), f"    {number}. ")
        for event in binlog.events:
            yield self._styled("dim", f"    > {_event(event, self._width - 6)}")

    def _finding(
        self, statement: ScriptStatement, finding: Finding, *, counts: bool
    ) -> Iterator[str]:
        style, title = _TITLES[finding.kind]
        name = short_name(finding.symbol)
        if finding.symbol == PARSE_ERROR:
            title = _TITLES[Kind.REFUSED][1]
        if finding.kind in (Kind.REFUSED, Kind.UNSAFE) or finding.symbol == PARSE_ERROR:
            title += f" {finding.errno}"
        if not counts:
            style, title = "dim", f"allowed {title}"
        message = f"{title} [{name}]: {printable(finding.message)}"
        lines = list(self._wrapped(message, "  "))
        lines[0] = lines[0].replace(title, self._styled(style, title), 1)
        yield from lines
        for why in finding.whys:
            if why.what or why.length:
                yield from self._underlined(statement, why, style)
        for hint in hints(finding):
            yield from self._wrapped(f"hint: {printable(hint)}", "  ")

    def _underlined(self, statement: ScriptStatement, why: Why, style: str) -> Iterator[str]:
        place = place_of(statement, why)
        offset = min(why.offset, len(statement.sql))
        line_start = statement.sql.rfind("\n", 0, offset) + 1
        line = statement.sql[line_start:].partition("\n")[0]
        gutter = f"{place.line:>5} | "
        begin = offset - line_start
        end = min(begin + place.end_column - place.column, max(len(line), begin + 1))
        text, begin, end = window(line, begin, end, self._width - len(gutter))
        pad, marks = cells(text[:begin]), max(cells(text[begin:end]), 1)
        yield f"{self._styled('dim', gutter)}{text}"
        below = " " * (len(gutter) - 2) + "| " + " " * pad
        marked = self._styled(style, "^" + "~" * (marks - 1))
        what = printable(_cause(why))
        room = self._width - len(gutter) - pad - marks - 1
        if cells(what) <= room:
            yield f"{below}{marked} {what}".rstrip()
        else:
            yield f"{below}{marked}"
            yield from self._wrapped(what, " " * len(gutter))

    def _wrapped(self, text: str, indent: str) -> Iterator[str]:
        yield from textwrap.wrap(
            text,
            self._width,
            initial_indent=indent,
            subsequent_indent=" " * len(indent) + ("  " if indent.isspace() else ""),
            break_on_hyphens=False,
        )

    def _styled(self, style: str, text: str) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self._color and style else text


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _verdict(
    name: str, binlog: BinlogResult, error: Refusal | None, *, is_noted: bool
) -> tuple[str, str]:
    if error is not None and not error.is_stated:
        if any(not one.binlogs or name in one.binlogs for one in (error, *error.others)):
            return "bad", "refused"
        return "", "not logged, since the statement is refused"
    if is_noted:
        return "warn", f"{_FORMATS[binlog.logged_as]}, unsafe"
    return ("" if binlog.logged_as is None else "good"), _FORMATS[binlog.logged_as]


def _cause(why: Why) -> str:
    through = ", ".join(why.through)
    return f"{why.what}, through {through}" if through else why.what


def _event(event: LoggedEvent, width: int) -> str:
    return cut(f"{event.type:<14} {printable(_SPACE.sub(' ', event.info))}", width)


def printable(text: str) -> str:
    """Return text without characters that a terminal would obey; tabs and line ends become spaces."""
    return visible(text.translate(_BLANKS))


def cells(text: str) -> int:
    """Columns that text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(one) in "WF" else 1 for one in text)


def cut(text: str, width: int) -> str:
    """Text in at most so many columns, with an ellipsis where it was longer."""
    if cells(text) <= width:
        return text
    kept: list[str] = []
    left = width - 1
    for character in text:
        left -= cells(character)
        if left < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


def window(line: str, begin: int, end: int, width: int) -> tuple[str, int, int]:
    """Return the part of a source line that is shown so that a stretch of it can be seen.

    Args:
        line: The whole line of the source.
        begin: Start of the stretch, in characters.
        end: End of the stretch, in characters.
        width: Number of columns that can be used.

    Returns:
        The shown part, and the start and end of the stretch in it.
    """
    # Escapes change lengths, so the three parts are made printable on their own.
    before, middle, after = printable(line[:begin]), printable(line[begin:end]), line[end:]
    after = printable(after[: width + 1])
    if cells(before) + cells(middle) + cells(after) > width:
        before_max = max(width // 3, width - cells(middle) - cells(after))
        if cells(before) > before_max:
            kept = before[-2 * before_max :]
            while cells(kept) >= before_max:
                kept = kept[1:]
            before = f"…{kept}"
        middle = cut(middle, width - cells(before))
        after = cut(after, max(width - cells(before) - cells(middle), 0)) if after else ""
    return before + middle + after, len(before), len(before) + len(middle)
