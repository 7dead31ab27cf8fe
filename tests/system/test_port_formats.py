"""What seed 001 says of the mysql database, of sessions through the port into a binlog of each format."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.judged_port import Answered, PortRecorder, judged
from tests.lent_servers import LENT
from tests.serve_process import ServeProcess
from tests.servers import execute

_FORMATS = ("statement", "mixed", "row")


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    directory = tmp_path_factory.mktemp("formats")
    with (
        LENT.lend_source("mariadb") as source,
        judged(directory / "serve", source) as process,
    ):
        execute(source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT)")
        for name in _FORMATS:
            process.execute_as_root(f"CREATE BINLOG '{name}' FORMAT='{name}'")
        yield process


def _answered(serve: ServeProcess, *statements: str) -> list[Answered]:
    recorder = PortRecorder(serve, _FORMATS)
    try:
        return list(recorder.run(statements))
    finally:
        recorder.close()


def _kinds(answered: Answered, binlog: str) -> list[str]:
    """Texts and rows events that a binlog got."""
    return [
        event.info.removeprefix("use `d`; ") if event.type == "Query" else event.type
        for event in answered.events[binlog]
        if event.type not in {"Gtid", "Annotate_rows", "Xid"} and event.info != "COMMIT"
    ]


@pytest.mark.rule("001:mysql-direct")
def test_edits_of_the_mysql_database_follow_the_format(serve: ServeProcess) -> None:
    edit = "INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N')"
    answered, _ = _answered(serve, edit)
    assert answered.error is None
    assert _kinds(answered, "statement")[-1] == edit
    assert _kinds(answered, "row") == ["Table_map", "Write_rows_v1"]


@pytest.mark.rule("001:mysql-indirect")
def test_account_statements_are_statements_in_every_format(serve: ServeProcess) -> None:
    statements = (
        "CREATE USER someone@localhost",
        "GRANT SELECT ON d.t TO someone@localhost",
        "RENAME USER someone@localhost TO other@localhost",
        "REVOKE SELECT ON d.t FROM other@localhost",
        "DROP USER other@localhost",
    )
    for answered in _answered(serve, *statements)[:-1]:
        for name in _FORMATS:
            assert _kinds(answered, name) == [answered.sql], name


def test_what_others_may_change_while_it_is_read_is_no_text(serve: ServeProcess) -> None:
    copy = "INSERT INTO d.copies SELECT a FROM d.t"
    made = _answered(
        serve,
        "INSERT INTO d.t VALUES (1), (2)",
        "CREATE TABLE d.copies (a INT) ENGINE=MyISAM",
        copy,
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        copy,
        "INSERT INTO d.copies VALUES (9)",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "INSERT INTO d.t SELECT a FROM d.copies",
    )
    assert [one.error for one in made] == [None] * len(made)
    locked, unlocked, without_reads, of_myisam = (made[number] for number in (2, 4, 5, 7))
    rows = ["Table_map", "Write_rows_v1"]
    for name in ("statement", "mixed"):
        assert _kinds(locked, name)[-1] == copy
        assert _kinds(unlocked, name) == rows
        assert _kinds(without_reads, name)[-1] == without_reads.sql
        assert _kinds(of_myisam, name) == rows


def test_temporary_tables_whose_making_is_no_text_are_used_by_no_text(serve: ServeProcess) -> None:
    made = _answered(
        serve,
        "CREATE TABLE d.read_beside (a INT) ENGINE=MyISAM",
        "CREATE TEMPORARY TABLE d.there (a INT)",
        "BEGIN",
        "INSERT INTO d.t VALUES (3)",
        # Of a table that others may add to meanwhile.
        "CREATE TEMPORARY TABLE d.absent SELECT a FROM d.read_beside",
        "COMMIT",
        "DELETE x FROM d.absent x JOIN d.t y ON x.a = y.a",
        "INSERT INTO d.there SELECT a FROM d.absent",
        "DELETE x FROM d.there x JOIN d.t y ON x.a = y.a",
    )
    assert [one.error for one in made] == [None] * len(made)
    there, commit, of_absent, into_there, of_there, end = (
        made[number] for number in (1, 5, 6, 7, 8, 9)
    )
    assert _kinds(there, "statement") == [there.sql]
    assert _kinds(commit, "statement") == ["INSERT INTO d.t VALUES (3)"]
    for one in (of_absent, into_there, of_there):
        assert _kinds(one, "statement") == [], one.sql
    (dropped,) = _kinds(end, "statement")
    assert "`there`" in dropped
    assert "`absent`" not in dropped


def test_what_programs_read_without_locks_is_no_text(serve: ServeProcess) -> None:
    _answered(
        serve,
        "CREATE TABLE d.read_from (a INT) ENGINE=Aria",
        "CREATE TABLE d.written (a INT)",
        "INSERT INTO d.read_from VALUES (1)",
        "CREATE PROCEDURE d.copying() INSERT INTO written SELECT a FROM read_from",
    )
    copy = "INSERT INTO d.written SELECT a FROM d.read_from"
    made = _answered(
        serve,
        "CALL d.copying()",
        f"EXECUTE IMMEDIATE '{copy}'",
        f"PREPARE s FROM '{copy}'",
        "EXECUTE s",
        "EXECUTE IMMEDIATE 'INSERT INTO d.written VALUES (?)' USING 5",
    )
    for name in ("statement", "mixed"):
        for number in (0, 1, 3):
            assert _kinds(made[number], name) == ["Table_map", "Write_rows_v1"]
        assert _kinds(made[4], name)[-1] == "INSERT INTO d.written VALUES (5)"


def test_only_the_statement_that_is_no_text_is_rows(serve: ServeProcess) -> None:
    texts = [f"INSERT INTO d.kept VALUES ({number})" for number in (1, 2)]
    _answered(serve, "CREATE TABLE d.kept (a INT)", "CREATE TABLE d.my (a INT) ENGINE=MyISAM")
    _answered(serve, "INSERT INTO d.my VALUES (7)")
    copy = "INSERT INTO d.kept SELECT a FROM d.my"
    *_, committed, _ = _answered(serve, "BEGIN", texts[0], copy, texts[1], "COMMIT")
    found = [kind for kind in _kinds(committed, "statement") if kind != "BEGIN"]
    assert found == [texts[0], "Table_map", "Write_rows_v1", texts[1]]


def test_a_table_that_is_made_of_nothing_is_a_text(serve: ServeProcess) -> None:
    _answered(serve, "CREATE TABLE d.nothing (a INT)")
    statements = (
        "CREATE TABLE d.made SELECT a FROM d.nothing",
        "CREATE TABLE d.numbered (k INT AUTO_INCREMENT PRIMARY KEY) SELECT a FROM d.nothing",
    )
    for answered in _answered(serve, *statements)[:-1]:
        assert _kinds(answered, "statement") == [answered.sql]
