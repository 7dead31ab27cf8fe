"""Errors that a text and the objects tell, as the servers answer them: tests/vectors/errors.txt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pytest

from binlane.codec.types import Flavor
from binlane.policy.server import Server
from binlane.session.session import Session
from binlane.sql.catalog import SchemaCatalog
from tests.rules import ROOT

SERVERS: Final = ("mariadb:10.11", "mariadb:11.8", "mysql:9.7")
_SETTINGS: Final = {"mysql": "SET GLOBAL gtid_mode=OFF; SET GLOBAL enforce_gtid_consistency=OFF;"}


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


def _session(server: str, *, has_database: bool) -> Session:
    flavor = server.partition(":")[0]
    objects = SchemaCatalog(Flavor(flavor))
    objects.load(f"CREATE DATABASE d; {_SETTINGS.get(flavor, '')}")
    database = "d" if has_database else ""
    return Session(server=Server.parse(server), objects=objects, database=database)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.statements[0][0][:60])
@pytest.mark.parametrize("server", SERVERS)
def test_a_session_gets_the_errors_of_the_server(case: Case, server: str) -> None:
    session = _session(server, has_database=case.has_database)
    for statement, said in case.answers(server):
        result = session.execute(statement)
        assert result.unanalysed is None, statement
        answer = "" if result.error is None else f"{result.error.errno} {result.error.message}"
        # Of a syntax error the number alone counts.
        assert answer == said or (said == "1064" and answer.startswith("1064 ")), statement
