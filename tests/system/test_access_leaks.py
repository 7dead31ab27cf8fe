"""Every command and every dump as an account that was granted one binlog: no byte of the others."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import PrivateServer
from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.recording_proxy import RecordingProxy
from tests.serve_process import ServeProcess
from tests.servers import ServerFactory, execute

PASSWORD: Final = "test-binlane"
TEAM: Final = "o'team`%"
HIDDEN: Final = "hidden_" + "p" * 57
"""As long as a name may be."""
SECRETS: Final = (HIDDEN[:20], "hush_db", "quiet_tbl", "other_team")
TYPED: Final = "wrong__" + "p" * 57
"""A name of that length that no binlog has."""
SYSTEM: Final = (
    *("binlogs", "binlog_log_databases", "binlog_log_tables", "binlog_ignore_databases"),
    *("binlog_ignore_tables", "binlog_scope_history", "binlog_replicas", "binlog_grants"),
)
STATEMENTS: Final = (
    *("SHOW BINLOGS", "SHOW MASTER STATUS", "SHOW BINARY LOG STATUS", "SHOW BINLOG STATUS"),
    *("SHOW BINARY LOGS", "SHOW MASTER LOGS", "SHOW BINLOG EVENTS", "SHOW BINLOG EVENTS LIMIT 2"),
    *("SHOW BINLOG EVENTS IN 'orders.000001'", "SHOW BINLOG EVENTS IN 'orders.000009'"),
    *("SHOW SLAVE HOSTS", "SHOW REPLICA HOSTS", "SHOW REPLICAS", "SHOW SLAVE STATUS"),
    *("SHOW GRANTS ON BINLOG", "SHOW GRANTS ON BINLOG 'orders'", "SHOW GRANTS"),
    *("SHOW GRANTS ON BINLOG FOR other_team", "SHOW MASTER STATUS 'orders'"),
    *("SHOW MASTER STATUS 'order'", "SHOW MASTER STATUS 'hidden'", "SHOW BINARY LOGS FOR 'people'"),
    *("SHOW BINARY LOG STATUS 'nothing'", "SHOW BINLOG STATUS ''", "SHOW BINLOG STATUS '%'"),
    *(f"SELECT * FROM system.{table}" for table in SYSTEM),
    *(f"DESCRIBE system.{table}" for table in SYSTEM),
    "SHOW TABLES FROM system",
    "SELECT * FROM system.binlogs b LEFT JOIN system.binlog_scope_history h USING (log_id)",
    "SELECT COUNT(*), GROUP_CONCAT(name) FROM system.binlog_scope_history",
    "SELECT nothing FROM system.binlogs",
    *("EXPLAIN BINLOG INSERT INTO shop.orders VALUES (1, 1)", "EXPLAIN BINLOG COMMIT"),
    "EXPLAIN BINLOG UPDATE shop.orders o, shop.items i SET o.b = 1, i.b = 1",
    "EXPLAIN BINLOG DROP TABLE shop.orders, shop.items",
    "EXPLAIN BINLOG CREATE BINLOG 'x'",
    *("SELECT @@gtid_binlog_pos", "SELECT @@GLOBAL.gtid_executed", "SELECT @@GLOBAL.gtid_purged"),
    *("SHOW VARIABLES LIKE 'gtid_binlog_pos'", "SHOW VARIABLES LIKE '%binlog%'"),
    *("SELECT BINLOG_GTID_POS('orders.000001', 4)", "SELECT BINLOG_GTID_POS('people.000001', 4)"),
    *("FLUSH BINARY LOGS", "FLUSH BINARY LOGS 'orders'", "FLUSH BINARY LOGS 'people'"),
    *("PURGE BINARY LOGS BEFORE NOW()", "PURGE BINARY LOGS TO 'orders.000009'"),
    *("PURGE BINARY LOGS FOR 'people' BEFORE NOW()", "CREATE BINLOG 'orders'", "CREATE BINLOG 'x'"),
    *("ALTER BINLOG 'x' LOG ALL", "ALTER BINLOG IF EXISTS 'x' LOG ALL", "DROP BINLOG 'x'"),
    *("DROP BINLOG IF EXISTS 'x'", "START BINLOG 'x'", "STOP BINLOG 'x'"),
    *("GRANT READ ON BINLOG 'x' TO CURRENT_USER", "REVOKE READ ON BINLOG 'x' FROM CURRENT_USER"),
    *("GRANT READ ON BINLOG 'orders' TO other_team", "SELECT 1; ALTER BINLOG 'x' LOG ALL"),
    *("SHOW PROCESSLIST", "SHOW VARIABLES", "SHOW STATUS", "SHOW DATABASES", "SHOW BINLOG"),
    "SELECT * FROM information_schema.processlist",
    # What some other binlog cannot hold.
    "UPDATE shop.orders o, shop.items i SET o.b = 1, i.b = 1",
    "SHOW WARNINGS",
    "UPDATE shop.orders o, shop.items i SET o.b = 1, i.b = 1; SELECT 1",
    *("BEGIN", "INSERT INTO shop.orders VALUES (7, 7)", "INSERT INTO shop.items VALUES (7, 7)"),
    *("SHOW WARNINGS", "SHOW COUNT(*) WARNINGS", "COMMIT", "SET binlog_format = 'STATEMENT'"),
    "INSERT INTO shop.orders SELECT a + 10, b FROM shop.items",
    *("SHOW WARNINGS", "SHOW ERRORS", "SELECT @@binlog_format", "SET binlog_format = DEFAULT"),
    *(
        "KILL 1",
        "SELECT 1; SHOW BINLOGS; SHOW MASTER STATUS",
        "SET STATEMENT max_statement_time=1 FOR SHOW BINLOGS",
    ),
)
NAMING: Final = (
    *("SHOW MASTER STATUS '{}'", "SHOW BINARY LOG STATUS '{}'", "SHOW BINARY LOGS FOR '{}'"),
    *("SHOW BINLOG EVENTS IN '{}.000001'", "FLUSH BINARY LOGS '{}'", "ALTER BINLOG '{}' LOG ALL"),
    *("PURGE BINARY LOGS TO '{}.000001'", "PURGE BINARY LOGS FOR '{}' BEFORE NOW()"),
    *("DROP BINLOG '{}'", "DROP BINLOG IF EXISTS '{}'", "START BINLOG '{}'", "STOP BINLOG '{}'"),
    *("CREATE BINLOG '{}'", "CREATE BINLOG IF NOT EXISTS '{}'", "SHOW GRANTS ON BINLOG '{}'"),
    *("GRANT READ ON BINLOG '{}' TO CURRENT_USER", "REVOKE READ ON BINLOG '{}' FROM CURRENT_USER"),
    *("SELECT BINLOG_GTID_POS('{}.000001', 4)", "SELECT 1; CREATE BINLOG '{}'"),
    "SELECT * FROM system.binlogs WHERE name = '{}'",
    "EXPLAIN BINLOG ALTER BINLOG '{}' LOG ALL",
)
NON_BLOCK: Final = 1
BY_GTID: Final = 4
DUMP, DUMP_GTID, REGISTER = 0x12, 0x1E, 0x15


@dataclass(frozen=True, slots=True)
class Scene:
    """One flavor's server, port and proxy.

    Attributes:
        serve: The port.
        proxy: In front of it.
        flavor: Of the source.
        position: Where the hidden binlog ends.
    """

    serve: ServeProcess
    proxy: RecordingProxy
    flavor: str
    position: int

    def connect(self, **options: Any) -> Connection[Cursor]:
        """The team's session, through the proxy."""
        usual = {
            "host": "127.0.0.1",
            "port": self.proxy.port,
            "user": TEAM,
            "password": PASSWORD,
            "autocommit": True,
            "ssl_disabled": True,
            "charset": "utf8mb4",
            "client_flag": pymysql.constants.CLIENT.MULTI_STATEMENTS,
        }
        return pymysql.connect(**{**usual, **options})


