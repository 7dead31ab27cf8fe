"""Whether DDL is inside or outside of a scope: routing answers as the rules of safety do.

Where a binlog records a statement that none refuses, routing keeps it; where it does not, routing
leaves it out; what is refused has no text of its own in a routed binlog, or only a part of it.
"""

from __future__ import annotations

import pytest

from binlane.binlogs.routing.statement_verdicts import Drop, Keep, judge
from binlane.statements.scope.changes import changes_in_text
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.safety import Setting, find_dangers, is_recorded
from binlane.statements.scope.statements import CreateBinlog, create
from binlane.statements.sql.servers import LoggingFormat
from tests.reading import read

STATEMENTS = (
    "CREATE TABLE t (a INT)",
    "CREATE TABLE u (a INT)",
    "CREATE TABLE t LIKE u",
    "CREATE TABLE x.t LIKE t",
    "CREATE TABLE t SELECT * FROM x.t",
    "ALTER TABLE t ADD b INT",
    "ALTER TABLE x.u ADD b INT",
    "CREATE INDEX i ON t (a)",
    "DROP INDEX i ON u",
    "TRUNCATE TABLE t",
    "TRUNCATE u",
    "CREATE DATABASE d",
    "CREATE DATABASE x",
    "ALTER DATABASE d CHARACTER SET utf8mb4",
    "DROP TABLE t",
    "DROP TABLE u",
    "RENAME TABLE t TO t2",
    "CREATE SEQUENCE t",
)
SCOPES = (
    "LOG(d)",
    "LOG(d.t)",
    "LOG(d) IGNORE(d.u)",
    "",
    "LOG(x)",
    "LOG(d, x.t)",
    "IGNORE(d)",
)


def _definition(lists: str) -> Definition:
    statement = parse_binlog_statement(f"CREATE BINLOG 'one' {lists}", ansi_quotes=False)
    assert isinstance(statement, CreateBinlog)
    return create(statement, 1)


@pytest.mark.parametrize("lists", SCOPES)
@pytest.mark.parametrize("sql", STATEMENTS)
def test_routing_and_safety_agree(sql: str, lists: str) -> None:
    definition = _definition(lists)
    effects = read(sql, database="d").effects
    changes = changes_in_text(effects)
    setting = Setting(
        definition=definition,
        mode=definition.logging_mode,
        logging_format=LoggingFormat.STATEMENT,
    )
    verdict = judge(effects, definition.scope)
    if any(find_dangers(changes, [setting])):
        assert not isinstance(verdict, Keep)
    elif is_recorded(changes, setting):
        assert isinstance(verdict, Keep)
    else:
        assert isinstance(verdict, Drop)
