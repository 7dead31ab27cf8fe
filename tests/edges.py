"""Scripts run on a real source, and what scoped binlogs make of each statement, by either path."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from binlane.binlogs.route.route_request import RouteReport
from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.live.provision.private_server import PrivateServer
from binlane.log.kernels.load import is_compiled
from tests.replay import binlane
from tests.routed_files import outputs, routed
from tests.servers import connect, execute, mysql_program

# What `route` is told for each way of its own: by kernels, by reading groups twice, by reference.
_WAYS: Final[dict[str, dict[str, Any]]] = {
    "reference": {"uses_kernels": False},
    "spans": {},
    "large": {"window_bytes": 64, "held_bytes_max": 200},
}
PATHS = tuple(_WAYS) if is_compiled(("copying", "scan")) else ("reference",)
_INCIDENT = re.compile(r".*?:(?P<position>[0-9]+): \S+( GTID)?: (?P<reason>.*)")


class Recording:
    """What one source logged, from a file of its own on.

    Attributes:
        path: Of the binlog file.
        begin: Where the log ended behind the setup.
        ends: Where it ended behind each case.
    """

    def __init__(self, server: PrivateServer, directory: Path) -> None:
        self._server = server
        self.begin = 0
        self.ends: list[int] = []
        self._connection = connect(server)
        self.run("FLUSH BINARY LOGS")
        self._status = "BINARY LOG" if server.program.scheme == "mysql" else "MASTER"
        file, _ = self._where()
        self.path = directory / file
        self.ends.clear()

    def _where(self) -> tuple[str, int]:
        with self._connection.cursor() as cursor:
            cursor.execute(f"SHOW {self._status} STATUS")
            found = cursor.fetchone()
            assert found is not None
            return str(found[0]), int(found[1])

    def run(self, *statements: str) -> None:
        """Run statements, and note where the log ends behind them."""
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        if hasattr(self, "path"):
            self.ends.append(self._where()[1])

    def close(self) -> None:
        """End the session, and keep the file."""
        self._connection.close()
        source = self._server.data_directory / self.path.name
        self.path.write_bytes(source.read_bytes()[: self.ends[-1]])

    def reports(self, *scopes: str, links: TableLinks = NO_LINKS) -> RouteReport:
        """Route the file by each path, which must come to the same."""
        directories = [self.path.parent / way for way in PATHS]
        reports = []
        for way, directory in zip(PATHS, directories, strict=True):
            shutil.rmtree(directory, ignore_errors=True)
            options = {**_WAYS[way], "links": links}
            reports.append(routed((str(self.path),), directory, *scopes, **options))
        made = list(map(outputs, directories))
        assert all(one == made[0] for one in made)
        assert all(one.counts == reports[0].counts for one in reports)
        assert all(report.fault is None for report in reports)
        return reports[0]

    def incidents(self, report: RouteReport, binlog: str = "b1") -> dict[int, str]:
        """Why there are incidents, by the number of the statement."""
        found = {}
        for text in report.counts[binlog].incidents:
            match = _INCIDENT.fullmatch(text)
            assert match is not None, text
            position = int(match["position"])
            if position >= self.begin:
                number = next(n for n, end in enumerate(self.ends) if end > position)
                found[number] = match["reason"]
        return found


def replayed(report_directory: Path, binlog: str, server: PrivateServer) -> list[str]:
    """Run what a scoped binlog holds on a server; the errors, in order."""
    files = sorted(report_directory.glob(f"{binlog}/{binlog}.0*"))
    text = binlane("cat", *map(str, files))
    login = [f"--socket={server.socket_path}", "--user=root", "--no-defaults"]
    client = ["mariadb"]
    if server.program.scheme == "mysql":
        folder = mysql_program().folder
        client = ["mysql"] if folder is None else [str(folder / "exec"), "/usr/bin/mysql"]
    done = subprocess.run(
        [*client, login[-1], *login[:-1], "--binary-mode", "--force"],
        input=text,
        capture_output=True,
        check=False,
    )
    return [line for line in done.stderr.decode().splitlines() if line.startswith("ERROR")]


def contents(server: PrivateServer, *databases: str) -> dict[str, object]:
    """Definition and rows of each table of some databases."""
    found: dict[str, object] = {}
    for database in databases:
        for (table,) in execute(server, f"SHOW TABLES FROM {database}"):
            name = f"{database}.{table}"
            rows = execute(server, f"SELECT * FROM {name}")
            found[name] = execute(server, f"SHOW CREATE TABLE {name}")[0][1], sorted(rows)
    return found


def recorded(
    server: PrivateServer, directory: Path, setup: Sequence[str], cases: Sequence[str]
) -> Recording:
    """Run a setup, then cases of several statements with `;` between them.

    What becomes of the setup is not told of.
    """
    recording = Recording(server, directory)
    recording.run(*setup)
    recording.begin = recording.ends.pop()
    for case in cases:
        recording.run(*case.split("; "))
    recording.close()
    return recording
