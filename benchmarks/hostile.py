"""What hostile texts of SQL cost to read and to judge, as JSON lines: is it linear?

Each shape of `tests/hostile_texts` is made of some size and of twice that, and both are read, cut
into statements and carried out in two binlogs, for either flavor; CPU seconds, and how many times
the longer one takes. With `--port` one client sends such texts to a port in this process, before a
private MariaDB, in a loop, and another asks `SELECT 1`: `waits_s` are its longest and median waits.

    python -m benchmarks.hostile [--size CHARACTERS] [--only SHAPE …] [--port]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pymysql

from binlane.cli.main import main as binlane
from binlane.errors import StatementError
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.live.provision.server_programs import MARIADB
from binlane.log.codec.types import Flavor
from binlane.statements.check.definitions import read_definitions
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.executable_comments import server_text
from binlane.statements.sql.parser import statement_texts
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import names_in
from tests.hostile_texts import SHAPES, text_of
from tests.judged_statements import judging
from tests.servers import QUICK, execute

_SCHEMA: Final = """
CREATE DATABASE d; USE d; CREATE TABLE t (a INT PRIMARY KEY, b INT); CREATE TABLE s (a INT);
"""
_BINLOGS: Final = (
    "CREATE BINLOG 'one' LOG(`d`.`t`) FORMAT='MIXED'; CREATE BINLOG 'all' FORMAT='STATEMENT'"
)
_SECONDS: Final = 8.0
_SHAPES_AT_PORT: Final = (
    *("common tables", "rows of calls", "tables", "GRANT to accounts", "sums", "SET"),
    *("statements of a body", "WHILE of variables", "comments", "several INSERTs"),
)


def main() -> None:
    """Print one line a measurement."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=250_000, help="characters of the shorter text")
    parser.add_argument("--only", nargs="*", default=[], choices=list(SHAPES), metavar="SHAPE")
    parser.add_argument("--port", action="store_true", help="measure what others wait for")
    given = parser.parse_args()
    gc.set_threshold(50_000)
    if given.port:
        _tell_waits(given.only or _SHAPES_AT_PORT, given.size)
        return
    for flavor in ("mariadb", "mysql"):
        for shape in given.only or SHAPES:
            texts = [text_of(shape, size) for size in (given.size, 2 * given.size)]
            for stage, work in _stages(flavor).items():
                few, many = (_measured(work, text) for text in texts)
                line = {
                    "benchmark": "hostile",
                    "flavor": flavor,
                    "shape": shape,
                    "stage": stage,
                    "characters": len(texts[1]),
                    "cpu_s": round(many, 3),
                    "times": round(many / few, 2) if few > 0.01 else None,
                }
                print(json.dumps(line), flush=True)


def _stages(flavor: str) -> dict[str, Callable[[str], object]]:
    dialect = Dialect(flavor=flavor)
    return {
        "read": lambda text: read(text, database="d", dialect=dialect),
        "cut": lambda text: statement_texts(text, dialect),
        "comments": lambda text: server_text(text, dialect),
        "names": lambda text: list(names_in(text, dialect)),
        "judge": lambda text: _session(flavor).execute(text),
    }


def _session(flavor: str) -> Session:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load(_SCHEMA)
    definitions = read_definitions(_BINLOGS, name="hostile")
    server = Server.parse(flavor)
    return Session(server=server, objects=objects, definitions=definitions, database="d")


def _measured(work: Callable[[str], object], text: str) -> float:
    begin = time.process_time()
    with suppress(StatementError):
        work(text)
    return time.process_time() - begin


def _tell_waits(shapes: tuple[str, ...], size: int) -> None:
    with (
        tempfile.TemporaryDirectory() as place,
        PrivateServer.start(
            Path(place), name="source", options=(*SOURCE_OPTIONS, *QUICK), program=MARIADB
        ) as source,
    ):
        binlane(["setup", "--quiet", source.url])
        execute(source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY, b INT)")
        with judging(source) as (port, _):
            for shape in shapes:
                text, is_over = text_of(shape, size), threading.Event()

                def send(text: str = text, is_over: threading.Event = is_over) -> None:
                    while not is_over.is_set():
                        with suppress(pymysql.Error), port.connect() as client:
                            client.cursor().execute("USE d")
                            client.cursor().execute("SET max_statement_time = 1")
                            while not is_over.is_set():
                                with suppress(pymysql.ProgrammingError):
                                    client.cursor().execute(text)

                sender = threading.Thread(target=send)
                with port.connect() as client, client.cursor() as cursor:
                    cursor.execute("SELECT 1")
                    sender.start()
                    waits = []
                    end = time.monotonic() + _SECONDS
                    while (begin := time.monotonic()) < end:
                        cursor.execute("SELECT 1")
                        waits.append(time.monotonic() - begin)
                        time.sleep(0.01)
                is_over.set()
                sender.join()
                line = {
                    "benchmark": "waits",
                    "shape": shape,
                    "characters": len(text),
                    "waits_s": [round(max(waits), 3), round(statistics.median(waits), 3)],
                    "load": os.getloadavg()[0],
                }
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
