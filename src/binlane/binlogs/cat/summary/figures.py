"""Figures of a summary as people read them: sizes, counts, times, facts and notes; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from binlane.binlogs.cat.summary.collect import Summary

_UNITS: Final = ("kB", "MB", "GB", "TB")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def size_text(size_bytes: int) -> str:
    """`512 B`, `3.2 kB`, `1.5 GB`."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    power = 1
    while size_bytes / 1000**power >= 999.95 and power < len(_UNITS):  # would round to 1000.0
        power += 1
    return f"{size_bytes / 1000**power:.1f} {_UNITS[power - 1]}"


def count_text(count: int) -> str:
    """Write a number with a comma between thousands."""
    return f"{count:,}"


def duration_text(seconds: int) -> str:
    """`12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`."""
    if seconds < _MINUTE:
        return f"{seconds} s"
    if seconds < _HOUR:
        units = (_MINUTE, "min", 1, "s")
    elif seconds < _DAY:
        units = (_HOUR, "h", _MINUTE, "min")
    else:
        units = (_DAY, "d", _HOUR, "h")
    big, big_name, small, small_name = units
    rest = seconds % big // small
    return f"{seconds // big} {big_name}" + (f" {rest} {small_name}" if rest else "")


def notes(summary: Summary) -> Iterator[str]:
    """Notes that a reader of the figures must know."""
    for file in summary.files:
        if file.is_marked_in_use:
            yield f"{file.name} is in use, or its server was killed: its header was never closed."
        elif not file.is_closed:
            yield f"{file.name} does not end with STOP or ROTATE: it may go on."
    if summary.unfinished:
        yield f"{summary.unfinished} of the transactions are not ended in the log."
    if summary.uncounted:
        yield f"The rows of {summary.uncounted} rows events could not be counted."


def facts(summary: Summary) -> Iterator[tuple[str, str]]:
    """Return name and value of the facts of the whole log."""
    names = [file.name for file in summary.files]
    if names:
        more = f" … {names[-1]} ({len(names)} files)" if len(names) > 1 else ""
        yield "files", f"{names[0]}{more}"
    servers = dict.fromkeys(file.server_version for file in summary.files if file.server_version)
    yield "server", ", ".join(servers) or "unknown"
    checksums = dict.fromkeys(file.checksum for file in summary.files if file.checksum)
    yield "checksums", ", ".join(checksums) or "unknown"
    events = sum(count.count for (_, is_inner), count in summary.events.items() if not is_inner)
    yield "size", f"{size_text(summary.size_bytes)} in {count_text(events)} events"
    rows = sum(table.rows for table in summary.tables.values())
    changes = f"{_counted(rows, 'row')} of {_counted(len(summary.tables), 'table')}"
    yield "changes", f"{_counted(summary.transactions, 'transaction')}, {changes}"
    if summary.logged_as:
        yield "logged as", summary.logged_as
    for index, text in enumerate(summary.gtids.texts()):
        yield "" if index else "GTIDs", text


def _counted(count: int, noun: str) -> str:
    return f"{count_text(count)} {noun}{'' if count == 1 else 's'}"
