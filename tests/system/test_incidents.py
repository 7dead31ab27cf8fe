"""What stops replicas is told until somebody has dealt with it, and how they go on is what the docs say."""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from binlane.binlogs.store.catalog import Catalog
from binlane.live.provision.private_server import PrivateServer
from tests.old_stores import without_incidents
from tests.serve_process import ADMIN, PASSWORD, ServeProcess, create_account, wait_until
from tests.servers import ServerFactory, connect, execute

HTTP = "[http]\nport = 0\n"
TABLE = "CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20))"
ROW = "INSERT INTO shop.t (v) VALUES ('x')"
# One table leaves, and another has its name: no single statement within the scope says both.
MOVE = (
    "DROP TABLE IF EXISTS crm.gone",
    "CREATE TABLE shop.other LIKE shop.t",
    "INSERT INTO shop.other (v) VALUES ('other')",
    "RENAME TABLE shop.t TO crm.gone, shop.other TO shop.t",
)
REASON = "inside and out of the scope"


@pytest.fixture(params=["mariadb", "mysql"])
def source(servers: ServerFactory, request: pytest.FixtureRequest) -> PrivateServer:
    server = servers.start_mysql("source") if request.param == "mysql" else servers.start("source")
    create_account(server)
    execute(server, "CREATE DATABASE shop", "CREATE DATABASE crm", TABLE)
    return server


@pytest.fixture
def serve(source: PrivateServer, tmp_path: Path) -> Iterator[ServeProcess]:
    with ServeProcess(tmp_path / "serve", source, extra=HTTP) as process:
        process.execute("CREATE BINLOG 'orders' LOG(shop)", "CREATE BINLOG 'all'")
        yield process


def is_mysql(server: PrivateServer) -> bool:
    return server.program.scheme == "mysql"


def metric(serve: ServeProcess, name: str) -> list[str]:
    lines = serve.get("/metrics")[1].splitlines()
    return [line.rpartition(" ")[2] for line in lines if line.startswith(f"binlane_{name}")]


def problem(serve: ServeProcess, name: str = "orders") -> str:
    """What the warnings of SHOW BINLOGS say of a binlog."""
    begin = f"binlog {name}: "
    texts = [row[2] for row in serve.execute("SHOW BINLOGS", "SHOW WARNINGS")]
    return "".join(text.removeprefix(begin) for text in texts if text.startswith(begin))


def have_incident(serve: ServeProcess) -> tuple[str, str]:
    """One INCIDENT in `orders`; its GTID and place, as SHOW BINLOG INCIDENTS has them."""
    execute(serve.source, *MOVE)
    serve.wait_until_complete("orders")
    serve.wait_until_complete("all")
    ((binlog, file, position, gtid, _, reason, count),) = serve.execute("SHOW BINLOG INCIDENTS")
    assert (binlog, count) == ("orders", 1)
    assert REASON in reason
    return gtid, f"{file}:{position}"


def check_is_told(serve: ServeProcess, gtid: str, place: str) -> None:
    """Everywhere where somebody looks."""
    told = f"replicas stop at an INCIDENT, {gtid} at {place}: "
    status, text = serve.get("/healthz")
    assert status == 503
    assert f"binlog orders: {told}" in text
    assert told in problem(serve)
    assert problem(serve, "all") == ""
    assert serve.execute("SHOW BINLOGS")[1][7] == "OPEN"
    page = serve.get("/")[1]
    assert "All is well" not in page
    assert '<h2 id="problems">1 problem</h2>' in page
    assert metric(serve, "incidents_unacknowledged{") == ["0", "1"]
    assert metric(serve, "ready") == ["0"]
    found = json.loads(serve.get("/api/binlogs")[1])[1]
    assert found["unacknowledged"] == 1
    assert found["first_incident"]["gtid"] == gtid
    ((name, at, system_gtid),) = serve.execute(
        "SELECT binlog, CONCAT(file, ':', position), gtid FROM system.binlog_incidents"
    )
    assert (name, at, system_gtid) == ("orders", place, gtid)


def is_told_alone(serve: ServeProcess) -> bool:
    """Whether all else is well."""
    (*others, last) = serve.get("/healthz")[1].splitlines()
    return not others and "replicas stop at" in last


