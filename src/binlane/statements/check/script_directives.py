"""Comment lines that state what happened to the statement after them: `-- @rows 0`.

One comment may hold several directives. A comment whose word is none of ours is a comment; a word that is
nearly one of ours is a problem, since a statement would be judged by something that did not happen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final

from binlane.statements.policy.refusals import Outcome
from binlane.statements.session.report import Unanalysed

_DIRECTIVE: Final = re.compile(r"(?:#|--)\s*(@[A-Za-z].*?)\s*\Z", re.DOTALL)
_PART: Final = re.compile(r"@(\w+)((?:\s+[^@\s]\S*)*)(?:\s+|\Z)")
_WORDS: Final = ("error", "rows", "disconnect")
_FORMS: Final = "directives are -- @error N, -- @rows N, -- @rows none and -- @disconnect"
_ERRNO_MAX: Final = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Directives:
    """The directives in the comments before a statement.

    Attributes:
        outcome: The stated result of the statement's execution.
        is_disconnect: The session ended before the statement.
        problem: The directive that cannot be followed; None if all can.
    """

    outcome: Outcome = field(default_factory=Outcome)
    is_disconnect: bool = False
    problem: Unanalysed | None = None


def read_directive(comment: str, stated: Directives, *, is_alone: bool) -> Directives:
    """Add the directives of one comment.

    Args:
        comment: The comment, from its `--` or `#` to the end of the line.
        stated: Directives of the comments before it.
        is_alone: Nothing but white space stands before the comment in its line.
    """
    found = _DIRECTIVE.match(comment)
    if found is None:
        return stated
    text = found[1]
    first = text[1:].split(None, 1)[0]
    if first not in _WORDS:
        close = get_close_matches(first.lower(), _WORDS, n=1, cutoff=0.75)
        if not close:
            return stated
        return _wrong(stated, comment, f"there is no directive @{first}; {_FORMS}")
    if not is_alone:
        return _wrong(
            stated, comment, "a directive stands in a line of its own, before its statement"
        )
    offset = 0
    while offset < len(text):
        part = _PART.match(text, offset)
        stated_more = None if part is None else _state(part[1], part[2].split(), stated)
        if part is None or stated_more is None:
            return _wrong(stated, comment, f"'{text[offset:]}' is no directive; {_FORMS}")
        stated, offset = stated_more, part.end()
    return stated


def _state(word: str, values: list[str], stated: Directives) -> Directives | None:
    """Add one directive; None if it is wrong."""
    outcome = stated.outcome
    if word == "disconnect" and not values:
        return replace(stated, is_disconnect=True)
    if len(values) != 1:
        return None
    (value,) = values
    if word == "rows" and value == "none":
        return replace(stated, outcome=outcome._replace(is_proven_empty=True))
    if not (value.isascii() and value.isdigit()):
        return None
    if word == "rows":
        return replace(stated, outcome=outcome._replace(rows=int(value)))
    if word == "error" and 0 < int(value) <= _ERRNO_MAX:
        return replace(stated, outcome=outcome._replace(error=int(value)))
    return None


def _wrong(stated: Directives, comment: str, reason: str) -> Directives:
    problem = Unanalysed(reason=f"{comment.strip()}: {reason}", offset=0, length=0)
    return replace(stated, problem=stated.problem or problem)
