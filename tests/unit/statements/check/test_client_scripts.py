"""Scripts as a whole: what their client sends, and what becomes of it."""

from __future__ import annotations

import pytest

from binlane.errors import StoreError
from binlane.statements.check.checker import Checker
from binlane.statements.check.findings import CheckedStatement
from binlane.statements.check.schema import Schema
from binlane.statements.policy.server import Server
from binlane.statements.sql.catalog import ToldStatement

SCHEMA = "CREATE DATABASE d; USE d; CREATE TABLE t (a INT PRIMARY KEY);"
FLAVORS = ["mariadb", "mysql"]


def check(
    script: str, *, server: str = "mariadb", path: str = "", **sources: str
) -> list[CheckedStatement]:
    def source(name: str) -> bytes:
        if name.replace(".", "_").replace("/", "_") not in sources:
            raise StoreError("cannot be read: No such file or directory", path=name)
        return sources[name.replace(".", "_").replace("/", "_")].encode()

    checker = Checker(Server.parse(server), SCHEMA)
    return list(checker.check(script.encode(), path=path, source=source))


def told(found: list[CheckedStatement]) -> list[str]:
    return [one.statement.sql for one in found]


def reason(one: CheckedStatement) -> str:
    """Why a statement was not understood or refused."""
    if one.result.unanalysed is not None:
        return one.result.unanalysed.reason
    return "" if one.result.error is None else one.result.error.message


@pytest.mark.parametrize("server", FLAVORS)
def test_several_statements_in_one_text(server: str) -> None:
    found = check(
        "DELIMITER //\nDROP PROCEDURE IF EXISTS p;\n-- makes it\nCREATE PROCEDURE p() BEGIN\n"
        "  DELETE FROM t; DELETE FROM t;\nEND;\n/* c */ CALL p(); //\nDELIMITER ;\nDO 1;",
        server=server,
    )
    assert [(one.statement.number, one.statement.line) for one in found] == [
        *((1, 2), (2, 4)),
        *((3, 7), (4, 9)),
    ]
    assert [one.statement.sql.partition("(")[0] for one in found] == [
        *("DROP PROCEDURE IF EXISTS p", "CREATE PROCEDURE p"),
        *("/* c */ CALL p", "DO 1"),
    ]
    assert not any(map(reason, found))
    assert found[2].result.binlogs["binlog"].bodies


def test_places_in_one_text() -> None:
    found = check("DELIMITER //\n  DO 1; DO 2;\n DO 3; /* c */ //")
    assert [(one.statement.line, one.statement.column) for one in found] == [(2, 3), (2, 9), (3, 2)]


def test_what_follows_a_failed_statement_in_its_text_is_not_run() -> None:
    script = "DELETE FROM t; INSERT INTO nothing VALUES (1); DELETE FROM t"
    found = check(f"DELIMITER //\n{script}//\nDELETE FROM t//")
    assert [bool(one.result.error) for one in found] == [False, True, True, False]
    assert reason(found[2]).startswith("Not run: ")
    assert not found[2].result.binlogs
    assert [one.result.error is None for one in check(script)] == [True, False, True]


def test_a_stated_error_ends_a_text_too() -> None:
    found = check("DELIMITER //\nDO 1;\n-- @error 1062\nINSERT INTO t VALUES (1); DO 2//")
    assert [one.statement.outcome.error for one in found] == [None, 1062, None]
    last = found[2].result.error
    assert last is not None
    assert last.is_stated


def test_an_empty_statement_in_a_text_is_an_error() -> None:
    first, second = check("DELIMITER //\nDELETE FROM t;; DELETE FROM t//")
    assert not reason(first)
    assert second.statement.sql == "; DELETE FROM t"
    assert reason(second)


@pytest.mark.parametrize(
    "program",
    [
        "CREATE PROCEDURE p() BEGIN DELETE FROM t; DELETE FROM t; END",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN SET @a = 1; END",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO BEGIN DELETE FROM t; END",
        "BEGIN NOT ATOMIC DELETE FROM t; END",
    ],
)
def test_a_missing_delimiter_is_named(program: str) -> None:
    found = check(f"{program};")
    assert "DELIMITER" in reason(found[0])
    assert "DELIMITER" in reason(found[-1])
    assert not any(map(reason, check(f"DELIMITER //\n{program}//")))


def test_other_mistakes_do_not_speak_of_it() -> None:
    (one,) = check("CREATE PROCEDURE p() BEGIN DELETE FROM WHERE")
    assert reason(one)
    assert "DELIMITER" not in reason(one)


def test_lines_of_dashes() -> None:
    script = "-----\n--- a; b\nDELETE FROM t;\n  --c\nDELETE FROM t;"
    assert told(check(script)) == ["DELETE FROM t", "DELETE FROM t"]
    first, *_ = check(script, server="mysql")
    assert "blank" in reason(first)


