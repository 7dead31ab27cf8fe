"""Random workloads, landed in every format by every engine with kills: tables beside the SELECT.

    python -m tests.land_matrix --seeds 1-20 --server mariadb --format delta,iceberg,parquet --kills 3

Of each seed a server runs sessions (`land_workload`); at some moments all of its tables are read.
Its log is then landed up to each of these moments, by any engine, in batches and tasks of random
sizes, killed at random times or not, and each table is compared: `current` with the SELECT, what
holds in `history` with `current`, `changes` with the images of the log as the reference decoder
reads them, and, of tables that no DDL touched, the changes replayed with `current`. A table may be
given up for a reason that the report tells; one that differs without a word is wrong.

`--server` is `mariadb`, `mysql`, or the folder of an unpacked MariaDB (see `tests.servers`).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from binlane.errors import BinlaneError
from binlane.live.provision.server_programs import MARIADB, ServerProgram
from binlane.tables.landing.engine import Engine
from binlane.tables.landing.landing import land
from binlane.tables.landing.landing_progress import LandingReport
from binlane.tables.landing.landing_settings import LandingSettings
from binlane.tables.landing.range_work import FormatName, Mode
from tests.land_comparison import Comparison, Verdict
from tests.land_driver import land_alone
from tests.land_recording import (
    Recording,
    Source,
    portions_of,
    read_statements,
    statements,
)
from tests.land_workload import Said
from tests.servers import UnpackedMariadb, mysql_program

RARE: Final = 0.04
"""Share of statements that cannot be followed, among those that could be such."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a log is landed.

    Attributes:
        format: Of the tables.
        engine: `embedded`, `spark` or `cluster`.
        kills: How often, at most, what lands is killed before each moment.
        batch_bytes: Of a batch.
        task_bytes: Of a task.
        spreads: Whether works go to processes of their own.
        stops: Moments, by number, at which it ends and is compared; the last one is always there.
    """

    format: FormatName
    engine: str
    kills: int
    batch_bytes: int
    task_bytes: int
    spreads: bool
    stops: frozenset[int]

    @property
    def settings(self) -> LandingSettings:
        """Those of all runs."""
        return LandingSettings(
            modes=frozenset(Mode),
            format=self.format,
            batch_bytes=self.batch_bytes,
            task_bytes=self.task_bytes,
        )

    @classmethod
    def drawn(
        cls, chance: random.Random, table_format: FormatName, engine: str, kills: int, moments: int
    ) -> Way:
        """One with random sizes."""
        # A commit of Iceberg costs 0.1 s, and of Spark even a small job some.
        is_slow = table_format is FormatName.ICEBERG or engine != "embedded"
        return cls(
            format=table_format,
            engine=engine,
            kills=kills,
            batch_bytes=chance.choice(
                (*((2_000, 8_000) if not is_slow else ()), 30_000, 256 << 20)
            ),
            task_bytes=chance.choice((10_000 if is_slow else 700, 3_000, 32 << 20)),
            spreads=chance.random() < 0.2,
            stops=frozenset(each for each in range(moments) if is_slow or chance.random() < 0.6),
        )


class Runner:
    """Lands recordings.

    Args:
        engine: Given to landings; None for the embedded one.
        victims: Processes that kills of an engine's landings may take; None kills drivers.
    """

    def __init__(
        self, engine: Engine | None = None, victims: Callable[[], Sequence[int]] | None = None
    ) -> None:
        self._engine = engine
        self._victims = victims
        self.kills = 0
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.land_driver"])

    def run(self, log: Path, lake: Path, way: Way, chance: random.Random) -> LandingReport:
        """Land a log as it is now, after as many deaths as the way has."""
        if way.kills and self._victims is None:
            for _ in range(chance.randrange(1, way.kills + 1)):
                if not self._killed(log, lake, way, chance):
                    break
        while True:
            before = self.kills
            with self._dying(way, chance):
                try:
                    return land(str(log), str(lake), way.settings, engine=self._engine)
                except BinlaneError:
                    # A local master tries once.
                    if self.kills == before:
                        raise

    def _killed(self, log: Path, lake: Path, way: Way, chance: random.Random) -> bool:
        """Land in a process that dies; whether it did so before the end."""
        process = self._context.Process(
            target=land_alone, args=(log, lake, way.settings), kwargs={"spreads": way.spreads}
        )
        process.start()
        until = time.monotonic() + chance.choice((0.05, 0.3, 1.0, 3.0)) * chance.random()
        # It takes a moment until it lands.
        while process.is_alive() and not lake.exists():
            time.sleep(0.002)
        while process.is_alive() and time.monotonic() < until:
            time.sleep(0.002)
        process.kill()
        process.join()
        code = process.exitcode
        process.close()
        assert code in {0, -signal.SIGKILL}, f"landing ended with {code}"
        self.kills += code != 0
        return code != 0

    @contextmanager
    def _dying(self, way: Way, chance: random.Random) -> Iterator[None]:
        """Kill processes of the engine meanwhile."""
        if self._victims is None or not way.kills:
            yield
            return
        ended = threading.Event()

        def kill() -> None:
            for _ in range(way.kills):
                if ended.wait(chance.random() * 4):
                    return
                assert self._victims is not None
                victims = self._victims()
                for victim in chance.sample(victims, min(1, len(victims))):
                    with suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
                        self.kills += 1

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def land_and_compare(
    recording: Recording, directory: Path, way: Way, runner: Runner, chance: random.Random
) -> Verdict:
    """Land a recording in one way, and compare at each of its stops."""
    log, lake = directory / "log", directory / "lake"
    log.mkdir(parents=True)
    verdict = Verdict()
    last = len(recording.moments) - 1
    for number, moment in enumerate(recording.moments):
        if number != last and number not in way.stops:
            continue
        for file, size in moment.sizes.items():
            with (recording.log / file).open("rb") as stream:
                (log / file).write_bytes(stream.read(size))
        try:
            report = runner.run(log, lake, way, chance)
        except Exception as error:  # noqa: BLE001 - that none comes is to be seen
            verdict.add("landing", str(number), f"{type(error).__name__}: {error}")
            return verdict
        verdict.counts["landing equal"] += 1
        verdict.update(Comparison(recording, log, lake, way.format, report).compare(moment))
    return verdict


def shrink(
    said: list[Said | None], is_wrong: Callable[[list[Said | None]], bool]
) -> list[Said | None]:
    """A part of the statements that is still wrong, from which no piece can be taken."""
    size = max(1, len(said) // 2)
    while True:
        start, taken = 0, False
        while start < len(said):
            shorter = said[:start] + said[start + size :]
            if is_wrong(shorter):
                said, taken = shorter, True
            else:
                start += size
        if size == 1 and not taken:
            return said
        size = max(1, size // 2)


class Matrix:
    """Records and lands, and counts what comes of it.

    Args:
        source: The server.
        directory: Gets logs and lakes; what is wrong stays there.
        runner: Who lands.
        engine: Its name.
        results: Gets a line of JSON for each landing.
    """

    def __init__(
        self,
        source: Source,
        directory: Path,
        runner: Runner,
        engine: str,
        results: Path | None = None,
    ) -> None:
        self._results = results
        self._source = source
        self._directory = directory
        self._runner = runner
        self._engine = engine
        self.verdicts: dict[tuple[str, str, str, str], Verdict] = {}
        self.refused: Counter[int] = Counter()

    def seed(
        self,
        seed: int,
        *,
        count: int,
        formats: Sequence[FormatName],
        kills: Sequence[int],
        rare: float = RARE,
    ) -> None:
        """A workload, landed in every format without and with kills."""
        chance = random.Random(seed)
        name = f"{self._source.name.replace(' ', '')}-{seed}"
        home = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._directory))
        log = home / "source"
        log.mkdir()
        recording = self._source.record(log, self._source.workload(chance, count, rare))
        (home / "said.tsv").write_text(statements(recording.said))
        self.refused += recording.refused
        is_right = True
        for table_format in formats:
            for most in kills:
                way = Way.drawn(chance, table_format, self._engine, most, len(recording.moments))
                verdict = self.land(recording, home, way, chance)
                is_right &= not verdict.wrong
        if is_right:
            shutil.rmtree(home)

    def land(self, recording: Recording, home: Path, way: Way, chance: random.Random) -> Verdict:
        """One landing."""
        place = Path(tempfile.mkdtemp(prefix=f"{way.format.value}-", dir=home))
        before = self._runner.kills
        verdict = land_and_compare(recording, place, way, self._runner, chance)
        verdict.counts["killed"] = self._runner.kills - before
        kills = "kills" if way.kills else "no kills"
        key = (self._source.name, way.format.value, self._engine, kills)
        self.verdicts.setdefault(key, Verdict()).update(verdict)
        if self._results is not None:
            names = ("server", "format", "engine", "kills")
            told = {"counts": verdict.counts, "reasons": verdict.reasons, "wrong": verdict.wrong}
            with self._results.open("a") as stream:
                stream.write(json.dumps(dict(zip(names, key, strict=True)) | told) + "\n")
        if verdict.wrong:
            _tell(f"WRONG {place} {way}", *(f"  {each}" for each in verdict.wrong))
        else:
            shutil.rmtree(place)
        return verdict

    def shrink(self, said: list[Said | None], way: Way, pattern: str) -> list[Said | None]:
        """Fewer statements, of which the same is wrong, or given up for the same reason."""

        def is_wrong(some: list[Said | None]) -> bool:
            home = Path(tempfile.mkdtemp(prefix="shrink-", dir=self._directory))
            (home / "source").mkdir()
            try:
                recording = self._source.record(home / "source", portions_of(some) or [[]])
                found = land_and_compare(
                    recording, home / "one", way, self._runner, random.Random(1)
                )
                return any(re.search(pattern, each) for each in (*found.wrong, *found.reasons))
            finally:
                shutil.rmtree(home)

        assert is_wrong(said), "these statements are not wrong, landed so"
        return shrink(said, is_wrong)


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m tests.land_matrix", description=__doc__)
    parser.add_argument("--seeds", default="1-3", help="A-B")
    parser.add_argument("--server", default="mariadb")
    parser.add_argument("--format", default="delta,iceberg,parquet")
    parser.add_argument("--engine", default="embedded", choices=["embedded", "spark", "cluster"])
    parser.add_argument("--kills", default="0", help="at most, before each moment: 0,3 is both")
    parser.add_argument("--statements", type=int, default=200)
    parser.add_argument("--rare", type=float, default=RARE, help="share of what is not followed")
    parser.add_argument("--into", type=Path, help="what is wrong stays there")
    parser.add_argument("--results", type=Path, help="gets a line of JSON for each landing")
    parser.add_argument("--shrink", type=Path, help="a said.tsv, to be cut down")
    parser.add_argument("--wrong", default=".", help="a pattern of what is wrong, or why given up")
    parser.add_argument("--batch-bytes", type=int, default=8_000, help="of --shrink")
    parser.add_argument("--task-bytes", type=int, default=3_000, help="of --shrink")
    given = parser.parse_args(arguments)
    directory = given.into or Path(tempfile.mkdtemp(prefix="land-matrix-"))
    directory.mkdir(exist_ok=True)
    formats = [FormatName(name) for name in given.format.split(",")]
    # Else the server would stay behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with ExitStack() as stack:
        source = Source(
            Path(tempfile.mkdtemp(prefix="server-", dir=directory)), _program(given.server)
        )
        stack.callback(shutil.rmtree, source.server.directory.parent)
        stack.callback(source.server.kill)
        runner = _runner(stack, given.engine, directory)
        matrix = Matrix(source, directory, runner, given.engine, given.results)
        if given.shrink:
            said = read_statements(given.shrink.read_text())
            way = Way(
                format=formats[0],
                engine=given.engine,
                kills=0,
                batch_bytes=given.batch_bytes,
                task_bytes=given.task_bytes,
                spreads=False,
                stops=frozenset(range(9)),
            )
            _tell(statements(matrix.shrink(said, way, given.wrong)))
            return 0
        first, _, last = given.seeds.partition("-")
        kills = [int(each) for each in given.kills.split(",")]
        for seed in range(int(first), int(last or first) + 1):
            matrix.seed(seed, count=given.statements, formats=formats, kills=kills, rare=given.rare)
            _tell(f"{source.name} seed {seed}; refused statements: {dict(matrix.refused)}")
    total = Verdict()
    for key, verdict in matrix.verdicts.items():
        _tell(f"{', '.join(key)}: {dict(verdict.counts)}")
        total.update(verdict)
    _tell(*(f"{count:5} {reason}" for reason, count in total.reasons.most_common()))
    return 1 if total.wrong else 0


def _tell(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)  # noqa: T201 - what it is run for


def _program(name: str) -> ServerProgram:
    if name == "mariadb":
        return MARIADB
    return mysql_program() if name == "mysql" else UnpackedMariadb(Path(name).absolute())


def _runner(stack: ExitStack, engine: str, directory: Path) -> Runner:
    if engine == "embedded":
        return Runner()
    from binlane.tables.spark.spark_engine import spark_engine  # noqa: PLC0415 - for this engine only
    from tests.standalone import cluster  # noqa: PLC0415 - as above

    settings = {"spark.binlane.smallBytes": "0"}
    if engine == "spark":
        return Runner(stack.enter_context(spark_engine("local[2]", settings)), _python_workers)
    running = stack.enter_context(cluster(Path(tempfile.mkdtemp(prefix="cluster-", dir=directory))))
    used = stack.enter_context(spark_engine(running.url, {**running.settings, **settings}))
    return Runner(used, running.executors)


def _python_workers() -> list[int]:
    """Process ids of the Pythons that Spark's local master has for tasks."""
    parents: dict[int, int] = {}
    commands: dict[int, bytes] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            number = int(entry.name)
            parents[number] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            commands[number] = (entry / "cmdline").read_bytes()
    found = []
    for number, command in commands.items():
        above = number
        while above not in {0, os.getpid()}:
            above = parents.get(above, 0)
        # The first one forks those that work.
        is_worker = b"pyspark.daemon" in commands.get(parents[number], b"")
        if above and is_worker and b"pyspark.daemon" in command:
            found.append(number)
    return found


if __name__ == "__main__":
    sys.exit(main())
