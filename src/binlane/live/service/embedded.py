"""The source of `serve --embedded`: a MariaDB of our own, below the store's directory.

It is reached by a Unix socket in a directory that is ours alone, and by no network: whoever wants
it comes through the port. It is made at the first start and kept, with the passwords of its two
accounts in files beside it: `root`, for people, and binlane's own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from binlane.client.session import ServerSession
from binlane.client.settings import ServerUrl
from binlane.errors import BinlaneError, PeerError, StoreError
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.live.provision.server_programs import MARIADB, MariadbProgram
from binlane.live.provision.setup import NewAccount, set_up
from binlane.live.service.config import ServeSettings
from binlane.live.service.embedded_settings import (
    ACCOUNT,
    ACCOUNT_PASSWORD_FILE,
    EMBEDDED_DIRECTORY,
    ROOT_PASSWORD_FILE,
    EmbeddedSettings,
)
from binlane.log.codec.password_hashes import native_hash

_NAME: Final = "server"
_DATA: Final = "data"
_VERSION_FILE: Final = "version"
_HOST: Final = "localhost"
_ROOT: Final = "root"
_PASSWORD_BYTES: Final = 18
_ACCESS_DENIED: Final = 1045
_LOOK_S: Final = 0.5
_AGAIN_FIRST_S: Final = 1.0
_AGAIN_LONGEST_S: Final = 30.0
_START_S: Final = 3600.0
"""Recovery of a large server takes its time, and would begin anew if it were cut off."""
_ORPHAN_S: Final = 60.0
_POLL_S: Final = 0.1
_ASK_S: Final = 30.0
_WEEK_S: Final = 7 * 86_400

_DEFAULTS: Final = (
    "--innodb-buffer-pool-size=128M",
    "--innodb-log-file-size=96M",
    f"--binlog-expire-logs-seconds={_WEEK_S}",
)
"""Options that `[embedded] options` may change."""
_FIXED: Final = (
    *SOURCE_OPTIONS,
    "--sync-binlog=1",
    "--innodb-flush-log-at-trx-commit=1",
    "--skip-networking=1",
    "--unix-socket=OFF",
)
"""Options that nobody may change.

