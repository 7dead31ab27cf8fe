"""Those who read a source's own log while a port stands before it: replicas, go-mysql, Debezium.

`MixedLoad` is what clients do through the port meanwhile. What a reader was told of rows is folded into
tables, which must be the source's. Programs in Go and Java stand in `tests/readers`; what they need
is fetched by `go` and `mvn`, and lands in `.run/suites`.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pymysql
from pymysql.constants import CLIENT

from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.packets.execution import Execution
from binlane.log.codec.types import ColumnType
from tests.raw_client import RawClient
from tests.rules import ROOT
from tests.serve_process import ServeProcess, source_position, wait_until
from tests.servers import execute
from tests.suites.packages import fetched, run
from tests.suites.programs import needed

DATABASE: Final = "shop"
GO_MYSQL: Final = "1.14.0"
DEBEZIUM: Final = "3.5.0.Final"
_READERS: Final = ROOT / "tests/readers"
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_STATUS: Final = {"mariadb": "SHOW MASTER STATUS", "mysql": "SHOW BINARY LOG STATUS"}
_END_TIMEOUT_S: Final = 120.0
_ROUND: Final = 30
"""Keys of one round of a session."""
_KEYS: Final = 100_000
"""Keys of one session."""
_SCHEMA: Final = (
    f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4",
    f"USE {DATABASE}",
    "CREATE TABLE items (k INT PRIMARY KEY, v VARCHAR(60)) ENGINE=InnoDB",
    "CREATE TABLE plain (k INT PRIMARY KEY, v VARCHAR(60)) ENGINE=MyISAM",
    "CREATE TABLE told (k INT PRIMARY KEY, v VARCHAR(60)) ENGINE=InnoDB",
    "CREATE TRIGGER tell AFTER INSERT ON items FOR EACH ROW INSERT INTO told VALUES (NEW.k, NEW.v)",
    (
        "CREATE PROCEDURE two(n INT) BEGIN START TRANSACTION; INSERT INTO items VALUES (n, 'p');"
        " INSERT INTO items VALUES (n + 1, 'q'); COMMIT; END"
    ),
)

Row = tuple[str | None, ...]
Tables = Mapping[str, Mapping[str, Row]]
"""By name, and the text of the first column, which is the key."""


class MixedLoad:
    """Sessions through a port that do all kinds of statements, from `with` to the end of its block.

    Attributes:
        rounds: How often all of it was done, by all sessions.
        has_ddl: Whether they make, alter and drop tables, too.
    """

    def __init__(self, serve: ServeProcess, *, sessions: int = 3) -> None:
        """Make the objects, through the port."""
        self.rounds = 0
        self.has_ddl = True
        self._serve = serve
        self._file = serve.directory / "rows.txt"
        self._file.write_text("1\tone\n2\ttwo\n")
        self._is_over = threading.Event()
        self._failures: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._work, args=(number,)) for number in range(sessions)
        ]
        serve.execute_as_root(*_SCHEMA)

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
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        if error is None and self._failures:
            raise self._failures[0]

    def wait_for_rounds(self, count: int) -> None:
        """Wait until so many more were done."""
        wanted = self.rounds + count
        wait_until(lambda: self.rounds >= wanted or bool(self._failures), _END_TIMEOUT_S)

    def _work(self, number: int) -> None:
        try:
            with (
                pymysql.connect(
                    host="127.0.0.1",
                    port=self._serve.port,
                    user="root",
                    database=DATABASE,
                    autocommit=True,
                    local_infile=True,
                    client_flag=CLIENT.MULTI_STATEMENTS,
                    ssl_disabled=True,
                ) as session,
                session.cursor() as cursor,
                RawClient(self._serve.port, database=DATABASE) as raw,
            ):
                prepared = raw.prepare("INSERT INTO items VALUES (?, 'by the protocol')")
                for first in range(number * _KEYS + 1, (number + 1) * _KEYS, _ROUND):
                    if self._is_over.is_set():
                        return
                    for statement in self._round(first):
                        cursor.execute(statement)
                        while cursor.nextset():
                            pass
                    raw.execute(
                        Execution(
                            statement_id=prepared, types=(ColumnType.LONG,), values=(first + 25,)
                        )
                    )
                    self.rounds += 1
        except BaseException as error:
            self._failures.append(error)
            raise

    def _round(self, k: int) -> Iterator[str]:
        yield f"INSERT INTO items VALUES ({k}, 'alone')"
        yield f"INSERT INTO plain VALUES ({k}, 'alone')"
        yield "BEGIN"
        yield f"INSERT INTO items VALUES ({k + 1}, 'é together')"
        yield f"UPDATE items SET v = CONCAT(v, '!') WHERE k = {k}"
        yield "SAVEPOINT s"
        yield f"DELETE FROM items WHERE k = {k}"
        yield "ROLLBACK TO s"
        yield "COMMIT"
        yield "CREATE TEMPORARY TABLE own (k INT, v VARCHAR(60))"
        yield f"INSERT INTO own VALUES ({k + 2}, 'temporary'), ({k + 3}, NULL)"
        yield "INSERT INTO items SELECT k, v FROM own"
        yield "DROP TEMPORARY TABLE own"
        yield f"CALL two({k + 4})"
        yield f"XA START 'x{k}'"
        yield f"INSERT INTO items VALUES ({k + 6}, 'xa')"
        yield f"XA END 'x{k}'"
        yield f"XA COMMIT 'x{k}' ONE PHASE"
        yield f"XA START 'y{k}'"
        yield f"INSERT INTO items VALUES ({k + 7}, 'xa in two phases')"
        yield f"XA END 'y{k}'"
        yield f"XA PREPARE 'y{k}'"
        yield f"XA COMMIT 'y{k}'"
        yield f"LOAD DATA LOCAL INFILE '{self._file}' INTO TABLE items (@n, v) SET k = {k + 7} + @n"
        yield (
            f"INSERT INTO items VALUES ({k + 10}, 'one'); SET @a = {k + 11}; "
            "INSERT INTO items VALUES (@a, 'packet'); SELECT 1"
        )
        yield "PREPARE one FROM 'INSERT INTO items VALUES (?, ''prepared'')'"
        yield f"SET @k = {k + 12}"
        yield "EXECUTE one USING @k"
        yield "DEALLOCATE PREPARE one"
        if self.has_ddl:
            yield from self._ddl(k)
        yield "BEGIN"
        yield f"INSERT INTO items VALUES ({k + 13}, 'taken back')"
        yield "ROLLBACK"
        yield f"DELETE FROM items WHERE k = {k + 1}"
        yield f"UPDATE items SET k = {k + 14} WHERE k = {k + 12}"

    def _ddl(self, k: int) -> Iterator[str]:
        yield f"CREATE TABLE made_{k} (k INT PRIMARY KEY, v VARCHAR(60))"
        yield f"INSERT INTO made_{k} VALUES (1, 'made'), (2, 'too')"
        yield f"ALTER TABLE made_{k} ADD COLUMN w INT"
        yield f"UPDATE made_{k} SET w = k + 1 WHERE k = 2"
        yield f"CREATE INDEX i ON made_{k} (v)"
        if k // _ROUND % 4:
            yield f"DROP TABLE made_{k}"


def tables_of(server: PrivateServer) -> Tables:
    """The tables of the load's database."""
    names = execute(server, f"SHOW FULL TABLES IN {DATABASE} WHERE Table_type = 'BASE TABLE'")
    return {
        str(name): {
            str(row[0]): tuple(None if value is None else str(value) for value in row)
            for row in execute(server, f"SELECT * FROM {DATABASE}.{name}")
        }
        for name, _ in names
    }


