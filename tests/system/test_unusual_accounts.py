"""Accounts and readers that are seldom met.

Accounts without a name, with an @ in it, behind a proxy, in roles; replicas that ask for
semi-synchronous replication, and such as never read what they asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.packets.commands import BinlogDump, RegisterSlave
from binlane.log.codec.packets.flags import DumpFlag
from binlane.log.codec.packets.framing import frame
from tests.listening import ListeningPort
from tests.port_replicas import replica_status
from tests.raw_client import RawClient
from tests.serve_process import wait_until
from tests.servers import ServerFactory, connect, execute

PASSWORD: Final = "test-binlane"
SETTINGS: Final = "SET @mariadb_slave_capability = 4, @master_binlog_checksum = 'CRC32'"
ACK_MARK: Final = b"\xef"


@pytest.fixture(params=["mariadb", "mysql"], scope="module")
def source(request: pytest.FixtureRequest) -> PrivateServer:
    server: PrivateServer = request.getfixturevalue(f"{request.param}_server")
    execute(
        server,
        *("CREATE DATABASE shop", "CREATE DATABASE crm"),
        "CREATE TABLE shop.orders (a INT, b LONGBLOB)",
        # Nobody from here is taken for root's place by an account without a name.
        *(
            "CREATE USER IF NOT EXISTS root@'127.0.0.1'",
            "GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION",
        ),
    )
    return server


@pytest.fixture
def port(source: PrivateServer, tmp_path: Path) -> Iterator[ListeningPort]:
    with ListeningPort(source, tmp_path / "data") as listening:
        listening.execute("CREATE BINLOG 'orders' LOG(shop)", "CREATE BINLOG 'people' LOG(crm)")
        yield listening


@contextmanager
def account(source: PrivateServer, name: str, how: str = "") -> Iterator[str]:
    """An account for the time of a block."""
    execute(source, f"CREATE USER {name} IDENTIFIED {how or 'BY'} '{PASSWORD}'")
    try:
        yield name
    finally:
        execute(source, f"DROP USER {name}")


def seen(port: ListeningPort, user: str) -> list[str] | int:
    """The binlogs that a login sees, or the error that it gets."""
    try:
        with port.connect(user=user, password=PASSWORD) as session:
            return seen_in(session)
    except pymysql.MySQLError as error:
        return int(error.args[0])


def seen_in(session: Connection[Cursor]) -> list[str]:
    with session.cursor() as cursor:
        cursor.execute("SHOW BINLOGS")
        return [str(row[0]) for row in cursor.fetchall()]


def dump_error(session: Any, file: str) -> int:
    """The error of a dump; 0 if it begins."""
    with session.cursor() as cursor:
        cursor.execute(SETTINGS)
    dump = BinlogDump(position=4, flags=DumpFlag.NON_BLOCK, server_id=70, file=file)
    session._execute_command(dump.encode()[0], dump.encode()[1:])
    try:
        while not session._read_packet().is_eof_packet():
            pass
    except pymysql.MySQLError as error:
        return int(error.args[0])
    return 0


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("''@'%'", "anybody"),
        ("''@'127.0.0.1'", "o'ther"),
        ("'@'@'%'", "@"),
        ("'a@b'@'%'", "a@b"),
        ("'@%'@'127.0.0.1'", "@%"),
        ("'%'@'%'", "%"),
        ("'a`b''c\\\\'@'%'", "a`b'c\\"),
    ],
    ids=["nobody", "nobody here", "at", "with at", "at and percent", "percent", "quotes"],
)
def test_names_that_are_read_in_two_ways(
    source: PrivateServer, port: ListeningPort, name: str, user: str
) -> None:
    with account(source, name):
        assert seen(port, user) == 1227
        port.execute(f"GRANT READ ON BINLOG 'orders' TO {name}")
        assert seen(port, user) == ["orders"]
        with port.connect(user=user, password=PASSWORD) as session:
            assert dump_error(session, "people.000001")
        with port.connect(user=user, password=PASSWORD) as session:
            assert dump_error(session, "orders.000001") == 0
        ((shown,),) = port.execute("SHOW GRANTS ON BINLOG 'orders'")
        # What is shown is a statement that says the same.
        port.execute(f"REVOKE READ ON BINLOG 'orders' FROM {name}", str(shown))
        assert seen(port, user) == ["orders"]
    with account(source, name):  # another one of that name
        assert seen(port, user) == 1227
    assert port.execute("SHOW GRANTS ON BINLOG") == ()


def test_who_logs_in_without_a_name_is_not_who_he_says(
    source: PrivateServer, port: ListeningPort
) -> None:
    with account(source, "'team'@'%'"):
        port.execute("GRANT READ ON BINLOG 'people' TO 'team'@'%'")
        assert seen(port, "team") == ["people"]
        # The server takes the host that says more first: that is no login of `team`.
        with account(source, "''@'127.0.0.1'"):
            assert seen(port, "team") == 1227
            port.execute("GRANT READ ON BINLOG 'orders' TO ''@'127.0.0.1'")
            assert seen(port, "team") == ["orders"]
        assert seen(port, "team") == ["people"]


def test_roles_by_names_with_signs(source: PrivateServer, port: ListeningPort) -> None:
    role = "'r@x''y'" + ("" if source.program.scheme == "mariadb" else "@'%'")
    execute(source, f"CREATE ROLE {role}")
    try:
        with account(source, "'team'@'%'"):
            execute(source, f"GRANT {role} TO 'team'@'%'")
            port.execute(f"GRANT READ ON BINLOG 'orders' TO {role}")
            with (
                port.connect(user="team", password=PASSWORD) as session,
                session.cursor() as cursor,
            ):
                with pytest.raises(pymysql.MySQLError):
                    seen_in(session)
                cursor.execute(f"SET ROLE {role}")
                assert seen_in(session) == ["orders"]
                cursor.execute("SET ROLE NONE")
                with pytest.raises(pymysql.MySQLError):
                    seen_in(session)
            default = "TO" if source.program.scheme == "mysql" else "FOR"
            execute(source, f"SET DEFAULT ROLE {role} {default} 'team'@'%'")
            assert seen(port, "team") == ["orders"]
    finally:
        execute(source, f"DROP ROLE {role}")


def test_a_proxy_is_whom_it_stands_for(source: PrivateServer, port: ListeningPort) -> None:
    """MySQL maps accounts by itself; of MariaDB's plugins those do that ask other services."""
    if source.program.scheme == "mariadb":
        pytest.skip("no plugin of this MariaDB maps accounts")
    on = "SET GLOBAL check_proxy_users = {0}, GLOBAL sha256_password_proxy_users = {0}"
    execute(source, on.format("ON"))
    try:
        with (
            account(source, "'crew'@'%'"),
            account(source, "'team'@'%'", "WITH sha256_password BY"),
        ):
            execute(source, "GRANT PROXY ON 'crew'@'%' TO 'team'@'%'")
            ways: dict[str, Any] = {"user": "team", "password": PASSWORD}
            with port.connect(**ways) as session:
                with session.cursor() as cursor:
                    cursor.execute("SELECT CURRENT_USER(), @@proxy_user")
                    assert cursor.fetchall() == (("crew@%", "'team'@'%'"),)
                with pytest.raises(pymysql.MySQLError):
                    seen_in(session)
                # What counts is what the server lets the session do, not who began it.
                port.execute("GRANT READ ON BINLOG 'people' TO team")
                with pytest.raises(pymysql.MySQLError):
                    seen_in(session)
                port.execute("GRANT READ ON BINLOG 'orders' TO crew")
                assert seen_in(session) == ["orders"]
    finally:
        execute(source, on.format("OFF"))