def account(user: str) -> str:
    return f"`{user.replace('`', '``')}`@'%'"


@pytest.fixture(params=["mariadb", "mysql"], scope="module")
def scene(
    request: pytest.FixtureRequest,
    server_directory: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Scene]:
    with ExitStack() as stack:
        servers = ServerFactory(LENT, server_directory, f"leaks-{request.param}", stack)
        is_mysql = request.param == "mysql"
        source = servers.start_mysql("source") if is_mysql else servers.start("source")
        yield from scene_before(source, request.param, tmp_path_factory.mktemp("leaks"))


def scene_before(source: PrivateServer, flavor: str, directory: Path) -> Iterator[Scene]:
    execute(
        source,
        *("CREATE DATABASE shop", "CREATE DATABASE hush_db"),
        "CREATE TABLE shop.orders (a INT PRIMARY KEY, b INT)",
        "CREATE TABLE shop.items (a INT PRIMARY KEY, b INT)",
        "CREATE TABLE hush_db.quiet_tbl (a INT PRIMARY KEY, b LONGTEXT)",
        *(
            f"CREATE USER {account(each)} IDENTIFIED BY '{PASSWORD}'"
            for each in (TEAM, "other_team")
        ),
        f"GRANT SELECT, INSERT, UPDATE, DELETE, TRIGGER ON shop.* TO {account(TEAM)}",
    )
    with judged(directory / "serve", source) as serve:
        serve.execute_as_root(
            "CREATE BINLOG 'orders' LOG(shop)",
            f"CREATE BINLOG '{HIDDEN}' LOG(hush_db, shop.orders)",
            f"GRANT READ ON BINLOG 'orders' TO {account(TEAM)}",
            f"GRANT READ ON BINLOG '{HIDDEN}' TO other_team",
            "INSERT INTO shop.orders VALUES (1, 1)",
            "INSERT INTO shop.items VALUES (1, 1)",
            "INSERT INTO hush_db.quiet_tbl VALUES (1, REPEAT('x', 87123))",
        )
        serve.wait_until_complete(HIDDEN)
        ((_, position, *_),) = serve.execute_as_root(f"SHOW BINLOG STATUS '{HIDDEN}'")
        with RecordingProxy(serve.port) as proxy:
            yield Scene(serve, proxy, flavor, position)


