"""What it costs that a statement's groups are attributed, journal included, as JSON lines.

Microseconds of one thread for a statement of one group and three binlogs, two of which have its text:
what it makes is said before it is sent (`intend`), its reply is told (`done`), its group is read
(`read`) and its plan asked for (`find`); where the log names the threads of groups and where it does
not. The lowest and the median of many rounds; `write` is the
write of as many bytes to a file alone.

    python -m benchmarks.attributions [--rounds 200] [--directory DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from binlane.live.port.attribution_state import ReadGroup
from binlane.live.port.attributions import Attributions
from binlane.log.codec.types import EventType, Flavor
from binlane.log.grouping.sections import RowsPiece
from binlane.names import TableName
from binlane.positions import Gtid, GtidPosition
from binlane.statements.session.group_plan import EncodedEvent, GroupPlan, RowsPart, TextPart
from binlane.statements.session.plan_bytes import encode_plans

_SESSIONS = 8
_STATEMENTS = 100
_TABLE = TableName("shop", "orders")
_SECTION = (RowsPiece((_TABLE,), (("insert", _TABLE),)),)
_BASES = {"all": 1, "rows": 2, "mixed": 3}


def main() -> None:
    """Print one line a step, with a journal and without."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--directory", type=Path, help="of the journal; one of the system's")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        for is_named in (True, False):
            for folder in (None, Path(directory) / f"port{is_named:d}"):
                _measure(folder, given.rounds, is_named=is_named)
        _tell("write", None, _write_alone(Path(directory) / "alone", given.rounds))


def _plan(number: int) -> GroupPlan:
    query = EncodedEvent(EventType.QUERY, bytes(170) + b"%d" % number)
    text = TextPart((EncodedEvent(EventType.INTVAR, bytes(9)), query), 0)
    return GroupPlan(
        sections=(_SECTION,),
        binlogs={"all": (text,), "rows": (RowsPart(0),), "mixed": (text,)},
        bases=_BASES,
    )


def _measure(folder: Path | None, rounds: int, *, is_named: bool) -> None:
    attributions = Attributions(folder, Flavor.MARIADB)
    attributions.begin(GtidPosition())
    taken: dict[str, list[float]] = {}
    for start in range(0, rounds * _STATEMENTS, _STATEMENTS):
        seconds = dict.fromkeys(("intend", "done", "read", "find"), 0.0)
        for sequence in range(start + 1, start + 1 + _STATEMENTS):
            plans, thread_id = (_plan(sequence),), 1 + sequence % _SESSIONS
            gtid = Gtid(0, 1, sequence)
            group = ReadGroup(gtid, thread_id if is_named else 0, is_commit=True)
            last, groups, after = str(gtid), (group,), GtidPosition((gtid,))
            seconds["intend"] += _timed(lambda: attributions.intend(thread_id, sequence, plans))  # noqa: B023
            seconds["done"] += _timed(lambda: attributions.done(thread_id, sequence, last))  # noqa: B023
            seconds["read"] += _timed(lambda: attributions.read(groups, after))  # noqa: B023
            seconds["find"] += _timed(lambda: attributions.find(group))  # noqa: B023
        for step, each in seconds.items():
            taken.setdefault(step, []).append(each / _STATEMENTS)
    for step, figures in taken.items():
        _tell(step, "journal" if folder else "memory", figures, is_named=is_named)
    attributions.close()


def _timed(work: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    work()
    return time.perf_counter() - started_s


def _write_alone(path: Path, rounds: int) -> list[float]:
    data = encode_plans((_plan(1),))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        return [
            sum(_timed(lambda: os.write(descriptor, data)) for _ in range(_STATEMENTS))
            / _STATEMENTS
            for _ in range(rounds)
        ]
    finally:
        os.close(descriptor)


def _tell(
    step: str, kind: str | None, seconds: list[float], *, is_named: bool | None = None
) -> None:
    line = {
        "benchmark": "attribution of a statement",
        "step": step,
        "kept_in": kind,
        "log_names_threads": is_named,
        "n": len(seconds) * _STATEMENTS,
        "lowest_us": round(min(seconds) * 1e6, 2),
        "median_us": round(median(seconds) * 1e6, 2),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
