"""Changes on a terminal or in a pipe: colours, the width of lines, and JSON; also the options for it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from binlane.names import TableName
    from binlane.tables.changes.change_text import ChangeLines, LineSpan
    from binlane.tables.changes.logged_changes import Change, ChangedRow

_Command = TypeVar("_Command", bound=Callable[..., Any])

_STYLES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "insert": {"fg": "green"},
        "update": {"fg": "yellow"},
        "delete": {"fg": "red"},
        "ddl": {"fg": "magenta"},
        "statement": {"fg": "cyan"},
        "incident": {"fg": "white", "bg": "red"},
        "time": {"dim": True},
        "gtid": {"dim": True},
        "note": {"dim": True},
        "table": {"bold": True},
        "old": {"fg": "red"},
        "new": {"fg": "green"},
    }
)
_WIDTH_MIN: Final = 40


def takes_output(command: _Command) -> _Command:
    """Give a command the options for the form of its lines."""
    options = (
        click.option(
            "--format",
            "format_",
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            help="text: one line a change; json: one object a line, as cat --format=json has it.",
        ),
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            show_default=True,
            help="Colours; auto: on a terminal where NO_COLOR is not set.",
        ),
        click.option(
            "--full",
            is_flag=True,
            help="Whole lines and values on a terminal too; in a pipe nothing is cut.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


class ChangePrinter:
    """Prints changes as the options of `takes_output` ask for.

    Args:
        given: The options' values by name.
        out: The stream that lines go to.
        has_statements: True to print the statements that made rows, where the log holds them.
    """

    def __init__(
        self, given: Mapping[str, Any], out: TextIO, *, has_statements: bool = False
    ) -> None:
        self._out = out
        self._has_statements = has_statements
        self._statement = ""
        self._is_json: bool = given["format_"] == "json"
        color = given["color"]
        is_terminal = out.isatty()
        self._has_color = color == "always" or (
            color == "auto" and is_terminal and not os.environ.get("NO_COLOR")
        )
        self._is_cut = is_terminal and not given["full"]
        self._lines: ChangeLines | None = None
        self._day = ""

    @property
    def is_json(self) -> bool:
        """True if changes are JSON objects."""
        return self._is_json

    def print_change(self, change: Change) -> None:
        """Print the line of a change at once."""
        if self._is_json:
            from binlane.log.codec.json_text import json_text  # noqa: PLC0415  # after --help
            from binlane.tables.changes.change_json import change_object  # noqa: PLC0415  # likewise

            self.print_text(json_text(change_object(change, has_statement=self._has_statements)))
            return
        lines = self._fitting()
        if self._is_cut:
            self._print_day(change.event.header.timestamp)
        self.print_spans(lines.line(change))
        text = change.group.statement
        if self._has_statements and text and text != self._statement:
            self._print_statement(text)
        self._statement = text

    def _print_statement(self, text: str) -> None:
        """Print the statement that made the rows before."""
        from binlane.tables.changes.change_text import (  # noqa: PLC0415  # after --help
            LineSpan,
            cut_spans,
        )
        from binlane.visible import visible  # noqa: PLC0415  # likewise

        lines = self._fitting()
        spans = [LineSpan(f"    by: {visible(' '.join(text.split()))}", "note")]
        self.print_spans(cut_spans(spans, lines.style))

    def print_end(self, state: ChangedRow | None, table: TableName, last: Change) -> None:
        """Print the last line of a row.

        Args:
            state: The row with its values as after image; None if the row is deleted.
            table: The last name of the row's table.
            last: The last change of the row's life.
        """
        if self._is_json:
            from binlane.log.codec.json_text import json_text  # noqa: PLC0415  # after --help
            from binlane.tables.changes.change_json import state_object  # noqa: PLC0415  # likewise

            self.print_text(json_text(state_object(state, table, last)))
            return
        lines = self._fitting()
        self.print_spans(lines.end(state, table, last))

    def print_spans(self, spans: Iterable[LineSpan]) -> None:
        """Print a line of spans, coloured where that is wanted."""
        self.print_text("".join(map(self._colored, spans)))

    def print_text(self, text: str) -> None:
        """Print a line, which somebody may be waiting for."""
        self._out.write(f"{text}\n")
        self._out.flush()

    def _fitting(self) -> ChangeLines:
        """The lines, as wide as the terminal is now."""
        from dataclasses import replace  # noqa: PLC0415  # after --help

        lines = self._lines = self._lines or self._made()
        if self._is_cut and (width := _terminal_width()) != lines.style.width:
            lines.style = replace(lines.style, width=width)
        return lines

    def _made(self) -> ChangeLines:
        from binlane.tables.changes.change_text import (  # noqa: PLC0415  # after --help
            ASCII_SIGNS,
            ChangeLines,
            LineStyle,
            Signs,
        )

        width = _terminal_width() if self._is_cut else None
        signs = Signs() if _shows_all(self._out) else ASCII_SIGNS
        return ChangeLines(LineStyle(width=width, signs=signs))

    def _print_day(self, timestamp: int) -> None:
        from datetime import datetime  # noqa: PLC0415  # for lines on a terminal only

        when = datetime.fromtimestamp(timestamp).astimezone()
        day = f"{when:%Y-%m-%d} ({when:%Z})"
        if day != self._day:
            self._day = day
            self.print_text(click.style(day, dim=True) if self._has_color else day)

    def _colored(self, span: LineSpan) -> str:
        style = _STYLES.get(span.role)
        return click.style(span.text, **style) if style and self._has_color else span.text


def opened_output(*, is_json: bool) -> TextIO:
    """Standard output in UTF-8, for a terminal that shows no more in its own encoding.

    Args:
        is_json: True if bytes that are no text are to be escaped as in JSON.
    """
    out = sys.stdout
    if is_json or not out.isatty():
        out.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]  # a TextIOWrapper
    else:
        out.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # as above
    return out


def _terminal_width() -> int:
    return max(shutil.get_terminal_size().columns, _WIDTH_MIN)


def _shows_all(out: TextIO) -> bool:
    return (out.encoding or "ascii").lower().replace("-", "") == "utf8"
