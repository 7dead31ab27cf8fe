"""The logs that the benchmarks read, made once on private servers and kept in `.run/bench`.

`oltp` is sysbench's oltp_write_only over four tables; `bulk` 25 columns of all common types,
written, updated and deleted by thousands of rows; `bulk_compressed` the same with
log_bin_compress; `statement` sysbench again in STATEMENT format. Where BINLANE_MYSQLD and
BINLANE_MYSQL_BASE name a MySQL server, `oltp_mysql` and `bulk_mysql` are the same of that one, and
`payload` is `bulk` in its compressed transactions.

    python -m benchmarks.logs [--megabytes N] [--directory DIR] [NAME...]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pymysql
from pymysql.cursors import Cursor

from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer

DIRECTORY = Path(".run/bench")
MEGABYTES = {
    "oltp": 300,
    "bulk": 500,
    "bulk_compressed": 250,
    "statement": 50,
    "oltp_mysql": 300,
    "bulk_mysql": 500,
    "payload": 150,
}
MYSQL = frozenset({"oltp_mysql", "bulk_mysql", "payload"})
_OPTIONS = (*SOURCE_OPTIONS, "--max-binlog-size=1G", "--sync-binlog=0", "--max-allowed-packet=64M")
_OPTIONS_FAST = ("--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=256M")
_ROWS_A_STATEMENT = 4000
_POOL = 4000
_TABLE = """CREATE TABLE bench.bulk (
  id BIGINT UNSIGNED PRIMARY KEY, t TINYINT, s SMALLINT UNSIGNED, m MEDIUMINT, i INT, b BIGINT,
  f FLOAT, d DOUBLE, n DECIMAL(14,4), w DECIMAL(30,10), dt DATETIME(6), ts TIMESTAMP(3) NULL,
  da DATE, ti TIME(2), y YEAR, v VARCHAR(60), c CHAR(20), x TEXT, j TEXT, l BLOB,
  e ENUM('new','paid','sent','back'), se SET('a','b','c','d'), bi BIT(10), vb VARBINARY(30),
  nn INT NULL) CHARACTER SET utf8mb4"""


@dataclass(frozen=True, slots=True)
class Account:
    """Where a server listens."""

    host: str
    port: int
    directory: Path


def log(name: str, *, megabytes: int | None = None, directory: Path = DIRECTORY) -> Path | None:
    """A log by its name, made if it is not there yet.

    Args:
        name: A key of `MEGABYTES`.
        megabytes: Its least size; that of `MEGABYTES` by default.
        directory: Where it is kept.

    Returns:
        The file; None if this machine lacks the server that would write it.
    """
    size = MEGABYTES[name] if megabytes is None else megabytes
    path = directory / f"{name}-{size}.000001"
    if path.exists():
        return path
    if name in MYSQL and "BINLANE_MYSQLD" not in os.environ:
        return None
    directory.mkdir(parents=True, exist_ok=True)
    print(f"making {path}", file=sys.stderr, flush=True)
    with served(name, size) as (server, file):
        partial = path.with_suffix(".part")
        shutil.copyfile(server.directory / file, partial)
        partial.rename(path)
    return path


@contextmanager
def served(name: str, megabytes: int) -> Iterator[tuple[Account, str]]:
    """A running server that has just written such a log, and the log's name."""
    with _server(name) as server:
        fill = _sysbench if name in {"oltp", "oltp_mysql", "statement"} else _bulk
        yield server, fill(server, megabytes << 20)


@contextmanager
def _server(name: str) -> Iterator[Account]:
    with tempfile.TemporaryDirectory() as directory:
        if name in MYSQL:
            with _mysql(Path(directory), compresses=name == "payload") as account:
                yield account
            return
        options = [*_OPTIONS, *_OPTIONS_FAST]
        if name == "bulk_compressed":
            options += ["--log-bin-compress=ON"]
        if name == "statement":
            options += ["--binlog-format=STATEMENT"]
        with PrivateServer.start(Path(directory), name="source", options=options) as server:
            yield Account(server.host, server.port, server.data_directory)


@contextmanager
def _mysql(work: Path, *, compresses: bool) -> Iterator[Account]:
    """A MySQL server: BINLANE_MYSQLD is its command, BINLANE_MYSQL_BASE its base directory."""
    command = os.environ["BINLANE_MYSQLD"].split()
    base, data, port = os.environ["BINLANE_MYSQL_BASE"], work / "data", 33961
    common = [
        *command,
        "--no-defaults",
        "--user=root",
        f"--basedir={base}/usr",
        f"--datadir={data}",
        f"--lc-messages-dir={base}/usr/share/mysql",
        f"--character-sets-dir={base}/usr/share/mysql/charsets",
    ]
    subprocess.run([*common, "--initialize-insecure"], check=True, capture_output=True)
    options = [
        f"--port={port}",
        f"--socket={work}/s",
        "--mysqlx=OFF",
        "--secure-file-priv=",
        f"--plugin-dir={base}/usr/lib/mysql/plugin",
        "--log-bin=binlog",
        "--max-binlog-size=1G",
        "--sync-binlog=0",
        "--innodb-flush-log-at-trx-commit=0",
    ]
    if compresses:
        options += ["--binlog-row-metadata=FULL", "--binlog-transaction-compression=ON"]
    with subprocess.Popen([*common, *options], stderr=subprocess.DEVNULL) as process:
        try:
            _wait(port)
            yield Account("127.0.0.1", port, data)
        finally:
            process.terminate()


