"""The report of a landing as text, HTML or JSON. Pure: a report in, a text out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from html import escape
from typing import Final

from binlane.tables.landing.landing_progress import LandingReport, TableReport
from binlane.visible import visible

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #8884; padding: .3rem .8rem; text-align: left }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
tr.gone { background: #c0392b22 }
p.error { color: #c0392b }
:root { color-scheme: light dark }
"""
_HEAD: Final = (
    '<table><tr><th>Table</th><th class="n">Row images</th><th class="n">In the log</th>'
    '<th class="n">Not landed</th><th class="n">Zero dates made NULL</th><th>State</th></tr>'
)


def text_report(report: LandingReport) -> str:
    """Return the report for people at a terminal."""
    head = (
        f"{report.rows} row images, {report.batches} batches, {report.seconds:.1f} s, "
        f"up to GTID {report.last_gtid or '(nothing new)'}"
    )
    lines = [
        head,
        *(
            f"  {name}: {table.rows} row images{_taken(table)}; {state_of(table)}{_dates(table)}"
            for name, table in report.tables.items()
        ),
        *_audit(report),
        *(f"  note: {note}" for note in _notes(report)),
        "",
    ]
    return "\n".join(map(visible, lines))


def json_report(report: LandingReport) -> str:
    """Return the report for programs, as JSON."""
    return json.dumps({**asdict(report), "rows": report.rows}, ensure_ascii=False, indent=2) + "\n"


def html_report(report: LandingReport) -> str:
    """Return the report for people with a browser; one page that needs nothing else."""
    facts = {
        "Source": report.source,
        "Target": report.into,
        **{name.capitalize(): value for name, value in report.terms.items() if value},
        "Row images": f"{report.rows:,}",
        "Bytes of log": f"{report.size_bytes:,}",
        "Batches": f"{report.batches:,}",
        "Seconds": f"{report.seconds:.1f}",
        "CPU seconds": f"{report.cpu_seconds:.1f}",
        "Row images a second": f"{report.rows / max(report.seconds, 0.001):,.0f}",
        "Row images in the log": f"{sum(table.logged for table in report.tables.values()):,}",
        "Row images of other tables": f"{report.outside:,}",
        "Rows by the reference decoder": f"{report.by_reference:,}",
        "Up to GTID": report.last_gtid or "nothing new",
    }
    body = [
        "<h1>Landing</h1>",
        f'<p class="error">{escape(report.error)}</p>' if report.error else "",
        "<table>",
        *(
            f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>"
            for key, value in facts.items()
        ),
        "</table>",
        "<h2>Tables</h2>",
        _HEAD,
        *_rows(report),
        "</table>",
        *(f"<p>{escape(note)}</p>" for note in _notes(report)),
    ]
    inner = "\n".join(line for line in body if line)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Landing</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{inner}\n</body></html>\n"
    )


def report_as(report: LandingReport, file: str) -> str:
    """The report as the name of a file wants it: `.html`, `.json`, else text."""
    if file.endswith((".html", ".htm")):
        return html_report(report)
    if file.endswith(".json"):
        return json_report(report)
    return text_report(report)


def state_of(table: TableReport) -> str:
    """Tell the state of a table in words."""
    told = []
    if table.is_current:
        buts = [table.lacks] if table.lacks else []
        if table.without:
            names = ", ".join(table.without)
            buts.append(f"without {names}, generated from what the log does not tell")
        told.append(f"current, but {', and '.join(buts)}" if buts else "current")
    elif table.why_not:
        told.append(f"not current: {table.why_not}")
    if table.no_history:
        told.append(f"no history: {table.no_history}")
    return "; ".join(told) or "not current: dropped, renamed or not landed so"


def _rows(report: LandingReport) -> Iterator[str]:
    for name, table in report.tables.items():
        kind = ' class="gone"' if table.why_not or table.no_history else ""
        yield (
            f'<tr{kind}><td>{escape(name)}</td><td class="n">{table.rows:,}</td>'
            f'<td class="n">{table.logged:,}</td>'
            f'<td class="n">{sum(table.left_out.values()):,}</td>'
            f'<td class="n">{table.invalid_dates:,}</td><td>{escape(state_of(table))}</td></tr>'
        )


def _taken(table: TableReport) -> str:
    return f", {table.snapshot_rows} rows of a snapshot" if table.snapshot_rows else ""


def _dates(table: TableReport) -> str:
    return f", {table.invalid_dates} zero dates became NULL" if table.invalid_dates else ""


def _audit(report: LandingReport) -> Iterator[str]:
    """Tell how many row images the log has as counted, and which of them are not landed."""
    logged = sum(table.logged for table in report.tables.values())
    if logged or report.outside:
        yield (
            f"  audited: the log has {logged} row images of these tables, each landed or told "
            f"below, and {report.outside} of others"
        )


def _notes(report: LandingReport) -> Iterator[str]:
    yield from report.notes
    for name, table in report.tables.items():
        for why, images in table.left_out.items():
            yield f"{name}: {images} row images {why}"
    for name, table in report.tables.items():
        if table.gap:
            yield f"{name}: its change table lacks changes: {table.gap}"
    for name, table in report.tables.items():
        if table.has_absent:
            yield f"{name}: row images lack columns, which are NULL in its change table"
    lost = [name for name, table in report.tables.items() if table.why_not or table.lacks]
    if lost:
        named = ", ".join(lost)
        yield f"whole again by --snapshot SERVER --tables '{named}', or emptied at the source"
    ended = [name for name, table in report.tables.items() if table.no_history]
    if ended:
        named = ", ".join(ended)
        yield f"a history of a table with a key goes on by --snapshot SERVER --tables '{named}'"
    if report.by_reference:
        yield f"{report.by_reference} row images were decoded by the reference, not by kernels"
