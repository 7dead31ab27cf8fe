"""Running SQL text on a server with its own client, and what its tables are then."""

from __future__ import annotations

import re
import subprocess
import sys

from binlane.live.provision.private_server import PrivateServer
from tests.servers import execute

_SYSTEM = "'mysql', 'sys', 'information_schema', 'performance_schema'"


def run_text(server: PrivateServer, text: bytes) -> list[str]:
    """Run a text to its end; the error of each statement that failed."""
    done = subprocess.run(
        [
            *("mariadb", "--no-defaults", "--binary-mode", "--force", "--user=root"),
            *("--local-infile=1", f"--socket={server.socket_path}"),
        ],
        input=text,
        capture_output=True,
        check=False,
    )
    return re.findall(r"ERROR .*", done.stderr.decode(errors="replace"))


def binlane(*arguments: str) -> bytes:
    """What a binlane command prints."""
    command = (sys.executable, "-m", "binlane", *arguments)
    return subprocess.run(command, capture_output=True, check=True).stdout


def drop_databases(server: PrivateServer) -> None:
    """Make a server empty."""
    where = f"WHERE SCHEMA_NAME NOT IN ({_SYSTEM})"
    for (database,) in execute(
        server, f"SELECT SCHEMA_NAME FROM information_schema.SCHEMATA {where}"
    ):
        execute(server, f"DROP DATABASE `{database}`")


def checksums(server: PrivateServer) -> dict[str, object]:
    """The checksum of each table, by its quoted name."""
    where = f"WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN ({_SYSTEM})"
    tables = execute(
        server,
        "SELECT CONCAT('`', TABLE_SCHEMA, '`.`', REPLACE(TABLE_NAME, '`', '``'), '`') "
        f"FROM information_schema.TABLES {where}",
    )
    return {str(name): execute(server, f"CHECKSUM TABLE {name}")[0][1] for (name,) in tables}
