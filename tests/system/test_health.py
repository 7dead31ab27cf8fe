"""What /healthz, /metrics and /api/binlogs say while something is wrong."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from tests.serve_process import ServeProcess, create_account, wait_until
from tests.servers import ServerFactory, execute

HTTP = "[http]\nport = 0\n"
FAST = "heartbeat_period_s = 0.2\ntimeout_s = 1\n"


@pytest.fixture(scope="module")
def source(server_directory: Path) -> Iterator[PrivateServer]:
    with PrivateServer.start(server_directory, name="health", options=SOURCE_OPTIONS) as server:
        create_account(server)
        yield server


@pytest.fixture
def serve(source: PrivateServer, tmp_path: Path) -> Iterator[ServeProcess]:
    with ServeProcess(tmp_path / "serve", source, extra=HTTP, capture=FAST) as process:
        wait_until(lambda: process.get("/healthz") == (200, "ok\n"))
        yield process


def metric(serve: ServeProcess, name: str) -> list[str]:
    """The values of a metric, for all binlogs and labels."""
    lines = serve.get("/metrics")[1].splitlines()
    return [line.rpartition(" ")[2] for line in lines if line.startswith(f"binlane_{name}")]


def test_a_source_that_was_never_reached(servers: ServerFactory, tmp_path: Path) -> None:
    gone = servers.start("gone")
    gone.stop()
    with ServeProcess(tmp_path / "serve", gone, extra=HTTP) as serve:
        wait_until(lambda: "(HTTP)" in serve.log)
        status, text = serve.get("/healthz")
        assert status == 503
        assert text.startswith("not connected to the source")
        assert metric(serve, "ready") == ["0"]
        assert metric(serve, "source_silent_seconds") == []


def test_a_lag_is_told_only_where_it_is_known(source: PrivateServer, tmp_path: Path) -> None:
    with ServeProcess(tmp_path / "serve", source, extra=HTTP, capture=FAST) as serve:
        serve.execute("CREATE BINLOG 'b'")
        execute(source, "CREATE DATABASE lagging", "DROP DATABASE lagging")
        assert serve.wait_until_complete("b")
        wait_until(lambda: metric(serve, "lag_seconds{") in (["0"], ["0.0"]))
        assert serve.stop() == 0
        os.kill(source.process_id, signal.SIGSTOP)
        try:
            serve.start()
            wait_until(lambda: "(HTTP)" in serve.log)
            assert metric(serve, "lag_seconds{") == []
            assert metric(serve, "binlog_position_bytes{") != []
        finally:
            os.kill(source.process_id, signal.SIGCONT)


def test_a_source_that_stalls(serve: ServeProcess, source: PrivateServer) -> None:
    os.kill(source.process_id, signal.SIGSTOP)
    try:
        wait_until(lambda: serve.get("/healthz")[0] == 503)
        assert "not connected to the source" in serve.get("/healthz")[1]
    finally:
        os.kill(source.process_id, signal.SIGCONT)
    wait_until(lambda: serve.get("/healthz") == (200, "ok\n"))


def test_replicas_and_what_was_left_out_are_counted(
    serve: ServeProcess, source: PrivateServer
) -> None:
    execute(source, "CREATE DATABASE health")
    serve.execute("CREATE BINLOG 'b' LOG(health.inside)")
    execute(
        source,
        "CREATE TABLE health.inside (id INT PRIMARY KEY)",
        "CREATE TABLE health.outside (id INT PRIMARY KEY)",
        "INSERT INTO health.inside SELECT id FROM health.outside UNION SELECT 1",
        "RENAME TABLE health.outside TO health.outer, health.inside TO health.inside_2",
        "DROP DATABASE health",
    )
    serve.wait_until_complete("b")
    (status,) = json.loads(serve.get("/api/binlogs")[1])
    assert (status["name"], status["state"], status["dumps"]) == ("b", "OPEN", 0)
    assert status["omissions"]
    assert [int(count) for count in metric(serve, "omissions_total{")] == list(
        status["omissions"].values()
    )
    assert metric(serve, 'binlog_state{binlog="b",state="OPEN"}') == ["1"]
