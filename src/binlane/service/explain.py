"""EXPLAIN BINLOG: what a statement would do to each binlog, told of the source's own objects.

The source is asked, in the client's session, for the definitions of what the statement needs, one
after the other until nothing is missing; then the statement is run without it, as `check` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from binlane.check.findings import (
    SYNTAX_ERROR,
    CheckedStatement,
    Finding,
    Kind,
    findings,
    hints,
)
from binlane.check.script import ScriptStatement
from binlane.client.source_objects import TABLE, Objects, Source, SourceSession
from binlane.codec.packets.results import Cell, ColumnDefinition
from binlane.codec.types import Flavor
from binlane.errors import StatementError
from binlane.gateway.answers import RowsAnswer
from binlane.gateway.handler import SessionContext
from binlane.names import TableName, quote
from binlane.scope.definition import Definition
from binlane.session.report import BinlogResult, StatementResult
from binlane.session.session import Session
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.reading import read
from binlane.sql.tokens import SqlSyntaxError

COLUMNS: Final = (
    *("Binlog", "Logged_as", "Verdict"),
    ColumnDefinition.integer("Errno"),
    *("Reason", "Message", "Object", "Through", "Hint", "Events"),
)
_GAP: Final = r"(?:\s|\#[^\n]*\n|--[\s][^\n]*\n|/\*(?!M?!).*?\*/)"
_EXPLAIN: Final = re.compile(
    rf"{_GAP}*+(?:EXPLAIN|DESCRIBE|DESC){_GAP}++BINLOG\b", re.IGNORECASE | re.DOTALL
)
_BARE: Final = re.compile(r"\w+", re.ASCII)
_SYNTAX: Final = "EXPLAIN BINLOG statement"
# With definitions each binlog has a mode of its own.
_MODE: Final = "binlog_format"
_MISSING_TABLE: Final = re.compile(r"Table '(.+?)\.(.+)' doesn't exist\Z", re.DOTALL)
_MISSING_PARENT: Final = frozenset((1005, 1239, 1824))
"""Of foreign keys, whose parent the error names beside its text."""
_MISSING_ROUTINE: Final = re.compile(
    r"(FUNCTION|PROCEDURE) (.+?)\.(.+) does not exist\Z", re.DOTALL
)


def explained(statement: str) -> str | None:
    """The statement that an EXPLAIN BINLOG is about; None if it is no EXPLAIN BINLOG.

    Raises:
        SqlSyntaxError: If it is about nothing.
    """
    found = _EXPLAIN.match(statement)
    if found is None:
        return None
    rest = statement[found.end() :].strip()
    if not rest.rstrip("; \t\r\n"):
        raise SqlSyntaxError(statement, found.end(), "a statement", hint=_SYNTAX)
    return rest.rstrip().removesuffix(";").rstrip()


async def explain_binlog(
    session: SessionContext, statement: str, definitions: Sequence[Definition]
) -> RowsAnswer:
    """Tell what a statement would do.

    Args:
        session: The client's.
        statement: What is to be explained.
        definitions: All binlogs; without any, the source's own log is meant.

    Raises:
        StatementError: If it was not understood, or the source refuses to tell what it needs.
        PeerError: If the source goes away.
    """
    source = Source(session)
    circumstances = await source.circumstances()
    objects = Objects(source, SchemaCatalog(Flavor(circumstances.server.flavor)))
    for name, value in circumstances.configured.items():
        objects.catalog.apply(f"SET GLOBAL {name} = {_literal(value)}", database="")
    if circumstances.database:
        objects.apply("", f"CREATE DATABASE {quote(circumstances.database)}")
    dialect = _session(objects.catalog.copy(), circumstances, definitions).dialect
    facts = read(statement, database=circumstances.database, dialect=dialect)
    await objects.fetch_used(facts, circumstances.database)
    while True:
        own = _session(objects.catalog.copy(), circumstances, definitions)
        result = own.execute(statement)
        missing = _missing(result)
        # What the source does not have either is the statement's own error.
        if missing is None or not await objects.fetch(*missing):
            break
    error = result.error
    if error is not None and error.errno == SYNTAX_ERROR:
        raise StatementError(error.message, errno=error.errno, sqlstate=error.sqlstate)
    if result.unanalysed is not None:
        raise SqlSyntaxError(statement, result.unanalysed.offset, result.unanalysed.reason)
    return RowsAnswer(COLUMNS, list(_rows(statement, result)))


def _session(
    catalog: SchemaCatalog, circumstances: SourceSession, definitions: Sequence[Definition]
) -> Session:
    """A session with the client's variables."""
    session = Session(
        server=circumstances.server,
        objects=catalog,
        definitions=definitions or None,
        database=circumstances.database,
    )
    for name, value in circumstances.variables.items():
        if not (definitions and name == _MODE):
            session.execute(f"SET SESSION {name} = {_literal(value)}")
    if circumstances.is_in_transaction:
        session.execute("BEGIN")
    return session


def _missing(result: StatementResult) -> tuple[str, TableName] | None:
    """The object that a statement failed for."""
    error = result.error
    if error is None:
        return None
    if error.errno in _MISSING_PARENT and error.why:
        database, _, table = error.why[0].what.partition(".")
        return TABLE, TableName(database, table)
    if found := _MISSING_TABLE.match(error.message):
        return TABLE, TableName(found[1], found[2])
    if found := _MISSING_ROUTINE.match(error.message):
        return found[1], TableName(found[2], found[3])
    return None


def _rows(statement: str, result: StatementResult) -> Iterator[Sequence[Cell]]:
    """For each binlog, what becomes of the statement, and a row for each thing that is wrong."""
    whole = CheckedStatement(
        statement=ScriptStatement(number=1, line=1, column=1, sql=statement), result=result
    )
    found = [finding for finding in findings(whole) if finding.kind is not Kind.ALLOWED_UNSAFE]
    for name, binlog in result.binlogs.items():
        own = [finding for finding in found if not finding.binlogs or name in finding.binlogs]
        events = "\n".join(f"{event.type}: {event.info}" for event in binlog.events)
        if not own:
            yield _row(name, binlog, None, events or None)
        for finding in own:
            yield _row(name, binlog, finding, events or None)


def _row(
    name: str, binlog: BinlogResult, finding: Finding | None, events: str | None
) -> Sequence[Cell]:
    logged_as = "NONE" if binlog.logged_as is None else binlog.logged_as.name
    if finding is None:
        return name, logged_as, "SAFE", None, None, None, None, None, None, events
    verdict = "UNSAFE" if finding.kind is Kind.UNSAFE else "REFUSED"
    whys = finding.whys
    return (
        *(name, logged_as, verdict, finding.errno, finding.symbol, finding.message),
        "; ".join(dict.fromkeys(why.what for why in whys if why.what)) or None,
        "; ".join(dict.fromkeys(step for why in whys for step in why.through)) or None,
        "; ".join(hints(finding)) or None,
        events,
    )


def _literal(value: str) -> str:
    return value if _BARE.fullmatch(value) else "'" + value.replace("'", "''") + "'"
