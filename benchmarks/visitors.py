"""What routing costs where clients that stay insert, and others connect, insert a few rows and leave, as JSON lines.

Those who stay are the clients of `benchmarks.port`, those who leave the ones of `benchmarks.connects`; all go through
the port of one STATEMENT binlog. Their numbers take turns, so that a busy machine is busy for each of them.
`routing_cpu_us` is the CPU time of binlane's threads but for the main ones, for one group; it goes on until all
groups are routed.

    python -m benchmarks.visitors [--visitors 0 2 8] [--rows N] [--clients N] [--seconds N] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
from multiprocessing.pool import Pool
from pathlib import Path

from benchmarks.connects import INSERT, come_and_go
from benchmarks.measuring import cpu_of_threads_s
from benchmarks.port import fill, let_routing_rest, serving, stay
from binlane.client.authentication import CACHING_SHA2_PASSWORD
from tests.serve_process import ServeProcess

_PROCESSES = 2


def _turn(
    pool: Pool, serve: ServeProcess, visitors: int, given: argparse.Namespace
) -> dict[str, object]:
    """Let clients stay, and others come and go, for a while."""
    plugin = CACHING_SHA2_PASSWORD if given.mysql else "mysql_native_password"
    before, seconds = cpu_of_threads_s(serve.process_id), given.seconds
    staying = (serve.port, "insert", given.clients, seconds, 0, False)
    stays = pool.starmap_async(stay, [staying])
    visits: list[list[float]] = []
    if visitors:
        coming = (serve.port, visitors, seconds, [INSERT] * given.rows, plugin)
        visits = pool.apply(come_and_go, coming)
    (done,) = stays.get()
    assert not done.errors, "statements failed"
    let_routing_rest(serve)
    after = cpu_of_threads_s(serve.process_id)
    rows = len(visits) * given.rows
    groups = done.sent + rows
    return {
        "visits_per_s": round(len(visits) / seconds),
        "rows_of_visitors": rows,
        "groups": groups,
        "port_cpu_us": round(1e6 * (after[0] - before[0]) / groups, 1),
        "routing_cpu_us": round(1e6 * (after[1] - before[1]) / groups, 1),
    }


def main() -> None:
    """Measure what was asked for."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--visitors", nargs="*", type=int, default=[0, 2, 8])
    parser.add_argument("--rows", type=int, default=3, help="that a visitor inserts")
    parser.add_argument("--clients", type=int, default=8, help="that stay")
    parser.add_argument("--seconds", type=float, default=3, help="of each turn")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1, help="processes of the port")
    parser.add_argument("--mysql", action="store_true", help="a MySQL instead of a MariaDB")
    parser.add_argument("--directory", help="where servers and binlogs are kept")
    given, _ = parser.parse_known_args()  # those of the other benchmarks
    with (
        tempfile.TemporaryDirectory(prefix="binlane-bench-", dir=given.directory) as place,
        multiprocessing.get_context("spawn").Pool(_PROCESSES) as pool,
        serving(Path(place) / "statement", "statement", given) as serve,
    ):
        fill(serve)
        for number in range(given.rounds + 1):
            for visitors in given.visitors:
                let_routing_rest(serve)
                head = {"benchmark": "visitors", "clients": given.clients, "visitors": visitors}
                line = _turn(pool, serve, visitors, given)
                if number:  # in the first round all comes for the first time
                    print(json.dumps(head | line | {"load": os.getloadavg()[0]}), flush=True)


if __name__ == "__main__":
    main()
