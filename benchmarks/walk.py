"""What one statement crosses in `check`: modules and calls of binlane, as JSON lines.

An INSERT that fires a trigger, in a session that has met other statements: with a shape that was
never seen, the same shape with other literals in a session of its own, and once more in that.

    python -m benchmarks.walk
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from benchmarks.check import SCHEMA, statements
from binlane.statements.check.checker import Checker
from binlane.statements.check.json_lines import JsonReport
from binlane.statements.check.reasons import Judgement
from binlane.statements.check.report import Run
from binlane.statements.policy.server import Server

_INSERT = "INSERT INTO items (amount, order_id, sku) VALUES ({0}, {0}, 'sku-{0}')"


def main() -> None:
    """Print one line a walk."""
    for server in ("mariadb", "mysql"):
        run = Run(Checker(Server.parse(server), SCHEMA, None), Judgement(), JsonReport())
        _check(run, ";\n".join(statements(200, 0)))
        new = _calls(run, _INSERT.format(7))
        _tell(server, "new shape", new)
        _tell(server, "known shape, a new session", once := _calls(run, _INSERT.format(8)))
        twice = _calls(run, f"{_INSERT.format(9)};\n{_INSERT.format(10)}")
        _tell(server, "known shape, again in its session", twice - once)


def _tell(server: str, what: str, calls: Counter[tuple[str, str]]) -> None:
    line = {
        "benchmark": f"walk of an INSERT with a trigger, {what}",
        "server": server,
        "modules": len({module for module, _ in calls}),
        "calls": calls.total(),
    }
    print(json.dumps(line))


def _check(run: Run, script: str) -> None:
    for _ in run.check("script.sql", script):
        pass


def _calls(run: Run, statement: str) -> Counter[tuple[str, str]]:
    """Calls of binlane's functions, by module and name."""
    calls: Counter[tuple[str, str]] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "binlane" in Path(frame.f_code.co_filename).parts:
            calls[frame.f_code.co_filename, frame.f_code.co_qualname] += 1

    sys.setprofile(note)
    try:
        _check(run, statement)
    finally:
        sys.setprofile(None)
    return calls


if __name__ == "__main__":
    main()
