"""Texts of peers as they are logged: no longer than anybody reads, and of visible characters only."""

from __future__ import annotations

from typing import Final

from binlane.visible import visible

_SHOWN_MAX: Final = 300


def shown(value: object) -> str:
    """The text of something that a peer may have made as long as it liked."""
    text = str(value)
    if len(text) <= _SHOWN_MAX:
        return visible(text)
    return f"{visible(text[:_SHOWN_MAX])}… ({len(text)} characters)"
