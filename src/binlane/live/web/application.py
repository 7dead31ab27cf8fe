"""The paths of the HTTP port of `serve`, answered from snapshots that `service` gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final, Protocol

from aiohttp import web

from binlane.live.web.guard import MAY_KNOW
from binlane.live.web.metrics import render_metrics
from binlane.live.web.page import POLICY, SCRIPT, SCRIPT_PATH, render_page
from binlane.live.web.prometheus import METRICS_CONTENT_TYPE
from binlane.live.web.rate_history import STEP_S, WINDOW_S, Rates, Series
from binlane.live.web.status_values import BinlogStatus, Status
from binlane.live.web.status_words import iso_text

_AT: Final = "at_s"
_DECIMALS: Final = 3


def binlogs_json(status: Status) -> list[dict[str, Any]]:
    """All binlogs, by name."""
    return [_binlog(binlog) for binlog in status.binlogs]


def status_json(status: Status) -> dict[str, Any]:
    """Everything but the binlogs."""
    return {
        "at": iso_text(status.at_s),
        "ready": not status.problems,
        "problems": status.problems,
        "notes": status.notes,
        "source": _plain(status.source),
        "port": _plain(status.port),
        "process": _plain(status.process),
        "archive_uri": status.archive_uri or None,
        "comparing": None if status.comparing is None else _plain(status.comparing),
    }


def _binlog(binlog: BinlogStatus) -> dict[str, Any]:
    extra = {"problem": binlog.problem, "dumps": len(binlog.readers)}
    return {**_plain(binlog), **extra}


def _rates(rates: Rates) -> dict[str, Any]:
    until = rates.until_at_s
    return {
        "since": _time(rates.since_at_s),
        "from": None if until is None else iso_text(until - WINDOW_S),
        "until": _time(until),
        "step_s": STEP_S,
        "event_groups_per_s": _series(rates.event_groups),
        "bytes_per_s": _series(rates.size_bytes),
    }


def _series(series: Series) -> list[float | None]:
    return [None if value is None else round(value, _DECIMALS) for value in series.values]


def _time(at_s: float | None) -> str | None:
    return None if at_s is None else iso_text(at_s)


def _plain(value: Any) -> Any:
    """A value as JSON has it; a field `…_at_s` becomes `…_at`, a time."""
    if isinstance(value, Rates):
        return _rates(value)
    if is_dataclass(value):
        return dict(_field(each.name, getattr(value, each.name)) for each in fields(value))
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return round(value, _DECIMALS)
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _field(name: str, value: Any) -> tuple[str, Any]:
    is_time = name == _AT or name.endswith(f"_{_AT}")
    return (name.removesuffix("_s"), _time(value)) if is_time else (name, _plain(value))


_PLAIN_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"


class StatusReader(Protocol):
    """Gives the state of the moment."""

    def __call__(self, *, with_rates: bool = True) -> Status:
        """Return the status; the rates of the last hour only on request."""
        ...


def application(snapshot: StatusReader) -> web.Application:
    """Return the HTTP application.

    Args:
        snapshot: Gives the status to show; called for each request.
    """

    async def page(request: web.Request) -> web.StreamResponse:
        body = await _made(render_page, snapshot())
        return _answer(request, body, "text/html; charset=utf-8", policy=POLICY)

    async def script(request: web.Request) -> web.StreamResponse:
        return _answer(request, SCRIPT.encode(), "text/javascript; charset=utf-8")

    async def healthz(request: web.Request) -> web.StreamResponse:
        problems = snapshot(with_rates=False).problems
        told = problems if request.get(MAY_KNOW, True) else ["not ok"] if problems else []
        text = "\n".join([*(told or ["ok"]), ""])
        answer = _answer(request, text.encode(errors="replace"), "text/plain; charset=utf-8")
        answer.set_status(503 if problems else 200)
        return answer

    async def metrics(request: web.Request) -> web.StreamResponse:
        body = await _made(render_metrics, snapshot(with_rates=False))
        return _answer(request, body, METRICS_CONTENT_TYPE)

    async def binlogs(request: web.Request) -> web.StreamResponse:
        body = await _made(_binlogs_text, snapshot())
        return _answer(request, body, "application/json; charset=utf-8")

    async def status(request: web.Request) -> web.StreamResponse:
        body = await _made(_status_text, snapshot(with_rates=False))
        return _answer(request, body, "application/json; charset=utf-8")

    app = web.Application()
    app.add_routes(
        [
            web.get("/", page),
            web.get(SCRIPT_PATH, script),
            web.get("/healthz", healthz),
            web.get("/metrics", metrics),
            web.get("/api/binlogs", binlogs),
            web.get("/api/status", status),
        ]
    )
    return app


def _binlogs_text(status: Status) -> str:
    return _json(binlogs_json(status))


def _status_text(status: Status) -> str:
    return _json(status_json(status))


def _json(value: Any) -> str:
    return json.dumps(value) + "\n"


async def _made(render: Callable[[Status], str], status: Status) -> bytes:
    """Make a text in a thread, so that sessions and dumps go on meanwhile."""

    def work() -> bytes:
        return render(status).encode("utf-8", "replace")

    return await asyncio.to_thread(work)


def _answer(
    request: web.Request, body: bytes, content_type: str, *, policy: str = _PLAIN_POLICY
) -> web.Response:
    answer = web.Response(
        body=body,
        headers={
            "Content-Type": content_type,
            "Cache-Control": "no-store",
            "Content-Security-Policy": policy,
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        },
    )
    if len(body) > 1 << 12 and "gzip" in request.headers.get("Accept-Encoding", ""):
        answer.enable_compression(web.ContentCoding.gzip)
    return answer
