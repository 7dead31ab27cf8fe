"""What replicas and binlog tools ask, in all the ways that they write it."""

from __future__ import annotations

import pytest

from binlane.errors import StatementError
from binlane.live.gateway.replica_statements import (
    SNAPSHOT,
    Asked,
    BinlogFact,
    BinlogReads,
    GtidPositionAt,
    Kill,
    ReplicaStatement,
    ReplicaVariable,
    SetVariables,
    Shows,
    is_like,
    may_concern_binlogs,
    recognise,
)
from binlane.log.codec.types import Flavor
from binlane.positions import FilePosition

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
        "SHOW VARIABLES LIKE 'binlog_format'",
        "SELECT @@GLOBAL.binlog_format",
        "SHOW VARIABLES LIKE 'BINLOG_ROW_METADATA';",
        "SHOW STATUS LIKE 'Threads%'",
        "SHOW TABLE STATUS",
        "SHOW MASTER STATUS",
        "SELECT @@GLOBAL.gtid_executed",
        "SHOW GLOBAL VARIABLES LIKE 'gtid_purged'",
        "SET GLOBAL gtid_slave_pos = '0-1-2'",
        "SELECT @slave_connect_state := '0-1-2'",
        "CREATE FUNCTION f() RETURNS TEXT RETURN @@gtid_binlog_pos",
        "CREATE VIEW v AS SELECT @@gtid_binlog_pos",
        "SELECT @@gtid_binlog_pos FROM",
        "SELECT shop.binlog_gtid_pos('orders.000001', 4)",
        "KILL CONNECTION_ID()",
        "KILL QUERY ID 5",
        "KILL USER team",
        "SELECT @@GLOBAL.gtid_domain_id",
        "SET @other = 1",
        "SET @master_binlog_checksum = (SELECT 1)",
        "SET @master_binlog_checksum = @@global.server_id",
        "SELECT @mine",
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
        "SHOW VARIABLES",
        "show /* all */ session\nvariables",
        "SHOW GLOBAL STATUS",
        "KILL 5",
        "/* go-mysql */ kill query 5",
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
        "SELECT killed FROM t",
        "/* SHOW MASTER STATUS */ DELETE FROM t",
        "",
        "/*" * 5000 + "master",
        " " * 50_000 + "master",
    ],
)
def test_not_looked_at(statement: str) -> None:
    assert not may_concern_binlogs(statement.encode())


@pytest.mark.parametrize("before", ["", " ", "\t", "\v", "\f", "\r\n", "(", "/**/", "#\n", "-- \n"])
def test_looked_at_by_its_first_word(before: str) -> None:
    words = "SELECT SHOW SET CREATE ALTER DROP FLUSH PURGE EXPLAIN DESCRIBE DESC GRANT REVOKE WITH"
    for word in (*words.split(), "TABLE", "START", "STOP", "DO", "KILL"):
        for told in (word, word.lower()):
            assert may_concern_binlogs(f"{before}{told} master".encode()), told


PLACE = GtidPositionAt(FilePosition("orders.000001", 256))
VALUES: dict[Asked, str | None] = {
    BinlogFact.CHECKSUM: "CRC32",
    BinlogFact.GTID_POSITION: "0-1-7",
    BinlogFact.GTID_EXECUTED: "u:1-7",
    BinlogFact.GTID_PURGED: "",
    BinlogFact.SEMI_SYNC: "OFF",
    ReplicaVariable("master_binlog_checksum"): "it's \\ here",
    ReplicaVariable("slave_uuid"): None,
    PLACE: "0-1-3",
}


@pytest.mark.parametrize(
    "statement, expected",
    [
        (
            "SELECT @@GLOBAL.binlog_checksum",
            "SELECT 'CRC32' AS `@@GLOBAL.binlog_checksum`",
        ),
        (
            "SELECT @master_binlog_checksum",
            "SELECT _utf8mb4 0x69742773205c2068657265 AS `@master_binlog_checksum`",
        ),
        ("SELECT @slave_uuid u, 1", "SELECT NULL u, 1"),
        ("SELECT @@global.gtid_binlog_pos AS pos", "SELECT '0-1-7' AS pos"),
        (
            "select @@server_id, concat(@@gtid_binlog_pos, '`'), @@version",
            "select @@server_id, concat('0-1-7', '`') AS `concat(@@gtid_binlog_pos, '``')`, @@version",
        ),
        (
            "SELECT @@global.rpl_semi_sync_master_enabled",
            "SELECT 0 AS `@@global.rpl_semi_sync_master_enabled`",
        ),
        (
            "SELECT binlog_gtid_pos( 'orders.000001' , \"256\" )",
            ("SELECT '0-1-3' AS `binlog_gtid_pos( 'orders.000001' , \"256\" )`"),
        ),
        (
            "SET STATEMENT max_statement_time=600 FOR SELECT BINLOG_GTID_POS('orders.000001', 256);",
            (
                "SET STATEMENT max_statement_time=600 FOR SELECT '0-1-3' AS "
                "`BINLOG_GTID_POS('orders.000001', 256)`;"
            ),
        ),
        ("SET @pos = @@global.gtid_binlog_pos", "SET @pos = '0-1-7'"),
        ("DO SLEEP(@@gtid_binlog_pos = '')", "DO SLEEP('0-1-7' = '')"),
        (
            "/* x */ SELECT 1 FROM t WHERE a = @@`gtid_binlog_pos` -- y",
            "/* x */ SELECT 1 FROM t WHERE a = '0-1-7' -- y",
        ),
    ],
)
def test_values_take_the_places_of_what_is_read(statement: str, expected: str) -> None:
    found = recognise(statement)
    assert isinstance(found, BinlogReads)
    assert found.with_values(VALUES) == expected
    assert found.with_values({}) is None
    assert may_concern_binlogs(statement.encode())


