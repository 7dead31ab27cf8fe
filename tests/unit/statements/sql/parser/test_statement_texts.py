"""Packets of several statements, cut as the servers cut them."""

from __future__ import annotations

from typing import Any

import pytest

from binlane.statements.sql.parser import statement_texts
from binlane.statements.sql.servers import Dialect

MARIADB = Dialect(flavor="mariadb", version=(10, 11, 0))
MYSQL = Dialect(flavor="mysql", version=(9, 7, 0))


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT ';', `a;b`, \"c;d\" ; SELECT 2", ["SELECT ';', `a;b`, \"c;d\" ", "SELECT 2"]),
        (
            "DO 1; -- one;\n DO 2 # two;\n; /* ; */ DO 3 /* 3; */",
            ["DO 1", "-- one;\n DO 2 # two;\n", "/* ; */ DO 3 /* 3; */"],
        ),
        ("DO 1; /* nothing */", ["DO 1", "/* nothing */"]),
        # Behind an empty statement the servers take nothing.
        ("DO 1;; DO 2", ["DO 1", "; DO 2"]),
        (
            "CREATE PROCEDURE p() BEGIN DO 1; DO 2; END; CALL p()",
            ["CREATE PROCEDURE p() BEGIN DO 1; DO 2; END", "CALL p()"],
        ),
        (
            "CREATE DEFINER = a@b TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN DO 1; END; DO 2",
            [
                "CREATE DEFINER = a@b TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN DO 1; END",
                "DO 2",
            ],
        ),
        ("CREATE TABLE event (a INT); DO 2", ["CREATE TABLE event (a INT)", "DO 2"]),
        ("BEGIN; DO 1; COMMIT", ["BEGIN", "DO 1", "COMMIT"]),
        ("SELEC; DO 1", ["SELEC", "DO 1"]),
        # Where it ends is not known.
        ("CREATE PROCEDURE p() BEGIN SELEC; END; DO 1",) * 2,
        ("DO 'a; DO 1",) * 2,
    ],
)
@pytest.mark.parametrize("dialect", [MARIADB, MYSQL])
def test_cut(text: str, texts: list[str] | str, dialect: Dialect) -> None:
    assert statement_texts(text, dialect) == ([texts] if isinstance(texts, str) else texts)


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        (
            "BEGIN NOT ATOMIC DO 1; DO 2; END; DO 3",
            ["BEGIN NOT ATOMIC DO 1; DO 2; END", "DO 3"],
        ),
        (
            "SET STATEMENT max_statement_time = 1 FOR BEGIN NOT ATOMIC DO 1; END; DO 3",
            ["SET STATEMENT max_statement_time = 1 FOR BEGIN NOT ATOMIC DO 1; END", "DO 3"],
        ),
        ("IF 1 THEN DO 1; END IF; DO 3", ["IF 1 THEN DO 1; END IF", "DO 3"]),
    ],
)
def test_compound_statements_of_mariadb(text: str, texts: list[str]) -> None:
    assert statement_texts(text, MARIADB) == texts


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("SET sql_mode = ''; DO 'a'; DO 2", ["SET sql_mode = ''", "DO 'a'", "DO 2"]),
        (
            r"SET sql_mode = NO_BACKSLASH_ESCAPES; DO '\\'; DO 2",
            ["SET sql_mode = NO_BACKSLASH_ESCAPES", r"DO '\\'; DO 2"],
        ),
        ('EXECUTE s; DO "a;b"; DO 2', ["EXECUTE s", 'DO "a;b"; DO 2']),
    ],
)
def test_what_is_read_in_another_mode_is_not_cut(text: str, texts: list[str]) -> None:
    assert statement_texts(text, MARIADB) == texts


class _Noting(str):
    """Notes how much is copied out of it."""

    __slots__ = ("copied",)
    copied: int

    def __getitem__(self, key: Any) -> str:
        piece = super().__getitem__(key)
        self.copied += len(piece)
        return piece


@pytest.mark.parametrize("statement", ["DO 1", "SET sql_mode = ''", "EXECUTE s"])
def test_a_packet_is_not_copied_for_each_of_its_statements(statement: str) -> None:
    text = _Noting(";".join([statement] * 500))
    text.copied = 0
    assert statement_texts(text, MARIADB) == [statement] * 500
    assert text.copied <= 4 * len(text)
