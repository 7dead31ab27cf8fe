"""The form of an event group of the source in each binlog, as the session that made it knows it.

The source logs rows. A session through the port knows which statements those rows are of, and for
each binlog whether a statement is there as its text or as its rows. A plan says so for one group;
`planned` makes the binlog's group of it. Where there is no plan the group is routed as rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple
from zlib import crc32

from binlane.log.codec.types import EventType
from binlane.log.grouping.sections import RowsPiece, Section
from binlane.names import TableName
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import ScopeList
from binlane.statements.sql.servers import RowImage

__all__ = [
    "EncodedEvent",
    "Generated",
    "GroupPlan",
    "Part",
    "Rows",
    "RowsPiece",
    "Section",
    "Text",
    "basis_of",
]


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


class Text(NamedTuple):
    """A statement that is in the binlog as its text.

    Attributes:
        events: Events of its context and itself, in order. An INSERT_ID event holds the first value
            that the server chose, or 0 where it chose one for every new row: the rows then say it.
        section: The section of the source's group that it stands for; None where it changed no
            rows there.
        generated: Place of its values in the rows, of a text with an INSERT_ID event.
        timestamp: Time when the statement began, in seconds since 1970; 0 for the time of its
            section.
        tables: Tables that it concerns, where views, functions or triggers make them others than
            its text says, and binlogs are to tell them.
        uses_temporary: True if it uses temporary tables, or makes or drops some. The flag of its
            event says so of other statements, too.
        is_as_sent: The source ran it in the same words.
    """

    events: tuple[EncodedEvent, ...]
    section: int | None = None
    generated: Generated | None = None
    timestamp: int = 0
    tables: tuple[TableName, ...] = ()
    uses_temporary: bool = False
    is_as_sent: bool = False

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


class Rows(NamedTuple):
    """A statement that is in the binlog as its rows.

    Attributes:
        section: Number of the rows' section in the source's group.
    """

    section: int


Part = Text | Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """The form of one event group of the source in each binlog.

    Attributes:
        sections: The rows that the source should have logged, statement by statement. A group that
            has others is not the planned one, and is routed as rows.
        binlogs: By name, the parts between the group's beginning and its end, in order; nothing
            where the binlog has nothing of the group, whatever its scope. Those that are not named
            get the group's rows.
        bases: By name, the number that `basis_of` gave of the definition that the plan was made
            with. A binlog with another definition by then gets the group's rows.
        ends: By name, the event that ends the binlog's group, where that is another one than the
            source's; None: its one statement stands alone.
        image: Images to which its rows are cut, in binlogs that hold more than that.
    """

    sections: tuple[Section, ...] = ()
    binlogs: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    bases: Mapping[str, int] = field(default_factory=dict)
    ends: Mapping[str, EncodedEvent | None] = field(default_factory=dict)
    image: RowImage = RowImage.FULL

    @property
    def text_bytes(self) -> int:
        """Length of its texts in bytes, with the events before them."""
        return sum(
            len(event.body)
            for parts in self.binlogs.values()
            for part in parts
            if isinstance(part, Text)
            for event in part.events
        )


@cache
def basis_of(definition: Definition) -> int:
    """A number of 32 bits that tells a definition from another one, also in another process."""
    scope = definition.scope
    lists = (scope.render(ScopeList.LOG), scope.render(ScopeList.IGNORE), scope.ignores_case)
    text = f"{definition.log_id} {definition.logging_mode.value} {lists}"
    return crc32(text.encode("utf-8", "surrogateescape"))
