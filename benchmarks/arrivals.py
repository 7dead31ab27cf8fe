"""A large table comes into a binlog while another binlog is written, as a JSON line.

`serve` has two binlogs beside a private server: `orders`, which a filled table comes into by RENAME,
and `other`, which gets a transaction every few milliseconds. Told are the longest turn of the routing
thread from the RENAME on, by the clock and by its own CPU, the longest time that `other` did not grow,
and the CPU of `serve` until all rows are in the binlog.

    python -m benchmarks.arrivals [--rows 1000000] [--each 1000] [--mysql] [--compressed]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from binlane.live.loop.loop import RoutingLoop
from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from tests.judged_port import set_up_source
from tests.serve_process import ServeProcess
from tests.servers import connect, execute, mysql_program

_WAIT_S: Final = 600.0
_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_COLUMNS: Final = "(id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40), n INT)"
_PAUSE_S: Final = 0.005
_STATEMENT: Final = re.compile(rb"binlane_coming_1\W* TO \W*shop\W*orders")


def main() -> None:
    """Print one line."""
    if sys.argv[1:2] == ["--turns"]:
        _serve(Path(sys.argv[2]), sys.argv[6:])
        return
    if sys.argv[1:2] == ["--write"]:
        _write(int(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--each", type=int, default=1000, help="rows of a transaction")
    parser.add_argument("--single", action="store_true", help="one statement a row")
    parser.add_argument("--mysql", action="store_true")
    parser.add_argument("--clauses", default="", help="of CREATE BINLOG, such as , COMPRESSED=1")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with _started(folder, is_mysql=given.mysql) as source:
            print(json.dumps(_measured(folder, source, given)))


def _started(folder: Path, *, is_mysql: bool) -> PrivateServer:
    if is_mysql:
        return PrivateServer.start(
            folder, name="source", program=mysql_program(), options=MYSQL_SOURCE_OPTIONS
        )
    return PrivateServer.start(folder, name="source", options=SOURCE_OPTIONS)


def _serve(turns: Path, arguments: list[str]) -> None:
    """Run `binlane` with a routing loop that writes down how long its turns took."""
    out, turn = turns.open("w", buffering=1), RoutingLoop._turn  # noqa: SLF001  # nobody else asks

    def timed(loop: RoutingLoop) -> None:
        cpu_s = time.thread_time()
        turn(loop)
        began_s = loop._turn_began_s  # noqa: SLF001  # as above
        if began_s is not None:
            now_s = time.monotonic()
            out.write(f"{now_s} {now_s - began_s} {time.thread_time() - cpu_s}\n")

    setattr(RoutingLoop, "_turn", timed)  # noqa: B010  # as above
    sys.argv = ["binlane", *arguments]
    runpy.run_module("binlane", run_name="__main__")


def _write(port: int) -> None:
    """Write both tables until the process is killed."""
    server = f"UPDATE shop.{{}} SET n = n + 1 WHERE id = {os.getpid() % 7 + 1}"
    import pymysql  # noqa: PLC0415  # of this process alone

    with pymysql.connect(
        host="127.0.0.1", port=port, user="root", ssl_disabled=True, autocommit=True
    ) as session:
        while True:
            for table in ("other", "orders"):
                with session.cursor() as cursor:
                    cursor.execute(server.format(table))
            time.sleep(_PAUSE_S)


def _fill(source: PrivateServer, given: argparse.Namespace) -> None:
    """Fill the table that comes in: outside of the scope, in transactions of some rows."""
    with connect(source) as session, session.cursor() as cursor:
        cursor.execute(f"CREATE TABLE shop.coming {_COLUMNS}")
        for first in range(0, given.rows, given.each):
            numbers = range(first, first + given.each)
            rows = [f"('row {number} of the table', {number})" for number in numbers]
            cursor.execute("BEGIN")
            if given.single:
                for row in rows:
                    cursor.execute(f"INSERT INTO shop.coming (v, n) VALUES {row}")
            else:
                cursor.execute(f"INSERT INTO shop.coming (v, n) VALUES {', '.join(rows)}")
            cursor.execute("COMMIT")


def _measured(folder: Path, source: PrivateServer, given: argparse.Namespace) -> dict[str, object]:
    set_up_source(source)
    turns = folder / "turns"
    prefix = (sys.executable, "-m", "benchmarks.arrivals", "--turns", str(turns))
    with ServeProcess(folder / "serve", source, prefix=prefix) as serve:
        execute(source, "CREATE DATABASE shop")
        for name in ("orders", "other"):
            serve.execute_as_root(f"CREATE BINLOG '{name}' LOG(shop.{name}){given.clauses}")
            rows = ", ".join(["('a', 0)"] * 10)
            execute(
                source,
                f"CREATE TABLE shop.{name} {_COLUMNS}",
                f"INSERT INTO shop.{name} (v, n) VALUES {rows}",
            )
        _fill(source, given)
        serve.wait_until_complete("orders", timeout_s=_WAIT_S)
        command = [sys.executable, "-m", "benchmarks.arrivals", "--write", str(source.port)]
        writer = subprocess.Popen(command)
        try:
            time.sleep(3)
            quiet_s = _longest_pause_s(serve, lambda: False, longest_s=5)
            cpu_s, began_s = _cpu_s(serve), time.monotonic()
            execute(
                source,
                "RENAME TABLE shop.orders TO shop.gone, shop.coming TO shop.orders",
            )
            paused_s = _longest_pause_s(serve, lambda: _is_in(serve), longest_s=_WAIT_S)
            cpu_s, took_s = _cpu_s(serve) - cpu_s, time.monotonic() - began_s
        finally:
            writer.kill()
            writer.wait()
        serve.wait_until_complete("orders", timeout_s=_WAIT_S)
        assert serve.execute_as_root("SHOW BINLOG INCIDENTS FOR 'orders'") == ()
        lines = [list(map(float, line.split())) for line in turns.read_text().splitlines()]
        within = [each for each in lines if each[0] >= began_s]
        return {
            "benchmark": "a table comes in",
            "rows": given.rows,
            "rows of a transaction": given.each,
            "longest_turn_s": round(max(each[1] for each in within), 3),
            "longest_turn_cpu_s": round(max(each[2] for each in within), 3),
            "turns_over_80_ms": sum(each[1] > 0.08 for each in within),
            "routing_cpu_s": round(sum(each[2] for each in within), 2),
            "serve_cpu_s": round(cpu_s, 2),
            "took_s": round(took_s, 1),
            "other_paused_s": round(paused_s, 3),
            "other_paused_before_s": round(quiet_s, 3),
            "load": os.getloadavg()[0],
        }


def _is_in(serve: ServeProcess) -> bool:
    folder = serve.data_dir / "binlogs" / "orders"
    return any(_STATEMENT.search(_end_of(path)) for path in folder.glob("orders.0*"))


def _end_of(path: Path) -> bytes:
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - (1 << 20)))
        return stream.read()


def _longest_pause_s(
    serve: ServeProcess, is_over: Callable[[], bool], *, longest_s: float
) -> float:
    """The longest time in which the other binlog did not grow."""
    folder = serve.data_dir / "binlogs" / "other"
    (path,) = folder.glob("other.0*")
    began_s = grew_s = looked_s = time.monotonic()
    paused_s, size = 0.0, path.stat().st_size
    while (now_s := time.monotonic()) - began_s < longest_s:
        if (found := path.stat().st_size) != size:
            paused_s, grew_s, size = max(paused_s, now_s - grew_s), now_s, found
        if now_s - looked_s > 0.5:
            looked_s = now_s
            if is_over():
                break
        time.sleep(0.002)
    return max(paused_s, time.monotonic() - grew_s)


def _cpu_s(serve: ServeProcess) -> float:
    fields = Path(f"/proc/{serve.process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


if __name__ == "__main__":
    main()
