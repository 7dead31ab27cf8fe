"""The programs that a private server can be: MariaDB as installed, MySQL as installed or unpacked.

Here stands what differs between them: where the program is and how a data directory is made. How a
server is run is `private_server`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final, Protocol

from binlane.errors import PeerError

_MYSQLD_IN_FOLDER: Final = "/usr/sbin/mysqld"
_ASKING_TIMEOUT_S: Final = 30
_SHOWN: Final = 500


class ServerProgram(Protocol):
    """One server's program."""

    @property
    def scheme(self) -> str:
        """`mariadb` or `mysql`, as URLs of such a server begin."""
        ...

    def command(self, *, data: Path) -> list[str]:
        """The command line that runs it on a data directory, without what the caller decides.

        Raises:
            PeerError: If it is not installed.
        """
        ...

    def install(self, data: Path) -> None:
        """Fill an empty data directory; `root` has no password.

        Raises:
            PeerError: If it is not installed, or fails.
        """
        ...


class MariadbProgram:
    """`mariadbd` as this machine has it."""

    scheme = "mariadb"
    _SMALL: Final = ("--innodb-log-file-size=16M", "--innodb-buffer-pool-size=64M")
    _HINT: Final = (
        "as root: apt-get install --no-install-recommends mariadb-server-core mariadb-client"
    )

    def command(self, *, data: Path) -> list[str]:
        """As `ServerProgram`."""
        return [
            self._program("mariadbd"),
            "--no-defaults",
            *_run_as(),
            f"--datadir={data}",
            # A server that starts removes what others have in a directory that they share.
            f"--tmpdir={data.parent}",
            *self._SMALL,
        ]

    def install(self, data: Path) -> None:
        """As `ServerProgram`."""
        # The server that fills it uses this directory: one that starts removes what others have there.
        with TemporaryDirectory(dir=data.parent) as own:
            _install(
                [
                    self._program("mariadb-install-db"),
                    "--no-defaults",
                    *_run_as(),
                    "--auth-root-authentication-method=normal",
                    # Nothing here needs this machine's name; a lookup may hang without a network.
                    "--force",
                    "--skip-test-db",
                    f"--datadir={data}",
                    f"--tmpdir={own}",
                    *self._SMALL,
                ]
            )

    def version(self) -> str:
        """Return the version that the program says, such as `10.11.19-MariaDB-0+deb12u1`.

        Raises:
            PeerError: If it is not installed, or does not say it.
        """
        program = self._program("mariadbd")
        said = subprocess.run(  # noqa: S603 - our own command line
            [program, "--no-defaults", "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_ASKING_TIMEOUT_S,
        )
        words = said.stdout.split()
        if said.returncode != 0 or "Ver" not in words[:-1]:
            raise PeerError(
                f"{program} does not tell its version",
                peer="mariadbd",
                phase="start",
                hint=(said.stdout + said.stderr).strip()[:_SHOWN] or "is it MariaDB's?",
            )
        return words[words.index("Ver") + 1]

    def upgrade(self, socket_path: Path, *, user: str, password: str) -> None:
        """Bring the tables of the server itself, which an older version made, to this version.

        Raises:
            PeerError: If `mariadb-upgrade` is not installed, or fails.
        """
        _install(
            [
                self._program("mariadb-upgrade"),
                "--no-defaults",
                f"--socket={socket_path}",
                f"--user={user}",
            ],
            what="bringing the server's own tables to this version",
            environ={"MYSQL_PWD": password},
        )

    def _program(self, name: str) -> str:
        found = _which(name)
        if found is None:
            raise PeerError(
                f"{name} is not installed", peer="mariadbd", phase="start", hint=self._HINT
            )
        return found


@dataclass(frozen=True, slots=True)
class MysqlProgram:
    """`mysqld` as this machine has it, or of a folder that `tools/unpack-mysql` filled.

    Attributes:
        folder: Holds `exec`, which runs a program of the folder; None takes the machine's `mysqld`.
    """

    folder: Path | None = None

    @property
    def scheme(self) -> str:
        """As `ServerProgram`."""
        return "mysql"

    @property
    def is_there(self) -> bool:
        """True if the server can be started."""
        return self._mysqld() is not None

    def command(self, *, data: Path) -> list[str]:
        """As `ServerProgram`."""
        mysqld = self._mysqld()
        if mysqld is None:
            raise PeerError(
                "MySQL's mysqld is not installed"
                if self.folder is None
                else f"no MySQL is unpacked in {self.folder}",
                peer="mysqld",
                phase="start",
                hint="./run demo --mysql and tools/unpack-mysql FOLDER get MySQL from Debian"
                " into a folder; nothing is installed",
            )
        return [
            *mysqld,
            "--no-defaults",
            *_run_as(),
            *self._places(),
            f"--datadir={data}",
            "--innodb-redo-log-capacity=16M",
            "--innodb-buffer-pool-size=64M",
            "--mysqlx=OFF",
        ]

    def install(self, data: Path) -> None:
        """As `ServerProgram`."""
        # A log would be copied with the data, and its GTIDs with it.
        _install([*self.command(data=data), "--initialize-insecure", "--skip-log-bin"])
        # It holds the server's UUID; every copy of the data is a server of its own.
        (data / "auto.cnf").unlink(missing_ok=True)

    def _mysqld(self) -> list[str] | None:
        if self.folder is not None:
            program = self.folder / "exec"
            return [os.fspath(program), _MYSQLD_IN_FOLDER] if program.exists() else None
        found = _which("mysqld")
        # MariaDB's packages have a program of this name, too.
        return [found] if found is not None and _is_mysql(found) else None

    def _places(self) -> list[str]:
        """Return options that show a server in a folder the places that it was built to find in the root."""
        if self.folder is None:
            return []
        usr = self.folder / "usr"
        return [
            f"--basedir={usr}",
            f"--plugin-dir={usr}/lib/mysql/plugin",
            f"--lc-messages-dir={usr}/share/mysql",
            f"--character-sets-dir={usr}/share/mysql/charsets",
        ]


MARIADB: Final = MariadbProgram()
"""The machine's own MariaDB."""


def _install(
    command: Sequence[str],
    *,
    what: str = "making a data directory",
    environ: Mapping[str, str] = MappingProxyType({}),
) -> None:
    done = subprocess.run(  # noqa: S603 - our own command line
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environ,
    )
    if done.returncode != 0:
        name = Path(command[0]).name
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-5:])
        raise PeerError(
            f"{what} failed with status {done.returncode}",
            peer=name,
            phase="install",
            hint=f"is there room for it? {name} said:\n{tail}",
        )


def _which(name: str) -> str | None:
    # Servers stand in /usr/sbin, which an ordinary user's PATH lacks.
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"
    return shutil.which(name, path=path)


def _is_mysql(program: str) -> bool:
    try:
        said = subprocess.run(  # noqa: S603 - found on the PATH
            [program, "--no-defaults", "--version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_ASKING_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.returncode == 0 and "MariaDB" not in said.stdout


def _run_as() -> list[str]:
    # Servers refuse to run as root unless told so by name.
    return ["--user=root"] if os.geteuid() == 0 else []
