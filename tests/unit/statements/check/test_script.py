"""Scripts as the clients take them."""

from __future__ import annotations

import pytest

from binlane.statements.check.script import ScriptStatement, read_script
from binlane.statements.policy.refusals import Outcome
from binlane.statements.sql.servers import Dialect


def texts(script: str | bytes) -> list[str]:
    return [statement.sql for statement in read_script(script)]


def only(script: str) -> ScriptStatement:
    (statement,) = read_script(script)
    return statement


def test_statements_have_numbers_lines_and_columns() -> None:
    found = list(read_script("-- a\nSET x = 1;\n\n  UPDATE t\nSET a = 1;DO 1;\n"))
    assert [(one.number, one.line, one.column, one.sql) for one in found] == [
        (1, 2, 1, "SET x = 1"),
        (2, 4, 3, "UPDATE t\nSET a = 1"),
        (3, 5, 11, "DO 1"),
    ]


def test_columns_count_characters() -> None:
    found = list(read_script("DO 'é𝄞'; DO 2;"))
    assert [one.column for one in found] == [1, 10]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("DO ';'; DO \";\"; DO `;`", ["DO ';'", 'DO ";"', "DO `;`"]),
        (r"DO 'a\';b'; DO 2", [r"DO 'a\';b'", "DO 2"]),
        ("DO 'a'';b'; DO 2", ["DO 'a'';b'", "DO 2"]),
        ("DO /* ; */ 1; DO 2 -- ;\n+ 1; DO 3 # ;\n", None),
        ("DO 5--1; DO 2", ["DO 5--1", "DO 2"]),
        ("DO 1\\G\nDO 2\\gDO 3", ["DO 1", "DO 2", "DO 3"]),
        ("; ;/* none */;\nDO 1;;", ["DO 1"]),
        (
            "/*!50503 SET NAMES utf8 */;/*M! DO 1 */;",
            ["/*!50503 SET NAMES utf8 */", "/*M! DO 1 */"],
        ),
        ("\ufeffDO 1;\r\nDO\r\n2;\r\n", ["DO 1", "DO\n2"]),
        ("", []),
        ("-- only a comment", []),
    ],
)
def test_delimiters_count_only_outside_of_quotes_and_comments(
    script: str, expected: list[str] | None
) -> None:
    if expected is None:
        expected = ["DO /* ; */ 1", "DO 2 -- ;\n+ 1", "DO 3 # ;"]
    assert texts(script) == expected


def test_delimiter_lines() -> None:
    script = "-- c\nDELIMITER //\nBEGIN; END//\n# c\ndelimiter ;\nDO 1;"
    assert texts(script) == ["BEGIN; END", "DO 1"]


def test_output_of_mysqlbinlog() -> None:
    script = (
        "/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/;\nDELIMITER /*!*/;\n# at 4\n"
        "BINLOG '\nAAAA\n'/*!*/;\nROLLBACK /* added by mysqlbinlog */ /*!*/;\nDELIMITER ;\n"
        "# End of log file\n/*!50003 SET COMPLETION_TYPE=@OLD_COMPLETION_TYPE*/;\n"
    )
    assert texts(script)[1:3] == ["BINLOG '\nAAAA\n'", "ROLLBACK /* added by mysqlbinlog */"]
    assert len(texts(script)) == 4


def test_a_comment_in_the_line_of_the_first_token_is_the_statements() -> None:
    assert texts("/* banner\n */\n/* c */ DO 1;") == ["/* c */ DO 1"]


def test_unended_comments_and_strings_go_to_the_end() -> None:
    assert texts("DO 1; /* DO 2; DO 3") == ["DO 1", "/* DO 2; DO 3"]
    assert texts("DO 1; DO 'x; DO 3") == ["DO 1", "DO 'x; DO 3"]


def test_backslashes_without_escapes() -> None:
    found = read_script(r"DO '\'; DO 2;", dialect=lambda: Dialect(no_backslash_escapes=True))
    assert [one.sql for one in found] == [r"DO '\'", "DO 2"]


def test_bytes_that_are_no_text_are_kept() -> None:
    assert texts(b"DO '\xff';") == ["DO '\udcff'"]


@pytest.mark.parametrize(
    ("comments", "outcome"),
    [
        ("-- @error 1062", Outcome(error=1062)),
        ("-- @rows 3", Outcome(rows=3)),
        ("-- @rows none", Outcome(is_proven_empty=True)),
        ("-- @error 1062\n-- @rows 2", Outcome(error=1062, rows=2)),
        ("-- @rows 2\n\n-- because\n#  @error 1062", Outcome(error=1062, rows=2)),
        ("-- @error 1062 @rows 2", Outcome(error=1062, rows=2)),
        ("-- @author me", Outcome()),
        ("-- see @rows", Outcome()),
    ],
)
def test_directives_state_what_happened(comments: str, outcome: Outcome) -> None:
    statement = only(f"{comments}\nDO 1;")
    assert (statement.outcome, statement.problem) == (outcome, None)


def test_directives_hold_for_one_statement() -> None:
    first, second = read_script("-- @rows 0\nDO 1;\nDO 2;")
    assert (first.outcome, second.outcome) == (Outcome(rows=0), Outcome())


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("-- @rows some\nDO 1", "'@rows some' is no directive"),
        ("-- @error 0\nDO 1", "'@error 0' is no directive"),
        ("-- @eror 1\nDO 1", "there is no directive @eror"),
        ("-- @Rows 1\nDO 1", "there is no directive @Rows"),
        ("/* c */ -- @rows 1\nDO 1", "in a line of its own"),
    ],
)
def test_wrong_directives_are_problems(script: str, said: str) -> None:
    problem = only(script).problem
    assert problem is not None
    assert said in problem.reason


def test_a_directive_behind_a_statement_is_no_good() -> None:
    first, second = read_script("DO 1; -- @rows 0\nDO 2;")
    assert first.problem is None
    assert second.problem is not None


def test_disconnect_before_a_statement_and_at_the_end() -> None:
    first, second, last = read_script("DO 1;\n-- @disconnect\n-- @rows 0\nDO 2;\n-- @disconnect\n")
    assert (first.is_disconnect, second.is_disconnect) == (False, True)
    assert second.outcome == Outcome(rows=0)
    assert (last.sql, last.is_disconnect) == ("", True)


def test_the_clients_own_commands() -> None:
    script = "use shop\ntee log\n\\u other\n\\W\nDO 1;\ncharset latin1\nquit\nDO 2;"
    assert texts(script) == ["USE shop", "USE other", "DO 1", "SET NAMES latin1"]


@pytest.mark.parametrize(
    "command", ["source x.sql", "source x.sql;", "\\. x.sql", "system ls", "edit"]
)
def test_commands_that_cannot_be_followed(command: str) -> None:
    first, second = read_script(f"{command}\nDO 1;")
    assert first.problem is not None
    assert (second.sql, second.problem) == ("DO 1", None)


def test_a_line_with_the_delimiter_goes_to_the_server() -> None:
    assert texts("use a; DO 1;") == ["use a", "DO 1"]


def test_a_large_script_is_read_lazily() -> None:
    statements = read_script("DO 1;\n" * 100_000 + "DO 'never read")
    assert next(statements).sql == "DO 1"
