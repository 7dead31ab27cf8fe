"""Changes as JSON objects: those of `cat --format=json -v`, as `docs/reference/json.md` has them."""

from __future__ import annotations

from binlane.binlogs.cat.event_json_lines import RowsPlace, event_object, row_object
from binlane.log.codec.json_values import json_row
from binlane.names import TableName
from binlane.tables.changes.logged_changes import Change, ChangedRow


def change_object(change: Change, *, has_statement: bool = False) -> dict[str, object]:
    """The object of a change: a row's with its time, or that of the statement's event.

    Args:
        change: The change of a row, or a statement.
        has_statement: True to add the statement that made the row, where the log holds it.
    """
    gtid, event = change.group.gtid, change.event
    if not isinstance(change, ChangedRow):
        return event_object(event, file=change.file, gtid=gtid)
    place = RowsPlace(event=event, file=change.file, gtid=gtid, table=change.table)
    return {
        **row_object(place, change.number, change.columns, change.images),
        "timestamp": event.header.timestamp,
        **({"statement": text} if has_statement and (text := change.group.statement) else {}),
    }


def state_object(state: ChangedRow | None, table: TableName, last: Change) -> dict[str, object]:
    """The object of a row's state at the end of the log, `now` or `deleted`.

    Args:
        state: The row with its values as after image; None if the row is deleted.
        table: The last name of the row's table.
        last: The last change of the row's life.
    """
    found: dict[str, object] = {
        "type": "deleted" if state is None else "now",
        "database": table.database,
        "table": table.table,
        "gtid": last.group.gtid,
        "file": last.file,
        "position": last.event.position,
    }
    if state is not None:
        _, values = state.images
        assert values is not None, "the row is there"
        found["values"] = json_row(state.columns, values)
    return found