def test_what_a_mysql_has() -> None:
    text = (
        "SELECT @@GLOBAL.GTID_EXECUTED, @@gtid_purged, @@gtid_binlog_pos, binlog_gtid_pos('f', 4)"
    )
    found = recognise(text, Flavor.MYSQL)
    assert isinstance(found, BinlogReads)
    assert [place.what for place in found.places] == [
        BinlogFact.GTID_EXECUTED,
        BinlogFact.GTID_PURGED,
    ]
    shows = recognise("SHOW GLOBAL VARIABLES LIKE 'gtid%'", Flavor.MYSQL)
    assert isinstance(shows, Shows)
    assert shows.names == {"gtid_executed", "gtid_purged"}
    assert recognise("SHOW STATUS LIKE 'binlog_snapshot_%'", Flavor.MYSQL) is None


SEMI_SYNC = ("rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled")
VARIABLES_OF_BINLOGS = {
    *("binlog_checksum", "gtid_binlog_pos", "binlog_with_tables_info"),
    *SEMI_SYNC,
}


@pytest.mark.parametrize(
    "statement, names, is_exact",
    [
        ("SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'", {"binlog_checksum"}, True),
        ("SHOW GLOBAL VARIABLES LIKE 'binlog_format';", {"binlog_format"}, True),
        ("SHOW VARIABLES LIKE 'gtid\\_binlog\\_pos'", {"gtid_binlog_pos"}, True),
        ("SHOW VARIABLES LIKE 'binlog_with_tables_info'", {"binlog_with_tables_info"}, True),
        (
            "SHOW SESSION VARIABLES LIKE 'binlog%'",
            {"binlog_checksum", "binlog_with_tables_info"},
            False,
        ),
        ("SHOW VARIABLES", VARIABLES_OF_BINLOGS, False),
        (
            "SHOW VARIABLES WHERE Variable_name IN ('gtid_binlog_pos', 'x')",
            VARIABLES_OF_BINLOGS,
            False,
        ),
        ("SHOW STATUS LIKE 'binlog_snapshot_%'", set(SNAPSHOT), False),
        ("SHOW GLOBAL STATUS", set(SNAPSHOT), False),
    ],
)
def test_rows_of_names_and_values(statement: str, names: set[str], *, is_exact: bool) -> None:
    for variant in _variants(statement):
        found = recognise(variant)
        assert isinstance(found, Shows)
        condition = (
            "WHERE Variable_name IN ('gtid_binlog_pos', 'x')" if "WHERE" in statement else ""
        )
        is_all = not condition and "LIKE" not in statement
        assert found == Shows(variant, frozenset(names), is_exact, condition, is_all)
        assert may_concern_binlogs(variant.encode())


@pytest.mark.parametrize(
    "statement, is_query",
    [
        ("KILL 5", False),
        ("KILL CONNECTION 5", False),
        ("KILL QUERY 5", True),
        ("KILL HARD QUERY 5", True),
        ("KILL SOFT CONNECTION 5", False),
    ],
)
def test_kill(statement: str, *, is_query: bool) -> None:
    for variant in _variants(statement):
        assert recognise(variant) == Kill(variant, 5, is_query=is_query)
        assert may_concern_binlogs(variant.encode())


@pytest.mark.parametrize(
    "name, pattern, expected",
    [
        ("gtid_mode", "GTID_MODE", True),
        ("gtid_mode", "gtid%", True),
        ("gtid_mode", "gtid_mod_", True),
        ("gtid_mode", "gtid", False),
        ("gtid_mode", "gtid\\_mode", True),
        ("gtidxmode", "gtid\\_mode", False),
        ("gtid_mode", "", False),
        ("gtid.mode", "gtid.mode", True),
        ("gtidxmode", "gtid.mode", False),
    ],
)
def test_like(name: str, pattern: str, *, expected: bool) -> None:
    assert is_like(name, pattern) is expected


@pytest.mark.rule("003:option-global")
@pytest.mark.parametrize("flavor", [Flavor.MARIADB, Flavor.MYSQL])
def test_what_is_global_and_read_only(flavor: Flavor) -> None:
    for statement in (
        "SET GLOBAL binlog_with_tables_info = 1",
        "SET @a = 1, @@GLOBAL.Binlog_With_Tables_Info = OFF",
        "SET SESSION binlog_with_tables_info = DEFAULT",
        "SELECT 1, @@session.binlog_with_tables_info",
    ):
        # MySQL has no SET STATEMENT.
        variants = [one for one in _variants(statement) if "SET STATEMENT" not in one]
        for variant in _variants(statement) if flavor is Flavor.MARIADB else variants:
            assert may_concern_binlogs(variant.encode())
            with pytest.raises(StatementError) as caught:
                recognise(variant, flavor)
            assert caught.value.errno == 1238
    found = recognise("SELECT @@binlog_with_tables_info + @@global.binlog_with_tables_info", flavor)
    assert isinstance(found, BinlogReads)
    assert found.with_values({BinlogFact.TABLES_INFO: "ON"}) == (
        "SELECT 1 + 1 AS `@@binlog_with_tables_info + @@global.binlog_with_tables_info`"
    )
    assert recognise("SELECT binlog_with_tables_info FROM t", flavor) is None
    wants = recognise("SET @binlane_tables_info = 1")
    assert wants == SetVariables({"binlane_tables_info": "1"}, is_all=True)
    assert may_concern_binlogs(b"SET @binlane_tables_info = 1")
