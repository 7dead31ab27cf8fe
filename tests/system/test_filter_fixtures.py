"""What a filter leaves of every recorded log, run on a server, gives the tables that it follows.

Servers as for `test_cat_replay`; MySQL is of the folder that `BINLANE_MYSQL` names. A set whose
statements need other tables, which are left out and noted, is not compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from binlane.binlogs.filters.events import EventFilter
from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.terms import parse_terms
from binlane.live.provision.private_server import PrivateServer
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from tests.final_tables import Client, expected
from tests.fixture_sets import FixtureSet, fixture_set
from tests.replay import binlane
from tests.servers import mysql_program
from tests.system.test_cat_replay import OPTIONS, replayed
from tests.system.test_route_replay import databases_made, tables_of

# Programs and triggers run at the source and again where the log is replayed; rows of other
# servers' connections; tables that can be made only beside those that their keys and defaults refer to.
_UNTOLD = ("netstream", "stored", "accounts", "fk", "sequences")
_EXPECTED = ("ERROR 1062 ", "ERROR 1007 ", "ERROR 1146 ")
"""Statements that failed on their source, too; databases that are there; GRANT on what is not."""
_NOT_MIXED = "is taken"
SAMPLED = {"md1011_txn", "md1011_format_row", "my97_txn"}
SETS = [
    name if name in SAMPLED else pytest.param(name, marks=pytest.mark.slow)
    for name in (*replayed("md1011"), *replayed("my97"))
    if not name.endswith(_UNTOLD)
]


@pytest.fixture(scope="module")
def clients(server_directory: Path) -> Iterator[dict[str, tuple[Client, Sequence[str]]]]:
    """A client of each flavor, as it is asked for."""
    found: dict[str, tuple[Client, Sequence[str]]] = {}
    with ExitStack() as stack:

        class Started(dict[str, tuple[Client, Sequence[str]]]):
            def __missing__(self, flavor: str) -> tuple[Client, Sequence[str]]:
                self[flavor] = started(flavor, server_directory, stack)
                return self[flavor]

        found = Started()
        yield found


def started(flavor: str, directory: Path, stack: ExitStack) -> tuple[Client, Sequence[str]]:
    if flavor == "md1011":
        server = stack.enter_context(
            PrivateServer.start(directory, name="filter-md", options=OPTIONS)
        )
        command = ["mariadb", "--no-defaults", "--user=root"]
        resets = ""
    else:
        program = mysql_program()
        options = (*OPTIONS, "--gtid-mode=OFF_PERMISSIVE", "--local-infile=1")
        server = PrivateServer.start(directory, name="filter-my", options=options, program=program)
        stack.callback(server.kill)
        folder = program.folder
        client = ["mysql"] if folder is None else [str(folder / "exec"), "/usr/bin/mysql"]
        command = [*client, "--no-defaults", "--user=root"]
        resets = "RESET BINARY LOGS AND GTIDS"
    client_of = Client((*command, f"--socket={server.socket_path}"), resets)
    return client_of, client_of.users()


def followed(fixtures: FixtureSet, given: dict[str, list[str]]) -> tuple[set[TableName], list[str]]:
    """The final tables that a filter follows there, and its notes."""
    notes: list[str] = []
    found = EventFilter(FilterState(parse_terms(given)), notes.append)
    for file, data in fixtures.binlogs:
        for event in expanded_all(walk([data], file=file), file=file):
            list(found.feed(event, file=file))
    return {table for table in tables_of(fixtures) if found.state.includes(table)}, notes


@pytest.mark.parametrize("name", SETS)
def test_replay_gives_the_tables_that_are_followed(
    name: str, clients: dict[str, tuple[Client, Sequence[str]]], tmp_path: Path
) -> None:
    fixtures = fixture_set(name)
    paths = []
    for file, data in fixtures.binlogs:
        (tmp_path / file).write_bytes(data)
        paths.append(str(tmp_path / file))
    tables = tables_of(fixtures)
    client, users = clients[name.partition("_")[0]]
    for given in (
        {"do_table": [str(tables[0])]},
        {"ignore_table": [str(tables[0])]},
        {"do_table": [str(table) for table in tables[::2]]},
    ):
        wanted, notes = followed(fixtures, given)
        if any(_NOT_MIXED not in note and "also concerns" in note for note in notes):
            continue
        arguments = [
            f"--{option.replace('_', '-')}={table}" for option in given for table in given[option]
        ]
        text = binlane("cat", "--quiet", "--local-load", str(tmp_path), *arguments, *paths)
        client.empty(users)
        errors = client.run(databases_made(fixtures) + text)
        assert all(error.startswith(_EXPECTED) for error in errors), (given, errors[:3])
        for table in wanted:
            final = fixtures.final(f"{table.database}.{table.table}")
            assert client.contents(table, final) == Counter(expected(final)), (given, table)
