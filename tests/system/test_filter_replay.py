"""What a filter leaves of a log, run on an empty server, gives exactly the tables that it names."""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pymysql
import pytest

from binlane.filters.events import EventFilter
from binlane.filters.state import FilterState
from binlane.filters.terms import parse_terms
from binlane.grouping.inner import expanded_all
from binlane.grouping.walk import walk
from binlane.names import TableName
from binlane.service.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.service.server_programs import MARIADB
from tests.rename_workload import DATABASES, POOL, RenameWorkload
from tests.replay import binlane, checksums, drop_databases, run_text
from tests.servers import QUICK, connect, execute, mysql_program

_FORMATS: Final = {"mariadb": ("ROW", "STATEMENT", "MIXED"), "mysql": ("ROW", "STATEMENT", "MIXED")}
_STATEMENTS: Final = 120
# A CREATE TABLE … SELECT that is logged as rows commits twice when its text is run.
_OFF: Final = {"mariadb": ("--gtid-strict-mode=OFF",), "mysql": ()}
# A duplicate key, of a table that was made AS SELECT; no DDL in what GTIDs keep from being logged.
# Nor is a table renamed to one that is there.
_REFUSED: Final = frozenset({1050, 1062, 1364, 1786})


@dataclass(frozen=True, slots=True)
class Flavor:
    """A server whose log is filtered, and that runs what is left of it.

    Attributes:
        name: `mariadb` or `mysql`.
        server: The one server for both, one after the other.
    """

    name: str
    server: PrivateServer

    def run(self, text: bytes) -> list[str]:
        """Run a text with the server's own client; the error of each statement that failed."""
        if self.name == "mariadb":
            return run_text(self.server, text)
        folder = os.environ.get("BINLANE_MYSQL")
        client = ["mysql"] if folder is None else [f"{folder}/exec", "/usr/bin/mysql"]
        done = subprocess.run(
            [
                *client,
                *("--no-defaults", "--binary-mode", "--force", "--user=root", "--local-infile=1"),
                f"--socket={self.server.socket_path}",
            ],
            input=text,
            capture_output=True,
            check=False,
        )
        return re.findall(r"ERROR .*", done.stderr.decode(errors="replace"))

    def reset(self) -> None:
        """Drop all databases; begin a new log."""
        drop_databases(self.server)
        execute(
            self.server,
            "RESET MASTER" if self.name == "mariadb" else "RESET BINARY LOGS AND GTIDS",
        )

    def logs(self, directory: Path) -> list[str]:
        """Copies of the server's binlog files."""
        execute(self.server, "FLUSH BINARY LOGS")
        directory.mkdir()
        names = [str(name) for name, *_ in execute(self.server, "SHOW BINARY LOGS")]
        for name in names:
            data = (self.server.data_directory / name).read_bytes()
            (directory / name).write_bytes(data)
        return [str(directory / name) for name in names]


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def flavor(request: pytest.FixtureRequest, server_directory: Path) -> Iterator[Flavor]:
    name = str(request.param)
    options = SOURCE_OPTIONS if name == "mariadb" else MYSQL_SOURCE_OPTIONS
    server = PrivateServer.start(
        server_directory,
        name=f"filtered-{name}",
        options=(*QUICK, *options, *_OFF[name]),
        program=MARIADB if name == "mariadb" else mysql_program(),
    )
    try:
        yield Flavor(name, server)
    finally:
        server.kill()


def work(server: PrivateServer, statements: Iterator[str]) -> None:
    """Run a session; what is refused is passed over."""
    with connect(server) as connection, connection.cursor() as cursor:
        for statement in statements:
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:
                if error.args[0] not in _REFUSED:
                    raise AssertionError(f"{statement}: {error}") from error


def filters(chance: random.Random) -> Iterator[dict[str, list[str]]]:
    """Rules of each kind."""
    some = [str(table) for table in chance.sample(POOL, 4)]
    yield {"do_table": some[:1]}
    yield {"do_table": some}
    yield {"ignore_table": some}
    yield {"do_db": ["crm"]}
    yield {"wild_do_table": ["shop.a%", r"%.a\_b"], "ignore_table": some[:2]}


def wanted(paths: Sequence[str], given: dict[str, list[str]], tables: set[TableName]) -> set[str]:
    """Those tables that there are at the end which the filter follows there."""
    found = EventFilter(FilterState(parse_terms(given)), lambda _: None)
    for path in paths:
        events = walk([Path(path).read_bytes()], file=path)
        for event in expanded_all(events, file=path):
            list(found.feed(event, file=path))
    return {str(table) for table in tables if found.state.includes(table)}


def by_cat(paths: Sequence[str], arguments: Sequence[str], _: Path) -> bytes:
    return binlane("cat", "--quiet", *arguments, *paths)


def by_route(paths: Sequence[str], arguments: Sequence[str], out: Path) -> bytes:
    binlane("route", "--quiet", *arguments, "--out", str(out), *paths)
    made = sorted(str(path) for path in (out / "binlog").iterdir() if path.suffix != ".index")
    return binlane("cat", "--quiet", *made)


def check(flavor: Flavor, seed: int, directory: Path, ways: Sequence[Callable[..., bytes]]) -> None:
    """Compare what every filter leaves with the source's own tables."""
    flavor.reset()
    chance = random.Random(seed)
    workload = RenameWorkload(chance, _FORMATS[flavor.name], is_mariadb=flavor.name == "mariadb")
    work(flavor.server, workload.session(_STATEMENTS))
    tables = checksums(flavor.server)
    assert set(tables) == {str(table) for table in workload.there}
    paths = flavor.logs(directory / "log")
    for number, given in enumerate(filters(chance)):
        expected = {name: tables[name] for name in wanted(paths, given, workload.there)}
        arguments = [
            f"--{option.replace('_', '-')}={name}"
            for option, names in given.items()
            for name in names
        ]
        text = ways[number % len(ways)](paths, arguments, directory / f"out{number}")
        flavor.reset()
        execute(
            flavor.server,
            "SET sql_log_bin = 0",
            *(f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4" for name in DATABASES),
        )
        errors = [error for error in flavor.run(text) if "ERROR 1007" not in error]
        assert errors == [], (seed, given)
        assert checksums(flavor.server) == expected, (seed, given)


@pytest.mark.rule("003:rename-follow")
@pytest.mark.parametrize("seed", [1])
def test_replay_gives_the_tables_that_are_followed(
    seed: int, flavor: Flavor, tmp_path: Path
) -> None:
    check(flavor, seed, tmp_path, (by_cat, by_route))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_long_replay(seed: int, flavor: Flavor, tmp_path: Path) -> None:
    check(flavor, seed, tmp_path, (by_route, by_cat))
