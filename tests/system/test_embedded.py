"""`binlane serve --embedded`: a server of its own, which it makes, looks after and keeps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pymysql
import pytest

from binlane.errors import StoreError
from binlane.live.service.embedded import EmbeddedServer
from binlane.live.service.embedded_settings import EMBEDDED_DIRECTORY, EmbeddedSettings
from tests.serve_process import wait_until


class EmbeddedProcess:
    """A process that was told nothing but where its data is and that ports are to be free ones."""

    def __init__(self, directory: Path, **environ: str) -> None:
        self.directory = directory
        self._environ = environ
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(exist_ok=True)

    @property
    def home(self) -> Path:
        return self.directory / "data" / "embedded"

    @property
    def log(self) -> str:
        return (self.directory / "serve.log").read_text()

    def start(self) -> Self:
        ready = self.directory / "port"
        ready.unlink(missing_ok=True)
        with (self.directory / "serve.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*(sys.executable, "-m", "binlane", "serve", "--embedded", "--port-file", ready)],
                cwd=self.directory,
                stdout=log,
                stderr=log,
                env=os.environ
                | {
                    "BINLANE_LISTEN_PORT": "0",
                    "BINLANE_HTTP_PORT": "0",
                    "BINLANE_LOG_FORMAT": "json",
                }
                | self._environ,
            )
        wait_until(lambda: ready.exists() or self.process.poll() is not None)
        return self

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)

    def server_id(self) -> int:
        """Process id of the server."""
        return int((self.home / "server" / "server.pid").read_text())

    def execute(self, *statements: str) -> tuple[tuple[Any, ...], ...]:
        with (
            pymysql.connect(
                host="127.0.0.1",
                port=int((self.directory / "port").read_text()),
                user="root",
                password=(self.home / "root-password").read_text().strip(),
                autocommit=True,
            ) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
            return tuple(cursor.fetchall())

    def healthz(self) -> str:
        return self._get("/healthz")

    def _get(self, path: str) -> str:
        told = [json.loads(line) for line in self.log.splitlines() if line.startswith("{")]
        *_, line = (each["message"] for each in told if "(HTTP)" in each["message"])
        port = line.split(" (HTTP)")[0].rpartition(":")[2]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def page(self) -> str:
        """What the status page says."""
        return self._get("/")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[EmbeddedProcess]:
    with EmbeddedProcess(tmp_path / "serve") as process:
        yield process


def test_it_works_from_nothing_and_lasts(serve: EmbeddedProcess) -> None:
    serve.execute(
        "CREATE BINLOG 'b' LOG(shop), FORMAT='MIXED'",
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (a INT)",
        "INSERT INTO shop.t VALUES (1)",
        "CREATE USER team@localhost IDENTIFIED BY 'secret'",
        "GRANT READ ON BINLOG 'b' TO team@localhost",
        "ALTER USER root@localhost IDENTIFIED BY 'another'",
    )
    for name in ("root-password", "binlane-password"):
        assert (serve.home / name).stat().st_mode & 0o777 == 0o600
        assert (serve.home / name).read_text().strip() not in serve.log
    assert serve.home.stat().st_mode & 0o777 == 0o700
    assert serve.end() == 0
    # The server went with it.
    assert not (serve.home / "server" / "server.pid").exists()
    (serve.home / "root-password").write_text("another\n")
    own = (serve.home / "binlane-password").read_text().strip()
    (serve.home / "binlane-password").write_text("chosen-anew\n")
    serve.start()
    assert serve.execute("SELECT * FROM shop.t") == ((1,),)
    assert [row[0] for row in serve.execute("SHOW BINLOGS")] == ["b"]
    texts = [row[5] for row in serve.execute("SHOW BINLOG EVENTS IN 'b.000001'")]
    assert any("INSERT INTO shop.t VALUES (1)" in text for text in texts)
    users = serve.execute("SELECT User, Host FROM mysql.global_priv WHERE User IN ('root', '')")
    assert users == (("root", "localhost"),)
    # Nobody else comes to it, and no account of the system is taken for one of its own.
    assert serve.execute("SELECT @@skip_networking, @@sync_binlog") == ((1, 1),)
    with pytest.raises(pymysql.OperationalError):
        serve.execute("CREATE USER system IDENTIFIED VIA unix_socket")
    assert serve.end() == 0
    # Nor are the passwords of its own accounts in what it logged.
    logs = [path.read_bytes() for path in serve.home.rglob("*") if ".0000" in path.name]
    assert logs
    assert not [each for each in (own, "chosen-anew") if any(each.encode() in one for one in logs)]


@pytest.mark.slow
def test_a_root_password_that_is_somebodys_own(serve: EmbeddedProcess) -> None:
    serve.execute("CREATE BINLOG 'b'", "ALTER USER root@localhost IDENTIFIED BY 'mine'")
    assert serve.end() == 0
    serve.start()
    assert "not that of" in serve.log
    (serve.home / "root-password").write_text("mine\n")
    assert [row[7] for row in serve.execute("SHOW BINLOGS")] == ["OPEN"]


def test_a_server_that_dies_is_started_again(serve: EmbeddedProcess) -> None:
    serve.execute("CREATE BINLOG 'b'", "CREATE DATABASE d", "CREATE TABLE d.t (a INT)")
    wait_until(lambda: serve.healthz() == "ok\n")
    wait_until(lambda: "Its log ended, some seconds ago" in serve.page())
    before = serve.server_id()
    data = serve.home / "server" / "data"
    data.rename(data.with_name("away"))
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: "ended with status -9" in serve.log)
    wait_until(lambda: "next try in" in serve.log)
    # What ails the server is told before what comes of that.
    assert not serve.healthz().startswith(("ok", "not connected"))
    data.with_name("away").rename(data)
    wait_until(lambda: "runs again" in serve.log)
    wait_until(lambda: serve.healthz() == "ok\n")
    assert serve.server_id() != before
    ((last,),) = serve.execute("SELECT @@GLOBAL.gtid_binlog_pos")
    following = f"0-1-{int(str(last).rpartition('-')[2]) + 1}"
    serve.execute("INSERT INTO d.t VALUES (1)")
    wait_until(lambda: serve.execute("SHOW BINLOGS")[0][3].startswith(following))
    # A source that began anew begins a new file.
    assert "Write_rows_v1" in str(serve.execute("SHOW BINLOG EVENTS IN 'b.000002'"))


def test_a_server_that_was_left_behind_is_ended(serve: EmbeddedProcess) -> None:
    serve.execute("CREATE DATABASE d")
    before = serve.server_id()
    assert serve.end(signal.SIGKILL) == -signal.SIGKILL
    os.kill(before, 0)
    serve.start()
    assert f"the one of an earlier run (process {before})" in serve.log
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    assert ("d",) in serve.execute("SHOW DATABASES")


@pytest.mark.slow
def test_a_broken_start_is_told(tmp_path: Path) -> None:
    with EmbeddedProcess(
        tmp_path / "serve", BINLANE_EMBEDDED_OPTIONS="--no-such-option=1"
    ) as serve:
        assert serve.process.wait(60) == 3
        assert "ended at its start" in serve.log
        assert "no-such-option" in serve.log
        assert "Traceback" not in serve.log
    with EmbeddedProcess(tmp_path / "serve", BINLANE_LISTEN_ADDRESS="192.0.2.1") as serve:
        assert serve.process.wait(60) == 2
        assert "cannot listen on 192.0.2.1" in serve.log
        assert not (serve.home / "server" / "server.pid").exists()


def test_no_server_is_installed(tmp_path: Path) -> None:
    # It is looked for in /usr/sbin, too, but what makes its data is not there.
    with EmbeddedProcess(tmp_path / "serve", PATH="/nowhere") as serve:
        if serve.process.poll() is None:
            pytest.skip("all of it stands where it is found without PATH")
        assert serve.process.wait(60) == 3
        assert "is not installed" in serve.log
        assert "apt-get install" in serve.log


def test_data_of_a_newer_series_is_refused(tmp_path: Path) -> None:
    server = EmbeddedServer(EmbeddedSettings(), tmp_path)
    home = tmp_path / EMBEDDED_DIRECTORY
    home.mkdir()
    (home / "version").write_text("99.1.2-MariaDB\n")
    with pytest.raises(StoreError, match=r"is of MariaDB 99\.1\.2"):
        server._start()