def check_is_well(serve: ServeProcess) -> None:
    wait_until(lambda: serve.get("/healthz") == (200, "ok\n"))
    assert problem(serve) == ""
    assert metric(serve, "incidents_unacknowledged{") == ["0", "0"]
    assert "All is well" in serve.get("/")[1]


def test_an_incident_is_told_until_it_is_acknowledged(serve: ServeProcess) -> None:
    gtid, place = have_incident(serve)
    check_is_told(serve, gtid, place)
    assert metric(serve, 'incidents_total{binlog="orders"') == ["1"]
    serve.kill()
    serve.start()
    wait_until(lambda: is_told_alone(serve))
    check_is_told(serve, gtid, place)
    with pytest.raises(pymysql.MySQLError, match="no INCIDENT of binlog 'orders'"):
        serve.execute("ACKNOWLEDGE BINLOG INCIDENTS FOR 'orders' TO 'orders.000001:1'")
    execute(serve.source, "CREATE USER nobody@'%' IDENTIFIED BY 'n'")
    with serve.connect("nobody", "n") as session, session.cursor() as cursor:
        with pytest.raises(pymysql.MySQLError) as refused:
            cursor.execute("ACKNOWLEDGE BINLOG INCIDENTS FOR 'orders'")
        assert refused.value.args[0] == 1227
    check_is_told(serve, gtid, place)
    serve.execute(f"ACKNOWLEDGE BINLOG INCIDENTS FOR 'orders' TO '{gtid}'")
    check_is_well(serve)
    serve.kill()
    serve.start()
    check_is_well(serve)
    assert f"1 acknowledged, the last at {place}" in serve.log


def test_one_is_gone_with_its_file_and_with_its_binlog(serve: ServeProcess) -> None:
    have_incident(serve)
    serve.execute("FLUSH BINARY LOGS 'orders'", "PURGE BINARY LOGS TO 'orders.000002'")
    check_is_well(serve)
    execute(serve.source, *MOVE)
    serve.wait_until_complete("orders")
    assert serve.get("/healthz")[0] == 503
    serve.execute("DROP BINLOG 'orders'", "CREATE BINLOG 'orders' LOG(shop)")
    check_is_well(serve)


def test_one_of_an_older_binlane_is_found_in_its_files(serve: ServeProcess) -> None:
    gtid, place = have_incident(serve)
    assert serve.stop() == 0
    connection = sqlite3.connect(Catalog.path_in(serve.data_dir))
    with connection:
        without_incidents(connection)
        connection.execute("PRAGMA user_version = 6")
    connection.close()
    serve.start()
    wait_until(lambda: is_told_alone(serve))
    check_is_told(serve, gtid, place)
    assert serve.stop() == 0
    serve.start()
    wait_until(lambda: is_told_alone(serve))
    check_is_told(serve, gtid, place)


def status(replica: PrivateServer) -> dict[str, Any]:
    what = "REPLICA" if is_mysql(replica) else "SLAVE"
    with connect(replica, cursorclass=pymysql.cursors.DictCursor) as connection:
        cursor = connection.cursor()
        cursor.execute(f"SHOW {what} STATUS")
        found: Any = cursor.fetchone()
        return dict(found)


def follow(servers: ServerFactory, serve: ServeProcess, how: str) -> PrivateServer:
    """A replica of `orders` from its beginning, by `file` or by `gtid`."""
    if is_mysql(serve.source):
        replica = servers.start_mysql(how, "--server-id=40")
        begin = str(execute(serve.source, "SELECT @@gtid_executed")[0][0])
        by = "SOURCE_LOG_FILE='orders.000001', SOURCE_LOG_POS=4, SOURCE_AUTO_POSITION=0"
        execute(
            replica,
            "SET sql_log_bin = 0",
            "CREATE DATABASE shop",
            TABLE,
            *((f"SET GLOBAL gtid_purged = '{begin}'",) if how == "gtid" else ()),
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={serve.port}, "
            f"SOURCE_USER='{ADMIN}', SOURCE_PASSWORD='{PASSWORD}', SOURCE_SSL=0, "
            f"GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=1000, "
            f"{'SOURCE_AUTO_POSITION=1' if how == 'gtid' else by}",
            "START REPLICA",
        )
        return replica
    replica = servers.start(how, ("--server-id=40", "--gtid-strict-mode=ON"))
    begin = str(execute(serve.source, "SELECT @@gtid_binlog_pos")[0][0])
    by = "MASTER_LOG_FILE='orders.000001', MASTER_LOG_POS=4, MASTER_USE_GTID=no"
    execute(
        replica,
        "CREATE DATABASE shop",
        TABLE,
        f"SET GLOBAL gtid_slave_pos = '{begin}'",
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={serve.port}, "
        f"MASTER_USER='{ADMIN}', MASTER_PASSWORD='{PASSWORD}', MASTER_CONNECT_RETRY=1, "
        f"{'MASTER_USE_GTID=slave_pos' if how == 'gtid' else by}",
        "START SLAVE",
    )
    return replica


