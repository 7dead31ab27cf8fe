"""What a busy source does all day: transactions of many kinds and DDL, from several sessions.

Two databases: `shop`, which scopes name, and `crm`, which they leave out. Whatever the source does
meanwhile (deadlocks, tables that another session has renamed, its own crash), a session goes on.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import PrivateServer
from tests.servers import Xid, connect, end_of, execute

SECRET = "crm-secret"
"""Stands in every row of `crm` that is not in `shop`, and in no other."""

_GONE = frozenset({0, 2003, 2006, 2013, 1053, 1927})
_NOT_AGAIN = frozenset({1397, 1399, 1402})


class Load:
    """Sessions that write, from `with` to the end of its block.

    Attributes:
        counts: What was committed, by kind.
        errors: What the source refused, by error number.
        finished: How each XA transaction ended, COMMIT or ROLLBACK.
    """

    def __init__(
        self,
        source: PrivateServer,
        *,
        writers: int,
        seed: int,
        pause_s: float = 0.0,
        xa: bool = True,
    ) -> None:
        """Prepare.

        Args:
            source: `prepare` makes what they write to.
            writers: Sessions.
            seed: Of what they do.
            pause_s: Longest wait of a session between two transactions.
            xa: Whether some transactions are prepared first.
        """
        self.counts: Counter[str] = Counter()
        self.errors: Counter[int] = Counter()
        self.finished: dict[str, str] = {}
        self._source = source
        self._pause_s = pause_s
        self._has_ended = threading.Event()
        self._failures: list[BaseException] = []
        self._writers = [_Writer(self, number, seed, xa=xa) for number in range(writers)]
        self._threads = [
            threading.Thread(target=writer.run, name=f"writer {number}")
            for number, writer in enumerate(self._writers)
        ]

    def prepare(self) -> None:
        """Make the tables."""
        execute(
            self._source,
            "CREATE DATABASE IF NOT EXISTS shop",
            "CREATE DATABASE IF NOT EXISTS crm",
            "CREATE TABLE shop.common (id INT AUTO_INCREMENT PRIMARY KEY, note TEXT)",
            "CREATE TABLE crm.person (id INT AUTO_INCREMENT PRIMARY KEY, note TEXT)",
            *(
                f"CREATE TABLE shop.w{number} (id INT AUTO_INCREMENT PRIMARY KEY, note LONGTEXT)"
                for number in range(len(self._writers))
            ),
        )

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._has_ended.set()
        for thread in self._threads:
            thread.join()
        for writer in self._writers:
            writer.finish()
        if error is None and self._failures:
            raise self._failures[0]

    def has_ended(self) -> bool:
        """Whether sessions are to end; waits a moment for them."""
        if self._pause_s:
            self._has_ended.wait(random.uniform(0, self._pause_s))
        return self._has_ended.is_set()

    def session(self) -> Connection[Cursor]:
        """A session, as soon as the source takes one."""
        while True:
            try:
                return connect(self._source, autocommit=False, connect_timeout=5, read_timeout=60)
            except (pymysql.MySQLError, OSError):
                if self._has_ended.wait(0.1) and not self._source.is_running:
                    raise

    def failed(self, error: BaseException) -> None:
        """Remember what ended a writer."""
        self._failures.append(error)


class _Writer:
    """One session's work."""

    def __init__(self, load: Load, number: int, seed: int, *, xa: bool) -> None:
        self._load = load
        self._number = number
        self._table = f"shop.w{number}"
        self._chance = random.Random(f"{seed}-{number}")
        self._columns: list[str] = []
        self._serial = 0
        # XA transactions that are prepared, or may be.
        self._prepared: set[str] = set()
        self._kinds: Sequence[tuple[int, Callable[[Cursor], str]]] = (
            (40, self._insert),
            (20, self._several),
            (10, self._update),
            (8, self._savepoints),
            (8, self._outside),
            (8 if xa else 0, self._xa),
            (3, self._ddl),
            (2, self._rename),
            (1, self._views),
            (1, self._large),
        )

    def run(self) -> None:
        """Write until the load ends."""
        try:
            while not self._load.has_ended():
                with suppress(pymysql.MySQLError, OSError), self._load.session() as session:
                    self._write(session)
        except BaseException as error:
            self._load.failed(error)
            raise

    def _write(self, session: Connection[Cursor]) -> None:
        with session.cursor() as cursor:
            self._finish_prepared(cursor)
            while not self._load.has_ended():
                weights, kinds = zip(*self._kinds, strict=True)
                (work,) = self._chance.choices(kinds, weights)
                try:
                    kind = work(cursor)
                    session.commit()
                except pymysql.MySQLError as error:
                    number = error.args[0] if error.args else 0
                    self._load.errors[number] += 1
                    if number in _GONE:
                        raise
                    session.rollback()
                else:
                    self._load.counts[kind] += 1

    def finish(self) -> None:
        """Leave no XA transaction behind."""
        if self._prepared:
            with self._load.session() as session, session.cursor() as cursor:
                self._finish_prepared(cursor)

    def _finish_prepared(self, cursor: Cursor) -> None:
        for xid in sorted(self._prepared):
            verb = end_of(Xid(xid.encode(), b"", 1))
            for _ in range(50):
                try:
                    cursor.execute(f"XA {verb} '{xid}'")
                except pymysql.MySQLError as error:
                    if error.args[0] in _GONE:
                        raise
                    if error.args[0] in _NOT_AGAIN:
                        time.sleep(0.02)  # its session may still be ending, or it never was
                        continue
                else:
                    self._load.finished[xid] = verb
                break
            self._prepared.discard(xid)

    def _note(self) -> str:
        self._serial += 1
        return f"{self._number}-{self._serial}-" + "x" * self._chance.choice((5, 50, 500))

    def _insert(self, cursor: Cursor) -> str:
        table = self._chance.choice((self._table, "shop.common"))
        cursor.execute(f"INSERT INTO {table} (note) VALUES (%s)", (self._note(),))
        return "insert"

    def _several(self, cursor: Cursor) -> str:
        for _ in range(self._chance.randint(2, 5)):
            cursor.execute(
                f"INSERT INTO {self._table} (note) VALUES (%s), (%s)", (self._note(), self._note())
            )
            cursor.execute("INSERT INTO shop.common (note) VALUES (%s)", (self._note(),))
            cursor.execute("INSERT INTO crm.person (note) VALUES (%s)", (SECRET,))
        return "several"

    def _update(self, cursor: Cursor) -> str:
        cursor.execute(
            f"UPDATE {self._table} SET note = %s ORDER BY id DESC LIMIT 5", (self._note(),)
        )
        cursor.execute(f"DELETE FROM {self._table} ORDER BY id LIMIT 3")
        return "update"

    def _savepoints(self, cursor: Cursor) -> str:
        cursor.execute(f"INSERT INTO {self._table} (note) VALUES (%s)", (self._note(),))
        cursor.execute("SAVEPOINT a")
        cursor.execute("INSERT INTO shop.common (note) VALUES ('taken back')")
        if self._chance.random() < 0.5:
            cursor.execute("ROLLBACK TO SAVEPOINT a")
        cursor.execute(f"INSERT INTO {self._table} (note) VALUES (%s)", (self._note(),))
        return "savepoints"

    def _outside(self, cursor: Cursor) -> str:
        cursor.execute("INSERT INTO crm.person (note) VALUES (%s)", (SECRET,))
        cursor.execute("DELETE FROM crm.person ORDER BY id LIMIT 2")
        return "outside"

    def _xa(self, cursor: Cursor) -> str:
        self._serial += 1
        xid = f"x{self._number}-{self._serial}"
        cursor.execute("COMMIT")
        cursor.execute(f"XA START '{xid}'")
        cursor.execute(f"INSERT INTO {self._table} (note) VALUES (%s)", (self._note(),))
        if self._chance.random() < 0.3:
            cursor.execute("INSERT INTO crm.person (note) VALUES (%s)", (SECRET,))
        cursor.execute(f"XA END '{xid}'")
        self._prepared.add(xid)
        cursor.execute(f"XA PREPARE '{xid}'")
        if self._chance.random() < 0.3:
            time.sleep(0.02)
        self._finish_prepared(cursor)
        return "xa"

    def _ddl(self, cursor: Cursor) -> str:
        # A crash may have taken back what this list holds, or have spared what it lacks.
        if self._columns and self._chance.random() < 0.6:
            cursor.execute(f"ALTER TABLE {self._table} DROP COLUMN {self._columns.pop()}")
        else:
            self._serial += 1
            self._columns.append(f"c{self._serial}")
            cursor.execute(
                f"ALTER TABLE {self._table} ADD COLUMN {self._columns[-1]} INT DEFAULT 7"
            )
        return "ddl"

    def _rename(self, cursor: Cursor) -> str:
        table = self._table
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {table}_new LIKE {table}")
        cursor.execute(f"INSERT INTO {table}_new SELECT * FROM {table} ORDER BY id DESC LIMIT 20")
        cursor.execute("COMMIT")
        cursor.execute(f"RENAME TABLE {table} TO {table}_old, {table}_new TO {table}")
        cursor.execute(f"DROP TABLE {table}_old")
        return "rename"

    def _views(self, cursor: Cursor) -> str:
        cursor.execute(f"CREATE OR REPLACE VIEW {self._table}_v AS SELECT id FROM {self._table}")
        cursor.execute(f"DROP VIEW IF EXISTS {self._table}_v")
        return "views"

    def _large(self, cursor: Cursor) -> str:
        cursor.execute(
            f"INSERT INTO {self._table} (note) SELECT REPEAT(%s, 40) "
            "FROM information_schema.COLLATIONS LIMIT 200",
            (self._note()[:50],),
        )
        cursor.execute(f"DELETE FROM {self._table} ORDER BY id LIMIT 190")
        return "large"
