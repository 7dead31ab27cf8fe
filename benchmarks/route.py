"""CPU time of `binlane route` against plain `mariadb-binlog`, whole processes, as JSON lines.

Both read the same file, one after the other, so that a busy machine is busy for both; the figures
are medians of user plus system time. The official tool prints the log as base64 to nothing, binlane
writes binlog files: of all tables, of one, and of all tables into ten binlogs, of which the tables
are dealt out among nine and the tenth has the rest. `warm_cpu_s` is the same in a process that
has all modules loaded. A filter (`--do-table`) lets one table into a binlog of everything; `cat`
prints the same as the official tool does by default, to nothing.

    python -m benchmarks.route [--megabytes N] [--rounds N] [--directory DIR] [LOG...]
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from benchmarks.measuring import Figures, chosen_logs, official_tool, options, run
from binlane.binlogs.filters.terms import parse_terms
from binlane.binlogs.route.job import route_files
from binlane.binlogs.route.route_request import RouteRequest
from binlane.binlogs.route.schedule import Schedule
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.store.byte_source import FileBytes
from binlane.log.grouping.raw import RawRun, raw_groups
from binlane.names import TableName
from binlane.statements.check.definitions import read_definitions

LOGS = ("oltp", "bulk")
BINLANE = [sys.executable, "-m", "binlane", "route", "--quiet"]
CAT = [sys.executable, "-m", "binlane", "cat", "--quiet"]
_BINLOGS = 10
_WHOLE = "CREATE BINLOG 'all';\n"


def main() -> None:
    """Print one line for each log and set of definitions."""
    given = options(__doc__, LOGS).parse_args()
    for name, path in chosen_logs(given):
        tool = official_tool(name)[:2] if name != "payload" else official_tool(name)[:1]
        for what, definitions in definitions_for(path):
            figures = compare(path, tool, definitions, given.rounds)
            print(
                json.dumps({"benchmark": "route", "log": name, "into": what, **figures}), flush=True
            )
        for what, wanted in filters_for(path):
            figures = compare(path, tool, _WHOLE, given.rounds, wanted)
            print(
                json.dumps({"benchmark": "filter", "log": name, "to": what, **figures}), flush=True
            )


def tables_of(path: Path) -> list[TableName]:
    """The tables that a log names, sorted."""
    tables: set[TableName] = set()
    with closing(FileBytes(path)) as source:
        for item in raw_groups(source, file=str(path), name=path.name):
            if isinstance(item, RawRun):
                tables |= {table_name(known.table_map) for known in item.tables}
    return sorted(tables)


def definitions_for(path: Path) -> Iterator[tuple[str, str]]:
    """Names and texts of the sets of definitions that are measured."""
    tables = tables_of(path)
    yield "all tables", "CREATE BINLOG 'all';\n"
    yield f"one of {len(tables)} tables", f"CREATE BINLOG 'one' LOG({tables[0]});\n"
    dealt: list[str] = []
    for number in range(_BINLOGS - 1):
        of_one = ", ".join(map(str, tables[number :: _BINLOGS - 1])) or "nothing"
        dealt.append(f"CREATE BINLOG 'b{number}' LOG({of_one});\n")
    rest = ", ".join(map(str, tables))
    yield "ten binlogs", "".join([*dealt, f"CREATE BINLOG 'rest' IGNORE({rest});\n"])


def filters_for(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Names and tables of the filters that are measured."""
    tables = tables_of(path)
    yield f"one of {len(tables)} tables", [str(tables[0])]
    yield "no table", ["nothing.of_this"]


def warm_cpu_s(path: Path, definitions: str, out: Path, wanted: list[str]) -> float:
    """CPU seconds of a run in this process."""
    schedule = Schedule(read_definitions(definitions.encode(), name="definitions"))
    terms = parse_terms({"do_table": wanted})
    request = RouteRequest(paths=(str(path),), schedule=schedule, out=out, filter_terms=terms)
    start = time.process_time()
    route_files(request)
    return time.process_time() - start


def compare(
    path: Path, tool: list[str], definitions: str, rounds: int, wanted: Sequence[str] = ()
) -> dict[str, object]:
    """Medians of both programs over one file, and their ratio; with a filter also of `cat`."""
    runs: dict[str, list[Figures]] = {"tool": [], "binlane": []}
    options = [f"--do-table={table}" for table in wanted]
    if wanted:
        runs["cat"] = []
    warm: list[float] = []
    with tempfile.TemporaryDirectory(dir=path.parent) as place:
        script, out = Path(place) / "defs.sql", Path(place) / "out"
        script.write_text(definitions)
        command = [*BINLANE, "--binlogs", str(script), "--out", str(out), *options, str(path)]
        for _ in range(rounds):
            runs["tool"].append(run([*tool, str(path)]))
            shutil.rmtree(out, ignore_errors=True)
            runs["binlane"].append(run(command))
            shutil.rmtree(out)
            warm.append(warm_cpu_s(path, definitions, out, list(wanted)))
            if wanted:
                runs["cat"].append(run([*CAT, *options, str(path)]))
        size = sum(each.stat().st_size for each in out.rglob("*") if each.is_file())
    medians = {
        side: Figures(
            cpu_s=round(statistics.median(figures.cpu_s for figures in taken), 3),
            rss_mb=max(figures.rss_mb for figures in taken),
        )
        for side, taken in runs.items()
    }
    warm_s = round(statistics.median(warm), 3)
    return {
        "bytes": path.stat().st_size,
        "written": size,
        **{side: asdict(figures) for side, figures in medians.items()},
        "ratio": round(medians["tool"].cpu_s / medians["binlane"].cpu_s, 2),
        "warm_cpu_s": warm_s,
        "warm_ratio": round(medians["tool"].cpu_s / warm_s, 2),
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    main()