def skipping(replica: PrivateServer, how: str, gtid: str) -> tuple[str, ...]:
    """What the docs say, for one INCIDENT that has a GTID."""
    if not is_mysql(replica):
        if how == "gtid":
            return ("STOP SLAVE", f"SET GLOBAL gtid_slave_pos = '{gtid}'", "START SLAVE")
        return ("STOP SLAVE", "SET GLOBAL sql_slave_skip_counter = 1", "START SLAVE")
    return (
        "STOP REPLICA",
        f"SET gtid_next = '{gtid}'",
        "BEGIN",
        "COMMIT",
        "SET gtid_next = 'AUTOMATIC'",
        "START REPLICA",
    )


@pytest.mark.parametrize("how", ["gtid", "file"])
def test_a_replica_goes_on_behind_it_as_the_docs_say(
    serve: ServeProcess, servers: ServerFactory, how: str
) -> None:
    serve.execute("DROP BINLOG 'all'")
    replica = follow(servers, serve, how)
    execute(serve.source, ROW)
    wait_until(lambda: len(execute(replica, "SELECT * FROM shop.t")) == 1)
    execute(serve.source, *MOVE)
    serve.wait_until_complete("orders")
    ((_, _, _, gtid, *_),) = serve.execute("SHOW BINLOG INCIDENTS FOR 'orders'")
    errno = 13119 if is_mysql(replica) else 1590
    wait_until(lambda: bool(status(replica)["Last_SQL_Errno"]))
    assert status(replica)["Last_SQL_Errno"] == errno, status(replica)
    assert gtid in str(status(replica)["Last_SQL_Error"])
    # The table as it was at that GTID, without a word in the replica's own log.
    execute(
        replica,
        "SET sql_log_bin = 0",
        TABLE.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"),
        "DELETE FROM shop.t",
        "INSERT INTO shop.t VALUES (1, 'other')",
    )
    execute(replica, *skipping(replica, how, gtid))
    execute(serve.source, ROW)
    expected = execute(serve.source, "SELECT * FROM shop.t")
    wait_until(
        lambda: (
            execute(replica, "SELECT * FROM shop.t") == expected
            or bool(status(replica)["Last_SQL_Errno"])
        )
    )
    assert status(replica)["Last_SQL_Error"] == ""
    assert execute(replica, "SELECT * FROM shop.t") == expected
    serve.execute("ACKNOWLEDGE BINLOG INCIDENTS FOR 'orders'")
    assert serve.get("/healthz") == (200, "ok\n")


def behind_the_gap(
    replica: PrivateServer, how: str, missing: str, position: str
) -> tuple[str, ...]:
    """What the docs say, for one without a GTID, behind which the next file begins."""
    next_file = "orders.000002"
    if not is_mysql(replica):
        change = f"SET GLOBAL gtid_slave_pos = '{position}'"
        if how == "file":
            change = f"CHANGE MASTER TO MASTER_LOG_FILE='{next_file}', MASTER_LOG_POS=4"
        return ("STOP SLAVE", change, "START SLAVE")
    change = "CHANGE REPLICATION SOURCE TO"
    if how == "file":
        change = f"{change} SOURCE_LOG_FILE='{next_file}', SOURCE_LOG_POS=4"
        return ("STOP REPLICA", change, "START REPLICA")
    purged = f"SET GLOBAL gtid_purged = '+{missing}'"
    # The INCIDENT is in its relay log, which goes with this.
    return ("STOP REPLICA", purged, f"{change} SOURCE_AUTO_POSITION=1", "START REPLICA")


