"""The end of a session's temporary tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from binlane.names import TableName, quote
from binlane.policy.engines import traits
from binlane.session import log_events
from binlane.session.state import SessionState


def drop_at_disconnect(state: SessionState) -> None:
    """Drop the session's temporary tables: logged where their creation was.

    They go in the reverse order in which they were made; neighbours of one database share an
    event, in MySQL only if both or neither are transactional.
    """
    tables = state.temporary_order[::-1]
    for binlog in state.each_logging().values():
        held = [name for name in tables if name in binlog.held_temporary]
        for database, names in _grouped(state, held):
            listed = ",".join(quote(name.table) for name in names)
            text = f"DROP /*!40005 TEMPORARY */ TABLE IF EXISTS {listed}"
            binlog.write_directly([log_events.query(text, database)])
    for binlog in state.binlogs.values():
        binlog.held_temporary.clear()
    state.temporary_order.clear()
    state.objects.drop_temporary_tables()


def _grouped(state: SessionState, tables: list[TableName]) -> Iterator[tuple[str, list[TableName]]]:
    for database, neighbours in groupby(tables, lambda name: name.database):
        names = list(neighbours)
        if state.server.is_mariadb:
            yield database, names
            continue
        for has_rollback in (True, False):
            chosen = [name for name in names if _has_rollback(state, name) is has_rollback]
            if chosen:
                yield database, chosen


def _has_rollback(state: SessionState, name: TableName) -> bool:
    table = state.objects.table(name)
    return table is not None and traits(table, state.server).has_rollback