def test_comments_anywhere() -> None:
    one, plain = check(
        "DELETE /*a*/ FROM /*!t*/ -- b\n WHERE /*c*/ a=2 # d\n; DELETE FROM t WHERE a=2;"
    )
    assert not reason(one)
    assert [event.type for event in one.result.binlogs["binlog"].events] == [
        event.type for event in plain.result.binlogs["binlog"].events
    ]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("source in.sql\nDO 3;", ["DO 1", "DO 2", "DO 3"]),
        ("DO 0; source in.sql;\nDO 3;", ["DO 0", "DO 1", "DO 2", "DO 3"]),
        ("\\. in.sql\nDO 3;", ["DO 1", "DO 2", "DO 3"]),
        ("SOURCE sub/in.sql", ["DO 9", "DO 7"]),
        ("source dollars.sql\nDO 3$$\nDO 4", ["DO 1", "DO 3", "DO 4"]),
    ],
)
def test_scripts_that_a_script_reads(script: str, expected: list[str]) -> None:
    found = check(
        script,
        in_sql="DO 1;\nDO 2",
        sub_in_sql="DO 9;\nsource deeper.sql\n",
        sub_deeper_sql="DO 7;",
        dollars_sql="DELIMITER $$\nDO 1$$",
    )
    assert told(found) == expected
    assert [one.statement.number for one in found] == list(range(1, len(expected) + 1))


def test_they_are_looked_for_beside_the_script_and_named() -> None:
    found = check("DO 1;\nsource b.sql\nDO 2;", path="x/a.sql", x_b_sql="\n\nDO 9;")
    assert [(one.statement.script, one.statement.line) for one in found] == [
        *(("", 1), ("x/b.sql", 3), ("", 3)),
    ]


def test_a_script_that_is_not_there() -> None:
    first, second = check("source nothing.sql\nDO 1;")
    assert "nothing.sql: cannot be read" in reason(first)
    assert (second.statement.sql, reason(second)) == ("DO 1", "")


def test_scripts_that_read_each_other_without_end() -> None:
    found = check("source a.sql", path="m.sql", a_sql="DO 1;\nsource b.sql", b_sql="source a.sql\n")
    assert told(found) == ["DO 1", "source a.sql"]
    assert "no end" in reason(found[1])


def test_every_reason_of_every_binlog_is_told() -> None:
    binlogs = """
        CREATE BINLOG a FORMAT='STATEMENT' LOG(d.t); CREATE BINLOG b FORMAT='STATEMENT' LOG(d.u);
        CREATE BINLOG c;
    """
    schema = f"{SCHEMA} CREATE TABLE u (a INT); CREATE TABLE v (a INT); CREATE TABLE w (a INT);"
    checker = Checker(Server.parse("mariadb"), schema, binlogs)
    split, needs = checker.check(
        "UPDATE t, u, v SET t.a = 1, u.a = 1, v.a = 1;INSERT INTO t SELECT v.a FROM v, w;"
    )
    assert split.result.error is not None
    assert {
        name for one in (split.result.error, *split.result.error.others) for name in one.binlogs
    } == {"a", "b"}
    assert needs.result.error is not None
    assert [
        one.message.partition(": ")[2] for one in (needs.result.error, *needs.result.error.others)
    ] == [
        "binlog a does not log `d`.`v`, consequently the statement might not replay correctly",
        "binlog a does not log `d`.`w`, consequently the statement might not replay correctly",
    ]


def test_several_sources_of_the_schema() -> None:
    schema = [
        Schema(name="one.sql", script=SCHEMA),
        Schema(
            name="server",
            definitions=[
                ToldStatement("", "CREATE DATABASE e"),
                ToldStatement("e", "CREATE TABLE u (a INT)"),
            ],
            variables=(("binlog_format", "STATEMENT"),),
        ),
        Schema(name="two.sql", script="CREATE TABLE v (a INT);\nCREATE TABLE w (a INT, a);"),
    ]
    checker = Checker(Server.parse("mariadb"), schema)
    assert [(name, problem.line) for name, problem in checker.problems] == [("two.sql", 2)]
    found = list(checker.check("DELETE FROM t; DELETE FROM e.u; DELETE FROM v LIMIT 1;"))
    assert not any(map(reason, found))
    assert found[2].result.notes


@pytest.mark.parametrize("server", FLAVORS)
@pytest.mark.parametrize(
    "statement", ['TRUNCATE "t"', 'TRUNCATE TABLE "d"."t"', 'ANALYZE TABLE "t"', 'USE "d"']
)
def test_names_in_quotes_are_understood_in_all_statements(server: str, statement: str) -> None:
    script = f"USE d; SET sql_mode = 'ANSI_QUOTES'; {statement}; INSERT INTO \"t\" VALUES (1)"
    found = check(script, server=server)
    assert not any(one.result.unanalysed or one.result.error for one in found)
