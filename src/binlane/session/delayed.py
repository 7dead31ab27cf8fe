"""MariaDB's INSERT DELAYED and REPLACE DELAYED.

Another thread inserts the rows, in transactions and with a binlog_format of its own, the server's.
Where that is STATEMENT, and where other tables take part, it is an ordinary INSERT.

Source: MariaDB 10.11 sql/sql_insert.cc, `upgrade_lock_type` and `Delayed_insert::handle_inserts`.
"""

from __future__ import annotations

from typing import Final

from binlane.policy.access import ResolvedStatement
from binlane.session import log_events
from binlane.session.binlog import Binlog
from binlane.session.programs.host import Trace
from binlane.session.report import LoggedEvent
from binlane.session.state import Command, SessionState
from binlane.sql.logging_mode import LoggingFormat, LoggingMode
from binlane.sql.tokens import tokenise

_WORD: Final = "DELAYED"


def is_delayed(state: SessionState, name: str, resolved: ResolvedStatement) -> bool:
    """Whether another thread inserts a statement's rows, as a binlog sees it."""
    return resolved.is_delayed and state.delayed_mode(name) is not LoggingMode.STATEMENT


def log_delayed(state: SessionState, binlog: Binlog, trace: Trace) -> bool:
    """Log the rows that another thread inserts, in a group of their own."""
    events: list[LoggedEvent] = []
    for run in trace.runs:
        rows = log_events.ended(log_events.rows(run.kind, state.server))
        events += [log_events.table_map(run.table), rows]
    if events:
        binlog.written.extend(log_events.group(events, log_events.COMMIT, state.server))
        state.run.log(binlog.name, LoggingFormat.ROW)
    return bool(events)


def text_without_delay(state: SessionState, command: Command) -> str:
    """A statement as it is logged if its rows are not delayed after all."""
    facts = command.facts
    if not (facts.is_delayed and state.server.is_mariadb) or command.is_in_body:
        return command.text
    if facts.has_query or facts.is_on_duplicate:
        return command.text
    for token in tokenise(command.text):
        if token.word == _WORD:
            return command.text[: token.offset] + command.text[token.end :]
    return command.text
