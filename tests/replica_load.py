"""Random sessions on a source: rows, DDL, XA, and tables that cross the edge of the scope `shop`.

What they do can be expressed in the scope: a table comes in without rows, as it was made. So a
replica of any binlog of the source has, in the end, what the source has in that scope.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import PrivateServer
from tests.servers import end_lost_xa, execute

DATABASES: Final = ("shop", "crm")
OPTIONS: Final = ("--innodb-lock-wait-timeout=2", "--lock-wait-timeout=4")
"""Who waits for another session gives up."""
_TABLES: Final = tuple("abcdef")
_KEYS: Final = 60
_GONE: Final = frozenset({0, 1053, 1927, 2003, 2006, 2013, 2014, 3169})
_DEFINITION: Final = (
    "(k INT PRIMARY KEY, n BIGINT, s VARCHAR(60), d DECIMAL(20, 4), t DATETIME(3), b BLOB)"
    " DEFAULT CHARSET=utf8mb4"
)
_ROW: Final = "k, n, s, d, t, b"


class ReplicaLoad:
    """Sessions that work from `with` to the end of its block, or each to the end of its statements.

    Attributes:
        counts: Statements that succeeded and failed; sessions that were lost.
        errors: What failed, by error number.
    """

    def __init__(
        self,
        source: PrivateServer,
        connects: Sequence[Callable[[], Connection[Cursor]]],
        *,
        seed: int,
        length: int | None = None,
        pause_s: float = 0.0,
        has_ddl: bool = True,
    ) -> None:
        """Prepare.

        Args:
            source: What it is about in the end.
            connects: One for each session, which is begun anew where it is lost.
            seed: Of what the sessions do.
            length: Statements of each; None until the block ends.
            pause_s: Longest wait of a session between two of its works.
            has_ddl: Tables come, go and change.
        """
        self.counts: Counter[str] = Counter()
        self.errors: Counter[int] = Counter()
        self._source = source
        self._length = length
        self._pause_s = pause_s
        self._has_ddl = has_ddl
        self._has_ended = threading.Event()
        self._failures: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(number, connect, seed), name=f"load {number}")
            for number, connect in enumerate(connects)
        ]

    def prepare(self) -> None:
        """Make the databases and some of the tables, in the source's log."""
        execute(self._source, *(f"CREATE DATABASE {name}" for name in DATABASES))
        execute(
            self._source,
            *(f"CREATE TABLE {d}.{t} {_DEFINITION}" for d in DATABASES for t in _TABLES[:4]),
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
        if self._length is None or error is not None:
            self._has_ended.set()
        for thread in self._threads:
            thread.join()
        end_lost_xa(self._source)
        if error is None and self._failures:
            raise self._failures[0]

    def _run(self, number: int, connect: Callable[[], Connection[Cursor]], seed: int) -> None:
        try:
            self._work(number, connect, random.Random(seed * 1000 + number))
        except BaseException as error:
            self._failures.append(error)
            self._has_ended.set()
            raise

    def _work(
        self, number: int, connect: Callable[[], Connection[Cursor]], chance: random.Random
    ) -> None:
        works = _Works(number, chance, has_ddl=self._has_ddl)
        session: Connection[Cursor] | None = None
        done = 0
        while not self._has_ended.is_set() and (self._length is None or done < self._length):
            if session is None:
                session = self._connected(connect)
                continue
            for statement in works.next():
                done += 1
                if not self._execute(session, statement):
                    with suppress(pymysql.MySQLError, OSError):
                        session.close()
                    session = None
                    break
            if self._pause_s:
                self._has_ended.wait(chance.uniform(0, self._pause_s))
        if session is not None:
            with suppress(pymysql.MySQLError, OSError):
                session.close()

    def _connected(self, connect: Callable[[], Connection[Cursor]]) -> Connection[Cursor] | None:
        try:
            return connect()
        except (pymysql.MySQLError, OSError):
            self._has_ended.wait(0.05)
            return None

    def _execute(self, session: Connection[Cursor], statement: str) -> bool:
        """Run a statement; False if the session is lost by it."""
        try:
            with session.cursor() as cursor:
                cursor.execute(statement)
        except (pymysql.MySQLError, OSError) as error:
            number: Any = error.args[0] if error.args else 0
            self.counts["failed"] += 1
            self.errors[number if isinstance(number, int) else 0] += 1
            return not isinstance(error, OSError) and number not in _GONE
        self.counts["done"] += 1
        return True


class _Works:
    """What one session does, a few statements at a time."""

    def __init__(self, number: int, chance: random.Random, *, has_ddl: bool) -> None:
        self._number = number
        self._chance = chance
        self._made = 0
        rows = [(20, self._row), (12, self._transaction), (6, self._xa)]
        ddl = [
            (4, self._ddl),
            (3, self._leave),
            (3, self._come),
            (2, self._swap),
            (1, self._database),
            (1, self._temporary),
        ]
        self._kinds: Sequence[tuple[int, Callable[[], Iterator[str]]]] = [
            *rows,
            *(ddl if has_ddl else ()),
        ]

    def next(self) -> Iterator[str]:
        """The next few statements."""
        weights, makers = zip(*self._kinds, strict=True)
        return iter(list(self._chance.choices(makers, weights)[0]()))

    def _table(self, database: str | None = None) -> str:
        place = database or self._chance.choice(("shop", "shop", "crm"))
        return f"{place}.{self._chance.choice(_TABLES)}"

    def _values(self) -> str:
        chance = self._chance
        key = chance.randrange(_KEYS)
        text = "".join(chance.choice("aäß€🦭'") for _ in range(chance.randrange(8)))
        text = text.replace("'", "''")
        return (
            f"({key}, {chance.choice(('NULL', str(chance.getrandbits(62))))}, '{text}',"
            f" {chance.uniform(-1e6, 1e6):.4f}, '20{chance.randrange(10, 60)}-02-03 04:05:06.789',"
            f" REPEAT(0x{chance.randrange(256):02x}, {chance.choice((0, 3, 300))}))"
        )

    def _change(self) -> str:
        chance, table = self._chance, self._table()
        key = chance.randrange(_KEYS)
        rows = ", ".join(self._values() for _ in range(chance.choice((1, 1, 3))))
        return chance.choice(
            (
                f"INSERT INTO {table} ({_ROW}) VALUES {rows}",
                f"REPLACE INTO {table} ({_ROW}) VALUES {rows}",
                f"INSERT IGNORE INTO {table} ({_ROW}) VALUES {rows}",
                f"UPDATE {table} SET n = IFNULL(n, 0) + 1 WHERE k = {key}",
                f"UPDATE {table} SET s = CONCAT(LEFT(s, 50), '+'), d = -d WHERE k % 7 = {key % 7}",
                f"DELETE FROM {table} WHERE k = {key}",
                f"UPDATE {self._table('shop')} x JOIN {self._table('shop')} y USING (k) SET x.n = y.k",
            )
        )

    def _row(self) -> Iterator[str]:
        yield self._change()

    def _transaction(self) -> Iterator[str]:
        yield "BEGIN"
        for number in range(self._chance.randrange(1, 5)):
            yield self._change()
            if self._chance.random() < 0.2:
                yield f"SAVEPOINT s{number}"
                yield self._change()
                yield f"ROLLBACK TO SAVEPOINT s{number}"
        yield self._chance.choice(("COMMIT", "COMMIT", "COMMIT", "ROLLBACK"))

    def _xa(self) -> Iterator[str]:
        self._made += 1
        name = f"'x{self._number}-{self._made}-{self._chance.getrandbits(40)}'"
        yield f"XA START {name}"
        for _ in range(self._chance.randrange(3)):
            yield self._change()
        yield f"XA END {name}"
        if self._chance.random() < 0.2:
            yield f"XA COMMIT {name} ONE PHASE"
            return
        yield f"XA PREPARE {name}"
        yield f"XA {self._chance.choice(('COMMIT', 'COMMIT', 'ROLLBACK'))} {name}"
        yield f"XA ROLLBACK {name}"  # of one that failed before

    def _ddl(self) -> Iterator[str]:
        table = self._table()
        database = table.partition(".")[0]
        yield self._chance.choice(
            (
                f"CREATE TABLE IF NOT EXISTS {table} {_DEFINITION}",
                f"CREATE TABLE {table} {_DEFINITION}",
                f"TRUNCATE TABLE {table}",
                f"DROP TABLE IF EXISTS {table}",
                f"DROP TABLE IF EXISTS {self._table('shop')}, {self._table('crm')}",
                f"ALTER TABLE {table} ADD COLUMN e INT DEFAULT 5",
                f"ALTER TABLE {table} DROP COLUMN e",
                f"ALTER TABLE {table} ADD INDEX i (n)",
                f"DROP INDEX i ON {table}",
                f"ALTER TABLE {table} MODIFY s VARCHAR(80)",
                f"RENAME TABLE {table} TO {self._table(database)}",
                f"CREATE TABLE {table} LIKE {self._table(database)}",
                f"CREATE TABLE {table} SELECT {_ROW} FROM {self._table(database)}",
            )
        )

    def _leave(self) -> Iterator[str]:
        """A table goes out of the scope, rows and all."""
        gone = f"crm.g{self._number}_{self._chance.getrandbits(40)}"
        yield f"RENAME TABLE {self._table('shop')} TO {gone}"
        yield f"INSERT INTO {gone} ({_ROW}) VALUES {self._values()}"
        yield f"DROP TABLE {gone}"

    def _come(self) -> Iterator[str]:
        """A table comes in as it was made."""
        new = f"crm.n{self._number}_{self._chance.getrandbits(40)}"
        yield f"CREATE TABLE {new} {_DEFINITION}"
        yield f"RENAME TABLE {new} TO {self._table('shop')}"
        yield f"DROP TABLE IF EXISTS {new}"

    def _swap(self) -> Iterator[str]:
        """Two tables of the scope change their names, over one outside."""
        one, other = self._table("shop"), self._table("shop")
        between = f"crm.w{self._number}_{self._chance.getrandbits(40)}"
        yield f"RENAME TABLE {one} TO {between}, {other} TO {one}, {between} TO {other}"

    def _database(self) -> Iterator[str]:
        name = f"extra{self._number}"
        yield f"CREATE DATABASE {name}"
        yield f"CREATE TABLE {name}.t {_DEFINITION}"
        yield f"INSERT INTO {name}.t ({_ROW}) VALUES {self._values()}"
        if self._chance.random() < 0.5:
            yield f"DROP DATABASE {name}"

    def _temporary(self) -> Iterator[str]:
        yield f"CREATE TEMPORARY TABLE shop.tmp {_DEFINITION}"
        yield f"INSERT INTO shop.tmp ({_ROW}) VALUES {self._values()}"
        yield f"REPLACE INTO {self._table('shop')} ({_ROW}) SELECT {_ROW} FROM shop.tmp"
        yield "DROP TEMPORARY TABLE shop.tmp"