@pytest.mark.parametrize("how", ["gtid", "file"])
def test_a_replica_goes_on_behind_a_gap_as_the_docs_say(
    serve: ServeProcess, servers: ServerFactory, how: str
) -> None:
    source = serve.source
    done = "SELECT @@gtid_executed" if is_mysql(source) else "SELECT @@gtid_binlog_pos"
    serve.execute("DROP BINLOG 'all'")
    replica = follow(servers, serve, how)
    execute(source, ROW)
    wait_until(lambda: len(execute(replica, "SELECT * FROM shop.t")) == 1)
    serve.execute("STOP BINLOG 'orders'")
    before = str(execute(source, done)[0][0])
    execute(source, ROW, ROW)
    position = str(execute(source, done)[0][0])
    missing = ""
    if is_mysql(source):
        missing = str(execute(source, f"SELECT GTID_SUBTRACT('{position}', '{before}')")[0][0])
    serve.execute(f"START BINLOG 'orders' FROM '{position}'")
    wait_until(lambda: bool(status(replica)["Last_SQL_Errno"]))
    errno = 1782 if is_mysql(replica) else 1590
    assert status(replica)["Last_SQL_Errno"] == errno
    execute(
        replica,
        "SET sql_log_bin = 0",
        "INSERT INTO shop.t VALUES (2, 'x'), (3, 'x')",
    )
    execute(replica, *behind_the_gap(replica, how, missing, position))
    execute(source, ROW)
    expected = execute(source, "SELECT * FROM shop.t")
    wait_until(
        lambda: (
            execute(replica, "SELECT * FROM shop.t") == expected
            or bool(status(replica)["Last_SQL_Errno"])
        )
    )
    assert status(replica)["Last_SQL_Error"] == ""
    assert execute(replica, "SELECT * FROM shop.t") == expected
    ((_, file, at, gtid, *_),) = serve.execute("SHOW BINLOG INCIDENTS FOR 'orders'")
    assert gtid == ""
    serve.execute(f"ACKNOWLEDGE BINLOG INCIDENTS FOR 'orders' TO '{file}:{at}'")
    wait_until(lambda: serve.get("/healthz") == (200, "ok\n"))


def begin_dump(session: Any, file: str) -> None:
    """Ask for a binlog as a replica does that waits for more."""
    with session.cursor() as cursor:
        cursor.execute("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")
        cursor.execute("SET @mariadb_slave_capability = 4")
    session._execute_command(0x12, struct.pack("<IHI", 4, 0, 78) + file.encode())


def read_until(session: Any, text: bytes) -> None:
    """Read what a dump sends, up to a packet that holds something."""
    session._sock.settimeout(20)
    while text not in session._read_packet()._data:
        pass


def test_a_file_that_cannot_be_read_is_told_until_it_can(serve: ServeProcess) -> None:
    execute(serve.source, ROW)
    serve.execute("FLUSH BINARY LOGS 'all'")
    execute(serve.source, ROW)
    serve.wait_until_complete("all")
    path = serve.data_dir / "binlogs/all/all.000001"
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    wait_until(lambda: serve.get("/healthz") == (200, "ok\n"))
    with serve.connect() as session:
        begin_dump(session, "all.000001")
        with pytest.raises(pymysql.MySQLError, match="error reading log"):
            read_until(session, b"nothing of the kind")
    status, text = serve.get("/healthz")
    assert (status, text[:41]) == (503, "binlog all: replicas stop, since the file")
    assert "was closed with" in serve.get("/")[1]
    path.write_bytes(whole)
    with serve.connect() as session:
        begin_dump(session, "all.000001")
        read_until(session, b"all.000002")
        wait_until(lambda: serve.get("/healthz") == (200, "ok\n"))


def test_a_replica_that_is_refused_is_told_until_it_comes_again(serve: ServeProcess) -> None:
    wait_until(lambda: serve.get("/healthz") == (200, "ok\n"))
    with serve.connect() as session:
        begin_dump(session, "orders.000099")
        with pytest.raises(pymysql.MySQLError, match="Could not find"):
            read_until(session, b"nothing of the kind")
    told = "replica 78 of binlog orders stops: Could not find first log file"
    wait_until(lambda: told in serve.get("/")[1])
    assert "All is well" not in serve.get("/")[1]
    assert serve.get("/healthz") == (200, "ok\n")
    with serve.connect() as session:
        begin_dump(session, "orders.000001")
        read_until(session, b"orders.000001")
        wait_until(lambda: "All is well" in serve.get("/")[1])
