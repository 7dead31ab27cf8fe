"""Random sessions on one server, as many as there is time for: what differs is kept as it comes.

`python -m tests.differential.logging mysql --seeds 40000 41000 --directory /dev/shm`
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.differential.logging import cases
from tests.differential.logging.generator import Generator
from tests.differential.logging.recorder import Recorder
from tests.differential.logging.servers import mariadb, mysql
from tests.differential.logging.shrinking import Found, run, shrunk

_TOLD_EVERY = 50


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the sessions of the seeds; a memory file system as directory makes them ten times as fast."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.logging")
    parser.add_argument("flavor", choices=("mariadb", "mysql"))
    parser.add_argument("--mariadb", type=Path, help="folder of an unpacked MariaDB")
    parser.add_argument("--plugins", type=Path, help="MariaDB's plugins, for ha_blackhole")
    parser.add_argument("--seeds", type=int, nargs=2, default=(30000, 31000))
    parser.add_argument("--length", type=int, default=60, help="statements of a session")
    parser.add_argument("--directory", type=Path, help="where the server's data lives")
    parser.add_argument("--found", type=Path, default=Path(".run/logging"))
    chosen = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="logging-", dir=chosen.directory))
    try:
        if chosen.flavor == "mysql":
            server = mysql(directory)
        else:
            server = mariadb(directory, folder=chosen.mariadb, plugins=chosen.plugins)
        with server as running:
            _compare(Recorder(running), range(*chosen.seeds), chosen.length, chosen.found)
    finally:
        shutil.rmtree(directory)


def _told(found: Found) -> str:
    texts = "".join(f"{sql};\n" for sql in found.script.texts)
    difference = found.difference
    return (
        f"{texts}\n{difference.aspect} at {difference.index}:\n"
        f"server: {_lines(difference.expected)}\nours: {_lines(difference.actual)}\n"
    )


def _lines(value: object) -> str:
    if isinstance(value, list):
        return "".join(f"\n  {event}" for event in value)
    return str(value)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - what it is run for


def _compare(recorder: Recorder, seeds: range, length: int, found_folder: Path) -> None:
    name = recorder.server_name
    compared, differing, began = 0, [], time.monotonic()
    found_folder.mkdir(parents=True, exist_ok=True)
    for count, seed in enumerate(seeds, 1):
        script = Generator(
            recorder.server.flavor, seed, has_blackhole=recorder.has_blackhole
        ).script(length)
        found = run(recorder, script)
        if found is None:
            compared += len(script.statements)
        else:
            differing.append(seed)
            compared += min(found.difference.index + 1, len(script.statements))
            found = shrunk(recorder, found)
            path = found_folder / f"{seed}.{name.replace(':', '-')}.json"
            path.write_text(cases.text(found.script, found.recorded, server=name), encoding="utf-8")
            path.with_suffix(".txt").write_text(_told(found), encoding="utf-8")
            _say(f"seed {seed}: {found.difference.aspect}: {found.statement}")
        if count % _TOLD_EVERY == 0 or count == len(seeds):
            share = 1 - len(differing) / compared
            _say(
                f"{name}, seeds {seeds.start} to {seed}: {compared:,} statements, "
                f"{len(differing)} differ, {share:.3%} equal; {time.monotonic() - began:,.0f} s"
            )


if __name__ == "__main__":
    main()
