"""How fast a table's rows become row images: `python -m benchmarks.seed_rows [--rows N] [--server URL]`.

Without a server a private MariaDB gets an orders-like table: key, varchar, decimal, datetime, int.
Prints one JSON object a line: rows, CPU seconds of this process, rows a CPU second, wall seconds;
for the rows that are made of frames already in memory, for the reading with the server's part, and
for a whole spool with its writes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from binlane.binlogs.seeds.spool import SeedSpool
from binlane.binlogs.seeds.spool_reading import read_tables
from binlane.client.rows.logged_table import read_logged_table
from binlane.client.rows.settled_places import set_up
from binlane.client.rows.table_rows import BatchMaker, TableRows
from binlane.client.session import ServerSession
from binlane.client.settings import ServerUrl
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.names import TableName

_TABLE = TableName("seed_bench", "orders")
_FILL = """
DROP DATABASE IF EXISTS seed_bench;
CREATE DATABASE seed_bench;
USE seed_bench;
CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, customer VARCHAR(60),
    total DECIMAL(12,2), placed DATETIME, state INT) ENGINE=InnoDB;
INSERT INTO orders (customer, total, placed, state) SELECT CONCAT('customer ', seq),
    seq / 7, '2026-01-01' + INTERVAL seq SECOND, seq % 5 FROM seq_1_to_{rows}
"""


@contextmanager
def _server(url: str) -> Iterator[str]:
    if url:
        yield url
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        PrivateServer.start(Path(folder), name="seed", options=SOURCE_OPTIONS) as server,
    ):
        yield server.url


def _timed(what: str, work: Callable[[], int]) -> None:
    wall, cpu = time.monotonic(), time.process_time()
    rows = work()
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    found = {"what": what, "rows": rows, "cpu_s": round(cpu, 3), "wall_s": round(wall, 3)}
    print(json.dumps({**found, "rows_a_cpu_s": round(rows / cpu)}))


def main(arguments: list[str]) -> None:
    """Fill the table, and read it in three ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--server", default="")
    options = parser.parse_args(arguments)
    with (
        _server(options.server) as url,
        ServerSession(ServerUrl.parse(url), "") as session,
        tempfile.TemporaryDirectory() as folder,
    ):
        for statement in _FILL.format(rows=options.rows).split(";"):
            session.ask(statement)
        set_up(session)
        table = read_logged_table(session, _TABLE)
        pieces = list(session.stream_binary(table.select))
        for is_fast in (True, False):
            maker = BatchMaker(table, pieces[0][0], is_fast=is_fast)
            _timed(
                "images, by kernel" if is_fast else "images, by reference",
                lambda maker=maker: sum(len(maker.make(frames)) for _, frames in pieces),  # type: ignore[misc]
            )
        _timed("reading", lambda: sum(map(len, TableRows(session, table).read())))
        spool = SeedSpool.create(Path(folder) / "spool", [_TABLE])

        def spooled() -> int:
            read_tables(spool, session)
            return spool.states[0].rows

        _timed("spool, in ranges of 4 MB", spooled)


if __name__ == "__main__":
    main(sys.argv[1:])
