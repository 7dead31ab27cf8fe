"""Monitoring of a landing that runs: /metrics and /healthz, in a thread of their own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

from binlane.live.web.port_card import serve_http
from binlane.live.web.prometheus import METRICS_CONTENT_TYPE, Metric, Sample, render
from binlane.live.web.settings import HttpSettings
from binlane.tables.landing.landing_progress import LandingProgress


@contextmanager
def landing_port(settings: HttpSettings, progress: Callable[[], LandingProgress]) -> Iterator[int]:
    """Answer until the context ends.

    Args:
        settings: The address, and the port to listen on.
        progress: Gives what was done so far; called for each request.

    Yields:
        The TCP port.

    Raises:
        ConfigError: If the address cannot be bound.
    """
    loop = asyncio.new_event_loop()
    try:
        port = loop.run_until_complete(
            serve_http(application(progress), address=settings.address, port=settings.port)
        )
    except BaseException:
        loop.close()
        raise
    thread = threading.Thread(target=loop.run_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield int(port.addresses[0][1])
    finally:
        asyncio.run_coroutine_threadsafe(port.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def application(progress: Callable[[], LandingProgress]) -> web.Application:
    """Return the HTTP application."""

    async def healthz(request: web.Request) -> web.Response:
        del request
        return web.Response(text="ok\n")

    async def metrics(request: web.Request) -> web.Response:
        del request
        text = render(landing_metrics(progress(), now=time.time()))
        return web.Response(body=text.encode(), headers={"Content-Type": METRICS_CONTENT_TYPE})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/metrics", metrics)])
    return app


def landing_metrics(progress: LandingProgress, *, now: float) -> Iterator[Metric]:
    """All metrics of a landing.

    Args:
        progress: The landing's progress so far.
        now: The present time in seconds since 1970.
    """
    tables = sorted(progress.tables.items())
    yield (
        *(
            "binlane_land_behind_seconds",
            "gauge",
            "Age of the last change landed while more is to come",
        ),
        [Sample(round(progress.seconds_behind(now), 3))],
    )
    yield (
        *("binlane_land_behind_bytes", "gauge", "Bytes of log that are there and not landed"),
        [Sample(progress.bytes_behind)],
    )
    yield (
        *("binlane_land_bytes_total", "counter", "Bytes of log landed since the start"),
        [Sample(progress.size_bytes)],
    )
    yield (
        *("binlane_land_batches_total", "counter", "Batches landed since the start"),
        [Sample(progress.batches)],
    )
    yield (
        *("binlane_land_rows_total", "counter", "Row images landed since the start"),
        [Sample(table.rows, {"table": name}) for name, table in tables],
    )
    yield (
        *("binlane_land_logged_rows_total", "counter", "Row images in the log of what was landed"),
        [Sample(table.logged, {"table": name}) for name, table in tables],
    )
    yield (
        *(
            "binlane_land_left_out_rows_total",
            "counter",
            "Row images of the log that are not landed",
        ),
        [
            Sample(images, {"table": name, "reason": why})
            for name, table in tables
            for why, images in sorted(table.left_out.items())
        ],
    )
    yield (
        *(
            "binlane_land_snapshot_rows_total",
            "counter",
            "Rows taken from the server since the start",
        ),
        [
            Sample(table.snapshot_rows, {"table": name})
            for name, table in tables
            if table.snapshot_rows
        ],
    )
    yield (
        *(
            "binlane_land_snapshot_expected_rows",
            "gauge",
            "Rows that the server estimated there to be",
        ),
        [
            Sample(table.snapshot_expected, {"table": name})
            for name, table in tables
            if table.snapshot_expected
        ],
    )
    yield (
        *("binlane_land_invalid_dates_total", "counter", "Zero or partial dates that became NULL"),
        [Sample(table.invalid_dates, {"table": name}) for name, table in tables],
    )
    yield (
        *(
            "binlane_land_reference_rows_total",
            "counter",
            "Row images left to the reference decoder",
        ),
        [Sample(progress.by_reference)],
    )
    yield (
        *("binlane_land_given_up", "gauge", "1 for a table that was given up"),
        [Sample(1, {"table": name}) for name, table in tables if table.why_not or table.no_history],
    )
    yield (
        *("binlane_land_committed_timestamp_seconds", "gauge", "Last commit of a table"),
        [
            Sample(round(table.committed, 3), {"table": name})
            for name, table in tables
            if table.committed
        ],
    )
