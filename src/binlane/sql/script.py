"""A script as the command-line clients take it → its statements, one by one.

DELIMITER lines are followed, never given. What a statement means is not asked here.

For texts that tools wrote, such as a schema; what people write, with its client commands, places
and stated outcomes, is read from bytes in `check.script`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

_DELIMITER: Final = re.compile(r"[ \t]*delimiter[ \t]+(\S+)[^\n]*(?:\n|\Z)", re.IGNORECASE)
_SPACE: Final = re.compile(r"\s+")
_COMMENT: Final = re.compile(
    r"/\*(?!M?!|\+).*?(?:\*/|\Z) | (?:\#|--(?=\s|\Z))[^\n]*+", re.VERBOSE | re.DOTALL
)
"""Executable comments and hints are code, delimiters in them too, as in the clients."""


def statements(text: str) -> Iterator[str]:
    """The statements of a script, without their delimiters; none is empty.

    Comments stay where they stand. An unfinished comment or string goes to the end.
    """
    delimiter = ";"
    start = offset = 0
    is_blank = True  # only white space and comments since `start`
    while offset < len(text):
        if is_blank and (space := _SPACE.match(text, offset)):
            offset = space.end()
            continue
        if is_blank and (line := _DELIMITER.match(text, offset)):
            delimiter = line[1]
            start = offset = line.end()
            continue
        if is_blank and (comment := _COMMENT.match(text, offset)):
            offset = comment.end()
            continue
        found = _pieces(delimiter).search(text, offset)
        if found is None:
            break
        offset = found.end()
        is_blank = found.lastgroup == "DELIMITER"
        if is_blank:
            if statement := text[start : found.start()].strip():
                yield statement
            start = offset
    if statement := text[start:].strip():
        yield statement


@cache
def _pieces(delimiter: str) -> re.Pattern[str]:
    """What may hold a delimiter that is none, and the delimiter itself."""
    return re.compile(
        rf"""
        (?P<DELIMITER> {re.escape(delimiter)} )
      | ' (?: [^'\\] | \\. )*+ (?:'|\Z)
      | " (?: [^"\\] | \\. )*+ (?:"|\Z)
      | ` [^`]*+ (?:`|\Z)
      | /\*(?!M?!|\+) .*? (?:\*/|\Z)
      | (?: \# | --(?=\s|\Z) ) [^\n]*+
        """,
        re.VERBOSE | re.DOTALL,
    )
