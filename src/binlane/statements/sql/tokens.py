"""The tokens of MySQL and MariaDB SQL text.

Exact about where names, strings and comments begin and end under each sql_mode, because a table
that hides behind a wrong quote would be taken for safe. Executable comments (`/*! … */`,
`/*!50100 … */`, `/*M! … */`) are code: their brackets are skipped, their content is not, since what
a log or proxy sees may have been run by any server. `server_text` takes out those that one server
does not run. In a long statement on rows, many rows of literals, or many literals, are one token:
so a statement with a million values takes little more memory than its text. No grammar lives here,
see `parser`.

Source: MySQL and MariaDB lexer, sql/sql_lex.cc, lex_one_token and consume_comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, partial
from typing import Final, NamedTuple

from binlane.errors import StatementError
from binlane.log.codec.client_text import SWE7, told_text
from binlane.statements.sql.lexis import BEHIND_DASHES, NO_WORD, SPACES, lexed_by
from binlane.statements.sql.servers import ANY, Dialect

NEAR_LENGTH_MAX: Final = 80
"""Characters of the statement that a syntax error shows, as the servers do."""


class SqlSyntaxError(StatementError):
    """A statement that is not what its grammar says: error 1064.

    Attributes:
        offset: Place in the statement, in characters from 0.
        line: Number of the line with that place, from 1.
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
    """Kind of a token, before any grammar."""

    NAME = "name"
    """A word without quotes: a keyword or an identifier."""
    QUOTED_NAME = "quoted name"
    MEMBER_NAME = "name behind a dot"
    """A name that is never a keyword, with or without quotes."""
    STRING = "string"
    NUMBER = "number"
    """A decimal, hexadecimal or bit literal."""
    USER_VARIABLE = "user variable"
    SYSTEM_VARIABLE = "system variable"
    OPERATOR = "operator"
    ROWS = "rows of literals"
    """Rows of VALUES, with a comma before each. Of long statements only."""
    LITERALS = "literals"
    """Literals with a comma before each. Of long statements only."""
    INVALID = "invalid"
    """Text that the tokenizer could not read; only in `StatementEffects.stopped_at`."""
    END = "end"
    """The end of the statement; has no text."""


NAME_KINDS: Final = (TokenKind.NAME, TokenKind.QUOTED_NAME, TokenKind.MEMBER_NAME)


class Token(NamedTuple):
    """One token.

    Attributes:
        text: Text as it stands in the statement.
        offset: Place in the statement, in characters from 0.
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


WORD: Final = rf"[^{NO_WORD}]"
BACKTICKS: Final = r"`[^`]*+(?:``[^`]*+|(?!))*+`"
NUMBER: Final = rf"""
    0x[0-9A-Fa-f]++(?!{WORD}) | 0b[01]++(?!{WORD})
  | \d++\.\d*+(?:[eE][+-]?\d++)? | \.\d++(?:[eE][+-]?\d++)?
  | \d++[eE][+-]?\d++ | \d++(?!{WORD})
