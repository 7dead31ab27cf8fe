"""The source's log behind the port is the one that the same statements write without it.

Compared is every event with its flags, its server id, its text and the context of that, but for
times and numbers (`tests/source_log.py`), while there are binlogs of statements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.constants import CLIENT
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import (
    PrivateServer,
)
from binlane.log.codec.packets.execution import Execution, Value
from binlane.log.codec.types import ColumnType, GtidFlag
from tests.differential.logging.generator import Generator, schema
from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.port_load import OPTIONS, statements
from tests.raw_client import RawClient
from tests.serve_process import ServeProcess, wait_until
from tests.servers import execute
from tests.source_log import LoggedEvent, SourceLog

_GONE_S: Final = 20.0
_THREAD: Final = {
    "mariadb": "SELECT 1 FROM information_schema.processlist WHERE id = {}",
    "mysql": "SELECT 1 FROM performance_schema.threads WHERE processlist_id = {}",
}
_FORMATS: Final = (
    "CREATE BINLOG 'statement' FORMAT='STATEMENT'",
    "CREATE BINLOG 'mixed' LOG(story), FORMAT='MIXED'",
)
_END: Final = "-- end"
"""A session ends, and the next statement waits until the server has noticed."""

_TIMESTAMP: Final = "SET timestamp = 1700000000"
_CHANGING: Final = re.compile(r"\b(uuid|sysdate|connection_id|rand|found_rows)\(\)")
_NONE: Final = GtidFlag(0)
_HINT: Final = GtidFlag.TRANSACTIONAL
"""MariaDB's hint for parallel replicas: it hangs on `binlog_direct_non_transactional_updates`, which
the source never hears of, and of what a CALL commits on the statement before, a SELECT included."""

Story = Sequence[tuple[str, str]]

_STORY: Final[Story] = (
    ("a", "CREATE DATABASE story"),
    ("a", "USE story"),
    ("a", "CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(60)) ENGINE=InnoDB"),
    ("a", "CREATE TABLE m (id INT) ENGINE=MyISAM"),
    ("a", "INSERT INTO a (b) VALUES ('x'), ('y')"),
    ("a", "INSERT INTO m VALUES (1)"),
    ("b", "USE story"),
    ("b", "SET autocommit = 0, time_zone = '+03:00', sql_mode = '', timestamp = 1700000000"),
    ("b", "INSERT INTO a (b) VALUES (NOW())"),
    ("a", "BEGIN"),
    ("a", "UPDATE a SET b = CONCAT('unsafe ', LENGTH(UUID())) WHERE id = 1"),
    ("b", "INSERT INTO a (b) VALUES (LAST_INSERT_ID()), ('b')"),
    ("a", "SAVEPOINT s"),
    ("a", "INSERT INTO a (b) VALUES ('taken back')"),
    ("a", "ROLLBACK TO s"),
    ("a", "DELETE FROM a WHERE id = 2"),
    ("b", "COMMIT"),
    ("a", "COMMIT"),
    ("b", "SET @v = 'a variable', NAMES latin1"),
    ("b", "INSERT INTO a (b) VALUES (@v)"),
    ("b", "INSERT INTO nowhere VALUES (1)"),
    ("b", "ROLLBACK"),
    ("temporary", "USE story"),
    ("temporary", "CREATE TEMPORARY TABLE own (id INT)"),
    ("temporary", "CREATE TEMPORARY TABLE a SELECT 1 AS id, 'a row that hides' AS b"),
    ("temporary", "INSERT INTO own VALUES (50)"),
    ("temporary", "UPDATE a SET b = 'hidden'"),
    ("temporary", "DROP TEMPORARY TABLE a"),
    ("temporary", "INSERT INTO a (id) SELECT id FROM own"),
    ("temporary", "CREATE TEMPORARY TABLE left_behind (id INT)"),
    ("temporary", _END),
    ("a", "CREATE PROCEDURE p(n INT) INSERT INTO a (b) VALUES (CONCAT('p', n))"),
    ("a", "CREATE PROCEDURE two() BEGIN CALL p(1); CALL p(2); END"),
    ("a", "CREATE FUNCTION f(n INT) RETURNS INT DETERMINISTIC RETURN n + 1"),
    ("a", "CREATE TABLE told (b VARCHAR(60))"),
    ("a", "CREATE TRIGGER t AFTER INSERT ON a FOR EACH ROW INSERT INTO told VALUES (NEW.b)"),
    ("a", "CALL p(1)"),
    ("a", "CALL two()"),
    ("a", "INSERT INTO a (b) VALUES (f(4))"),
    ("a", "BEGIN"),
    ("a", "INSERT INTO a (b) VALUES ('implicit')"),
    ("a", "CREATE INDEX i ON a (b)"),
    ("a", "INSERT INTO a (b) VALUES ('one'); INSERT INTO a (b) VALUES ('packet'); SELECT 1"),
    ("a", "PREPARE ps FROM 'INSERT INTO a (b) VALUES (?)'"),
    ("a", "SET @w = 'prepared'"),
    ("a", "EXECUTE ps USING @w"),
    ("a", "DEALLOCATE PREPARE ps"),
    ("raw", "INSERT INTO story.a (b) VALUES (?)"),
    ("raw", "UPDATE story.a SET b = CONCAT(b, '!') WHERE b = ?"),
    ("a", "LOAD DATA LOCAL INFILE '{file}' INTO TABLE a (@n, b)"),
    ("xa", "USE story"),
    ("xa", "XA START 'one'"),
    ("xa", "INSERT INTO a (b) VALUES ('xa')"),
    ("xa", "XA END 'one'"),
    ("xa", "XA COMMIT 'one' ONE PHASE"),
    ("xa", "XA START 'two'"),
    ("xa", "INSERT INTO a (b) VALUES ('prepared')"),
    ("xa", "XA END 'two'"),
    ("xa", "XA PREPARE 'two'"),
    ("xa", "XA COMMIT 'two'"),
    ("b", "INSERT INTO a (b) VALUES ('lost with its session')"),
    ("b", _END),
    ("a", "CREATE TABLE copy SELECT * FROM told"),
    ("a", "TRUNCATE TABLE told"),
    ("a", "ALTER TABLE a ADD COLUMN c INT DEFAULT 3"),
    ("a", "REPLACE INTO a (id, b) VALUES (1, 'replaced')"),
    ("a", "INSERT INTO a (id) VALUES (1) ON DUPLICATE KEY UPDATE b = 'updated'"),
    ("a", "INSERT INTO a (id) VALUES (1)"),
    ("a", "SET SESSION auto_increment_increment = 7"),
    ("a", "INSERT INTO a (b) VALUES ('seven')"),
    ("a", "CREATE VIEW v AS SELECT id, b FROM a"),
    ("a", "UPDATE v SET b = 'by a view' WHERE id = 1"),
    ("a", "LOCK TABLES a WRITE, told WRITE"),
    ("a", "INSERT INTO a (b) VALUES ('locked')"),
    ("a", "UNLOCK TABLES"),
    ("a", "CREATE USER somebody"),
    ("a", "GRANT SELECT ON story.* TO somebody"),
    ("a", "ANALYZE TABLE a"),
    ("a", "RENAME TABLE copy TO renamed"),
    ("a", "DROP TABLE a, m, told, renamed"),
    ("a", "DROP DATABASE story"),
    ("a", "DROP USER somebody"),
)


class _Sessions:
    """Sessions at one place, which do what a story says, one statement after the other."""

    def __init__(self, stack: ExitStack, server: PrivateServer, port: int, file: Path) -> None:
        self._stack = stack
        self._server = server
        self._port = port
        self._file = file
        self._open: dict[str, Connection[Cursor]] = {}
        self._raw: RawClient | None = None

    def run(self, who: str, statement: str) -> int:
        """The error number of a statement; 0 of one that succeeded."""
        if who == "raw":
            self._prepared(statement)
            return 0
        session = self._session(who)
        if statement == _END:
            self._end(self._open.pop(who))
            return 0
        try:
            with session.cursor() as cursor:
                cursor.execute(statement.replace("{file}", str(self._file)))
                while cursor.nextset():
                    pass
        except pymysql.MySQLError as error:
            return int(error.args[0])
        return 0

    def _session(self, who: str) -> Connection[Cursor]:
        if who not in self._open:
            session = pymysql.connect(
                host="127.0.0.1",
                port=self._port,
                user="root",
                charset="utf8mb4",
                autocommit=None,
                local_infile=True,
                client_flag=CLIENT.MULTI_STATEMENTS,
                ssl_disabled=True,
            )
            self._stack.callback(_closed, session)
            self._open[who] = session
        return self._open[who]

    def _prepared(self, statement: str) -> None:
        """Prepare it by the protocol, and run it with a value."""
        if self._raw is None:
            self._raw = self._stack.enter_context(RawClient(self._port))
        value: Value = b"by the protocol"
        prepared = self._raw.prepare(statement)
        self._raw.execute(
            Execution(statement_id=prepared, types=(ColumnType.VAR_STRING,), values=(value,))
        )

    def _end(self, session: Any) -> None:
        thread_id = session.server_thread_id[0]
        session.close()
        asked = _THREAD[self._server.program.scheme].format(thread_id)
        wait_until(lambda: execute(self._server, asked) == (), _GONE_S)


def _closed(session: Connection[Cursor]) -> None:
    with suppress(pymysql.Error):
        session.close()


class _Both:
    """A source behind a port and a server without one, of the same version and options."""

    def __init__(self, stack: ExitStack, directory: Path, flavor: str) -> None:
        self.plain, self.source = (
            stack.enter_context(
                LENT.lend_source(
                    flavor,
                    *(*OPTIONS, "--server-id=731", "--local-infile=1"),
                    *(f"--secure-file-priv={directory}", "--general-log=1"),
                    f"--general-log-file={directory / name}.general",
                )
            )
            for name in ("plain", "source")
        )
        self.serve: ServeProcess = stack.enter_context(judged(directory / "serve", self.source))
        self.serve.execute_as_root(*_FORMATS)
        self.file = file = directory / "rows.txt"
        file.write_text("1\tone\n2\ttwo\n")
        file.chmod(0o644)
        directory.chmod(0o755)
        self._asked = directory / "source.general"
        self.logs = [SourceLog(self.plain), SourceLog(self.source)]
        self.at_plain = _Sessions(stack, self.plain, self.plain.port, file)
        self.at_port = _Sessions(stack, self.source, self.serve.port, file)

    def run(self, who: str, statement: str) -> None:
        """Run a statement at the port, and without it unless binlane refused it."""
        begin = self._asked.stat().st_size
        at_port = self.at_port.run(who, statement)
        if at_port and statement.encode() not in self._asked.read_bytes()[begin:]:
            return
        assert self.at_plain.run(who, statement) == at_port, statement

    def logged(self, but_for: GtidFlag = _NONE) -> tuple[list[LoggedEvent], list[LoggedEvent]]:
        """What the server without a port has logged, and the source."""
        self.serve.wait_until_complete("statement")
        plain, source = (log.events(but_for) for log in self.logs)
        return plain, source


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_story_is_logged_as_without_the_port(tmp_path: Path, flavor: str) -> None:
    with ExitStack() as stack:
        both = _Both(stack, tmp_path, flavor)
        for who, statement in _STORY:
            answers = [one.run(who, statement) for one in (both.at_plain, both.at_port)]
            assert answers[0] == answers[1], statement
        plain, source = both.logged()
        assert len(plain) > 150
        assert source == plain


def _random(both: _Both, flavor: str, seed: int, *, sessions: int, length: int) -> None:
    """Random sessions one after the other, of which each value is the same at both places."""
    both.run("schema", _TIMESTAMP)
    for statement in schema(flavor):
        both.run("schema", _stable(statement))
    for number in range(sessions):
        who = f"session {number}"
        generator = Generator(flavor, seed * 1000 + number)
        generator._key += number * 1000
        both.run(who, "USE d")
        both.run(who, _TIMESTAMP)
        for statement in islice(statements(generator), length):
            both.run(who, _stable(statement.replace("./rows.txt", str(both.file))))
        both.run(who, _END)


def _stable(statement: str) -> str:
    """The statement with values that are the same wherever it runs; what is unsafe stays so."""
    return _CHANGING.sub(r"left(\1(),0)", statement)


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 8))]
)
def test_random_sessions_are_logged_as_without_the_port(
    tmp_path: Path, flavor: str, seed: int
) -> None:
    with ExitStack() as stack:
        both = _Both(stack, tmp_path, flavor)
        _random(both, flavor, seed, sessions=4, length=60)
        plain, source = both.logged(but_for=_HINT)
        assert len(plain) > 500
        assert source == plain
