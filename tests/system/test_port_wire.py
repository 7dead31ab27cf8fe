"""What a client of the port gets is what its server sends it, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import pytest

from binlane.errors import StatementError
from binlane.log.codec.packets.commands import encode_query
from binlane.log.codec.packets.execution import Execution
from binlane.log.codec.packets.flags import Capability, Command, ServerStatus
from binlane.log.codec.packets.replies import ErrPacket
from binlane.log.codec.packets.session_state import SessionState
from binlane.log.codec.types import ColumnType
from tests.judged_port import judged_source
from tests.raw_client import CAPABILITIES, RawClient
from tests.serve_process import ServeProcess
from tests.servers import execute

_SETUP: Final = (
    "CREATE DATABASE wire",
    "CREATE TABLE wire.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(10))",
    "INSERT INTO wire.t (v) VALUES ('z')",
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
    "SET time_zone = '+01:00'",
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
    objects = _SETUP
    binlogs = ["CREATE BINLOG s FORMAT='STATEMENT'"]
    directory = tmp_path_factory.mktemp("wire")
    with judged_source(directory, request.param, objects, binlogs) as process:
        yield process


_RESET: Final = bytes((Command.RESET_CONNECTION,))
_NO_STATEMENT: Final = 1_000_000


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
        for reset in (bytes((Command.STMT_CLOSE,)) + insert.to_bytes(4, "little"), _RESET):
            client.say(reset)
            # Servers number statements of all sessions together.
            gone = replace(values, statement_id=_NO_STATEMENT)
            say("COM_STMT_EXECUTE of what is gone", gone.encode())
            errors = [ErrPacket.decode(packet).errno for packet in client.say(values.encode())]
            assert errors == [1243]
            insert = client.prepare("INSERT INTO t (v) VALUES (?), ('z')")
            values = replace(values, statement_id=insert)
        say("COM_RESET_CONNECTION", _RESET)
        found.append(("COM_CHANGE_USER", [client.change_user("root", "wire")]))
        errors = [ErrPacket.decode(packet).errno for packet in client.say(values.encode())]
        assert errors == [1243]
        say("TRUNCATE", encode_query("TRUNCATE TABLE t", client.capabilities))
    return found


_NONE: Final = Capability(0)
_BOTH: Final = Capability.SESSION_TRACK | Capability.DEPRECATE_EOF


@pytest.mark.parametrize(
    "others", [_NONE, Capability.SESSION_TRACK, Capability.DEPRECATE_EOF, _BOTH]
)
def test_packets_are_those_of_the_server(serve: ServeProcess, others: Capability) -> None:
    execute(serve.source, "TRUNCATE TABLE wire.t")
    wanted = _packets(serve.source.port, CAPABILITIES | others)
    assert _packets(serve.port, CAPABILITIES | others) == wanted


_TRACKING: Final = {
    "mariadb": (
        "SELECT @@session_track_system_variables",
        "SET session_track_system_variables = 'sql_mode,last_gtid'",
        "INSERT INTO t VALUES ()",
        "SET sql_mode = 'ANSI'",
        "SET session_track_system_variables = CONCAT('sql', '_mode')",
        "INSERT INTO t VALUES ()",
        "SET sql_mode = ''",
        "SELECT @@session_track_system_variables",
        "SET session_track_system_variables = 'nowhere'",
        "SET session_track_system_variables = '*'",
        "INSERT INTO t VALUES ()",
        "SET session_track_system_variables = DEFAULT",
        "INSERT INTO t VALUES ()",
        "SELECT @@session_track_system_variables",
        "SHOW VARIABLES LIKE 'session_track_system_variables'",
    ),
    "mysql": (
        "SELECT @@session_track_gtids",
        "SET session_track_gtids = OWN_GTID",
        "INSERT INTO t VALUES ()",
        "SELECT @@session_track_gtids",
        "SHOW VARIABLES LIKE 'session_track_gtids'",
        "SET session_track_gtids = 7",
        "SET session_track_gtids = CONCAT('O', 'FF')",
        "INSERT INTO t VALUES ()",
        "SET session_track_gtids = 1",
        "INSERT INTO t VALUES ()",
        "SET session_track_gtids = DEFAULT",
        "INSERT INTO t VALUES ()",
        "SELECT @@session_track_gtids",
        "SET session_track_system_variables = 'sql_mode'",
        "SET sql_mode = ''",
    ),
}
"""What a session is told of its own state, and what it says that it wants to be told."""
_UNTOLD: Final = (
    "SET session_track_schema = OFF",
    "USE mysql",
    "SET session_track_schema = ON",
    "USE wire",
    "SET session_track_state_change = ON",
    "SET @a = 1",
)


def _state(port: int, flavor: str) -> list[tuple[str, object]]:
    """What a client is told of each statement: its rows, or its session's state without GTIDs' numbers."""
    found: list[tuple[str, object]] = []
    with RawClient(port, CAPABILITIES | _BOTH, database="wire") as client:
        client.query("INSERT INTO t VALUES ()")
        for text in (*_TRACKING[flavor], *_UNTOLD):
            if text.startswith(("SELECT", "SHOW")):
                found.append((text, client.rows(text)))
                continue
            try:
                ok = client.query(text)
            except StatementError as error:
                found.append((text, error.errno))
                continue
            state = SessionState.decode(ok.session_state)
            told = dict.fromkeys(state.variables, "")
            others = state.database, ServerStatus.SESSION_STATE_CHANGED in ok.status
            found.append((text, (told, bool(state.gtids), *others)))
    return found


def test_a_session_is_told_what_it_has_asked_for(serve: ServeProcess) -> None:
    flavor = serve.source.program.scheme
    assert _state(serve.port, flavor) == _state(serve.source.port, flavor)


@pytest.mark.parametrize(
    "statements",
    [
        ("SELECT 1 / 0", "SELECT @@warning_count"),
        ("SELECT 1 / 0", "SHOW WARNINGS", "SELECT @@warning_count", "SHOW WARNINGS"),
        ("SELECT 1 / 0 FROM t", "SHOW COUNT(*) WARNINGS", "SELECT @@warning_count"),
        ("SELECT 1 / 0", "GET DIAGNOSTICS @n = NUMBER", "SELECT @n"),
        ("SELECT 1 / 0", "SET @n = @@warning_count", "SELECT @n"),
        ("SELECT 1 FROM nowhere", "SELECT @@warning_count, @@error_count", "SHOW ERRORS"),
        ("DROP TABLE IF EXISTS nowhere", "SHOW WARNINGS", "SELECT @@warning_count"),
    ],
)
def test_warnings_of_what_a_session_begins_with(
    serve: ServeProcess, statements: Sequence[str]
) -> None:
    assert _told(serve.port, statements) == _told(serve.source.port, statements)


def _told(port: int, statements: Sequence[str]) -> list[tuple[str, list[bytes]]]:
    """What a new session gets, packet by packet."""
    with RawClient(port, CAPABILITIES | _BOTH, database="wire") as client:
        return [(one, client.say(encode_query(one, client.capabilities))) for one in statements]


@pytest.mark.parametrize("charset", ["ucs2", "utf16le", "utf32", "filename"])
def test_results_may_come_in_any_character_set(serve: ServeProcess, charset: str) -> None:
    if charset == "filename" and serve.source.program.scheme == "mysql":
        pytest.skip("MySQL has it for itself")
    statements = (
        f"SET character_set_results = {charset}",
        "REPLACE INTO t VALUES (1, 'a')",
        "SELECT v FROM t WHERE id = 1",
        "SET @a = 'b'",
        "REPLACE INTO t VALUES (1, @a)",
        "SELECT @@sql_mode, v FROM t WHERE id = 1",
        "SET character_set_results = utf8mb4",
        "SELECT v FROM t WHERE id = 1",
    )
    assert _told(serve.port, statements) == _told(serve.source.port, statements)
