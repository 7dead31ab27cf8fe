"""The command line: one module a command; each parses arguments, calls, prints and gives an exit code.

Commands are imported when they are called, so that `binlane cat` never pays for Spark.
"""

from __future__ import annotations

import sys
from types import TracebackType


def _interrupted(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Report a Ctrl-C that comes while modules load, before `main` runs."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("binlane: interrupted\n")
    else:
        sys.__excepthook__(kind, error, traceback)


if sys.excepthook is sys.__excepthook__:
    sys.excepthook = _interrupted

from binlane.cli.main import main  # noqa: E402  # it loads what takes long

__all__ = ["main"]
