"""A summary as one HTML page in light and dark, without scripts or loaded parts; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from binlane.binlogs.cat.summary.counts import GroupSummary, TableCount
from binlane.binlogs.cat.summary.figures import count_text, duration_text, facts, notes, size_text
from binlane.binlogs.cat.summary.summary_json import time_text

if TYPE_CHECKING:
    from binlane.binlogs.cat.summary.collect import Summary

_BUCKETS: Final = 120
_BUCKETS_IN_TABLE: Final = 24
_TABLES_MAX: Final = 200
_LONG: Final = 12
"""Text of a cell that is more than a third of a phone's line."""

_PLOT_WIDTH, _PLOT_HEIGHT = 960, 120

_STYLE: Final = """
:root { color-scheme: light dark; --ground: #fff; --text: #1d2733; --soft: #5b6b7c;
  --line: #dde3ea; --bar: #2b6cb0; --insert: #2f855a; --update: #b7791f; --delete: #c53030;
  --note: #fff6e0; }
@media (prefers-color-scheme: dark) { :root { --ground: #12171d; --text: #e4e9ef;
  --soft: #9aa8b6; --line: #2c3641; --bar: #63a4e6; --insert: #56b98a; --update: #d9a441;
  --delete: #ee7b7b; --note: #332a14; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 64rem; padding: 1.5rem; background: var(--ground);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 1rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
h3 { font-size: .95rem; font-weight: 500; margin: 1rem 0 .3rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.note { background: var(--note); padding: .4rem .8rem; border-radius: 4px; margin: .8rem 0 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--soft); font-weight: 500; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td:first-child { overflow-wrap: anywhere; white-space: normal; }
td.bars { width: 30%; min-width: 8rem; } svg { display: block; width: 100%; }
td.bars svg { height: 12px; } .bar { fill: var(--bar); }
.plot { height: 7rem; border: solid var(--line); border-width: 1px 0; }
.ends { display: flex; justify-content: space-between; gap: 1rem; color: var(--soft);
  font-size: .8rem; margin: .1rem 0 0; } .ends span:last-child { text-align: right; }
.insert { fill: var(--insert); } .update { fill: var(--update); } .delete { fill: var(--delete); }
.key { color: var(--soft); } .key span { display: inline-block; width: .7em; height: .7em;
  margin: 0 .3em 0 1em; border-radius: 2px; } .key .insert { background: var(--insert); }
.key .update { background: var(--update); } .key .delete { background: var(--delete); }
h1, h2 { overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  body { padding: 1rem; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; } dd { margin-bottom: .4rem; }
  thead { display: none; } table, tbody { display: block; }
  tbody tr { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .1rem .75rem;
    padding: .45rem 0; border-bottom: 1px solid var(--line); }
  td { text-align: left; padding: 0; border: 0; white-space: normal; overflow-wrap: anywhere; }
  td:first-child, td.bars, td.long { grid-column: 1 / -1; width: auto; }
  td:not(:first-child)::before { content: attr(data-label) " "; color: var(--soft);
    font-size: .8rem; }
  td:empty { display: none; }
}
"""


def summary_html(summary: Summary) -> str:
    """The page of a finished summary."""
    names = [file.name for file in summary.files]
    title = f"Binlog summary: {names[0]}" if names else "Binlog summary"
    if len(names) > 1:
        title += f" … {names[-1]}"
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{_text(title)}</h1>",
            *_facts(summary),
            *_over_time(summary),
            *_events(summary),
            *_tables(summary),
            *_statements(summary),
            *_transactions("Biggest transactions", summary.biggest),
            *_transactions("Transactions with the most rows", summary.widest),
            *_transactions("Longest transactions", summary.longest),
            "</body></html>\n",
        )
    )


def _text(text: str) -> str:
    """Escape a text; characters that no page can hold become replacement characters."""
    return escape(text.encode("utf-8", "replace").decode("utf-8"))


