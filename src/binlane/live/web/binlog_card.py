"""One binlog on the status page; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from binlane.live.web.page_elements import facts, identifier, long_text, name, text, time
from binlane.live.web.rate_history import STEP_S, WINDOW_S, Series
from binlane.live.web.status_values import (
    DIFFERENT,
    BinlogStatus,
    FillStatus,
    ReaderState,
    ReaderStatus,
    ShownState,
)
from binlane.live.web.status_words import (
    UNKNOWN,
    clock_text,
    count_text,
    counted,
    duration_text,
    exact_size,
    number_text,
    size_text,
    time_text,
)

_STEP: Final = 4
_HEIGHT: Final = 60
_BELOW: Final = _HEIGHT + 3  # the line along the bottom and both ends is not seen


def figure(
    what: str, series: Series, until_at_s: float, written: Callable[[float], str]
) -> Iterator[str]:
    """A plot with its caption and its axis.

    Args:
        what: The caption, such as `Event groups a second`.
        series: The rate over the last hour.
        until_at_s: The end of the series, in seconds since 1970.
        written: Writes a rate for people.
    """
    known = [value for value in series.values if value is not None]
    highest = max(known, default=0.0)
    now = "not known yet" if series.last is None else written(series.last)
    peak = series.peak
    most = ""
    if peak is not None and peak.rate:
        most = f", most {written(peak.rate)} at {clock_text(peak.at_s)}"
    yield "<figure>"
    yield f"<figcaption>{text(what)}: <strong>{text(now)}</strong> now{text(most)}</figcaption>"
    width = _STEP * len(series.values)
    label = f"{what} over the last hour: {now} now{most}; {_course(known, written)}"
    yield (
        f'<svg viewBox="0 0 {width} {_HEIGHT}" preserveAspectRatio="none" role="img"'
        f' aria-label="{text(label)}">'
    )
    unwatched = len(series.values) - len(known)
    if unwatched:
        yield f'<rect class="unwatched" width="{_STEP * unwatched}" height="{_HEIGHT}"/>'
    if known:
        path = _path(known, highest, _STEP * unwatched)
        yield f'<path class="rate" vector-effect="non-scaling-stroke" d="{path}"/>'
    begin = clock_text(until_at_s - WINDOW_S)
    scale = f"means of {STEP_S:g} s, up to {written(highest)}" if highest else ""
    yield "</svg>"
    yield (
        f'<div class="axis" aria-hidden="true"><span>{begin}</span><span>{text(scale)}</span>'
        f"<span>{clock_text(until_at_s)} UTC</span></div></figure>"
    )


def _course(known: Sequence[float], written: Callable[[float], str]) -> str:
    """The plot in words: means of its quarters of an hour, as far as they were watched."""
    quarter = round(WINDOW_S / 4 / STEP_S)
    parts = []
    for index in range(4):
        end = len(known) - quarter * index
        if end <= 0:
            break
        part = known[max(0, end - quarter) : end]
        when = (
            "the last 15 minutes"
            if not index
            else f"{15 * index} to {15 * (index + 1)} minutes ago"
        )
        parts.append(f"{written(sum(part) / len(part))} in {when}")
    return "mean " + ", ".join(parts) if parts else "nothing was watched yet"


def _path(values: Sequence[float], highest: float, left: int) -> str:
    """Steps from left to right, in whole units; equal ones are one step."""
    top = highest or 1.0
    heights = [round(_HEIGHT - (_HEIGHT - 2) * value / top) for value in values]
    parts = [f"M{left} {_BELOW}V{heights[0]}"]
    run = 0
    for height, following in zip(heights, [*heights[1:], None], strict=True):
        run += _STEP
        if following != height:
            parts.append(f"h{run}")
            run = 0
            if following is not None:
                parts.append(f"V{following}")
    return "".join([*parts, f"V{_BELOW}Z"])


READERS_MAX: Final = 100
"""Most readers of a binlog that are shown, those that are furthest behind."""

_REASONS_MAX: Final = 50
_STATES: Final = MappingProxyType(
    {
        ShownState.OPEN: "good",
        ShownState.CATCHING_UP: "warn",
        ShownState.FILLING: "warn",
        ShownState.STOPPED: "bad",
    }
)
_FINDINGS: Final = MappingProxyType({"equal": "good", DIFFERENT: "bad"})
_READER_STATES: Final = MappingProxyType(
    {
        ReaderState.STARTING: "warn",
        ReaderState.SENDING: "good",
        ReaderState.BLOCKED: "bad",
        ReaderState.CAUGHT_UP: "good",
    }
)


def binlog_card(binlog: BinlogStatus, at_s: float, *, is_open: bool) -> Iterator[str]:
    """All facts of a binlog.

    Args:
        binlog: The facts of the binlog.
        at_s: The time of the snapshot, in seconds since 1970.
        is_open: True if more than its first line is seen at once.
    """
    id_ = identifier("binlog", binlog.name)
    yield f'<details class="card" id="{id_}"{" open" if is_open else ""}>'
    state = f'<span class="state {_STATES[binlog.state]}">{binlog.state.value}</span>'
    if binlog.stopping:
        state += f'<span class="state bad">{counted(binlog.unacknowledged, "INCIDENT")}</span>'
    if binlog.has_difference:
        state += '<span class="state bad">DIFFERENT</span>'
    yield f"<summary><h3>{name(binlog.name)}</h3> {state}"
    yield f'<span class="brief">{_brief(binlog)}</span></summary>'
    if binlog.reason:
        colour = "warn" if binlog.is_stopped_by_statement else "bad"
        yield f'<p class="note {colour}">Stopped: {name(binlog.reason)}</p>'
    yield from _stopping(binlog)
    if binlog.fill is not None:
        yield from _fill(binlog.fill)
    yield from facts(_facts(binlog, id_))
    yield from _plots(binlog)
    yield from _readers(binlog, at_s)
    yield from _checks(binlog)
    yield from _counts("Statements that are rows instead", "Why", binlog.rows_instead)
    yield from _counts(
        "Left out, since it names what is outside of the scope", "What", binlog.omissions
    )
    if binlog.followed_rows is not None:
        kept = f"{counted(binlog.followed_rows, 'row')}, {size_text(binlog.followed_bytes or 0)}"
        yield f'<p class="note">Rows of children that cascades are followed by: {text(kept)}</p>'
    for table, reason in binlog.unfollowed.items():
        yield f'<p class="note warn">Cascades into {name(table)} are INCIDENTs: {name(reason)}</p>'
    yield from _counts("Rows whose images are full all the same", "Why", binlog.full_images)
    yield "</details>"


def _fill(fill: FillStatus) -> Iterator[str]:
    """Progress of the tables' rows that the binlog is given."""
    if fill.failure:
        hint = f" ({name(fill.hint)})" if fill.hint else ""
        ending = "; it was given up" if fill.is_over else ""
        yield f'<p class="note bad">Rows cannot be read: {name(fill.failure)}{hint}{ending}</p>'
        return
    share = f"{min(fill.rows / fill.rows_expected, 0.99) * 100:.0f} %" if fill.rows_expected else ""
    rows = f"{counted(fill.rows, 'row')} of about {count_text(fill.rows_expected)}"
    parts = (fill.step.capitalize(), share, name(fill.table), rows if fill.rows_expected else "")
    yield f'<p class="note warn">{", ".join(filter(None, parts))}</p>'


