"""What fails only where there are rows to change: it fails on some ways, and is logged on others."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.refusals import Outcome
from binlane.statements.policy.server import Server
from binlane.statements.session.report import StatementResult
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog

_SCHEMA = """create database d; use d; create table t (a int); create table c (a int);
create trigger after_t after delete on t for each row delete from c where a = old.a;
"""
_USED = 1442


def done(statement: str, outcome: Outcome = Outcome()) -> StatementResult:  # noqa: B008 - a value
    """What a session of MariaDB makes of a statement."""
    objects = SchemaCatalog(Flavor.MARIADB)
    objects.load(_SCHEMA)
    session = Session(server=Server.parse("mariadb:10.11.19"), objects=objects, database="d")
    return session.execute(statement, outcome)


@pytest.mark.parametrize(
    "statement",
    [
        "delete t from t join c on t.a = c.a",
        "delete t, c from t, c where t.a = c.a",
        "delete from t where a in (select a from c)",
    ],
)
def test_a_trigger_on_a_table_in_use_fails_on_some_ways_only(statement: str) -> None:
    result = done(statement)
    assert result.error is not None
    assert (result.error.errno, result.error.on_some_ways) == (_USED, True)
    assert [one.text for one in result.depends_on] == ["a row for d.t"]
    texts = [event.info for event in result.binlogs["binlog"].events]
    assert texts == ["BEGIN GTID #", f"use `d`; {statement}", "COMMIT"]


def test_what_is_stated_of_the_rows_decides() -> None:
    statement = "delete t from t join c on t.a = c.a"
    assert done(statement, Outcome(rows=0)).error is None
    found = done(statement, Outcome(error=_USED)).error
    assert found is not None
    assert (found.errno, found.on_some_ways) == (_USED, False)
