"""Errors that a text and the objects tell, as the servers answer them: tests/vectors/errors.txt."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.errors import PredictedErrors
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from tests.error_cases import SERVERS, Case, cases, is_same

_SETTINGS: Final = {"mysql": "SET GLOBAL gtid_mode=OFF; SET GLOBAL enforce_gtid_consistency=OFF;"}


def _session(server: str, *, has_database: bool) -> Session:
    flavor = server.partition(":")[0]
    objects = SchemaCatalog(Flavor(flavor))
    objects.load(f"CREATE DATABASE d; {_SETTINGS.get(flavor, '')}")
    database = "d" if has_database else ""
    return Session(
        server=Server.parse(server), objects=objects, database=database, errors=PredictedErrors()
    )


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.statements[0][0][:60])
@pytest.mark.parametrize("server", SERVERS)
def test_a_session_gets_the_errors_of_the_server(case: Case, server: str) -> None:
    session = _session(server, has_database=case.has_database)
    for statement, said in case.answers(server):
        result = session.execute(statement)
        assert result.unanalysed is None, statement
        answer = "" if result.error is None else f"{result.error.errno} {result.error.message}"
        assert is_same(answer, said), statement
