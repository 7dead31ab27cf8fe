"""Dumps of the servers' own tools are restored through the port, and replicas of its binlogs equal.

What is dumped is `tests/dumped_schema.sql`: all kinds of objects, made in several sql_modes.
"""

from __future__ import annotations

import difflib
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from tests.lent_servers import LENT
from tests.port_load import OPTIONS
from tests.port_replicas import FollowedBinlogs
from tests.rules import ROOT
from tests.servers import ServerFactory, client_command, dump, execute

_FORMATS: Final = ("STATEMENT", "MIXED", "ROW")
_DATABASES: Final = ("dump_a", "dump b")
_OF_SEQUENCES: Final = "dump_c"
"""Holds what no binlog of statements can have."""
_QUICK: Final = ((), ("--skip-opt", "--create-options", "--single-transaction", "--hex-blob"))
_SLOW: Final = (
    ("--skip-extended-insert", "--complete-insert", "--add-drop-database", "--tz-utc"),
    ("--no-autocommit", "--lock-all-tables", "--skip-disable-keys"),
    ("--skip-add-locks", "--replace", "--add-drop-trigger", "--skip-set-charset"),
    ("--single-transaction", "--insert-ignore", "--order-by-primary", "--flush-logs"),
)
_COMPARED: Final = ("--skip-comments", "--hex-blob", "--order-by-primary")
_ALL: Final = ("--routines", "--events", "--triggers", "--databases")
_RUN: Final = (
    "USE dump_a",
    "INSERT INTO told VALUES (5, 'five')",
    "CALL quoted(6)",
    "CALL slashed('a\\\\b''c')",
    "CALL slashed('é')",
    "CALL copied(1)",
    "SELECT slash()",
    "INSERT INTO told VALUES (7, slash())",
    "SELECT joined(8)",
    "DO joined(9)",
    "UPDATE made_up SET a = a + 10 WHERE a = 3",
    "CALL plain(@o)",
    "SET NAMES latin1, sql_mode = 'NO_BACKSLASH_ESCAPES'",
    r"SET @x = '\', @n = 5",
    "PREPARE told FROM 'INSERT INTO told VALUES (?, ?)'",
    "EXECUTE told USING @n, @x",
    "CALL slashed(@x)",
    "CALL copied(1)",
    "SET NAMES utf8mb4, sql_mode = ''",
    "DELETE FROM `dump b`.of_other WHERE id = 2",
    "ALTER EVENT later COMMENT 'altered'",
    "DROP TABLE texts",
    "DROP PROCEDURE slashed",
)
_RUN_AT_MARIADB: Final = (
    "CALL of_oracle(1)",
    "DROP TABLE hidden_column",
    "DROP PROCEDURE not_read",
)


class Restoring:
    """A source before which a port stands, and a server whose databases are dumped.

    Attributes:
        origin: That server.
        binlogs: The source, the port and replicas of its binlogs.
        flavor: `mariadb` or `mysql`.
    """

    def __init__(self, stack: ExitStack, directory: Path, flavor: str) -> None:
        """Start all; the stack stops them."""
        self.flavor = flavor
        self.binlogs = FollowedBinlogs(stack, directory, _FORMATS, flavor=flavor, begins=False)
        factory = ServerFactory(LENT, directory, "dumped", stack)
        if flavor == "mariadb":
            self.origin = factory.start("origin", (*SOURCE_OPTIONS, *OPTIONS))
        else:
            self.origin = factory.start_mysql("origin", *OPTIONS)
        files = ["dumped_schema.sql", *(["dumped_mariadb.sql"] if flavor == "mariadb" else [])]
        for file in files:
            load(self.origin, self.origin.port, (ROOT / "tests" / file).read_bytes())

    def restore(self, options: Sequence[str], databases: Sequence[str] = _DATABASES) -> None:
        """Restore a dump through the port, in the place of what an earlier one left."""
        port = self.binlogs.serve.port
        dropped = "; ".join(f"DROP DATABASE IF EXISTS `{name}`" for name in databases)
        load(self.origin, port, f"SET foreign_key_checks = 0; {dropped}".encode())
        load(self.origin, port, dump(self.origin, *options, *_ALL, *databases))

    def run(self, statements: Sequence[str]) -> None:
        """Run statements at the origin, and through the port."""
        execute(self.origin, *statements)
        self.binlogs.serve.execute_as_root(*statements)

    def problems(self, databases: Sequence[str] = _DATABASES) -> list[str]:
        """How the source differs from the server that was dumped, and replicas from the source."""
        source = self.binlogs.source
        found = _differences(self.origin, source, databases)
        found += self.binlogs.problems({})
        for name, replica in self.binlogs.replicas.items():
            found += [f"{name}: {line}" for line in _differences(source, replica, databases)]
        return found


