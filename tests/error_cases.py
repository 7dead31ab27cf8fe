"""The cases of tests/vectors/errors.txt: sessions with the servers' answers to their statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.rules import ROOT

SERVERS: Final = ("mariadb:10.11", "mariadb:11.8", "mysql:9.7")
"""Whose answers the file has."""


@dataclass
class Case:
    """Statements of one session, each with the servers' answers: all of them, or named ones."""

    has_database: bool = True
    statements: list[tuple[str, list[str]]] = field(default_factory=list)

    def answers(self, server: str) -> Iterator[tuple[str, str]]:
        """Each statement with what a server answers; empty if it takes it."""
        for statement, lines in self.statements:
            said = ""
            for line in lines:
                name, _, rest = line.partition(": ")
                if name not in ("mariadb", "mysql", *SERVERS):
                    said = line
                elif name in (server, server.partition(":")[0]):
                    said = rest
            yield statement, said


def cases() -> list[Case]:
    """The blocks of the file."""
    found: list[Case] = []
    for block in (ROOT / "tests/vectors/errors.txt").read_text("utf-8").split("\n\n"):
        case = Case()
        for line in block.splitlines():
            if line == "NODB":
                case.has_database = False
            elif line.startswith("    "):
                case.statements[-1][1].append(line.strip())
            elif line and not line.startswith("#"):
                case.statements.append((line, []))
        found += [case] if case.statements else []
    return found


def is_same(answer: str, said: str) -> bool:
    """Whether an answer, its number and text, is what the file says; of 1064 the number counts."""
    return answer == said or (said == "1064" and answer.startswith("1064 "))