def _facts(summary: Summary) -> Iterator[str]:
    yield "<dl>"
    for name, value in facts(summary):
        yield f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>"
    first, last = summary.timeline.first, summary.timeline.last
    if first is not None and last is not None:
        span = duration_text(last - first)
        yield f"<dt>time</dt><dd>{time_text(first)} to {time_text(last)} UTC ({span})</dd>"
    yield "</dl>"
    for note in notes(summary):
        yield f'<p class="note">{_text(note)}</p>'


def _over_time(summary: Summary) -> Iterator[str]:
    seconds, buckets = summary.timeline.buckets(_BUCKETS)
    if not buckets:
        return
    each = duration_text(seconds)
    yield "<h2>Over time</h2>"
    yield f"<p class='key'>Times are UTC; one bar is {each}.</p>"
    for what, values, written in (
        ("Bytes", [bucket.size_bytes for _, bucket in buckets], size_text),
        ("Rows changed", [bucket.rows for _, bucket in buckets], count_text),
        ("Transactions", [bucket.transactions for _, bucket in buckets], count_text),
    ):
        if not any(values):
            continue
        titles = [
            f"{time_text(time)}: {written(value)}"
            for (time, _), value in zip(buckets, values, strict=True)
        ]
        ends = (time_text(buckets[0][0]) or "", time_text(buckets[-1][0]) or "")
        highest = max(values)
        yield f'<h3>{what} <span class="key">at most {written(highest)}</span></h3>'
        description = f"{what} per {each}, {ends[0]} to {ends[1]}; at most {written(highest)}."
        yield from _plot(values, titles, ends, description)
    yield from _time_table(summary)


def _plot(
    values: Sequence[int],
    titles: Sequence[str],
    ends: tuple[str, str],
    description: str,
) -> Iterator[str]:
    """Bars from left to right; each names its value when it is pointed at.

    The words beside the bars are text of the page, which does not shrink on a phone.
    """
    step = _PLOT_WIDTH / len(values)
    yield (
        f'<svg class="plot" viewBox="0 0 {_PLOT_WIDTH} {_PLOT_HEIGHT}" preserveAspectRatio="none" '
        f'role="img"><title>{_text(description)}</title>'
    )
    for index, (value, title) in enumerate(zip(values, titles, strict=True)):
        if value:
            size = max(1.0, value * _PLOT_HEIGHT / max(values))
            x, bar = index * step, max(0.5, step * 0.86)
            yield (
                f'<rect class="bar" x="{x:.1f}" y="{_PLOT_HEIGHT - size:.1f}" width="{bar:.1f}" '
                f'height="{size:.1f}"><title>{_text(title)}</title></rect>'
            )
    last = f"<span>{ends[1]}</span>" if len(values) > 1 else ""
    yield f'</svg><p class="ends"><span>{ends[0]}</span>{last}</p>'


