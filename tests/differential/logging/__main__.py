"""Sessions on one server, as many as there is time for: what differs is kept as it comes.

`python -m tests.differential.logging mysql --seeds 40000 41000 --directory /dev/shm`
`python -m tests.differential.logging mariadb --from grammar --directory /dev/shm`
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.differential.logging import sources
from tests.differential.logging.campaign import Campaign, told
from tests.differential.logging.productions import Productions
from tests.differential.logging.recorder import Recorder
from tests.differential.logging.servers import mariadb, mysql

_TOLD_EVERY = 50


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the sessions of the seeds; a memory file system as directory makes them ten times as fast."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.logging")
    parser.add_argument("flavor", choices=("mariadb", "mysql"))
    parser.add_argument("--mariadb", type=Path, help="folder of an unpacked MariaDB")
    parser.add_argument("--plugins", type=Path, help="MariaDB's plugins, for ha_blackhole")
    parser.add_argument(
        "--from", dest="source", choices=sources.SOURCES, default="sessions", help="what is drawn"
    )
    parser.add_argument("--seeds", type=int, nargs=2, help="by default all of a night")
    parser.add_argument("--length", type=int, default=60, help="statements of a random session")
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
            _compare(Recorder(running), chosen)
    finally:
        shutil.rmtree(directory)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - what it is run for


def _compare(recorder: Recorder, chosen: argparse.Namespace) -> None:
    dialect = sources.dialect(recorder)
    campaign = Campaign(
        recorder,
        folder=chosen.found,
        goes_on=chosen.source != "sessions",
        productions=Productions(dialect) if chosen.source == "grammar" else None,
    )
    drawn = sources.Source(chosen.source, recorder, length=chosen.length)
    seeds = range(*(chosen.seeds or drawn.night))
    began = time.monotonic()
    for count, seed in enumerate(seeds, 1):
        for found in campaign.compare(f"{chosen.source}-{seed}", drawn.script(seed)):
            _say(f"seed {seed}:\n{told(found)}")
        if count % _TOLD_EVERY == 0 or count == len(seeds):
            _say(f"{campaign.figures()}; seeds to {seed}, {time.monotonic() - began:,.0f} s")
    for line in campaign.lines():
        _say(line)


if __name__ == "__main__":
    main()
