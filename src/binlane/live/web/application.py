"""The paths of the HTTP port of `serve`, answered from snapshots that `service` gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final, Protocol

from aiohttp import web

from binlane.live.web.as_json import binlogs_json, status_json
from binlane.live.web.guard import MAY_KNOW
from binlane.live.web.metrics import render_metrics
from binlane.live.web.page import POLICY, SCRIPT, SCRIPT_PATH, render_page
from binlane.live.web.prometheus import METRICS_CONTENT_TYPE
from binlane.live.web.status import Status

_PLAIN_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"


class Snapshot(Protocol):
    """Gives the state of the moment."""

    def __call__(self, *, with_rates: bool = True) -> Status:
        """Return the status; the rates of the last hour only on request."""
        ...


def application(snapshot: Snapshot) -> web.Application:
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
