"""An event group of the source and its plan → the group of one binlog.

A plan says of which statements the group's rows are, and what each of them is to a binlog: its text, its rows,
or nothing. Here texts take the places of rows. Whatever does not fit is told, and the group is routed as rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from binlane.binlogs.routing.cut_group import (
    CONTROL,
    Control,
    CutGroup,
    Mismatch,
    Piece,
    all_of,
    annotated,
    cut_group,
    is_mark,
    sections_of,
)
from binlane.binlogs.routing.generated import Chosen, chosen_ids
from binlane.binlogs.routing.query_events import statement_of, with_ddl_xid, with_statement
from binlane.errors import CodecError
from binlane.log.codec.body import Body
from binlane.log.codec.buffer import Reader
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.registry import body_type
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import GtidFlag, HeaderFlag
from binlane.log.codec.variables import IntvarEvent, IntvarKind
from binlane.log.grouping.event_group import EventGroup
from binlane.names import TableName
from binlane.statements.session.group_plan import EncodedEvent, GroupPlan, RowsPart, TextPart
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.logged_statements import logged_statement
from binlane.statements.sql.statement_kinds import (
    DDL_KINDS,
    TABLE_DROPPING_KINDS,
    TABLE_MAKING_KINDS,
    StatementKind,
)
from binlane.statements.sql.tables_info import encode_tables

_MAY_HAVE_STATEMENTS: Final = 1
_OF_THE_THREAD: Final = frozenset({"CONNECTION_ID"})
_STATEMENTS: Final = QueryEvent | ExecuteLoadQueryEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPart:
    """The form of one statement in a binlog.

    Attributes:
        rows: The statement's events in the source's group; empty where it has none there.
        changed: The tables that the row events change.
        text: The events of its text; empty where the statement is there as rows.
        is_on_temporary: True if the text uses temporary tables, or makes or drops some.
        reason: Cause of its being there as rows, although planned as a text.
    """

    rows: tuple[Event, ...] = ()
    changed: frozenset[TableName] = frozenset()
    text: tuple[Event, ...] = ()
    is_on_temporary: bool = False
    reason: str = ""

    @property
    def statement(self) -> QueryEvent | None:
        """The statement of the text; None where it is there as rows."""
        if not self.text:
            return None
        body = self.text[-1].body
        if isinstance(body, ExecuteLoadQueryEvent):
            return body.statement
        assert isinstance(body, QueryEvent), "a text ends with its statement"
        return body

    @property
    def uses_temporary_tables(self) -> bool:
        """True if the text means something in its session's connection only.

        That is so of other statements, too: servers flag each DELETE of several tables so.
        """
        if not self.text:
            return False
        if self.text[-1].header.flags & HeaderFlag.THREAD_SPECIFIC:
            return True
        # The source itself has logged DDL on tables that are not temporary.
        return not self.rows and self._facts().effects.kind in DDL_KINDS

    @property
    def may_use_others_alone(self) -> bool:
        """True if the text is of a session for another reason than temporary tables."""
        if self.is_on_temporary:
            return False
        facts = self._facts()
        is_delete = facts.effects.kind is StatementKind.DELETE and facts.is_multi_table
        return is_delete or any(use.upper_name in _OF_THE_THREAD for use in facts.functions)

    @property
    def drops_temporary_tables(self) -> bool:
        """True if the text is a DROP TEMPORARY TABLE, or SEQUENCE."""
        effects = self._facts().effects
        return effects.is_temporary and effects.kind in TABLE_DROPPING_KINDS

    @property
    def commits(self) -> bool:
        """True if the text commits the statements before it, so that servers log it alone."""
        if not self.text or (self.rows and not isinstance(self.rows[0].body, QueryEvent)):
            return False  # a change of rows, as all are but CREATE TABLE … SELECT
        effects = self._facts().effects
        is_filled = effects.kind is StatementKind.CREATE_TABLE_SELECT
        return effects.kind in DDL_KINDS and not (is_filled and effects.is_temporary)

    def _facts(self) -> StatementFacts:
        assert self.statement is not None, "it is a text"
        return logged_statement(self.statement).facts()

    @property
    def makes_temporary_table(self) -> bool:
        """True if the text is a CREATE TEMPORARY TABLE, or SEQUENCE."""
        if self.statement is None or not self.uses_temporary_tables:
            return False
        effects = self._facts().effects
        return effects.is_temporary and effects.kind in TABLE_MAKING_KINDS

    def as_rows(self, reason: str) -> PlannedPart:
        """Give the part as rows, without its text."""
        return replace(self, text=(), reason=reason)

    @property
    def events(self) -> tuple[Event, ...]:
        """The events that stand there: those of the text, else the rows."""
        return self.text or self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGroup:
    """The form of a group in a binlog, before its scope is looked at.

    Attributes:
        source: The group as the source logged it.
        head: The GTID event, and MySQL's BEGIN.
        parts: Parts of the group, one for each statement.
        end: Events that end the source's group.
        own_end: Events that end the group here, if they differ; empty for a statement that stands
            alone.
        mapped: All tables that the group has maps of.
        makes_tables: True if it holds a statement that makes a table, or is another one alone.
    """

    source: EventGroup
    head: tuple[Event, ...]
    parts: tuple[PlannedPart, ...]
    end: tuple[Event, ...]
    own_end: tuple[Event, ...] | None = None
    mapped: frozenset[TableName] = frozenset()
    makes_tables: bool = False

    @property
    def is_lone(self) -> bool:
        """True if the source's group is one statement, not rows."""
        return not self.end

    @property
    def has_text(self) -> bool:
        """True if a statement stands there as its text."""
        return any(part.text for part in self.parts)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why statements stand there as rows although planned as texts."""
        return tuple(part.reason for part in self.parts if part.reason)

    @property
    def group(self) -> EventGroup:
        """The group itself; without events where nothing stands between beginning and end."""
        middle = tuple(event for part in self.parts for event in part.events)
        if not middle:
            return replace(self.source, events=())
        texts = [part for part in self.parts if part.text]
        head, end = self.head, self.end
        if self.own_end is not None and len(texts) == len(self.parts):
            end = self.own_end
            head = head if end else (_standing_alone(head[0]),)
        if any(not part.rows and part.uses_temporary_tables for part in texts):
            head = (_not_transactional(head[0]), *head[1:])
        if texts:
            head = (_with_statements(head[0]), *head[1:])
        return replace(self.source, events=(*head, *middle, *end))


def planned(
    group: EventGroup, plan: GroupPlan, binlog: str, format_: Format
) -> PlannedGroup | Mismatch:
    """Make a group's form in a binlog that its plan names.

    Args:
        group: A complete group of the source.
        plan: The plan made for this group.
        binlog: Name of the binlog, a key of `plan.binlogs`.
        format_: Format of the FORMAT_DESCRIPTION before the group.

    Returns:
        The group, not looked at by any scope, or a mismatch if it goes as rows.
    """
    parts = plan.binlogs[binlog]
    cut = cut_group(group, format_)
    if isinstance(cut, Mismatch):
        return cut
    sections = sections_of(cut, plan.sections)
    if sections is None:
        return Mismatch("the group holds other rows than those of the statements that were run")
    frame = PlannedGroup(
        source=group,
        head=cut.head,
        parts=(),
        end=cut.end,
        mapped=all_of(piece.mapped for piece in cut.pieces),
        makes_tables=any(piece.makes_table for piece in cut.pieces),
    )
    if not parts:
        return frame
    if not _are_in_order(parts, len(sections)):
        return Mismatch("the plan is not one of the group's statements in their order")
    try:
        made = [_part(group, part, sections, format_) for part in parts]
        own_end = _own_end(group, plan, binlog, format_)
    except CodecError as error:
        return Mismatch(f"what was planned cannot stand there: {error}")
    if binlog not in plan.ends and cut.end and len(made) == 1 and made[0].commits:
        own_end = ()
    if not _undoes_alike(cut, sections, parts, made):
        return Mismatch("a savepoint is rolled back otherwise than planned")
    if frame.is_lone and not (len(made) == 1 and made[0].text):
        return Mismatch("a statement that stands alone is planned as several, or as rows")
    if own_end == () and not (len(made) == 1 and made[0].text):
        return Mismatch("several statements are planned to stand alone")
    return replace(frame, parts=tuple(made), own_end=own_end)


def _are_in_order(parts: Sequence[TextPart | RowsPart], count: int) -> bool:
    """True if each section comes once at most, and in the source's order."""
    used = [part.section for part in parts if part.section is not None]
    return all(0 <= one < count for one in used) and all(
        one < following for one, following in pairwise(used)
    )


