"""The binlogs' variables, and warnings, as an ordinary client of the port has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest

from tests.judged_port import Answered, PortRecorder, judged, judged_source
from tests.lent_servers import LENT
from tests.serve_process import ServeProcess
from tests.servers import connect, execute

_TYPES: Final = {"Query", "Table_map", "Intvar"}


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def serve(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    objects = [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY, b TINYINT)",
        "CREATE USER plain@'127.0.0.1'",
        "GRANT ALL ON d.* TO plain@'127.0.0.1'",
    ]
    binlogs = ["CREATE BINLOG s FORMAT='STATEMENT'", "CREATE BINLOG r FORMAT='ROW'"]
    directory = tmp_path_factory.mktemp("variables")
    with judged_source(directory, request.param, objects, binlogs) as process:
        yield process


@pytest.fixture
def recorder(serve: ServeProcess) -> Iterator[PortRecorder]:
    execute(serve.source, "DELETE FROM d.t")
    with closing(PortRecorder(serve, ["s", "r"])) as one:
        yield one


def _logged(answered: Answered, name: str) -> list[str]:
    """What a binlog got of a statement: texts of statements, and `rows`."""
    found: list[str] = []
    for event in answered.events[name]:
        if event.type == "Table_map":
            found.append("rows")
        elif event.type == "Query" and "d.t" in str(event):
            found.append("text")
    return found


def _formats(answered: list[Answered]) -> list[tuple[list[str], list[str]]]:
    assert [(one.sql, one.message) for one in answered if one.error] == []
    return [(_logged(one, "s"), _logged(one, "r")) for one in answered if "INSERT" in one.sql]


def test_formats_of_a_session(recorder: PortRecorder) -> None:
    answered = recorder.run(
        [
            "INSERT INTO d.t VALUES (1, 1)",
            "SET SESSION binlog_format = ROW",
            "INSERT INTO d.t VALUES (2, 1)",
            "SET @@session.binlog_format = CONCAT('STATE', 'MENT')",
            "INSERT INTO d.t VALUES (3, 1)",
            "SET binlog_format = DEFAULT",
            "INSERT INTO d.t VALUES (4, 1)",
            "SET sql_log_bin = 0",
            "INSERT INTO d.t VALUES (5, 1)",
            "SET @x = 1, sql_log_bin = ON",
            "INSERT INTO d.t VALUES (6, 1)",
        ]
    )
    assert _formats(list(answered)) == [
        (["text"], ["rows"]),
        (["rows"], ["rows"]),
        (["text"], ["text"]),
        (["text"], ["rows"]),
        ([], []),
        (["text"], ["rows"]),
    ]


def test_the_source_goes_on_with_full_rows(recorder: PortRecorder) -> None:
    serve = recorder.serve
    position = "gtid_executed" if recorder.flavor == "mysql" else "gtid_binlog_pos"
    with closing(serve.connect("root", "")) as connection, connection.cursor() as cursor:
        cursor.execute("SET binlog_format = STATEMENT, sql_log_bin = 0")
        cursor.execute(f"SELECT @@GLOBAL.{position}")
        before = execute(serve.source, f"SELECT @@GLOBAL.{position}")
        cursor.execute("INSERT INTO d.t VALUES (1, 1)")
        assert execute(serve.source, f"SELECT @@GLOBAL.{position}") != before
        rows = execute(serve.source, "SHOW BINARY LOGS")
        events = execute(serve.source, f"SHOW BINLOG EVENTS IN '{rows[-1][0]}'")
        assert events[-2][2].startswith("Write_rows")


def test_values_are_the_binlogs(serve: ServeProcess) -> None:
    with closing(serve.connect("root", "")) as connection, connection.cursor() as cursor:

        def asked(statement: str) -> tuple[tuple[Any, ...], ...]:
            cursor.execute(statement)
            return tuple(cursor.fetchall())

        assert asked("SELECT @@binlog_format, @@sql_log_bin AS n") == (("MIXED", 1),)
        cursor.execute("SET @old = @@binlog_format, binlog_format = STATEMENT, sql_log_bin = 0")
        assert asked("SELECT @old, @@binlog_format, @@session.sql_log_bin") == (
            ("MIXED", "STATEMENT", 0),
        )
        assert asked("SHOW VARIABLES LIKE 'binlog\\_format'") == (("binlog_format", "STATEMENT"),)
        assert asked("SHOW SESSION VARIABLES WHERE Variable_name = 'sql_log_bin'") == (
            ("sql_log_bin", "OFF"),
        )
        cursor.execute("SET sql_log_bin = 1, binlog_format = @old")
        assert asked("SELECT @@binlog_format") == (("MIXED",),)


@pytest.mark.rule("001:binlog-format-option")
def test_a_format_of_the_settings(tmp_path: Path) -> None:
    """Sessions begin with it, and binlogs have it that say no other; SET GLOBAL stands above it."""
    formats = "SELECT @@binlog_format, @@global.binlog_format"
    with LENT.lend_source("mariadb") as source:
        execute(source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY, b TINYINT)")
        extra = '[binlog]\nbinlog_format = "mixed"\n'
        with judged(tmp_path / "serve", source, extra=extra) as serve:
            ask = serve.execute_as_root
            ask("CREATE BINLOG s", "CREATE BINLOG b FORMAT='default'", "CREATE BINLOG r FORMAT=ROW")
            assert [one[6] for one in ask("SHOW BINLOGS")] == ["MIXED", "ROW", "MIXED"]
            assert ask(formats) == (("MIXED", "MIXED"),)
            assert ask("SHOW GLOBAL VARIABLES LIKE 'binlog_format'") == (
                ("binlog_format", "MIXED"),
            )
            with closing(PortRecorder(serve, ["s", "r"])) as recorder:
                # As with SET GLOBAL, the format of a session rules in all binlogs.
                answered = list(recorder.run(["INSERT INTO d.t VALUES (1, 1)"]))
                assert _formats(answered) == [(["text"], ["text"])]
            ask("SET GLOBAL binlog_format = STATEMENT", "CREATE BINLOG c")
            assert ask(formats) == (("STATEMENT", "STATEMENT"),)
            ask("ALTER BINLOG b FORMAT = 'default'")
            assert [one[6] for one in ask("SHOW BINLOGS")] == [
                *("STATEMENT", "STATEMENT", "ROW", "MIXED"),
            ]
            assert ask("SET GLOBAL binlog_format = DEFAULT", "SELECT @@global.binlog_format") == (
                ("MIXED",),
            )
            assert ask(formats) == (("MIXED", "MIXED"),)


@pytest.mark.parametrize(
    "statement",
    [
        "SET binlog_format = 'bogus'",
        "SET sql_log_bin = 2",
        "SET GLOBAL sql_log_bin = 0",
        "SET binlog_format = (SELECT 1 UNION SELECT 2)",
        "SET binlog_format = 1.5",
    ],
)
def test_errors_are_the_sources(serve: ServeProcess, statement: str) -> None:
    told: list[object] = []
    for connection in (serve.connect("root", ""), connect(serve.source)):
        with closing(connection), connection.cursor() as cursor:
            with pytest.raises(pymysql.MySQLError) as caught:
                cursor.execute(statement)
            told.append(caught.value.args)
    assert told[0] == told[1]


def test_who_may_not_set_them(serve: ServeProcess) -> None:
    with closing(serve.connect("plain", "")) as connection, connection.cursor() as cursor:
        for statement in (
            "SET binlog_format = STATEMENT",
            "SET sql_log_bin = 0",
            "SET GLOBAL binlog_format = ROW",
        ):
            with pytest.raises(pymysql.MySQLError) as caught:
                cursor.execute(statement)
            assert caught.value.args[0] == 1227
        cursor.execute("SELECT @@binlog_format, @@sql_log_bin")
        assert cursor.fetchall() == (("MIXED", 1),)


def test_programs_cannot_set_them(serve: ServeProcess) -> None:
    serve.execute_as_root("CREATE PROCEDURE d.p() BEGIN SET binlog_format = 'STATEMENT'; END")
    with closing(serve.connect("root", "")) as connection, connection.cursor() as cursor:
        cursor.execute("PREPARE s FROM 'SET sql_log_bin = 0'")
        for statement in ("CALL d.p()", "EXECUTE s"):
            with pytest.raises(pymysql.MySQLError, match="doesn't yet support"):
                cursor.execute(statement)
    serve.execute_as_root("DROP PROCEDURE d.p")


def test_a_program_that_binlane_does_not_know_changes_nothing_for_long(serve: ServeProcess) -> None:
    with closing(serve.connect("root", "")) as connection, connection.cursor() as cursor:
        cursor.execute("SET binlog_format = ROW")
        # The port may know of it by now, or not.
        execute(serve.source, "CREATE PROCEDURE d.q() BEGIN SET binlog_format = 'STATEMENT'; END")
        with suppress(pymysql.MySQLError):
            cursor.execute("CALL d.q()")
        cursor.execute("INSERT INTO d.t VALUES (100, 1)")
        cursor.execute("SELECT @@binlog_format")
        assert cursor.fetchall() == (("ROW",),)
    rows = execute(serve.source, "SHOW BINARY LOGS")
    events = execute(serve.source, f"SHOW BINLOG EVENTS IN '{rows[-1][0]}'")
    assert events[-2][2].startswith("Write_rows")
    execute(serve.source, "DROP PROCEDURE d.q")


def test_notes_among_the_warnings(recorder: PortRecorder) -> None:
    insert = "INSERT IGNORE INTO d.t SELECT 1, 1000 LIMIT 1"
    (told, _) = recorder.run([insert], settings=["SET binlog_format = STATEMENT"])
    assert [errno for _, errno, _ in told.warnings] == [1264, 1592, 1592]
    with closing(recorder.serve.connect("root", "")) as connection, connection.cursor() as cursor:
        cursor.execute("SET binlog_format = STATEMENT")
        cursor.execute("DELETE FROM d.t LIMIT 1")
        cursor.execute("SHOW COUNT(*) WARNINGS")
        assert cursor.fetchall() == ((1,),)
        cursor.execute("SHOW WARNINGS LIMIT 0, 5")
        assert [row[1] for row in cursor.fetchall()] == [1592]
        cursor.execute("SELECT @@warning_count")
        assert cursor.fetchall() == ((1,),)
        cursor.execute("SELECT * FROM d.t")
        cursor.execute("SHOW WARNINGS")
        assert cursor.fetchall() == ()


def test_several_statements_in_a_packet(recorder: PortRecorder) -> None:
    with closing(recorder.serve.connect("root", "")) as connection:
        flag = pymysql.constants.CLIENT.MULTI_STATEMENTS
        many = pymysql.connect(
            host="127.0.0.1",
            port=recorder.serve.port,
            user="root",
            client_flag=flag,
            autocommit=True,
        )
        with closing(many), many.cursor() as cursor, connection.cursor() as other:
            cursor.execute(
                "SET binlog_format = ROW; INSERT INTO d.t VALUES (1, 1) -- a\n; SELECT @@sql_log_bin"
            )
            while cursor.nextset():
                pass
            cursor.execute("SELECT @@binlog_format")
            assert cursor.fetchall() == (("ROW",),)
            with pytest.raises(pymysql.MySQLError, match="packet of several"):
                cursor.execute("SET @f = 'ROW'; SET binlog_format = @f")
            other.execute("SELECT COUNT(*) FROM d.t")
            assert other.fetchall() == ((1,),)


def test_a_session_that_chooses_its_gtids_is_followed_like_others(recorder: PortRecorder) -> None:
    if recorder.flavor == "mariadb":
        chosen = ["SET SESSION server_id = 77", "SET SESSION gtid_seq_no = 1000000"]
    else:
        chosen = ["SET gtid_next = 'AUTOMATIC:own'", "SET gtid_next = 'AUTOMATIC'"]
    answered = list(
        recorder.run(
            [
                "INSERT INTO d.t VALUES (1, 1)",
                chosen[0],
                "INSERT INTO d.t VALUES (2, 1)",
                chosen[1],
                "INSERT INTO d.t VALUES (3, 1)",
            ]
        )
    )
    assert _formats(answered) == [(["text"], ["rows"])] * 3


def test_global_values_outlive_a_restart(serve: ServeProcess) -> None:
    with closing(serve.connect("root", "")) as connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL binlog_format = ROW")
        cursor.execute("SELECT @@binlog_format, @@global.binlog_format")
        assert cursor.fetchall() == (("MIXED", "ROW"),)
    wanted = (("ROW", "ROW"),)
    statement = "SELECT @@binlog_format, @@global.binlog_format"
    assert serve.execute_as_root(statement) == wanted
    serve.stop()
    serve.start()
    assert serve.execute_as_root(statement) == wanted
    serve.execute_as_root("SET GLOBAL binlog_format = DEFAULT")
    assert serve.execute_as_root(statement) == (("MIXED", "MIXED"),)
    assert execute(serve.source, "SELECT @@global.binlog_format") == (("ROW",),)


def test_variables_of_the_binlog_stand_beside_those_of_the_session(serve: ServeProcess) -> None:
    """What describes the binlog and what a session has set are told in one answer."""
    with serve.connect("root", "") as session, session.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'MIXED'")
        cursor.execute("SELECT @@binlog_format, @@GLOBAL.binlog_checksum, @@GLOBAL.server_id")
        assert cursor.fetchall() == (("MIXED", "CRC32", 1),)
        cursor.execute("SHOW VARIABLES LIKE 'binlog_%'")
        told = dict(cursor.fetchall())
        assert (told["binlog_format"], told["binlog_checksum"]) == ("MIXED", "CRC32")