def _time_table(summary: Summary) -> Iterator[str]:
    seconds, buckets = summary.timeline.buckets(_BUCKETS_IN_TABLE)
    rows = (
        (
            _text(time_text(time) or ""),
            count_text(bucket.transactions),
            count_text(bucket.rows),
            size_text(bucket.size_bytes),
            f"{size_text(bucket.size_bytes // seconds)}/s",
        )
        for time, bucket in buckets
        if bucket.size_bytes
    )
    headings = ("from", "transactions", "rows", "bytes", "rate")
    yield f'<p class="key">The same, {duration_text(seconds)} together:</p>'
    yield from _table(headings, rows)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table of cells that are HTML already; a cell of bars has its class."""
    # Roles, since a phone shows each row as a block of its own.
    yield '<div class="wide"><table role="table"><thead role="rowgroup"><tr role="row">'
    yield "".join(f'<th scope="col" role="columnheader">{_text(word)}</th>' for word in headings)
    yield '</tr></thead><tbody role="rowgroup">'
    for row in rows:
        cells = "".join(map(_cell, headings, row))
        yield f'<tr role="row">{cells}</tr>'
    yield "</tbody></table></div>"


def _cell(heading: str, cell: str) -> str:
    """Return a cell that names its column, for narrow pages without headings."""
    kind = ' class="bars"' if cell.startswith("<svg") else ""
    kind = ' class="long"' if len(cell) > _LONG and not kind else kind
    return f'<td role="cell"{kind} data-label="{_text(heading)}">{cell}</td>'


def _bars(parts: Sequence[tuple[str, int]], whole: int, description: str) -> str:
    """Bars of several classes side by side, as a part of `whole`."""
    x, rects = 0.0, []
    for kind, value in parts:
        width = 100 * value / whole if whole else 0
        if value:
            rects.append(f'<rect class="{kind}" x="{x:.2f}" width="{width:.2f}" height="10"/>')
        x += width
    return (
        '<svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img">'
        f"<title>{_text(description)}</title>{''.join(rects)}</svg>"
    )


def _events(summary: Summary) -> Iterator[str]:
    yield "<h2>Events</h2>"
    whole = summary.size_bytes or 1
    rows = []
    for (name, is_inner), count in sorted(
        summary.events.items(), key=lambda item: (item[0][1], -item[1].size_bytes)
    ):
        share = f"{count.size_bytes / whole:.1%}"
        bars = _bars([("bar", count.size_bytes)], whole, f"{name}: {share} of all bytes")
        rows.append(
            (
                _text(f"{name} (inside a compressed transaction)" if is_inner else name),
                count_text(count.count),
                size_text(count.size_bytes),
                "" if is_inner else share,
                "" if is_inner else bars,
            )
        )
    yield from _table(("type", "count", "bytes", "share", ""), rows)


def _tables(summary: Summary) -> Iterator[str]:
    if not summary.tables:
        return
    yield "<h2>Tables</h2>"
    yield (
        '<p class="key">Rows: <span class="insert"></span>inserted<span class="update"></span>'
        'updated<span class="delete"></span>deleted</p>'
    )
    ordered = sorted(summary.tables.items(), key=lambda item: -item[1].size_bytes)
    most = max(table.rows for table in summary.tables.values())
    rows = [
        (
            _text(name.plain),
            *map(count_text, (table.inserts, table.updates, table.deletes)),
            size_text(table.size_bytes),
            _table_bars(name.plain, table, most),
        )
        for name, table in ordered[:_TABLES_MAX]
    ]
    yield from _table(("table", "inserted", "updated", "deleted", "bytes", ""), rows)
    if len(ordered) > _TABLES_MAX:
        yield f"<p>and {len(ordered) - _TABLES_MAX} more tables</p>"


def _table_bars(name: str, table: TableCount, most: int) -> str:
    parts = [("insert", table.inserts), ("update", table.updates), ("delete", table.deletes)]
    said = f"{table.inserts} inserted, {table.updates} updated, {table.deletes} deleted"
    return _bars(parts, most, f"{name}: {said}")


def _statements(summary: Summary) -> Iterator[str]:
    if not summary.statements:
        return
    yield "<h2>Statements</h2>"
    rows = [(_text(kind), count_text(count)) for kind, count in summary.statements.most_common()]
    yield from _table(("kind", "count"), rows)


def _transactions(title: str, transactions: Iterable[GroupSummary]) -> Iterator[str]:
    rows = [
        (
            _text(f"{transaction.file}:{transaction.position}"),
            _text(transaction.gtid or ""),
            _text(time_text(transaction.first_time) or ""),
            size_text(transaction.size_bytes),
            count_text(transaction.rows),
            count_text(transaction.events),
            duration_text(transaction.duration),
        )
        for transaction in transactions
    ]
    if rows:
        yield f"<h2>{title}</h2>"
        yield from _table(("at", "GTID", "began", "bytes", "rows", "events", "took"), rows)
