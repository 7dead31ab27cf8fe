"""What restarting `binlane serve` costs: CPU time of all its processes until it takes logins, as JSON lines.

A private MariaDB with 50 tables is the source; the store has binlogs of three formats, `serve` an HTTP
port. It is killed and started again, in each round by each of the trees named, so that a busy machine is
busy for all; figures are medians with the least and the most.

    python -m benchmarks.restart [--rounds N] [--workers N] [TREE ...]

`TREE`: checkouts whose `src` is tried, by default this one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from tests.judged_port import set_up
from tests.serve_process import ServeProcess
from tests.servers import QUICK, execute

_ROOT = Path(__file__).parent.parent
_TABLES = 50


def main() -> None:
    """Print one line a tree."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("trees", nargs="*", type=Path, default=[_ROOT])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        serve = _prepared(stack, Path(directory), given.workers)
        taken: dict[Path, list[tuple[float, float]]] = {tree: [] for tree in given.trees}
        for _ in range(given.rounds):
            for tree, figures in taken.items():
                figures.append(_restarted(serve, tree.resolve()))
    for tree, figures in taken.items():
        cpu, wall = zip(*figures, strict=True)
        line = {
            "benchmark": "restart",
            "tree": str(tree),
            "workers": given.workers,
            "rounds": given.rounds,
            "cpu_s": round(statistics.median(cpu), 2),
            "cpu_least_s": min(cpu),
            "cpu_most_s": max(cpu),
            "wall_s": round(statistics.median(wall), 2),
            "load": os.getloadavg()[0],
        }
        print(json.dumps(line), flush=True)


def _prepared(stack: ExitStack, directory: Path, workers: int) -> ServeProcess:
    options = (*QUICK, *SOURCE_OPTIONS)
    source = stack.enter_context(PrivateServer.start(directory, name="source", options=options))
    tables = (f"CREATE TABLE shop.t{n} (id INT PRIMARY KEY, v TEXT)" for n in range(_TABLES))
    execute(source, "CREATE DATABASE shop", *tables)
    extra = f"[gateway]\nworkers = {workers}\n[http]\nport = 0\n"
    serve = ServeProcess(directory / "serve", source, extra=extra)
    set_up(serve)
    with serve:
        for name in ("STATEMENT", "MIXED", "ROW"):
            serve.execute_as_root(f"CREATE BINLOG '{name.lower()}' FORMAT='{name}'")
        inserts = (f"INSERT INTO shop.t{n} VALUES (1, 'x')" for n in range(_TABLES))
        serve.execute_as_root(*inserts)
    return serve


def _restarted(serve: ServeProcess, tree: Path) -> tuple[float, float]:
    """CPU seconds and seconds from the start until logins are taken."""
    os.environ["PYTHONPATH"] = str(tree / "src")
    begun_s = time.monotonic()
    with serve.start():
        wall_s = time.monotonic() - begun_s
        return _cpu_s(serve.process_id), wall_s


def _cpu_s(process_id: int) -> float:
    """Of a process and those below it."""
    stat = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    ticks = sum(map(int, stat[11:15]))
    tasks = Path(f"/proc/{process_id}/task").iterdir()
    children = [child for task in tasks for child in (task / "children").read_text().split()]
    return ticks / os.sysconf("SC_CLK_TCK") + sum(_cpu_s(int(child)) for child in children)


if __name__ == "__main__":
    main()
