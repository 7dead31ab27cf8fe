from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from binlane.errors import StoreLockedError
from binlane.tables.landing import lease as lease_module
from binlane.tables.landing.lease import Lease

ROUNDS = 20
RIVAL = """
import sys
from binlane.errors import StoreLockedError
from binlane.tables.landing.lease import Lease
for line in sys.stdin:
    try:
        lease = Lease.take(line.strip())
    except StoreLockedError as error:
        print("refused:", error, flush=True)
    else:
        print("holds", flush=True)
        sys.stdin.readline()
        lease.release()
        print("released", flush=True)
"""


def rival() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RIVAL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_of_three_that_start_at_once_one_holds_the_target(tmp_path: Path) -> None:
    rivals = [rival() for _ in range(3)]
    try:
        for number in range(ROUNDS):
            into = tmp_path / str(number % 4)  # new ones, and ones that were held before
            for each in rivals:
                tell(each, str(into))
            answers = [heard(each) for each in rivals]
            assert sorted(answer[:7] for answer in answers) == ["holds", "refused", "refused"]
            told = next(answer for answer in answers if answer.startswith("refused"))
            holder = rivals[answers.index("holds")]
            assert f"refused: process {holder.pid} of " in told
            tell(holder, "release")
            assert heard(holder) == "released"
    finally:
        for each in rivals:
            end(each)


def test_a_holder_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    process = rival()
    tell(process, str(tmp_path))
    assert heard(process) == "holds"
    with pytest.raises(StoreLockedError, match=f"process {process.pid} of .* lands here since"):
        Lease.take(str(tmp_path))
    end(process)
    with Lease.take(str(tmp_path)) as lease:
        assert lease.epoch == 2


def test_a_holder_elsewhere_that_is_silent_is_taken_for_dead(tmp_path: Path) -> None:
    Lease.take(str(tmp_path)).release()
    (path,) = (tmp_path / "_binlane/lease").iterdir()
    content = json.loads(path.read_text())
    content |= {"state": "holds", "place": "elsewhere", "host": "far-away"}
    path.write_text(json.dumps(content | {"renewed": time.time() - 3}))
    with pytest.raises(
        StoreLockedError, match=r"on far-away lands here .*, last seen 3 s ago"
    ) as e:
        Lease.take(str(tmp_path))
    assert "--take-over" in e.value.hint
    path.write_text(json.dumps(content | {"renewed": time.time() - lease_module.EXPIRES_S}))
    with Lease.take(str(tmp_path)) as lease:
        assert lease.epoch == 2


def test_a_holder_that_was_taken_over_learns_of_it(tmp_path: Path) -> None:
    first = Lease.take(str(tmp_path))
    first.check()
    with Lease.take(str(tmp_path), is_taking_over=True) as second:
        second.check()
        with pytest.raises(StoreLockedError, match="has taken over"):
            first.check()
        first.release()
        with pytest.raises(StoreLockedError, match="lands here since"):
            Lease.take(str(tmp_path))
    assert len(list((tmp_path / "_binlane/lease").iterdir())) == 1


def test_a_holder_shows_that_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "RENEWED_S", 0.02)
    with Lease.take(str(tmp_path)):
        (path,) = (tmp_path / "_binlane/lease").glob("*.json")
        before = json.loads(path.read_text())["renewed"]
        until = time.monotonic() + 5
        while json.loads(path.read_text())["renewed"] == before:
            assert time.monotonic() < until
            time.sleep(0.01)


def test_what_is_left_of_one_that_died_at_its_start_is_in_nobodys_way(tmp_path: Path) -> None:
    Lease.take(str(tmp_path)).release()
    (path,) = (tmp_path / "_binlane/lease").iterdir()
    content = json.loads(path.read_text()) | {"state": "claims", "began": "0"}
    path.write_text(json.dumps(content))
    Lease.take(str(tmp_path)).release()
