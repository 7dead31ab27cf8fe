"""What a session's sql_mode means for reading its statements."""

from __future__ import annotations

from typing import Final, TypedDict

_ANSI_QUOTES: Final = 0x4
_NO_BACKSLASH_ESCAPES: Final = 0x100000


class Quoting(TypedDict):
    """How a text is quoted: the keyword arguments of this package's readers."""

    ansi_quotes: bool
    no_backslash_escapes: bool


def quoting(sql_mode: int) -> Quoting:
    """The quoting of a text.

    Args:
        sql_mode: Its bits, as a QUERY event has them; those used here are of both flavors.
    """
    return Quoting(
        ansi_quotes=bool(sql_mode & _ANSI_QUOTES),
        no_backslash_escapes=bool(sql_mode & _NO_BACKSLASH_ESCAPES),
    )
