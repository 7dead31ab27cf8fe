"""Every target of the fuzzer, for a short while; `./run test --all` takes longer."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.commands import RUNS, trouble
from tests.fuzz.conversations import mutations
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]


def fuzz(name: str, *options: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", name, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_no_seed_breaks_a_target(name: str) -> None:
    for seed in TARGETS[name].seeds():
        TARGETS[name].run(seed)


@pytest.mark.parametrize("name", ["login", "relayed", "judged", "dump_request"])
def test_what_is_like_a_session_breaks_no_target(name: str) -> None:
    seeds = list(TARGETS[name].seeds())
    for script in mutations(seeds, 3000, random.Random(name)):
        TARGETS[name].run(script)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_minute_of_fuzzing_breaks_no_target(name: str) -> None:
    fuzz(name, "-max_total_time=60")


@pytest.mark.parametrize("name", sorted(RUNS))
def test_no_damage_of_a_few_breaks_a_command(name: str) -> None:
    assert [trouble(name, seed) for seed in range(2)] == [None, None]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(RUNS))
def test_minutes_of_damage_break_no_command(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.commands", "120", "1000000", name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
