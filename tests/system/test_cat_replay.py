"""What `cat` prints, run by a real client, gives the tables that the log's own server had.

The private server is this machine's MariaDB. Another server is taken where an environment variable
names a client of it: `BINLANE_REPLAY_MARIADB` for sets of all MariaDB versions, and
`BINLANE_REPLAY_MYSQL`, on a server with gtid_mode=OFF_PERMISSIVE, which takes transactions with a
GTID and without one; both need max_allowed_packet=64M. The value is a command such as
`mysql -uroot -S /run/other.sock`. Such a server loses all its databases.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from binlane.live.provision.private_server import PrivateServer
from tests.final_tables import Client, problems
from tests.fixture_sets import fixture_names, fixture_set
from tests.replay import binlane

OPTIONS = (
    "--server-id=9",
    "--log-bin-trust-function-creators=1",
    "--max-allowed-packet=64M",
)
# A statement in them failed on its source, too, and says so in the log.
FAILING = frozenset({"format_statement", "format_mixed", "load_data_statement"})
# A set says whether the official tool's text gives its tables; those of 11.8 say nothing. The
# script of this one writes a row that it does not log.
UNLOGGED = frozenset({"md118_txn"})


def replayed(prefix: str) -> list[str]:
    """Sets whose text gives the final tables, as the official tool's does."""
    names = []
    for name in fixture_names(prefix):
        outcome = fixture_set(name).meta.get("replay_with_official_tool")
        is_encrypted = name.endswith("_encrypted")
        if (
            not is_encrypted
            and name not in UNLOGGED
            and (outcome is None or outcome["final_equal"])
        ):
            names.append(name)
    return names


@pytest.fixture(scope="module")
def own_client(server_directory: Path) -> Iterator[tuple[Client, Sequence[str]]]:
    with PrivateServer.start(server_directory, name="replay", options=OPTIONS) as server:
        command = ("mariadb", "--no-defaults", "--user=root", f"--socket={server.socket_path}")
        client = Client(command)
        yield client, client.users()


def other_client(variable: str, resets: str = "") -> tuple[Client, Sequence[str]]:
    command = os.environ.get(variable)
    if command is None:
        pytest.skip(f"{variable} names no client")
    client = Client(shlex.split(command), resets)
    return client, [user for user in client.users() if user.startswith(("'root'", "'mysql", "'ma"))]


def check(name: str, client: Client, users: Sequence[str], directory: Path) -> None:
    fixtures = fixture_set(name)
    paths = []
    for file, data in fixtures.binlogs:
        (directory / file).write_bytes(data)
        paths.append(str(directory / file))
    text = binlane("cat", "--local-load", str(directory), *paths)
    client.empty(users)
    errors = client.run(text)
    assert problems(client, fixtures) == []
    if name.partition("_")[2] in FAILING:
        assert all("ERROR 1062 " in error for error in errors)
    else:
        assert errors == []


@pytest.mark.rule("001:readable")
@pytest.mark.parametrize("name", replayed("md1011"))
def test_replay(name: str, own_client: tuple[Client, Sequence[str]], tmp_path: Path) -> None:
    check(name, *own_client, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*replayed("md1011"), *replayed("md118")])
def test_replay_on_another_mariadb(name: str, tmp_path: Path) -> None:
    check(name, *other_client("BINLANE_REPLAY_MARIADB"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", replayed("my97"))
def test_replay_on_mysql(name: str, tmp_path: Path) -> None:
    check(name, *other_client("BINLANE_REPLAY_MYSQL", "RESET BINARY LOGS AND GTIDS"), tmp_path)
