"""What came of a suite at a port beside what came of it at the server itself.

`differences.toml` lists what may differ, test by test: what is meant to (`[[designed]]`), and what is
not mended yet (`[[fault]]`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final

_SHOWN: Final = 400
_FILE: Final = Path(__file__).with_name("differences.toml")


@dataclass(frozen=True, slots=True)
class Listed:
    """Tests that may differ.

    Attributes:
        suite: Whose.
        at: The kinds of places.
        tests: Their names, as patterns of `fnmatch`.
        why: The reason.
        is_designed: It is meant; else it is a fault.
    """

    suite: str
    at: tuple[str, ...]
    tests: tuple[str, ...]
    why: str
    is_designed: bool

    def covers(self, suite: str, kind: str, test: str) -> bool:
        """Whether it is about a test at a place."""
        return (
            self.suite == suite
            and kind in self.at
            and any(fnmatchcase(test, pattern) for pattern in self.tests)
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """A suite at a port, beside the server itself.

    Attributes:
        run: How many tests were run at both.
        equal: How many came out the same.
        designed: Those that differ as they are meant to, with the reason.
        faults: Those that differ by a fault that is listed, with it.
        unexplained: Those that differ otherwise: what came of them at the server, and at the port.
    """

    run: int
    equal: int
    designed: Mapping[str, str]
    faults: Mapping[str, str]
    unexplained: Mapping[str, tuple[str | None, str | None]]

    @property
    def shown(self) -> str:
        """What is not explained, as differences of lines; empty if all is."""
        lines = []
        for test, (direct, port) in self.unexplained.items():
            lines.append(f"{test}:")
            here, there = ((told or "not run").splitlines() for told in (direct, port))
            lines += unified_diff(here, there, "server", "port", lineterm="", n=2)
        return "\n".join(line[:_SHOWN] for line in lines)

    def __str__(self) -> str:
        return (
            f"{self.run} tests: {self.equal} equal, {len(self.designed)} differ by design,"
            f" {len(self.faults)} by faults that are listed, {len(self.unexplained)} otherwise"
        )


def compare(
    suite: str,
    kind: str,
    direct: Mapping[str, str],
    port: Mapping[str, str],
    *,
    meant: Callable[[str], str] = lambda outcome: outcome,
    why: str = "",
) -> Comparison:
    """Compare what came of each test; a test that is at one place only differs.

    Args:
        suite: Its name.
        kind: Of the port's place.
        direct: What came of each test at the server.
        port: The same at the port.
        meant: Leaves out of an outcome what is meant to differ in every test.
        why: The reason of that.
    """
    designed, faults, unexplained = {}, {}, {}
    names = sorted(direct.keys() | port.keys())
    for test in names:
        if direct.get(test) == port.get(test):
            continue
        if test in direct and test in port and meant(direct[test]) == meant(port[test]):
            designed[test] = why
            continue
        entry = next((one for one in listed() if one.covers(suite, kind, test)), None)
        if entry is None:
            unexplained[test] = (direct.get(test), port.get(test))
        elif entry.is_designed:
            designed[test] = entry.why
        else:
            faults[test] = entry.why
    differ = len(designed) + len(faults) + len(unexplained)
    return Comparison(len(names), len(names) - differ, designed, faults, unexplained)


@cache
def listed() -> tuple[Listed, ...]:
    """What may differ."""
    told: dict[str, list[dict[str, Any]]] = tomllib.loads(_FILE.read_text("utf-8"))
    return tuple(
        Listed(one["suite"], tuple(one["at"]), tuple(one["tests"]), one["why"], kind == "designed")
        for kind in ("designed", "fault")
        for one in told.get(kind, [])
    )
