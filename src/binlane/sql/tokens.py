"""The tokens of MySQL and MariaDB SQL text.

Exact about where names, strings and comments begin and end under each sql_mode, because a table
that hides behind a wrong quote would be taken for safe. Executable comments (`/*! … */`,
`/*!50100 … */`, `/*M! … */`) are code: their brackets are skipped, their content is not; which of
them a server runs is told in `comments`. No grammar lives here, see `cursor` and `ddl`.

Source: MySQL and MariaDB lexer, sql/sql_lex.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Final, NamedTuple

from binlane.errors import StatementError

NEAR_LENGTH_MAX: Final = 80
"""Characters of the statement that a syntax error shows, as the servers do."""


class SqlSyntaxError(StatementError):
    """A statement that is not what its grammar says: error 1064.

    Attributes:
        offset: Where in the statement, in characters from 0.
        line: The same as a line number, from 1.
    """

    def __init__(self, statement: str, offset: int, expected: str, *, hint: str = "") -> None:
        self.offset = offset
        self.line = line_of(statement, offset)
        near = statement[offset : offset + NEAR_LENGTH_MAX]
        super().__init__(
            f"You have an error in your SQL syntax near '{near}' at line {self.line}: "
            f"expected {expected}",
            errno=1064,
            sqlstate="42000",
            hint=hint,
        )


class TokenKind(Enum):
    """What a token is, before any grammar."""

    NAME = "name"
    """A word without quotes: a keyword or an identifier."""
    QUOTED_NAME = "quoted name"
    MEMBER_NAME = "name behind a dot"
    """Never a keyword, with or without quotes."""
    STRING = "string"
    NUMBER = "number"
    """A decimal, hexadecimal or bit literal."""
    USER_VARIABLE = "user variable"
    SYSTEM_VARIABLE = "system variable"
    OPERATOR = "operator"
    ROWS = "rows of literals"
    """Rows of VALUES, their commas included; `value` counts them. Of `tokenise_long` only."""
    LITERALS = "literals"
    """Literals with a comma before each. Of `tokenise_long` only."""
    INVALID = "invalid"
    """What the tokenizer could not read; only in `StatementEffects.stopped_at`."""
    END = "end"
    """Where the statement ends; has no text."""


NAME_KINDS: Final = (TokenKind.NAME, TokenKind.QUOTED_NAME, TokenKind.MEMBER_NAME)


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: What it is.
        text: As it stands in the statement.
        offset: Where, in characters from 0.
        value: The name without its quotes, the string without quotes and escapes, else `text`.
    """

    kind: TokenKind
    text: str
    offset: int
    value: str

    @property
    def end(self) -> int:
        """The offset behind the token."""
        return self.offset + len(self.text)

    @property
    def word(self) -> str:
        """The word in capitals if this can be a keyword, else the empty text."""
        return self.text.upper() if self.kind is TokenKind.NAME else ""


def line_of(statement: str, offset: int) -> int:
    """The line, from 1, that holds an offset."""
    return statement.count("\n", 0, offset) + 1


WORD: Final = r"[0-9A-Za-z_$\x80-\U0010FFFF]"
BACKTICKS: Final = r"`(?:[^`]|``)*+`"
NUMBER: Final = rf"""
    0x[0-9A-Fa-f]++(?!{WORD}) | 0b[01]++(?!{WORD})
  | \d++\.\d*+(?:[eE][+-]?\d++)? | \.\d++(?:[eE][+-]?\d++)?
  | \d++[eE][+-]?\d++ | \d++(?!{WORD})
"""
OPERATORS: Final = r"<=>|<=|>=|<>|!=|\|\||&&|:=|<<|>>|->>|->|[\x00-\x7F]"


def literals(quote: str, *, backslash_escapes: bool) -> str:
    """The pattern of a string in some quotes."""
    escaped = r"[^\\" + quote + r"]|\\." if backslash_escapes else f"[^{quote}]"
    return f"{quote}(?:{escaped}|{quote}{quote})*+{quote}"


