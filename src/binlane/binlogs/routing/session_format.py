"""Changes that a session had logged as statements, in a log that otherwise holds rows.

Any session may set its `binlog_format`. The effects of triggers, functions and cascades in a
statement are then in no text, so such a statement is told of in every binlog, whatever it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.binlogs.routing.routed_group import Omission, OmissionKind
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.errors import CodecError
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.inner import expanded
from binlane.log.grouping.raw import RawRun
from binlane.log.kernels import layout
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.logged_statements import logged_statement
from binlane.statements.sql.statement_kinds import WRITING_KINDS, StatementKind

LOGGED_AS_STATEMENT: Final = Omission(
    kind=OmissionKind.STATEMENT,
    reason=(
        "a session logged a change as a statement (binlog_format); what triggers and functions "
        "made of it is not in the log"
    ),
)
_KINDS: Final = WRITING_KINDS | {
    *(StatementKind.SELECT, StatementKind.DO, StatementKind.CALL, StatementKind.COMPOUND),
    StatementKind.CREATE_TABLE_SELECT,
}
_CONTEXT: Final = (EventType.INTVAR, EventType.RAND, EventType.USER_VAR)
_COMPRESSED: Final = int(EventType.QUERY_COMPRESSED)
_CERTAIN: Final = frozenset({*_CONTEXT, EventType.EXECUTE_LOAD_QUERY})
_MAY_CHANGE: Final = re.compile(
    rb"[\s(]*+(?:INSERT|REPLACE|UPDATE|DELETE|LOAD|SELECT|WITH|TABLE|VALUES|DO|CALL|BEGIN\s+NOT|IF"
    rb"|CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+)?TABLE|SET\s+STATEMENT|/|#|--)",
    re.IGNORECASE,
)
# Offsets of the parts of a QUERY's fixed part in the event.
_HEADER: Final = 19
_DATABASE_LENGTH: Final = _HEADER + 8
_STATUS_LENGTH: Final = _HEADER + 11
_TEXT: Final = _HEADER + 14
_QUERY_LENGTH: Final = _HEADER + 13
_EXTENDED_TEXT: Final = _HEADER + 17
_BRACKETS: Final = {5: ord("B"), 6: ord("C"), 8: ord("R")}


def is_logged_as_statement(facts: StatementFacts) -> bool:
    """True if a log of rows would not hold a Query event's statement as such."""
    effects = facts.effects
    if effects.kind in _KINDS:
        return True
    return effects.is_temporary and effects.kind.value.startswith("create table")


def may_be_change(text: bytes) -> bool:
    """True if the text of a Query event may be a change that was logged as a statement."""
    return _MAY_CHANGE.match(text) is not None


def has_statement(events: Iterable[Event], format_: Format) -> bool:
    """True if an event group holds a change that was logged as a statement.

    Args:
        events: Events of the event group.
        format_: Format of the FORMAT_DESCRIPTION before them.
    """
    return any(_is_statement(event, format_) for event in events)


def _is_statement(event: Event, format_: Format) -> bool:
    body = event.body
    if isinstance(body, TransactionPayloadEvent):
        try:
            return has_statement(tuple(expanded(event, format_))[1:], format_)
        except CodecError:
            return False  # whoever reads it says so
    if isinstance(body, ExecuteLoadQueryEvent) or event.header.type_code in _CONTEXT:
        return True
    if not isinstance(body, QueryEvent) or not _MAY_CHANGE.match(body.query):
        return False
    return is_logged_as_statement(logged_statement(body).facts())


def odd_queries(run: RawRun, known: npt.NDArray[np.bool_] | None = None) -> list[tuple[int, bytes]]:
    """The numbers and texts of the statements of a run that are no BEGIN, COMMIT or ROLLBACK.

    Args:
        run: A run of event groups.
        known: True for each event of the run that is left out, too.
    """
    types, offsets, ends = (
        run.events[row] for row in (layout.EVENT_TYPE, layout.EVENT_OFFSET, layout.EVENT_END)
    )
    last = int(run.groups[layout.GROUP_END, run.count - 1])
    is_query = types[:last] == EventType.QUERY
    queries = np.flatnonzero(is_query if known is None else is_query & ~known[:last])
    at = offsets[queries].astype(np.int64)
    status = run.data[at + _STATUS_LENGTH].astype(np.int64)
    status += run.data[at + _STATUS_LENGTH + 1].astype(np.int64) << 8
    if run.format.has_tables_info:
        lengths = run.data[at + _QUERY_LENGTH].astype(np.int64)
        lengths += run.data[at + _QUERY_LENGTH + 1].astype(np.int64) << 8
        at += _EXTENDED_TEXT + status + run.data[at + _DATABASE_LENGTH]
    else:
        at += _TEXT + status + run.data[at + _DATABASE_LENGTH]
        lengths = ends[queries] - at
    is_odd = np.ones(len(queries), np.bool_)
    for length, letter in _BRACKETS.items():
        is_odd &= (lengths != length) | (run.data[at] != letter)
    found = [
        (int(event), run.data[start : start + length].tobytes())
        for event, start, length in zip(queries[is_odd], at[is_odd], lengths[is_odd], strict=True)
    ]
    is_packed = types[:last] == _COMPRESSED
    packed = np.flatnonzero(is_packed if known is None else is_packed & ~known[:last])
    return found + [(event, run.compressed_text(event)) for event in packed.tolist()]


def groups_of(run: RawRun, events: Iterable[int]) -> list[int]:
    """The groups that hold some events of a run, which are told by their numbers."""
    firsts = run.groups[layout.GROUP_FIRST, : run.count]
    groups = np.unique(np.searchsorted(firsts, sorted(events), side="right") - 1)
    return [int(number) for number in groups]


def statement_groups(groups: RunGroups, queries: Iterable[tuple[int, bytes]]) -> list[int]:
    """The groups of a run that hold a change which was logged as a statement.

    Args:
        groups: The groups of the run.
        queries: The run's `odd_queries`, each with its event's number.
    """
    run = groups.run
    last = int(run.groups[layout.GROUP_END, run.count - 1])
    types = run.events[layout.EVENT_TYPE, :last]
    told = set(groups_of(run, map(int, np.flatnonzero(np.isin(types, [*_CERTAIN])))))
    packed = np.flatnonzero(types == EventType.TRANSACTION_PAYLOAD).tolist()
    # A payload with a shape has rows alone.
    unread = groups_of(run, [event for event in packed if groups.payload(event) is None])
    told.update(number for number in unread if _holds_statement(run, number))
    changes = [event for event, text in queries if _MAY_CHANGE.match(text)]
    told.update(
        number
        for number in groups_of(run, changes)
        if number not in told and _holds_statement(run, number)
    )
    return sorted(told)


def _holds_statement(run: RawRun, number: int) -> bool:
    group = run.group(number)
    return has_statement(group.events, run.format)
