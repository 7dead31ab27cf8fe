"""The status page: one document that loads nothing from elsewhere and can be read without a script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Final
from urllib.parse import quote

from binlane.live.web.binlog_card import binlog_card
from binlane.live.web.page_elements import facts, identifier, long_text, name, text, time
from binlane.live.web.status_values import ShownFailure, SourceStatus, Status, WorkerStatus
from binlane.live.web.status_words import (
    UNKNOWN,
    count_text,
    counted,
    duration_text,
    exact_size,
    size_text,
    time_text,
)

REFRESH_S: Final = 10
OPEN_MAX: Final = 8
"""With more binlogs than this only those are open that somebody has to look at."""

_ASSETS: Final = files("binlane.live.web") / "assets"
_STYLE: Final = (_ASSETS / "page.css").read_text(encoding="utf-8")
SCRIPT: Final = (_ASSETS / "page.js").read_text(encoding="utf-8")
SCRIPT_PATH: Final = "/page.js"
_ICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
    '<rect width="16" height="16" rx="3" fill="#2b6cb0"/>'
    '<path d="M3 5h10M3 8h6M3 11h8" stroke="#fff" stroke-width="1.6" stroke-linecap="round"/></svg>'
)
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; script-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page's Content-Security-Policy: nothing from elsewhere, no style and no script but its own."""

_FOOTER: Final = (
    "<footer><p>The same for programs: "
    '<a href="/api/binlogs">/api/binlogs</a>, <a href="/api/status">/api/status</a>, '
    '<a href="/metrics">/metrics</a>, <a href="/healthz">/healthz</a>.</p></footer>'
)


def render_page(status: Status) -> str:
    """Return the status page."""
    problems, notes = status.problems, status.notes
    word = counted(len(problems), "problem") if problems else "all is well"
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f'<noscript><meta http-equiv="refresh" content="{REFRESH_S}"></noscript>',
            f'<link rel="icon" href="data:image/svg+xml,{quote(_ICON)}">',
            f"<title>binlane: {word}</title>",
            f"<style>{_STYLE}</style>",
            f'<script src="{SCRIPT_PATH}" defer></script>',
            "</head>",
            "<body>",
            "<header><h1>binlane</h1>",
            '<button type="button" id="pause" hidden>Pause</button></header>',
            '<p class="note bad" id="stale" role="status" hidden></p>',
            '<main id="live">',
            f'<p class="soft">As of {time(status.at_s)}; shown anew every {REFRESH_S} s.</p>',
            *_verdict(problems, notes),
            *_binlogs(status),
            *_source(status.source, status.at_s),
            *_port(status),
            *_process(status),
            "</main>",
            _FOOTER,
            "</body>",
            "</html>\n",
        )
    )


def _verdict(problems: list[str], notes: list[str]) -> Iterator[str]:
    if problems:
        yield from _listed("problems", counted(len(problems), "problem"), problems, "bad")
    elif not notes:
        yield '<p class="note good">All is well.</p>'
    if notes:
        word = "Also to be known" if problems else "No problem, but to be known"
        yield from _listed("notes", word, notes, "warn")


def _listed(id_: str, head: str, texts: list[str], colour: str) -> Iterator[str]:
    yield f'<section class="note {colour}" aria-labelledby="{id_}">'
    yield f'<h2 id="{id_}">{head}</h2><ul>'
    for text_ in texts:
        yield f"<li>{name(text_)}</li>"
    yield "</ul></section>"


def _binlogs(status: Status) -> Iterator[str]:
    binlogs = status.binlogs
    yield f'<section aria-labelledby="binlogs"><h2 id="binlogs">{counted(len(binlogs), "binlog")}</h2>'
    if not binlogs:
        yield "<p>There are none yet: CREATE BINLOG on the MySQL port makes one.</p>"
    troubled = [each for each in binlogs if each.needs_attention]
    is_long = len(binlogs) > OPEN_MAX
    if troubled and is_long:
        links = ", ".join(
            f'<a href="#{quote(identifier("binlog", each.name))}">{name(each.name)}</a>'
            for each in troubled
        )
        yield f"<p>To be looked at: {links}.</p>"
    for binlog in binlogs:
        is_open = not is_long or binlog.needs_attention
        yield from binlog_card(binlog, status.at_s, is_open=is_open)
    yield "</section>"


