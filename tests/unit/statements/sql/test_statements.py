"""Whatever a server parses is read: the statements in `tests/vectors/statements`."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.sql import tokens
from binlane.statements.sql.executable_comments import server_text
from binlane.statements.sql.facts import RowChange
from binlane.statements.sql.servers import Dialect, Version
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tokens import LITERALS_MIN, RUN_MAX
from binlane.statements.sql.tree.expressions import walk
from binlane.statements.sql.tree.statements import Insert
from tests.reading import read

VECTORS = Path(__file__).parents[3] / "vectors/statements"
MARIADB = (Flavor.MARIADB, (10, 11, 19))
MYSQL = (Flavor.MYSQL, (9, 7, 0))
FILES = {
    "both": (MARIADB, MYSQL),
    "mariadb": (MARIADB,),
    "mysql": (MYSQL,),
    "mariadb_oracle": (MARIADB,),
}


@pytest.mark.parametrize("name", FILES)
def test_what_a_server_parses_is_read(name: str) -> None:
    is_oracle = name.endswith("oracle")
    for flavor, version in FILES[name]:
        for statement in (VECTORS / f"{name}.txt").read_text().splitlines()[1:]:
            text = server_text(statement, Dialect(flavor=flavor.value, version=version)).read
            facts = read(text, database="d", ansi_quotes=is_oracle, is_oracle=is_oracle)
            assert facts.effects.stopped_at is None, statement
            assert facts.verb or facts.effects.kind is StatementKind.EMPTY, statement


@pytest.mark.parametrize(
    ("statement", "kind", "verb"),
    [
        ("CREATE PACKAGE BODY p AS v INT; END", "CREATE_PACKAGE", "CREATE PACKAGE BODY"),
        ("DROP PACKAGE IF EXISTS d.p", "DROP_PACKAGE", "DROP PACKAGE"),
        ("CREATE LIBRARY l LANGUAGE JAVASCRIPT AS 'x'", "CREATE_LIBRARY", "CREATE LIBRARY"),
        ("ALTER LIBRARY l COMMENT 'x'", "ALTER_LIBRARY", "ALTER LIBRARY"),
        ("DROP LIBRARY l", "DROP_LIBRARY", "DROP LIBRARY"),
        (
            "DROP SPATIAL REFERENCE SYSTEM IF EXISTS 5000",
            "DROP_REFERENCE_SYSTEM",
            "DROP SPATIAL REFERENCE SYSTEM",
        ),
    ],
)
def test_packages_libraries_and_reference_systems(statement: str, kind: str, verb: str) -> None:
    facts = read(statement, database="d")
    assert facts.effects.kind is StatementKind[kind]
    assert facts.verb == verb


@pytest.mark.parametrize(
    "body", ["$$ don't (stop; $$", "$js$ `${a}` // $$ it's $js$", "'return a'"]
)
def test_the_body_of_another_language_is_gone_behind(body: str) -> None:
    statement = f"CREATE FUNCTION f (a INT) RETURNS INT LANGUAGE JAVASCRIPT AS {body}"
    facts = read(statement, database="d")
    assert facts.effects.stopped_at is None
    assert facts.body_offset == statement.index(" AS ") + 1


def test_dollars_are_names_elsewhere() -> None:
    facts = read("SELECT 1 AS $$, a FROM t AS $$", database="d")
    assert [use.alias for use in facts.tables] == ["$$"]


def test_members_of_sequences_are_those_of_oracle_mode_only() -> None:
    statement = "INSERT INTO t VALUES (x.s.NEXTVAL, s.CURRVAL)"
    assert [use.name.table for use in read(statement, database="d").tables] == ["t"]
    facts = read(statement, database="d", is_oracle=True)
    assert [(use.name.plain, use.changes) for use in facts.tables if use.is_sequence] == [
        ("x.s", {RowChange.SEQUENCE}),
        ("d.s", frozenset()),
    ]
    assert [(one.name, [*map(facts.text_of, one.arguments)]) for one in facts.functions] == [
        ("NEXTVAL", ["x.s"]),
        ("LASTVAL", ["s"]),
    ]


@pytest.mark.parametrize(
    ("flavor", "version", "comment", "is_run"),
    [
        (Flavor.MYSQL, (9, 7, 0), "/*! x */", True),
        (Flavor.MYSQL, (9, 7, 0), "/*!90700 x */", True),
        (Flavor.MYSQL, (9, 7, 0), "/*!90701 x */", False),
        (Flavor.MYSQL, (9, 7, 0), "/*!090700 x */", True),
        (Flavor.MYSQL, (9, 7, 0), "/*!100000 x */", False),
        (Flavor.MYSQL, (8, 0, 36), "/*!800369 x */", True),
        (Flavor.MYSQL, (9, 7, 0), "/*M! x */", False),
        (Flavor.MARIADB, (10, 11, 19), "/*! x */", True),
        (Flavor.MARIADB, (10, 11, 19), "/*M! x */", True),
        (Flavor.MARIADB, (10, 11, 19), "/*!50699 x */", True),
        (Flavor.MARIADB, (10, 11, 19), "/*!50700 x */", False),
        (Flavor.MARIADB, (10, 11, 19), "/*!99999 x */", False),
        (Flavor.MARIADB, (10, 11, 19), "/*M!50700 x */", True),
        (Flavor.MARIADB, (10, 11, 19), "/*!101119 x */", True),
        (Flavor.MARIADB, (10, 11, 19), "/*!101120 x */", False),
        (Flavor.MARIADB, (10, 11, 19), "/*M!101120 x */", False),
    ],
)
def test_which_comments_are_run(
    flavor: Flavor, version: Version, comment: str, *, is_run: bool
) -> None:
    statement = f"a {comment} b"
    found = server_text(statement, Dialect(flavor=flavor.value, version=version))
    assert len(found.read) == len(statement)
    assert ("!" in found.read) is is_run
    assert ("x" in found.stored) is (is_run or comment.startswith("/*M! "))


def test_a_statement_is_logged_and_stored_as_the_servers_do_it() -> None:
    """Measured on MariaDB 10.11.19 and MySQL 9.7.0."""
    statement = "a /*!99999 x /* y */ z */ /*!50000 ,(2) */ /* it's */ '/*!99999' b"
    for flavor, version in (MARIADB, MYSQL):
        found = server_text(statement, Dialect(flavor=flavor.value, version=version))
        assert found.read == found.logged
        assert found.logged == (
            "a /* 99999 x (* y *) z */ /*!50000 ,(2) */ /* it's */ '/*!99999' b"
        )
        assert found.stored == "a   ,(2)  /* it's */ '/*!99999' b"


def test_mysql_logs_a_comment_of_mariadb_as_it_stands() -> None:
    found = server_text("a /*M!100100 b */", Dialect(flavor="mysql", version=(9, 7, 0)))
    assert found.logged == found.stored == "a /*M!100100 b */"
    assert found.read == "a /*M 100100 b */"


def test_a_comment_that_does_not_end_is_left_as_it_is() -> None:
    found = server_text("a /*!99999 b", Dialect(flavor="mysql", version=(9, 7, 0)))
    assert found.read == "a /*!99999 b"


@pytest.mark.parametrize("more", [1, LITERALS_MIN])
def test_what_is_longer_than_a_run(more: int) -> None:
    count = RUN_MAX + more
    numbers = ",".join(map(str, range(count)))
    rows = ",".join(f"({number}, 'x')" for number in range(count))
    pairs = ",".join(f"({number},{number})" for number in range(count))
    for text in (
        f"INSERT INTO t VALUES {rows}",
        f"INSERT INTO t VALUES ({numbers})",
        f"DELETE FROM t WHERE a IN ({numbers})",
        f"DELETE FROM t WHERE (a, b) IN ({pairs})",
        f"SELECT {numbers}",
        f"SELECT CONCAT({numbers})",
    ):
        facts = read(text, database="")
        assert facts.error is None
        assert facts.effects.stopped_at is None, text[:40]
    insert = read(f"INSERT INTO t VALUES {rows}", database="").tree
    assert isinstance(insert, Insert)
    assert insert.rows is not None
    assert len(insert.rows) == count


def test_a_statement_of_too_many_tokens_is_not_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "READ_MAX", 100)
    facts = read(
        "DELETE FROM t WHERE " + " OR ".join(f"a = f({number})" for number in range(2_000)),
        database="",
    )
    assert facts.effects.kind is StatementKind.UNKNOWN
    assert facts.effects.stopped_at is not None


def test_a_long_list_of_literals_is_not_gone_through_by_who_looks_for_names() -> None:
    numbers = ", ".join(map(str, range(3 * RUN_MAX)))
    facts = read(f"DELETE FROM t WHERE a IN ({numbers})", database="d")
    assert sum(1 for _ in walk(facts.whole)) < LITERALS_MIN
