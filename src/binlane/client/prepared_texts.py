"""The texts that MariaDB's PREPARE and EXECUTE IMMEDIATE get from expressions; the source is asked.

It is asked once: the source then gets the text in the place of the expression.
"""

from __future__ import annotations

from typing import Final

from binlane.log.codec.charsets import text_decoder
from binlane.log.codec.client_text import read_text, text_telling
from binlane.log.codec.packets.results import ResultSet
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.stored import runs_nothing_stored
from binlane.statements.sql.tree.expressions import Literal, Query, UserVariable, walk
from binlane.statements.sql.tree.statements import Prepare

_BINARY: Final = "binary"


def question(facts: StatementFacts) -> str | None:
    """Asks for the text of a statement; None for one that does not take it from an expression."""
    source = facts.tree.source if isinstance(facts.tree, Prepare) else None
    if source is None or isinstance(source, (Literal, UserVariable)):
        return None
    if any(isinstance(node, Query) for node in walk(source)) or not runs_nothing_stored(facts):
        return None
    inner = f"SELECT CONCAT({facts.text_of(source)}) AS t"
    return f"SELECT HEX(t), CHARSET(t) FROM ({inner}) AS one LIMIT 1"  # noqa: S608  # the client's own


def with_text(
    facts: StatementFacts, answer: ResultSet, client_charset: str
) -> tuple[str, str] | None:
    """Return the statement with its text, in the source's bytes and as read here.

    None where the text is NULL, or cannot be told in the client's character set.

    Args:
        facts: The facts of the statement.
        answer: The source's answer to `question`.
        client_charset: The value of the session's character_set_client.
    """
    digits, charset = answer.cell_text(0), answer.cell_text(1) or ""
    source = facts.tree.source if isinstance(facts.tree, Prepare) else None
    if digits is None or source is None:
        return None
    content = _content(bytes.fromhex(digits), charset, client_charset)
    text = None if content is None else text_telling(content, client_charset)
    if text is None:
        return None
    before, after = facts.text[: facts.place(source.at)], facts.text[facts.place(source.end) :]
    introducer = "" if charset == _BINARY else f"_{charset} "
    sent = f"{introducer}0x{digits}" if digits else "''"
    return f"{before}{sent}{after}", f"{before}{quoted(text, facts)}{after}"


def _content(data: bytes, charset: str, client_charset: str) -> str | None:
    """Return the characters of a value; None if some of its bytes are no characters."""
    if charset == _BINARY:
        return read_text(data, client_charset)
    decode = text_decoder(charset)
    try:
        return None if decode is None else decode(data)
    except UnicodeDecodeError:
        return None


def quoted(text: str, facts: StatementFacts) -> str:
    """A string literal, as the session of a statement writes it."""
    text = text.replace("'", "''")
    if not facts.dialect.no_backslash_escapes:
        text = text.replace("\\", "\\\\")
    return f"'{text}'"