class Reader:
    """A program that follows a server and writes to a file what it is told.

    Attributes:
        folder: Holds what it has written, and its log.
    """

    def __init__(self, folder: Path, server: PrivateServer) -> None:
        self.folder = folder
        folder.mkdir()
        self._server = server
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it goes on where it was."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._command(), stdout=log, stderr=log)

    def end(self, number: signal.Signals) -> None:
        """End it by a signal."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(_END_TIMEOUT_S)
            self._process = None

    def wait_until_equal(self, wanted: Tables) -> None:
        """Wait until it was told of these tables as they are now."""

        def is_so() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self._log()
            return self.tables(wanted) == wanted

        try:
            wait_until(is_so, _END_TIMEOUT_S)
        except AssertionError as error:
            found = self.tables(wanted)
            different = [
                (name, key, found[name].get(key), row)
                for name, rows in wanted.items()
                for key, row in rows.items()
                if found[name].get(key) != row
            ]
            raise AssertionError((different[:5], self._log())) from error

    def tables(self, wanted: Tables) -> Tables:
        """What was told of these tables, folded."""
        found: dict[str, dict[str, Row]] = {name: {} for name in wanted}
        for table, before, after in self.changes():
            rows = found.get(table)
            if rows is None:
                continue
            if before is not None:
                rows.pop(str(before[0]), None)
            if after is not None:
                rows[str(after[0])] = after
        for name, rows in found.items():
            # A column that was added later is NULL in rows that were told before.
            width = max((len(row) for row in wanted[name].values()), default=0)
            for key, row in rows.items():
                rows[key] = (*row, *[None] * (width - len(row)))
        return found

    def changes(self) -> Iterator[tuple[str, Row | None, Row | None]]:
        """Table, row before and row after of each change of the load's database, in order."""
        raise NotImplementedError

    def _command(self) -> Sequence[str]:
        raise NotImplementedError

    def _lines(self) -> Iterator[Any]:
        path = self.folder / "changes"
        for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
            if line.endswith(b"\n"):
                yield json.loads(line)

    def _log(self) -> str:
        return (self.folder / "log").read_text()[-4000:]


