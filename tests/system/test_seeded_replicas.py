"""Replicas that are seeded by a dump through the port, under load: nothing is missing, nothing twice."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB
from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.port_replicas import replica_status
from tests.replica_load import OPTIONS, ReplicaLoad
from tests.replica_matrix import tables
from tests.serve_process import ServeProcess, wait_until
from tests.servers import connect, execute, mysql_program

_LOGIN: Final = ("-h127.0.0.1", "-uroot")


def _dumped(serve: ServeProcess, flavor: str) -> bytes:
    """A copy of the scope with where it stands, as an administrator takes it."""
    if flavor == "mariadb":
        command: Sequence[str] = (
            *("mariadb-dump", "--no-defaults", *_LOGIN, f"-P{serve.port}"),
            *("--single-transaction", "--master-data", "--gtid", "--databases", "shop"),
        )
    else:
        folder = mysql_program().folder
        if folder is None:
            pytest.skip("mysqldump is looked for where MySQL was unpacked")
        command = (
            *(str(folder / "exec"), "/usr/bin/mysqldump", "--no-defaults", *_LOGIN),
            *(f"-P{serve.port}", "--ssl-mode=DISABLED", "--get-server-public-key"),
            *("--single-transaction", "--source-data", "--databases", "shop"),
        )
    return _run(command)


def _run(command: Sequence[str], text: bytes = b"") -> bytes:
    """What a client prints."""
    done = subprocess.run(command, input=text, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def _load(replica: PrivateServer, text: bytes, flavor: str) -> None:
    program: Sequence[str] = ("mariadb",)
    if flavor == "mysql":
        program = (str(mysql_program().folder) + "/exec", "/usr/bin/mysql")
    _run([*program, "--no-defaults", "-uroot", f"--socket={replica.socket_path}"], text)


def _follow(replica: PrivateServer, port: int, flavor: str, way: str) -> None:
    """Go on where the dump said, which it has told the replica by its own statements."""
    if flavor == "mysql":
        how = ", SOURCE_AUTO_POSITION=1" if way == "gtid" else ""
        execute(
            replica,
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, "
            "SOURCE_USER='root', SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, "
            f"SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=1000{how}",
            "START REPLICA",
        )
        return
    # With --gtid the dump sets gtid_slave_pos, and has the file and position as a comment.
    execute(
        replica,
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='root', "
        "MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos",
        "START SLAVE",
    )


@pytest.mark.parametrize("flavor, way", [("mariadb", "gtid"), ("mysql", "file"), ("mysql", "gtid")])
def test_a_dump_under_load_seeds_a_replica(tmp_path: Path, flavor: str, way: str) -> None:
    program = mysql_program() if flavor == "mysql" else MARIADB
    options = MYSQL_SOURCE_OPTIONS if flavor == "mysql" else SOURCE_OPTIONS
    own = (
        ("--server-id=40", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=own")
        if flavor == "mysql"
        else ("--server-id=40", "--gtid-strict-mode=ON", "--log-bin=own", "--log-slave-updates")
    )
    with ExitStack() as stack:
        source, replica = (
            stack.enter_context(LENT.lend((*each, *OPTIONS), program)) for each in (options, own)
        )
        serve = stack.enter_context(judged(tmp_path / "serve", source))
        serve.execute_as_root("CREATE BINLOG 'orders' LOG(shop)")
        connects = [lambda: serve.connect("root", ""), lambda: connect(source)]
        # No DDL: a copy cannot be taken of tables that come and go, from no server.
        load = ReplicaLoad(source, connects, seed=4, pause_s=0.005, has_ddl=False)
        load.prepare()
        with load:
            time.sleep(1.0)
            text = _dumped(serve, flavor)
            _load(replica, text, flavor)
            _follow(replica, serve.port, flavor, way)
            time.sleep(1.0)
        assert load.counts["done"] > 100
        serve.wait_until_complete("orders")
        expected = {name: value for name, value in tables(source).items() if name[0] == "shop"}

        def is_equal() -> bool:
            status = replica_status(replica)
            assert not status["Last_SQL_Error"], status["Last_SQL_Error"]
            assert not status["Last_IO_Error"], status["Last_IO_Error"]
            return tables(replica) == expected

        wait_until(is_equal)
