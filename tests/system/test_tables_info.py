"""Binlogs with tables info from sessions of real clients, and real replicas and tools on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysqlreplication import BinLogStreamReader  # type: ignore[import-untyped] # has no types
from pymysqlreplication.event import QueryEvent as ForeignQuery  # type: ignore[import-untyped] # as above

from binlane.binlogs.routing.query_events import statement_of
from binlane.binlogs.store.files import BinlogFile, read_head
from binlane.binlogs.store.stored_groups import StoreReader, read_groups
from binlane.binlogs.store.verify import verify
from binlane.live.provision.private_server import (
    PrivateServer,
)
from binlane.log.codec.query import QueryEvent
from binlane.log.grouping.walk import walk
from binlane.statements.sql.tables_info import told_tables
from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.port_replicas import replica_status
from tests.serve_process import ADMIN, PASSWORD, ServeProcess, wait_until
from tests.servers import execute, mysql_program

_SETTING = "[binlog]\nbinlog_with_tables_info = {}\n"
_FLAVORS = ("mariadb", "mysql")
_WIDE = [f"d.a_table_with_a_name_that_is_as_long_as_names_are_{number}" for number in range(60)]
_STATEMENTS = (
    "CREATE DATABASE d",
    "USE d",
    "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
    "INSERT INTO t VALUES (1, 2), (3, 4)",
    "CREATE TABLE t1 LIKE t",
    "INSERT INTO t1 VALUES (1, 5), (3, 6)",
    "CREATE TABLE t2 SELECT t.a, t1.b FROM t, t1 WHERE t.a = t1.a",
    "CREATE TEMPORARY TABLE s (a INT)",
    "CREATE TABLE t3 LIKE s",
    "UPDATE t, d.t1 SET t.b = t1.b WHERE t.a = t1.a",
    "CREATE VIEW v AS SELECT a, b FROM t",
    "INSERT INTO v VALUES (7, 8)",
    "CREATE TABLE t4 AS SELECT a FROM v",
    "CREATE TRIGGER g AFTER DELETE ON t1 FOR EACH ROW INSERT INTO t3 VALUES (9)",
    "DELETE FROM t1 WHERE a = 3",
    "CREATE DATABASE e",
    "RENAME TABLE t TO tmp, t1 TO t, tmp TO t1, t4 TO e.t4",
    "DROP TEMPORARY TABLE s",
    "CREATE TABLE n (a INT) ENGINE=MyISAM",
    "INSERT INTO n VALUES (1)",
    "CREATE USER somebody",
)


@dataclass(frozen=True, slots=True)
class Story:
    """A source, a port with tables info before it, and what a session did there.

    Attributes:
        stack: Stops what is started later.
        directory: Of servers.
        source: The source.
        serve: The port.
    """

    stack: ExitStack
    directory: Path
    source: PrivateServer
    serve: ServeProcess

    @property
    def flavor(self) -> str:
        """Of the source."""
        return self.source.program.scheme

    def run(self, *statements: str) -> None:
        """One session through the port."""
        self.serve.execute_as_root(*statements)

    def files(self, name: str) -> tuple[BinlogFile, ...]:
        """Those of a binlog that has all."""
        self.serve.wait_until_complete(name)
        return StoreReader(self.serve.data_dir).files(name)

    def groups(self, name: str) -> list[list[tuple[str, set[str]]]]:
        """By event group the statements of a binlog, each with the tables that it tells of."""
        found = []
        for group in read_groups([file.path for file in self.files(name)]):
            statements = [statement_of(event.body) for event in group.events]
            found.append([_told(one) for one in statements if one is not None])
        return [group for group in found if group]

    def tables(self, name: str, start: str) -> set[str]:
        """Those of the only statement of a binlog that begins so."""
        (found,) = [
            tables
            for group in self.groups(name)
            for text, tables in group
            if text.replace("`", "").startswith(start)
        ]
        return found

    def server(self, number: int) -> PrivateServer:
        """A replica to be."""
        lent = LENT.lend_source(self.flavor, f"--server-id={number}")
        return self.stack.enter_context(lent)


def _told(statement: QueryEvent) -> tuple[str, set[str]]:
    assert statement.tables_info is not None
    return statement.query.decode(), {str(table) for table in told_tables(statement)}


@pytest.fixture(scope="module", params=_FLAVORS)
def story(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    directory = tmp_path_factory.mktemp("tables-info")
    with ExitStack() as stack:
        source = stack.enter_context(LENT.lend_source(request.param))
        serve = stack.enter_context(
            judged(directory / "serve", source, extra=_SETTING.format("true"))
        )
        made = Story(stack, directory, source, serve)
        made.run("CREATE BINLOG 'row' FORMAT='ROW'", "CREATE BINLOG 'statement' FORMAT='STATEMENT'")
        made.run(*_STATEMENTS)
        execute(source, "CREATE USER reader@'%' IDENTIFIED BY 'secret'")
        made.run("GRANT READ ON BINLOG 'statement' TO reader@'%'")
        yield made


@pytest.mark.rule("003:create")
@pytest.mark.rule("003:row-create")
def test_a_plain_create_has_its_table(story: Story) -> None:
    for name in ("statement", "row"):
        assert story.tables(name, "CREATE TABLE t (") == {"`d`.`t`"}


@pytest.mark.rule("003:create-like")
@pytest.mark.rule("003:row-create-like")
def test_a_create_like_has_both_tables(story: Story) -> None:
    for name in ("statement", "row"):
        assert story.tables(name, "CREATE TABLE t1 LIKE t") == {"`d`.`t1`", "`d`.`t`"}


@pytest.mark.rule("003:create-select")
def test_a_create_select_has_all_tables_that_it_reads(story: Story) -> None:
    assert story.tables("statement", "CREATE TABLE t2 SELECT") == {
        "`d`.`t2`",
        "`d`.`t`",
        "`d`.`t1`",
    }
    # Through a view as well.
    assert story.tables("statement", "CREATE TABLE t4 AS SELECT") == {"`d`.`t4`", "`d`.`t`"}


@pytest.mark.rule("003:row-create-select")
@pytest.mark.rule("003:row-create-select-group")
def test_in_rows_a_create_select_is_a_create_whose_group_has_its_table(story: Story) -> None:
    assert story.tables("row", "CREATE TABLE t2 (") == {"`d`.`t2`"}
    (group,) = [g for g in story.groups("row") if any("TABLE `t2`" in text for text, _ in g)]
    assert all(tables == {"`d`.`t2`"} for _, tables in group)
    if story.flavor == "mysql":
        assert group[0][0] == "BEGIN"
    else:
        # MariaDB has no BEGIN there, and a COMMIT only where nothing can be rolled back.
        story.run("CREATE TABLE d.m ENGINE=MyISAM SELECT a FROM d.t2")
        (group,) = [g for g in story.groups("row") if any("TABLE `d`.`m`" in t for t, _ in g)]
        assert [tables for _, tables in group] == [{"`d`.`m`"}, {"`d`.`m`"}]
        assert group[-1][0] == "COMMIT"


@pytest.mark.rule("003:row-temporary")
@pytest.mark.rule("003:row-create-like-temporary")
def test_in_rows_there_are_no_temporary_tables(story: Story) -> None:
    told = [tables for group in story.groups("row") for _, tables in group]
    assert "`d`.`s`" not in set().union(*told)
    assert story.tables("row", "CREATE TABLE t3 (") == {"`d`.`t3`"}
    assert story.tables("statement", "CREATE TEMPORARY TABLE s") == {"`d`.`s`"}
    assert story.tables("statement", "CREATE TABLE t3 LIKE s") == {"`d`.`t3`", "`d`.`s`"}
    assert story.tables("statement", "DROP TEMPORARY TABLE s") == {"`d`.`s`"}


@pytest.mark.rule("003:rename")
def test_a_rename_has_the_tables_left_of_to(story: Story) -> None:
    for name in ("statement", "row"):
        assert story.tables(name, "RENAME TABLE t TO tmp") == {"`d`.`t`", "`d`.`t1`", "`d`.`t4`"}


def test_statements_of_several_tables_views_and_triggers_have_them_all(story: Story) -> None:
    assert story.tables("statement", "UPDATE t, d.t1") == {"`d`.`t`", "`d`.`t1`"}
    assert story.tables("statement", "INSERT INTO v") == {"`d`.`t`"}
    assert story.tables("statement", "DELETE FROM t1") == {"`d`.`t1`", "`d`.`t3`"}
    assert story.tables("row", "CREATE DATABASE e") == set()
    users = [tables for g in story.groups("row") for text, tables in g if "CREATE USER" in text]
    assert users == [set(), set()]


@pytest.mark.rule("003:option")
@pytest.mark.rule("003:option-global")
def test_the_variable_is_shown_and_read_only(story: Story) -> None:
    told = (("binlog_with_tables_info", "ON"),)
    execute_ = story.serve.execute_as_root
    for statement in (
        "SHOW VARIABLES LIKE 'binlog_with%'",
        "SHOW GLOBAL VARIABLES WHERE Variable_name = 'binlog_with_tables_info' AND Value = 'ON'",
    ):
        assert execute_(statement) == told
    assert execute_("SHOW VARIABLES WHERE Variable_name LIKE 'binlog_w%' AND Value = 'OFF'") == ()
    assert story.serve.execute("SELECT @@binlog_with_tables_info") == ((1,),)
    everything = [row[0] for row in execute_("SHOW VARIABLES")]
    assert everything.count("binlog_with_tables_info") == 1
    at = everything.index("binlog_with_tables_info")
    assert everything[at - 1] < everything[at] < everything[at + 1]
    for statement in (
        "SET GLOBAL binlog_with_tables_info = OFF",
        "SET @a = 1, @@session.binlog_with_tables_info = 0",
        "SELECT @@session.binlog_with_tables_info",
    ):
        with pytest.raises(pymysql.MySQLError) as caught:
            execute_(statement)
        assert caught.value.args[0] == 1238


def test_show_binlog_events_and_verify_read_it(story: Story) -> None:
    (file, *_) = story.files("statement")
    shown = story.serve.execute_as_root(f"SHOW BINLOG EVENTS IN '{file.name}'")
    texts = [str(row[5]) for row in shown if row[2] == "Query"]
    assert any(text.endswith("UPDATE t, d.t1 SET t.b = t1.b WHERE t.a = t1.a") for text in texts)
    assert [*verify([str(story.serve.data_dir)])] == []


def test_filters_go_by_it(story: Story) -> None:
    (file, *_) = story.files("statement")
    cat = [sys.executable, "-m", "binlane", "cat", "--short-form"]
    for lists, inside, outside in (
        # What the first names in its text is a view; the other one fires a trigger.
        (["--do-table=d.t"], b"INSERT INTO v", b"DELETE FROM t1"),
        (["--ignore-table=d.t3"], b"INSERT INTO v", b"DELETE FROM t1"),
    ):
        done = subprocess.run([*cat, *lists, str(file.path)], check=True, capture_output=True)
        assert inside in done.stdout
        assert outside not in done.stdout


def test_binlanes_own_readers_ask_for_it(story: Story) -> None:
    server = ["-R", "--host=127.0.0.1", f"--port={story.serve.port}", f"--user={ADMIN}"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "binlane", "cat", "--format=json", *server),
            story.files("statement")[0].name,
        ],
        check=True,
        capture_output=True,
        env=os.environ | {"MYSQL_PWD": PASSWORD},
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    told = {one["query"]: one["tables_info"] for one in found if one["type"] == "QUERY"}
    assert told["DELETE FROM t1 WHERE a = 3"] == [["", "t1"], ["", "t3"]]
    assert told["INSERT INTO v VALUES (7, 8)"] == [["", "t"]]


def test_tools_that_know_no_tables_info_read_it(story: Story, tmp_path: Path) -> None:
    (file, *_) = story.files("statement")
    tool = ["mariadb-binlog", "--no-defaults"]
    if story.flavor == "mysql":
        folder = mysql_program().folder
        if folder is None:
            pytest.skip("mysqlbinlog is looked for where MySQL was unpacked")
        tool = [str(folder / "exec"), "/usr/bin/mysqlbinlog", "--no-defaults"]
        tool += ["--get-server-public-key"]
    place = ["-R", "-h127.0.0.1", f"-P{story.serve.port}", f"-u{ADMIN}", f"-p{PASSWORD}"]
    place += ["--ssl-mode=DISABLED"] if story.flavor == "mysql" else ["--skip-ssl"]
    subprocess.run([*tool, *place, "--raw", f"-r{tmp_path}/", file.name], check=True)
    data = (tmp_path / file.name).read_bytes()
    # Event by event as long as it was, so that all positions are those of the file.
    stored = list(walk([file.path.read_bytes()[: len(data)]], file=file.name))
    copied = list(walk([data], file=file.name))
    assert [(e.position, e.header.length) for e in copied] == [
        (e.position, e.header.length) for e in stored
    ]
    assert not copied[0].body.format.has_tables_info  # type: ignore[attr-defined]  # it is first
    for mine, theirs in zip(map(_statement, stored), map(_statement, copied), strict=True):
        if mine is not None and theirs is not None:
            assert theirs.tables_info is None
            assert theirs.status_vars.startswith(mine.status_vars)
            assert (theirs.database, theirs.query.rstrip()) == (mine.database, mine.query)
    printed = subprocess.run(
        [*tool[: 3 if story.flavor == "mysql" else 2], str(tmp_path / file.name)],
        check=True,
        capture_output=True,
    ).stdout
    assert b"\nUPDATE t, d.t1 SET t.b = t1.b WHERE t.a = t1.a\n" in printed


def _statement(event: Any) -> QueryEvent | None:
    return statement_of(event.body)


@pytest.mark.filterwarnings("ignore:'(db|passwd)' is deprecated")
def test_a_reader_that_refuses_unknown_variables_goes_on(story: Story) -> None:
    if story.flavor == "mysql":
        pytest.skip("the reader knows fewer variables than this MySQL writes by itself")
    stream = BinLogStreamReader(
        connection_settings={
            "host": "127.0.0.1",
            "port": story.serve.port,
            "user": "reader",
            "passwd": "secret",
            "ssl_disabled": True,
        },
        server_id=77,
        auto_position=story.files("statement")[0].begin_gtids,
        only_events=[ForeignQuery],
        is_mariadb=True,
    )
    try:
        texts = {event.query for event in stream}
    finally:
        stream.close()
    assert {"CREATE TABLE t1 LIKE t", "DELETE FROM t1 WHERE a = 3", "COMMIT"} <= texts


def _follow(story: Story, replica: PrivateServer, *, by_gtid: bool) -> None:
    """Let a replica follow from the first file on, or from where it is."""
    word = "MASTER" if story.flavor == "mariadb" else "SOURCE"
    place = f"{word}_LOG_FILE='statement.000001', {word}_LOG_POS=4"
    if story.flavor == "mariadb":
        change, start, stop = "CHANGE MASTER TO", "START SLAVE", "STOP SLAVE"
        how = "MASTER_USE_GTID=slave_pos" if by_gtid else f"MASTER_USE_GTID=no, {place}"
    else:
        change, start = "CHANGE REPLICATION SOURCE TO", "START REPLICA"
        stop, own = "STOP REPLICA", "SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, SOURCE_AUTO_POSITION"
        how = f"{own}=1" if by_gtid else f"{own}=0, {place}"
    # By GTID it gets the one binlog that its account may read.
    execute(
        replica,
        stop,
        f"{change} {word}_HOST='127.0.0.1', {word}_PORT={story.serve.port}, "
        f"{word}_USER='reader', {word}_PASSWORD='secret', {word}_CONNECT_RETRY=1, "
        f"{word}_HEARTBEAT_PERIOD=0.5, {how}",
        start,
    )


def _wait_for(story: Story, replica: PrivateServer) -> dict[str, Any]:
    """Wait until a replica has read and done all; it says that it stands at the binlog's end."""
    story.serve.wait_until_complete("statement")
    (row,) = (row for row in story.serve.execute_as_root("SHOW BINLOGS") if row[0] == "statement")
    end, status = (str(row[1]), int(row[2])), dict[str, Any]()

    def is_there() -> bool:
        status.update(replica_status(replica))
        assert not status["Last_IO_Errno"], status["Last_IO_Error"]
        assert not status["Last_SQL_Errno"], status["Last_SQL_Error"]
        read = status["Source_Log_File"], int(status["Read_Source_Log_Pos"])
        done = status["Relay_Source_Log_File"], int(status["Exec_Source_Log_Pos"])
        return read == done == end

    try:
        wait_until(is_there)
    except AssertionError:
        raise AssertionError(f"not at {end}: {status}") from None
    return status


