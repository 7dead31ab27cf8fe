"""What the port's catalog costs: its first answers, and what every statement pays for it.

A private MariaDB holds databases of a thousand small tables each. Measured are, in this order: the
start; the first statement on a database, and on a table, from when it is asked until all is known;
then, with all tables known: seeing that a statement's objects are known (`covers`), making a
session's catalog current where nothing changed (`fit`), keeping it aside (`copy`), forgetting what
an ALTER TABLE changed (`changed`), and the first statement on that table behind it. Figures are
medians.

    python -m benchmarks.catalog [--databases N] [--rounds N]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from binlane.client.settings import ServerUrl
from binlane.live.capture.settings import SourceSettings
from binlane.live.port.catalog_connections import CatalogConnections
from binlane.live.port.live_catalog import LiveCatalog
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import read
from tests.servers import connect

TABLES = 1000
_COLUMNS = (
    "(a INT PRIMARY KEY AUTO_INCREMENT, b INT, c VARCHAR(100) NOT NULL DEFAULT 'x', d DATETIME,"
    " KEY (b)) ENGINE=InnoDB"
)


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--databases", type=int, default=5, help=f"of {TABLES} tables each")
    parser.add_argument("--rounds", type=int, default=200, help="of which figures are medians")
    given, _ = parser.parse_known_args()  # those of the other benchmarks
    # As `serve` has it.
    sys.setswitchinterval(0.001)
    with (
        tempfile.TemporaryDirectory() as directory,
        PrivateServer.start(Path(directory), name="catalog", options=SOURCE_OPTIONS) as server,
    ):
        make_tables(server, given.databases)
        figures = asyncio.run(measured(server, given.databases, given.rounds))
    line = {"benchmark": "catalog", "tables": given.databases * TABLES, **figures}
    print(json.dumps(line | {"load": os.getloadavg()[0]}), flush=True)


def make_tables(server: PrivateServer, databases: int) -> None:
    """Fill the server."""
    with connect(server) as session, session.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        for database in range(databases):
            cursor.execute(f"CREATE DATABASE d{database}")
            for table in range(TABLES):
                cursor.execute(f"CREATE TABLE d{database}.t{table} {_COLUMNS}")


async def measured(server: PrivateServer, databases: int, rounds: int) -> dict[str, float]:
    """The figures, by what they are of."""
    catalog = LiveCatalog(CatalogConnections(SourceSettings(url=ServerUrl.parse(server.url))))

    def insert(database: int, table: int) -> tuple[StatementFacts, str]:
        text = f"INSERT INTO t{table} VALUES (1, 2, 'x', NOW())"
        return read(text, database=f"d{database}", dialect=catalog.dialect), f"d{database}"

    async def first(database: int, table: int) -> float:
        facts = insert(database, table)
        begun_s = time.perf_counter()
        await catalog.fetch(*facts)
        return time.perf_counter() - begun_s

    begun_s = time.perf_counter()
    await catalog.start()
    found = {"start_ms": 1e3 * (time.perf_counter() - begun_s)}
    found["first_of_database_ms"] = 1e3 * await first(0, 0)
    found["first_of_table_ms"] = 1e3 * statistics.median(
        [await first(0, table) for table in range(1, rounds)]
    )
    for database in range(databases):
        await asyncio.gather(*(catalog.fetch(*insert(database, table)) for table in range(TABLES)))
    session = catalog.catalog()
    facts, home = insert(0, 7)
    found["covers_us"] = timed(lambda: catalog.covers(facts, home), rounds)
    found["fit_us"] = timed(lambda: catalog.fit(session), rounds)
    found["copy_us"] = timed(session.copy, rounds)
    ddl = read("ALTER TABLE t7 ADD COLUMN e INT", database=home, dialect=catalog.dialect)
    changes: list[float] = []
    again: list[float] = []
    for _ in range(rounds):
        begun_s = time.perf_counter()
        catalog.changed(ddl, home)
        changes.append(time.perf_counter() - begun_s)
        again.append(await first(0, 7))
    found["changed_us"] = 1e6 * statistics.median(changes)
    found["first_behind_ddl_ms"] = 1e3 * statistics.median(again)
    await catalog.stop()
    return {name: round(value, 2) for name, value in found.items()}


def timed(work: Callable[[], object], rounds: int) -> float:
    """Microseconds."""
    taken: list[float] = []
    for _ in range(rounds):
        begun_s = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun_s)
    return 1e6 * statistics.median(taken)


if __name__ == "__main__":
    main()
