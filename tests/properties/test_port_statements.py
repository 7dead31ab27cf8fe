"""Whatever a client says: it is a statement of binlane, it is none, or it is an error in SQL."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import StatementError
from binlane.live.answers.explain_answers import explained
from binlane.live.answers.system_tables.question import (
    QuestionSession,
    SystemSelect,
    may_ask,
    question_of,
)
from binlane.live.answers.system_tables.translate import translate
from binlane.live.gateway.replica_statements import INSPECTED_MAX, may_concern_binlogs, recognise
from binlane.live.gateway.source_privileges import global_privileges
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import AlterBinlog, CreateBinlog, alter, create
from binlane.statements.sql.tokens import SqlSyntaxError

WORDS = st.sampled_from(
    [
        "\n",
        "",
        "",
        "",
        "CREATE",
        "ALTER",
        "DROP",
        "SHOW",
        "FLUSH",
        "PURGE",
        "START",
        "STOP",
        "SET",
        "STATEMENT",
        "FOR",
        "EXPLAIN",
        "DESCRIBE",
        "SELECT",
        "FROM\n",
        "",
        "",
        "",
        "BINLOG",
        "BINLOGS",
        "BINARY",
        "MASTER",
        "LOG",
        "LOGS",
        "STATUS",
        "EVENTS",
        "IF",
        "NOT",
        "EXISTS",
        "LOG",
        "IGNORE",
        "ALL",
        "ADD",
        "FORMAT",
        "IN\n",
        "",
        "",
        "",
        "LIMIT",
        "OFFSET",
        "TO",
        "BEFORE",
        "REPLICAS",
        "SLAVE",
        "HOSTS",
        "TABLES",
        "system",
        ".",
        "binlogs",
        "binlog_log_tables",
        "'b'",
        "`t`\n",
        "",
        "",
        "",
        '"q"',
        "x",
        ",",
        "(",
        ")",
        "=",
        ";",
        "-",
        "/*",
        "*/",
        "/*!",
        "/*M!100100",
        "--",
        "#",
        "1",
        "4",
        "NOW()",
        "INTERVAL",
        "DAY",
        "\x00",
        "�",
        "\n",
        "\\",
        "'",
        "`",
        '"',
        "@a",
        "@@b\n",
        "",
        "",
        "",
        "UNION",
        "GRANT",
        "ON",
        "*.*",
        "TO\n",
        "",
        "",
        "",
        "",
    ]
).map(str.strip)
BEGINNINGS = st.sampled_from(
    [
        *("", "CREATE BINLOG 'b' ", "ALTER BINLOG b ", "SHOW BINLOG EVENTS ", "PURGE BINARY LOGS "),
        *(
            "SELECT * FROM system.binlogs ",
            "EXPLAIN BINLOG ",
            "/*!50000 SHOW ",
            "SHOW TABLES FROM ",
        ),
    ]
)
TEXTS = st.builds(
    lambda beginning, rest: beginning + rest,
    BEGINNINGS,
    st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=16).map(" ".join)),
)
SCOPE = "CREATE BINLOG 'b' LOG(a, b.c), IGNORE(a.d)"


def say(text: str, *, ansi_quotes: bool = False) -> None:
    """All that the port does with a statement before it asks anybody.

    Raises:
        StatementError: To be told to the client.
    """
    may_concern_binlogs(text.encode("utf-8", "surrogateescape"))
    recognise(text)
    explained(text)
    statement = parse_binlog_statement(text, ansi_quotes=ansi_quotes)
    if isinstance(statement, CreateBinlog):
        create(statement, 1)
    if isinstance(statement, AlterBinlog):
        before = parse_binlog_statement(SCOPE)
        assert isinstance(before, CreateBinlog)
        alter(create(before, 1), statement)
    if may_ask(text):
        modes = frozenset({"ANSI_QUOTES"} if ansi_quotes else ())
        question = question_of(text, QuestionSession(modes=modes))
        if isinstance(question, SystemSelect):
            translate(text, question.tokens)


@given(text=TEXTS, ansi_quotes=st.booleans())
def test_any_text_is_ours_or_not_or_wrong(*, text: str, ansi_quotes: bool) -> None:
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return  # no bytes of a client give this
    try:
        say(text, ansi_quotes=ansi_quotes)
    except StatementError as error:
        assert isinstance(error, SqlSyntaxError) or error.errno == 1  # noqa: PT017 any of the two


@given(st.lists(TEXTS, max_size=3))
def test_any_line_grants_what_it_says_or_nothing(lines: list[str]) -> None:
    assert global_privileges(lines) <= {"USAGE"} or any("GRANT" in line for line in lines)


LONG = INSPECTED_MAX


@pytest.mark.parametrize(
    "text",
    [
        "CREATE BINLOG 'b' LOG(" + "`d`.`t`, " * (LONG // 9) + "x)",
        "CREATE BINLOG 'b' LOG(" + ", ".join(f"d{n}" for n in range(LONG // 8)) + ")",
        "ALTER BINLOG 'b' " + "ADD LOG(x), " * (LONG // 12),
        "CREATE BINLOG " + "(" * LONG,
        "SELECT " + "(" * (LONG // 2) + "1" + ")" * (LONG // 2) + " FROM system.binlogs",
        "SELECT " + "((1)) + " * (LONG // 8) + "1 FROM system.binlogs",
        "SELECT 1 FROM system.binlogs " + "UNION SELECT 1 " * (LONG // 15),
        "SELECT " + "a.b, " * (LONG // 5) + "c FROM system.binlogs",
        "SELECT " + "GROUP_CONCAT(" * 400 + "1" + ")" * 400 + " FROM system.binlogs",
        "SELECT " + "CAST(" * 400 + "1" + " AS CHAR)" * 400 + " FROM system.binlogs",
        "SELECT '" + "\\'" * (LONG // 2),
        "SELECT '" + "x" * LONG + "' FROM system.binlogs",
        "/*" * (LONG // 2) + "SHOW BINLOGS",
        "/*!" * (LONG // 3) + "SHOW BINLOGS",
        "/**/" * (LONG // 4) + "SHOW BINLOGS",
        "-- \n" * (LONG // 4) + "SHOW BINLOGS",
        " " * LONG + "SHOW BINLOGS",
        "#" * LONG + "\nSHOW BINLOGS",
        "(" * LONG + "SELECT 1 FROM system.binlogs",
        "SHOW BINLOGS" + ";" * LONG,
        "SET @a = 1" + ", @binlog = 1" * (LONG // 14),
        "SET STATEMENT a=1 FOR " * (LONG // 22) + "SHOW BINLOGS",
        "EXPLAIN " + "/**/" * (LONG // 4) + "BINLOG",
        "PURGE BINARY LOGS BEFORE " + "1 + " * (LONG // 4) + "1",
        "\0" * LONG + "BINLOG",
        "system" * (LONG // 6),
        "SELECT system . " * (LONG // 16),
        "SELECT `" + "`" * LONG + "` FROM system.binlogs",
        "SELECT 1 FROM system.binlogs WHERE " + "NOT " * (LONG // 4) + "1",
        "SELECT 1 FROM " + "(SELECT 1 FROM " * 3000 + "system.binlogs" + ") a" * 3000,
    ],
    ids=lambda text: text[:24],
)
def test_long_and_deep_texts_end_soon(text: str) -> None:
    begin = time.process_time()
    try:
        say(text)
    except StatementError as error:
        assert error.errno in {1, 1064}  # noqa: PT017 or none at all
    # Far above what any of them takes, and far below what an attacker needs.
    assert time.process_time() - begin < 20
