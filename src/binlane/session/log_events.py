"""Events as SHOW BINLOG EVENTS of either server prints them, numbers that cannot be known as `#`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from binlane.names import TableName, quote
from binlane.policy.server import Server
from binlane.session.report import LoggedEvent

_ROWS_EVENTS: Final = {"insert": "Write_rows", "update": "Update_rows", "delete": "Delete_rows"}
_STATEMENT_END: Final = "STMT_END_F"
_DATABASE: Final = re.compile(r"use `(?:[^`]|``)*`; ")

GROUP_START: Final = LoggedEvent("Gtid", "BEGIN GTID #")
STANDALONE: Final = LoggedEvent("Gtid", "GTID #")
BEGIN: Final = LoggedEvent("Query", "BEGIN")
COMMIT: Final = LoggedEvent("Query", "COMMIT")
ROLLBACK: Final = LoggedEvent("Query", "ROLLBACK")
XID: Final = LoggedEvent("Xid", "COMMIT /* xid=# */")
LAST_INSERT_ID: Final = LoggedEvent("Intvar", "LAST_INSERT_ID=#")
INSERT_ID: Final = LoggedEvent("Intvar", "INSERT_ID=#")
RANDOM_SEEDS: Final = LoggedEvent("RAND", "rand_seed1=#,rand_seed2=#")
XID_SUFFIX: Final = " /* xid=# */"
BEGIN_LOAD: Final = LoggedEvent("Begin_load_query", ";file_id=#;block_len=#")


def query(text: str, database: str = "") -> LoggedEvent:
    """A statement, with the default database that its text needs; none if that is empty."""
    return LoggedEvent("Query", f"use {quote(database)}; {text}" if database else text)


def with_options(events: Sequence[LoggedEvent], options: str) -> Sequence[LoggedEvent]:
    """Events of a session whose options SHOW BINLOG EVENTS shows before each statement."""
    if not options:
        return events
    return [
        event._replace(info=_with_options(event.info, options)) if event.type == "Query" else event
        for event in events
    ]


def _with_options(text: str, options: str) -> str:
    database = _DATABASE.match(text)
    place = database.end() if database else 0
    return f"{text[:place]}{options}{text[place:]}"


def execute_load(text: str, database: str) -> LoggedEvent:
    """LOAD DATA as a statement, behind the block of its file."""
    prefix = f"use {quote(database)}; " if database else ""
    return LoggedEvent("Execute_load_query", f"{prefix}{text} ;file_id=#")


def user_variable(info: str) -> LoggedEvent:
    """The value of a user variable that the next statement reads."""
    return LoggedEvent("User var", info)


def annotation(text: str) -> LoggedEvent:
    """The text of a statement whose rows follow, in MariaDB."""
    return LoggedEvent("Annotate_rows", text)


def table_map(table: TableName) -> LoggedEvent:
    """The table that rows belong to."""
    return LoggedEvent("Table_map", f"table_id: # ({table.database}.{table.table})")


def rows(
    kind: str, server: Server, *, checks_foreign_keys: bool = True, checks_unique: bool = True
) -> LoggedEvent:
    """Rows of one kind, other rows following: `insert`, `update` or `delete`."""
    name = _ROWS_EVENTS[kind] + ("_v1" if server.is_mariadb else "")
    if not server.has_server_foreign_keys:
        return LoggedEvent(name, "table_id: #")  # of all flags, older servers show the end's alone
    flags = [] if checks_foreign_keys else ["NO_FOREIGN_KEY_CHECKS_F"]
    flags += [] if checks_unique else ["RELAXED_UNIQUE_CHECKS_F"]
    return LoggedEvent(name, f"table_id: # flags: {' '.join([*flags, 'USE_SQL_FOREIGN_KEY_F'])}")


def ended(event: LoggedEvent) -> LoggedEvent:
    """A rows event as the last one of its statement."""
    head, separator, flags = event.info.partition(" flags: ")
    rest = f" {flags}" if separator else ""
    return event._replace(info=f"{head} flags: {_STATEMENT_END}{rest}")


def group(events: Sequence[LoggedEvent], end: LoggedEvent, server: Server) -> list[LoggedEvent]:
    """The content of caches between its opening and its end."""
    return [GROUP_START if server.is_mariadb else BEGIN, *events, end]


def standalone(events: Sequence[LoggedEvent], server: Server) -> list[LoggedEvent]:
    """A statement that is a group by itself, with the values that belong to it."""
    return [STANDALONE, *events] if server.is_mariadb else list(events)
