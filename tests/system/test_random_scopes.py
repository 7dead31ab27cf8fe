"""Random statements on a real server, routed into scopes: nothing outside passes, replicas go on."""

from __future__ import annotations

import random
import re
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.binlogs.routing.remarks import without_comments
from binlane.binlogs.routing.routed_group import OmissionKind
from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import group_events
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.walk import walk
from binlane.log.kernels.load import is_compiled
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.servers import ANY
from tests.final_tables import Client
from tests.routed_files import definitions, outputs, routed
from tests.scope_workload import DATABASES, TABLES, USERS, Workload, outside_words
from tests.servers import connect, mysql_program

SCOPES = (
    "LOG(shop.stab1q, shop.stab2q)",
    "LOG(shop)",
    "IGNORE(shop)",
    "IGNORE(shop.stab1q)",
    "IGNORE(crm)",
    "LOG(shop), IGNORE(shop.stab2q)",
)
_OPTIONS = (*SOURCE_OPTIONS, "--log-bin-trust-function-creators=1")
INCIDENT = "INCIDENT"
Rows = tuple[str, str, str, bytes]
"""GTID, database, table and images; or INCIDENT and the GTID of its group."""
_STOPS = re.compile(rb"^RELOAD DATABASE;.*", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Pair:
    """A source and a server that stands for the replicas.

    Attributes:
        source: Where workloads run.
        replica: What is made by the text of their binlogs.
        client: Of the replica.
        users: That it has by itself.
        tool: Prints binlog files.
        is_mysql: Whether they are MySQL.
    """

    source: PrivateServer
    replica: PrivateServer
    client: Client
    users: Sequence[str]
    tool: Sequence[str] = ("mariadb-binlog", "--no-defaults")
    is_mysql: bool = False


@pytest.fixture(scope="module")
def pair(server_directory: Path) -> Iterator[Pair]:
    with (
        PrivateServer.start(server_directory, name="randomsource", options=_OPTIONS) as source,
        PrivateServer.start(
            server_directory,
            name="randomreplica",
            options=("--server-id=2", "--log-bin-trust-function-creators=1"),
        ) as replica,
    ):
        command = ("mariadb", "--no-defaults", "--user=root", f"--socket={replica.socket_path}")
        client = Client(command)
        yield Pair(source, replica, client, client.users())


@pytest.fixture(scope="module")
def mysql_pair(server_directory: Path) -> Iterator[Pair]:
    program = mysql_program()
    if program.folder is None:
        pytest.skip("the machine's own MySQL comes without a place for its tools")
    run = (str(program.folder / "exec"),)
    options = ("--log-bin-trust-function-creators=1",)
    with (
        PrivateServer.start(
            server_directory,
            name="randommysql",
            options=(*MYSQL_SOURCE_OPTIONS, *options),
            program=program,
        ) as source,
        PrivateServer.start(
            server_directory,
            name="randommysqlreplica",
            options=("--server-id=2", "--skip-log-bin", *options),
            program=program,
        ) as replica,
    ):
        login = ("--no-defaults", "--user=root", f"--socket={replica.socket_path}")
        client = Client((*run, "/usr/bin/mysql", *login))
        tool = (*run, "/usr/bin/mysqlbinlog", "--no-defaults", "--skip-gtids")
        users = [user for user in client.users() if user not in USERS]
        yield Pair(source, replica, client, users, tool, is_mysql=True)


def emptied(connection: Connection[Cursor]) -> None:
    """Forget what a workload before made, and its log."""
    with connection.cursor() as cursor:
        for database in ("shop", "crm"):
            cursor.execute(f"DROP DATABASE IF EXISTS {database}")
        for user in USERS:
            cursor.execute(f"DROP USER IF EXISTS {user}")
        cursor.execute("SELECT VERSION()")
        ((version,),) = cursor.fetchall()
        is_mysql = "mariadb" not in str(version).lower()
        cursor.execute("RESET BINARY LOGS AND GTIDS" if is_mysql else "RESET MASTER")


def run(connection: Connection[Cursor], workload: Workload, count: int) -> list[str]:
    """Run a workload; what was run."""
    done = []
    with connection.cursor() as cursor:
        for statement in workload.session(count):
            done.append(statement)
            try:
                cursor.execute(statement)
            except pymysql.err.MySQLError as error:
                done[-1] += f"  -- {error}"
            cursor.execute("SELECT DATABASE()")
            ((database,),) = cursor.fetchall()
            workload.database = database or ""
        for statement in ("ROLLBACK", "SET SESSION binlog_format = ROW"):
            cursor.execute(statement)
    return done


def logged(pair: Pair) -> tuple[str, ...]:
    """The source's files, all of them ended."""
    with connect(pair.source) as connection, connection.cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        names = [str(row[0]) for row in cursor.fetchall()]
    return tuple(str(pair.source.directory / "data" / name) for name in names[:-1])


def scope_of(clauses: str) -> Scope:
    return definitions(clauses)[0].scope


def leaks(out: Path) -> list[str]:
    """Words that stand where they must not, with the binlog."""
    found = []
    for number, clauses in enumerate(SCOPES, 1):
        for path in (out / f"b{number}").iterdir():
            data = path.read_bytes()
            for word in outside_words(scope_of(clauses)):
                at = data.find(word.encode())
                if at >= 0:
                    near = data[max(0, at - 150) : at + 80]
                    found.append(f"{clauses}: {word} in {near!r}")
    return found


def replay_errors(pair: Pair, directory: Path, clauses: str) -> list[str]:
    """What a server says that is made by a binlog, up to its first INCIDENT."""
    files = sorted(path for path in directory.iterdir() if path.suffix != ".index")
    text = subprocess.run([*pair.tool, *map(str, files)], capture_output=True, check=True).stdout
    text = _STOPS.sub(b"", text)
    pair.client.empty(pair.users)
    scope = scope_of(clauses)
    made = [name for name in ("shop", "crm") if not scope.includes_database(name)]
    # A binlog of tables does not make their databases; their source's set them so.
    before = "".join(
        f"CREATE DATABASE {name} CHARACTER SET latin1;\n"
        for name in made
        if scope.touches_database(name)
    )
    return pair.client.run(before.encode() + text)


def rows_of(server: PrivateServer, table: str) -> object:
    with connect(server) as connection, connection.cursor() as cursor:
        try:
            cursor.execute(f"SELECT * FROM {table} ORDER BY a")
            return cursor.fetchall()
        except pymysql.err.ProgrammingError as error:
            return error.args[0]


def objects_of(server: PrivateServer) -> set[tuple[str, ...]]:
    """All views, routines, triggers and events, with what they are made of."""
    queries = (
        "SELECT 'view', TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS",
        (
            "SELECT ROUTINE_TYPE, ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_DEFINITION"
            " FROM information_schema.ROUTINES"
        ),
        (
            "SELECT EVENT_OBJECT_TABLE, TRIGGER_SCHEMA, TRIGGER_NAME, ACTION_STATEMENT"
            " FROM information_schema.TRIGGERS"
        ),
        "SELECT 'event', EVENT_SCHEMA, EVENT_NAME, EVENT_DEFINITION FROM information_schema.EVENTS",
    )
    found: set[tuple[str, ...]] = set()
    with connect(server) as connection, connection.cursor() as cursor:
        for query in queries:
            cursor.execute(query)
            found.update(cursor.fetchall())
    return {
        (
            kind,
            database,
            name,
            without_comments(text, ANY),
        )
        for kind, database, name, text in found
        if database in DATABASES
    }


def rows_in(paths: Iterable[str], *, without: Collection[str] = ()) -> Counter[Rows]:
    """The changes of rows in a log by their groups' GTIDs, but for groups left aside."""
    found: Counter[Rows] = Counter()
    for path in paths:
        groups = list(group_events(walk([Path(path).read_bytes()], file=path), file=path))
        first = groups[0].events[0].body
        assert isinstance(first, FormatDescriptionEvent)
        for group in groups:
            gtid = str(group.gtid)
            if group.gtid is None or gtid in without:
                continue
            if any(event.header.type_code == EventType.INCIDENT for event in group.events):
                found[INCIDENT, gtid, "", b""] += 1
            changes = rows_with_tables(group.events, file=path, format_=first.format)
            for _, body, table in changes:
                found[gtid, table.database, table.table, body.images] += 1
    return found


def check_union(paths: Sequence[str], out: Path) -> None:
    """A database and all but that database make the source's log."""
    both: Counter[Rows] = Counter()
    for clauses in ("LOG(shop)", "IGNORE(shop)"):
        directory = out / f"b{SCOPES.index(clauses) + 1}"
        files = sorted(path for path in directory.iterdir() if path.suffix != ".index")
        both += rows_in(map(str, files))
    stopped = {key[1] for key in both if key[0] == INCIDENT}
    kept = {key: n for key, n in both.items() if key[0] != INCIDENT and key[0] not in stopped}
    assert kept == rows_in(paths, without=stopped)


def check(  # what is run, and where
    pair: Pair,
    seed: int,
    count: int,
    directory: Path,
    *,
    edges: bool = False,
    statements: bool = False,
) -> None:
    workload = Workload(
        random.Random(seed), edges=edges, statements=statements, is_mysql=pair.is_mysql
    )
    with connect(pair.source) as connection:
        emptied(connection)
        done = run(connection, workload, count)
    (directory / "statements.sql").write_text(";\n".join(done))
    paths = logged(pair)
    report = routed(paths, directory / "out", *SCOPES, uses_kernels=False)
    assert report.fault is None
    assert leaks(directory / "out") == []
    if is_compiled(("copying", "scan")):
        routed(paths, directory / "fast", *SCOPES)
        assert outputs(directory / "fast") == outputs(directory / "out")
    check_union(paths, directory / "out")
    for number, clauses in enumerate(SCOPES, 1):
        errors = replay_errors(pair, directory / "out" / f"b{number}", clauses)
        assert errors == [], (clauses, errors)
        counts = report.counts[f"b{number}"]
        if counts.incidents:
            continue
        assert objects_of(pair.replica) - objects_of(pair.source) == set(), clauses
        if counts.omissions[OmissionKind.STATEMENT.value]:
            continue  # what triggers made of a statement is in no log
        for table in (name for names in TABLES.values() for name in names):
            if scope_of(clauses).includes(table):
                mine, theirs = (rows_of(one, str(table)) for one in (pair.source, pair.replica))
                assert mine == theirs, (clauses, table, mine, theirs)


def sampled(count: int, *, usual: int) -> list[Any]:
    """Seeds, of which only the first few are for the usual run."""
    return [*range(usual), *(pytest.param(n, marks=pytest.mark.slow) for n in range(usual, count))]


@pytest.mark.parametrize("seed", sampled(6, usual=3))
def test_nothing_outside_passes_and_replicas_go_on(pair: Pair, seed: int, tmp_path: Path) -> None:
    check(pair, seed, 60, tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_nothing_outside_passes_at_the_edges(pair: Pair, seed: int, tmp_path: Path) -> None:
    check(pair, seed, 60, tmp_path, edges=True, statements=True)


@pytest.mark.parametrize("seed", sampled(3, usual=2))
def test_nothing_outside_of_mysql_passes(mysql_pair: Pair, seed: int, tmp_path: Path) -> None:
    check(mysql_pair, seed, 60, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300, 360))
def test_nothing_outside_of_mysql_passes_in_the_long_run(
    mysql_pair: Pair, seed: int, tmp_path: Path
) -> None:
    check(mysql_pair, seed, 120, tmp_path, edges=seed % 2 == 1, statements=seed % 4 == 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_nothing_outside_passes_in_the_long_run(pair: Pair, seed: int, tmp_path: Path) -> None:
    check(pair, seed, 150, tmp_path, edges=seed % 2 == 1, statements=seed % 4 == 3)
