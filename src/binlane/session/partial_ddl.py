"""What MariaDB's DDL has done when it fails: it says so in the log, while MySQL's undoes it.

Source: MariaDB 10.11 sql/sql_view.cc `mysql_drop_view`, sql/sql_db.cc `mysql_rm_db_internal`.
"""

from __future__ import annotations

from typing import Final

from binlane.names import TableName, quote
from binlane.session import log_events
from binlane.session.report import LoggedEvent
from binlane.session.state import Command, SessionState, write_directly
from binlane.sql.effects import StatementKind
from binlane.sql.tokens import tokenise

_UNKNOWN_VIEW: Final = 4092
_IS_REFERRED_TO: Final = 1451
_NOT_ALL_REVOKED: Final = 1269
_SOME_ACCOUNTS: Final = frozenset((1396, _NOT_ALL_REVOKED))
_KEEPS_ACCOUNTS: Final = ("ALTER", "REVOKE")


def log_what_was_done(state: SessionState, command: Command, recorders: frozenset[str]) -> None:
    """Log what a statement did before its error, and do it."""
    if not state.server.is_mariadb:
        return
    effects = command.facts.effects
    error = command.outcome.error
    event = None
    if effects.kind is StatementKind.DROP_VIEW and error == _UNKNOWN_VIEW:
        event = _drop_views(state, command)
    elif effects.kind is StatementKind.DROP_DATABASE and error == _IS_REFERRED_TO:
        event = _drop_tables_of(state, effects.databases[0])
    elif effects.kind is StatementKind.ACCOUNT and error in _SOME_ACCOUNTS:
        event = _change_accounts(state, command)
    if event is not None:
        write_directly(state, [event], recorders)


def _change_accounts(state: SessionState, command: Command) -> LoggedEvent | None:
    """The accounts that are as they should be are changed; the whole text is logged."""
    before = state.objects.accounts
    state.objects.apply(command.sql, database=command.database)
    is_changed = state.objects.accounts != before
    if command.outcome.error == _NOT_ALL_REVOKED:
        is_changed = True
    elif command.facts.verb.startswith(_KEEPS_ACCOUNTS):
        users = {account.partition("@")[0] for account in before}
        is_changed = any(token.value in users for token in tokenise(command.sql))
    return log_events.query(command.text, command.database) if is_changed else None


def _drop_views(state: SessionState, command: Command) -> LoggedEvent | None:
    """Those that exist are dropped; the whole text is logged."""
    names = [name for name in command.facts.effects.objects if state.objects.view(name) is not None]
    for name in names:
        state.objects.apply(f"DROP VIEW {name}", database=command.database)
    return log_events.query(command.text, command.database) if names else None


def _drop_tables_of(state: SessionState, database: str) -> LoggedEvent | None:
    """The tables and views that no table of another database refers to."""
    objects = state.objects
    dropped: list[TableName] = []
    for name in objects.names_in(database):
        if all(key.table in (*dropped, name) for key in objects.children(name)):
            dropped.append(name)
    for name in dropped:
        what = "TABLE" if objects.view(name) is None else "VIEW"
        objects.apply(f"DROP {what} {name}", database=database)
    if not dropped:
        return None
    listed = ",".join(quote(name.table) for name in dropped)
    return log_events.query(f"DROP TABLE IF EXISTS {listed}", database)