def _brief(binlog: BinlogStatus) -> str:
    last = binlog.rates.event_groups.last
    parts = [
        "lag not known" if binlog.lag_s is None else f"lag {duration_text(binlog.lag_s)}",
        "" if last is None else f"{number_text(last)} groups/s",
        counted(len(binlog.readers), "reader"),
    ]
    return " · ".join(filter(None, parts))


def _facts(binlog: BinlogStatus, id_: str) -> Iterator[tuple[str, str]]:
    yield "LOG", "ALL" if binlog.log_all else _list(binlog.log, f"{id_}-log")
    yield "IGNORE", _list(binlog.ignore, f"{id_}-ignore")
    yield "Format", text(binlog.format)
    yield "File and position", f"{name(binlog.file)} at {count_text(binlog.position_bytes)}"
    yield "Behind the source", _lag(binlog.lag_s, binlog.lag_bytes, exact_size)
    yield "Size", f"{exact_size(binlog.size_bytes)} in {counted(binlog.files, 'file')}"
    written = (
        f"{counted(binlog.event_groups, 'group')}, {counted(binlog.events, 'event')},"
        f" {size_text(binlog.written_bytes)}"
    )
    yield "Written so far", written
    if binlog.incidents:
        yield "INCIDENTs written so far", count_text(binlog.incidents)
    if binlog.last_failure is not None:
        failure = binlog.last_failure
        yield "Last failure", f"{time(failure.at_s)}: {name(failure.text)}"
    if binlog.archived_files is not None:
        yield "Archive", _archive(binlog)
    yield (
        "Complete up to (watermark)",
        long_text(binlog.gtid_complete or "the beginning", f"{id_}-gtid"),
    )


