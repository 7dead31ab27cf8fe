"""Engines that log by themselves, read beside others (seed 004)."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.policy.procedure import decide_statement
from binlane.statements.policy.reasons import Reason
from binlane.statements.policy.resolution import ResolvedStatement, TableAccess
from binlane.statements.policy.server import Circumstances, Server
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import RowChange
from binlane.statements.sql.servers import LoggingMode

SCHEMA = """
CREATE DATABASE d; USE d;
CREATE TABLE t (a INT) ENGINE=InnoDB;
CREATE TABLE ndb (a INT) ENGINE=NDBCLUSTER;
"""


def _statement(*written: str, read: tuple[str, ...] = ()) -> ResolvedStatement:
    catalog = SchemaCatalog(Flavor.MYSQL)
    catalog.load(SCHEMA)
    accesses = []
    for name in (*written, *read):
        table = catalog.table(TableName("d", name))
        assert table is not None
        is_written = name in written
        changes = frozenset({RowChange.UPDATE} if is_written else ())
        accesses.append(TableAccess(table=table, changes=changes, is_locked_for_write=is_written))
    return ResolvedStatement(accesses=tuple(accesses))


@pytest.mark.rule("004:unsafe-self-logging")
@pytest.mark.rule("004:R-unsafe-self-logging")
def test_reading_a_self_logging_table() -> None:
    """Within one statement; no server looks at earlier statements of the transaction."""
    statement = _statement("t", read=("ndb",))
    now = Circumstances(server=Server.parse("mysql"), logging_mode=LoggingMode.MIXED)
    verdict = decide_statement(statement, now)
    reason = Reason.MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE
    assert reason in [found.reason for found in verdict.unsafe]
