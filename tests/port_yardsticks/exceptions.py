"""Where a binlog must differ from the log of a server in its format, and why.

The source logs rows, binlogs are made of its groups: a statement that has no group there has none in
any binlog, and no change moves from one group to another, where it could be lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from tests.logged_events import Event, are_equal, is_rows

if TYPE_CHECKING:
    from tests.port_yardsticks.running import Difference
    from tests.yardsticks.records import Record

NOTHING_CHANGED: Final = "it changed nothing at the source, so no group there is of it"
OWN_PLACE: Final = "what cannot be rolled back stands at its own place, not with its transaction"
SOURCE_FILE: Final = "a file of the source that binlane does not have"
ROW_WARNING: Final = "a warning of the source about its own log of rows"
REFUSAL: Final = "a refusal of binlane's: it tells what would help, and no error of the engine"
UNLOCKED: Final = (
    "it reads what a source that logs rows lets others change meanwhile, so it is rows"
)
_UNLOCKED_TABLES: Final = ("tm", "tm2", "mysql.user")
_HINT: Final = 1105
_ENGINE_ERRORS: Final = frozenset({1015, 1030, 4094})
_ROW_WARNINGS: Final = frozenset({1105, 1870})
_ENDS: Final = ("COMMIT", "ROLLBACK")


def explained(record: Record, differences: Sequence[Difference]) -> str:
    """Why a record differs, where that is meant; empty where it is not.

    Args:
        record: Which.
        differences: Everything in which it differs.
    """
    aspects = {difference.aspect: difference for difference in differences}
    logs = {"events", "events at end"}
    if aspects.keys() == {"warnings"} and _is_refusal(aspects["warnings"]):
        return REFUSAL
    if aspects.keys() == {"warnings"}:
        return ROW_WARNING if _is_row_warning(aspects["warnings"]) else ""
    if not aspects.keys() <= logs | {"warnings"}:
        return ""
    if "warnings" in aspects and not _is_row_warning(aspects["warnings"]):
        return ""
    reasons: tuple[tuple[str, Callable[[Record, Sequence[Difference]], bool]], ...] = (
        (SOURCE_FILE, _is_of_file),
        (NOTHING_CHANGED, _changed_nothing),
        (UNLOCKED, _is_unlocked),
        (OWN_PLACE, _is_moved),
    )
    found = [difference for difference in differences if difference.aspect in logs]
    return next((reason for reason, holds in reasons if holds(record, found)), "")


def _is_row_warning(difference: Difference) -> bool:
    theirs, ours = _warnings(difference.expected), _warnings(difference.actual)
    return not theirs - ours and all(errno in _ROW_WARNINGS for _, errno, _ in ours - theirs)


def _is_refusal(difference: Difference) -> bool:
    theirs, ours = _warnings(difference.expected), _warnings(difference.actual)
    lacking, more = theirs - ours, ours - theirs
    is_refused = any(level == "Error" for level, _, _ in ours)
    return (
        is_refused
        and all(errno in _ENGINE_ERRORS for _, errno, _ in lacking)
        and all(level == "Note" and errno == _HINT for level, errno, _ in more)
    )


def _warnings(value: object) -> Counter[tuple[str, int, str]]:
    return Counter(value if isinstance(value, list) else ())


def _is_of_file(record: Record, differences: Sequence[Difference]) -> bool:
    """Rows in the place of LOAD DATA, and all else as recorded."""
    if not record.name.startswith("load_data"):
        return False
    return all(
        [_end(group) for group in _groups(difference.expected)]
        == [_end(group) for group in _groups(difference.actual)]
        for difference in differences
    )


def _is_unlocked(record: Record, differences: Sequence[Difference]) -> bool:
    """Rows in the place of the text of a statement that reads tables without row locks."""
    words = record.sql.replace(",", " ").replace("(", " ").replace(")", " ").split()
    if not any(word in _UNLOCKED_TABLES for word in words[2:]):
        return False
    return all(
        [_end(group) for group in _groups(difference.expected)]
        == [_end(group) for group in _groups(difference.actual)]
        and not any(
            event.type == "Query" and event.info.endswith(record.sql)
            for event in _events(difference.actual)
        )
        for difference in differences
    )


def _changed_nothing(record: Record, differences: Sequence[Difference]) -> bool:
    """But for the statement, and a group that has nothing else, all is as recorded."""
    return all(
        are_equal(list(_without(difference.expected, record.sql)), _events(difference.actual))
        for difference in differences
    )


def _without(events: object, sql: str) -> Iterator[Event]:
    for group in _groups(events):
        kept: list[Event] = []
        for event in group:
            if event.type == "Query" and event.info.endswith(sql):
                while kept and kept[-1].type in {"Intvar", "RAND", "User var"}:
                    kept.pop()
            else:
                kept.append(event)
        if len(kept) == len(group) or any(_is_content(event) for event in kept):
            yield from kept


def _is_moved(record: Record, differences: Sequence[Difference]) -> bool:
    """Everything is there, in its order but for what was written at once.

    A group that ends with ROLLBACK undoes what can be undone, and may be missing.
    """
    if not record.before:
        return False
    theirs, undone, ours = Counter[str](), Counter[str](), Counter[str]()
    for difference in differences:
        for group in _groups(difference.expected):
            texts = Counter(map(_content, filter(_is_content, group)))
            (undone if _end(group) == "ROLLBACK" else theirs).update(texts)
        for group in _groups(difference.actual):
            ours.update(Counter(map(_content, filter(_is_content, group))))
    lacking, more = theirs - ours, ours - theirs - undone
    # The text of a statement over both kinds of tables is rows of each, where they belong.
    is_split = all(_is_row_content(one) for one in more) and bool(more)
    return (not lacking and not more) or (is_split and set(lacking) <= {record.sql})


def _groups(events: object) -> list[list[Event]]:
    """Events of one commit each."""
    found: list[list[Event]] = [[]]
    for event in _events(events):
        if event.type == "Gtid" and found[-1]:
            found.append([])
        found[-1].append(event)
        if event.type == "Xid" or (event.type == "Query" and event.info in _ENDS):
            found.append([])
    return [group for group in found if group]


def _events(value: object) -> list[Event]:
    return [Event(*event) for event in value] if isinstance(value, list) else []


def _end(group: Sequence[Event]) -> str:
    last = group[-1]
    return "COMMIT" if last.type == "Xid" else last.info


def _is_content(event: Event) -> bool:
    if event.type in {"Execute_load_query", "Table_map"}:
        return True
    return (
        event.type == "Query" and event.info not in {"BEGIN", *_ENDS} and not _is_savepoint(event)
    )


def _is_savepoint(event: Event) -> bool:
    return event.info.startswith(("SAVEPOINT", "ROLLBACK TO"))


def _content(event: Event) -> str:
    return event.info if is_rows(event) or event.type == "Table_map" else _text(event.info)


def _text(info: str) -> str:
    return info.partition("; ")[2] if info.startswith("use ") else info


def _is_row_content(content: str) -> bool:
    return content.startswith("table_id:")