def _list(listed: str, id_: str) -> str:
    return long_text(listed, id_) if listed else "nothing"


def _lag(lag_s: float | None, lag_bytes: int | None, written: Callable[[int], str]) -> str:
    seconds = UNKNOWN if lag_s is None else duration_text(lag_s)
    if lag_bytes is None:
        return f"{seconds}, bytes {UNKNOWN}" if lag_s is not None else UNKNOWN
    return f"{seconds}, {written(lag_bytes)}"


def _stopping(binlog: BinlogStatus) -> Iterator[str]:
    """Show the INCIDENTs at which replicas stop, and the steps to take."""
    first, last = binlog.first_incident, binlog.last_incident
    if not binlog.stopping or first is None or last is None:
        return
    many = counted(binlog.unacknowledged, "INCIDENT")
    yield f'<div class="note bad"><p>Replicas stop at {many} with error 1590 (MySQL: 13119).</p>'
    known = [("First", first), *([("Last", last)] if last != first else [])]
    yield "<ul>"
    for word, each in known:
        gtid = f"{name(each.gtid)}, " if each.gtid else ""
        yield (
            f"<li>{word}: {gtid}{name(each.file)} at {count_text(each.position_bytes)}, "
            f"{time(each.at_s)}: {name(each.text)}</li>"
        )
    quoted = name(binlog.name)
    yield (
        "</ul><p>Repair its replicas and let them skip it, or make them anew; then "
        f"<code>ACKNOWLEDGE BINLOG INCIDENTS FOR '{quoted}'</code> on the MySQL port. "
        f"<code>SHOW BINLOG INCIDENTS FOR '{quoted}'</code> lists all.</p></div>"
    )


def _archive(binlog: BinlogStatus) -> str:
    copied = counted(binlog.archived_files or 0, "file")
    left = count_text(binlog.archive_pending_files or 0)
    failing = f"; fails: {name(binlog.archive_failure)}" if binlog.archive_failure else ""
    return f"{copied} copied, {left} to go{failing}"


def _plots(binlog: BinlogStatus) -> Iterator[str]:
    rates = binlog.rates
    if rates.until_at_s is None or rates.since_at_s is None:
        return
    yield '<div class="plots">'
    yield from figure("Event groups a second", rates.event_groups, rates.until_at_s, number_text)
    yield from figure("Bytes a second", rates.size_bytes, rates.until_at_s, size_text)
    yield "</div>"
    if rates.event_groups.values[0] is None:
        yield f'<p class="soft">Watched since {time(rates.since_at_s)}.</p>'