def test_replicas_with_semi_synchronous_replication_go_on_without(
    source: PrivateServer, port: ListeningPort, servers: ServerFactory
) -> None:
    """That of MySQL is in test_mysql_replicas, since it needs plugins."""
    if source.program.scheme == "mysql":
        pytest.skip("it is there")
    execute(source, "SET GLOBAL rpl_semi_sync_master_enabled = ON")
    replica = servers.start("semi", ("--server-id=8", "--rpl-semi-sync-slave-enabled=ON"))
    execute(replica, "CREATE DATABASE shop", "CREATE TABLE shop.orders (a INT, b LONGBLOB)")
    execute(
        replica,
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port.port}, MASTER_USER='root',"
        " MASTER_LOG_FILE='orders.000001', MASTER_LOG_POS=4",
        "START SLAVE",
    )
    port.execute("INSERT INTO shop.orders VALUES (8, NULL)")
    wait_until(lambda: execute(replica, "SELECT a FROM shop.orders") == ((8,),))
    status = replica_status(replica)
    assert (status["Last_IO_Error"], status["Last_SQL_Error"]) == ("", "")
    assert dict(execute(replica, "SHOW STATUS LIKE 'Rpl_semi_sync_slave_status'")) == {
        "Rpl_semi_sync_slave_status": "OFF"
    }
    execute(replica, "STOP SLAVE")


