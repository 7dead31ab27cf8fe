"""What replicas and binlog tools ask, in all the ways that they write it."""

from __future__ import annotations

import pytest

from binlane.gateway.replica_statements import (
    Fact,
    GetFact,
    GetGtidPosition,
    GetVariable,
    ReplicaStatement,
    SetVariables,
    may_concern_binlogs,
    recognise,
)

CASES: list[tuple[str, ReplicaStatement]] = [
    (
        "SET @master_heartbeat_period= 2000000000",
        SetVariables({"master_heartbeat_period": "2000000000"}, is_all=True),
    ),
    (
        "SET @master_heartbeat_period = 5, @source_heartbeat_period = 5",
        SetVariables({"master_heartbeat_period": "5", "source_heartbeat_period": "5"}, is_all=True),
    ),
    (
        "SET @master_binlog_checksum= @@global.binlog_checksum",
        SetVariables({"master_binlog_checksum": "CRC32"}, is_all=True),
    ),
    (
        "SET @master_binlog_checksum='NONE'",
        SetVariables({"master_binlog_checksum": "NONE"}, is_all=True),
    ),
    (
        "SET @mariadb_slave_capability=4",
        SetVariables({"mariadb_slave_capability": "4"}, is_all=True),
    ),
    (
        "SET @slave_connect_state='0-1-27'",
        SetVariables({"slave_connect_state": "0-1-27"}, is_all=True),
    ),
    ("SET @slave_connect_state=''", SetVariables({"slave_connect_state": ""}, is_all=True)),
    ("SET @slave_gtid_until := NULL", SetVariables({"slave_gtid_until": None}, is_all=True)),
    (
        "SET @slave_uuid = 'a', @other = 1",
        SetVariables({"slave_uuid": "a"}, is_all=False),
    ),
    (
        "SELECT @master_binlog_checksum",
        GetVariable("@master_binlog_checksum", "master_binlog_checksum"),
    ),
    (
        "SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'",
        GetFact(("Variable_name", "Value"), Fact.CHECKSUM),
    ),
    ("SELECT @@GLOBAL.binlog_checksum", GetFact(("@@GLOBAL.binlog_checksum",), Fact.CHECKSUM)),
    (
        "SHOW GLOBAL VARIABLES LIKE 'GTID_BINLOG_POS'",
        GetFact(("Variable_name", "Value"), Fact.GTID_POSITION),
    ),
    (
        "SELECT @@global.gtid_binlog_pos",
        GetFact(("@@global.gtid_binlog_pos",), Fact.GTID_POSITION),
    ),
    (
        "SELECT @@global.rpl_semi_sync_master_enabled",
        GetFact(("@@global.rpl_semi_sync_master_enabled",), Fact.SEMI_SYNC),
    ),
    (
        "SELECT @@global.rpl_semi_sync_source_enabled",
        GetFact(("@@global.rpl_semi_sync_source_enabled",), Fact.SEMI_SYNC_SOURCE),
    ),
    ("SELECT @@GLOBAL.GTID_EXECUTED", GetFact(("@@GLOBAL.GTID_EXECUTED",), Fact.GTID_EXECUTED)),
    (
        "SHOW GLOBAL VARIABLES LIKE 'gtid_purged'",
        GetFact(("Variable_name", "Value"), Fact.GTID_PURGED),
    ),
    (
        "SELECT binlog_gtid_pos('orders.000001',4)",
        GetGtidPosition("binlog_gtid_pos('orders.000001',4)", "orders.000001", 4),
    ),
    (
        "SELECT BINLOG_GTID_POS('orders.000001', '256')",
        GetGtidPosition("BINLOG_GTID_POS('orders.000001', '256')", "orders.000001", 256),
    ),
]


def _variants(statement: str) -> list[str]:
    return [
        statement,
        f"  {statement} ; ",
        f"/* ApplicationName=x */ {statement}",
        f"{statement} -- why not",
        f"# first a comment\n{statement}",
        f"SET STATEMENT max_statement_time=600 FOR {statement}",
        statement.replace("SELECT", "select").replace("SHOW", "sHoW").replace("SET ", "set\n\t"),
    ]


@pytest.mark.parametrize("statement, expected", CASES)
def test_recognised(statement: str, expected: ReplicaStatement) -> None:
    for variant in _variants(statement):
        assert recognise(variant) == expected, variant
        assert may_concern_binlogs(variant.encode()), variant


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT UNIX_TIMESTAMP()",
        "SHOW VARIABLES LIKE 'SERVER_ID'",
        "SELECT @@GLOBAL.gtid_domain_id",
        "SET @other = 1",
        "SET @master_binlog_checksum = (SELECT 1)",
        "SET @master_binlog_checksum = @@global.server_id",
        "SELECT @mine",
        "SELECT @master_binlog_checksum, 1",
        "SHOW GLOBAL VARIABLES LIKE 'binlog%'",
        "SELECT binlog_gtid_pos('orders.000001', 'x')",
        "SELECT binlog_gtid_pos('orders.000001')",
        "SELECT 'SELECT @master_binlog_checksum'",
        "SELECT 'unended",
        "SET STATEMENT max_statement_time=1",
        "",
        ";",
    ],
)
def test_left_to_others(statement: str) -> None:
    assert recognise(statement) is None


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE BINLOG 'orders' LOG(shop.orders)",
        "show binlogs",
        "/*!50000 SHOW MASTER STATUS */",
        "/* a *//* b */ SHOW BINARY LOG STATUS",
        "FLUSH BINARY LOGS 'orders'",
        "PURGE BINARY LOGS TO 'orders.000003'",
        "SHOW REPLICAS",
        "SELECT * FROM system.binlogs",
        "EXPLAIN BINLOG UPDATE t SET a = 1",
        "(SELECT binlog_gtid_pos('f', 4))",
    ],
)
def test_worth_a_closer_look(statement: str) -> None:
    assert may_concern_binlogs(statement.encode())


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "INSERT INTO log VALUES ('the binary log of the master')",
        "UPDATE binlogs SET a = 1",
        "SHOW TABLES",
        "KILL 5",
        "/* SHOW MASTER STATUS */ DELETE FROM t",
        "",
        "/*" * 5000 + "master",
        " " * 50_000 + "master",
    ],
)
def test_not_looked_at(statement: str) -> None:
    assert not may_concern_binlogs(statement.encode())