@cache
def pattern(*, ansi_quotes: bool, no_backslash_escapes: bool) -> re.Pattern[str]:
    """The pattern of one token; compiling one takes longer than reading most statements."""
    single = literals("'", backslash_escapes=not no_backslash_escapes)
    double = literals('"', backslash_escapes=not no_backslash_escapes)
    name_in_quotes = BACKTICKS
    string = f"[nN]?{single}"
    if ansi_quotes:
        name_in_quotes += r'|"(?:[^"]|"")*+"'
    else:
        string += f"|{double}"
    return re.compile(
        rf"""
        (?P<GAP> [ \t\n\v\f\r]++ | \#[^\n]*+ | --(?=[\x00-\x20]|\Z)[^\n]*+ )
      | (?P<OPEN> /\*M?!(?:\d{{5,6}})? )
      | (?P<COMMENT> /\*.*?\*/ )
      | (?P<UNENDED_COMMENT> /\* )
      | (?P<NUMBER> [xX]'[0-9A-Fa-f]*+' | [bB]'[01]*+' | {NUMBER} )
      | (?P<STRING> {string} )
      | (?P<NAME> {WORD}++ )
      | (?P<QUOTED_NAME> {name_in_quotes} )
      | (?P<SYSTEM_VARIABLE> @@(?:{WORD}++|{BACKTICKS})(?:\.(?:{WORD}++|{BACKTICKS}))*+ )
      | (?P<USER_VARIABLE> @(?:(?:{WORD}|\.)++|{BACKTICKS}|{single}|{double}) )
      | (?P<UNENDED> ['"`] )
      | (?P<OPERATOR> {OPERATORS} )
        """,
        re.VERBOSE | re.DOTALL,
    )


WORD_PATTERN: Final = re.compile(rf"{WORD}++")
KINDS: Final = {kind.name: kind for kind in TokenKind}
QUOTED: Final = ("QUOTED_NAME", "STRING")
SKIPPED: Final = ("GAP", "OPEN", "COMMENT")
UNENDED: Final = {
    "UNENDED_COMMENT": "the comment to end with */",
    "UNENDED": "the quotes to end",
}
ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
WILDCARD_ESCAPES: Final = ("%", "_")
"""Escapes that keep their backslash, for LIKE."""


def tokenise(
    statement: str, *, ansi_quotes: bool = False, no_backslash_escapes: bool = False
) -> Iterator[Token]:
    r"""Read the tokens of a statement, last an END token.

    Args:
        statement: SQL text. Bytes that are no text stand as lone surrogates and count as letters.
        ansi_quotes: sql_mode ANSI_QUOTES: `"` quotes names, not strings.
        no_backslash_escapes: sql_mode NO_BACKSLASH_ESCAPES: `\` in strings is a character.

    Returns:
        Tokens in order; what stands between them is white space, comments and the brackets of
        executable comments.

    Raises:
        SqlSyntaxError: While they are read, if a comment, string or quoted name does not end.
    """
    return _tokens(
        statement, ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes, runs=None
    )


def _tokens(
    statement: str,
    *,
    ansi_quotes: bool,
    no_backslash_escapes: bool,
    runs: tuple[re.Pattern[str], ...] | None,
) -> Iterator[Token]:
    match = pattern(ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes).match
    offset = 0
    open_comments: list[int] = []
    previous: Token | None = None
    previous_end = -1
    has_escapes = not no_backslash_escapes
    while found := match(statement, offset):
        kind, text = found.lastgroup, found.group()
        assert kind is not None  # every alternative of the pattern is a named group
        if open_comments and statement.startswith("*/", offset):
            open_comments.pop()
            offset += 2
        elif kind in SKIPPED:
            if kind == "OPEN":
                open_comments.append(offset)
            offset = found.end()
        elif kind in UNENDED:
            raise SqlSyntaxError(statement, offset, UNENDED[kind])
        elif runs and previous and (run := _run(statement, offset, previous, runs)):
            previous = run
            yield run
            offset = previous_end = run.end
        else:
            if previous_end == offset and previous is not None:
                kind, text = _beside_dot(kind, text, previous)
            value = _value(kind, text, has_escapes=has_escapes) if kind in QUOTED else text
            body = _dollar_quoted(statement, offset, previous) if text[0] == "$" else None
            if body is not None:
                kind, text, value = "STRING", body.group(), body["text"]
            previous = Token(KINDS[kind], text, offset, value)
            yield previous
            offset = previous_end = offset + len(text)
    if open_comments:
        raise SqlSyntaxError(statement, open_comments[-1], "the comment to end with */")
    yield Token(TokenKind.END, "", len(statement), "")


