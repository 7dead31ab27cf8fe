"""The content of an event group of the source in each binlog, as the session that makes the group knows it.

The source logs rows. The session knows which statements those rows are of, and for each binlog whether a
statement is there as its text or as its rows. It first plans with the events as it appends them; a plan is
complete once all values are in them that only the source knows. Without a plan a group is routed as rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from binlane.log.codec.types import EventType
from binlane.log.grouping.sections import Section
from binlane.names import TableName
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import ScopeList
from binlane.statements.sql.servers import RowImage

_INSERT_ID_KIND: Final = b"\x02"

if TYPE_CHECKING:  # who routes groups reads no events of sessions
    from binlane.statements.session.log_events import Body


class EncodedEvent(NamedTuple):
    """An event of a statement's text, or an event that belongs before it.

    Attributes:
        type_code: Code of its type, an `EventType`.
        body: Bytes without header and checksum.
        flags: `HeaderFlag` bits: THREAD_SPECIFIC where the statement uses temporary tables,
            SUPPRESS_USE where it needs no default database.
    """

    type_code: int
    body: bytes
    flags: int = 0


class Generated(NamedTuple):
    """The place of the AUTO_INCREMENT values that a statement had the server choose.

    Attributes:
        table: The table with the AUTO_INCREMENT column.
        column: Its number among the table's columns, from 0.
    """

    table: TableName
    column: int


class TextPart(NamedTuple):
    """A statement that is in the binlog as its text.

    Attributes:
        events: Events of the statement's context and of the statement, in order, in a complete plan. An
            INSERT_ID event holds the first value that the server chose, or 0 where it chose one for every
            new row: the rows then say it.
        section: The section of the source's group that the text stands for; None where the statement
            changed no rows there.
        generated: Place of the generated values in the rows, of a text with an INSERT_ID event.
        timestamp: Time when the statement began, in seconds since 1970; 0 for the time of its section.
        tables: Tables that the statement concerns, where views, functions or triggers make them others
            than its text says, and binlogs are to tell them.
        uses_temporary: The statement uses temporary tables, or makes or drops some. The flag of its event
            says so of other statements, too.
        is_as_sent: The source ran the statement in the same words.
        number: Number of the statement in its session, until the plan is complete.
        bodies: The statement's events as the session appends them, until the plan is complete; without
            those that open and end a group.
    """

    events: tuple[EncodedEvent, ...] = ()
    section: int | None = None
    generated: Generated | None = None
    timestamp: int = 0
    tables: tuple[TableName, ...] = ()
    uses_temporary: bool = False
    is_as_sent: bool = False
    number: int = 0
    bodies: tuple[Body, ...] = ()

    def is_another(self, annotated: bytes | None) -> bool:
        """True if the text differs from the one that the source wrote before its rows.

        Args:
            annotated: The text that the source wrote before the rows; None for none.
        """
        if annotated is None or not self.is_as_sent or not self.events:
            return False
        event = self.events[-1]
        is_query = event.type_code == EventType.QUERY
        return is_query and not event.body.endswith(b"\0" + annotated)


class RowsPart(NamedTuple):
    """A statement that is in the binlog as its rows.

    Attributes:
        section: Number of the rows' section in the source's group.
        number: Number of the statement in its session, until the plan is complete.
    """

    section: int
    number: int = 0


Part = TextPart | RowsPart


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """The content of one event group of the source in each binlog.

    Attributes:
        sections: The rows that the source is to log, statement by statement. A group that has others is
            not the planned one, and is routed as rows.
        numbers: Numbers of the statements that make the sections, until the plan is complete; none comes
            twice.
        binlogs: By name, the parts between the group's beginning and its end, in order; empty where the
            binlog has nothing of the group, whatever its scope. Binlogs that are not named have the group
            as the source does, as far as it is in their scope.
        bases: By name, the number that `basis_of` gave of the definition that the plan was made
            with. A binlog with another definition by then gets the group's rows.
        ends: By name, the end of a binlog's group that is all text and ends otherwise than the source's;
            None: its one statement stands alone.
        image: The largest binlog_row_image that one of the group's statements ran with, to which the rows
            are cut in binlogs that hold more. Unless it is FULL all binlogs are named.
    """

    sections: tuple[Section, ...] = ()
    numbers: tuple[int, ...] = ()
    binlogs: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    bases: Mapping[str, int] = field(default_factory=dict)
    ends: Mapping[str, TextPart | None] = field(default_factory=dict)
    image: RowImage = RowImage.FULL

    @property
    def text_bytes(self) -> int:
        """Length of its texts in bytes, with the events before them."""
        return sum(
            len(event.body)
            for parts in self.binlogs.values()
            for part in parts
            if isinstance(part, TextPart)
            for event in part.events
        )

    @property
    def hangs_on_reply(self) -> bool:
        """True if it holds values that only a reply tells: the ids that the server chose."""
        return any(
            event.type_code == EventType.INTVAR and event.body[:1] == _INSERT_ID_KIND
            for parts in self.binlogs.values()
            for part in parts
            if isinstance(part, TextPart)
            for event in part.events
        )


@cache
def basis_of(definition: Definition) -> int:
    """A number of 32 bits that tells a definition from another one, also in another process."""
    scope = definition.scope
    lists = (scope.render(ScopeList.LOG), scope.render(ScopeList.IGNORE), scope.ignores_case)
    text = f"{definition.log_id} {definition.logging_mode.value} {lists}"
    return crc32(text.encode("utf-8", "surrogateescape"))
