"""CPU time of routing what capture gives into three binlogs, as JSON lines: as bytes, by the reference.

The event groups of the first megabytes of a log are decoded before, as capture does it; what is
measured is routing them and writing the binlogs, in batches as one read from the network gives them.

    python -m benchmarks.capture [--megabytes N] [--rounds N] [--directory DIR]
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.measuring import chosen_logs, options
from binlane.codec.control import FormatDescriptionEvent
from binlane.errors import CodecError
from binlane.grouping.event_group import EventGroup, group_events
from binlane.grouping.walk import walk
from binlane.positions import GtidPosition
from binlane.scope import CreateBinlog, create, parse_binlog_statement
from binlane.service.binlogs import Binlogs
from binlane.store.store import Store

_BYTES = 12 << 20
_BATCH = 50
_CLAUSES = ("", "LOG(sbtest.sbtest1)", "IGNORE(sbtest.sbtest1)")


def main() -> None:
    """Print one line for each way."""
    given = options(__doc__, ("oltp",)).parse_args()
    for name, path in chosen_logs(given):
        groups = groups_of(path)
        count = sum(1 for group in groups if group.gtid is not None)
        for as_bytes in (True, False):
            taken = statistics.median(run(groups, as_bytes) for _ in range(given.rounds))
            line = {
                "benchmark": "capture",
                "log": name,
                "as_bytes": as_bytes,
                "groups": count,
                "binlogs": len(_CLAUSES),
                "cpu_ms_per_group": round(1000 * taken / count, 3),
                "load": os.getloadavg()[0],
            }
            print(json.dumps(line), flush=True)


def groups_of(path: Path) -> list[EventGroup]:
    """The groups that the first part of a log holds whole."""
    with path.open("rb") as file:
        head = file.read(_BYTES)
    groups: list[EventGroup] = []
    with suppress(CodecError):  # it ends inside an event
        for group in group_events(walk([head], file=path.name), file=path.name):
            groups.append(group)  # noqa: PERF402  # what came before the error counts
    return [group for group in groups if group.is_complete]


def run(groups: Sequence[EventGroup], as_bytes: bool) -> float:  # noqa: FBT001  # one of two ways
    """CPU seconds that it takes to apply all groups."""
    first = groups[0].events[0]
    assert isinstance(first.body, FormatDescriptionEvent), "a log begins with one"
    with tempfile.TemporaryDirectory() as place, Store.open(Path(place)) as store:
        for number, clauses in enumerate(_CLAUSES, 1):
            statement = parse_binlog_statement(f"CREATE BINLOG 'b{number}' {clauses}")
            assert isinstance(statement, CreateBinlog), "it is one"
            store.create_binlog(
                create(statement, store.next_log_id()),
                start=GtidPosition(),
                format_description=first.body,
                server_id=first.header.server_id,
                timestamp=first.header.timestamp,
            )
        binlogs = Binlogs(store, uses_kernels=as_bytes)
        start = time.process_time()
        asyncio.run(_apply(binlogs, groups))
        return time.process_time() - start


async def _apply(binlogs: Binlogs, groups: Sequence[EventGroup]) -> None:
    for start in range(0, len(groups), _BATCH):
        await binlogs.apply(groups[start : start + _BATCH])


if __name__ == "__main__":
    main()