def _checksums(server: PrivateServer) -> object:
    return execute(server, "CHECKSUM TABLE d.t, d.t1, d.t2, d.t3, e.t4, d.n, d.big")


def test_replicas_follow_and_come_back(story: Story) -> None:
    stop, start = ("STOP SLAVE", "START SLAVE")
    if story.flavor == "mysql":
        stop, start = ("STOP REPLICA", "START REPLICA")
    replica = story.server(40)
    if story.flavor == "mysql":
        begin = story.files("statement")[0].begin_gtids
        execute(replica, f"SET GLOBAL gtid_purged = '{begin}'")
    _follow(story, replica, by_gtid=False)
    _wait_for(story, replica)
    execute(replica, stop)
    # More tables than status variables have room for, and a statement that is too long to tell any.
    story.run(
        *(f"CREATE TABLE {name} (a INT)" for name in _WIDE),
        f"DROP TABLE {', '.join(_WIDE)}",
        "CREATE TABLE d.big (a INT, b LONGTEXT)",
        f"INSERT INTO d.big VALUES (1, '{'x' * 70_000}')",
        "INSERT INTO d.big VALUES (2, 'y')",
    )
    execute(replica, start)
    _wait_for(story, replica)
    execute(replica, stop, start)
    story.run("INSERT INTO d.big VALUES (4, 'a')")
    _wait_for(story, replica)
    _follow(story, replica, by_gtid=True)
    story.run("INSERT INTO d.big VALUES (3, 'z')")
    _wait_for(story, replica)
    assert _checksums(replica) == _checksums(story.source)


