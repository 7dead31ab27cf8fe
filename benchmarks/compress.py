"""Size and CPU time of compressed binlogs beside a server's own compressed log, as JSON lines.

The same load runs on a server that compresses its log and on one that does not (MariaDB's
log_bin_compress, MySQL's binlog_transaction_compression): their logs' sizes, and the CPU seconds of
the whole server. The plain log is then routed into a binlog with COMPRESS='ON' and into one without,
in turn, by whole processes: the sizes, and the medians of their CPU seconds.

`oltp` is sysbench's oltp_write_only, `bulk` 25 columns of all common types in large statements.

    python -m benchmarks.compress [--rounds N] [--transactions N] [--bulk-rounds N] [--mysql FOLDER]
        [NAME...]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import pymysql

from benchmarks.logs import bulk_rounds, position, sysbench_command
from benchmarks.measuring import run
from benchmarks.route import BINLANE
from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MARIADB, MysqlProgram, ServerProgram

LOADS: Final = ("oltp", "bulk")
_OPTIONS: Final = {
    "mariadb": (*SOURCE_OPTIONS, "--log-bin-compress={}"),
    "mysql": (*MYSQL_SOURCE_OPTIONS, "--binlog-transaction-compression={}"),
}
_FAST: Final = ("--max-binlog-size=1G", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0")
_BINLOGS: Final = {
    "plain": "CREATE BINLOG 'b';\n",
    "compressed": "CREATE BINLOG 'b' COMPRESS='ON';\n",
}


def main() -> None:
    """Print one line for each server and load."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(LOADS), metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3, help="of which figures are medians")
    parser.add_argument("--transactions", type=int, default=8000, help="of sysbench")
    parser.add_argument("--bulk-rounds", type=int, default=10, help="of thousands of rows each")
    parser.add_argument("--mysql", type=Path, default=Path(".run/mysql"))
    given = parser.parse_args()
    programs: list[ServerProgram] = [MARIADB]
    if MysqlProgram(given.mysql).is_there:
        programs.append(MysqlProgram(given.mysql))
    for program in programs:
        for name in given.names:
            figures = compare(program, name, given)
            line = {"benchmark": "compress", "server": program.scheme, "load": name, **figures}
            print(json.dumps(line), flush=True)


def compare(program: ServerProgram, name: str, given: argparse.Namespace) -> dict[str, object]:
    """The figures of one load."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        servers = {
            what: served(directory / what, program, name, given, switch=switch)
            for what, switch in (("plain", "OFF"), ("compressed", "ON"))
        }
        log = servers["plain"][0]
        plain = log.stat().st_size
        taken: dict[str, list[float]] = {what: [] for what in _BINLOGS}
        sizes: dict[str, int] = {}
        for _ in range(given.rounds):
            for what, definition in _BINLOGS.items():
                script, out = directory / "defs.sql", directory / "out"
                script.write_text(definition)
                command = [*BINLANE, "--binlogs", str(script), "--out", str(out), str(log)]
                taken[what].append(run(command).cpu_s)
                sizes[what] = sum(file.stat().st_size for file in out.rglob("b.0*"))
                shutil.rmtree(out)
        return {
            "server_log": {what: file.stat().st_size for what, (file, _) in servers.items()},
            "server_cpu_s": {what: round(cpu_s, 2) for what, (_, cpu_s) in servers.items()},
            "binlog": sizes,
            "route_cpu_s": {what: round(statistics.median(one), 3) for what, one in taken.items()},
            "server_ratio": round(plain / servers["compressed"][0].stat().st_size, 2),
            "ratio": round(sizes["plain"] / sizes["compressed"], 2),
            "busy": os.getloadavg()[0],
        }


def served(
    directory: Path, program: ServerProgram, name: str, given: argparse.Namespace, *, switch: str
) -> tuple[Path, float]:
    """Run a load on a server of its own; a copy of the log, and the server's CPU seconds."""
    options = [option.format(switch) for option in _OPTIONS[program.scheme]]
    directory.mkdir()
    server = PrivateServer.start(
        directory, name="source", options=[*options, *_FAST], program=program
    )
    try:
        login = {"host": server.host, "port": server.port, "user": "root", "autocommit": True}
        with closing(pymysql.connect(**login, charset="utf8mb4")) as session:  # type: ignore[call-overload] # of mixed types
            cursor = session.cursor()
            file, cpu_s = _load(server, cursor, name, given)
            cursor.execute("SELECT @@GLOBAL.log_bin_basename")
            (basename,) = cursor.fetchone()
            log = directory / file
            shutil.copyfile(Path(basename).parent / file, log)
    finally:
        server.kill()
    return log, cpu_s


def _load(
    server: PrivateServer,
    cursor: pymysql.cursors.Cursor,
    name: str,
    given: argparse.Namespace,
) -> tuple[str, float]:
    """Do the same each time; the name of the log, and the CPU seconds of the server."""
    if name == "bulk":
        rounds = bulk_rounds(cursor)
        next(rounds)
        cursor.execute("FLUSH BINARY LOGS")
        before = _cpu_s(server)
        for _ in range(given.bulk_rounds):
            next(rounds)
        return position(cursor)[0], _cpu_s(server) - before
    command = [*sysbench_command(server.host, server.port, threads=1), "--rand-seed=1"]
    cursor.execute("CREATE DATABASE sbtest")
    _quiet([*command, "prepare"])
    cursor.execute("FLUSH BINARY LOGS")
    before = _cpu_s(server)
    _quiet([*command, "--time=0", f"--events={given.transactions}", "run"])
    return position(cursor)[0], _cpu_s(server) - before


def _quiet(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _cpu_s(server: PrivateServer) -> float:
    """User and system time that a process has taken so far, in seconds."""
    fields = Path(f"/proc/{server.process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
