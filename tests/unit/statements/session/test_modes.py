"""Modes of sql_mode hold for all that is read: statements, and bodies as they were made."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog


def _session(flavor: str) -> Session:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load("CREATE DATABASE d; USE d; CREATE TABLE t (a INT); CREATE TABLE u (a INT);")
    return Session(server=Server.parse(flavor), objects=objects, database="d")


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_body_is_read_in_the_modes_of_its_creation(flavor: str) -> None:
    session = _session(flavor)
    session.execute("SET sql_mode = 'ANSI_QUOTES'")
    made = session.execute(
        'CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW INSERT INTO "u" VALUES (NEW.a)'
    )
    assert made.error is None
    session.execute("SET sql_mode = ''")
    session.execute("SET SESSION binlog_format = 'ROW'")
    found = session.execute("INSERT INTO t VALUES (1)")
    assert found.unanalysed is None
    assert found.error is None
    (binlog,) = found.binlogs.values()
    assert [event.info for event in binlog.events if "d.u" in event.info]
    refused = session.execute('INSERT INTO "u" VALUES (1)')
    assert refused.error is not None
    assert refused.error.errno == 1064


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_backslash_may_be_a_character(flavor: str) -> None:
    session = _session(flavor)
    statement = r"INSERT INTO t SELECT LENGTH('\') FROM u"
    refused = session.execute(statement)
    assert refused.error is not None
    assert refused.error.errno == 1064
    session.execute("SET sql_mode = 'NO_BACKSLASH_ESCAPES'")
    found = session.execute(statement)
    assert (found.error, found.unanalysed) == (None, None)


def test_blocks_of_oracle_are_run_or_said_not_to_be_analysed() -> None:
    session = _session("mariadb")
    session.execute("SET sql_mode = 'ORACLE'")
    plain = session.execute("BEGIN INSERT INTO t VALUES (1); END;")
    assert plain.error is None
    assert plain.unanalysed is None
    (binlog,) = plain.binlogs.values()
    assert [event.type for event in binlog.events] == ["Gtid", "Query", "Xid"]
    for text in (
        "DECLARE x INT := 1; BEGIN INSERT INTO t VALUES (x); END;",
        "BEGIN IF 1 = 2 THEN NULL; ELSIF 1 = 1 THEN NULL; END IF; END;",
    ):
        found = session.execute(text)
        assert (found.error, found.unanalysed) == (None, None), text
    jumps = session.execute("BEGIN GOTO l; <<l>> NULL; END;")
    assert jumps.error is None
    assert jumps.unanalysed is not None
    made = "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN :NEW.a := 1; END;"
    assert session.execute(made).unanalysed is None
    assert session.execute("INSERT INTO t VALUES (1)").unanalysed is None


@pytest.mark.parametrize(
    ("text", "logged"),
    [
        ("PROCEDURE p AS BEGIN NULL; END;", 'PROCEDURE "p"()\nAS BEGIN NULL; END'),
        (
            "FUNCTION f RETURN INT IS BEGIN RETURN 1; END;",
            'FUNCTION "f"() RETURN int(11)\nIS BEGIN RETURN 1; END',
        ),
    ],
)
def test_routines_of_oracle_are_written_anew(text: str, logged: str) -> None:
    session = _session("mariadb")
    session.execute("SET sql_mode = 'ORACLE'")
    (binlog,) = session.execute(f"CREATE {text}").binlogs.values()
    info = f'use `d`; CREATE DEFINER="root"@"localhost" {logged}'
    assert binlog.events[-1].info.startswith(info)


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_default_is_read_in_the_modes_of_its_creation(flavor: str) -> None:
    session = _session(flavor)
    session.execute("SET sql_mode = 'NO_BACKSLASH_ESCAPES'")
    session.execute(r"CREATE TABLE z (a INT, b VARCHAR(99) DEFAULT (concat('\', uuid())))")
    session.execute("SET sql_mode = DEFAULT, SESSION binlog_format = 'STATEMENT'")
    noted = session.execute("INSERT INTO z (a) VALUES (1)").notes
    assert [note.reason for note in noted] == ["ER_BINLOG_UNSAFE_SYSTEM_FUNCTION"]


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_definitions_are_printed_with_the_quotes_of_the_session(flavor: str) -> None:
    session = _session(flavor)
    session.execute("SET SESSION binlog_format = 'ROW'")
    session.execute("CREATE TABLE s (a INT, b VARCHAR(5) DEFAULT 'x\"y')")
    session.execute("SET sql_mode = 'ANSI_QUOTES'")
    (binlog,) = session.execute(
        'CREATE TABLE `n"w` (x INT, KEY (x)) SELECT * FROM "s"'
    ).binlogs.values()
    text = next(info for _, info in binlog.events if "CREATE TABLE" in info)
    assert '; CREATE TABLE "n""w" (\n  "x" ' in text
    assert '  "b" varchar(5) DEFAULT \'x"y\',\n  KEY "x" ("x")\n)' in text
    assert "`" not in text.partition("; ")[2]


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize(
    "statement",
    ["SET NAMES swe7", "SET CHARACTER SET 'swe7'", "SET character_set_client = swe7"],
)
def test_statements_are_read_in_the_character_set_of_the_client(
    flavor: str, statement: str
) -> None:
    session = _session(flavor)
    session.execute(statement)
    assert session.dialect.charset == "swe7"
    for made in ("CREATE TABLE [t] (a INT)", "CREATE TABLE `[t]` (a INT)"):
        found = session.execute(made)
        assert (found.error, found.unanalysed) == (None, None)
    assert session.objects.table(TableName("d", "[t]")) is not None
    assert session.objects.table(TableName("d", "ÄtÅ")) is not None
    session.execute("SET NAMES utf8mb4")
    assert session.dialect.charset == ""


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_statement_is_read_as_it_was_prepared(flavor: str) -> None:
    session = _session(flavor)
    session.execute("SET sql_mode = 'ANSI_QUOTES'")
    session.execute("PREPARE s FROM 'INSERT INTO \"u\" VALUES (1)'")
    session.execute("SET sql_mode = ''")
    found = session.execute("EXECUTE s")
    assert (found.error, found.unanalysed) == (None, None)


def test_functions_that_mariadb_qualifies_came_with_it() -> None:
    session = _session("mariadb")
    # As SHOW CREATE VIEW tells those of a view that was made in sql_mode ORACLE.
    session.execute("CREATE VIEW v AS SELECT oracle_schema.concat('1', a) AS b FROM u")
    for query in ("SELECT b FROM v", "SELECT mariadb_schema.concat('1', a) FROM u"):
        found = session.execute(f"INSERT INTO t {query}")
        assert (found.error, found.unanalysed) == (None, None)
    refused = _session("mysql").execute("INSERT INTO t SELECT oracle_schema.concat('1', a) FROM u")
    assert refused.error is not None
    assert refused.error.errno == 1305
