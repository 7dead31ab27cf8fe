"""What peers say, as it is put into the log: no longer than anybody reads."""

from __future__ import annotations

from typing import Final

_SHOWN_MAX: Final = 300


def shown(value: object) -> str:
    """The text of something that a peer may have made as long as it liked."""
    text = str(value)
    if len(text) <= _SHOWN_MAX:
        return text
    return f"{text[:_SHOWN_MAX]}… ({len(text)} characters)"
