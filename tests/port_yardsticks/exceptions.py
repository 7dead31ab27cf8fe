"""Where a binlog must differ from the log of a server in its format, and why.

The source logs rows, binlogs are made of its groups: a statement that has no group there has none in
any binlog, and no change moves from one group to another, where it could be lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tests.logged_events import Event, are_equal, is_rows

if TYPE_CHECKING:
    from tests.port_yardsticks.running import Difference
    from tests.yardsticks.records import Record

NOTHING_CHANGED: Final = "it changed nothing at the source, so no group there is of it"
OWN_PLACE: Final = "what cannot be rolled back stands at its own place, not with its transaction"
SOURCE_FILE: Final = "a file of the source that binlane does not have"
REFUSAL: Final = "a refusal of binlane's: a note more tells what would help"
UNSEEN: Final = (
    "a refusal of binlane's: the server has not seen it, and so says nothing of its text"
)
UNTRIED: Final = "a refusal of binlane's: the table that is to be replaced is still there"
LEFT: Final = "what a statement of the recording before it had left, which is not run here"
DIAGNOSTICS: Final = (
    "it reads what the statement before it left, so that its context is not asked for"
)
UNLOCKED: Final = (
    "it reads what a source that logs rows lets others change meanwhile, so it is rows"
)
_UNLOCKED_TABLES: Final = ("tm", "tm2", "mysql.user")
_HINT: Final = 1105
_SEEN_THERE: Final = frozenset({1287, 3005, 4094})
_UNSAFE_FORMAT: Final = 1665
_GENERATED: Final = "/* Generated to handle failed CREATE OR REPLACE */"
_ENDS: Final = ("COMMIT", "ROLLBACK")


def explained(record: Record, differences: Sequence[Difference]) -> str:
    """Why a record differs, where that is meant; empty where it is not.

    Args:
        record: Which.
        differences: Everything in which it differs.
    """
    aspects = {difference.aspect: difference for difference in differences}
    logs = {"events", "events at end"}
    if record.error is not None and _is_untried(aspects):
        return UNTRIED
    if aspects.keys() == {"warnings"}:
        return _of_warnings(record, aspects["warnings"])
    if not aspects.keys() <= logs:
        return ""
    reasons: tuple[tuple[str, Callable[[Record, Sequence[Difference]], bool]], ...] = (
        (SOURCE_FILE, _is_of_file),
        (NOTHING_CHANGED, _changed_nothing),
        (DIAGNOSTICS, _is_of_diagnostics),
        (UNLOCKED, _is_unlocked),
        (OWN_PLACE, _is_moved),
    )
    found = [difference for difference in differences if difference.aspect in logs]
    return next((reason for reason, holds in reasons if holds(record, found)), "")


def _of_warnings(record: Record, difference: Difference) -> str:
    theirs, ours = _warnings(difference.expected), _warnings(difference.actual)
    lacking, more = theirs - ours, ours - theirs
    if record.error is None and not record.before[1:]:
        # Of one session after another, the recording's statements without tables kept them.
        is_left = not ours and all(level == "Error" for level, _, _ in theirs)
        return LEFT if is_left else ""
    if any(level != "Note" or errno != _HINT for level, errno, _ in more):
        return ""
    if not lacking:
        return REFUSAL
    return UNSEEN if all(errno in _SEEN_THERE for _, errno, _ in lacking) else ""


def _is_untried(aspects: Mapping[str, Difference]) -> bool:
    """Refused alike; but the server had dropped the table by then, and logged that."""
    if aspects.keys() != {"warnings", "events"}:
        return False
    events = _events(aspects["events"].expected)
    is_dropped = bool(events) and events[-1].info.endswith(_GENERATED)
    warnings = aspects["warnings"]
    theirs, ours = _warnings(warnings.expected), _warnings(warnings.actual)
    return (
        is_dropped
        and not _events(aspects["events"].actual)
        and not theirs - ours
        and {errno for _, errno, _ in ours - theirs} <= {_HINT}
        and any(errno == _UNSAFE_FORMAT for _, errno, _ in theirs)
    )


def _warnings(value: object) -> Counter[tuple[str, int, str]]:
    return Counter(value if isinstance(value, list) else ())


def _is_of_file(record: Record, differences: Sequence[Difference]) -> bool:
    """Rows in the place of LOAD DATA, and all else as recorded but for what is rolled back."""
    return record.name.startswith("load_data") and all(
        _kept_ends(difference.expected) == _kept_ends(difference.actual)
        for difference in differences
    )


def _kept_ends(events: object) -> list[str]:
    ends = [_end(group) for group in _groups(events)]
    return [end for end in ends if end != "ROLLBACK"]


def _is_of_diagnostics(record: Record, differences: Sequence[Difference]) -> bool:
    """Rows in the place of the text of a statement that reads ROW_COUNT() or FOUND_ROWS()."""
    return ("row_count()" in record.sql or "found_rows()" in record.sql) and _is_rows_instead(
        record, differences
    )


def _is_unlocked(record: Record, differences: Sequence[Difference]) -> bool:
    """Rows in the place of the text of a statement that reads tables without row locks."""
    words = record.sql.replace(",", " ").replace("(", " ").replace(")", " ").split()
    return any(word in _UNLOCKED_TABLES for word in words[2:]) and _is_rows_instead(
        record, differences
    )


def _is_rows_instead(record: Record, differences: Sequence[Difference]) -> bool:
    """Without the text of the statement, and with groups that end as recorded."""
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
    with_rows = list[str]()
    for difference in differences:
        for group in _groups(difference.expected):
            texts = Counter(map(_content, filter(_is_content, group)))
            (undone if _end(group) == "ROLLBACK" else theirs).update(texts)
        for group in _groups(difference.actual):
            texts = Counter(map(_content, filter(_is_content, group)))
            ours.update(texts)
            with_rows += [difference.aspect] if any(map(_is_row_content, texts)) else []
    lacking, more = theirs - ours, ours - theirs - undone
    # The text of a statement over both kinds of tables is rows of each, where they belong; that of
    # one that waits for the end of the transaction is rows at once.
    waits = "events" in with_rows and not any(
        _lacks(record, [_content(event)])
        for difference in differences
        for event in _events(difference.expected)
        if difference.aspect == "events" and _is_content(event)
    )
    are_rows_instead = bool(more) and all(map(_is_row_content, more)) and _lacks(record, lacking)
    is_split = are_rows_instead and (waits or len(with_rows) > 1)
    return (not lacking and not more) or is_split


def _lacks(record: Record, lacking: Collection[str]) -> bool:
    """Whether the text of the statement is all that lacks."""
    is_load = record.name.startswith("load_data")
    return all(one == record.sql or (is_load and "LOAD DATA" in one) for one in lacking)


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
