"""A summary as tables for a terminal; pure but for rich, which lays them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from binlane.binlogs.cat.summary.counts import Bucket, GroupSummary
from binlane.binlogs.cat.summary.figures import count_text, duration_text, facts, notes, size_text
from binlane.binlogs.cat.summary.summary_json import time_text
from binlane.visible import visible

if TYPE_CHECKING:
    from binlane.binlogs.cat.summary.collect import Summary

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_MARGIN: Final = 4
_ROWS_OF_TIME: Final = 12
_ROWS_MAX: Final = 30
_WIDTH_MIN: Final = 40


def summary_text(summary: Summary, *, width: int = 80, color: bool = False) -> str:
    """Return the summary as text, one table below the other.

    Args:
        summary: Summary of a log that was read to its end.
        width: Width of the terminal, in columns.
        color: True if ANSI colours are wanted.
    """
    out = StringIO()
    console = Console(
        file=out,
        width=max(width, _WIDTH_MIN),
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        legacy_windows=False,
    )
    for part in _parts(summary, console.width):
        console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _parts(summary: Summary, width: int) -> Iterator[Table | Text]:
    yield _facts(summary)
    for note in notes(summary):
        yield Text(f"note: {visible(note)}", style="yellow")
    yield from _section("Over time", _time(summary, width))
    yield from _section("Events", [_events(summary)])
    if summary.tables:
        yield from _section("Tables", [_tables(summary)])
    if summary.statements:
        yield from _section("Statements", [_statements(summary)])
    for title, transactions in (
        ("Biggest transactions", summary.biggest),
        ("Most rows", summary.widest),
        ("Longest", summary.longest),
    ):
        shown = list(transactions)
        if shown:
            count = len(shown) if transactions is summary.biggest else 3
            yield from _section(title, [_transactions(shown[:count])])


def _section(title: str, parts: Iterable[Table | Text]) -> Iterator[Table | Text]:
    content = list(parts)
    if content:
        yield Text(f"\n{title}", style="bold")
        yield from content


def _facts(summary: Summary) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    first, last = summary.timeline.first, summary.timeline.last
    for name, value in facts(summary):
        table.add_row(name, visible(value))
    if first is not None and last is not None:
        span = duration_text(last - first)
        table.add_row("time", f"{time_text(first)} to {time_text(last)} UTC ({span})")
    return table


def _table(*headings: str, first: str = "") -> Table:
    """Return a table whose first column is text and takes the free room; the others are numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    table.add_column(first, overflow="fold", ratio=None)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _events(summary: Summary) -> Table:
    table = _table("count", "bytes", "share", first="type")
    whole = summary.size_bytes or 1
    for (name, is_inner), count in sorted(
        summary.events.items(), key=lambda item: (item[0][1], -item[1].size_bytes)
    ):
        share = "" if is_inner else f"{count.size_bytes / whole:.1%}"
        label = f"{name} (compressed)" if is_inner else name
        table.add_row(label, count_text(count.count), size_text(count.size_bytes), share)
    return table


def _tables(summary: Summary) -> Table:
    table = _table("inserts", "updates", "deletes", "bytes", first="table")
    ordered = sorted(summary.tables.items(), key=lambda item: -item[1].size_bytes)
    for name, count in ordered[:_ROWS_MAX]:
        numbers = (count.inserts, count.updates, count.deletes)
        table.add_row(visible(name.plain), *map(count_text, numbers), size_text(count.size_bytes))
    if len(ordered) > _ROWS_MAX:
        table.add_row(f"and {len(ordered) - _ROWS_MAX} more: --format=json has them all")
    return table


def _statements(summary: Summary) -> Table:
    table = _table("count", first="kind")
    for kind, count in summary.statements.most_common(_ROWS_MAX):
        table.add_row(kind, count_text(count))
    return table


def _transactions(transactions: Sequence[GroupSummary]) -> Table:
    table = _table("bytes", "rows", "events", "took", first="at")
    for transaction in transactions:
        at = f"{visible(transaction.file)}:{transaction.position}"
        table.add_row(
            f"{at}  {transaction.gtid}" if transaction.gtid else at,
            size_text(transaction.size_bytes),
            count_text(transaction.rows),
            count_text(transaction.events),
            duration_text(transaction.duration),
        )
    return table


def _time(summary: Summary, width: int) -> Iterator[Table | Text]:
    seconds, buckets = summary.timeline.buckets(width - _MARGIN)
    if not buckets:
        return
    yield Text(sparkline([bucket.size_bytes for _, bucket in buckets]), style="cyan")
    yield Text(f"bytes, one column is {duration_text(seconds)}", style="dim")
    seconds, buckets = summary.timeline.buckets(_ROWS_OF_TIME)
    table = _table("transactions", "rows", "bytes", "bytes/s", first=f"from ({_each(seconds)})")
    for time, bucket in buckets:
        if bucket.size_bytes:
            table.add_row(time_text(time), *_bucket_cells(bucket, seconds))
    yield table


def _each(seconds: int) -> str:
    return f"each {duration_text(seconds)}"


def _bucket_cells(bucket: Bucket, seconds: int) -> tuple[str, str, str, str]:
    return (
        count_text(bucket.transactions),
        count_text(bucket.rows),
        size_text(bucket.size_bytes),
        size_text(bucket.size_bytes // seconds),
    )


def sparkline(values: Sequence[int]) -> str:
    """Return one block per value, the highest full, zero as a blank."""
    highest = max(values, default=0) or 1
    steps = len(_BLOCKS)
    return "".join(
        _BLOCKS[min(steps - 1, value * steps // highest)] if value else " " for value in values
    )
