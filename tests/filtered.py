"""Servers whose logs are filtered, and the filters that are tried on them."""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pymysql
import pytest

from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB, ServerProgram
from tests.rename_workload import POOL, RenameWorkload
from tests.replay import drop_databases, run_text
from tests.rules import ROOT
from tests.servers import QUICK, connect, execute, mariadb118_program, mysql_program

FORMATS: Final = ("ROW", "STATEMENT", "MIXED")
Given = dict[str, list[str]]
# A CREATE TABLE … SELECT that is logged as rows commits twice when its text is run.
_OFF: Final = ("--gtid-strict-mode=OFF",)
# A duplicate key, of a table that was made AS SELECT; no DDL in what GTIDs keep from being logged.
# Nor is a table renamed to one that is there, or a view made where one is.
_REFUSED: Final = frozenset({1050, 1062, 1364, 1786})


@dataclass(frozen=True, slots=True)
class Flavor:
    """A server whose log is filtered, and that runs what is left of it.

    Attributes:
        name: `mariadb`, `mariadb118` or `mysql`.
        server: The one server for both, one after the other.
    """

    name: str
    server: PrivateServer

    @classmethod
    def start(cls, name: str, directory: Path) -> Flavor:
        """Start its server; skips the test where there is none."""
        program: ServerProgram | None = MARIADB
        if name == "mysql":
            program = mysql_program()
        elif name == "mariadb118":
            program = mariadb118_program()
        if program is None:
            pytest.skip("BINLANE_MARIADB118 names no MariaDB 11.8")
        options = MYSQL_SOURCE_OPTIONS if name == "mysql" else (*SOURCE_OPTIONS, *_OFF)
        server = PrivateServer.start(
            directory, name=f"filtered-{name}", options=(*QUICK, *options), program=program
        )
        return cls(name, server)

    @property
    def is_mariadb(self) -> bool:
        """Whether it is one."""
        return self.name != "mysql"

    def run(self, text: bytes) -> list[str]:
        """Run a text with the server's own client; the error of each statement that failed."""
        if self.is_mariadb:
            return run_text(self.server, text)
        done = subprocess.run(
            [
                *self._tool("mysql"),
                *("--no-defaults", "--binary-mode", "--force", "--user=root", "--local-infile=1"),
                f"--socket={self.server.socket_path}",
            ],
            input=text,
            capture_output=True,
            check=False,
        )
        return re.findall(r"ERROR .*", done.stderr.decode(errors="replace"))

    def printed(self, paths: list[str]) -> bytes:
        """What the server's own tool prints of files."""
        tool = ["mariadb-binlog"] if self.is_mariadb else self._tool("mysqlbinlog")
        return subprocess.run([*tool, *paths], capture_output=True, check=True).stdout

    def _tool(self, name: str) -> list[str]:
        folder = Path(os.environ.get("BINLANE_MYSQL", ROOT / ".run/mysql"))
        return [f"{folder}/exec", f"/usr/bin/{name}"] if (folder / "exec").exists() else [name]

    def reset(self) -> None:
        """Drop all databases; begin a new log."""
        drop_databases(self.server)
        execute(
            self.server,
            "RESET MASTER" if self.is_mariadb else "RESET BINARY LOGS AND GTIDS",
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

    def workload(self, chance: random.Random, *, mixes: bool = False) -> RenameWorkload:
        """A session that it understands."""
        return RenameWorkload(chance, FORMATS, is_mariadb=self.is_mariadb, mixes=mixes)


def work(server: PrivateServer, statements: Iterator[str]) -> None:
    """Run a session; what is refused is passed over."""
    with connect(server) as connection, connection.cursor() as cursor:
        for statement in statements:
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:
                if error.args[0] not in _REFUSED:
                    raise AssertionError(f"{statement}: {error}") from error


def filters(chance: random.Random) -> Iterator[Given]:
    """Rules of each kind."""
    some = [str(table) for table in chance.sample(POOL, 4)]
    yield {"do_table": some[:1]}
    yield {"do_table": some}
    yield {"ignore_table": some}
    yield {"do_db": ["crm"]}
    yield {"wild_do_table": ["shop.a%", r"%.a\_b"], "ignore_table": some[:2]}


def arguments(given: Given) -> list[str]:
    """The same as the commands take them."""
    return [
        f"--{option.replace('_', '-')}={name}" for option, names in given.items() for name in names
    ]
