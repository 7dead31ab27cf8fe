"""Values that literals of a text stand for."""

from __future__ import annotations

from decimal import Decimal

from binlane.log.codec.client_text import told_text
from binlane.statements.sql.evaluation.known_names import StatementText
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import TokenKind, tokenise, value_of
from binlane.statements.sql.tree.expressions import (
    Literal,
    LiteralKind,
)

# Literals -----------------------------------------------------------------------------------------


def string_content(text: str, dialect: Dialect) -> str:
    """Give the content of a string literal: of several strings side by side, of one with a prefix."""
    inside = text[1:-1]
    if text[:1] == "$":  # $$ … $$
        return value_of(TokenKind.STRING, text, dialect)
    if text[:1] == "'" == text[-1:] and "'" not in inside and "\\" not in inside:
        return told_text(inside, dialect.charset) if dialect.charset else inside
    tokens = tokenise(text, dialect)
    return "".join(token.value for token in tokens if token.kind is TokenKind.STRING)


def content_of(node: Literal, text: StatementText) -> str:
    """The characters of a literal; of hexadecimal digits and bits the bytes, one a character."""
    written = text.text_of(node)
    if node.kind in (LiteralKind.HEX, LiteralKind.BIT):
        return bytes_value(written, is_hexadecimal=node.kind is LiteralKind.HEX)
    if node.kind is LiteralKind.NUMBER:
        return written
    return string_content(written, text.dialect)


def number_value(text: str) -> int | Decimal | float:
    """Give the number that a literal stands for."""
    if text.isdecimal():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def bytes_value(text: str, *, is_hexadecimal: bool) -> str:
    """The bytes of `0x41`, `x'41'`, `0b1` or `b'1'`, behind an introducer or not."""
    digits = text.rsplit(maxsplit=1)[-1].removesuffix("'").rpartition("'")[2]
    if digits[:2].lower() in {"0x", "0b"}:
        digits = digits[2:]
    if is_hexadecimal:
        return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2)).decode("latin-1")
    return int(digits or "0", 2).to_bytes((len(digits) + 7) // 8, "big").decode("latin-1")
