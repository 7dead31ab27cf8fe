"""Texts that others made up, as people may see them: no character does anything but stand there.

Names of users and files, texts of statements and messages of peers go into logs and onto terminals.
A line end there begins a line that looks like one of binlane's own, `<0>` at its start is a priority
to systemd's journal, an escape sequence moves the cursor, and marks of direction turn a text around.
"""

from __future__ import annotations

import re
from typing import Final

_PLAIN: Final = re.compile(r"[ -~]*+")
_SURROGATES: Final = 0xDC00
_BYTES: Final = range(0x80, 0x100)


def visible(text: str) -> str:
    r"""A text in one line whose characters that are not printed stand as `\n`, `\x1b` or `\u202e`.

    Bytes that are no text, lone surrogates in it, stand as `\xe4`. Backslashes stay alone, so that
    paths and patterns can be read as they are.
    """
    if _PLAIN.fullmatch(text):
        return text
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def _escaped(character: str) -> str:
    byte = ord(character) - _SURROGATES
    return f"\\x{byte:02x}" if byte in _BYTES else repr(character)[1:-1]
