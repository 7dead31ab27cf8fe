"""Scripts run through `check`, and their events in a short form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from binlane.statements.check.checker import Checker
from binlane.statements.check.findings import CheckedStatement
from binlane.statements.policy.server import Server
from binlane.statements.session.log_events import LoggedEvent
from binlane.statements.session.report import StatementResult

SCHEMA: Final = """
CREATE DATABASE test; CREATE DATABASE baz; CREATE DATABASE views;
USE test;
CREATE TABLE foo (f INT PRIMARY KEY, x VARCHAR(100)) ENGINE=InnoDB;
CREATE TABLE bar (b INT PRIMARY KEY, x VARCHAR(100)) ENGINE=InnoDB;
CREATE TABLE nfoo (f INT, x VARCHAR(100)) ENGINE=MyISAM;
CREATE TABLE nbar (b INT, x VARCHAR(100)) ENGINE=MyISAM;
CREATE TABLE baz.bar (b INT PRIMARY KEY) ENGINE=InnoDB;
"""


def check(
    script: str,
    *,
    binlogs: str | None = None,
    schema: str = SCHEMA,
    server: str = "mariadb",
) -> list[CheckedStatement]:
    """Check a script; each statement with its result."""
    return list(Checker(Server.parse(server), schema, binlogs).check(script))


def results(
    script: str,
    *,
    binlogs: str | None = None,
    schema: str = SCHEMA,
    server: str = "mariadb",
) -> list[StatementResult]:
    """The results of a script's statements."""
    checked = check(script, binlogs=binlogs, schema=schema, server=server)
    return [one.result for one in checked]


def short(events: Iterable[LoggedEvent]) -> list[str]:
    """Events in a few words: `BEGIN`, `insert …`, `map test.foo`, `rows`, `XID`, `COMMIT`."""
    return [text for event in events if (text := _short(event))]


def _short(event: LoggedEvent) -> str:
    kind, info = event
    match kind:
        case "Gtid":
            return "BEGIN" if info.startswith("BEGIN") else ""
        case "Annotate_rows":
            return ""
        case "Query":
            text = info.partition("; ")[2] if info.startswith("use `") else info
            return text.removesuffix(" /* xid=# */")
        case "Xid":
            return "XID"
        case "Table_map":
            return "map " + info[info.index("(") + 1 : info.index(")")]
        case _ if "_rows" in kind:
            return "rows"
        case _:
            return f"{kind} {info}"


def log(script: str, *, server: str = "mariadb", binlog: str = "binlog", **more: str) -> list[str]:
    """All events that a script appends to one binlog, in short form."""
    found = results(script, server=server, **more)
    return [
        text for one in found if binlog in one.binlogs for text in short(one.binlogs[binlog].events)
    ]