def run(connection: Connection[Cursor], statement: str) -> str:
    """What a client gets to know of a statement."""
    told: list[str] = []
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            told.append(repr(cursor.fetchall()))
            while cursor.nextset():
                told.append(repr(cursor.fetchall()))
    except pymysql.MySQLError as error:
        told.append(repr(error.args))
        # Further results, if the error is of one of several statements.
    return "\n".join(told)


def assert_silent(scene: Scene, told: bytes, what: str) -> None:
    lowered = told.lower()
    for secret in (*SECRETS, str(scene.position)):
        if secret in what:
            continue  # errors repeat it
        found = lowered.find(secret.lower().encode())
        assert found < 0, (what, secret, told[max(0, found - 80) : found + 80])


def test_no_statement_tells_of_other_binlogs(scene: Scene) -> None:
    with scene.connect() as connection:
        for statement in STATEMENTS:
            scene.proxy.take()
            run(connection, statement)
            told = scene.proxy.take()
            assert told, statement
            assert_silent(scene, told, statement)
        assert "orders" in run(connection, "SHOW BINLOGS")
        assert_silent(scene, scene.proxy.take(), "the end")


def test_no_prepared_statement_tells_of_other_binlogs(scene: Scene) -> None:
    with scene.connect() as connection:
        for statement in STATEMENTS:
            raw: Any = connection
            scene.proxy.take()
            raw._execute_command(0x16, statement)
            packet = raw._read_packet
            try:
                head = packet()
            except pymysql.MySQLError:
                assert_silent(scene, scene.proxy.take(), statement)
                continue
            statement_id, columns, parameters = struct.unpack_from("<IHH", head.get_all_data(), 1)
            for count in (parameters, columns):
                for _ in range(count + bool(count)):
                    packet()
            assert not parameters
            raw._execute_command(0x17, struct.pack("<IBI", statement_id, 0, 1))
            try:
                raw._result = pymysql.connections.MySQLResult(raw)
                first = packet()
                if not first.is_ok_packet():
                    for _ in range(2):
                        while not packet().is_eof_packet():
                            pass
            except pymysql.MySQLError:
                pass
            assert_silent(scene, scene.proxy.take(), statement)


