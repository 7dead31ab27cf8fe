"""Remarks for people and places on disk, taken out of a statement's text.

Comments and COMMENT clauses may name anything, and no grammar tells what; they change nothing that
is stored. Places on disk (DATA DIRECTORY, TABLESPACE) are the server's own. The readers tell the
other names of a text; this module also has two of their sources: names with dots in expressions,
and options that name objects elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import NAME_KINDS, SqlSyntaxError, Token, TokenKind, tokenise

_IN_GAPS: Final = re.compile(
    r"(?P<code>/\*M?!(?:\d{5,6})?|\*/)|(?P<comment>/\*.*?\*/)|(?:#|--)[^\n]*", re.DOTALL
)
_SIGNS: Final = ("/*", "--", "#")
# Behind these a parenthesis holds an expression, in which COMMENT is the name of a column.
_BEFORE_EXPRESSIONS: Final = frozenset(
    ("CHECK", "AS", "DEFAULT", "UPDATE", "HASH", "RANGE", "LIST")
)
_PARTS: Final = frozenset(("PARTITION", "SUBPARTITION"))
# Options whose value is a string that names nothing.
_PLAIN_OPTIONS: Final = frozenset(
    (
        *("CHARSET", "SET", "COLLATE", "ENGINE", "TYPE", "COMPRESSION", "ENCRYPTION", "PASSWORD"),
        *("ROW_FORMAT", "AUTOEXTEND_SIZE", "COMMENT", "DIRECTORY", "ENCRYPTED", "PAGE_COMPRESSED"),
        *("SECONDARY_ENGINE", "DEFINER"),
    )
)
_OTHER_SERVERS: Final = frozenset(("FEDERATED", "FEDERATEDX", "SPIDER", "CONNECT"))
_MAY_REMARK: Final = re.compile(
    r"COMMENT|DIRECTORY|TABLESPACE|CONNECT|FEDERATED|SPIDER|=\s*['\"]", re.IGNORECASE
)
EMPTY_COMMENT: Final = "COMMENT ''"


def without_comments(text: str, dialect: Dialect) -> str:
    """The statement without its comments; executable ones are code and stay.

    A text whose quotes or comments do not end stays as it is.
    """
    if not any(sign in text for sign in _SIGNS):
        return text
    try:
        tokens = list(tokenise(text, dialect))
    except SqlSyntaxError:
        return text
    parts: list[str] = []
    end = 0
    for token in tokens:
        gap = text[end : token.offset]
        parts += (_IN_GAPS.sub(_uncommented, gap), token.text)
        end = token.end
    cleaned = "".join(parts).strip()
    return text if cleaned == text.strip() else cleaned


def _uncommented(found: re.Match[str]) -> str:
    return found["code"] or " "


@dataclass(frozen=True, slots=True, kw_only=True)
class Remarks:
    """The remarks found in the definition of a table, routine, event, database or account.

    Attributes:
        text: The statement with each COMMENT emptied and without places on disk.
        has_comments: True if there was a COMMENT that is not empty.
        elsewhere: The option that names objects which no reader tells of; empty if there is none.
    """

    text: str
    has_comments: bool = False
    elsewhere: str = ""


def without_remarks(text: str, end: int | None, dialect: Dialect) -> Remarks:
    """Remove remarks for people and places on disk from a definition.

    Args:
        text: A statement that could be read.
        end: Position at which its definition ends and a query or body begins; None: nowhere.
        dialect: Dialect with its quotes and escapes.
    """
    if not _MAY_REMARK.search(text):
        return Remarks(text=text)
    tokens = [token for token in tokenise(text, dialect) if end is None or token.offset < end]
    edits: list[tuple[int, int, str]] = []
    has_comments, elsewhere = False, ""
    for index, is_expression in _clauses(tokens):
        value = _value_behind(tokens, index)
        has_sign = _at(tokens, index + 1).text == "="
        is_string = value.kind is TokenKind.STRING
        if tokens[index].word == "COMMENT" and is_string and not (has_sign and is_expression):
            has_comments |= bool(value.value)
            edits += [(value.offset, value.end, "''")] if value.value else ()
        elif not is_expression:
            place = _place_on_disk(tokens, index, value)
            edits += [(place, value.end, EMPTY_COMMENT)] if place >= 0 else ()
            elsewhere = elsewhere or _names_elsewhere(tokens[index], value, has_sign=has_sign)
    for start, stop, new in reversed(edits):
        text = text[:start] + new + text[stop:]
    return Remarks(text=text, has_comments=has_comments, elsewhere=elsewhere)


def _place_on_disk(tokens: Sequence[Token], index: int, value: Token) -> int:
    """Find the beginning of the option that a word ends, if it says where data lie; else -1."""
    word, before = tokens[index].word, _at(tokens, index - 1)
    is_string = value.kind is TokenKind.STRING
    if word == "DIRECTORY" and is_string and before.word in ("DATA", "INDEX"):
        return before.offset
    is_name = is_string or value.kind in NAME_KINDS
    if word == "TABLESPACE" and index and is_name and before.word not in ("DISCARD", "IMPORT"):
        return tokens[index].offset
    return -1


def _names_elsewhere(token: Token, value: Token, *, has_sign: bool) -> str:
    """Describe an option that may name other objects; empty for any other."""
    word, is_string = token.word, value.kind is TokenKind.STRING
    if word == "CONNECTION" and is_string:
        return "CONNECTION"
    if word == "ENGINE" and value.value.upper() in _OTHER_SERVERS:
        return "an engine for tables elsewhere"
    if has_sign and is_string and token.value.upper() not in _PLAIN_OPTIONS:
        return "an option with a text"
    return ""


def _value_behind(tokens: Sequence[Token], index: int) -> Token:
    return _at(tokens, index + 1 + (_at(tokens, index + 1).text == "="))


_NO_TOKEN: Final = Token(TokenKind.END, "", 0, "")


def _at(tokens: Sequence[Token], index: int) -> Token:
    return tokens[index] if 0 <= index < len(tokens) else _NO_TOKEN


def _clauses(tokens: Sequence[Token]) -> Iterator[tuple[int, bool]]:
    """Each name, and whether it stands in an expression or among values."""
    is_expression = [False]
    for index, token in enumerate(tokens):
        if token.text == "(" and token.kind is TokenKind.OPERATOR:
            before = _at(tokens, index - 1)
            is_value = before.word in _BEFORE_EXPRESSIONS or before.text in (
                "(",
                ",",
                "=",
                "+",
                "-",
            )
            # Columns of a table and partitions are no expressions; inside of those all is one.
            is_part = _at(tokens, index + 1).word in _PARTS
            is_inside = len(is_expression) > 1 and not is_part
            is_expression.append((is_value or is_inside or is_expression[-1]) and not is_part)
        elif token.text == ")" and token.kind is TokenKind.OPERATOR:
            if len(is_expression) > 1:
                is_expression.pop()
        elif token.kind in NAME_KINDS:
            yield index, is_expression[-1]


def dotted_names(text: str, dialect: Dialect) -> tuple[list[tuple[str, ...]], frozenset[str]]:
    """The names with dots in a text, by their parts, and the names that stand without or last."""
    tokens = list(tokenise(text, dialect))
    chains: list[tuple[str, ...]] = []
    single: set[str] = set()
    index = 0
    while index < len(tokens):
        if tokens[index].kind not in NAME_KINDS:
            index += 1
            continue
        parts = [tokens[index].value]
        index += 1
        while _at(tokens, index).text == "." and _at(tokens, index + 1).kind in NAME_KINDS:
            parts.append(tokens[index + 1].value)
            index += 2
        if len(parts) > 1:
            chains.append(tuple(parts))
        single.add(parts[-1])
    return chains, frozenset(single)
