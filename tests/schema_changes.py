"""A table that is written all the time while its schema is changed online, with a replica of its binlog."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import (
    PrivateServer,
)
from tests.judged_port import set_up_source
from tests.lent_servers import LENT
from tests.serve_process import ServeProcess, wait_until
from tests.servers import execute

ALTERED: Final = "ADD COLUMN extra INT NOT NULL DEFAULT 7, MODIFY v VARCHAR(60)"
_COLUMNS: Final = "id, v, n, note"
_CHUNK: Final = 500
ORDERS: Final = (
    "CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40), "
    "n INT NOT NULL DEFAULT 0, note TEXT)"
)
SWAPPED: Final = (
    "CREATE TABLE shop._orders_new LIKE shop.orders",
    "ALTER TABLE shop._orders_new ADD COLUMN extra INT DEFAULT 7",
    (
        "CREATE TRIGGER shop.pt_osc_shop_orders_upd AFTER UPDATE ON shop.orders FOR EACH ROW REPLACE"
        " INTO shop._orders_new (id, state, total) VALUES (NEW.id, NEW.state, NEW.total)"
    ),
    "INSERT IGNORE INTO shop._orders_new (id, state, total) SELECT id, state, total FROM shop.orders",
    "UPDATE shop.orders SET total = 3 WHERE id = 1",
    "RENAME TABLE shop.orders TO shop._orders_old, shop._orders_new TO shop.orders",
    "DROP TABLE shop._orders_old",
    "UPDATE shop.orders SET state = 'sent' WHERE id = 1",
)
"""A schema change as pt-online-schema-change makes it of a table (id, state, total), and writers."""
_ROWS: Final = 3000
_WAIT_S: Final = 120.0
RESTARTING: Final = (0, 2003, 2013)
"""What a replica is told while `serve` is being restarted."""
_REPLICA: Final = ("--server-id=77", "--log-bin", "--log-slave-updates")


@dataclass
class Shop:
    """A source with `shop.orders`, a `serve` with binlog `orders` of it, and a replica of that binlog.

    Attributes:
        flavor: `mariadb` or `mysql`.
        source: The server.
        serve: What stands before it.
        replica: Follows the binlog by GTID.
        is_made_anew: True if the replica has rows from elsewhere, so that those of the binlog are not sent.
    """

    flavor: str
    source: PrivateServer
    serve: ServeProcess
    replica: PrivateServer
    is_made_anew: bool = False

    def incidents(self) -> tuple[tuple[Any, ...], ...]:
        """The INCIDENTs of the binlog."""
        return self.serve.execute_as_root("SHOW BINLOG INCIDENTS FOR 'orders'")

    def settle(self) -> None:
        """Wait until the replica has all that the binlog has, and the binlog all of the source.

        Raises:
            AssertionError: If the replica stops, or does not come so far.
        """
        if self.flavor == "mysql":
            self._settle_mysql()
            return
        position = self.serve.wait_until_complete("orders", timeout_s=_WAIT_S)

        def has_come() -> bool:
            status = self.slave_status()
            assert not status["Last_SQL_Errno"], status["Last_SQL_Error"]
            assert status["Last_IO_Errno"] in RESTARTING, status["Last_IO_Error"]
            # Beside the source's own domain there may be that of rows.
            read = _gtids(status["Gtid_IO_Pos"])
            ((reached,),) = execute(self.replica, "SELECT @@gtid_slave_pos")
            if position not in read or _gtids(reached) != read:
                return False
            # That one goes on behind the source's last group, with the DROP behind rows that came in.
            last = {_domain(gtid): gtid for gtid in self.serve.gtids("orders")}
            return all(last.get(_domain(gtid), gtid) == gtid for gtid in read)

        wait_until(has_come, _WAIT_S)

    def _settle_mysql(self) -> None:
        done = self.serve.wait_until_complete("orders", timeout_s=_WAIT_S)

        def has_come() -> bool:
            status = self.slave_status()
            assert not status["Last_SQL_Errno"], status["Last_SQL_Error"]
            assert status["Last_IO_Errno"] in RESTARTING, status["Last_IO_Error"]
            # The binlog has groups of its own, too, such as the DROP behind rows that came in.
            ((*_, logged),) = self.serve.execute_as_root("SHOW BINARY LOG STATUS 'orders'")
            ((is_all, is_in),) = execute(
                self.replica,
                f"SELECT GTID_SUBSET('{done}', '{logged}'), "
                f"GTID_SUBSET('{done if self.is_made_anew else logged}', @@global.gtid_executed)",
            )
            return bool(is_all and is_in)

        wait_until(has_come, _WAIT_S)

    def slave_status(self) -> dict[str, Any]:
        """SHOW SLAVE STATUS of the replica, by MariaDB's names."""
        with _connect(self.replica.port) as session:
            cursor = session.cursor(pymysql.cursors.DictCursor)
            is_mysql = self.flavor == "mysql"
            cursor.execute("SHOW REPLICA STATUS" if is_mysql else "SHOW SLAVE STATUS")
            (status,) = cursor.fetchall()
            return dict(status)

    def tables(self, server: PrivateServer, table: str = "orders") -> dict[str, Any]:
        """Definition and rows of a table at a server."""
        ((_, definition),) = execute(server, f"SHOW CREATE TABLE shop.{table}")
        rows = execute(server, f"SELECT * FROM shop.{table} ORDER BY 1")
        # An AUTO_INCREMENT that failed inserts have used up is in no log.
        words = [word for word in definition.split() if not word.startswith("AUTO_INCREMENT=")]
        return {"definition": words, "rows": rows}

    def make_anew(self) -> None:
        """Give the replica, which has stopped, the table as the source has it now, and let it go on."""
        self.is_made_anew = True
        definition = execute(self.source, "SHOW CREATE TABLE shop.orders")[0][1]
        rows = execute(self.source, "SELECT * FROM shop.orders")
        with _connect(self.replica.port) as session, session.cursor() as cursor:
            cursor.execute("SET sql_log_bin = 0")
            cursor.execute("DROP TABLE IF EXISTS shop.orders")
            cursor.execute("USE shop")
            cursor.execute(definition)
            marks = ", ".join(["%s"] * len(rows[0]))
            cursor.executemany(f"INSERT INTO shop.orders VALUES ({marks})", rows)
        if self.flavor == "mysql":
            ((done,),) = execute(self.source, "SELECT @@global.gtid_executed")
            ((left,),) = execute(
                self.replica, f"SELECT GTID_SUBTRACT('{done}', @@global.gtid_executed)"
            )
            execute(self.replica, f"SET GLOBAL gtid_purged = '+{left}'", "START REPLICA")
            return
        ((position,),) = execute(self.source, "SELECT @@gtid_binlog_pos")
        execute(self.replica, f"SET GLOBAL gtid_slave_pos = '{position}'", "START SLAVE")

    def check_equal(self, *tables: str) -> None:
        """See that the replica has tables, `orders` alone by default, as the source has them.

        It has no others.

        Raises:
            AssertionError: If not.
        """
        self.settle()
        names = tables or ("orders",)
        for name in names:
            assert self.tables(self.replica, name) == self.tables(self.source, name)
        if self.flavor == "mariadb":
            # Its own log has the GTIDs that it was given, and no others.
            ((logged, applied, own),) = execute(
                self.replica, "SELECT @@gtid_binlog_pos, @@gtid_slave_pos, @@gtid_binlog_state"
            )
            assert _gtids(logged) == _gtids(applied)
            assert "-77-" not in own
        found = execute(self.replica, "SHOW TABLES FROM shop")
        assert sorted(name for (name,) in found) == sorted(names)