@pytest.mark.rule("003:one-form-per-file")
@pytest.mark.rule("003:option")
def test_a_file_has_one_form_and_the_setting_begins_another(story: Story) -> None:
    story.run(f"INSERT INTO d.t3 VALUES (LENGTH('{'x' * 70_000}'))", "INSERT INTO d.t3 VALUES (1)")
    before = {file.name: _form(file) for file in story.files("statement")}
    # What has no room for its tables is in a plain file, and all behind it until that is full.
    assert set(before.values()) == {True, False}
    story.serve.stop()
    story.serve._extra = _SETTING.format("false")
    story.serve.start()
    story.run("INSERT INTO d.t3 VALUES (2)")
    assert _form(story.files("statement")[-1]) is False
    assert [_form(file) for file in story.files("row")] == [True, False]
    assert story.serve.execute_as_root("SELECT @@binlog_with_tables_info") == ((0,),)
    assert [*verify([str(story.serve.data_dir)])] == []


def _form(file: BinlogFile) -> bool:
    """Whether a file's statements have tables info: all of them as its first event says."""
    has_tables_info = read_head(file.path).format_description.format.has_tables_info
    for group in read_groups([file.path]):
        for event in group.events:
            statement = statement_of(event.body)
            assert statement is None or (statement.tables_info is not None) is has_tables_info
    return has_tables_info
