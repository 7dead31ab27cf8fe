"""Binlogs that begin with their tables: a source, `serve` before it, and replicas from nothing."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pymysql

from binlane.live.provision.private_server import (
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB
from tests.judged_port import set_up_source
from tests.lent_servers import LENT
from tests.port_replicas import replica_status
from tests.serve_process import ServeProcess, wait_until
from tests.servers import connect, execute, mysql_program

TABLES: Final = ("items", "notes", "orders")
FLAVORS: Final = ("mariadb", "mysql")
_TIMEOUT_S: Final = 120.0
_SLOW: Final = "[rows]\nrows_per_s = {rows_per_s}\nchunk_size = 65536\n"
_LOST: Final = (pymysql.MySQLError, OSError)


class RowsStage:
    """A source with tables in `shop`, `serve` before it, and any number of replicas.

    Attributes:
        flavor: `mariadb` or `mysql`.
        source: The server that is captured.
        serve: Before it.
    """

    def __init__(
        self, folder: Path, flavor: str, *, rows_per_s: int | None = None, settings: str = ""
    ) -> None:
        """Prepare; `with` starts everything.

        Args:
            folder: Holds all data.
            flavor: `mariadb` or `mysql`.
            rows_per_s: So many rows of the source are read a second; None for all there are.
            settings: Further sections of the settings of `serve`.
        """
        self.flavor = flavor
        self._folder = folder
        self._extra = "" if rows_per_s is None else _SLOW.format(rows_per_s=rows_per_s)
        self._extra += settings
        self._stack = ExitStack()
        self._numbers = iter(range(40, 99))

    def __enter__(self) -> Self:
        with self._stack:
            self.source = self._stack.enter_context(
                LENT.lend_source(self.flavor, prepare=set_up_source)
            )
            execute(
                self.source,
                "CREATE DATABASE shop DEFAULT CHARACTER SET utf8mb4",
                "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(80), price DECIMAL(9,2),"
                " at DATETIME(3), note TEXT)",
                "CREATE TABLE shop.items (number BIGINT AUTO_INCREMENT PRIMARY KEY, kind CHAR(12),"
                " order_id INT, KEY (order_id))",
                "CREATE TABLE shop.notes (a VARCHAR(20), b INT, text BLOB, PRIMARY KEY (a, b))",
                "CREATE TABLE shop.others (id INT PRIMARY KEY, name VARCHAR(40))",
            )
            self.serve = ServeProcess(self._folder / "serve", self.source, extra=self._extra)
            self._stack.enter_context(self.serve)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    @property
    def is_mysql(self) -> bool:
        return self.flavor == "mysql"

    def fill_tables(self, rows: int) -> None:
        """Give each table some rows."""
        chance = random.Random(rows)
        for first in range(0, rows, 500):
            numbers = range(first, min(rows, first + 500))
            orders = (
                f"({n}, 'name {n}', {n}.25, '2026-01-01 00:00:00.{n % 1000:03}',"
                f" '{'x' * chance.randrange(200)}')"
                for n in numbers
            )
            items = (f"('kind {n % 7}', {n})" for n in numbers)
            notes = (f"('{chr(97 + n % 26)}{n % 90}', {n}, 'text {n}')" for n in numbers)
            execute(
                self.source,
                f"INSERT INTO shop.orders VALUES {', '.join(orders)}",
                f"INSERT INTO shop.items (kind, order_id) VALUES {', '.join(items)}",
                f"INSERT INTO shop.notes VALUES {', '.join(notes)}",
                f"INSERT INTO shop.others VALUES {', '.join(f'({n}, {n})' for n in numbers)}",
            )

    def replica(self, *options: str) -> PrivateServer:
        """Start a server that has nothing; every second one of MariaDB applies side by side."""
        number = next(self._numbers)
        own = (
            ("--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=own")
            if self.is_mysql
            else (
                *("--gtid-strict-mode=ON", "--log-bin=own", "--log-slave-updates"),
                f"--slave-parallel-threads={number % 2 * 4}",
            )
        )
        program = mysql_program() if self.is_mysql else MARIADB
        lent = LENT.lend((*own, f"--server-id={number}", *options), program)
        return self._stack.enter_context(lent)

    def follow(self, replica: PrivateServer) -> None:
        """Let a replica follow the one binlog that there is, by GTID."""
        port = self.serve.port
        how = (
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, "
            "SOURCE_USER='root', SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, "
            "SOURCE_RETRY_COUNT=1000, SOURCE_AUTO_POSITION=1"
            if self.is_mysql
            else f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, "
            "MASTER_USER='root', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos"
        )
        execute(replica, how, self._word("START"))

    def stop(self, replica: PrivateServer) -> None:
        """Have a replica stop."""
        execute(replica, self._word("STOP"))

    def go_on(self, replica: PrivateServer) -> None:
        """Have a replica go on."""
        execute(replica, self._word("START"))

    def _word(self, verb: str) -> str:
        return f"{verb} {'REPLICA' if self.is_mysql else 'SLAVE'}"

    def state(self, name: str = "orders") -> str:
        """The state that SHOW BINLOGS shows; empty for a binlog that is not there."""
        try:
            found = self.serve.execute_as_root("SHOW BINLOGS")
        except _LOST:
            return "not known"
        return next((str(row[7]) for row in found if row[0] == name), "")

    def wait_until_filled(self, name: str = "orders") -> None:
        """Wait until a binlog has its rows and all of the source."""

        def is_open() -> bool:
            state = self.state(name)
            # A source that was just killed is waited for.
            assert "cannot be read" not in state or "cannot be reached" in state, state
            return state == "OPEN"

        wait_until(is_open, _TIMEOUT_S)

    def differences(self, replica: PrivateServer, tables: Sequence[str] = TABLES) -> str:
        """What a replica has otherwise than the source, once it has all it ever gets; else empty."""
        told = ""

        def is_equal() -> bool:
            nonlocal told
            status = replica_status(replica)
            problem = status["Last_SQL_Error"] or status["Last_IO_Error"]
            told = f"{problem} {_differing(self.source, replica, tables)}".strip()
            return not told or "Got fatal error 1236" in told

        with suppress(AssertionError):
            wait_until(is_equal, _TIMEOUT_S)
        return told

    @contextmanager
    def writing(self, sessions: int = 3) -> Iterator[None]:
        """Have clients write to all tables, through the source and through the port."""
        has_ended = threading.Event()
        threads = [
            threading.Thread(target=self._write, args=(number, has_ended), daemon=True)
            for number in range(sessions)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            has_ended.set()
            for thread in threads:
                thread.join()

    def _write(self, number: int, has_ended: threading.Event) -> None:
        chance, session = random.Random(number), None
        while not has_ended.is_set():
            try:
                if session is None:
                    session = self.serve.connect("root", "") if number % 2 else connect(self.source)
                with session.cursor() as cursor:
                    for statement in _statements(chance, number):
                        cursor.execute(statement)
            except _LOST:
                if session is not None:
                    with suppress(*_LOST):
                        session.close()
                session = None
                has_ended.wait(0.05)
            time.sleep(chance.uniform(0, 0.01))


def _statements(chance: random.Random, number: int) -> list[str]:
    """A transaction or a statement on some of the tables."""
    key = chance.randrange(2500)
    several = [
        f"REPLACE INTO shop.orders VALUES ({key}, 'by {number}', 1, NOW(3), 'new')",
        f"UPDATE shop.orders SET name = UPPER(name), price = price + 1 WHERE id = {key}",
        f"DELETE FROM shop.orders WHERE id = {key}",
        f"UPDATE shop.orders SET id = id + 100000 WHERE id = {key}",
        f"INSERT INTO shop.items (kind, order_id) VALUES ('n', {key}), ('m', {key})",
        f"DELETE FROM shop.items WHERE order_id = {key}",
        f"UPDATE shop.notes SET a = UPPER(a), text = CONCAT(text, '!') WHERE b = {key}",
        f"REPLACE INTO shop.notes VALUES ('new', {key}, NULL)",
        f"UPDATE shop.others SET name = '{number}' WHERE id = {key}",
    ]
    if chance.random() < 0.2:
        return ["BEGIN", *chance.sample(several, 3), chance.choice(("COMMIT", "ROLLBACK"))]
    return [chance.choice(several)]


def _differing(source: PrivateServer, replica: PrivateServer, tables: Sequence[str]) -> str:
    names = [f"shop.{table}" for table in tables]
    with suppress(pymysql.MySQLError):
        of_source, of_replica = (_checksums(each, names) for each in (source, replica))
        return ", ".join(n for n in names if of_source[n] != of_replica[n] or not of_source[n])
    return "not to be compared"


def _checksums(server: PrivateServer, names: Sequence[str]) -> dict[str, Any]:
    return {name: execute(server, f"CHECKSUM TABLE {name}")[0][1] for name in names}
