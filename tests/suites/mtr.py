"""mtr's `main` tests of Debian's `mariadb-test`, run by its own client program at a place.

A test is a script of statements with the answers that are expected. The server has the settings,
databases and procedures that mtr gives it; tests that need other settings are not run.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pymysql
import pytest
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import PrivateServer
from tests.suites.comparing import compare
from tests.suites.packages import debian
from tests.suites.places import DIRECT, PORTS, Place, place
from tests.suites.suites import Compared

SAMPLE: Final = (
    "auto_increment",
    "bigint",
    "case",
    "count_distinct",
    "insert",
    "multi_update_innodb",
    "replace",
    "view_alias",
)
"""A few quick tests."""
MAIN: Final = tuple(Path(__file__).with_name("mtr_main.txt").read_text("utf-8").split())
"""The tests that pass at a private server, in at most ten seconds."""
_UNSAFE: Final = re.compile(
    r"^(?:Note\t1592\t.*|Level\tNote\nCode\t1592\nMessage\t.*)\n", re.MULTILINE
)
_NO_WARNINGS: Final = re.compile(r"^Warnings:\n(?!(?:Note|Warning|Error)\t)", re.MULTILINE)
_ALL_SESSIONS: Final = "query_get_value(SHOW STATUS LIKE 'Threads_connected', Value, 1)"
_OTHER_SESSIONS: Final = (
    "`SELECT COUNT(*) FROM information_schema.processlist WHERE user <> 'binlane'`"
)
_PASSED: Final = 0
_SKIPPED: Final = 62
_TIMEOUT_S: Final = 300.0
"""Some tests run ten thousand statements, and other tests run beside them."""
_SHARE: Final = Path("/usr/share/mysql")
_OWN_DATABASES: Final = frozenset(
    ("information_schema", "performance_schema", "mysql", "sys", "mtr", "test", "binlane")
)
# What the certificates of the package are for, and what makes the server slow to start.
_LEFT_OUT: Final = (
    "ssl-",
    "loose-ssl",
    "performance-schema",
    "loose-performance",
    "loose-enable-p",
)


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a test.

    Attributes:
        status: `passed`, `skipped`, `failed` or `hangs`.
        text: What it printed, answers of the server among it.
        said: Why it failed.
    """

    status: str
    text: str
    said: str = ""

    def __str__(self) -> str:
        return f"{self.status}\n{self.said}\n{self.text}"


