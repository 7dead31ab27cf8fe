r"""Changes as lines of text: time, GTID, operation, table, key and what changed.

Foreign bytes stand as `visible` has them. A line is a list of spans, each with its meaning, so that
whoever prints it can colour it and cut it at the terminal's width.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from binlane.binlogs.cat.sql.sql_literals import literal
from binlane.log.codec.columns import ABSENT, Column
from binlane.log.codec.json_binary import JsonDocument
from binlane.log.codec.json_values import shortest_float
from binlane.log.codec.types import ColumnType
from binlane.names import TableName
from binlane.tables.changes.logged_changes import (
    Change,
    ChangedRow,
    ChangeOperation,
    LoggedText,
    name_of,
)
from binlane.visible import visible

VALUE_WIDTH: Final = 24
"""Width to which a value is cut where lines are cut."""
_WIDE: Final = frozenset("WF")
_UUID_SHOWN: Final = 8
_WORDS: Final = {ChangeOperation.STATEMENT: "SQL"}


@dataclass(frozen=True, slots=True)
class Signs:
    """Signs of lines, for terminals that show all characters and for those that do not.

    Attributes:
        first: Sign of the first line of a transaction.
        more: Sign of the other lines of a transaction.
        arrow: Sign between an old and a new value.
        cut: Sign of a text that goes on.
    """

    first: str = "┌"
    more: str = "│"
    arrow: str = "→"
    cut: str = "…"


ASCII_SIGNS: Final = Signs(first="+", more="|", arrow="->", cut="~")


@dataclass(frozen=True, slots=True)
class LineSpan:
    """A part of a line.

    Attributes:
        text: The part's characters, all of which can be shown.
        role: Meaning of the part: a kind of change, or `time`, `gtid`, `table`, `key`, `old`,
            `new`, `note`; empty for plain text.
    """

    text: str
    role: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineStyle:
    """The style of lines.

    Attributes:
        width: Columns of a line; None for lines of any length with all values in full.
        signs: Signs that the lines are made of.
    """

    width: int | None = None
    signs: Signs = Signs()


class ChangeLines:
    """Gives the spans of changes, one line a change.

    Attributes:
        style: The style of the lines.
    """

    def __init__(self, style: LineStyle) -> None:
        self.style = style
        self._group = 0
        self._is_first = True

    def line(self, change: Change) -> list[LineSpan]:
        """The line of a change, not wider than the style has it."""
        spans = [*self._head(change), *self._body(change)]
        return cut_spans(spans, self.style)

    def end(self, state: ChangedRow | None, table: TableName, last: Change) -> list[LineSpan]:
        """The line of a row's state at the end of the log.

        Args:
            state: The row with its values as after image; None if the row is deleted.
            table: The last name of the row's table.
            last: The last change of the row's life.
        """
        place = last.group.gtid or f"{last.file}:{last.event.position}"
        name = LineSpan(visible(table.plain), "table")
        if state is None:
            short = _short_gtid(place, self.style.signs.cut)
            shown = place if self.style.width is None else short
            spans = [LineSpan("deleted", "delete"), LineSpan(" "), name, LineSpan(f" by {shown}")]
            return cut_spans(spans, self.style)
        _, values = state.images
        assert values is not None, "the row is there"
        indexes = (*state.key, *(at for at in range(len(values)) if at not in state.key))
        parts = [self._named(state, at, values[at]) for at in indexes if values[at] is not ABSENT]
        return cut_spans(
            [LineSpan("now", "new"), LineSpan(" "), name, LineSpan(f" {' '.join(parts)}")],
            self.style,
        )

    def _head(self, change: Change) -> Iterator[LineSpan]:
        is_short = self.style.width is not None
        self._is_first = change.group.number != self._group
        self._group = change.group.number
        when = datetime.fromtimestamp(change.event.header.timestamp).astimezone()
        yield LineSpan(f"{when:%H:%M:%S}" if is_short else f"{when:%Y-%m-%d %H:%M:%S}", "time")
        place = change.group.gtid or f"{change.file}:{change.event.position}"
        yield LineSpan(
            f" {_short_gtid(place, self.style.signs.cut) if is_short else place}", "gtid"
        )
        signs = self.style.signs
        yield LineSpan(f" {signs.first if self._is_first else signs.more} ", "note")
        word = _WORDS.get(change.kind, change.kind.value.upper())
        yield LineSpan(f"{word:6}", change.kind.value)
        yield LineSpan(" ")

    def _body(self, change: Change) -> Iterator[LineSpan]:
        if isinstance(change, ChangedRow):
            yield LineSpan(visible(change.table.plain), "table")
            yield from self._row(change)
        elif isinstance(change, LoggedText):
            if change.database:
                yield LineSpan(f"{visible(change.database)}: ", "table")
            yield LineSpan(visible(" ".join(change.text.split())))
        thread, user = change.group.thread_id, getattr(change, "user", "")
        notes = [f"thread {thread}"] * bool(thread) + [f"user {visible(user)}"] * bool(user)
        if notes and self.style.width is None and self._is_first:
            yield LineSpan(f"  ({', '.join(notes)})", "note")

    def _row(self, change: ChangedRow) -> Iterator[LineSpan]:
        before, after = change.images
        here = after if before is None else before
        assert here is not None, "a change has an image"
        for index in change.key:
            yield LineSpan(f" {self._named(change, index, here[index])}", "key")
        if before is not None and after is not None:
            yield from self._update(change)
            return
        for column in change.columns:
            value = here[column.index]
            if column.index not in change.key and value is not ABSENT:
                yield LineSpan(f" {self._named(change, column.index, value)}")

    def _update(self, change: ChangedRow) -> Iterator[LineSpan]:
        before, after = change.images
        assert before is not None, "an update has both images"
        assert after is not None, "an update has both images"
        is_next = False
        for index in change.changed:
            yield LineSpan(f"{',' if is_next else ''} {visible(name_of(change.columns[index]))}: ")
            is_next = True
            if before[index] is not ABSENT:
                yield LineSpan(self._value(change, index, before[index]), "old")
                yield LineSpan(f" {self.style.signs.arrow} ")
            else:
                yield LineSpan(f"{self.style.signs.arrow} ")
            yield LineSpan(self._value(change, index, after[index]), "new")
        if not is_next:
            yield LineSpan(" (no change)", "note")
        if not change.key:
            others = [
                self._named(change, column.index, before[column.index])
                for column in change.columns
                if column.index not in change.changed and before[column.index] is not ABSENT
            ]
            if others:
                yield LineSpan(f"  [{' '.join(others)}]", "note")

    def _named(self, change: ChangedRow, index: int, value: object) -> str:
        name = visible(name_of(change.columns[index]))
        return f"{name}={self._value(change, index, value)}"

    def _value(self, change: ChangedRow, index: int, value: object) -> str:
        text = value_text(value, change.columns[index], change)
        if self.style.width is None:
            return text
        return shortened(text, VALUE_WIDTH, self.style.signs.cut)


def value_text(value: object, column: Column, change: ChangedRow) -> str:
    """A value as people write it: a literal of SQL, and a JSON document as its text."""
    if value is ABSENT:
        return "?"
    if isinstance(value, JsonDocument):
        return visible(str(value))
    if isinstance(value, float):
        return repr(shortest_float(value) if column.type is ColumnType.FLOAT else value)
    return visible(literal(value, column, flavor=change.flavor))


def shortened(text: str, width: int, sign: str) -> str:
    """A text that is not wider than some columns; the sign stands for what was cut."""
    if len(text) * 2 <= width or width_of(text) <= width:
        return text
    taken, left = 0, width - width_of(sign)
    for count, character in enumerate(text):
        taken += width_of(character)
        if taken > left:
            return text[:count] + sign
    return text


def width_of(text: str) -> int:
    """Columns that a terminal gives a text."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def plain_text(spans: Iterable[LineSpan]) -> str:
    """The characters of a line."""
    return "".join(span.text for span in spans)


def cut_spans(spans: list[LineSpan], style: LineStyle) -> list[LineSpan]:
    """The spans of a line that is not wider than a style has it."""
    return spans if style.width is None else _cut(spans, style.width, style.signs.cut)


def _cut(spans: list[LineSpan], width: int, sign: str) -> list[LineSpan]:
    kept: list[LineSpan] = []
    left = width
    total = sum(width_of(span.text) for span in spans)
    if total <= width:
        return spans
    for span in spans:
        if width_of(span.text) < left:
            kept.append(span)
            left -= width_of(span.text)
            continue
        kept.append(LineSpan(shortened(span.text + " " * left, left, sign), span.role))
        break
    return kept


def _short_gtid(gtid: str, sign: str) -> str:
    """A MySQL GTID with a part of its UUID only; others are short as they are."""
    uuid, has_number, number = gtid.partition(":")
    is_uuid = bool(has_number) and uuid.count("-") == 4 and len(uuid) == 36
    return f"{uuid[:_UUID_SHOWN]}{sign}:{number}" if is_uuid else gtid