def load(server: PrivateServer, port: int, script: bytes) -> None:
    """Have the server's own command-line client run a script."""
    done = subprocess.run(
        [*client_command(server), f"-P{port}", "--default-character-set=utf8mb4"],
        input=script,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]


def _differences(one: PrivateServer, other: PrivateServer, databases: Sequence[str]) -> list[str]:
    first, second = (
        re.sub(
            rb"DISABLE ON (?:SLAVE|REPLICA)",
            b"DISABLE",
            dump(server, *_COMPARED, *_ALL, *databases),
        )
        .decode(errors="replace")
        .splitlines()
        for server in (one, other)
    )
    return list(difflib.unified_diff(first, second, n=0, lineterm=""))


@pytest.fixture(params=["mariadb", "mysql"])
def restoring(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Restoring]:
    with ExitStack() as stack:
        yield Restoring(stack, tmp_path, request.param)


def test_a_dump_is_restored_and_replicas_equal(restoring: Restoring) -> None:
    for options in _QUICK:
        restoring.restore(options)
        assert restoring.problems() == []
    restoring.run(_RUN)
    if restoring.flavor == "mariadb":
        restoring.run(("USE dump_a", *_RUN_AT_MARIADB))
    assert restoring.problems() == []
    if restoring.flavor == "mariadb":
        del restoring.binlogs.replicas["STATEMENT"]
        restoring.binlogs.serve.execute_as_root("DROP BINLOG 'statement'")
        restoring.restore((), [_OF_SEQUENCES])
        assert restoring.problems([_OF_SEQUENCES]) == []
    assert "Traceback" not in restoring.binlogs.serve.log


@pytest.mark.slow
def test_dumps_of_all_kinds_are_restored(restoring: Restoring) -> None:
    for options in _SLOW:
        restoring.restore(options)
        assert restoring.problems() == [], options


_NOT_REPLICATED: Final = [
    f"--ignore-table=mysql.slave_{name}_info" for name in ("master", "relay_log", "worker")
]
"""What a replica of MySQL cannot drop while it is one."""
_ACCOUNTS: Final = "SELECT user, host FROM mysql.user WHERE user <> '' ORDER BY user, host"


def test_a_dump_of_all_databases_is_restored(restoring: Restoring) -> None:
    """It replaces the server's own tables too, accounts and binlane's marks among them."""
    restoring.restore(())
    source, serve = restoring.binlogs.source, restoring.binlogs.serve
    serve.execute_as_root(
        "CREATE USER someone IDENTIFIED BY 'secret'", "GRANT SELECT ON dump_a.* TO someone"
    )
    serve.wait_until_complete("statement")
    everything = dump(
        source, "--all-databases", "--routines", "--events", "--triggers", *_NOT_REPLICATED
    )
    dropped = "; ".join(f"DROP DATABASE `{name}`" for name in _DATABASES)
    load(source, serve.port, f"SET foreign_key_checks = 0; {dropped}; DROP USER someone".encode())
    load(source, serve.port, everything)
    serve.execute_as_root("FLUSH PRIVILEGES")
    restoring.run(_RUN)
    assert restoring.problems() == []
    accounts = execute(source, _ACCOUNTS)
    assert ("someone", "%") in accounts
    for name, replica in restoring.binlogs.replicas.items():
        assert execute(replica, _ACCOUNTS) == accounts, name
    assert "Traceback" not in serve.log