def test_a_name_that_it_may_not_see_is_as_one_that_no_binlog_has(scene: Scene) -> None:
    with scene.connect() as connection:
        for statement in NAMING:
            hidden, typed = (run(connection, statement.format(name)) for name in (HIDDEN, TYPED))
            assert hidden.replace(HIDDEN, TYPED) == typed, statement
            if not statement.startswith("SELECT"):
                assert re.search(r"\((1|1220|1227|1064|1305),", hidden), (statement, hidden)


def dump(connection: Connection[Cursor], command: int, payload: bytes) -> str:
    """Run a dump to its end; its error, or nothing."""
    raw: Any = connection
    raw._execute_command(command, payload)
    try:
        while not raw._read_packet().is_eof_packet():
            pass
    except pymysql.MySQLError as error:
        return repr(error.args)
    return ""


def by_file(file: str, position: int = 4, flags: int = NON_BLOCK) -> bytes:
    return struct.pack("<IHI", position, flags, 77) + file.encode()


def by_gtid(file: str, gtids: bytes = struct.pack("<Q", 0), flags: int = NON_BLOCK) -> bytes:
    name = file.encode()
    return (
        struct.pack("<HII", flags | BY_GTID, 77, len(name))
        + name
        + struct.pack("<QI", 4, len(gtids))
        + gtids
    )


def test_no_dump_gives_a_byte_of_other_binlogs(scene: Scene) -> None:
    settings = ["SET @master_binlog_checksum = 'CRC32', @mariadb_slave_capability = 4"]
    by_connect_state = [*settings, "SET @slave_connect_state = ''"]
    register = struct.pack("<I", 77) + b"\0\0\0" + struct.pack("<HII", 0, 0, 0)
    attempts: list[tuple[list[str], int, bytes, bool]] = [
        (settings, DUMP, by_file("orders.000001"), True),
        (settings, DUMP, by_file(""), scene.flavor == "mariadb"),
        (settings, DUMP, by_file("orders.000001", 5), False),
        (settings, DUMP, by_file("orders.000001", 1 << 30), False),
        (settings, DUMP, by_file("orders.000009"), False),
        (settings, DUMP, by_file(f"{TYPED}.000001"), False),
        (settings, DUMP, by_file("../orders/orders.000001"), False),
        (settings, DUMP, by_file("orders"), False),
    ]
    if scene.flavor == "mariadb":
        attempts += [
            (by_connect_state, DUMP, by_file(""), False),
            (by_connect_state, DUMP, by_file("whatever.000007"), False),
            ([*settings, "SET @slave_connect_state = '0-1-999999'"], DUMP, by_file(""), False),
            ([*settings, "SET @slave_connect_state = 'x'"], DUMP, by_file(""), False),
        ]
    else:
        attempts += [
            (settings, DUMP_GTID, by_gtid(""), False),
            (settings, DUMP_GTID, by_gtid("orders.000001"), False),
            (settings, DUMP_GTID, by_gtid(f"{TYPED}.000001"), False),
        ]
    for number, (before, command, payload, is_served) in enumerate(attempts):
        scene.proxy.take()
        with scene.connect() as connection:
            for statement in before:
                run(connection, statement)
            raw: Any = connection
            raw._execute_command(REGISTER, register)
            assert raw._read_packet().is_ok_packet()
            error = dump(connection, command, payload)
            if is_served:
                assert not error, (number, error)
        told = scene.proxy.take()
        assert_silent(scene, told, f"dump {number}")
        assert told


def test_dumps_of_a_binlog_that_it_may_not_see_are_as_of_none(scene: Scene) -> None:
    for make in (by_file, by_gtid) if scene.flavor == "mysql" else (by_file,):
        errors = []
        for name in (HIDDEN, TYPED):
            with scene.connect() as connection:
                command = DUMP if make is by_file else DUMP_GTID
                errors.append(dump(connection, command, make(f"{name}.000001")))
        assert errors[0].replace(HIDDEN, TYPED) == errors[1]
        assert errors[0]
