"""EXPLAIN BINLOG on the listening port, with a real server behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from binlane.live.provision.private_server import PrivateServer
from tests.listening import ListeningPort
from tests.servers import execute

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def port(
    mariadb_server: PrivateServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ListeningPort]:
    execute(
        mariadb_server,
        "CREATE DATABASE told",
        "CREATE TABLE told.t (a INT PRIMARY KEY, b VARCHAR(99)) ENGINE=InnoDB",
        "CREATE TABLE told.log (a INT) ENGINE=InnoDB",
        "CREATE TABLE told.`o``dd` (a INT) ENGINE=MyISAM",
        "CREATE TABLE told.child (a INT, FOREIGN KEY (a) REFERENCES told.t (a) ON DELETE CASCADE)"
        " ENGINE=InnoDB",
        "CREATE VIEW told.v AS SELECT a, b FROM told.t",
        "CREATE TABLE told.watched (a INT) ENGINE=InnoDB",
        "CREATE TRIGGER told.w BEFORE INSERT ON told.watched FOR EACH ROW"
        " INSERT INTO told.log VALUES (NEW.a)",
        "CREATE SEQUENCE told.s",
        "CREATE FUNCTION told.f() RETURNS INT NOT DETERMINISTIC READS SQL DATA"
        " RETURN (SELECT COUNT(*) FROM told.log)",
        "CREATE USER reader@'%' IDENTIFIED BY 'secret'",
        "GRANT SELECT, INSERT ON told.t TO reader@'%'",
        "CREATE USER nobody@'%' IDENTIFIED BY 'secret'",
        "GRANT BINLOG MONITOR ON *.* TO nobody@'%', reader@'%'",
    )
    with ListeningPort(mariadb_server, tmp_path_factory.mktemp("explain") / "data") as listening:
        yield listening
    execute(mariadb_server, "DROP DATABASE told", "DROP USER reader@'%', nobody@'%'")


def explain(
    port: ListeningPort, statement: str, *before: str, **options: Any
) -> list[dict[str, Any]]:
    """The rows of EXPLAIN BINLOG after other statements, as root with default database `told`."""
    with port.connect(**{"database": "told", **options}) as connection:
        cursor = connection.cursor()
        for one in before:
            cursor.execute(one)
        cursor.execute(f"EXPLAIN BINLOG {statement}")
        heads = [column[0] for column in cursor.description]
        rows = [dict(zip(heads, row, strict=True)) for row in cursor.fetchall()]
        # The session is as it was.
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
        return rows


def test_the_sessions_own_settings_count(port: ListeningPort) -> None:
    (safe,) = explain(port, "INSERT INTO t VALUES (1, UUID());", "SET binlog_format = ROW")
    assert (safe["Binlog"], safe["Logged_as"], safe["Verdict"]) == ("binlog", "ROW", "SAFE")
    assert safe["Errno"] is None
    assert "Write_rows_v1: table_id: # flags: STMT_END_F" in safe["Events"]
    (noted,) = explain(port, "INSERT INTO t VALUES (1, UUID())", "SET binlog_format = STATEMENT")
    assert (noted["Logged_as"], noted["Verdict"], noted["Errno"]) == ("STATEMENT", "UNSAFE", 1592)
    assert noted["Reason"] == "ER_BINLOG_UNSAFE_SYSTEM_FUNCTION"
    assert "uuid" in noted["Object"].lower()
    (refused,) = explain(
        port,
        "INSERT INTO t VALUES (1, 'a')",
        "SET binlog_format = STATEMENT",
        "SET tx_isolation = 'READ-COMMITTED'",
    )
    assert (refused["Verdict"], refused["Errno"]) == ("REFUSED", 1665)


def test_nothing_is_executed(port: ListeningPort) -> None:
    before = port.execute("SELECT COUNT(*) FROM told.t")
    explain(port, "INSERT INTO t VALUES (99, 'x')")
    explain(port, "DROP TABLE t")
    assert port.execute("SELECT COUNT(*) FROM told.t") == before


def test_an_open_transaction_counts(port: ListeningPort) -> None:
    (told,) = explain(
        port,
        "INSERT INTO `o``dd` SELECT a FROM t",
        "SET binlog_format = STATEMENT",
        "BEGIN",
        "INSERT INTO t VALUES (7, 'x')",
    )
    assert (
        told["Reason"]
        in (
            "ER_BINLOG_UNSAFE_MIXED_STATEMENT",
            "ER_BINLOG_UNSAFE_NONTRANS_AFTER_TRANS",
        )
        or told["Verdict"] == "SAFE"
    )
    (told,) = explain(port, "INSERT INTO t VALUES (8, 'x')", "BEGIN")
    assert told["Events"] is None


def test_a_scope_refuses_through_views_triggers_and_cascades(port: ListeningPort) -> None:
    port.execute("CREATE BINLOG 'narrow' LOG(`told`.`t`, `told`.`watched`)")
    port.execute("CREATE BINLOG 'wide'")
    try:
        for statement, through in (
            ("INSERT INTO watched VALUES (1)", "trigger"),
            ("DELETE FROM v WHERE a = 1", "foreign key"),
        ):
            narrow, wide = explain(port, statement)
            assert (narrow["Binlog"], narrow["Verdict"]) == ("narrow", "REFUSED"), statement
            assert narrow["Message"].startswith("[11314] ")
            assert through in narrow["Through"]
            assert (wide["Binlog"], wide["Logged_as"]) == ("wide", "NONE")
    finally:
        port.execute("DROP BINLOG 'narrow'")
        port.execute("DROP BINLOG 'wide'")


def test_functions_and_sequences_are_known(port: ListeningPort) -> None:
    (told,) = explain(port, "INSERT INTO t VALUES (f(), NEXTVAL(s))", "SET binlog_format = MIXED")
    assert told["Logged_as"] == "ROW"


def test_temporary_tables_are_the_sessions_own(port: ListeningPort) -> None:
    (told,) = explain(
        port,
        "INSERT INTO t VALUES (1, 'hidden')",
        "SET binlog_format = ROW",
        "CREATE TEMPORARY TABLE t (a INT, b TEXT)",
    )
    assert told["Logged_as"] == "NONE"


@pytest.mark.parametrize(
    ("statement", "errno"),
    [
        ("INSERT INTO nothing VALUES (1)", 1146),
        ("INSERT INTO (", 1064),
        ("", 1064),
        (";", 1064),
    ],
)
def test_errors(port: ListeningPort, statement: str, errno: int) -> None:
    if errno == 1146:
        (told,) = explain(port, statement)
        assert (told["Verdict"], told["Errno"]) == ("REFUSED", errno)
        return
    with pytest.raises(pymysql.err.MySQLError) as caught:
        explain(port, statement)
    assert caught.value.args[0] == errno


def test_parents_of_foreign_keys_are_known(port: ListeningPort) -> None:
    made = "CREATE TABLE made (a INT, FOREIGN KEY (a) REFERENCES {} (a)) ENGINE=InnoDB"
    (told,) = explain(port, made.format("t"))
    assert (told["Verdict"], told["Errno"]) == ("SAFE", None)
    (told,) = explain(port, made.format("nothing"))
    assert (told["Verdict"], told["Errno"]) == ("REFUSED", 1005)
    (told,) = explain(port, made.format("nothing"), "SET foreign_key_checks = 0")
    assert told["Verdict"] == "SAFE"


def test_the_statement_is_read_as_the_session_reads_it(port: ListeningPort) -> None:
    statement = 'INSERT INTO "t" VALUES ("f"(), NEXTVAL("s"))'
    (told,) = explain(port, statement, "SET sql_mode = 'ANSI_QUOTES', binlog_format = MIXED")
    assert (told["Verdict"], told["Logged_as"]) == ("SAFE", "ROW")


def test_what_an_account_may_not_see_is_the_sources_error(port: ListeningPort) -> None:
    with pytest.raises(pymysql.err.MySQLError) as caught:
        explain(
            port,
            "INSERT INTO told.t VALUES (1, 'a')",
            user="nobody",
            password="secret",
            database=None,
        )
    assert caught.value.args[0] == 1142
    with pytest.raises(pymysql.err.MySQLError, match="TRIGGER"):
        explain(port, "INSERT INTO t VALUES (1, 'a')", user="reader", password="secret")


def test_explain_of_statements_is_still_the_sources(port: ListeningPort) -> None:
    rows = port.execute("EXPLAIN SELECT * FROM told.t WHERE a = 1")
    assert len(rows) == 1


def test_it_is_known_behind_comments(port: ListeningPort) -> None:
    rows = port.execute("/* a */ explain -- b\n binlog /* c */ SELECT 1;")
    assert len(rows) == 1