def _part(
    group: EventGroup,
    part: TextPart | RowsPart,
    sections: Sequence[Sequence[Piece]],
    format_: Format,
) -> PlannedPart:
    """Make the part for one statement.

    Raises:
        CodecError: If an event of the plan is none, or its text is another one than the source's.
    """
    pieces = () if part.section is None else sections[part.section]
    rows = tuple(event for piece in pieces for event in piece.events)
    made = PlannedPart(rows=rows, changed=all_of(piece.changed for piece in pieces))
    if isinstance(part, RowsPart):
        return made
    if part.is_another(annotated(rows)):
        raise CodecError("the source ran another text than the session sent")
    timestamp = part.timestamp or (rows or group.events)[0].header.timestamp
    events = [_event(group, one, format_, timestamp=timestamp) for one in part.events]
    if not events or not isinstance(events[-1].body, _STATEMENTS):
        raise CodecError("a text has no statement at its end")
    statement = statement_of(events[-1].body)
    if statement is not None:
        events[-1] = with_statement(events[-1], with_ddl_xid(statement, group.events))
    if part.tables:
        events[-1] = _with_tables(events[-1], part.tables)
    made = replace(made, text=tuple(events), is_on_temporary=part.uses_temporary)
    return _with_ids(made, part, group, format_)


