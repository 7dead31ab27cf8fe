"""Programs end with the process that started them, whatever they are doing then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from binlane.child_processes import command, isolated_command

_PROGRAM = """
import sys, time
print("runs", *sys.argv[1:], flush=True)
time.sleep({seconds})
"""
_PARENT = """
import subprocess, sys
from binlane.child_processes import {name}
child = subprocess.Popen({name}(*{arguments}))
sys.stdin.read()
import os, signal
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("name", [command.__name__, isolated_command.__name__])
def test_a_program_ends_with_a_parent_that_is_killed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(_PROGRAM.format(seconds=600))
    arguments = ("program", "a") if name == command.__name__ else (str(path),)
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT.format(name=name, arguments=arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"},
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        assert parent.stdout.readline().split()[0] == "runs"
        parent.stdin.close()
        # The end of this pipe comes when nobody has it any more, the program neither.
        assert not parent.stdout.read()
    assert parent.returncode < 0


def test_a_program_whose_parent_is_gone_does_not_begin(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(_PROGRAM.format(seconds=0))
    line = isolated_command(str(path))
    # The number of a process that is not the parent, as when the parent ended before.
    stranger = [*line[:-2], "1", line[-1]]
    done = subprocess.run(stranger, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout == "runs\n"
