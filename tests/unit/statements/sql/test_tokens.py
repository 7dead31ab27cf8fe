"""Where tokens begin and end, and what they mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import SqlSyntaxError, Token, TokenKind, line_of, tokenise

K = TokenKind


def _tokens(text: str, *, ansi_quotes: bool = False, escapes: bool = True) -> list[Token]:
    *tokens, end = tokenise(
        text, Dialect(ansi_quotes=ansi_quotes, no_backslash_escapes=not escapes)
    )
    assert end == Token(K.END, "", len(text), "")
    return tokens


def _texts(text: str) -> list[str]:
    return [token.text for token in _tokens(text)]


@pytest.mark.parametrize(
    "text, kind, value",
    [
        ("select", K.NAME, "select"),
        ("$a_9é", K.NAME, "$a_9é"),
        ("9lives", K.NAME, "9lives"),
        ("0xzz", K.NAME, "0xzz"),
        ("`a``b`", K.QUOTED_NAME, "a`b"),
        ("'it''s'", K.STRING, "it's"),
        (r"'a\'b\n\%\q'", K.STRING, "a'b\n\\%q"),
        ('"say ""so"""', K.STRING, 'say "so"'),
        ("N'x'", K.STRING, "x"),
        ("12", K.NUMBER, "12"),
        ("1.5e-3", K.NUMBER, "1.5e-3"),
        (".5", K.NUMBER, ".5"),
        ("1e5", K.NUMBER, "1e5"),
        ("0x1F", K.NUMBER, "0x1F"),
        ("0b01", K.NUMBER, "0b01"),
        ("x'4F'", K.NUMBER, "x'4F'"),
        ("B'01'", K.NUMBER, "B'01'"),
        ("@a.b$1", K.USER_VARIABLE, "@a.b$1"),
        ("@'a b'", K.USER_VARIABLE, "@'a b'"),
        ("@`a b`", K.USER_VARIABLE, "@`a b`"),
        ("@@global.max_connections", K.SYSTEM_VARIABLE, "@@global.max_connections"),
        ("<=>", K.OPERATOR, "<=>"),
        ("->>", K.OPERATOR, "->>"),
        (":=", K.OPERATOR, ":="),
        ("?", K.OPERATOR, "?"),
    ],
)
def test_one_token(text: str, kind: TokenKind, value: str) -> None:
    assert _tokens(text) == [Token(kind, text, 0, value)]


@pytest.mark.parametrize(
    "text, texts",
    [
        ("a.b", ["a", ".", "b"]),
        ("t.1e5", ["t", ".", "1e5"]),
        ("t.5", ["t", ".", "5"]),
        ("`t`.x'41'", ["`t`", ".", "x", "'41'"]),
        ("t .5", ["t", ".5"]),
        ("1-- 2\n3", ["1", "3"]),
        ("1--2", ["1", "-", "-", "2"]),
        ("1 --", ["1"]),
        ("a#b\nc", ["a", "c"]),
        ("a/* b */c", ["a", "c"]),
        ("a /*! b */ c", ["a", "b", "c"]),
        ("/*!50100 a*/ /*!100401 b*/ /*M! c*//*M!100401 d */", ["a", "b", "c", "d"]),
        ("/*! a /* b */ c */ d", ["a", "c", "d"]),
        ("2*/**/3", ["2", "*", "3"]),
        ("2*/3", ["2", "*", "/", "3"]),
        ("'root'@'%'", ["'root'", "@'%'"]),
        ("a@b", ["a", "@b"]),
        ("a<=>b", ["a", "<=>", "b"]),
        ("'a' 'b'", ["'a'", "'b'"]),
        ("1e", ["1e"]),
        ("'a\\\\'b", ["'a\\\\'", "b"]),
    ],
)
def test_where_tokens_end(text: str, texts: list[str]) -> None:
    assert _texts(text) == texts


def test_a_name_beside_a_dot_is_no_keyword() -> None:
    word, dot, member = _tokens("from.FROM")
    assert (word.word, dot.word, member.word) == ("", "", "")
    assert (word.kind, member.kind) == (K.MEMBER_NAME, K.MEMBER_NAME)
    assert [token.word for token in _tokens("from .a")] == ["FROM", "", ""]


def test_ansi_quotes_quote_names() -> None:
    assert _tokens('"a""b"', ansi_quotes=True) == [Token(K.QUOTED_NAME, '"a""b"', 0, 'a"b')]


def test_without_escapes_a_backslash_ends_nothing() -> None:
    first, second = _tokens(r"'a\' 'b'", escapes=False)
    assert (first.value, second.value) == ("a\\", "b")


@pytest.mark.parametrize(
    "text, offset, line",
    [("a 'b", 2, 1), ('a\n "b', 3, 2), ("`a", 0, 1), ("a /* b", 2, 1), ("a /*! b", 2, 1)],
)
def test_what_does_not_end_is_an_error(text: str, offset: int, line: int) -> None:
    with pytest.raises(SqlSyntaxError) as raised:
        _tokens(text)
    assert (raised.value.offset, raised.value.line) == (offset, line)
    assert (raised.value.errno, raised.value.sqlstate) == (1064, "42000")
    assert f"near '{text[offset:]}' at line {line}: expected " in str(raised.value)


def test_lines_count_from_one() -> None:
    text = "a\nbc d"
    offset = text.index("d")
    assert (line_of(text, 0), line_of(text, offset)) == (1, 2)


SQL = st.text(st.sampled_from("ab1.@'\"`\\/*!-# \n;eExX0é"), max_size=30)


@given(text=st.one_of(st.text(), SQL), ansi_quotes=st.booleans(), escapes=st.booleans())
def test_tokens_and_gaps_make_up_the_text(text: str, *, ansi_quotes: bool, escapes: bool) -> None:
    try:
        tokens = _tokens(text, ansi_quotes=ansi_quotes, escapes=escapes)
    except SqlSyntaxError:
        return
    offset = 0
    for token in [*tokens, Token(K.END, "", len(text), "")]:
        assert token.offset >= offset
        assert text[token.offset : token.end] == token.text
        gap = text[offset : token.offset].strip(" \t\n\v\f\r")
        assert not gap or gap.startswith(("/*", "*/", "#", "--"))
        offset = token.end
