"""A real `serve` whose clock is set: back, ahead, and beyond 32 bits of seconds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from binlane.binlogs.store.verify import verify
from tests.live_oracle import differences
from tests.serve_process import ServeProcess, create_account, wait_until
from tests.servers import ServerFactory, execute

pytestmark = pytest.mark.system

YEAR_S = 365 * 86_400
STEPS_S = (-3600, 10 * YEAR_S, -30 * YEAR_S, 2**32, -60 * YEAR_S, -2, 0)

# Python runs it at its start. A file tells by how much the clock is wrong, and may change.
_SITE = """
import os
import time

_true_time = time.time


def _time():
    with open(os.environ["CLOCK_STEP_FILE"]) as file:
        return _true_time() + float(file.read() or 0)


time.time = _time
"""


def test_a_clock_that_is_set_loses_nothing(servers: ServerFactory, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(_SITE)
    step = tmp_path / "step"
    step.write_text("0")
    path = [str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    source = servers.start("source")
    create_account(source)
    execute(source, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    with ServeProcess(
        tmp_path / "serve",
        source,
        extra="[http]\nport = 0\n[binlog]\nmax_binlog_size = 4096\n",
        capture="heartbeat_period_s = 0.2\n",
        environment={"PYTHONPATH": os.pathsep.join(path), "CLOCK_STEP_FILE": str(step)},
    ) as serve:
        serve.execute("CREATE BINLOG 'all'", "CREATE BINLOG 'shop' LOG(shop)")
        for number, seconds in enumerate(STEPS_S):
            step.with_name("next").write_text(str(seconds))
            step.with_name("next").replace(step)
            execute(source, f"INSERT INTO shop.t VALUES ({2 * number})")
            serve.execute("ALTER BINLOG 'shop' LOG(shop)", "FLUSH BINARY LOGS 'shop'")
            serve.wait_until_complete("shop")
            wait_until(lambda: serve.get("/healthz") == (200, "ok\n"))
            assert "binlane_lag_seconds" in serve.get("/metrics")[1]
            if number % 2:
                serve.kill()
                serve.start()
            execute(source, f"INSERT INTO shop.t VALUES ({2 * number + 1})")
        for name in ("all", "shop"):
            serve.wait_until_complete(name)
        assert list(verify([serve.data_dir])) == []
        assert serve.stop() == 0
        assert differences(source, serve.data_dir, tmp_path / "oracle") == []
        assert "Traceback" not in serve.log
