"""The rule ledger `docs/rules.toml`, and the tests that prove its rules.

Which test proves what is told by the tests' own `rule` marks alone. They are read by collecting
all files that have any in a process of its own, so that parametrised cases count one by one; this
module is the pytest plugin of that process, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
LEDGER: Final = ROOT / "docs/rules.toml"
STATUSES: Final = ("done", "partial", "planned")
_ANSWER: Final = "BINLANE_RULE_MARKS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of a seed document.

    Attributes:
        id: `SEED:name`, such as `000:partial-write`.
        text: The rule in one line.
        status: One of `STATUSES`.
        reason: Why it is not done; empty where it is.
    """

    id: str
    text: str
    status: str
    reason: str = ""


def load_rules() -> list[Rule]:
    """All rules, in the ledger's order."""
    return [Rule(**entry) for entry in tomllib.loads(LEDGER.read_text())["rule"]]


@cache
def proofs() -> Mapping[str, Sequence[str]]:
    """Node ids of the tests that carry each rule's mark, by rule id.

    Raises:
        AssertionError: If the suite cannot be collected.
    """
    with tempfile.TemporaryDirectory() as directory:
        answer = Path(directory) / "marks.json"
        # To collect the others takes half a minute.
        marked = [
            path for path in (ROOT / "tests").rglob("test_*.py") if "mark.rule(" in path.read_text()
        ]
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "--collect-only", "--quiet", "--quiet"),
                *("-m", "rule", "-p", "tests.rules", "-p", "no:cacheprovider"),
                *map(str, sorted(marked)),
            ],
            cwd=ROOT,
            env={**os.environ, _ANSWER: str(answer)},
            capture_output=True,
            text=True,
            check=False,
        )
        # 5: no test carries a mark.
        assert done.returncode in (0, 5), done.stdout[-2000:] + done.stderr[-2000:]
        marks: dict[str, list[str]] = json.loads(answer.read_text())
        return marks


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write down the marks, where `proofs` asked for them."""
    if _ANSWER not in os.environ:
        return
    marks: dict[str, list[str]] = defaultdict(list)
    for item in session.items:
        for mark in item.iter_markers("rule"):
            for rule in mark.args:
                marks[rule].append(item.nodeid)
    Path(os.environ[_ANSWER]).write_text(json.dumps(marks))