_LITERAL: Final = (
    r"(?: -?\d++(?:\.\d*+)?(?:[eE][+-]?\d++)? | (?:_[0-9A-Za-z]++[ ]?|[nNxXbB])?{string}"
    r" | [nN][uU][lL][lL] | 0x[0-9A-Fa-f]++ )"
)
ROWS_MIN: Final = 8
LITERALS_MIN: Final = 16
"""Fewer rows or literals than these are tokens of their own."""


@cache
def _compile_runs(
    *, has_double_quotes: bool, backslash_escapes: bool
) -> tuple[re.Pattern[str], ...]:
    """Patterns of a row of literals, and of many literals; only long statements need them."""
    string = literals("'", backslash_escapes=backslash_escapes)
    if has_double_quotes:
        double = literals('"', backslash_escapes=backslash_escapes)
        string = f"(?:{string}|{double})"
    literal = _LITERAL.replace("{string}", string)
    row = rf"\(\s*+{literal}\s*+(?:,\s*+{literal}\s*+)*+\)\s*+,\s*+"
    return (
        re.compile(row, re.VERBOSE | re.DOTALL),
        re.compile(rf"(?:,\s*+{literal}\s*+(?=[,)])){{{LITERALS_MIN},}}+", re.VERBOSE | re.DOTALL),
    )


def tokenise_long(
    statement: str, *, ansi_quotes: bool = False, no_backslash_escapes: bool = False
) -> Iterator[Token]:
    """Read tokens as `tokenise`, but many rows of literals, or many literals, as one token.

    So a statement with a million values takes little more memory than its text.
    """
    return _tokens(
        statement,
        ansi_quotes=ansi_quotes,
        no_backslash_escapes=no_backslash_escapes,
        runs=_compile_runs(
            has_double_quotes=not ansi_quotes, backslash_escapes=not no_backslash_escapes
        ),
    )


def _run(
    statement: str, offset: int, previous: Token, runs: tuple[re.Pattern[str], ...]
) -> Token | None:
    """Many rows or literals that begin at an offset, as one token."""
    rows, literals = runs
    if previous.text == "," and statement[offset] == "(":
        count, end = 0, offset
        while found := rows.match(statement, end):
            count, end = count + 1, found.end()
        if count >= ROWS_MIN:
            return Token(TokenKind.ROWS, statement[offset:end], offset, str(count))
    elif previous.kind in (TokenKind.NUMBER, TokenKind.STRING) and statement[offset] == ",":
        run = literals.match(statement, offset)
        if run is not None:
            return Token(TokenKind.LITERALS, run.group(), offset, run.group())
    return None


_DOLLAR_QUOTED: Final = re.compile(r"(?P<tag>\$[^\s$]*+\$)(?P<text>.*?)(?P=tag)", re.DOTALL)
_LANGUAGE: Final = re.compile(r"\bLANGUAGE\s", re.IGNORECASE)


def _dollar_quoted(statement: str, offset: int, previous: Token | None) -> re.Match[str] | None:
    """The body of a MySQL routine in another language, `AS $$ … $$`; elsewhere `$$` is a name."""
    if previous is None or previous.word != "AS" or not _LANGUAGE.search(statement, 0, offset):
        return None
    return _DOLLAR_QUOTED.match(statement, offset)


def _beside_dot(kind: str, text: str, previous: Token) -> tuple[str, str]:
    """Correct what a dot decides: in `t.1e5` there is no number, but two names and a dot."""
    if previous.text == "." and (word := WORD_PATTERN.match(text)):
        return "MEMBER_NAME", word.group()
    if text[0] == "." and previous.kind in NAME_KINDS:
        return "OPERATOR", "."
    return kind, text


def _value(kind: str, text: str, *, has_escapes: bool) -> str:
    if kind == "QUOTED_NAME":
        return text[1:-1].replace(text[0] * 2, text[0])
    return _string_value(text.lstrip("nN"), has_escapes=has_escapes)


def _string_value(text: str, *, has_escapes: bool) -> str:
    quote, content = text[0], text[1:-1]
    if not has_escapes or "\\" not in content:
        return content.replace(quote * 2, quote)
    return re.sub(rf"\\(.)|{quote}{quote}", _unescape, content, flags=re.DOTALL)


def _unescape(found: re.Match[str]) -> str:
    character: str | None = found.group(1)
    if character is None:
        return found.group()[0]
    if character in WILDCARD_ESCAPES:
        return found.group()
    return ESCAPES.get(character, character)