class Mtr:
    """The unpacked package."""

    def __init__(self) -> None:
        """Fetch it, in the version of this machine's server; skips the test where it is not had."""
        asked = subprocess.run(
            ["dpkg-query", "--show", "--showformat=${Version}", "mariadb-server-core"],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode:
            pytest.skip("MariaDB is no package of Debian's here")
        self.version = asked.stdout
        names = ("mariadb-test", "mariadb-test-data", "libpcre2-posix3")
        self.folder = debian(*names, version=self.version)
        self.home = self.folder / "usr/share/mysql/mysql-test"
        # Tests wait until only their own sessions are there.
        for name in ("count_sessions.inc", "wait_until_count_sessions.inc"):
            path = self.home / "include" / name
            path.write_text(path.read_text("utf-8").replace(_ALL_SESSIONS, _OTHER_SESSIONS))

    @cached_property
    def environment(self) -> dict[str, str]:
        """What programs of the package need."""
        (libraries,) = (self.folder / "usr/lib").glob("*-linux-gnu")
        return {
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "LD_LIBRARY_PATH": str(libraries),
            "LC_ALL": "C",
            "TZ": "GMT-3",
            "MYSQL_TEST_DIR": str(self.home),
            "MYSQL_SHAREDIR": str(_SHARE),
            "MYSQL_CHARSETSDIR": str(_SHARE / "charsets"),
        }

    def program(self, name: str) -> str:
        """The path of a program."""
        return str(self.folder / "usr/bin" / name)

    @cached_property
    def tests(self) -> tuple[str, ...]:
        """Names of all tests that need no settings of their own, whether they pass or not."""
        return tuple(
            path.stem
            for path in sorted((self.home / "main").glob("*.test"))
            if not any(
                path.with_name(path.stem + end).exists()
                for end in (".opt", "-master.opt", ".cnf", "-master.sh", "-slave.opt")
            )
        )

    def expected(self, test: str) -> str:
        """What a test is to print."""
        path = self.home / "main" / f"{test}.result"
        return path.read_text("latin1") if path.exists() else ""

    @cached_property
    def options(self) -> Sequence[str]:
        """What mtr tells its server."""
        text = (self.home / "include/default_mysqld.cnf").read_text()
        section = text.split("[mysqld]")[1].split("\n[")[0]
        lines = (line.strip() for line in section.splitlines())
        return [
            "--" + re.sub(r"\s*=\s*", "=", line)
            for line in lines
            if line and not line.startswith(("#", *_LEFT_OUT)) and "@ENV" not in line
        ]

    def prepare(self, server: PrivateServer) -> None:
        """Make what mtr makes, in a fresh server."""
        # Scripts name them as seen from the data directory.
        shutil.copytree(self.home / "std_data", server.directory.parent / "std_data")
        (server.directory.parent / "tmp").mkdir()
        texts = [
            "SET sql_mode='', character_set_client=latin1; CREATE DATABASE test CHARSET latin1;"
        ]
        texts += ["USE mysql;", (_SHARE / "mysql_test_data_timezone.sql").read_text("latin1")]
        texts += ["ALTER TABLE gtid_slave_pos ENGINE=Aria transactional=0;"]
        texts += ["DELETE FROM mysql.global_priv WHERE user='';FLUSH PRIVILEGES;"]
        texts += ["CREATE DATABASE mtr CHARSET=latin1;"]
        for name in ("mtr_warnings.sql", "mtr_check.sql"):
            text = (self.home / "include" / name).read_text("latin1")
            # What begins like that is no comment for this client.
            text = re.sub(r"(?m)^\s*--.*", "", text).replace("delimiter ||;", "DELIMITER ||")
            texts += [text, "DELIMITER ;"]
        done = subprocess.run(
            ["mariadb", "--no-defaults", f"--socket={server.socket_path}", "--user=root"],
            input="\n".join(texts).encode("latin1"),
            check=False,
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr.decode("latin1")


class MtrPlace:
    """A place at which tests are run one after the other, each as if it were the first.

    Attributes:
        kind: Of the place.
        renewals: How often a test left what could not be taken away.
    """

    def __init__(self, mtr: Mtr, kind: str, directory: Path) -> None:
        """Begin; the first test starts the server."""
        self.kind = kind
        self.renewals = 0
        self._logs = ""
        self._mtr = mtr
        self._directory = directory
        self._stack = ExitStack()
        self._place: Place | None = None
        self._variables: dict[str, str] = {}
        self._accounts: frozenset[tuple[str, str]] = frozenset()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def log(self) -> str:
        """What each `serve` has written, if there was one."""
        return self._logs + (self._place.log if self._place else "")

    def run(self, test: str) -> Ran:
        """Run a test."""
        where = self._place or self._begin()
        ran = self._run(where, test)
        if ran.status in {"failed", "hangs"}:
            # It may have stopped anywhere.
            self.renew()
            return ran
        try:
            self._clean(where)
        except (pymysql.MySQLError, OSError, AssertionError):
            self.renew()
        return ran

    def renew(self) -> None:
        """Have the next test begin at a fresh server."""
        self.renewals += 1
        self._logs = self.log
        self._stack.close()
        self._place = None
        # The directory stays, as what servers are copied from is made in it once.
        for name in (self.kind, "std_data", "tmp"):
            shutil.rmtree(self._directory / name)

    def _begin(self) -> Place:
        directory = self._directory
        self._place = self._stack.enter_context(
            place(
                self.kind,
                directory,
                # mtr's first, as the log is to hold what a source's holds.
                options=(*self._mtr.options, f"--secure-file-priv={directory}"),
                prepare=self._mtr.prepare,
            )
        )
        with self._place.connect() as connection, connection.cursor() as cursor:
            self._variables = dict(_rows(cursor, _VARIABLES))
            self._accounts = frozenset(_rows(cursor, _ACCOUNTS))
        return self._place

    def _run(self, where: Place, test: str) -> Ran:
        directory = where.server.directory.parent
        temporary = directory / "tmp"
        result = temporary / f"{test}.printed"
        arguments = ["--host=127.0.0.1", f"--port={where.port}", "--user=root", "--protocol=tcp"]
        client = " ".join(["--no-defaults", "--skip-ssl", *arguments])
        command = [
            *(self._mtr.program("mariadb-test"), "--no-defaults", "--silent", "--skip-ssl"),
            *(*arguments, "--database=test", f"--tmpdir={temporary}", f"--logdir={temporary}"),
            *(f"--character-sets-dir={_SHARE}/charsets", "--suite-dir=main/"),
            *(f"--test-file=main/{test}.test", "--record", f"--result-file={result}"),
            *("--tail-lines=0", "--wait-for-pos-timeout=60"),
        ]
        environment = self._mtr.environment | {
            "MYSQL_TMP_DIR": str(temporary),
            "MYSQLTEST_VARDIR": str(directory),
            "MYSQLTEST_REAL_VARDIR": str(directory),
            "MASTER_MYPORT": str(where.port),
            "MASTER_MYSOCK": str(where.server.socket_path),
            "MARIADB_DATADIR": str(where.server.data_directory),
            "MARIADB_TOPDIR": str(where.server.data_directory),
            "MYSQL": f"/usr/bin/mariadb {client} --default-character-set=latin1",
            "EXE_MYSQL": "/usr/bin/mariadb",
            "MYSQL_DUMP": f"/usr/bin/mariadb-dump {client}",
            "MYSQLADMIN": f"/usr/bin/mariadb-admin {client}",
            "MYSQL_CHECK": f"/usr/bin/mariadb-check {client}",
            "MYSQL_IMPORT": f"/usr/bin/mariadb-import {client} --default-character-set=latin1",
            "MYSQL_SHOW": f"/usr/bin/mariadb-show {client} --default-character-set=latin1",
            "MYSQL_SLAP": f"/usr/bin/mariadb-slap {client}",
            "MYSQL_BINLOG": "/usr/bin/mariadb-binlog --no-defaults --local-load=/tmp",
            "MYSQL_TEST": " ".join(command[:14]),
        }
        try:
            done = subprocess.run(
                ["nice", "-n", "10", *command],
                cwd=self._mtr.home,
                env=environment,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Ran("hangs", _read(temporary / f"{test}.log"))
        said = (done.stderr + done.stdout).decode("latin1")
        said = said.replace(str(directory), "VARDIR").replace(str(where.port), "PORT")
        if done.returncode == _PASSED:
            return Ran("passed", _read(result))
        status = "skipped" if done.returncode == _SKIPPED else "failed"
        return Ran(status, _read(temporary / f"{test}.log"), said.strip())

    def _clean(self, where: Place) -> None:
        """Take away what a test left.

        Raises:
            MySQLError: If that is not possible.
        """
        with where.connect() as connection, connection.cursor() as cursor:
            ((me, _),) = _rows(cursor, "SELECT CONNECTION_ID(), ''")
            for thread, user in _rows(
                cursor, "SELECT id, user FROM information_schema.processlist"
            ):
                assert user != "root" or thread == me
            cursor.execute("XA RECOVER")
            assert not cursor.fetchall()
            cursor.execute("SET lock_wait_timeout=10, foreign_key_checks=0")
            names = {name for (name,) in _rows(cursor, "SHOW DATABASES")}
            assert names >= _OWN_DATABASES - {"binlane", "performance_schema"}
            for name in sorted(names - _OWN_DATABASES):
                cursor.execute(f"DROP DATABASE `{name.replace('`', '``')}`")
            cursor.execute("DROP DATABASE test")
            cursor.execute("CREATE DATABASE test CHARSET latin1")
            for user, host in sorted(set(_rows(cursor, _ACCOUNTS)) - self._accounts):
                cursor.execute(
                    "DROP USER %s@%s" if host else "DROP ROLE %s", (user, host)[: 1 + bool(host)]
                )
            for name, value in _rows(cursor, _VARIABLES):
                if value != self._variables.get(name):
                    old = self._variables[name]
                    cursor.execute(f"SET GLOBAL {name} = %s", (int(old) if old.isdigit() else old,))
            assert frozenset(_rows(cursor, _ACCOUNTS)) == self._accounts
            # Its own changes stay, such as of caches and statistics.
            cursor.execute("FLUSH TABLES")


_ACCOUNTS: Final = "SELECT user, host FROM mysql.user"
_VARIABLES: Final = (
    "SELECT variable_name, global_value FROM information_schema.system_variables"
    " WHERE global_value IS NOT NULL AND variable_name NOT LIKE 'gtid%'"
)


def _rows(cursor: Cursor, statement: str) -> tuple[tuple[Any, ...], ...]:
    cursor.execute(statement)
    return tuple(cursor.fetchall())


def _read(path: Path) -> str:
    return path.read_text("latin1") if path.exists() else ""


def compare_mtr(
    tests: Sequence[str], directory: Path, kinds: Sequence[str] = PORTS
) -> dict[str, Compared]:
    """Run tests at a server, and at ports; what differs, by the kind of place.

    Those that do not pass at the server are left out.
    """
    mtr = Mtr()
    direct, _ = _outcomes(mtr, DIRECT, tests, directory)
    passed = {test: str(ran) for test, ran in direct.items() if ran.status == "passed"}
    compared = {}
    for kind in kinds:
        told, log = _outcomes(mtr, kind, tuple(passed), directory)
        outcomes = {test: str(ran) for test, ran in told.items()}
        compared[kind] = Compared(
            compare("mtr", kind, passed, outcomes, meant=_without_notes, why="notes 1592"), log
        )
    return compared


def _outcomes(
    mtr: Mtr, kind: str, tests: Sequence[str], directory: Path
) -> tuple[dict[str, Ran], str]:
    with MtrPlace(mtr, kind, directory / kind) as where:
        return {test: where.run(test) for test in tests}, where.log


def _without_notes(outcome: str) -> str:
    """What a test printed, but for notes that a statement is unsafe as text."""
    return _NO_WARNINGS.sub("", _UNSAFE.sub("", outcome))