Nothing of a transaction is lost, nobody comes from the network, and nobody is taken for the system
account that we run as.
"""

_OTHERS: Final = (
    "SELECT User, Host FROM mysql.global_priv"
    " WHERE User = '' OR User = 'root' AND Host <> 'localhost'"
)
"""Accounts that come with a new server, for other ways to it."""

logger = logging.getLogger(__name__)


class EmbeddedServer:
    """The server, looked after while it runs.

    Attributes:
        problem: The reason why the server does not run; empty while it does.

    Args:
        settings: The settings with which the server is run.
        data_dir: The data directory of the store, which this process owns.
    """

    def __init__(self, settings: EmbeddedSettings, data_dir: Path) -> None:
        self.problem = ""
        self._home = data_dir.resolve() / EMBEDDED_DIRECTORY
        self._program: MariadbProgram = MARIADB
        self._server = PrivateServer(
            self._home / _NAME,
            name="embedded",
            options=(*_DEFAULTS, *settings.options, *_FIXED),
            port=0,
            start_timeout_s=_START_S,
        )
        self._watching: asyncio.Task[None] | None = None

    @property
    def root_password_file(self) -> Path:
        """Path of the file with the password of `root` at the port."""
        return self._home / ROOT_PASSWORD_FILE

    def configured(self, settings: ServeSettings) -> ServeSettings:
        """The settings with this server as the source."""
        socket_path = str(self._server.socket_path)
        url = replace(settings.source.url, socket=socket_path)
        return replace(
            settings,
            source=replace(
                settings.source, url=url, password_file=self._home / ACCOUNT_PASSWORD_FILE
            ),
            listen=replace(settings.listen, source_socket=socket_path),
        )

    async def start(self) -> None:
        """Start it, made and prepared where it is not yet.

        Raises:
            BinlaneError: If that cannot be done.
        """
        await asyncio.to_thread(self._start)
        self._watching = asyncio.create_task(self._watch())
        logger.info(
            "embedded server: running, its log is %s; root's password is in %s",
            *(self._server.error_log, self.root_password_file),
        )

    def interrupt(self) -> None:
        """Let a start that is under way fail."""
        self._server.interrupt()

    async def stop(self) -> None:
        """Shut it down, cleanly if it does so in a minute."""
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        try:
            await asyncio.to_thread(self._server.stop)
        except PeerError as error:
            logger.warning("%s", error)

    def _start(self) -> None:
        version = self._program.version()
        before = self._version_before()
        if before is not None and _series(before) > _series(version):
            raise StoreError(
                f"the embedded server's data is of MariaDB {before}, and this is {version}",
                path=str(self._home),
                hint="install that version again, or a newer one",
            )
        self._end_orphan()
        self._install()
        self._server.restart()
        try:
            self._prepare(is_upgrade=before is not None and _series(before) < _series(version))
        except BaseException:
            self._server.stop()
            raise
        _write(self._home / _VERSION_FILE, f"{version}\n")

    def _version_before(self) -> str | None:
        """Return the version of the server that used the data last; None before the first."""
        with suppress(FileNotFoundError):
            return (self._home / _VERSION_FILE).read_text(encoding="utf-8").strip()
        return None

    def _end_orphan(self) -> None:
        """End the server of a process that was killed: it has the data."""
        process_id = _running(self._home / _NAME / "server.pid", self._server.data_directory)
        if process_id is None:
            return
        logger.warning("embedded server: ending the one of an earlier run (process %d)", process_id)
        deadline_s = time.monotonic() + _ORPHAN_S
        number = signal.SIGTERM
        with suppress(ProcessLookupError):
            while True:
                os.kill(process_id, number)
                while time.monotonic() < deadline_s:
                    os.kill(process_id, 0)
                    time.sleep(_POLL_S)
                number, deadline_s = signal.SIGKILL, time.monotonic() + _ORPHAN_S

    def _install(self) -> None:
        """Make the data, all of it or nothing."""
        home = self._home / _NAME
        if (home / _DATA).exists():
            return
        try:
            self._home.mkdir(mode=0o700, exist_ok=True)
            home.mkdir(mode=0o700, exist_ok=True)
            for unfinished in home.glob(f"{_DATA}-*"):
                shutil.rmtree(unfinished)
            made = Path(tempfile.mkdtemp(prefix=f"{_DATA}-", dir=home))
            logger.info("embedded server: making it in %s", home)
            self._program.install(made)
            made.rename(home / _DATA)
        except OSError as error:
            raise StoreError(
                f"the embedded server cannot be made: {error.strerror}", path=str(home)
            ) from error

    def _prepare(self, *, is_upgrade: bool) -> None:
        """See that the accounts are there, and that the server is the source that we need."""
        own = _password_in(self._home / ACCOUNT_PASSWORD_FILE)
        password = self._root_password()
        if password is None:
            self._log_in(ACCOUNT, own).close()
            if is_upgrade:
                logger.warning(
                    "embedded server: its own tables are of an older version: root's password"
                    " is not that of %s, so mariadb-upgrade was not run",
                    self.root_password_file,
                )
            return
        if is_upgrade:
            logger.info("embedded server: upgrading its own tables to this version")
            self._program.upgrade(self._server.socket_path, user=_ROOT, password=password)
        new = NewAccount(ACCOUNT, _HOST, own)
        done = set_up(self._url(_ROOT), password, logger.debug, is_check=False, new=new)
        for found in done.lacking:
            logger.warning("embedded server: %s", found.reason)
        try:
            self._log_in(ACCOUNT, own).close()
        except PeerError as error:
            if error.errno != _ACCESS_DENIED:
                raise
            # The file is another one than when the account was made.
            with self._log_in(_ROOT, password) as session:
                # The statement goes into the server's log as it is.
                hashed = native_hash(own.encode())
                session.ask(f"ALTER USER '{ACCOUNT}'@'{_HOST}' IDENTIFIED BY PASSWORD '{hashed}'")

    def _root_password(self) -> str | None:
        """The password of `root`, set where it has none yet; None if somebody gave it another one."""
        password = _password_in(self.root_password_file)
        try:
            self._log_in(_ROOT, password).close()
        except PeerError as error:
            if error.errno != _ACCESS_DENIED:
                raise
        else:
            return password
        try:
            session = self._log_in(_ROOT, "")
        except PeerError as error:
            if error.errno != _ACCESS_DENIED:
                raise
            logger.info(
                "embedded server: root's password is not that of %s any more",
                self.root_password_file,
            )
            return None
        with session:
            session.ask("SET SESSION sql_log_bin = 0")
            for user, host in session.ask(_OTHERS):
                session.ask(f"DROP USER '{user}'@'{host}'")
            session.ask(f"ALTER USER '{_ROOT}'@'{_HOST}' IDENTIFIED BY '{password}'")
        return password

    def _log_in(self, user: str, password: str) -> ServerSession:
        return ServerSession(self._url(user), password, answer_s=_ASK_S)

    def _url(self, user: str) -> ServerUrl:
        return ServerUrl(user=user, host=_HOST, socket=str(self._server.socket_path))

    async def _watch(self) -> None:
        """Start the server again whenever it ended."""
        delay_s = _AGAIN_FIRST_S
        while True:
            await asyncio.sleep(_LOOK_S)
            if self._server.is_running:
                delay_s = _AGAIN_FIRST_S
                continue
            status = self._server.exit_status
            if status is not None:
                self.problem = f"the embedded server ended with status {status}"
                logger.error("%s; its log is %s", self.problem, self._server.error_log)
            again = asyncio.get_running_loop().run_in_executor(None, self._server.restart)
            try:
                await asyncio.shield(again)
            except BinlaneError as error:
                self.problem = str(error)
                logger.error("%s; next try in %.0f s", error, delay_s)  # noqa: TRY400
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, _AGAIN_LONGEST_S)
            except asyncio.CancelledError:
                # `stop` would not see a server that is just being started.
                self._server.interrupt()
                with suppress(BinlaneError):
                    await again
                raise
            else:
                self.problem = ""
                logger.info("embedded server: runs again")


def _series(version: str) -> tuple[int, ...]:
    """`10.11` of `10.11.19-MariaDB`, in numbers."""
    try:
        return tuple(int(number) for number in version.split(".")[:2])
    except ValueError:
        return ()


def _running(pid_file: Path, data: Path) -> int | None:
    """The process that a file names, if it is a server on some data."""
    try:
        process_id = int(pid_file.read_text(encoding="ascii"))
        arguments = Path(f"/proc/{process_id}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return process_id if f"--datadir={data}".encode() in arguments else None


def _password_in(path: Path) -> str:
    """The password in a file of ours, which is made where it is missing.

    Raises:
        StoreError: If it can be neither read nor made.
    """
    try:
        with suppress(FileNotFoundError):
            if found := path.read_text(encoding="utf-8").strip():
                return found
        made = secrets.token_urlsafe(_PASSWORD_BYTES)
        _write(path, f"{made}\n")
    except OSError as error:
        raise StoreError(
            f"the password file cannot be used: {error.strerror}", path=str(path)
        ) from error
    return made


def _write(path: Path, text: str) -> None:
    """Write a small file whole, for us alone."""
    unfinished = path.with_name(f"{path.name}.new")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
