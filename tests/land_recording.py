"""Workloads on a server: its log, and at some moments all of its tables as it tells them."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pymysql.connections import Connection
from pymysql.cursors import Cursor
from pymysql.err import MySQLError

from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MysqlProgram, ServerProgram
from binlane.names import TableName, quote
from tests.land_workload import DATABASES, POOL, RECONNECT, SESSIONS, LandWorkload, Said
from tests.servers import QUICK, connect

_NO_DDL: Final = frozenset(
    {
        *("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "SELECT", "SET", "USE", "XA", "FLUSH"),
        *("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"),
    }
)
_CASCADES: Final = re.compile(r"ON (DELETE|UPDATE) (CASCADE|SET)")


@dataclass(frozen=True, slots=True)
class Contents:
    """A table as the server told it.

    Attributes:
        names: Of its columns.
        rows: Their values as text, as the server sends it.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[bytes | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """A place in a log, and the server's tables there.

    Attributes:
        sizes: How much of each file there was.
        tables: All there were.
    """

    sizes: dict[str, int]
    tables: dict[TableName, Contents]


@dataclass(slots=True)
class Recording:
    """What a server did.

    Attributes:
        log: The folder of its binlog files.
        said: The statements, also those that failed.
        moments: At which its tables were read, in order.
        changed: Names of tables that DDL touched beyond making them, or foreign keys did.
        refused: Statements by the number of their error.
    """

    log: Path
    said: list[Said | None] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    refused: Counter[int] = field(default_factory=Counter)


class Source:
    """A server that workloads run on, one after the other.

    Args:
        directory: Gets its data.
        program: The server.
    """

    def __init__(self, directory: Path, program: ServerProgram) -> None:
        self.is_mariadb = not isinstance(program, MysqlProgram)
        options = SOURCE_OPTIONS if self.is_mariadb else MYSQL_SOURCE_OPTIONS
        self.server = PrivateServer.start(
            directory, name="source", options=(*QUICK, *options), program=program
        )
        self._watcher = connect(self.server, conv={}, use_unicode=False, charset="utf8mb4")
        ((version,),) = self.ask("SELECT VERSION()")
        self.name = (
            f"{'MariaDB' if self.is_mariadb else 'MySQL'} {'.'.join(version.split('.')[:2])}"
        )

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Rows as texts, by a session of its own."""
        return [tuple(_text(value) for value in row) for row in self._raw(query)]

    def _raw(self, query: str) -> Sequence[tuple[bytes | None, ...]]:
        cursor: Cursor = self._watcher.cursor()
        cursor.execute(query)
        return list(cursor.fetchall())

    def record(self, directory: Path, portions: Iterable[Iterable[Said]]) -> Recording:
        """Run a workload on an empty server; its tables are read behind each portion."""
        recording = Recording(directory)
        first = self._empty()
        sessions = [self._session() for _ in range(SESSIONS)]
        try:
            for said in portions:
                for each in said:
                    recording.said.append(each)
                    self._run(each, sessions, recording)
                recording.said.append(None)
                recording.moments.append(self._moment(first))
        finally:
            for session in sessions:
                session.close()
        for (name,) in self.ask("SELECT @@log_bin_basename"):
            for file in recording.moments[-1].sizes:
                shutil.copyfile(Path(name).parent / file, directory / file)
        return recording

    def workload(self, chance: random.Random, count: int, rare: float) -> Iterator[Iterator[Said]]:
        """A workload in two or three portions; `rare` as of `LandWorkload`."""
        made = LandWorkload(chance, self.ask, is_mariadb=self.is_mariadb, rare=rare)
        portions = chance.choice((2, 3))
        for number in range(portions):
            yield _portion(made, count // portions, is_first=not number)

    def _empty(self) -> str:
        """Drop what an earlier workload left; the log file that begins then."""
        for xid in self.ask("XA RECOVER"):
            total, branch = int(xid[1]), str(xid[3])
            name = f"'{branch[:total]}','{branch[total:]}'"
            with suppress(MySQLError):  # "it was rolled back"
                self._raw(f"XA ROLLBACK {name}")
        self._raw("SET foreign_key_checks = 0")
        for database in DATABASES:
            self._raw(f"DROP DATABASE IF EXISTS {database}")
        self._raw("SET time_zone = '+00:00'")
        if self.is_mariadb:
            self._raw("SET GLOBAL log_bin_compress = 0, log_bin_compress_min_len = 10")
        self._raw("FLUSH BINARY LOGS")
        return str(self.ask("SHOW BINARY LOGS")[-1][0])

    def _session(self) -> Connection[Cursor]:
        return connect(self.server, charset="utf8mb4")

    def _run(self, said: Said, sessions: list[Connection[Cursor]], recording: Recording) -> None:
        if said.text == RECONNECT:
            sessions[said.session].close()
            sessions[said.session] = self._session()
            return
        text = said.text.replace("@FILES@", str(self.server.directory / "files"))
        for file in re.findall(r"OUTFILE '(.*?)'", text):
            Path(file).unlink(missing_ok=True)
        try:
            with sessions[said.session].cursor() as cursor:
                cursor.execute(text)
        except MySQLError as error:
            recording.refused[error.args[0]] += 1
            return
        words = text.split()
        if words[0] in _NO_DDL:
            return
        is_new = words[0] == "CREATE" and words[1] == "TABLE" and "LIKE" not in words
        if is_new and not _CASCADES.search(text) and text.count("`.`") == 1:
            return
        recording.changed |= {table.plain for table in POOL if quote(table.table) in text}
        if text.startswith("DROP DATABASE"):
            recording.changed |= {table.plain for table in POOL if table.database in text}

    def _moment(self, first: str) -> Moment:
        tables = {}
        kinds = "table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"
        where = f"table_schema IN {DATABASES} AND {kinds}"
        found = self.ask(
            f"SELECT table_schema, table_name FROM information_schema.tables WHERE {where}"
        )
        for database, table in found:
            name = TableName(database, table)
            columns = self.ask(
                "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema ="
                f" '{database}' AND table_name = '{table}' ORDER BY ordinal_position"
            )
            names = tuple(column for column, _ in columns)
            # Else the bits of a BIT come as bytes, which may be digits.
            shown = [f"{quote(column)}{' + 0' * (kind == 'bit')}" for column, kind in columns]
            rows = self._raw(f"SELECT {', '.join(shown)} FROM {name}")
            tables[name] = Contents(names, tuple(rows))
        sizes = {row[0]: int(row[1]) for row in self.ask("SHOW BINARY LOGS") if row[0] >= first}
        return Moment(sizes, tables)


def _portion(made: LandWorkload, count: int, *, is_first: bool) -> Iterator[Said]:
    if is_first:
        yield from made.begin()
    yield from made.some(count)
    yield from made.rest()


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def statements(said: Iterable[Said | None]) -> str:
    """As `read_statements` reads them."""
    return "".join(f"{each.session}\t{each.text}\n" if each else "\n" for each in said)


def read_statements(text: str) -> list[Said | None]:
    """Statements of a file: session, tab, statement; an empty line where tables are compared."""
    found: list[Said | None] = []
    for line in text.splitlines():
        session, _, statement = line.partition("\t")
        found.append(Said(int(session), statement) if line else None)
    return found


def portions_of(said: Iterable[Said | None]) -> list[list[Said]]:
    """Statements between the places where tables are compared."""
    found: list[list[Said]] = [[]]
    for each in said:
        if each is None:
            found.append([])
        else:
            found[-1].append(each)
    return [portion for portion in found if portion]
