"""Events as SHOW BINLOG EVENTS prints them, brought into the form in which they are compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple


class Event(NamedTuple):
    """Type and info of one event."""

    type: str
    info: str


_NUMBERS: Final = {
    "Intvar": re.compile(r"(?<==)\d+"),
    "RAND": re.compile(r"(?<==)\d+"),
    "Begin_load_query": re.compile(r"(?<==)\d+"),
    "Delete_file": re.compile(r"(?<==)\d+"),
    "Append_block": re.compile(r"(?<==)\d+"),
    "Execute_load_query": re.compile(r"(?<=;file_id=)\d+"),
    "Transaction_payload": re.compile(r"(?<=decompressed_size=)\d+"),
    "Table_map": re.compile(r"(?<=table_id: )\d+"),
}
_ROWS: Final = re.compile(r"(Write|Update|Delete)_rows(_v1|_partial)?")
_XID: Final = re.compile(r"/\* xid=\d+ \*/")
_GTID: Final = re.compile(r"GTID \d+-\d+-\d+( cid=\d+)?")
_ALTER_ID: Final = re.compile(r"(?<= ALTER id=)\d+")
_THREAD_ID: Final = re.compile(r"(?i)(pseudo_thread_id=)\d+")
# As `re.escape` leaves them: the value of a user variable, or of a routine's variable or parameter;
# the hash of a password.
_UNKNOWN: Final = re.compile(r"(`=|NAME_CONST\\\('[^']*',|`\\\(|AS\\ ')\\#")
_IGNORED: Final = frozenset(
    {
        "Anonymous_Gtid",
        "Binlog_checkpoint",
        "Format_desc",
        "Gtid_list",
        "Previous_gtids",
        "Rotate",
        "Stop",
    }
)


def normalised(event: Event) -> Event:
    """Replace ids and numbers that nobody can know before by `#`."""
    kind, info = event
    if kind in _NUMBERS:
        return Event(kind, _NUMBERS[kind].sub("#", info))
    if _ROWS.fullmatch(kind):
        return Event(kind, re.sub(r"(?<=table_id: )\d+", "#", info))
    if kind in {"Gtid", "XA_prepare", "Query", "Xid"}:
        info = _ALTER_ID.sub("#", _GTID.sub("GTID #", info)) if kind == "Gtid" else info
        return Event(kind, _THREAD_ID.sub(r"\1#", _XID.sub("/* xid=# */", info)))
    return event


def comparable(events: Iterable[tuple[str, str]], *, upserts: bool = False) -> list[Event]:
    """Bring events into the form in which they are compared.

    Args:
        events: As a server or a session gives them.
        upserts: Some rows were replaced, or updated because their key existed: whether that made
            rows events of writes, updates or deletes is a matter of the data.
    """
    result: list[Event] = []
    for pair in events:
        event = normalised(Event(*pair))
        if event.type in _IGNORED:
            continue
        if upserts and _ROWS.fullmatch(event.type):
            event = Event("Changed_rows", event.info)
            if result and result[-1].type == event.type:
                result.pop()  # how many kinds of change there were is a matter of the data too
        result.append(event)
    return result


def are_equal(expected: Sequence[Event], actual: Sequence[Event]) -> bool:
    """Whether comparable events are equal; a value that we cannot know is `#` in `actual`."""
    return len(expected) == len(actual) and all(
        theirs == ours or _fits(theirs, ours) for theirs, ours in zip(expected, actual, strict=True)
    )


def _fits(theirs: Event, ours: Event) -> bool:
    if theirs.type != ours.type or "#" not in ours.info:
        return False
    pattern = _UNKNOWN.sub(lambda found: found[1] + "(?s:.+?)", re.escape(ours.info))
    return re.fullmatch(pattern, theirs.info) is not None


def is_rows(event: Event) -> bool:
    """Whether an event holds rows."""
    return event.type == "Changed_rows" or _ROWS.fullmatch(event.type) is not None