def swap(
    source: PrivateServer,
    shadow: str,
    old: str,
    *,
    like: bool = True,
    altered: str = ALTERED,
    port: int | None = None,
) -> None:
    """Change the schema of `shop.orders` as gh-ost does: a shadow is filled and renamed, under locks.

    Args:
        source: The server, to which clients write.
        port: Where the tool connects; None for the server itself.
        shadow: Name of the shadow with its database.
        old: Name that `shop.orders` gets, with its database.
        like: True if the shadow is made by CREATE TABLE … LIKE.
        altered: The actions of the ALTER TABLE that changes it.
    """
    made = (
        f"CREATE TABLE {shadow} LIKE shop.orders" if like else ORDERS.replace("shop.orders", shadow)
    )
    port = source.port if port is None else port
    _run(port, made, f"ALTER TABLE {shadow} {altered}")
    ((last,),) = execute(source, "SELECT MAX(id) FROM shop.orders")
    for first in range(1, last + 1, _CHUNK):
        _run(
            port,
            f"INSERT INTO {shadow} ({_COLUMNS}) SELECT {_COLUMNS} FROM shop.orders "
            f"WHERE id BETWEEN {first} AND {first + _CHUNK - 1} LOCK IN SHARE MODE",
        )
    with _connect(port) as session, session.cursor() as cursor:
        cursor.execute(f"LOCK TABLES shop.orders WRITE, shop.orders AS o READ, {shadow} WRITE")
        # What was changed since is taken again, and what is gone goes.
        cursor.execute(f"REPLACE INTO {shadow} ({_COLUMNS}) SELECT {_COLUMNS} FROM shop.orders o")
        cursor.execute(f"DELETE FROM {shadow} WHERE id NOT IN (SELECT id FROM shop.orders o)")
        with _connect(port) as other:
            swapping = threading.Thread(
                target=other.query,
                args=(f"RENAME TABLE shop.orders TO {old}, {shadow} TO shop.orders",),
            )
            swapping.start()
            wait_until(lambda: _waits_for_lock(source))
            cursor.execute("UNLOCK TABLES")
            swapping.join()
    _run(port, f"DROP TABLE {old}")


