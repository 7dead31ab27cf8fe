"""A range of a log → its rows, statements and troubles, in log order as far as order matters."""

from __future__ import annotations

from collections.abc import Iterator

from binlane.codec.control import IncidentEvent
from binlane.codec.query import QueryEvent
from binlane.codec.rows import RowsEvent
from binlane.codec.transaction import GtidEvent
from binlane.codec.types import GtidFlag
from binlane.columnar.batches import ROWS_MAX_DEFAULT, ChangeBatcher
from binlane.errors import UnsupportedError
from binlane.grouping.event_group import EventGroup
from binlane.ranges.files import read_groups_of
from binlane.ranges.items import RangeItem, Trouble, TroubleKind, Want
from binlane.ranges.log_range import LogRange
from binlane.ranges.statements import statements


def read_range(piece: LogRange, want: Want) -> Iterator[RangeItem]:
    """The rows of a range, and its statements and troubles where they are wanted.

    Args:
        piece: The range.
        want: What of it.

    Yields:
        Batches of one table each, as `columnar.batches` gives them: the images of a table in log
        order, batches of several tables in any order between two statements or troubles.

    Raises:
        CodecError: With file and position, if the log is damaged or a row cannot be decoded.
        StoreError: If the file cannot be read.
    """
    batcher = ChangeBatcher(
        selection=want.selection, columns=want.columns, rows_max=want.rows_max or ROWS_MAX_DEFAULT
    )
    for group in read_groups_of(piece):
        if want.has_statements:
            trouble = _trouble(group)
            if trouble is not None:
                yield from batcher.finish()
                yield trouble
                continue
            if want.selection.includes(group):
                # Where a group has both (CREATE TABLE … SELECT), the statement comes first.
                for statement in statements(group):
                    yield from batcher.finish()
                    yield statement
        yield from batcher.feed(group)
    yield from batcher.finish()


def _trouble(group: EventGroup) -> Trouble | None:
    """What cannot be followed: lost changes, and rows that may be or were rolled back."""
    has_rows = any(isinstance(event.body, RowsEvent) for event in group.events)
    for event in group.events:
        body = event.body
        if isinstance(body, IncidentEvent):
            kind = TroubleKind.INCIDENT
            what = f"changes are missing here: INCIDENT {body.message.decode('utf-8', 'replace')}"
            hint = "land the tables anew from a copy of the source"
        elif isinstance(body, GtidEvent) and body.flags & GtidFlag.PREPARED_XA:
            raise UnsupportedError(
                "an XA transaction is prepared here, and may yet be rolled back",
                hint="landing does not follow XA transactions yet",
            ).at(group.file, event.position)
        elif has_rows and isinstance(body, QueryEvent) and body.query.startswith(b"ROLLBACK"):
            kind = TroubleKind.ROLLED_BACK
            what = "a transaction with rows is rolled back here in part"
            hint = "the log does not tell which rows stay; use one engine in a transaction"
        else:
            continue
        return Trouble(
            kind=kind,
            what=what,
            hint=hint,
            gtid=None if group.gtid is None else str(group.gtid),
            file=group.file,
            position=event.position,
        )
    return None
