"""An explanation as text for a terminal, and as one JSON object; pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from binlane.binlogs.cat.explain.explanation import Explanation, Line, Section
from binlane.visible import visible

_BYTES_A_LINE: Final = 8
_HEX_LINES_MAX: Final = 8
_TEXT_MAX: Final = 1000
_HEX_WIDTH: Final = 3 * _BYTES_A_LINE - 1
_OFFSET_WIDTH: Final = 6
_WIDTH_MIN: Final = 60
_PLAIN, _BOLD, _DIM, _RED = "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m"


def explanation_text(explanation: Explanation, *, width: int, color: bool) -> Iterator[str]:
    """Return lines for a terminal: offset in the event, bytes, their meaning.

    Args:
        explanation: The explanation of one event.
        width: Width of the terminal, in columns.
        color: True if the text shall have colours.
    """
    paint = _painter(color=color)
    place = f"{visible(explanation.file)}:{explanation.position}"
    header = explanation.header
    if header is None:
        yield paint(_BOLD, place)
    else:
        next_position = explanation.position + header.length
        yield paint(_BOLD, place)
        about = f"{header.type_name}, {header.length} bytes; the next event is at {next_position}"
        yield paint(_BOLD, about)
    width = max(width, _WIDTH_MIN)
    for section in explanation.sections:
        yield ""
        yield paint(_BOLD, visible(section.title))
        for line in section.lines:
            yield from _lines(line, section, width, color=color)
    for fault in explanation.faults:
        yield ""
        yield from (paint(_RED, text) for text in textwrap.wrap(f"fault: {visible(fault)}", width))


def explanation_json(explanation: Explanation) -> dict[str, object]:
    """Make the object that `explain --json` prints; offsets count from the event's first byte."""
    header = explanation.header
    return {
        "file": explanation.file,
        "position": explanation.position,
        "type": None if header is None else header.type_name,
        "type_code": None if header is None else header.type_code,
        "length": None if header is None else header.length,
        "sections": [
            {
                "title": section.title,
                "fields": [
                    {
                        "name": line.name,
                        "value": line.text,
                        "offset": line.offset,
                        "hex": line.data.hex(),
                    }
                    for line in section.lines
                ],
            }
            for section in explanation.sections
        ],
        "faults": list(explanation.faults),
    }


def _lines(line: Line, section: Section, width: int, *, color: bool) -> Iterator[str]:
    paint = _painter(color=color)
    said = f"{line.name} = {line.text}" if line.name and line.text else line.name or line.text
    if len(said) > _TEXT_MAX:
        said = f"{said[:_TEXT_MAX]}… ({len(said)} characters)"
    said = visible(said)
    if all(one.offset is None for one in section.lines):
        yield from textwrap.wrap(
            said, width - 4, initial_indent="    ", subsequent_indent=" " * 8
        ) or [""]
        return
    left = _OFFSET_WIDTH + 2 + _HEX_WIDTH + 2
    words = textwrap.wrap(said, width - left, subsequent_indent="  ")
    offset = "" if line.offset is None else f"+{line.offset}"
    for number, (hexes, text) in enumerate(zip_longest(_hex_lines(line.data), words, fillvalue="")):
        beside = f"{offset if not number else '':>{_OFFSET_WIDTH}}  {hexes:<{_HEX_WIDTH}}"
        yield f"{paint(_DIM, beside)}  {text}".rstrip()


def _hex_lines(data: bytes) -> list[str]:
    shown = data[: _HEX_LINES_MAX * _BYTES_A_LINE]
    lines = [
        shown[start : start + _BYTES_A_LINE].hex(" ")
        for start in range(0, len(shown), _BYTES_A_LINE)
    ]
    if len(data) > len(shown):
        lines.append(f"and {len(data) - len(shown)} more bytes")
    return lines


class _Painter:
    """Puts a text between ANSI codes, or leaves it."""

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def __call__(self, code: str, text: str) -> str:
        return f"{code}{text}{_PLAIN}" if self._color else text


def _painter(*, color: bool) -> _Painter:
    return _Painter(color=color)
