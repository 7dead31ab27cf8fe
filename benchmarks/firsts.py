"""What a session costs the port's judge before it repeats itself, without a server, as JSON lines.

A source of which the answers are written down stands for the server. `opening` is what a driver or framework says
in a new connection, up to its first INSERT, which is one that other sessions have sent: `first_us` of the first
session of the process, `later_us` the least of many later ones, `asked` the statements that the source is asked.
`shape` is a statement of a shape that comes for the first time, into a table of 13 columns: the least and the
median of many. All are microseconds of CPU.

    python -m benchmarks.firsts [--rounds N]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from benchmarks.connects import OPENINGS
from binlane.live.gateway.judge import ClientStatement, Pass, RunVerdict, StatementReply
from binlane.live.port.port_session import PortSession
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.servers import LoggingMode
from tests.fake_source import FakeClient, FakePort, FakeSource

_COLUMNS: Final = [f"c{number}" for number in range(12)]
_ITEMS: Final = (
    "CREATE TABLE `items` (`id` int NOT NULL AUTO_INCREMENT, `v` varchar(80), PRIMARY KEY (`id`))"
    " ENGINE=InnoDB"
)
_WIDE: Final = (
    "CREATE TABLE `wide` (`id` int NOT NULL AUTO_INCREMENT, "
    + "".join(f"`{one}` varchar(80), " for one in _COLUMNS)
    + "PRIMARY KEY (`id`)) ENGINE=InnoDB"
)
_INSERT: Final = "INSERT INTO items (v) VALUES ('x')"
_SHAPES: Final = 300
_WARM: Final = 20
_UPDATED: Final = "Rows matched: 1  Changed: 1  Warnings: 0"


class _Client:
    """A session whose judge is timed."""

    def __init__(self, port: FakePort, thread_id: int) -> None:
        self.client = FakeClient(thread_id)
        self.judge = PortSession(self.client, port.find_parts)
        self._source = port.source

    async def run(self, text: str) -> float:
        """Send a statement, and follow its reply; gives the CPU time of the judge in seconds."""
        reply, statements = self._reply(text), [ClientStatement(text)]
        before = time.thread_time()
        verdict = self.judge.judge(statements) or await self.judge.judge_later(statements)
        if isinstance(verdict, RunVerdict):
            done = self.judge.done([reply])
            if done.then is not None:
                await done.then()
        taken = time.thread_time() - before
        assert isinstance(verdict, RunVerdict | Pass), (text, verdict)
        return taken

    def _reply(self, text: str) -> StatementReply:
        if text.startswith("SELECT"):
            return StatementReply(is_result_set=True)
        if not text.startswith(("INSERT", "UPDATE")):
            return StatementReply()
        is_insert = text.startswith("INSERT")
        return StatementReply(
            affected_rows=1,
            insert_id=5 if is_insert else 0,
            info="" if is_insert else _UPDATED,
            tracked={"last_gtid": self._source.logged()},
        )


async def _opened(port: FakePort, texts: Sequence[str], thread_id: int) -> tuple[float, int]:
    one = _Client(port, thread_id)
    taken = sum([await one.run(text) for text in (*texts, _INSERT)])
    asked = len(one.client.statements)
    await one.judge.ended()
    return taken, asked


def _shapes() -> Iterator[tuple[str, list[str]]]:
    chosen = [names for size in (3, 4) for names in combinations(_COLUMNS, size)]
    random.Random(1).shuffle(chosen)
    chosen = chosen[:_SHAPES]
    values = [", ".join(f"'{name}'" for name in names) for names in chosen]
    listed = [", ".join(names) for names in chosen]
    yield (
        "insert",
        [
            f"INSERT INTO wide ({names}) VALUES ({given})"
            for names, given in zip(listed, values, strict=True)
        ],
    )
    sets = [", ".join(f"{name} = 5" for name in names) for names in chosen]
    yield "update", [f"UPDATE wide SET {each} WHERE id = 7" for each in sets]
    yield "select", [f"SELECT {names} FROM wide WHERE id = 7" for names in listed]


async def _measure(rounds: int) -> None:
    binlog = Definition(
        name="b", scope=Scope.everything(), logging_mode=LoggingMode.STATEMENT, log_id=1
    )
    port = FakePort(source=FakeSource(_ITEMS, _WIDE), definitions=(binlog,))
    thread_id = 7
    for opening, texts in OPENINGS.items():
        first, asked = await _opened(port, texts, thread_id)
        later = []
        for _ in range(rounds):
            thread_id += 1
            later.append((await _opened(port, texts, thread_id))[0])
        figures: dict[str, object] = {
            "first_us": _us(first),
            "later_us": _us(min(later)),
            "asked": asked,
        }
        _tell({"opening": opening, **figures})
    one = _Client(port, thread_id + 1)
    for shape, texts in _shapes():
        taken = [await one.run(text) for text in texts][_WARM:]
        least, middle = min(taken), statistics.median(taken)
        _tell({"shape": shape, "least_us": _us(least), "us": _us(middle)})
    await one.judge.ended()
    await port.stop()


def _us(seconds: float) -> int:
    return round(1e6 * seconds)


def _tell(figures: dict[str, object]) -> None:
    print(json.dumps({"benchmark": "firsts"} | figures | {"load": os.getloadavg()[0]}), flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=60, help="later sessions of each opening")
    given, _ = parser.parse_known_args()  # those of the other benchmarks
    asyncio.run(_measure(given.rounds))


if __name__ == "__main__":
    main()
