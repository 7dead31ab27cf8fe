from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from binlane.errors import BinlaneError, StoreError
from binlane.tables.landing.engine import EmbeddedEngine


@pytest.fixture
def engine() -> Iterator[EmbeddedEngine]:
    engine = EmbeddedEngine(processes=2)
    yield engine
    engine.close()


def slow_first(number: int) -> tuple[int, int]:
    time.sleep(0.3 if number == 0 else 0)
    return number, os.getpid()


def slow(number: int) -> int:
    time.sleep(0.1)
    return number


def fail_at_two(number: int) -> int:
    if number >= 2:
        raise StoreError(f"work {number} fails", path="somewhere", hint="do something")
    return number


def die_unless_there(path: Path) -> str:
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return path.name


def die(_work: int) -> None:
    os._exit(3)


def test_results_come_in_the_order_of_works_from_processes_that_stay(
    engine: EmbeddedEngine,
) -> None:
    first = list(engine.run(slow_first, range(12)))
    assert [number for number, _ in first] == list(range(12))
    processes = {process for _, process in first}
    assert len(processes) == 2
    assert os.getpid() not in processes
    assert {process for _, process in engine.run(slow_first, range(4))} <= processes


def test_works_may_be_run_while_results_of_others_are_taken(engine: EmbeddedEngine) -> None:
    taken = []
    for number in engine.run(slow, range(6)):
        assert list(engine.run(slow, range(100, 103))) == [100, 101, 102]
        taken.append(number)
    assert taken == list(range(6))


def test_small_works_are_done_in_this_process(engine: EmbeddedEngine) -> None:
    ((_, process),) = engine.run(slow_first, [0])
    assert process == os.getpid()


def test_errors_come_as_they_were_raised(engine: EmbeddedEngine) -> None:
    found: list[int] = []
    with pytest.raises(StoreError, match=r"work 2 fails \(somewhere\)") as caught:
        found += engine.run(fail_at_two, range(9))
    assert caught.value.hint == "do something"
    assert list(engine.run(fail_at_two, [0, 1])) == [0, 1]


def test_the_work_of_a_worker_that_dies_is_done_again(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    works = [tmp_path / "a", tmp_path / "b"]
    assert list(engine.run(die_unless_there, works)) == ["a", "b"]
    assert engine.notes == ["a worker process died (signal 9); its work is done again"] * 2


def test_a_work_that_kills_its_worker_twice_is_told(engine: EmbeddedEngine) -> None:
    with pytest.raises(BinlaneError, match=r"died 2 times of the same work \(exit status 3\)"):
        list(engine.run(die, [1, 2]))


def test_workers_end_when_their_driver_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, time\n"
        "from binlane.tables.landing.engine import EmbeddedEngine\n"
        "from tests.unit.tables.landing.test_engine import slow_first\n"
        "engine = EmbeddedEngine(processes=2)\n"
        "print(*{pid for _, pid in engine.run(slow_first, range(4))}, flush=True)\n"
        "time.sleep(60)\n"
    )
    path = os.pathsep.join([str(Path(__file__).parents[4]), *sys.path])
    driver = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert driver.stdout is not None
    workers = [int(word) for word in driver.stdout.readline().split()]
    assert len(workers) == 2
    driver.kill()
    driver.communicate()
    until = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < until
        time.sleep(0.05)
