"""What the context of a text costs, in CPU microseconds of binlane's own process.

A session's variables are known. Measured are what an INSERT with an AUTO_INCREMENT value pays: finding
what it uses (`use`), what it needs (`needs`), its context (`begin`; `begin_time` sets its microseconds),
taking its reply (`answered`), its events (`complete`), and noticing that it changed nothing (`ran`);
`all` is their sum without `begin_time`. `first_use` is the first one of its kind. No server is asked.
Figures are medians.

    python -m benchmarks.context [--rounds N]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Final

from binlane.live.port.context_reader import ContextReader
from binlane.live.port.context_use import KnownUses, context_use
from binlane.live.port.statement_context import complete
from binlane.log.codec.packets.flags import ServerStatus
from binlane.log.codec.packets.results import ColumnDefinition, ResultSet
from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.reading import read

_CALLS = 2000
SCHEMA = """
CREATE DATABASE d; USE d;
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20));
CREATE TABLE timed (id INT PRIMARY KEY, c TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6));
"""
VALUES: Final = {
    "DATABASE()": "d",
    "@@sql_mode": "STRICT_TRANS_TABLES",
    "@@auto_increment_increment": "1",
    "@@auto_increment_offset": "1",
    "@@character_set_client": "utf8mb4",
    "@@collation_connection": "utf8mb4_general_ci",
    "@@collation_server": "latin1_swedish_ci",
    "@@time_zone": "SYSTEM",
    "@@lc_time_names": "en_US",
    "@@collation_database": "latin1_swedish_ci",
    "@@secure_timestamp": "NO",
}
INSERT = "INSERT INTO t (a) VALUES ('x')"
TIMED = "INSERT INTO timed (id) VALUES (1)"


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=25, help="of which figures are medians")
    given, _ = parser.parse_known_args()  # those of the other benchmarks
    figures = measured(given.rounds)
    line = {"benchmark": "context", **figures, "load": os.getloadavg()[0]}
    print(json.dumps(line), flush=True)


async def answer(statement: str) -> ResultSet:
    """What a source says of a session that set nothing."""
    columns = statement.removeprefix("SELECT ").removesuffix(" LIMIT 1").split(", ")
    row = tuple(VALUES.get(column, "0").encode() for column in columns)
    heads = tuple(ColumnDefinition(name=column) for column in columns)
    return ResultSet(tuple(columns), (row,), ServerStatus.AUTOCOMMIT, heads=heads)


def measured(rounds: int) -> dict[str, float]:
    """All figures, in microseconds."""
    server = Server.parse("mariadb:10.11")
    objects = SchemaCatalog(Flavor.MARIADB)
    objects.load(SCHEMA)
    session = Session(server=server, objects=objects, database="d")
    session.execute("SET SESSION binlog_format = 'STATEMENT'")
    reader = ContextReader(server)
    asyncio.run(reader.read(answer))
    uses = KnownUses()
    facts = read(INSERT, database="d", dialect=session.dialect)
    timed = uses.of(read(TIMED, database="d", dialect=session.dialect), session, None)
    use = uses.of(facts, session, None)
    bodies = session.execute(INSERT).binlogs["binlog"].bodies[1:-1]
    needs, timed_needs = reader.needs(bodies, use), reader.needs((), timed)
    assert needs is not None, "it is plain"
    assert timed_needs is not None, "its time may be set"
    begun = reader.begin(needs)
    assert begun is not None, "all is known"
    context = begun[0]
    resolved = session.resolved(facts, "d")
    calls: dict[str, Callable[[], object]] = {
        "use": lambda: uses.of(facts, session, None),
        "needs": lambda: reader.must_ask(reader.needs(bodies, use) or needs),
        "begin": lambda: reader.begin(needs),
        "answered": lambda: context.answered(insert_id=7, affected_rows=1),
        "complete": lambda: complete(bodies, context, Flavor.MARIADB),
        "ran": lambda: reader.ran(facts, use),
    }
    found = {name: _median_us(call, rounds) for name, call in calls.items()}
    assert complete(bodies, context, Flavor.MARIADB), "it is a text"
    return {
        **found,
        "all": round(sum(found.values()), 2),
        "begin_time": _median_us(lambda: reader.begin(timed_needs), rounds),
        "first_use": _median_us(
            lambda: context_use(facts, resolved, objects, server, "d"), rounds, calls=100
        ),
    }


def _median_us(call: Callable[[], object], rounds: int, calls: int = _CALLS) -> float:
    """CPU microseconds of one call."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(calls):
            call()
        taken.append((time.process_time() - start) / calls * 1e6)
    return round(statistics.median(taken), 2)


if __name__ == "__main__":
    main()
