"""Routed binlogs, printed by the official tool and run on a server, give the tables in their scope.

Servers as for `test_cat_replay`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.query import QueryEvent
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from tests.final_tables import Client, expected
from tests.fixture_sets import FixtureSet, fixture_set
from tests.routed_files import routed, written
from tests.system.test_cat_replay import OPTIONS, other_client, replayed

# What stands in no statement: rows that triggers of an ignored table write, objects whose CREATE
# names it and is left out, and which are altered later.
_UNTOLD = ("netstream", "format_statement", "stored")
_EXPECTED = ("ERROR 1062 ", "ERROR 1146 ")
"""Statements that failed on their source, too; GRANT on a table that is ignored."""

_MARIADB = ("mariadb-binlog", "--no-defaults", "--verify-binlog-checksum")


@pytest.fixture(scope="module")
def own_client(server_directory: Path) -> Iterator[tuple[Client, Sequence[str]]]:
    with PrivateServer.start(server_directory, name="routed", options=OPTIONS) as server:
        command = ("mariadb", "--no-defaults", "--user=root", f"--socket={server.socket_path}")
        client = Client(command)
        yield client, client.users()


def tables_of(fixtures: FixtureSet) -> list[TableName]:
    """The tables that there are at the end, the one with most rows first."""
    found = []
    for path, data in fixtures.files.items():
        if path.startswith("final/"):
            head = json.loads(data.split(b"\n", 1)[0])
            found.append((-data.count(b"\n"), TableName(head["db"], head["table"])))
    return [table for _, table in sorted(found)]


def databases_made(fixtures: FixtureSet) -> bytes:
    """The statements of a log that make databases."""
    statements = [
        event.body.query
        for file, data in fixtures.binlogs
        for event in walk([data], file=file)
        if isinstance(event.body, QueryEvent)
        and event.body.query.upper().startswith(b"CREATE DATABASE")
    ]
    # Their source's character set, which tables have where they name none.
    return b"SET collation_server = 45;\n" + b";\n".join((*statements, b""))


def check(
    name: str, tool: Sequence[str], client: Client, users: Sequence[str], directory: Path
) -> None:
    fixtures = fixture_set(name)
    tables = tables_of(fixtures)
    paths = written(name, directory / "in")
    compared = 0
    for number, scope in enumerate((f"LOG({tables[0]})", f"IGNORE({tables[0]})")):
        out = directory / f"out{number}"
        report = routed(paths, out, scope)
        if report.counts["b1"].incidents:
            continue
        files = sorted(path for path in (out / "b1").iterdir() if path.suffix != ".index")
        text = subprocess.run([*tool, *map(str, files)], capture_output=True, check=True).stdout
        client.empty(users)
        # A binlog of tables does not make their databases.
        made = b"" if number else databases_made(fixtures)
        errors = client.run(made + text)
        assert all(error.startswith(_EXPECTED) for error in errors), errors
        for table in tables[:1] if number == 0 else tables[1:]:
            final = fixtures.final(f"{table.database}.{table.table}")
            assert client.contents(table, final) == Counter(expected(final)), table
            compared += 1
    assert compared or len(tables) == 1 or report.counts["b1"].incidents


@pytest.mark.parametrize("name", [n for n in replayed("md1011") if not n.endswith(_UNTOLD)])
def test_replay(name: str, own_client: tuple[Client, Sequence[str]], tmp_path: Path) -> None:
    check(name, _MARIADB, *own_client, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in replayed("my97") if not n.endswith(_UNTOLD)])
def test_replay_on_mysql(name: str, tmp_path: Path) -> None:
    tool = shlex.split(os.environ.get("BINLANE_MYSQLBINLOG", "mysqlbinlog"))
    resets = "RESET BINARY LOGS AND GTIDS"
    client = other_client("BINLANE_REPLAY_MYSQL", resets)
    check(name, [*tool, "--verify-binlog-checksum"], *client, tmp_path)