def _wait(port: int) -> None:
    for _ in range(300):
        try:
            pymysql.connect(host="127.0.0.1", port=port, user="root").close()
        except pymysql.err.OperationalError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit(f"no server came up on port {port}")


def sysbench_command(host: str, port: int, *, threads: int = 2) -> list[str]:
    """The command of oltp_write_only over the four tables of a server."""
    return [
        "sysbench",
        "oltp_write_only",
        f"--mysql-host={host}",
        f"--mysql-port={port}",
        "--mysql-user=root",
        "--mysql-db=sbtest",
        "--tables=4",
        "--table-size=10000",
        f"--threads={threads}",
        "--db-ps-mode=disable",
    ]


def _sysbench(server: Account, size: int) -> str:
    """Run sysbench until the current file has `size` bytes; its name."""
    if shutil.which("sysbench") is None:
        raise SystemExit("sysbench is missing: apt-get install sysbench")
    command = sysbench_command(server.host, server.port)
    with pymysql.connect(host=server.host, port=server.port, user="root") as session:
        cursor = session.cursor()
        cursor.execute("CREATE DATABASE sbtest")
        cursor.execute("SET GLOBAL max_prepared_stmt_count = 0")
        subprocess.run([*command, "prepare"], check=True, stdout=subprocess.DEVNULL)
        cursor.execute("FLUSH BINARY LOGS")
        while position(cursor)[1] < size:
            subprocess.run(
                [*command, "--time=0", "--events=4000", "run"],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        return position(cursor)[0]


def _bulk(server: Account, size: int) -> str:
    """Insert, update and delete thousands of rows until the file has `size` bytes; its name."""
    with pymysql.connect(
        host=server.host, port=server.port, user="root", autocommit=True, charset="utf8mb4"
    ) as session:
        cursor = session.cursor()
        rounds = bulk_rounds(cursor)
        next(rounds)
        cursor.execute("FLUSH BINARY LOGS")
        while position(cursor)[1] < size:
            next(rounds)
        return position(cursor)[0]


def bulk_rounds(cursor: Cursor) -> Iterator[None]:
    """Make the table, then insert, update and delete thousands of rows, the same each time."""
    pool = [_row(random.Random(number)) for number in range(_POOL)]  # data, not secrets
    cursor.execute("CREATE DATABASE bench CHARACTER SET utf8mb4")
    cursor.execute(_TABLE)
    first = 0
    while True:
        yield
        rows = ",".join(f"({first + n},{row})" for n, row in enumerate(pool))
        cursor.execute(f"INSERT INTO bench.bulk VALUES {rows}")
        cursor.execute(f"UPDATE bench.bulk SET i = i + 1, v = 'changed' WHERE id >= {first}")
        cursor.execute(f"DELETE FROM bench.bulk WHERE id < {first + _ROWS_A_STATEMENT // 2}")
        first += _ROWS_A_STATEMENT


def _row(source: random.Random) -> str:
    """The values of a row behind its id, as SQL."""
    number, word = source.randrange, "".join(source.choices("abcdefghijklmnopqrstuvwxyz äöü", k=30))
    day = f"20{number(10, 30)}-{number(1, 13):02d}-{number(1, 29):02d}"
    clock = f"{number(4, 24):02d}:{number(60):02d}:{number(60):02d}"
    document = json.dumps({"k": number(1000), "name": word}, ensure_ascii=False)
    return (
        f"{number(-128, 128)},{number(65536)},{number(-8388608, 8388608)},{number(-(2**31), 2**31 - 9)},"
        f"{number(-(2**63), 2**63)},{source.random():.6g},{source.gauss(0, 1e6)!r},"
        f"{number(10**14) / 10**4:.4f},{number(10**18)}.{number(10**10):010d},"
        f"'{day} {clock}.{number(10**6):06d}','{day} {clock}.{number(1000):03d}','{day}',"
        f"'{clock}.{number(100):02d}',{number(1901, 2156)},'{word}','{word[:12].strip()}',"
        f"'{word * number(1, 4)}','{document}',x'{source.randbytes(24).hex()}',"
        f"{number(1, 5)},{number(16)},{number(1024)},x'{source.randbytes(16).hex()}',"
        f"{'NULL' if number(2) else number(1000)}"
    )


def position(cursor: Cursor) -> tuple[str, int]:
    """The binlog file that is being written, and its size."""
    try:
        cursor.execute("SHOW BINARY LOG STATUS")
    except pymysql.err.Error:
        cursor.execute("SHOW MASTER STATUS")
    row = cursor.fetchone()
    assert row is not None
    return str(row[0]), int(row[1])


def main() -> None:
    """Make the logs that are named, all by default."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[*MEGABYTES, []], default=[])
    parser.add_argument("--megabytes", type=int)
    parser.add_argument("--directory", type=Path, default=DIRECTORY)
    options = parser.parse_args()
    for name in options.names or MEGABYTES:
        path = log(name, megabytes=options.megabytes, directory=options.directory)
        print(json.dumps({"log": name, "file": None if path is None else str(path)}))


if __name__ == "__main__":
    main()
