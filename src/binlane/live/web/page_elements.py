"""Pieces of HTML in which foreign texts are nothing but text; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Final
from urllib.parse import quote

from binlane.live.web.status_words import time_text

_LONG: Final = 300
_SHOWN: Final = 120
_HALF: Final = 48
_WIDE: Final = 90
_TAG: Final = re.compile(r"<[^>]*>")
# Characters that no page may hold, and those that turn the direction of the text behind them.
_CONTROLS: Final = dict.fromkeys(
    [
        *(*range(9), 11, 12, *range(14, 32), *range(127, 160)),
        *(0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    ],
    "\N{REPLACEMENT CHARACTER}",
)


def text(value: str) -> str:
    """Escape a text; unprintable characters become replacement characters."""
    whole = value.encode("utf-8", "replace").decode("utf-8")
    return escape(whole.translate(_CONTROLS))


def name(value: str) -> str:
    """Return a foreign name, isolated so that its direction does not affect its neighbours."""
    return f"<bdi>{text(value)}</bdi>"


def identifier(prefix: str, value: str) -> str:
    """Return a stable id for a name; links to it have the same behind their `#`."""
    return f"{prefix}-{quote(value.encode('utf-8', 'replace'), safe='')}"


def time(at_s: float) -> str:
    """A time, for people."""
    return f"<time>{time_text(at_s)}</time>"


def long_text(value: str, id_: str) -> str:
    """A text that may be very long: then only its beginning is seen until it is opened."""
    if len(value) <= _LONG:
        return name(value)
    beginning = name(value[:_SHOWN] + " …")
    return (
        f'<details id="{id_}"><summary>{beginning} ({len(value):,} characters)</summary>'
        f"{name(value)}</details>"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Return a list of terms and values; a long value takes a line of its own.

    Args:
        pairs: Terms as plain text, and values as HTML.
    """
    yield "<dl>"
    for term, value in pairs:
        yield f"<div{_width(value)}><dt>{text(term)}</dt><dd>{value}</dd></div>"
    yield "</dl>"


def _width(value: str) -> str:
    """Return the share of a line that a piece of HTML takes, as an attribute."""
    length = len(_TAG.sub("", value))
    if length <= _HALF:
        return ""
    return ' class="wide"' if length > _WIDE else ' class="half"'
