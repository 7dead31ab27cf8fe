"""An application's scripts, checked without a server and run on one, statement by statement."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.statements.check.checker import Checker
from binlane.statements.check.findings import CheckedStatement
from binlane.statements.policy.server import Server
from tests.differential.applications.scripts import Application
from tests.differential.logging.servers import LoggingServer

DATABASE: Final = "application"
SYNTAX_ERROR: Final = 1064
_UNSAFE: Final = 1592
_SCHEMA: Final = f"""
    SET GLOBAL binlog_format = STATEMENT; SET GLOBAL log_bin_trust_function_creators = 1;
    CREATE DATABASE {DATABASE}; USE {DATABASE};
"""
_OWN_DATABASES: Final = frozenset(("information_schema", "mysql", "performance_schema", "sys"))
_TAKEN: Final = frozenset(("done", "unsafe"))
_LOST: Final = frozenset((2006, 2013))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A statement of which a check and a server say different things.

    Attributes:
        script: Where it stands.
        line: The same.
        sql: It.
        ours: What the check says.
        theirs: What the server answered.
    """

    script: str
    line: int
    sql: str
    ours: str
    theirs: str

    @property
    def is_grave(self) -> bool:
        """The server takes a statement which the check could not read, or the other way round."""
        if self.ours.startswith("unanalysed"):
            return self.theirs in _TAKEN
        return (self.ours == f"{SYNTAX_ERROR}") != (self.theirs == f"{SYNTAX_ERROR}")

    def __str__(self) -> str:
        sql = re.sub(r"\s+", " ", self.sql)[:300]
        return f"{self.script}:{self.line}: check: {self.ours}; server: {self.theirs}: {sql}"


@dataclass(slots=True)
class Comparison:
    """What became of an application's statements.

    Attributes:
        statements: How many there are.
        understood: Of how many the check says what they do.
        refused: How many it says the server refuses, whatever its data.
        unsafe: How many are unsafe to log as their text.
        check_s: What checking took.
        differences: From what a server did.
        kinds: How often each pair of differing answers occurs.
    """

    statements: int = 0
    understood: int = 0
    refused: int = 0
    unsafe: int = 0
    check_s: float = 0.0
    differences: list[Difference] = field(default_factory=list)

    @property
    def kinds(self) -> Counter[tuple[str, str]]:
        """How often each pair of differing answers occurs."""
        return Counter((one.ours, one.theirs) for one in self.differences)


def compare(application: Application, server: LoggingServer, rules: Server) -> Comparison:
    """Check and run all scripts, each in a session of its own, one after the other."""
    scripts = application.scripts()
    result = Comparison()
    checked = _checked(application, scripts, rules, result)
    _empty(server)
    session = server.connect(DATABASE)
    for one in checked:
        statement = one.statement
        if statement.is_disconnect:
            session.close()
            session = server.connect(DATABASE)
        theirs = "client" if statement.problem else _outcome(session, statement.sql)
        if theirs == "lost":
            session = server.connect(DATABASE)
        ours, others = _told(one)
        result.statements += 1
        result.understood += one.result.unanalysed is None
        result.refused += one.result.error is not None and not one.result.error.on_some_ways
        result.unsafe += bool(one.result.notes)
        is_foreseen = theirs == ours or theirs in others
        if not is_foreseen and not (statement.follows and one.result.error):
            name = statement.script
            result.differences.append(
                Difference(
                    script=scripts[int(name)][0] if name.isdigit() else name,
                    line=statement.line,
                    sql=statement.sql,
                    ours=ours,
                    theirs=theirs,
                )
            )
    session.close()
    return result


def _checked(
    application: Application, scripts: list[tuple[str, bytes]], rules: Server, result: Comparison
) -> list[CheckedStatement]:
    """The statements of all scripts, as one script of several sessions."""
    checker = Checker(rules, _SCHEMA)
    assert not checker.problems

    def source(path: str) -> bytes:
        return scripts[int(path)][1] if path.isdigit() else application.read(path)

    # Each begins in a session and with a delimiter of its own.
    text = "".join(f"DELIMITER ;\n-- @disconnect\nsource {n}\n" for n in range(len(scripts)))
    begun = perf_counter()
    checked = list(checker.check(text.encode(), source=source))
    result.check_s = perf_counter() - begun
    return checked


def _told(checked: CheckedStatement) -> tuple[str, frozenset[str]]:
    """What a check says, and what else it foresees where data decides which way is gone."""
    result = checked.result
    taken = "unsafe" if result.notes else "done"
    if result.unanalysed is not None:
        return f"unanalysed: {result.unanalysed.reason}", frozenset()
    if result.error is None:
        others = _TAKEN if any(note.on_some_ways for note in result.notes) else ()
        return taken, frozenset(others)
    errors = (result.error, *result.error.others)
    if not any(error.on_some_ways for error in errors):
        return str(result.error.errno), frozenset()
    return f"{result.error.errno} on some ways", _TAKEN | {str(error.errno) for error in errors}


def _outcome(session: Connection[Cursor], sql: str) -> str:
    """What a server answers, in the same words."""
    try:
        with session.cursor() as cursor:
            cursor.execute(sql.encode("utf-8", "surrogateescape"))  # type: ignore[call-overload]  # sent as it is
            result = cursor._result  # type: ignore[attr-defined]  # the only way to it
            warned = result is not None and result.warning_count
            cursor.fetchall()
            while cursor.nextset():
                pass
            if warned:
                cursor.execute("SHOW WARNINGS")
                if any(row[1] == _UNSAFE for row in cursor.fetchall()):
                    return "unsafe"
    except pymysql.MySQLError as error:
        return "lost" if error.args[0] in _LOST else str(error.args[0])
    return "done"


def _empty(server: LoggingServer) -> None:
    """Remove what an earlier application left."""
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute("SET foreign_key_checks = 0")
        cursor.execute("SHOW DATABASES")
        for (name,) in cursor.fetchall():
            if name not in _OWN_DATABASES:
                cursor.execute(f"DROP DATABASE `{name}`")
        cursor.execute(
            "SELECT user, host FROM mysql.user WHERE user NOT LIKE 'm%' AND user <> 'root'"
        )
        for user, host in cursor.fetchall():
            with suppress(pymysql.MySQLError):  # MariaDB's PUBLIC is none
                cursor.execute(f"DROP USER '{user}'@'{host}'")
        cursor.execute(f"CREATE DATABASE {DATABASE}")
