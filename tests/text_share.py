"""How many statements that may be texts are texts in a binlog of statements, of a random load.

`python -m tests.text_share` and `--mysql` print it; the load leaves out what is unsafe as a text, and
nobody writes past the port.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from binlane.binlogs.store.stored_groups import StoreReader, read_groups
from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent
from tests.port_load import PortLoad
from tests.port_replicas import FollowedBinlogs

_CHANGE: Final = re.compile(
    rb"\s*(?:insert|update|delete|replace|with|create (?:or replace )?(?:temporary )?table\b.*\bselect)\b",
    re.IGNORECASE | re.DOTALL,
)
_STATEMENT_END: Final = 1
"""The flag of a statement's last rows event."""


def counted(paths: Iterable[Path]) -> Counter[str]:
    """How many statements that change rows stand in a binlog as `text`, and how many as `rows`."""
    found: Counter[str] = Counter()
    for group in read_groups(paths):
        for event in group.events:
            body = event.body
            if isinstance(body, RowsEvent):
                found["rows"] += body.flags & _STATEMENT_END
            elif isinstance(body, ExecuteLoadQueryEvent) or (
                isinstance(body, QueryEvent) and _CHANGE.match(body.query)
            ):
                found["text"] += 1
    return found


def measured(directory: Path, flavor: str, seed: int, *, through: int, length: int) -> Counter[str]:
    """One load on servers of its own."""
    with ExitStack() as stack:
        formats = ["STATEMENT"]
        binlogs = FollowedBinlogs(
            stack, directory, formats, flavor=flavor, begins=False, keeps_data=True
        )
        load = PortLoad(binlogs.serve, seed=seed, through=through, length=length, is_safe=True)
        load.prepare()
        # What made the objects came past the port.
        binlogs.serve.wait_until_complete("statement")
        before = counted(_files(binlogs))
        with load:
            pass
        binlogs.serve.wait_until_complete("statement")
        return counted(_files(binlogs)) - before


def _files(binlogs: FollowedBinlogs) -> list[Path]:
    reader = StoreReader(binlogs.serve.data_dir)
    return [file.path for file in reader.files("statement")]


def main() -> None:
    """Print the counts of each seed, and of all."""
    parser = argparse.ArgumentParser(prog="python -m tests.text_share", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(1, 5))
    parser.add_argument("--through", type=int, default=4)
    parser.add_argument("--length", type=int, default=250)
    parser.add_argument("--mysql", action="store_true")
    chosen = parser.parse_args()
    flavor = "mysql" if chosen.mysql else "mariadb"
    total: Counter[str] = Counter()
    for seed in range(*chosen.seeds):
        with tempfile.TemporaryDirectory(prefix="text-share-") as folder:
            found = measured(
                Path(folder), flavor, seed, through=chosen.through, length=chosen.length
            )
        total += found
        _say(f"{flavor} seed {seed}", found)
    _say(f"{flavor} all", total)


def _say(what: str, found: Counter[str]) -> None:
    share = found["text"] / max(found.total(), 1)
    print(f"{what}: {found['text']} text, {found['rows']} rows, {share:.1%}", flush=True)  # noqa: T201 - what it is run for


if __name__ == "__main__":
    main()