def _source(source: SourceStatus, at_s: float) -> Iterator[str]:
    yield '<section aria-labelledby="source"><h2 id="source">Source</h2><div class="card">'
    for each in source.warnings:
        yield f'<p class="note warn">{name(each)}</p>'
    state = '<strong class="good state">connected</strong>'
    if not source.is_connected:
        state = '<strong class="bad state">not connected</strong>'
    yield from facts(_source_facts(source, state, at_s))
    yield "</div></section>"


def _source_facts(source: SourceStatus, state: str, at_s: float) -> Iterator[tuple[str, str]]:
    yield "Server", name(source.url)
    yield "State", state
    version = source.version or UNKNOWN
    yield "Version", f"{name(version)} ({text(source.flavor)})"
    if source.connected_at_s is not None:
        ago = duration_text(at_s - source.connected_at_s)
        yield "Connected since", f"{time(source.connected_at_s)} ({ago})"
    if source.silent_s is not None:
        yield "Last heard of", f"{duration_text(source.silent_s)} ago"
    yield "Taken up to (file)", _place(source.file, source.position_bytes)
    if source.end_bytes is not None:
        yield "Its log ended, some seconds ago, at", _place(source.end_file, source.end_bytes)
    elif source.end_problem:
        yield "Where its log ends is not known", name(source.end_problem)
    yield "Taken up to (GTID)", long_text(source.gtid or UNKNOWN, "source-gtid")
    if source.last_failure is not None:
        yield "Last failure", _trouble(source.last_failure)


def _place(file: str, position: int | None) -> str:
    if not file or position is None:
        return UNKNOWN
    return f"{name(file)} at {count_text(position)}"


def _trouble(trouble: ShownFailure) -> str:
    return f"{time(trouble.at_s)}: {name(trouble.text)}"


def _port(status: Status) -> Iterator[str]:
    port = status.port
    yield '<section aria-labelledby="port"><h2 id="port">MySQL port</h2><div class="card">'
    if port.problem:
        yield f'<p class="note warn">{name(port.problem)}</p>'
    most = "" if port.sessions_max is None else f" of at most {count_text(port.sessions_max)}"
    refused = {f"with error {errno}": count for errno, count in sorted(port.refused.items())}
    yield from facts(
        (
            ("Listens on", name(port.address or UNKNOWN)),
            ("Sessions now", f"{count_text(port.sessions)}{most}"),
            ("Logins", _counts(port.logins)),
            ("Statements judged", _counts(port.judged)),
            ("Refused by binlane", _counts(refused)),
            *((("Faults of binlane", count_text(port.faults)),) if port.faults else ()),
            *((f"Worker {one.number}", _worker(one)) for one in port.workers),
        )
    )
    yield "</div></section>"


def _worker(worker: WorkerStatus) -> str:
    """One of several processes, in one line."""
    if worker.process_id is None:
        return "not running"
    memory = worker.resident_bytes
    parts = [
        f"process {worker.process_id}",
        f"{count_text(worker.sessions)} sessions",
        f"{duration_text(worker.cpu_s)} of processor time",
        "" if memory is None else size_text(memory),
        f"restarted {count_text(worker.restarts)} times" if worker.restarts else "",
    ]
    return ", ".join(filter(None, parts))


def _counts(counts: Mapping[str, int]) -> str:
    """Counts by word, in one line."""
    return (
        ", ".join(f"{count_text(count)} {text(word)}" for word, count in counts.items()) or "none"
    )


def _process(status: Status) -> Iterator[str]:
    yield '<section aria-labelledby="process"><h2 id="process">Process</h2><div class="card">'
    yield from facts(_process_facts(status))
    yield "</div></section>"


def _process_facts(status: Status) -> Iterator[tuple[str, str]]:
    process = status.process
    yield "binlane", f"{text(process.version)}, Python {text(process.python)}"
    up = duration_text(status.at_s - process.started_at_s)
    yield "Up", f"{up}, since {time_text(process.started_at_s)}"
    yield "Processor time", duration_text(process.cpu_s)
    if process.resident_bytes is not None:
        yield "Memory", size_text(process.resident_bytes)
    if process.open_descriptors is not None:
        most = process.descriptors_max
        of = "" if most is None else f" of at most {count_text(most)}"
        yield "Open descriptors", f"{count_text(process.open_descriptors)}{of}"
    yield "Process id", str(process.process_id)
    size = sum(binlog.size_bytes for binlog in status.binlogs)
    yield "All binlogs", exact_size(size)
    yield "Archive", name(status.archive_uri) if status.archive_uri else "none"
