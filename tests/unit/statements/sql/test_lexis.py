"""Statements in character sets whose letters and white space are not those of UTF-8."""

from __future__ import annotations

import pytest

from binlane.log.codec.client_text import client_codec
from binlane.statements.sql.lexis import is_same_in_utf8, lexed_as
from binlane.statements.sql.parser import statement_texts
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import StatementKind


def written(data: bytes, charset: str, flavor: str = "") -> tuple[set[str], set[str]] | None:
    """The tables that a statement changes, and the functions that it calls; None if it is none."""
    codec = client_codec(charset)
    assert codec is not None
    dialect = Dialect(flavor=flavor, charset=lexed_as(charset))
    facts = read(codec.decode(data), database="d", dialect=dialect)
    if facts.effects.stopped_at is not None:
        return None
    return {one.table for one in facts.effects.writes}, {one.name for one in facts.functions}


@pytest.mark.parametrize(
    ("charset", "data", "tables"),
    [
        ("swe7", b"CREATE TABLE [zz] (a{b INT)", {"[zz]"}),
        ("swe7", b"ALTER TABLE `[zz]` ADD a INT", {"ÄzzÅ"}),
        ("swe7", b"UPDATE ^, ~ SET a}=1", {"^", "~"}),
        ("swe7", b"DELETE FROM `a@b|c``d`", {"aÉböcéd"}),
        ("utf8mb4", b"CREATE TABLE [zz] (a INT)", None),
        ("latin1", b"DELETE\xa0FROM\xa0t\xa0WHERE a=1", {"t"}),
        ("cp866", b"DELETE\xffFROM\xfft", {"t"}),
        ("koi8r", b"DELETE FROM t\x9aWHERE", {"t\xa0WHERE"}),
        ("utf8mb4", "DELETE FROM t\xa0WHERE".encode(), {"t\xa0WHERE"}),
        ("cp850", b"DELETE FROM t --\xff, u WHERE", {"t"}),
        ("hp8", b"DELETE FROM t --\xb1, u WHERE", {"t"}),
        ("utf8mb4", b"DELETE FROM t --\x7f, u WHERE", {"t"}),
        ("cp1251", b"DELETE FROM t --\x7f, u WHERE", None),
        ("armscii8", b"DELETE FROM `t\xff` WHERE a='\xff,'", {"t'"}),
        ("sjis", b"UPDATE `t\x81\x5f`, a\x81\x5fb SET a='\x81\x5f'", {"t\\", "a\\b"}),
        ("gbk", b"DELETE FROM `\x81\x60`", {"乣"}),
        ("gbk", b"DELETE FROM t WHERE a='\x81\x5c'", {"t"}),
    ],
)
def test_names_are_those_of_the_server(charset: str, data: bytes, tables: set[str] | None) -> None:
    found = written(data, charset)
    assert (None if found is None else found[0]) == tables


def test_operators_of_ascii_may_be_functions() -> None:
    assert written(b"SELECT ~ (1), {x(2)", "swe7") == (set(), {"~", "{x"})
    assert written(b"SELECT a\\b(1)", "swe7", "mysql") == (set(), {"a\\b"})
    assert written(b"SELECT a\\b(1)", "swe7", "mariadb") is None
    assert written(b"SELECT ~ (1)", "latin1") == (set(), set())


def test_words_are_words_in_swe7() -> None:
    facts = read("SET NAMES swe7", database="", dialect=Dialect(charset="swe7"))
    assert facts.effects.kind is StatementKind.SET
    assert written(b"SELECT @@version, @a, 1 | 2, 'x' || 'y'", "swe7") == (set(), set())


@pytest.mark.parametrize(
    ("charset", "text", "is_same"),
    [
        ("swe7", "SELECT 1", True),
        ("swe7", "SELECT `a`", False),
        ("latin1", "SELECT 'é'", True),
        ("latin1", "SELECT\xa01", False),
        ("sjis", "SELECT 'ソ'", True),
        ("sjis", "SELECT '\U0010ff5c'", False),
        ("koi8r", "SELECT 'П'", True),
    ],
)
def test_which_statements_are_the_same_in_utf8(charset: str, text: str, is_same: bool) -> None:  # noqa: FBT001
    assert is_same_in_utf8(text, charset) is is_same


def test_behind_a_change_of_the_character_set_a_packet_is_not_cut() -> None:
    assert statement_texts("SET NAMES gbk; SELECT 'a'; SELECT 1", Dialect()) == [
        "SET NAMES gbk",
        "SELECT 'a'",
        "SELECT 1",
    ]
    assert statement_texts("SET NAMES gbk; SELECT 'é'; SELECT 1", Dialect()) == [
        "SET NAMES gbk",
        "SELECT 'é'; SELECT 1",
    ]
