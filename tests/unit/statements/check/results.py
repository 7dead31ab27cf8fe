"""Hand-made results for the tests of the reports."""

from __future__ import annotations

from binlane.statements.check.findings import CheckedStatement
from binlane.statements.check.script import read_script
from binlane.statements.policy.refusals import Refusal, Why
from binlane.statements.session import log_events
from binlane.statements.session.report import BinlogResult, Note, StatementResult, Unanalysed
from binlane.statements.sql.servers import LoggingFormat

UUID_NOTE = (
    "Unsafe statement written to the binary log using statement format since BINLOG_FORMAT = "
    "STATEMENT. Statement is unsafe because it uses a system function that may return a "
    "different value on the slave"
)
PARTIAL_WRITE = (
    "[11314] This statement cannot be replicated safely: binlogs {binny} do not log both "
    "`test`.`foo` and `test`.`bar`"
)


def checked(script: str, result: StatementResult) -> CheckedStatement:
    """A result for the last statement of a script."""
    *_, statement = read_script(script)
    return CheckedStatement(statement=statement, result=result)


def noted() -> CheckedStatement:
    """`uuid()` in statement format."""
    script = "SET x = 1;\n\nINSERT INTO t\nVALUES (1, uuid());"
    sql = "INSERT INTO t\nVALUES (1, uuid())"
    note = Note(
        errno=1592,
        reason="ER_BINLOG_UNSAFE_SYSTEM_FUNCTION",
        message=UUID_NOTE,
        binlogs=("binlog",),
        why=Why(what="uuid()", offset=sql.index("uuid"), length=6, hint="use rows"),
    )
    bodies = (log_events.GROUP_START, log_events.query(sql, "d"), log_events.XID)
    binlog = BinlogResult(
        logged_as=LoggingFormat.STATEMENT,
        bodies=bodies,
        steps=("It writes `d`.`t` (InnoDB).", "It is unsafe, and the mode is STATEMENT."),
        unsafe=("ER_BINLOG_UNSAFE_SYSTEM_FUNCTION",),
    )
    return checked(script, StatementResult(notes=(note,), binlogs={"binlog": binlog}))


def refused() -> CheckedStatement:
    """A statement that writes inside and outside of a scope."""
    sql = "DROP TABLE test.foo, test.v"
    error = Refusal(
        errno=1,
        sqlstate="HY000",
        symbol="BINLANE_PARTIAL_WRITE",
        message=PARTIAL_WRITE,
        binlogs=("binny",),
        why=(
            Why(
                what="test.bar",
                through=("view test.v",),
                offset=sql.index("test.v"),
                length=6,
                hint="ALTER BINLOG 'binny' ADD LOG(`test`.`bar`)",
            ),
        ),
    )
    binlogs = {"binny": BinlogResult(), "all": BinlogResult()}
    return checked(f"{sql};", StatementResult(error=error, binlogs=binlogs))


def unanalysed() -> CheckedStatement:
    """A statement that was not understood."""
    problem = Unanalysed(reason="expected a table at '('", offset=12, length=1)
    return checked("INSERT INTO (a);", StatementResult(unanalysed=problem))


def in_rows() -> CheckedStatement:
    """`uuid()` in a mixed binlog."""
    binlog = BinlogResult(logged_as=LoggingFormat.ROW, unsafe=("ER_BINLOG_UNSAFE_SYSTEM_FUNCTION",))
    return checked("INSERT INTO t VALUES (uuid());", StatementResult(binlogs={"b": binlog}))
