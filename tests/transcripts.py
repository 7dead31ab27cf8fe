"""Transcripts of sessions: what was typed, and what was answered and logged; `vectors/transcripts`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "vectors" / "transcripts"
_LINE: Final = re.compile(r"(master|setup|logged|in \w+)>(?: (.*))?")


@dataclass(slots=True)
class Step:
    """A statement and what must come of it.

    Attributes:
        text: The statement.
        answer: Lines of the client, such as a table or an error; none for anything but an error.
        logged: Names of the binlogs that get something by it; None for whichever.
        appended: By binlog the statements that it gets by it, `rows` for rows.
    """

    text: str
    answer: list[str] = field(default_factory=list)
    logged: list[str] | None = None
    appended: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session, on a server without databases and binlogs.

    Attributes:
        name: What it shows.
        steps: In order.
    """

    name: str
    steps: list[Step] = field(default_factory=list)


def transcripts(name: str) -> list[Transcript]:
    """Those of a file."""
    found: list[Transcript] = []
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        matched = _LINE.fullmatch(line)
        if line.startswith("== "):
            found.append(Transcript(line.removeprefix("== ")))
        elif matched is not None:
            _take(found[-1].steps, matched[1], matched[2] or "")
        elif line.strip() and not line.startswith("#"):
            step = found[-1].steps[-1]
            if step.text.partition("/*")[0].rstrip().endswith(";"):
                step.answer.append(line)
            else:
                step.text += f"\n{line}"
    return found


def _take(steps: list[Step], what: str, rest: str) -> None:
    if what in {"master", "setup"}:
        steps.append(Step(rest))
    elif what == "logged":
        steps[-1].logged = rest.split()
    else:
        steps[-1].appended.setdefault(what.removeprefix("in "), []).append(rest)
