"""How the statements that binlane answers are written."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.names import TableName
from binlane.statements.scope.directives import Action, Directive
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.scope import ScopeList
from binlane.statements.scope.statements import (
    AcknowledgeIncidents,
    AlterBinlog,
    BinlogStatement,
    CancelRows,
    CompactBinlog,
    CreateBinlog,
    DefaultFormat,
    DropBinlog,
    FlushBinaryLogs,
    GrantRead,
    PurgeBinaryLogs,
    RevokeRead,
    ShowBinaryLogs,
    ShowBinlogEvents,
    ShowBinlogs,
    ShowBinlogStatus,
    ShowIncidents,
    ShowReadGrants,
    ShowReplicas,
    StartBinlog,
    StopBinlog,
)
from binlane.statements.sql.servers import LoggingMode, RowImage
from binlane.statements.sql.tokens import SqlSyntaxError

LOG_TEST = Directive(Action.SET, ScopeList.LOG, ("test",))
IGNORE_FOO = Directive(Action.SET, ScopeList.IGNORE, (TableName("test", "foo"),))


@pytest.mark.rule("000:create-format")
@pytest.mark.rule("000:create-format-default")
@pytest.mark.parametrize(
    "text, statement",
    [
        ("CREATE BINLOG 'b'", CreateBinlog("b")),
        ("create binlog b", CreateBinlog("b")),
        ("CREATE BINLOG `b`", CreateBinlog("b")),
        ('CREATE BINLOG IF NOT EXISTS "b"', CreateBinlog("b", if_not_exists=True)),
        ("CREATE BINLOG 'b' LOG(`test`)", CreateBinlog("b", (LOG_TEST,))),
        (
            "CREATE BINLOG 'b' LOG(test), IGNORE(test.foo), FORMAT='ROW'",
            CreateBinlog("b", (LOG_TEST, IGNORE_FOO), LoggingMode.ROW),
        ),
        (
            "CREATE BINLOG b FORMAT='STATEMENT' LOG ( `test` ) IGNORE(`test`.`foo`)",
            CreateBinlog("b", (LOG_TEST, IGNORE_FOO), LoggingMode.STATEMENT),
        ),
        (
            "CREATE BINLOG 'b' ROW_IMAGE=minimal, LOG(test), FORMAT='ROW'",
            CreateBinlog("b", (LOG_TEST,), LoggingMode.ROW, row_image=RowImage.MINIMAL),
        ),
        ("CREATE BINLOG 'b' ROW_IMAGE='default'", CreateBinlog("b", row_image=RowImage.FULL)),
        ("ALTER BINLOG 'b' ROW_IMAGE='NOBLOB'", AlterBinlog("b", row_image=RowImage.NOBLOB)),
        ("CREATE BINLOG 'b' WITH ROWS", CreateBinlog("b", with_rows=True)),
        (
            "CREATE BINLOG 'b' LOG(test) FORMAT=ROW WITH ROWS",
            CreateBinlog("b", (LOG_TEST,), LoggingMode.ROW, with_rows=True),
        ),
        (
            "ALTER BINLOG 'b' ADD LOG(test) WITH ROWS",
            AlterBinlog("b", (Directive(Action.ADD, ScopeList.LOG, ("test",)),), with_rows=True),
        ),
        ("ALTER BINLOG 'b' COMPACT", CompactBinlog("b")),
        ("ALTER BINLOG 'b' WITHOUT ROWS", CancelRows("b")),
        ("ALTER BINLOG IF EXISTS 'b' COMPACT;", CompactBinlog("b", if_exists=True)),
        ("CREATE BINLOG 'b' FORMAT=mixed", CreateBinlog("b", (), LoggingMode.MIXED)),
        ("CREATE BINLOG 'b' FORMAT='default'", CreateBinlog("b", (), DefaultFormat.DEFAULT)),
        (
            "ALTER BINLOG 'b' LOG ALL, FORMAT='MIXED'",
            AlterBinlog("b", (Directive(Action.SET, ScopeList.LOG, None),), LoggingMode.MIXED),
        ),
        (
            "ALTER BINLOG 'b' DROP LOG(`test`), ADD IGNORE(`test`.`foo`)",
            AlterBinlog(
                "b",
                (
                    Directive(Action.DROP, ScopeList.LOG, ("test",)),
                    Directive(Action.ADD, ScopeList.IGNORE, (TableName("test", "foo"),)),
                ),
            ),
        ),
        ("CREATE BINLOG b COMPRESS='ON'", CreateBinlog("b", is_compressed=True)),
        (
            "CREATE BINLOG b LOG(test), compress = off, FORMAT=ROW",
            CreateBinlog("b", (LOG_TEST,), LoggingMode.ROW, is_compressed=False),
        ),
        ("ALTER BINLOG b COMPRESS='on'", AlterBinlog("b", is_compressed=True)),
        ("ALTER BINLOG b COMPRESS='default'", AlterBinlog("b", is_compressed=False)),
        ("ALTER BINLOG IF EXISTS b FORMAT=ROW", AlterBinlog("b", (), LoggingMode.ROW, True)),
        ("DROP BINLOG 'b'", DropBinlog("b")),
        ("DROP BINLOG IF EXISTS b", DropBinlog("b", if_exists=True)),
        ("START BINLOG 'b'", StartBinlog("b")),
        ("START BINLOG b FROM '0-1-5'", StartBinlog("b", "0-1-5")),
        ("STOP BINLOG 'b'", StopBinlog("b")),
        ("SHOW BINLOGS", ShowBinlogs()),
        ("SHOW BINLOG INCIDENTS", ShowIncidents()),
        ("show binlog incidents for orders", ShowIncidents("orders")),
        ("ACKNOWLEDGE BINLOG INCIDENTS FOR 'b'", AcknowledgeIncidents("b")),
        ("ACKNOWLEDGE BINLOG INCIDENTS FOR b TO '0-1-5';", AcknowledgeIncidents("b", "0-1-5")),
        ("SHOW MASTER STATUS", ShowBinlogStatus()),
        ("SHOW MASTER STATUS 'b'", ShowBinlogStatus("b")),
        ("SHOW BINARY LOG STATUS", ShowBinlogStatus()),
        ("SHOW BINLOG STATUS 'b'", ShowBinlogStatus("b")),
        ("SHOW BINARY LOGS", ShowBinaryLogs()),
        ("SHOW MASTER LOGS FOR 'b'", ShowBinaryLogs("b")),
        ("SHOW BINLOG EVENTS", ShowBinlogEvents()),
        ("SHOW BINLOG EVENTS IN 'b.000001' FROM 4", ShowBinlogEvents("b.000001", 4)),
        ("SHOW BINLOG EVENTS LIMIT 5", ShowBinlogEvents(rows_max=5)),
        ("SHOW BINLOG EVENTS LIMIT 2, 5", ShowBinlogEvents(skipped_rows=2, rows_max=5)),
        ("SHOW BINLOG EVENTS LIMIT 5 OFFSET 2", ShowBinlogEvents(skipped_rows=2, rows_max=5)),
        ("FLUSH BINARY LOGS", FlushBinaryLogs()),
        ("FLUSH LOCAL BINARY LOGS 'b'", FlushBinaryLogs("b")),
        ("PURGE BINARY LOGS TO 'b.000002'", PurgeBinaryLogs(to_file="b.000002")),
        (
            "PURGE MASTER LOGS FOR b BEFORE '2030-01-01'",
            PurgeBinaryLogs("b", before="'2030-01-01'"),
        ),
        (
            "PURGE BINARY LOGS BEFORE NOW() - /* c */INTERVAL 3 DAY;",
            PurgeBinaryLogs(before="NOW() - INTERVAL 3 DAY"),
        ),
        ("SHOW SLAVE HOSTS", ShowReplicas()),
        ("SHOW REPLICA HOSTS", ShowReplicas()),
        ("SHOW REPLICAS", ShowReplicas()),
        ("/* a */ SHOW -- b\n MASTER STATUS ;", ShowBinlogStatus()),
        ("SET STATEMENT max_statement_time=600 FOR SHOW BINARY LOGS", ShowBinaryLogs()),
    ],
)
def test_ours(text: str, statement: BinlogStatement) -> None:
    assert parse_binlog_statement(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "SELECT 1",
        "CREATE TABLE binlog (a INT)",
        "SHOW TABLES",
        "SHOW MASTER",
        "SHOW FULL COLUMNS FROM `binlog`",
        "SET @binlog = 'CREATE BINLOG'",
        "SET STATEMENT a = 1",
        "FLUSH TABLES",
        "FLUSH LOGS",
        "SELECT 'CREATE BINLOG",
        "CREATE TABLE t (a VARCHAR(3) DEFAULT 'x",
        "`CREATE` BINLOG b",
        "/*",
    ],
)
def test_not_ours(text: str) -> None:
    assert parse_binlog_statement(text) is None


@pytest.mark.parametrize(
    "text, near, expected",
    [
        ("CREATE BINLOG", "", "the name of a binlog"),
        ("CREATE BINLOG (", "(", "the name of a binlog"),
        ("CREATE BINLOG 'b' LOG", "", "("),
        ("CREATE BINLOG 'b' LOG()", ")", "a name"),
        ("CREATE BINLOG 'b' LOG(a.b.c)", ".c)", "a name of at most two parts"),
        ("CREATE BINLOG 'b' LOG('a')", "'a')", "a name"),
        (
            "CREATE BINLOG 'b' ADD LOG(a)",
            "ADD LOG(a)",
            "LOG, IGNORE, FORMAT, ROW_IMAGE, COMPRESS or FOLLOW CASCADES",
        ),
        ("CREATE BINLOG 'b' FORMAT='x'", "'x'", "'ROW', 'STATEMENT', 'MIXED' or 'default'"),
        ("CREATE BINLOG 'b' FORMAT=ROW FORMAT=ROW", "=ROW", "FORMAT only once"),
        ("CREATE BINLOG 'b',", "", "LOG, IGNORE, FORMAT, ROW_IMAGE, COMPRESS or FOLLOW CASCADES"),
        ("CREATE BINLOG 'b' COMPRESS='x'", "'x'", "'ON', 'OFF' or 'default'"),
        ("CREATE BINLOG 'b' COMPRESS=ON COMPRESS=ON", "=ON", "COMPRESS only once"),
        ("CREATE BINLOG 'b' 'c'", "'c'", "the end of the statement"),
        ("CREATE BINLOG 'b'; DROP BINLOG 'b'", "DROP BINLOG 'b'", "the end of the statement"),
        ("ALTER BINLOG 'b' LOG(a,)", ")", "a name"),
        ("ALTER BINLOG 'b' FORMAT=ROW, FORMAT=ROW", "=ROW", "FORMAT only once"),
        ("ALTER BINLOG 'b' ROW_IMAGE=FULL, ROW_IMAGE=FULL", "=FULL", "ROW_IMAGE only once"),
        (
            "CREATE BINLOG 'b' ROW_IMAGE='SMALL'",
            "'SMALL'",
            "'FULL', 'MINIMAL', 'NOBLOB', 'FULL_NODUP' or 'default'",
        ),
        (
            "ALTER BINLOG 'b'",
            "",
            "LOG, IGNORE, ADD, DROP, COMPACT, FORMAT, ROW_IMAGE, COMPRESS or FOLLOW CASCADES",
        ),
        (
            "ALTER BINLOG 'b' WITH ROWS",
            "",
            "LOG, IGNORE, ADD, DROP, COMPACT, FORMAT, ROW_IMAGE, COMPRESS or FOLLOW CASCADES",
        ),
        (
            "ALTER BINLOG 'b' LOG(test) WITH ROWS",
            "",
            "ADD LOG(list) and nothing else where WITH ROWS stands",
        ),
        (
            "ALTER BINLOG 'b' ADD LOG(test) FORMAT=ROW WITH ROWS",
            "",
            "ADD LOG(list) and nothing else where WITH ROWS stands",
        ),
        ("CREATE BINLOG 'b' WITH", "", "ROWS"),
        ("ALTER BINLOG 'b' ADD LOG ALL", "ALL", "a list in parentheses: ADD changes lists"),
        (
            "ALTER BINLOG 'b' ADD FORMAT=ROW",
            "FORMAT=ROW",
            "LOG, IGNORE, FORMAT, ROW_IMAGE, COMPRESS or FOLLOW CASCADES",
        ),
        ("SHOW BINLOGS LIKE 'a'", "LIKE 'a'", "the end of the statement"),
        ("ACKNOWLEDGE BINLOG INCIDENTS", "", "FOR"),
        ("SHOW BINLOG EVENTS FROM x", "x", "a number"),
        ("SHOW BINLOG EVENTS IN x", "x", "the name of a binlog file"),
        ("PURGE BINARY LOGS", "", "TO or BEFORE"),
        ("PURGE BINARY LOGS BEFORE ;", ";", "a time"),
        ("PURGE BINARY LOGS BEFORE 1; DROP TABLE t", "DROP TABLE t", "the end of the statement"),
        ("CREATE BINLOG 'b", "'b", "the quotes to end"),
    ],
)
def test_wrong_ones_of_ours(text: str, near: str, expected: str) -> None:
    with pytest.raises(SqlSyntaxError) as raised:
        parse_binlog_statement(text)
    assert (raised.value.errno, raised.value.sqlstate) == (1064, "42000")
    assert raised.value.message == (
        f"You have an error in your SQL syntax near '{near}' at line 1: expected {expected}"
    )


def test_the_hint_is_the_grammar() -> None:
    with pytest.raises(SqlSyntaxError) as raised:
        parse_binlog_statement("CREATE BINLOG 'b'\nLOG")
    assert raised.value.line == 2
    assert raised.value.hint.startswith("CREATE BINLOG [IF NOT EXISTS] 'name'")


def test_ansi_quotes_quote_names() -> None:
    statement = parse_binlog_statement('CREATE BINLOG "b" LOG("test")', ansi_quotes=True)
    assert statement == CreateBinlog("b", (LOG_TEST,))


WORDS = st.sampled_from(
    (
        *("CREATE", "ALTER", "DROP", "SHOW", "MASTER", "BINLOG", "LOG", "IGNORE", "ALL", "ADD"),
        *("FORMAT", "=", "(", ")", ",", ".", "'b'", "`t`", "x", ";"),
    )
)


@given(st.one_of(st.text(), st.lists(WORDS, max_size=12).map(" ".join)))
def test_any_text_is_ours_or_not_or_wrong(text: str) -> None:
    with suppress(SqlSyntaxError):
        statement = parse_binlog_statement(text)
        assert statement is None or re.search("BINLOG|BINARY|MASTER|REPLICA|SLAVE", text.upper())


def test_grants_name_binlogs_and_accounts() -> None:
    found = parse_binlog_statement("GRANT READ ON BINLOG 'orders', b TO a, ''@'%', `r` ;")
    assert isinstance(found, GrantRead)
    assert found.names == ("orders", "b")
    assert [(each.user, each.host) for each in found.accounts] == [
        ("a", None),
        ("", "%"),
        ("r", None),
    ]
    revoked = parse_binlog_statement("REVOKE IF EXISTS READ ON BINLOG b FROM a@localhost")
    assert isinstance(revoked, RevokeRead)
    assert (revoked.names, revoked.if_exists) == (("b",), True)
    shown = parse_binlog_statement("show grants on binlog for a")
    assert isinstance(shown, ShowReadGrants)
    assert (shown.name, shown.account and shown.account.user) == (None, "a")


@pytest.mark.parametrize(
    "text", ["GRANT READ ON *.* TO a", "GRANT BINLOG ADMIN ON *.* TO a", "SHOW GRANTS FOR a"]
)
def test_grants_of_the_source_are_its_own(text: str) -> None:
    assert parse_binlog_statement(text) is None


def test_what_an_added_list_says_is_read_again() -> None:
    names = ", ".join(f"`d``b`.`table {number}`" for number in range(30))
    statement = parse_binlog_statement(f"ALTER BINLOG 'it''s' ADD LOG({names}, test) WITH ROWS")
    assert isinstance(statement, AlterBinlog)
    again = parse_binlog_statement(statement.scope_text)
    assert isinstance(again, AlterBinlog)
    assert (again.name, again.directives) == (statement.name, statement.directives)
