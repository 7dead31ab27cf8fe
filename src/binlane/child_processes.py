"""Processes that `serve` starts end with it, also where it is killed and says nothing any more.

A program that is started by `command` first asks the system for its own end when that of its parent
comes, sees that the parent is still there, and only then loads its modules: so no moment is left in
which it could stay behind. A forked process calls `end_with` itself.

The system means the thread that started the process, not only its process: start one from a thread that
lives as long as the process is wanted. What lives here imports nothing of binlane.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
from contextlib import suppress
from typing import Final

_DIE_WITH_PARENT: Final = 1
"""PR_SET_PDEATHSIG of Linux."""


def command(module: str, *arguments: str) -> list[str]:
    """The command line of a module as a program that ends with this process.

    Args:
        module: Name of the module, which runs as by `python -m`.
        arguments: The arguments that the program gets.
    """
    return [sys.executable, "-m", __name__, str(os.getpid()), module, *arguments]


def isolated_command(path: str) -> list[str]:
    """The command line of a file of Python that needs no package, and ends with this process.

    Args:
        path: Path of the file, which ends with .py.
    """
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), path]


def end_with(parent: int) -> None:
    """Have this process killed when the one that started it ends; end at once if it has already.

    Args:
        parent: Number of the process that started this one.
    """
    with suppress(OSError, AttributeError):  # on another system a pipe that ends has to do
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def main() -> None:
    """Run a program: `sys.argv` holds the parent's number, a module or file, and arguments."""
    _, parent, program, *arguments = sys.argv
    end_with(int(parent))
    sys.argv = [program, *arguments]
    if program.endswith(".py"):
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
