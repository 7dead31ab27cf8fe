"""A MySQL replica by GTID has all that the source has done, whatever is killed meanwhile."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import pymysql
import pytest

from binlane.live.provision.private_server import PrivateServer
from binlane.positions import GtidSet
from tests.serve_process import ADMIN, PASSWORD, ServeProcess, create_account, wait_until
from tests.servers import ServerFactory, connect, execute

SMALL_FILES = '[binlog]\nmax_binlog_size = "16K"\n'
KILLS = 6
ORDERS = "shop.orders"


def _write(source: PrivateServer, ended: threading.Event) -> None:
    """Transactions in and out of the scope, two thirds of them out, some with tags."""
    numbers = random.Random(7)
    with connect(source) as connection, connection.cursor() as cursor:
        while not ended.is_set():
            tag = numbers.choice(["AUTOMATIC", "AUTOMATIC", "AUTOMATIC:night"])
            cursor.execute(f"SET SESSION gtid_next = '{tag}'")
            table = numbers.choice([ORDERS, "crm.person", "crm.person"])
            cursor.execute(f"INSERT INTO {table} VALUES (NULL, REPEAT('x', 100))")
            if not numbers.randrange(20):
                time.sleep(0.02)


def _status(replica: PrivateServer) -> dict[str, Any]:
    with connect(replica, cursorclass=pymysql.cursors.DictCursor) as connection:
        cursor = connection.cursor()
        cursor.execute("SHOW REPLICA STATUS")
        return dict(cursor.fetchone() or {})


def _done(server: PrivateServer) -> GtidSet:
    return GtidSet.parse(execute(server, "SELECT @@GLOBAL.gtid_executed")[0][0])


@pytest.mark.slow
def test_binlane_and_the_replica_are_killed(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start_mysql("source")
    create_account(source)
    columns = "(id INT PRIMARY KEY AUTO_INCREMENT, note VARCHAR(200))"
    execute(
        source,
        *("CREATE DATABASE shop", "CREATE DATABASE crm", f"CREATE TABLE crm.person {columns}"),
    )
    replica = servers.start_mysql("replica", "--server-id=20")
    with ServeProcess(tmp_path / "serve", source, extra=SMALL_FILES) as serve:
        serve.execute_as_root("CREATE BINLOG 'orders' LOG(shop)")
        execute(source, f"CREATE TABLE {ORDERS} {columns}")
        ((purged,),) = serve.execute_as_root("SELECT @@GLOBAL.gtid_purged")
        execute(
            replica,
            "SET GLOBAL super_read_only = 0",
            f"SET GLOBAL gtid_purged = '{purged}'",
            "SET sql_log_bin = 0",
            "CREATE DATABASE shop",
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={serve.port}, "
            f"SOURCE_USER='{ADMIN}', SOURCE_PASSWORD='{PASSWORD}', SOURCE_SSL=0, "
            "GET_SOURCE_PUBLIC_KEY=1, SOURCE_HEARTBEAT_PERIOD=0.5, SOURCE_CONNECT_RETRY=1, "
            "SOURCE_RETRY_COUNT=1000, SOURCE_AUTO_POSITION=1",
            "START REPLICA",
        )
        ended = threading.Event()
        writer = threading.Thread(target=_write, args=(source, ended))
        writer.start()
        try:
            for number in range(KILLS):
                time.sleep(1.5)
                if number % 3 == 2:
                    replica.kill()
                    replica.restart()
                    execute(replica, "START REPLICA")
                else:
                    serve.kill()
                    serve.start()
        finally:
            ended.set()
            writer.join()

        def is_equal() -> bool:
            status = _status(replica)
            assert not status["Last_SQL_Errno"], status["Last_SQL_Error"]
            assert not status["Last_IO_Errno"] or "connect" in status["Last_IO_Error"], status
            return _done(replica) == _done(source)

        wait_until(is_equal, 120)
        checksum = f"CHECKSUM TABLE {ORDERS}"
        assert execute(replica, checksum) == execute(source, checksum)
        assert execute(replica, "SHOW DATABASES LIKE 'crm'") == ()
        # What was made for the replica stands in no file.
        held = GtidSet.parse(",".join(serve.gtids("orders")))
        assert _done(source).subtract(held)