def _run(port: int, *statements: str) -> None:
    with _connect(port) as session, session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _waits_for_lock(server: PrivateServer) -> bool:
    sessions = execute(server, "SHOW FULL PROCESSLIST")
    return any(
        "metadata lock" in str(session[6]) and "RENAME" in str(session[7]) for session in sessions
    )


@contextmanager
def shop(
    directory: Path,
    flavor: str,
    logging_mode: str = "ROW",
    options: Sequence[str] = (),
    clauses: str = "LOG(shop.orders)",
) -> Iterator[Shop]:
    """Start a source, a `serve` with a binlog of `shop.orders`, and a replica of it."""
    with (
        LENT.lend_source(flavor, *options, prepare=set_up_source) as source,
        LENT.lend_source(flavor, *_REPLICA) as replica,
    ):
        serve = ServeProcess(directory / "serve", source)
        with serve:
            execute(source, "CREATE DATABASE shop")
            serve.execute_as_root(f"CREATE BINLOG 'orders' {clauses}, FORMAT='{logging_mode}'")
            execute(replica, "SET sql_log_bin = 0", "CREATE DATABASE shop")
            _follow(replica, serve, flavor)
            execute(source, ORDERS)
            with _connect(source.port) as session, session.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO shop.orders (v, note) VALUES (%s, %s)",
                    [(f"row {number}", "ä" * (number % 50)) for number in range(_ROWS)],
                )
            yield Shop(flavor, source, serve, replica)


def _domain(gtid: str) -> str:
    return gtid.partition("-")[0]


def _gtids(position: object) -> set[str]:
    return {gtid.strip() for gtid in str(position).split(",")}


def _follow(replica: PrivateServer, serve: ServeProcess, flavor: str) -> None:
    if flavor == "mysql":
        ((done,),) = execute(serve.source, "SELECT @@global.gtid_executed")
        execute(
            replica,
            f"SET GLOBAL gtid_purged = '+{done}'",
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={serve.port}, "
            "SOURCE_USER='root', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, "
            # By itself it gives up after ten attempts, which a busy machine needs for a restart.
            "SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=1000",
            "START REPLICA",
        )
        return
    ((begin,),) = execute(serve.source, "SELECT @@gtid_binlog_pos")
    execute(
        replica,
        f"SET GLOBAL gtid_slave_pos = '{begin}'",
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={serve.port}, "
        "MASTER_USER='root', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1",
        "START SLAVE",
    )


@dataclass
class Writers:
    """Clients that write `shop.orders` until they are stopped.

    Attributes:
        port: Where they connect.
        done: Transactions that went well.
        errors: What the others were told.
    """

    port: int
    count: int = 2
    done: int = 0
    errors: list[str] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _is_over: bool = False

    def __enter__(self) -> Self:
        for number in range(self.count):
            thread = threading.Thread(target=self._write, args=(number,))
            thread.start()
            self._threads.append(thread)
        wait_until(lambda: self.done > 20 or bool(self.errors), _WAIT_S)
        return self

    def __exit__(self, *_: object) -> None:
        before = self.done
        wait_until(lambda: self.done > before + 20 or len(self.errors) > 500, _WAIT_S)
        self._is_over = True
        for thread in self._threads:
            thread.join()

    def _write(self, number: int) -> None:
        chance = random.Random(number)  # no secret
        with _connect(self.port) as session, session.cursor() as cursor:
            while not self._is_over:
                target = chance.randrange(1, _ROWS)
                try:
                    cursor.execute("BEGIN")
                    cursor.execute("INSERT INTO shop.orders (v) VALUES (%s)", (f"new {number}",))
                    cursor.execute("UPDATE shop.orders SET n = n + 1 WHERE id = %s", (target,))
                    if target % 3 == 0:
                        cursor.execute("DELETE FROM shop.orders WHERE id = %s", (target + 1,))
                    cursor.execute("COMMIT")
                    self.done += 1
                except pymysql.Error as error:
                    self.errors.append(str(error))
                    if len(self.errors) > 1000:
                        return
                    session.rollback()
                time.sleep(0.002)


def _connect(port: int) -> Connection[Cursor]:
    return pymysql.connect(
        host="127.0.0.1", port=port, user="root", autocommit=True, ssl_disabled=True
    )
