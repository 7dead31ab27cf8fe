"""One event group and one definition → the part of it that this binlog holds.

Seed 000, "How Scoping Works": what counts is what a change touches, never the default database. A
binlog gets all of a group's in-scope effect or none of it (invariant 4), and no byte of an outside
object (invariant 6): not in rows, table maps, annotate text, default databases or DDL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Final

from binlane.codec.control import IncidentEvent
from binlane.codec.event import Event
from binlane.codec.query import AnnotateRowsEvent, QueryEvent
from binlane.codec.rows import RowsEvent, TableMapEvent
from binlane.codec.status_vars import query_text, sql_mode
from binlane.codec.transaction import GtidEvent
from binlane.codec.types import EventType, GtidFlag
from binlane.grouping.event_group import EventGroup
from binlane.routing.routed_group import Omission, OmissionKind, RoutedGroup, Routing
from binlane.routing.rows import select_rows, table_name
from binlane.routing.statements import (
    Incident,
    Keep,
    KeepWithRows,
    LeaveOut,
    Rewrite,
    judge,
)
from binlane.scope.definition import Definition
from binlane.sql.analysis import analyse
from binlane.sql.effects import StatementEffects, StatementKind

LOST_EVENTS: Final = 1
_INCIDENT_MESSAGE_MAX: Final = 255
# Longer annotate text is left out: reading it costs more than the text is worth (1 s a megabyte).
_ANNOTATE_READ_MAX: Final = 64 << 10
# What comments name, the analysis does not tell.
_COMMENT_SIGNS: Final = (b"/*", b"--", b"#")
_ANSI_QUOTES: Final = 1 << 2
_NO_BACKSLASH_ESCAPES: Final = 1 << 20
# They stand before the event that they are the context of.
_CONTEXT: Final = frozenset({EventType.INTVAR, EventType.RAND, EventType.USER_VAR})
_END: Final = frozenset({EventType.XID, EventType.XA_PREPARE_LOG})


def route(group: EventGroup, definition: Definition) -> Routing:
    """Select what one binlog gets of an event group.

    Args:
        group: A complete group with a GTID, or an INCIDENT of the source.
        definition: Of the binlog.

    Raises:
        CodecError: If a rows event has no TABLE_MAP.
    """
    if group.mariadb_gtid is None or definition.scope.is_unscoped:
        return Routing(group=RoutedGroup(gtid=group.mariadb_gtid, events=group.events))
    return _Selection(group, definition).routing()


class _IncidentError(Exception):
    """Inside this module: the group cannot be expressed within the scope."""


class _Selection:
    """The in-scope part of one group while it is being put together."""

    def __init__(self, group: EventGroup, definition: Definition) -> None:
        self._group = group
        self._scope = definition.scope
        self._binlog = definition.name
        self._omissions: list[Omission] = []
        self._has_effect = False

    def routing(self) -> Routing:
        gtid_event, *rest = self._group.events
        try:
            kept = [gtid_event, *self._select(rest)]
        except _IncidentError as incident:
            return self._incident(gtid_event, str(incident))
        group = (
            RoutedGroup(gtid=self._group.mariadb_gtid, events=tuple(kept))
            if self._has_effect
            else None
        )
        return Routing(group=group, omissions=tuple(self._omissions))

    def _select(self, events: Sequence[Event]) -> Iterator[Event]:
        context: list[Event] = []
        statement: list[Event] = []
        for event in events:
            body, type_code = event.body, event.header.type_code
            if isinstance(body, AnnotateRowsEvent | TableMapEvent | RowsEvent):
                statement.append(event)
                if isinstance(body, RowsEvent) and body.ends_statement:
                    yield from self._select_rows(statement)
                    statement = []
            elif type_code in _CONTEXT:
                context.append(event)
            elif isinstance(body, QueryEvent):
                yield from self._select_query(event, body, context)
                context = []
            elif type_code in _END:
                # An XA transaction is prepared everywhere, so that its XA COMMIT finds it.
                self._has_effect |= type_code == EventType.XA_PREPARE_LOG
                yield event
            else:
                raise _IncidentError(
                    f"event type {event.header.type_code} cannot be told to be in scope or not"
                )
        if any(isinstance(event.body, RowsEvent) for event in statement):
            raise _IncidentError("rows of a statement that does not end")

    def _select_rows(self, statement: list[Event]) -> tuple[Event, ...]:
        kept = select_rows(statement, self._scope, file=self._group.file)
        if not kept:
            return ()
        self._has_effect = True
        tables = {table_name(e.body).table for e in kept if isinstance(e.body, TableMapEvent)}
        return tuple(event for event in kept if self._may_stay(event, tables))

    def _may_stay(self, event: Event, tables: set[str]) -> bool:
        """Whether an event of an in-scope statement may stay: annotate text must be checked."""
        if not isinstance(event.body, AnnotateRowsEvent):
            return True
        query = event.body.query
        text = query.decode("utf-8", "surrogateescape")
        is_readable = len(query) <= _ANNOTATE_READ_MAX and not any(
            sign in query for sign in _COMMENT_SIGNS
        )
        # The session's sql_mode is not known here: where it matters, both readings must be clean.
        both, one = (False, True), (False,)
        readings = product(both if '"' in text else one, both if "\\" in text else one)
        if is_readable and all(
            self._is_clean(text, tables, ansi_quotes=ansi, no_backslash_escapes=no_backslash)
            for ansi, no_backslash in readings
        ):
            return True
        self._omit(OmissionKind.ANNOTATE, "its text may name objects outside of the scope")
        return False

    def _is_clean(
        self, text: str, tables: set[str], *, ansi_quotes: bool, no_backslash_escapes: bool
    ) -> bool:
        """Whether annotate text names only in-scope tables, or, without a database, these."""
        effects = _annotate_effects(text, ansi_quotes, no_backslash_escapes)
        named = (*effects.writes, *effects.reads)
        unqualified = [table.table for table in named if not table.database]
        qualified = [table for table in named if table.database]
        return (
            effects.stopped_at is None
            and effects.kind is not StatementKind.UNKNOWN
            and not effects.calls
            and all(name in tables for name in unqualified)
            and all(map(self._scope.includes, qualified))
        )

    def _select_query(
        self, event: Event, body: QueryEvent, context: list[Event]
    ) -> Iterator[Event]:
        effects = analyse_query(body)
        verdict = judge(effects, self._scope)
        if isinstance(verdict, Incident):
            raise _IncidentError(verdict.reason)
        if isinstance(verdict, LeaveOut):
            self._omit(verdict.omission.kind, verdict.omission.reason)
        elif isinstance(verdict, KeepWithRows):
            yield self._with_database(event, body, effects)
        elif isinstance(verdict, Keep):
            self._has_effect = True
            yield from context
            yield self._with_database(event, body, effects)
        elif isinstance(verdict, Rewrite):
            self._has_effect = True
            rewritten = replace(body, query=verdict.statement.encode("utf-8", "surrogateescape"))
            yield self._with_database(event, rewritten, analyse_query(rewritten))

    def _with_database(self, event: Event, body: QueryEvent, effects: StatementEffects) -> Event:
        """The event with a default database that is in scope, or with none."""
        database = body.database.decode("utf-8", "surrogateescape")
        inside = [t.database for t in effects.writes if self._scope.includes(t)]
        if database and not self._scope.includes_database(database) and database not in inside:
            database = inside[0] if inside else ""
        data = database.encode("utf-8", "surrogateescape")
        return replace(event, body=replace(body, database=data))

    def _omit(self, kind: OmissionKind, reason: str) -> None:
        self._omissions.append(Omission(kind=kind, reason=reason))

    def _incident(self, gtid_event: Event, reason: str) -> Routing:
        # SHOW SLAVE STATUS cuts it after some 70 characters: what the operator needs comes first.
        message = (
            f"{self._group.mariadb_gtid}: {reason}; binlog {self._binlog}; "
            "rebuild the replica from the source, or repair it and skip this GTID"
        )
        assert isinstance(gtid_event.body, GtidEvent), "groups with a GTID begin with its event"
        gtid_body = GtidEvent(
            sequence=gtid_event.body.sequence,
            domain_id=gtid_event.body.domain_id,
            flags=GtidFlag.STANDALONE,
            flags_extra=0,
            padding=bytes(5),
        )
        header = replace(gtid_event.header, type_code=EventType.INCIDENT, flags=0)
        incident = Event(
            header,
            IncidentEvent(number=LOST_EVENTS, message=message.encode()[:_INCIDENT_MESSAGE_MAX]),
        )
        events = (replace(gtid_event, body=gtid_body), incident)
        return Routing(
            group=RoutedGroup(gtid=self._group.mariadb_gtid, events=events),
            omissions=tuple(self._omissions),
            incident=reason,
        )


# One group is routed into every binlog in turn: what its text means is the same for all of them.
@lru_cache(maxsize=256)
def _annotate_effects(text: str, ansi_quotes: bool, no_backslash_escapes: bool) -> StatementEffects:  # noqa: FBT001  # lru_cache takes positions
    return analyse(
        text, database="", ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes
    )


def analyse_query(body: QueryEvent) -> StatementEffects:
    """The effects of a Query event's statement, read as its session wrote it."""
    mode = sql_mode(body) or 0
    return analyse(
        query_text(body),
        database=body.database.decode("utf-8", "surrogateescape"),
        ansi_quotes=bool(mode & _ANSI_QUOTES),
        no_backslash_escapes=bool(mode & _NO_BACKSLASH_ESCAPES),
    )
