"""What a client of the port gets is what its server sends it, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from binlane.codec.packets.commands import encode_query
from binlane.codec.packets.execution import Execution
from binlane.codec.packets.flags import Capability, Command
from binlane.codec.types import ColumnType
from binlane.service.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.service.server_programs import MARIADB
from tests.judged_port import judged
from tests.raw_client import CAPABILITIES, RawClient
from tests.serve_process import ServeProcess
from tests.servers import QUICK, execute, mysql_program

_SETUP: Final = (
    "CREATE DATABASE wire",
    "CREATE TABLE wire.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(10))",
    "CREATE PROCEDURE wire.p() BEGIN SELECT 1; UPDATE t SET v = 'z' ORDER BY id; END",
)
_STATEMENTS: Final = (
    "INSERT INTO t (v) VALUES ('a')",
    "INSERT INTO t (v) VALUES ('a'), ('b')",
    "INSERT IGNORE INTO t (v) VALUES (REPEAT('x', 99))",
    "UPDATE t SET v = 'q' WHERE id < 3",
    "UPDATE t SET v = 'q' WHERE id < 3",
    "REPLACE INTO t (id, v) VALUES (1, 'u'), (2, 'w')",
    "BEGIN",
    "INSERT INTO t (v) VALUES ('c'), ('d')",
    "COMMIT",
    "SELECT 1; INSERT INTO t (v) VALUES ('m'), ('n'); SELECT 2",
    "CALL p()",
    "SELECT id FROM t ORDER BY id LIMIT 2",
    "SELECT 1 / 0",
    "INSERT INTO nowhere VALUES (1)",
    "SET NAMES latin1",
    "SET NAMES utf8mb4",
    "USE mysql",
    "USE wire",
    "SET autocommit = 0",
    "SET autocommit = 1",
    "ALTER TABLE t ADD c INT",
    "ALTER TABLE t DROP c",
    "DELETE FROM t WHERE id = 1",
    "TRUNCATE TABLE t",
)


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def serve(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    """A port with a binlog of statements."""
    directory = tmp_path_factory.mktemp("wire")
    is_mysql = request.param == "mysql"
    options = MYSQL_SOURCE_OPTIONS if is_mysql else SOURCE_OPTIONS
    program = mysql_program() if is_mysql else MARIADB
    source = PrivateServer.start(
        directory, name="source", options=(*QUICK, *options), program=program
    )
    try:
        execute(source, *_SETUP)
        with judged(directory / "serve", source) as serving:
            serving.execute_as_root("CREATE BINLOG s FORMAT='STATEMENT'")
            yield serving
    finally:
        source.kill()


def _packets(port: int, capabilities: Capability) -> list[tuple[str, list[bytes]]]:
    """What a client gets, command by command."""
    found: list[tuple[str, list[bytes]]] = []
    with RawClient(port, capabilities | Capability.MULTI_STATEMENTS) as client:

        def say(what: str, payload: bytes) -> None:
            found.append((what, client.say(payload)))

        say("COM_INIT_DB", bytes((Command.INIT_DB,)) + b"wire")
        for text in _STATEMENTS:
            say(text, encode_query(text, client.capabilities))
        insert = client.prepare("INSERT INTO t (v) VALUES (?), ('z')")
        values = Execution(statement_id=insert, types=(ColumnType.VAR_STRING,), values=(b"a",))
        say("COM_STMT_EXECUTE", values.encode())
        say("COM_PING", bytes((Command.PING,)))
        say("COM_RESET_CONNECTION", bytes((Command.RESET_CONNECTION,)))
        found.append(("COM_CHANGE_USER", [client.change_user("root", "wire")]))
        say("TRUNCATE", encode_query("TRUNCATE TABLE t", client.capabilities))
    return found


@pytest.mark.parametrize("others", [Capability(0), Capability.DEPRECATE_EOF])
def test_packets_are_those_of_the_server(serve: ServeProcess, others: Capability) -> None:
    wanted = _packets(serve.source.port, CAPABILITIES | others)
    assert _packets(serve.port, CAPABILITIES | others) == wanted