class GoReader(Reader):
    """go-mysql, from where the server is now.

    Args:
        way: `syncer` or `canal`, and `file` or `gtid`.
    """

    def __init__(self, folder: Path, server: PrivateServer, way: str) -> None:
        super().__init__(folder, server)
        self._way = way
        ((file, position, *_),) = execute(server, _STATUS[server.program.scheme])
        is_by_gtid = way.endswith("gtid")
        self._place = str(source_position(server)) if is_by_gtid else f"{file}:{position}"

    def changes(self) -> Iterator[tuple[str, Row | None, Row | None]]:
        """As `Reader`."""
        for line in self._lines():
            database, _, table = line.get("table", "").partition(".")
            if database == DATABASE:
                before, after = line.get("before"), line.get("after")
                yield table, before and tuple(before), after and tuple(after)

    def _command(self) -> Sequence[str]:
        return [
            str(_go_program()),
            *(str(self._server.port), self._server.program.scheme, self._way),
            *(str(self.folder / "changes"), self._place),
        ]


class DebeziumReader(Reader):
    """Debezium's embedded engine; it takes a snapshot at its first start."""

    @property
    def is_behind_snapshot(self) -> bool:
        """Whether it was told of a change since its snapshot."""
        return any(line["op"] != "r" for line in self._lines())

    def changes(self) -> Iterator[tuple[str, Row | None, Row | None]]:
        """As `Reader`."""
        for line in self._lines():
            yield str(line["source"]["table"]), _texts(line["before"]), _texts(line["after"])

    def _command(self) -> Sequence[str]:
        folder = _debezium()
        return [
            *(needed("java"), "-Xmx512m", "-cp", f"{folder}/jars/*:{folder}", "DebeziumReader"),
            *(str(self._server.port), self._server.program.scheme, DATABASE, str(self.folder)),
        ]


def _texts(row: Mapping[str, object] | None) -> Row | None:
    if row is None:
        return None
    return tuple(None if value is None else str(value) for value in row.values())


def _go_program() -> Path:
    """The program with go-mysql; skips the test where it cannot be made."""

    def fetch(folder: Path) -> None:
        shutil.copytree(_READERS / "go", folder, dirs_exist_ok=True)
        go = {"GOPATH": str(folder / "go"), "GOCACHE": str(folder / "cache")}
        run(["go", "mod", "download"], folder, go)
        run(["go", "build", "-o", "reader", "."], folder, go)
        run(["chmod", "--recursive", "u+w", "."], folder)

    needed("go")
    return fetched(f"go-mysql-{GO_MYSQL}", fetch) / "reader"


def _debezium() -> Path:
    """The folder with Debezium and the program; skips the test where it cannot be had."""

    def fetch(folder: Path) -> None:
        shutil.copytree(_READERS / "debezium", folder, dirs_exist_ok=True)
        options = ["--quiet", "--batch-mode", f"-Dmaven.repo.local={folder / 'repository'}"]
        run(["mvn", *options, _COPY, f"-DoutputDirectory={folder / 'jars'}"], folder)
        run(["javac", "-cp", f"{folder}/jars/*", "DebeziumReader.java"], folder)

    needed("mvn")
    needed("javac")
    return fetched(f"debezium-{DEBEZIUM}", fetch)