def test_who_acknowledges_events_though_nobody_asked_gets_them_plain(
    source: PrivateServer, port: ListeningPort
) -> None:
    (before,) = (row[2] for row in port.execute("SHOW BINLOGS") if row[0] == "orders")
    port.execute("INSERT INTO shop.orders VALUES (9, NULL)")
    wait_until(lambda: port.execute("SHOW BINLOGS")[0][2] > before)
    ack = frame(ACK_MARK + (4).to_bytes(8, "little") + b"orders.000001", 0)
    events: list[list[bytes]] = []
    for stray in (b"", ack * 3):
        with RawClient(port.port) as client:
            client.query(f"{SETTINGS}, @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1")
            client.say(RegisterSlave(server_id=9, host="", user="", password="").encode())
            dump = BinlogDump(
                position=4, flags=DumpFlag.NON_BLOCK, server_id=9, file="orders.000001"
            )
            packets = list(client.dump(dump.encode(), stray))
            events.append([packet for packet in packets if packet[:1] == b"\0"])
            # No mark and no flag stand before an event, as they do for who is waited for: its length
            # is where it is without them.
            assert all(
                int.from_bytes(packet[10:14], "little") == len(packet) - 1 for packet in events[-1]
            )
    assert len(events[0]) > 3
    assert len(events[0]) == len(events[1])
    assert seen(port, "root") == 1045  # a wrong password; logins work
    with port.connect() as session:
        assert seen_in(session) == ["orders", "people"]


def test_dumps_that_nobody_reads(source: PrivateServer, port: ListeningPort) -> None:
    """They hold what their sockets hold; others get all, and may end them."""
    with ExitStack() as stack:
        stuck = []
        for number in range(20):
            client = stack.enter_context(RawClient(port.port))
            client.query(SETTINGS)
            dump = BinlogDump(
                position=4, flags=DumpFlag(0), server_id=100 + number, file="orders.000001"
            )
            client.send(frame(dump.encode(), 0))
            stuck.append(client)
        before = _memory_mb()
        with connect(source) as session, session.cursor() as cursor:
            for _ in range(8):
                cursor.execute("INSERT INTO shop.orders VALUES (1, REPEAT('x', 3000000))")
        with RawClient(port.port) as reader:
            reader.query(SETTINGS)

            def has_all() -> bool:
                rows = reader.rows("SHOW BINLOGS")
                return int(next(row for row in rows if row[0] == "orders")[2] or 0) > 24_000_000

            wait_until(has_all)
            dump = BinlogDump(
                position=4, flags=DumpFlag.NON_BLOCK, server_id=99, file="orders.000001"
            )
            assert sum(map(len, reader.dump(dump.encode()))) > 24_000_000
        # 20 of them that held the log would have half a gigabyte.
        assert _memory_mb() < before + 200
        ids = [client.thread_id for client in stuck]
        for thread_id in ids[:3]:
            with suppress(pymysql.MySQLError):
                execute(source, f"KILL {thread_id}")
        for client in stuck[3:]:
            client.reset()
        with port.connect() as session:
            assert seen_in(session) == ["orders", "people"]


def _memory_mb() -> int:
    """Of this process, which is the port's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS:"))
    return int(line.split()[1]) // 1024
