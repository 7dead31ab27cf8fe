"""A session's rows and the plans of its statements give what the server logs in statement format."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from binlane.binlogs.routing.event_routing import route
from binlane.binlogs.routing.planned_route import route_planned
from binlane.binlogs.routing.routed_group import prepared_with
from binlane.binlogs.routing.routing_memory import NOTHING
from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.log.grouping.event_group import EventGroup
from binlane.names import TableName
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import CreateBinlog, create
from binlane.statements.session.group_plan import Generated
from tests.planned_logs import SourceLog, comparable, plan_of
from tests.replay import checksums, run_text
from tests.servers import ServerFactory, execute

_TABLES = (
    "CREATE DATABASE d",
    "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT, w VARCHAR(40)) ENGINE=InnoDB",
    "CREATE TABLE d.n (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=MyISAM",
    "CREATE TABLE d.l (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=InnoDB",
    "CREATE TABLE d.tr (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
    "CREATE TRIGGER d.x AFTER INSERT ON d.tr FOR EACH ROW INSERT INTO d.l (v) VALUES (NEW.v)",
    "CREATE TABLE d.p (id INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE d.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES d.p (id) ON DELETE CASCADE)",
    "INSERT INTO d.p VALUES (1), (2)",
    "INSERT INTO d.c VALUES (1, 1), (2, 2)",
)
_SESSION = (
    "USE d",
    "INSERT INTO t (v) VALUES (1), (2), (3)",
    "INSERT INTO n (v) VALUES (1), (2)",
    "SET auto_increment_increment = 5, auto_increment_offset = 3",
    "INSERT INTO t (v) VALUES (4), (5)",
    "SET auto_increment_increment = 1, auto_increment_offset = 1",
    "INSERT INTO t (v, w) VALUES (LAST_INSERT_ID(), NOW())",
    "SET @a = 'ä', @b = 5",
    "UPDATE t SET v = v + @b, w = @a WHERE id < 3",
    "BEGIN",
    "INSERT INTO t (v) SELECT v FROM n ORDER BY id",
    "SAVEPOINT `a`",
    "UPDATE t SET v = v * 2",
    "DELETE FROM t WHERE v = 2",
    "COMMIT",
    "INSERT INTO tr VALUES (1, 1), (2, 2)",
    "DELETE FROM p WHERE id = 1",
    "UPDATE t JOIN l ON t.id = l.id SET t.v = 1, l.v = 2",
    "INSERT INTO t (v) VALUES (RAND(5) * 1000)",
    "INSERT INTO t (id, v) VALUES (1, 1) ON DUPLICATE KEY UPDATE v = v + 1",
    "REPLACE INTO tr (id, v) VALUES (7, 1)",
    "CREATE TABLE s SELECT id, v FROM tr",
    "CREATE TABLE nothing SELECT id, v FROM tr WHERE id > 100",
    "XA START 'x'",
    "INSERT INTO t (v) VALUES (9)",
    "XA END 'x'",
    "XA PREPARE 'x'",
    "XA COMMIT 'x'",
    "ALTER TABLE t ADD COLUMN z INT",
)
_GENERATED = {
    "INTO t ": Generated(TableName("d", "t"), 0),
    "INTO n ": Generated(TableName("d", "n"), 0),
    "INTO tr ": Generated(TableName("d", "l"), 0),
}
_UNSCOPED = "FORMAT='STATEMENT'"


def definition(clauses: str) -> Definition:
    statement = parse_binlog_statement(f"CREATE BINLOG 'b' {clauses}")
    assert isinstance(statement, CreateBinlog)
    return create(statement, 1)


def of_statements(*options: str) -> tuple[str, ...]:
    return tuple(one for one in options if not one.startswith("--binlog-format"))


def routed(rows: SourceLog, texts: SourceLog, wanted: Definition) -> list[EventGroup]:
    """What a binlog has of a log of rows, if its groups were planned."""
    assert len(rows.groups) == len(texts.groups)
    found, prepared, memory = list[EventGroup](), frozenset[str](), NOTHING
    for group, text in zip(rows.groups, texts.groups, strict=True):
        plan = plan_of(group, text, wanted, rows.format, generated=_GENERATED)
        as_rows = route(group, wanted, rows.format, prepared, memory)
        outcome = route_planned(group, plan, wanted, rows.format, prepared, memory)
        assert not outcome.reasons, (outcome.reasons, group)
        assert outcome.routing.incident is None
        assert not outcome.routing.omissions
        assert outcome.routing.group is not None
        assert outcome.routing.memory == as_rows.memory
        prepared = prepared_with(prepared, outcome.routing.group)
        assert prepared == prepared_with(prepared, as_rows.group)
        memory = outcome.routing.memory or memory
        found.append(EventGroup(gtid=group.gtid, events=outcome.routing.group.events, file=""))
    return found


def two_logs(row_server: PrivateServer, statement_server: PrivateServer) -> Sequence[SourceLog]:
    logs = []
    for server, binlog_format in ((row_server, "ROW"), (statement_server, "STATEMENT")):
        execute(server, *_TABLES)
        logs.append(SourceLog(server, binlog_format, _SESSION))
    return logs


def test_mariadb(servers: ServerFactory, tmp_path: Path) -> None:
    options = of_statements(*SOURCE_OPTIONS)
    row_server = servers.start("rows", (*options, "--binlog-annotate-row-events=ON"))
    rows, texts = two_logs(row_server, servers.start("texts", options))
    made = routed(rows, texts, definition(_UNSCOPED))
    for group, expected in zip(made, texts.groups, strict=True):
        assert comparable(group.events) == comparable(expected.events)
    path = tmp_path / "binlog.000001"
    path.write_bytes(rows.written(made))
    replica = servers.start("replica", options)
    execute(replica, *_TABLES)
    command = ("mariadb-binlog", "--no-defaults", "--verify-binlog-checksum", str(path))
    text = subprocess.run(command, capture_output=True, check=True).stdout
    assert not run_text(replica, text)
    assert checksums(replica) == checksums(row_server)


def test_mysql(servers: ServerFactory) -> None:
    options = of_statements(*MYSQL_SOURCE_OPTIONS)
    more = ("--binlog-rows-query-log-events=ON", "--binlog-transaction-compression=ON")
    row_server = servers.start_mysql("rows", *options, *more)
    rows, texts = two_logs(row_server, servers.start_mysql("texts", *options))
    made = routed(rows, texts, definition(_UNSCOPED))
    for group, expected in zip(made, texts.groups, strict=True):
        assert comparable(group.events) == comparable(expected.events)


@pytest.mark.parametrize("scope", ["LOG(d)", "IGNORE(e)"])
def test_a_scope_that_holds_all_holds_the_texts(servers: ServerFactory, scope: str) -> None:
    options = of_statements(*SOURCE_OPTIONS)
    rows, texts = two_logs(servers.start("rows", options), servers.start("texts", options))
    made = routed(rows, texts, definition(f"{scope} {_UNSCOPED}"))
    for group, expected in zip(made, texts.groups, strict=True):
        assert [event.header.type_code for event in group.events] == [
            event.header.type_code for event in expected.events
        ]
