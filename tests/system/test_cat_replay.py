"""What `cat` prints, run by a real client, gives the same tables as what mariadb-binlog prints."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from binlane.service.private_server import PrivateServer
from tests.fixture_sets import fixture_set
from tests.servers import execute

SETS = (
    "md1011_format_row",
    "md1011_format_statement",
    "md1011_format_mixed",
    "md1011_metadata_full",
    "md1011_types_numeric",
    "md1011_charset_clients",
    "md1011_small_row_events",
    "md1011_rotation",
    "md1011_ddl",
    "md1011_load_data_statement",
    "md1011_xa",
    "md1011_compressed",
)
_SYSTEM = "'mysql', 'sys', 'information_schema', 'performance_schema'"


def run_sql(server: PrivateServer, text: bytes) -> list[bytes]:
    """Run a text; the errors of statements that failed on their source too."""
    done = subprocess.run(
        [
            *(
                "mariadb",
                "--no-defaults",
                "--binary-mode",
                "--force",
                "--user=root",
                "--local-infile=1",
            ),
            f"--socket={server.socket_path}",
        ],
        input=text,
        capture_output=True,
        check=False,
    )
    return re.findall(rb"ERROR (\d+)", done.stderr)


def printed(*command: str) -> bytes:
    return subprocess.run(command, capture_output=True, check=True).stdout


def outcome(server: PrivateServer, text: bytes) -> tuple[list[bytes], dict[str, object]]:
    """Run a text on a server made empty; its errors, and the checksum of each table."""
    where = f"WHERE SCHEMA_NAME NOT IN ({_SYSTEM})"
    for (database,) in execute(
        server, f"SELECT SCHEMA_NAME FROM information_schema.SCHEMATA {where}"
    ):
        execute(server, f"DROP DATABASE `{database}`")
    errors = run_sql(server, text)
    where = f"WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN ({_SYSTEM})"
    tables = execute(
        server,
        "SELECT CONCAT('`', TABLE_SCHEMA, '`.`', REPLACE(TABLE_NAME, '`', '``'), '`') "
        f"FROM information_schema.TABLES {where}",
    )
    return errors, {
        str(name): execute(server, f"CHECKSUM TABLE {name}")[0][1] for (name,) in tables
    }


@pytest.fixture(scope="module")
def empty_server(server_directory: Path) -> Iterator[PrivateServer]:
    options = ("--server-id=9", "--log-bin-trust-function-creators=1")
    with PrivateServer.start(server_directory, name="replay", options=options) as server:
        yield server


@pytest.mark.rule("001:readable")
@pytest.mark.parametrize("name", SETS)
def test_replay(name: str, empty_server: PrivateServer, tmp_path: Path) -> None:
    paths = []
    for file, data in fixture_set(name).binlogs:
        (tmp_path / file).write_bytes(data)
        paths.append(str(tmp_path / file))
    official = outcome(empty_server, printed("mariadb-binlog", "--no-defaults", *paths))
    ours = outcome(empty_server, printed(sys.executable, "-m", "binlane", "cat", *paths))
    assert ours == official
    errors, tables = ours
    assert tables
    assert set(errors) <= {b"1062"}
