"""The command line: one module a command; each parses arguments, calls, prints and gives an exit code.

Commands are imported when they are called, so that `binlane cat` never pays for Spark.
"""

from __future__ import annotations

from binlane.cli.main import main

__all__ = ["main"]
