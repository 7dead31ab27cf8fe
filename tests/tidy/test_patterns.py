"""Regular expressions mean the same to every Python that runs binlane.

Before 3.11.5, Python does not go back to where one more repetition of a possessive group began if
that fails behind its first character: `(?:ab?c)*+` takes all of `aca`. It does before it tries a
further alternative, so that one which never matches makes it right: `(?:ab?c|(?!))*+`. A possessive
character or set of characters, `[^']*+`, was never wrong.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.rules import ROOT

# What is possessive, but for characters: a group (no `()` of two characters), a pattern that is put
# in, unless it is the set WORD. Atomic groups nobody needs beside possessive ones.
_SUSPECT = re.compile(
    r"""(?x) (?: (?<![\\(])\) | (?<!\{WORD)(?<=\w)\} | %[sb] )
             \s* (?: [*+?] | \{ \d+ (?:,\d*)? \} | \{\{ .*? \}\} )\+
      | \(\?>
    """
)
_ENDS_IN_NOTHING = re.compile(r"\|\s*\(\?!\)\s*\)?\Z")


def _text_of(node: ast.expr, lines: Sequence[bytes]) -> str:
    """As `ast.get_source_segment`, which goes through the whole source each time."""
    assert node.end_lineno is not None
    found = list(lines[node.lineno - 1 : node.end_lineno])
    found[-1] = found[-1][: node.end_col_offset]
    found[0] = found[0][node.col_offset :]
    return b"\n".join(found).decode()


def _wrong(source: str) -> list[str]:
    """The possessive groups of a module that may be wrong, each with what stands before it."""
    found = set()
    lines = source.encode().split(b"\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
        ):
            text = _text_of(node, lines)
            found |= {
                text[max(suspect.start() - 40, 0) : suspect.end()]
                for suspect in _SUSPECT.finditer(text)
                if not _ENDS_IN_NOTHING.search(text, 0, suspect.start() + 1)
            }
    return sorted(found)


def _modules() -> list[Path]:
    return [path for folder in ("src", "tools") for path in (ROOT / folder).rglob("*.py")]


def test_possessive_groups_end_in_what_never_matches() -> None:
    found = {str(path.relative_to(ROOT)): _wrong(path.read_text("utf-8")) for path in _modules()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("pattern", "is_wrong"),
    [
        ('r"(?:ab?c)*+"', True),
        ('r"(?:ab?c){2,9}+"', True),
        ('rf"(?:{_ITEM}b){{2,{_MAX}}}+"', True),
        ('rf"{_ITEM}?+"', True),
        ('rb"(?: %s )*+" % _ITEM', True),
        ('r"(?>ab?c)"', True),
        ('r"(?:ab?c|(?!))*+"', False),
        ('rb"(?: %s | (?!) )*+" % _ITEM', False),
        ('rf"(?:{_ITEM}b|(?!)){{2,{_MAX}}}+"', False),
        ('rf"{WORD}*+[^a]++[(]\\)?+"', False),
    ],
)
def test_what_is_found(pattern: str, *, is_wrong: bool) -> None:
    assert bool(_wrong(f"_PATTERN = re.compile({pattern})")) is is_wrong