def _readers(binlog: BinlogStatus, at_s: float) -> Iterator[str]:
    readers = binlog.readers
    if not readers:
        yield '<p class="soft">Nobody reads it now.</p>'
        return
    heads = ("Reader", "Account", "State", "Behind", "Sent up to", "Since")
    yield '<table class="readers" role="table"><caption>Replicas and readers</caption>'
    yield '<thead role="rowgroup"><tr role="row">'
    yield "".join(f'<th scope="col" role="columnheader">{head}</th>' for head in heads)
    yield '</tr></thead><tbody role="rowgroup">'
    for reader in readers[:READERS_MAX]:
        yield f'<tr role="row"><th scope="row" role="rowheader">{_who(reader)}</th>'
        cells = zip(heads[1:], _reader_cells(reader, at_s), strict=True)
        yield "".join(
            f'<td role="cell" data-label="{head}"><span>{cell}</span></td>' for head, cell in cells
        )
        yield "</tr>"
    yield "</tbody></table>"
    if len(readers) > READERS_MAX:
        left = count_text(len(readers) - READERS_MAX)
        yield f"<p>{left} more are less far behind: /api/binlogs has all.</p>"


def _who(reader: ReaderStatus) -> str:
    port = f":{reader.port}" if reader.port else ""
    known_as = f"{name(reader.host)}{port} " if reader.host else ""
    return f'{known_as}<span class="soft">server id {reader.server_id}</span>'


def _reader_cells(reader: ReaderStatus, at_s: float) -> Iterator[str]:
    tls = {None: "", True: ", TLS", False: ", not encrypted"}[reader.is_tls]
    yield f"{name(reader.user)} from {name(reader.peer)}{tls}"
    blocked = "" if reader.blocked_s is None else f" for {duration_text(reader.blocked_s)}"
    yield f'<span class="state {_READER_STATES[reader.state]}">{reader.state.value}{blocked}</span>'
    yield _lag(reader.lag_s, reader.lag_bytes, size_text)
    sent = f"{size_text(reader.sent_bytes)} in all"
    at = f"{name(reader.file)} at {count_text(reader.position_bytes)}; " if reader.file else ""
    yield f"{at}{sent}"
    yield f"{time_text(reader.since_at_s)} ({duration_text(at_s - reader.since_at_s)})"


def _checks(binlog: BinlogStatus) -> Iterator[str]:
    """Show the last comparison of each table with the source and with replicas."""
    if not binlog.checks:
        return
    heads = ("Table", "Server", "State", "Outcome", "Compared")
    yield '<table class="readers" role="table"><caption>Tables compared with servers</caption>'
    yield '<thead role="rowgroup"><tr role="row">'
    yield "".join(f'<th scope="col" role="columnheader">{head}</th>' for head in heads)
    yield '</tr></thead><tbody role="rowgroup">'
    for check in binlog.checks[:READERS_MAX]:
        colour = _FINDINGS.get(check.finding, "warn")
        cells = (
            name(check.server),
            f'<span class="state {colour}">{text(check.finding)}</span>',
            name(check.text),
            time(check.at_s) if check.at_s else UNKNOWN,
        )
        yield f'<tr role="row"><th scope="row" role="rowheader">{name(check.table)}</th>'
        yield "".join(
            f'<td role="cell" data-label="{head}"><span>{cell}</span></td>'
            for head, cell in zip(heads[1:], cells, strict=True)
        )
        yield "</tr>"
    yield "</tbody></table>"
    if len(binlog.checks) > READERS_MAX:
        yield f"<p>{count_text(len(binlog.checks) - READERS_MAX)} more: /api/binlogs has all.</p>"


def _counts(caption: str, head: str, counts: Mapping[str, int]) -> Iterator[str]:
    """A table of counts, the highest first."""
    if not counts:
        return
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    yield f"<table><caption>{caption}</caption>"
    yield f'<thead><tr><th scope="col">{head}</th><th scope="col" class="number">How often</th></tr></thead>'
    yield "<tbody>"
    for word, count in ordered[:_REASONS_MAX]:
        yield (
            f'<tr><th scope="row">{name(word)}</th><td class="number">{count_text(count)}</td></tr>'
        )
    yield "</tbody></table>"
    if len(ordered) > _REASONS_MAX:
        yield f"<p>{count_text(len(ordered) - _REASONS_MAX)} more: /api/binlogs has all.</p>"
