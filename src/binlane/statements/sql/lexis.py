"""Bytes of a client's character set as the servers' lexer reads them, where that is not as in UTF-8.

In UTF-8 and the character sets of the Far East each character that is not ASCII's is a letter. In
others one of them is white space, or begins a comment behind `--`; and in swe7 brackets, braces and
their like are letters.

Source: statements with every byte in each place, on MariaDB 10.11 and MySQL 9.7 (`SELECT 1 AS a?b`,
`SELECT?1`, `SELECT 1 --? )`), which agree but for the backslash of swe7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.log.codec.client_text import SWE7, client_codec, is_alike, told_text

NO_WORD: Final = r"\x00-\x23\x25-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f"
"""Characters of which no word is made, in a pattern's set of characters; all others, those that are not ASCII's
among them, are letters, digits, `_` and `$`. Python takes milliseconds to compile a set of these themselves."""
SPACES: Final = r" \t\n\v\f\r"
"""White space, in a pattern's set of characters."""
BEHIND_DASHES: Final = r"\x00-\x20\x7f"
"""Characters that make `--` before them begin a comment, in a pattern's set of characters."""
_WIDE_SPACE: Final = r"\xa0"
_WITH_WIDE_SPACE: Final = frozenset(
    (
        *("armscii8", "cp1250", "cp852", "cp866", "dec8", "geostd8", "greek", "hebrew", "keybcs2"),
        *("latin1", "latin2", "latin5", "latin7"),
    )
)
_NO_WORD_IN_SWE7: Final = r"\x00-\x23\x25-\x2f\x3a-\x40\x60\x7c\x7f"
"""Its brackets, braces, `^` and `~` are letters."""
_BACKSLASH: Final = r"\x5c"
"""A letter of swe7 to MySQL alone."""
_DASHED: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("armscii8", "dec8", "geostd8", "greek", "latin1", "latin5"), r"\x7f\xa0"),
        **dict.fromkeys(("cp852", "cp866", "keybcs2", "latin2"), r"\xa0"),
        **dict.fromkeys(("cp1251", "cp1257", "macce"), ""),
        "cp1250": r"\x7f\u20ac\udc81\udc83\udc88\udc90\udc98\xa0",
        "cp850": r"\x7f\xa0",
        "hebrew": r"\x7f\xa0\u200e\u200f",
        "hp8": r"\x7f-\xa0\xdd\xfd\xb7\xb5\xb6\xbe\udcff",
        "latin7": r"\x7f\x81\x83\x88\x8a\x8c\x90\x98\x9a\x9c\x9f\xa0\u201d\u201e",
        "macroman": r"\xc4\xc0\xc2",
    }
)
"""Beside control characters of ASCII and the blank; where nothing is said: DEL."""


def lexed_as(charset: str) -> str:
    """A character set that a client may have, if its texts are to be read by it; else empty."""
    codec = client_codec(charset)
    is_other = codec is not None and bool(codec.told)
    return charset if is_other or charset in _WITH_WIDE_SPACE or charset in _DASHED else ""


def is_same_in_utf8(text: str, charset: str) -> bool:
    """True if a text of a character set is the same statement in UTF-8.

    Args:
        text: Text as `client_text` reads it.
        charset: Name of the client's character set.
    """
    if charset == SWE7:
        return is_alike(text)
    if text.isascii() or not (charset := lexed_as(charset)):
        return True
    told = told_text(text, charset)
    other = _WIDE_SPACE + _DASHED.get(charset, "").replace(r"\x7f", "")
    return told == text and re.search(f"[{other}]", text) is None


def lexed_by(pattern: str, charset: str, flavor: str) -> str:
    """Adapt a pattern that is written with the sets of this module to the texts of a character set.

    Args:
        pattern: Pattern as it is for UTF-8.
        charset: Character set as `lexed_as` gives it.
        flavor: Flavor of the server that lexes; empty for both.
    """
    if not charset:
        return pattern
    others, spaces = NO_WORD, SPACES
    if charset == SWE7:
        others = _NO_WORD_IN_SWE7 + (_BACKSLASH if flavor == "mariadb" else "")
    elif charset in _WITH_WIDE_SPACE:
        others, spaces = NO_WORD + _WIDE_SPACE, SPACES + _WIDE_SPACE
    dashed = r"\x00-\x20" + _DASHED.get(charset, r"\x7f")
    return pattern.replace(BEHIND_DASHES, dashed).replace(NO_WORD, others).replace(SPACES, spaces)