def _with_tables(event: Event, tables: Sequence[TableName]) -> Event:
    """A statement that tells which tables it concerns, as far as there is room for that."""
    statement = statement_of(event.body)
    assert statement is not None, "a text ends with its statement"
    told = encode_tables(tables, statement.database)
    return event if told is None else with_statement(event, statement.in_form(told))


def _with_ids(part: PlannedPart, text: TextPart, group: EventGroup, format_: Format) -> PlannedPart:
    """The text with the first AUTO_INCREMENT value that the server chose."""
    places = [
        number
        for number, event in enumerate(part.text)
        if isinstance(event.body, IntvarEvent) and event.body.kind == IntvarKind.INSERT_ID
    ]
    if not places:
        return part
    event = part.text[places[0]]
    assert isinstance(event.body, IntvarEvent), "it was looked for"
    if text.section is None and event.body.value:
        return part  # of a temporary table, whose values no other session takes
    if text.section is not None and not (part.changed or event.body.value):
        # A table was made, and no row for which a value was chosen.
        others = (each for at, each in enumerate(part.text) if at not in places)
        return replace(part, text=tuple(others))
    statement = part.statement
    assert statement is not None, "a text ends with its statement"
    found = (
        "it is not known where the AUTO_INCREMENT values stand"
        if text.generated is None or text.section is None
        else chosen_ids(
            part.rows,
            text.generated,
            Chosen(first=event.body.value, status_vars=statement.status_vars),
            file=group.file,
            format_=format_,
        )
    )
    if isinstance(found, str):
        return part.as_rows(found)
    # Before LOAD DATA it stands twice: once before the file's blocks.
    filled = replace(event, body=replace(event.body, value=found))
    told = (filled if at in places else each for at, each in enumerate(part.text))
    return replace(part, text=tuple(told))


def _own_end(
    group: EventGroup, plan: GroupPlan, binlog: str, format_: Format
) -> tuple[Event, ...] | None:
    """The end that a plan gives a group; None for the source's.

    Raises:
        CodecError: If that is no event.
    """
    if binlog not in plan.ends:
        return None
    end = plan.ends[binlog]
    if end is None:
        return ()
    timestamp = group.events[-1].header.timestamp
    return tuple(_event(group, one, format_, timestamp=timestamp) for one in end.events)


