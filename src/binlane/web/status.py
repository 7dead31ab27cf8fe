"""What operators and their tools ask over HTTP, answered from a snapshot that `service` gives."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from aiohttp import web

from binlane.errors import ConfigError

METRICS_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# Field of BinlogStatus, metric without its prefix, type, help.
METRICS: Final = (
    ("position_bytes", "binlog_position_bytes", "gauge", "Size of the current file"),
    ("lag_s", "lag_seconds", "gauge", "Age of the last change routed while more is to come"),
    ("event_groups", "event_groups_total", "counter", "Event groups written"),
    ("events", "events_total", "counter", "Events written"),
    ("omissions", "omissions_total", "counter", "Parts left out that name outside objects"),
    ("incidents", "incidents_total", "counter", "Event groups replaced by an INCIDENT event"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogStatus:
    """One binlog as operators see it.

    Attributes:
        name: Its name.
        file: Current file.
        position_bytes: Size of the current file up to which readers may read.
        gtid_complete: The watermark.
        log: LOG list as SHOW prints it.
        ignore: IGNORE list.
        format: Logging mode.
        event_groups: Written since this process began; so are the counts below.
        events: Likewise.
        omissions: Parts left out since they name outside objects.
        incidents: Event groups replaced by an INCIDENT event.
        lag_s: How far it is behind the source, in seconds; None where nobody can tell.
        state: `open`, `catching up` or `stopped`.
        reason: Why it is stopped; empty while it is not.
    """

    name: str
    file: str
    position_bytes: int
    gtid_complete: str
    log: str
    ignore: str
    format: str
    event_groups: int
    events: int
    omissions: int
    incidents: int
    lag_s: float | None
    state: str = "open"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """The source as operators see it.

    Attributes:
        is_connected: Whether its log comes.
        failure: Why not; empty while it does.
        since_s: Since when not, in seconds since 1970; None while it does.
    """

    is_connected: bool
    failure: str
    since_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The whole process.

    Attributes:
        problem: Why it is not ready; None when it is.
        binlogs: All of them, by name.
        source: The source.
    """

    problem: str | None
    binlogs: Sequence[BinlogStatus]
    source: SourceStatus = SourceStatus(is_connected=True, failure="", since_s=None)


def application(snapshot: Callable[[], Status]) -> web.Application:
    """The HTTP application.

    Args:
        snapshot: Gives the state of the moment; called for each request.
    """

    async def healthz(request: web.Request) -> web.Response:
        del request
        problem = snapshot().problem
        return web.Response(text=f"{problem or 'ok'}\n", status=503 if problem else 200)

    async def metrics(request: web.Request) -> web.Response:
        del request
        text = render_metrics(snapshot())
        return web.Response(body=text.encode(), headers={"Content-Type": METRICS_CONTENT_TYPE})

    async def binlogs(request: web.Request) -> web.Response:
        del request
        return web.json_response([asdict(status) for status in snapshot().binlogs])

    app = web.Application()
    app.add_routes(
        [
            web.get("/healthz", healthz),
            web.get("/metrics", metrics),
            web.get("/api/binlogs", binlogs),
        ]
    )
    return app


def render_metrics(status: Status) -> str:
    """Prometheus' text format; a label's backslashes, quotes and line ends are escaped."""
    lines = []
    for field, name, kind, text in METRICS:
        lines += [f"# HELP binlane_{name} {text}.", f"# TYPE binlane_{name} {kind}"]
        lines += [
            f'binlane_{name}{{binlog="{_escaped(binlog.name)}"}} {value}'
            for binlog in status.binlogs
            if (value := getattr(binlog, field)) is not None
        ]
    ready = int(status.problem is None)
    lines += ["# HELP binlane_ready Whether binlane is ready.", "# TYPE binlane_ready gauge"]
    return "\n".join([*lines, f"binlane_ready {ready}", ""])


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


async def serve_http(app: web.Application, *, address: str, port: int) -> web.AppRunner:
    """Listen until the runner's `cleanup`.

    Raises:
        ConfigError: If the address cannot be bound.
    """
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, port).start()
    except OSError as error:
        await runner.cleanup()
        what = "is taken" if error.errno == errno.EADDRINUSE else "cannot be used"
        raise ConfigError(
            f"{address}:{port} {what}", key="http.port", hint="name another port under [http]"
        ) from None
    return runner