"""


def literals(quote: str, *, backslash_escapes: bool) -> str:
    """The pattern of a string in some quotes."""
    plain, pair = f"[^{quote}]*+", quote + quote
    if backslash_escapes:
        plain, pair = f"[^{quote}\\\\]*+", rf"(?:\\.|{pair})"
    return f"{quote}{plain}(?:{pair}{plain}|(?!))*+{quote}"


LONG: Final = 16_384
"""Characters from which on literals are read in runs."""
ROWS_MIN: Final = 8
LITERALS_MIN: Final = 16
"""Fewer rows or literals than these are tokens of their own."""
RUN_MAX: Final = 8_192
"""Rows or literals of one token at most: while a pattern matches, no other thread goes on."""
READ_MAX: Final = 1_000_000
"""More are not analysed: their memory would be many times that of the text."""
_HAVE_RUNS: Final = frozenset(("INSERT", "REPLACE", "UPDATE", "DELETE", "SELECT", "WITH", "DO"))


@dataclass(slots=True)
class Tokens:
    """The tokens of a text as lists of the same length, last an END token.

    Attributes:
        kinds: Kinds of the tokens, in order.
        words: An unquoted word in capitals (a keyword or a name), or an operator as it is. Empty
            for all other tokens, and beside a dot.
        texts: Texts as they stand in the statement.
        starts: Places of the tokens, in characters from 0.
    """

    kinds: list[TokenKind] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)


_LETTER: Final = rf"[^{NO_WORD}0-9]"
_ASCII_WORD: Final = re.compile(r"[0-9A-Z_$]*").fullmatch
_LITERAL: Final = (
    r"(?: [-+]?+\d++(?:\.\d*+|(?!))?+(?:[eE][+-]?+\d++|(?!))?+(?!{word})"
    r" | (?:_[0-9A-Za-z]++[ ]?+|[nNxXbB])?{string}"
    r" | (?:[nN][uU][lL][lL]|[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]|0x[0-9A-Fa-f]++)(?!{word}) )"
).replace("{word}", WORD)


# The groups of the pattern.
_NAME: Final = 1
_SIGN: Final = 2
_MEMBER: Final = 3
_NUMBER: Final = 4
_STRING: Final = 5
_QUOTED_NAME: Final = 6
_OPERATOR: Final = 7
_SYSTEM_VARIABLE: Final = 8
_USER_VARIABLE: Final = 9
_COMMENT: Final = 10
_OPEN: Final = 11
_CLOSE: Final = 12
_UNENDED_COMMENT: Final = 13
_UNENDED: Final = 14
_END: Final = 15
_ROWS: Final = 16
_LITERALS: Final = 17
_NAME_OF_DIGITS: Final = 18
_KINDS: Final = {
    _NUMBER: TokenKind.NUMBER,
    _STRING: TokenKind.STRING,
    _QUOTED_NAME: TokenKind.QUOTED_NAME,
    _SYSTEM_VARIABLE: TokenKind.SYSTEM_VARIABLE,
    _USER_VARIABLE: TokenKind.USER_VARIABLE,
    _ROWS: TokenKind.ROWS,
    _LITERALS: TokenKind.LITERALS,
    _END: TokenKind.END,
}


def _strings(*, ansi_quotes: bool, no_backslash_escapes: bool) -> str:
    single = literals("'", backslash_escapes=not no_backslash_escapes)
    if ansi_quotes:
        return single
    return f"{single}|{literals(chr(34), backslash_escapes=not no_backslash_escapes)}"


def literal_pattern(dialect: Dialect) -> str:
    """The pattern of one literal in a run of them."""
    string = _strings(
        ansi_quotes=dialect.ansi_quotes, no_backslash_escapes=dialect.no_backslash_escapes
    )
    literal = _LITERAL.replace("{string}", f"(?:{string})")
    return lexed_by(literal, dialect.charset, dialect.flavor)


@cache
def _pattern(
    *,
    ansi_quotes: bool,
    no_backslash_escapes: bool,
    charset: str,
    flavor: str,
    has_runs: bool = False,
    has_code: bool = False,
) -> re.Pattern[str]:
    """The pattern of white space and the token behind it.

    Args:
        ansi_quotes: True if sql_mode has ANSI_QUOTES.
        no_backslash_escapes: True if sql_mode has NO_BACKSLASH_ESCAPES.
        charset: Character set as in `Dialect.charset`.
        flavor: Flavor as in `Dialect.flavor`, or empty.
        has_runs: True to match a run of rows or literals as one token.
        has_code: True if there are executable comments, whose end is no operator.
    """
    strings = _strings(ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes)
    single = literals("'", backslash_escapes=not no_backslash_escapes)
    double = literals('"', backslash_escapes=not no_backslash_escapes)
    names = BACKTICKS + (r'|"[^"]*+(?:""[^"]*+|(?!))*+"' if ansi_quotes else "")
    rows = runs = "(?!)"
    if has_runs:
        literal = _LITERAL.replace("{string}", f"(?:{strings})")
        rows = (
            rf"(?:,\s*+\(\s*+{literal}\s*+(?:,\s*+{literal}\s*+|(?!))*+\)\s*+|(?!))"
            rf"{{{ROWS_MIN},{RUN_MAX}}}+"
        )
        runs = rf"(?:,\s*+{literal}\s*+(?=[,)])|(?!)){{{LITERALS_MIN},{RUN_MAX}}}+"
    star, close = (r"\*(?!/)", r"\*/") if has_code else (r"\*", "(?!)")
    # The comma of a run is no sign of its own.
    comma = "" if has_runs else ","
    pattern = rf"""[{SPACES}]*+
      (?: ( (?![xXbBnN]'){_LETTER}{WORD}*+ )
        | ( [();=+?{comma}\[\]{{}}~^%] )
        | ( (?:\.(?!\d)|\.(?<=(?:{WORD}|[`"])\.)){WORD}++ )
        | ( [xX]'(?:[0-9A-Fa-f]{{2}}|(?!))*+' | [bB]'[01]*+' | {NUMBER} )
        | ( [nN]?{single} | {strings} )
        | ( {names} )
        | ( {star} | \. | -(?!-[{BEHIND_DASHES}]|-\Z|>) | ->> | -> | <=> | <= | << | <> | < | >= | >> | >
          | != | ! | \|\| | \| | && | & | := | : | /(?!\*) )
        | ( @@(?:{WORD}++|{BACKTICKS})(?:\.(?:{WORD}++|{BACKTICKS})|(?!))*+ )
        | ( @(?:(?:{WORD}|\.|(?!))++|{BACKTICKS}|{single}|{double}) )
        | ( \#[^\n]*+ | --[^\n]*+ | /\*(?!M?!).*?\*/ )
        | ( /\*M?!(?:\d{{5,6}})? )
        | ( {close} )
        | ( /\* )
        | ( [xXbB]?['"`] )
        | ( \Z )
        | ( {rows} )
        | ( {runs} )
        | ( {WORD}++ )
        | ( [\x00-\x7F] ) )
        """
    return re.compile(lexed_by(pattern, charset, flavor), re.VERBOSE | re.DOTALL)


def read_tokens(text: str, dialect: Dialect) -> Tokens:
    """Read the tokens of a statement.

    Args:
        text: SQL text. Bytes that are no text stand as lone surrogates and count as letters.
        dialect: Dialect of the text, for its quotes and escapes.

    Returns:
        All tokens; without the END token if there are more than `READ_MAX`.

    Raises:
        SqlSyntaxError: If a comment, string or quoted name does not end.
    """
    tokens = Tokens()
    _read(text, dialect, tokens)
    if dialect.charset == SWE7:
        _take_words_from_letters(tokens)
    return tokens


def _take_words_from_letters(tokens: Tokens) -> None:
    """Let names in which operators of ASCII are letters be no words."""
    for place, kind in enumerate(tokens.kinds):
        if kind is TokenKind.NAME and not _ASCII_WORD(tokens.words[place]):
            tokens.words[place] = ""


def _read(  # noqa: C901, PLR0912 - the hottest loop
    text: str, dialect: Dialect, tokens: Tokens
) -> None:
    kinds, words, texts, starts = tokens.kinds, tokens.words, tokens.texts, tokens.starts
    add_kind, add_word = kinds.append, words.append
    add_text, add_start = texts.append, starts.append
    is_name, is_operator = TokenKind.NAME, TokenKind.OPERATOR
    opened: list[int] = []
    for found in _matches(text, dialect, tokens):
        group = found.lastindex
        token = found[group]  # type: ignore[index] # each alternative is a group
        if group == _NAME or group == _NAME_OF_DIGITS:  # noqa: PLR1714, SIM109 - faster
            add_kind(is_name)
            add_word(token.upper() if token.isascii() else "")
        elif group == _SIGN or group == _OPERATOR:  # noqa: PLR1714, SIM109
            add_kind(is_operator)
            add_word(token)
        elif group in _KINDS:
            add_kind(_KINDS[group])
            add_word("")
        elif group == _MEMBER:
            start = found.end() - len(token)
            if kinds and kinds[-1] is is_name and starts[-1] + len(texts[-1]) == start:
                # A name, though it be a reserved word: `select.a`.
                kinds[-1], words[-1] = TokenKind.MEMBER_NAME, ""
            add_kind(is_operator)
            add_word(".")
            add_text(".")
            add_start(start)
            token = token[1:]
            add_kind(TokenKind.MEMBER_NAME)
            add_word("")
        elif group == _COMMENT:
            continue
        elif group == _OPEN:
            opened.append(found.start(_OPEN))
            continue
        elif group == _CLOSE:
            opened.pop()
            continue
        elif group == _UNENDED_COMMENT:
            raise SqlSyntaxError(text, found.start(group), "the comment to end with */")
        elif group == _UNENDED:
            raise SqlSyntaxError(text, found.start(group), "the quotes to end")
        else:
            add_kind(is_operator)
            add_word(token)
        add_text(token)
        add_start(found.end() - len(token))
        if group == _END:
            break
    if opened:
        raise SqlSyntaxError(text, opened[-1], "the comment to end with */")


def _matches(text: str, dialect: Dialect, tokens: Tokens) -> Iterator[re.Match[str]]:
    is_coded = "/*!" in text or "/*M!" in text
    if not is_coded and len(text) > LONG:
        pattern = _pattern_of(dialect)
        return _long_matches(text, pattern(), pattern(has_runs=True), tokens)
    if not is_coded and "$" in text and _LANGUAGE.search(text):
        return _dollar_quoted(text, _pattern_of(dialect)(), tokens)
    return _all_matches(text, dialect)


def _coded_matches(
    text: str, coded: re.Pattern[str], plain: re.Pattern[str]
) -> Iterator[re.Match[str]]:
    """The matches of a text with executable comments."""
    offset = depth = count = 0
    while count <= READ_MAX:
        for found in coded.finditer(text, offset):
            count += 1
            if found.lastindex == _OPEN:
                depth += 1
            elif found.lastindex == _CLOSE:
                if not depth:
                    # No end of a comment, but an asterisk before something else.
                    star = plain.match(text, found.start(_CLOSE))
                    assert star is not None  # the plain pattern takes anything
                    yield star
                    offset = star.end()
                    break
                depth -= 1
            yield found
            if count > READ_MAX:
                break
        else:
            return


def _long_matches(
    text: str, short: re.Pattern[str], long: re.Pattern[str], tokens: Tokens
) -> Iterator[re.Match[str]]:
    """The matches of a long text: with runs, if it is a statement on rows."""
    pattern, offset = short, 0
    for found in short.finditer(text):
        yield found
        offset = found.end()
        if tokens.words and tokens.words[-1] != "(":
            if tokens.words[-1] in _HAVE_RUNS:
                pattern = long
            break
    for found in pattern.finditer(text, offset):
        if len(tokens.kinds) > READ_MAX:
            return
        yield found


_DOLLAR_QUOTED: Final = re.compile(r"(?P<tag>\$[^\s$]*+\$)(?P<text>.*?)(?P=tag)", re.DOTALL)
_LANGUAGE: Final = re.compile(r"\bLANGUAGE\s", re.IGNORECASE)


def _dollar_quoted(text: str, pattern: re.Pattern[str], tokens: Tokens) -> Iterator[re.Match[str]]:
    """The matches of a MySQL routine in another language: its body stands `AS $$ … $$`."""
    offset = 0
    while True:
        for found in pattern.finditer(text, offset):
            start = found.start(found.lastindex or 0)
            body = None
            if text.startswith("$", start) and tokens.words[-1:] == ["AS"]:
                body = _DOLLAR_QUOTED.match(text, start)
            if body is None:
                yield found
                continue
            tokens.kinds.append(TokenKind.STRING)
            tokens.words.append("")
            tokens.texts.append(body.group())
            tokens.starts.append(start)
            offset = body.end()
            break
        else:
            return


def names_in(text: str, dialect: Dialect) -> Iterator[tuple[TokenKind, tuple[str, ...]]]:
    """All that may be a name in a text of any length, understood or not.

    Args:
        text: SQL text of any length.
        dialect: Dialect of the text, for its quotes and escapes.

    Returns:
        Names with the dots between them, each with the kind of the first: a keyword is one, too.

    Raises:
        SqlSyntaxError: If a comment, string or quoted name does not end, or there is code in more
            comments than are read.
    """
    kind, chain, is_behind_dot = TokenKind.END, [""], False
    for found in _all_matches(text, dialect):
        group = found.lastindex
        assert group is not None  # each alternative is a group
        token = found[group]
        if group in (_UNENDED_COMMENT, _UNENDED):
            raise SqlSyntaxError(text, found.start(group), "it to end")
        if group in (_COMMENT, _OPEN, _CLOSE):
            continue
        if group == _MEMBER:
            chain.append(bare_name(token[1:], dialect))
        elif group == _OPERATOR and token == ".":  # noqa: S105 - no password
            is_behind_dot = True
            continue
        else:
            is_name = group in (_NAME, _NAME_OF_DIGITS, _QUOTED_NAME)
            is_quoted = group == _QUOTED_NAME
            name = quoted_name(token, dialect) if is_quoted else bare_name(token, dialect)
            if is_name and is_behind_dot:
                chain.append(name)
            else:
                if any(chain):
                    yield kind, tuple(chain)
                kind = TokenKind.QUOTED_NAME if is_quoted else TokenKind.NAME
                chain = [name if is_name else ""]
        is_behind_dot = False
        if group == _END:
            return
    raise SqlSyntaxError(text, len(text), "less of it")


def _all_matches(text: str, dialect: Dialect) -> Iterator[re.Match[str]]:
    pattern = _pattern_of(dialect)
    if "/*!" in text or "/*M!" in text:
        return _coded_matches(text, pattern(has_code=True), pattern())
    return pattern().finditer(text)


def _pattern_of(dialect: Dialect) -> Callable[..., re.Pattern[str]]:
    return partial(
        _pattern,
        ansi_quotes=dialect.ansi_quotes,
        no_backslash_escapes=dialect.no_backslash_escapes,
        charset=dialect.charset,
        flavor=dialect.flavor,
    )


ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
WILDCARD_ESCAPES: Final = ("%", "_")
"""Escapes that keep their backslash, for LIKE."""


def tokenise(statement: str, dialect: Dialect = ANY) -> Iterator[Token]:
    """Read the tokens of a short statement, last an END token.

    Args:
        statement: SQL text. Bytes that are no text stand as lone surrogates and count as letters.
        dialect: Dialect of the text, for its quotes and escapes.

    Returns:
        Tokens in order; white space, comments and the brackets of executable comments stand
        between them.

    Raises:
        SqlSyntaxError: While they are read, if a comment, string or quoted name does not end.
    """
    tokens = Tokens()
    failure: SqlSyntaxError | None = None
    try:
        _read(statement, dialect, tokens)
    except SqlSyntaxError as error:
        failure = error
    for kind, text, start in zip(tokens.kinds, tokens.texts, tokens.starts, strict=True):
        yield Token(kind, text, start, value_of(kind, text, dialect))
    if failure is not None:
        raise failure


def split(tokens: Sequence[Token], separator: str = ",") -> list[list[Token]]:
    """Split tokens at an operator outside of parentheses."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if depth == 0 and token.kind is TokenKind.OPERATOR and token.text == separator:
            parts.append([])
            continue
        depth += depth_change(token)
        parts[-1].append(token)
    return parts


def depth_change(token: Token) -> int:
    """Give the number of parentheses by which the text behind a token stands deeper."""
    if token.kind is not TokenKind.OPERATOR:
        return 0
    return {"(": 1, ")": -1}.get(token.text, 0)


def value_of(kind: TokenKind, text: str, dialect: Dialect) -> str:
    """The value of a token (`Token.value`)."""
    if kind is TokenKind.QUOTED_NAME:
        return quoted_name(text, dialect)
    if kind is not TokenKind.STRING:
        return text
    if text[0] == "$":  # $$ … $$
        return text[text.index("$", 1) + 1 : text.rindex("$", 0, -1)]
    return string_value(text.lstrip("nN"), dialect)


def bare_name(text: str, dialect: Dialect) -> str:
    """The name without quotes: of ASCII, the servers take it as it is, in swe7, too."""
    return text if dialect.charset == SWE7 else told_text(text, dialect.charset)


def quoted_name(text: str, dialect: Dialect) -> str:
    """The name in quotes, without them."""
    name = text[1:-1].replace(text[0] * 2, text[0])
    return told_text(name, dialect.charset) if dialect.charset else name


def string_value(text: str, dialect: Dialect) -> str:
    """The value of a string in quotes, without them and without escapes."""
    quote, content = text[0], text[1:-1]
    if dialect.no_backslash_escapes or "\\" not in content:
        content = content.replace(quote * 2, quote)
    else:
        content = re.sub(rf"\\(.)|{quote}{quote}", _unescape, content, flags=re.DOTALL)
    return told_text(content, dialect.charset) if dialect.charset else content


def _unescape(found: re.Match[str]) -> str:
    character: str | None = found.group(1)
    if character is None:
        return found.group()[0]
    if character in WILDCARD_ESCAPES:
        return found.group()
    return ESCAPES.get(character, character)