def _event(group: EventGroup, encoded: EncodedEvent, format_: Format, *, timestamp: int) -> Event:
    """An event of a plan, as one of the group.

    Raises:
        CodecError: If the body is not what its type says.
    """
    first = group.events[0]
    header = EventHeader(
        timestamp=timestamp,
        type_code=encoded.type_code,
        server_id=first.header.server_id,
        length=HEADER_LENGTH + len(encoded.body) + format_.checksum_length,
        next_position=0,
        flags=encoded.flags,
    )
    return Event(header, _body(encoded, format_), first.position)


def _body(encoded: EncodedEvent, format_: Format) -> Body:
    reader = Reader(encoded.body)
    body = body_type(encoded.type_code).decode(reader, format_)
    reader.finish()
    return body


def _undoes_alike(
    cut: CutGroup,
    sections: Sequence[Sequence[Piece]],
    parts: Sequence[TextPart | RowsPart],
    made: Sequence[PlannedPart],
) -> bool:
    """True if the statements that a binlog has are rolled back there if they are at the source."""
    if not any(isinstance(one, Control) for one in cut.items) and not _may_undo(made):
        return True
    owner = {id(piece): number for number, section in enumerate(sections) for piece in section}
    at_source = _undone(
        one if isinstance(one, Control) else owner.get(id(one))
        for one in cut.items
        if not is_mark(one)
    )
    here: list[Control | int | None] = []
    for part, planned_part in zip(parts, made, strict=True):
        control = _control(planned_part)
        here.append(part.section if control is None else control)
    used = {part.section for part in parts if part.section is not None}
    return _undone(here) == at_source & used


def _may_undo(parts: Iterable[PlannedPart]) -> bool:
    return any(part.text and not part.rows and _control(part) is not None for part in parts)


def _control(part: PlannedPart) -> Control | None:
    """Give the statement on savepoints that a text is; None if it is another one."""
    if part.rows or part.statement is None:
        return None
    facts = logged_statement(part.statement).facts()
    kind = facts.effects.kind
    return Control(kind, facts.name.lower()) if kind in CONTROL else None


def _undone(items: Iterable[Control | int | None]) -> set[int]:
    """Give those of some numbered statements that the items between them roll back."""
    alive: list[int] = []
    savepoints: dict[str, int] = {}
    undone: set[int] = set()
    for item in items:
        if item is None:
            continue
        if not isinstance(item, Control):
            alive.append(item)
        elif item.kind is StatementKind.SAVEPOINT:
            savepoints.pop(item.name, None)
            savepoints[item.name] = len(alive)
        elif item.name in savepoints:
            count = savepoints[item.name]
            names = list(savepoints)
            later = names[names.index(item.name) + 1 :]
            if item.kind is StatementKind.ROLLBACK_TO:
                undone.update(alive[count:])
                del alive[count:]
            else:
                later.append(item.name)
            for name in later:
                del savepoints[name]
    return undone


# GTID events ---------------------------------------------------------------------------------------


def _standing_alone(first: Event) -> Event:
    """A GTID event behind which one statement follows, which makes or drops a table."""
    body = first.body
    if not isinstance(body, GtidEvent):
        return first
    flags = (body.flags | GtidFlag.STANDALONE | GtidFlag.DDL) & ~GtidFlag.TRANSACTIONAL
    return replace(first, body=replace(body, flags=flags))


def _not_transactional(first: Event) -> Event:
    """A GTID event of a group with changes, to temporary tables, that cannot all be rolled back."""
    body = first.body
    if not isinstance(body, GtidEvent) or not body.flags & GtidFlag.TRANSACTIONAL:
        return first
    return replace(first, body=replace(body, flags=body.flags & ~GtidFlag.TRANSACTIONAL))


def _with_statements(first: Event) -> Event:
    """MySQL's GTID event of a group that is not of rows alone, before which replicas lock more."""
    body = first.body
    if not isinstance(body, MysqlGtidEvent):
        return first
    return replace(first, body=replace(body, flags=body.flags | _MAY_HAVE_STATEMENTS))
