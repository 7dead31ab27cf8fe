"""Many sessions on one server: what differs is made short, told once a kind, and kept as it comes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pymysql

from tests.differential.logging import cases
from tests.differential.logging.productions import Productions
from tests.differential.logging.recorder import Recorder
from tests.differential.logging.scripts import Script
from tests.differential.logging.shrinking import Found, compared, record, shrunk

_TIMES: Final = 6
"""How often a session goes on without the statement that differed."""
_KEPT_OF_A_KIND: Final = 2


@dataclass(slots=True)
class Campaign:
    """What came of sessions on a server.

    Attributes:
        recorder: Of the server.
        folder: Where what differs is kept; None keeps nothing.
        goes_on: A session that differs goes on without the statement that did.
        productions: Of the server's grammar, if it is to be told which were taken.
        sessions: How many were run.
        statements: How many statements were compared.
        taken: How many of them the server took.
        differing: Statements that differ.
        kinds: How often each kind of difference came.
        found: The first of each kind, as short as it can be.
        troubles: Sessions that could not be recorded.
        drawn: Productions that were drawn.
        accepted: Productions of statements that the server took.
    """

    recorder: Recorder
    folder: Path | None = None
    goes_on: bool = False
    productions: Productions | None = None
    sessions: int = 0
    statements: int = 0
    taken: int = 0
    differing: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    found: dict[str, Found] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)
    drawn: set[str] = field(default_factory=set)
    accepted: set[str] = field(default_factory=set)

    def compare(self, name: str, script: Script) -> list[Found]:
        """Run a session, and what is left of it behind each difference; what is new comes short.

        What the recorder cannot follow is told among the troubles.
        """
        try:
            return self._compare(name, script)
        except pymysql.MySQLError as error:
            self.troubles.append(f"{name}: {error}")
            self.recorder.begin_anew()
            return []

    def _compare(self, name: str, script: Script) -> list[Found]:
        self.sessions += 1
        new: list[Found] = []
        for times in range(_TIMES if self.goes_on else 1):
            script, recorded = record(self.recorder, script)
            found = compared(self.recorder, script, recorded)
            if times == 0:
                self.statements += len(script.statements)
                taken = [done.sql for done in recorded if done.error is None and done.sql]
                self.taken += len(taken)
                if self.productions is not None:
                    self._note(script, taken)
            if found is None:
                break
            self.differing += 1
            kind = kind_of(found)
            self.kinds[kind] += 1
            if self.kinds[kind] <= _KEPT_OF_A_KIND:
                small = shrunk(self.recorder, found)
                self._keep(small, f"{name}-{times}")
                if self.kinds[kind] == 1:
                    self.found[kind] = small
                    new.append(small)
            index = found.difference.index
            if index >= len(found.script.statements):
                break
            left = script.statements[:index] + script.statements[index + 1 :]
            script = replace(script, statements=left)
        return new

    def _note(self, script: Script, taken: Sequence[str]) -> None:
        assert self.productions is not None
        for text, found in self.productions.of_session(script.texts):
            self.drawn |= found
            if text in taken:
                self.accepted |= found

    def _keep(self, found: Found, name: str) -> None:
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        server = self.recorder.server_name
        path = self.folder / f"{name}.{server.replace(':', '-')}.json"
        path.write_text(cases.text(found.script, found.recorded, server=server), encoding="utf-8")
        path.with_suffix(".txt").write_text(told(found), encoding="utf-8")

    def figures(self) -> str:
        """Statements, differences and the share that is equal, in a line."""
        share = 1 - self.differing / max(1, self.statements)
        return (
            f"{self.recorder.server_name}: {self.sessions:,} sessions, {self.statements:,} statements "
            f"of which it took {self.taken / max(1, self.statements):.0%}, "
            f"{self.differing} differ in {len(self.kinds)} kinds, {share:.3%} equal"
        )

    def lines(self) -> Iterator[str]:
        """All that there is to tell behind the last session."""
        yield self.figures()
        for kind, times in self.kinds.most_common():
            yield f"{times:5} {kind}"
        for trouble in self.troubles:
            yield f"could not be recorded: {trouble}"
        if self.productions is None:
            return
        known = self.productions.all
        yield (
            f"{len(known):,} productions, {len(self.drawn & known):,} drawn, "
            f"{len(self.accepted & known):,} taken by the server"
        )
        for name in sorted(known - self.accepted):
            yield f"{'never taken' if name in self.drawn else 'NEVER DRAWN'}: {name}"


def kind_of(found: Found) -> str:
    """What two differences of one cause have in common: aspect, answers or types of events."""
    difference = found.difference
    words = " ".join(re.sub(r"[\d`]+", "", found.statement).lower().split()[:2])
    expected, actual = difference.expected, difference.actual
    if isinstance(expected, list) and isinstance(actual, list):
        types = [event.type for event in expected], [event.type for event in actual]
        if types[0] == types[1]:
            pairs = zip(expected, actual, strict=True)
            told_type = next((one.type for one, other in pairs if one != other), "")
            return f"{difference.aspect}: {words}: {told_type} otherwise"
        return f"{difference.aspect}: {words}: {' '.join(types[0])} / {' '.join(types[1])}"
    if expected is not None:
        words = ""  # what a server refuses, it refuses of statements of many kinds
    return f"{difference.aspect}: {words}: {expected} / {actual}"


def told(found: Found) -> str:
    """A difference as a person reads it."""
    texts = "".join(f"{sql};\n" for sql in found.script.texts)
    difference = found.difference
    return (
        f"{texts}\n{difference.aspect} at {difference.index}:\n"
        f"server: {_lines(difference.expected)}\nours: {_lines(difference.actual)}\n"
    )


def _lines(value: object) -> str:
    if isinstance(value, list):
        return "".join(f"\n  {event}" for event in value)
    return str(value)
